// SPDX-License-Identifier: Apache-2.0
//
// A WorkerClient that calls the worker of another process over gRPC.
#pragma once

#include <memory>

#include "distributed/rpc/calls/channel.h"
#include "distributed/rpc/calls/completion_loop.h"
#include "distributed/worker/worker_client.h"

namespace penstock {

// `task`: name and address; each call names the incarnation. The others are borrowed.
std::unique_ptr<WorkerClient> NewGrpcWorkerClient(const TaskId& task, Channels& channels, Env& env,
                                                  CompletionLoop& loop);

}  // namespace penstock
