// SPDX-License-Identifier: Apache-2.0
//
// GrpcHost: the parts of a task's gRPC server that the services of the task use together.
//
// Before the server is built, services register with `builder`. Once the server runs, they take
// calls from `queue`, which `loop` polls.
#pragma once

#include <grpcpp/server_builder.h>

#include "distributed/calls/channel.h"
#include "distributed/calls/completion_loop.h"

namespace penstock {

struct GrpcHost {
  Channels* channels = nullptr;
  grpc::ServerBuilder* builder = nullptr;        // null once the server is built
  CompletionLoop* loop = nullptr;                // null until the server is built
  grpc::ServerCompletionQueue* queue = nullptr;  // the loop's queue
};

}  // namespace penstock
