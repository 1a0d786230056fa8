// SPDX-License-Identifier: Apache-2.0
//
// MeasuredCosts: the costs that were measured in the traced steps of one session. The compiler uses
// them for later steps. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/compiler/pass/cost_table.h"
#include "core/graph/graph.h"
#include "core/runtime/step_stats.h"

namespace penstock {

class MeasuredCosts {
 public:
  // Records the costs of a traced step of `graph`: the sizes of outputs, and the times of nodes on
  // CPUs that compute. Left out are control flow; nodes that may wait (for a queue, a lock, an
  // iterator); nodes of other devices, whose times only include the launch of a kernel; and nodes
  // that the compiler added, except those that the pass "fuse" made. A transfer between tasks
  // is timed only if the consumer was waiting for it already. It lasts from the end of the node
  // that made the value to the value's arrival, by the clocks of the two tasks. `clocks_ahead`: by
  // how many nanoseconds the wall clock of a task is ahead of the master's; tasks that are not in
  // the map have the master's clock.
  using ClocksAhead = std::map<std::string, int64_t>;
  void Record(const Graph& graph, const std::vector<DeviceStats>& stats,
              const ClocksAhead& clocks_ahead = {});

  // Returns a snapshot; null before anything was recorded.
  std::shared_ptr<const CostTable> Get() const;

 private:
  mutable Mutex mu_;
  std::shared_ptr<const CostTable> costs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
