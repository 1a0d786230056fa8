// SPDX-License-Identifier: Apache-2.0
//
// Status as it travels: in gRPC's trailers, and in messages. Codes are equal numbers everywhere.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "core/base/status.h"
#include "proto/penstock/common.pb.h"

namespace penstock {

// All of these keep the payloads of an error (core/base/error_origin.h).

// Trailers have room for 8 KiB: longer messages are cut, and payloads of more than 1 KiB in all
// are left out.
grpc::Status ToGrpc(const Status& status);
// A call's failure that did not come from the task called (nobody there, deadline passed) names
// `task`, unless that is empty.
Status FromGrpc(const grpc::Status& status, const std::string& task);

void ToProto(const Status& status, wire::Error* error);
Status FromProto(const wire::Error& error);

// Trailing metadata for the payloads of an error whose code and text stand in the body of the
// answer: TensorFlow's messages have no field for them.
inline constexpr char kPayloadsKey[] = "penstock-error-bin";
// "" if there are none, or more than 1 KiB of them.
std::string PayloadBytes(const Status& status);
// Adds the payloads to `status`. Ignores malformed bytes.
Status WithPayloadBytes(Status status, const std::string& bytes);

}  // namespace penstock
