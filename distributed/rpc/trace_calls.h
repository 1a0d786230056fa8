// SPDX-License-Identifier: Apache-2.0
//
// Handlers of the calls TraceTask and TraceCluster (proto/penstock/trace.proto). Both functions
// block until the trace is complete, and end soon after they are cancelled.
#pragma once

#include "core/base/cancellation.h"
#include "core/base/env.h"
#include "distributed/calls/channel.h"
#include "distributed/calls/completion_loop.h"
#include "distributed/task/task.h"
#include "proto/penstock/trace.pb.h"

namespace penstock {

// Objects of the task that the handlers use; borrowed.
struct TraceServices {
  Task* task = nullptr;
  Env* env = nullptr;
  Scheduler* threads = nullptr;
  Channels* channels = nullptr;
  CompletionLoop* loop = nullptr;
};

// Records the next steps of the sessions whose master is this task, until it has all of them,
// its timeout has passed, or no step has run for kTraceIdleNanos. Records nothing if this task is
// the master of no session, or if `request` asks only which transports are in use (roads_only).
// InvalidArgument names the field of the request that is out of range; ResourceExhausted while
// another trace runs.
StatusOr<wire::TaskTrace> TraceTask(const TraceServices& services,
                                    const wire::TraceRequest& request, Cancellation* cancellation);
// Makes every process of the cluster record a trace, at the same time. For another process that
// fails or does not answer, the result has an error. If this task's own trace fails, cancels the
// others and returns its error.
StatusOr<wire::ClusterTrace> TraceCluster(const TraceServices& services,
                                          const wire::TraceRequest& request,
                                          Cancellation* cancellation);

inline constexpr int64_t kTraceIdleNanos = 3'000'000'000;
inline constexpr int64_t kTraceTimeoutMsMax = 3'600'000;

}  // namespace penstock
