// SPDX-License-Identifier: Apache-2.0
//
// A WorkerClient that calls the worker of another process over gRPC.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/scheduler.h"
#include "core/graph/graph_pieces.h"
#include "distributed/calls/channel.h"
#include "distributed/calls/completion_loop.h"
#include "distributed/rpc/graph_upload.h"
#include "distributed/rpc/step_calls.h"
#include "distributed/worker/worker_client.h"

namespace penstock {

// The most time for a part of a graph that is registered in parts, except the last one.
inline constexpr int64_t kPartTimeoutMs = 60'000;

// Returns a client of `task`, of which only the name and address are used: each call names the
// incarnation. The other arguments are borrowed. `calls` carries steps once the two tasks are
// connected; null: steps always use gRPC.
//
// Graphs above `limits` are registered in parts (graph_upload.h), by several calls. The client
// makes the parts on `threads`, except the first one, because that takes too long for a polling
// thread. The timeout of RegisterGraph is for all parts together.
std::unique_ptr<WorkerClient> NewGrpcWorkerClient(const TaskId& task, Channels& channels, Env& env,
                                                  Scheduler& threads, CompletionLoop& loop,
                                                  StepCalls* calls = nullptr,
                                                  const PieceLimits& limits = GraphUpload::kLimits);

}  // namespace penstock
