// SPDX-License-Identifier: Apache-2.0
//
// Status as it travels: in gRPC's trailers, and in messages. Codes are equal numbers everywhere.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "core/base/status.h"
#include "proto/penstock/common.pb.h"

namespace penstock {

// Trailers have room for 8 KiB; longer messages are cut.
grpc::Status ToGrpc(const Status& status);
// A call's failure that did not come from the task called (nobody there, deadline passed) names
// `task`, unless that is empty.
Status FromGrpc(const grpc::Status& status, const std::string& task);

void ToProto(const Status& status, wire::Error* error);
Status FromProto(const wire::Error& error);

}  // namespace penstock
