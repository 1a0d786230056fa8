// SPDX-License-Identifier: Apache-2.0
//
// A WorkerClient that calls the worker of another process over gRPC.
#pragma once

#include <memory>

#include "distributed/calls/channel.h"
#include "distributed/calls/completion_loop.h"
#include "distributed/rpc/step_calls.h"
#include "distributed/worker/worker_client.h"

namespace penstock {

// `task`: name and address; each call names the incarnation. The others are borrowed. `calls`
// carries steps once the two tasks are connected; null: they always take gRPC.
std::unique_ptr<WorkerClient> NewGrpcWorkerClient(const TaskId& task, Channels& channels, Env& env,
                                                  CompletionLoop& loop, StepCalls* calls = nullptr);

}  // namespace penstock
