// SPDX-License-Identifier: Apache-2.0
//
// GrpcHost: the gRPC server of a task's process, as lent to the services that share it.
//
// Before the server is built: register services with the builder. Once it runs: take calls from
// `queue`, which `loop` polls.
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
