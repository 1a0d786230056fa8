// SPDX-License-Identifier: Apache-2.0
//
// AutoPlacement: chooses, only once, the devices for the state of a session with
// SessionOptions::placement "auto", and remembers them. StepSampling: selects the executions of a
// prepared step that are measured, and those after which the step is placed again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "core/compiler/compile.h"
#include "core/compiler/pass/device_slowness.h"
#include "core/graph/graph.h"
#include "distributed/master/step_times.h"

namespace penstock {

inline constexpr char kPlacementAuto[] = "auto";
inline constexpr char kPlacementClient[] = "client";

// Returns OK if `placement` is an allowed value of SessionOptions::placement, else InvalidArgument,
// which lists these values.
Status CheckPlacement(const std::string& placement);

// Thread-safe.
class AutoPlacement {
 public:
  // Returns the devices of the nodes of `graph` that hold state. `version` is the version of the
  // graph; decisions made for earlier versions stay. Reads the fields of `options` that concern
  // placement. Places all nodes of the graph, so errors also name nodes that the step does not
  // need.
  StatusOr<std::shared_ptr<const DeviceByNode>> StateDevices(const Graph& graph, int64_t version,
                                                             const std::vector<DeviceInfo>& devices,
                                                             const CompileOptions& options);

 private:
  Mutex mu_;
  int64_t version_ ABSL_GUARDED_BY(mu_) = -1;
  std::shared_ptr<const DeviceByNode> state_ ABSL_GUARDED_BY(mu_);
};

// Counts the executions of one prepared step. Thread-safe.
class StepSampling {
 public:
  // Says whether an execution is measured, and whether the step is placed again after it.
  // Executions 2 to 4, 16 and every 1024th are measured. The first one is left out because it is
  // slower than the others, and most others because measuring costs time. The step is placed again
  // after each measured execution except 2 and 3. The mean time of recent executions is also
  // compared with an earlier mean, once in kCheckEvery executions. If it is a quarter longer or a
  // fifth shorter, a task may have changed its speed. Then kBurst executions are measured and the
  // step is placed again. The next comparison is at least kPause executions later.
  enum class Sample { kNone, kMeasure, kMeasureAndPlace };
  static constexpr uint32_t kCheckEvery = 32, kBurst = DeviceSlowness::kStepsKept, kPause = 128;
  // Counts an execution that begins, and returns whether to measure it. `times`: the times of the
  // executions that have ended.
  Sample Begin(const StepTimes& times);

 private:
  bool HasChanged(uint32_t begun, const StepTimes& times);

  std::atomic<uint32_t> begun_{0};
  std::atomic<uint32_t> burst_end_{0};  // the last execution of the last burst
  // The mean time with which later mean times are compared; 0: none yet.
  std::atomic<int64_t> reference_ns_{0};
};

}  // namespace penstock
