// SPDX-License-Identifier: Apache-2.0
//
// A WorkerClient that calls the worker of another process over gRPC.
#pragma once

#include <memory>

#include "core/graph/graph_pieces.h"
#include "distributed/calls/channel.h"
#include "distributed/calls/completion_loop.h"
#include "distributed/rpc/graph_upload.h"
#include "distributed/rpc/step_calls.h"
#include "distributed/worker/worker_client.h"

namespace penstock {

// Returns a client of `task`, of which only the name and address are used: each call names the
// incarnation. The other arguments are borrowed. `calls` carries steps once the two tasks are
// connected; null: steps always use gRPC.
// Graphs above `limits` are registered in parts (graph_upload.h), by several calls with the same
// timeout.
std::unique_ptr<WorkerClient> NewGrpcWorkerClient(const TaskId& task, Channels& channels, Env& env,
                                                  CompletionLoop& loop, StepCalls* calls = nullptr,
                                                  const PieceLimits& limits = GraphUpload::kLimits);

}  // namespace penstock
