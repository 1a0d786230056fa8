// SPDX-License-Identifier: Apache-2.0
//
// Converts Status to and from gRPC's trailers and protocol buffers. The numbers of the codes are
// the same in all three.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "core/base/status.h"
#include "proto/penstock/common.pb.h"

namespace penstock {

// All functions of this file keep the payloads of an error (core/base/error_origin.h).

// Trailers have room for 8 KiB: longer messages are truncated, and payloads that exceed 1 KiB
// together are left out.
grpc::Status ToGrpc(const Status& status);
// Returns the status of a call. If a failure did not come from the called task (nothing listens
// there, deadline passed), the text names `task`, unless `task` is empty.
Status FromGrpc(const grpc::Status& status, const std::string& task);

void ToProto(const Status& status, wire::Error* error);
Status FromProto(const wire::Error& error);

// Trailing metadata for the payloads of an error whose code and text are in the body of the
// answer: TensorFlow's messages have no field for payloads.
inline constexpr char kPayloadsKey[] = "penstock-error-bin";
// Returns "" if there are no payloads, or more than 1 KiB of them.
std::string PayloadBytes(const Status& status);
// Returns `status` with the payloads in `bytes`. Ignores malformed bytes.
Status WithPayloadBytes(Status status, const std::string& bytes);

}  // namespace penstock
