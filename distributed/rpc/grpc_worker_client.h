// SPDX-License-Identifier: Apache-2.0
//
// The worker of another process, called over gRPC.
#pragma once

#include <grpcpp/channel.h>

#include <memory>

#include "distributed/rpc/calls/completion_loop.h"
#include "distributed/worker/worker_client.h"

namespace penstock {

// `task`: name and address; its incarnation is in each call. `env` and `loop` are borrowed.
std::unique_ptr<WorkerClient> NewGrpcWorkerClient(const TaskId& task,
                                                  std::shared_ptr<grpc::Channel> channel, Env& env,
                                                  CompletionLoop& loop);

}  // namespace penstock
