// SPDX-License-Identifier: Apache-2.0
//
// AutoPlacement: what a session with SessionOptions::placement "auto" remembers: where its state
// was put, which is decided once; StepSampling: which executions of a prepared step are measured,
// and after which the step is placed anew.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "core/compiler/compile.h"
#include "core/graph/graph.h"

namespace penstock {

inline constexpr char kPlacementAuto[] = "auto";
inline constexpr char kPlacementClient[] = "client";

// InvalidArgument lists what SessionOptions::placement may be.
Status CheckPlacement(const std::string& placement);

// Thread-safe.
class AutoPlacement {
 public:
  // Returns the devices of the nodes of `graph` that hold state. `version` is the version of the
  // graph; decisions for earlier versions stay. Reads the fields of `options` that concern
  // placement. Places the whole graph: errors name the nodes that cannot be placed, also those that
  // the step does not need.
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
  // Whether one execution of the step is measured, and the step placed anew after it. The 2nd to
  // the 4th, the 16th and each 1024th are measured: the first one is slower than the others, and
  // measuring costs time.
  enum class Sample { kNone, kMeasure, kMeasureAndPlace };
  // Counts an execution that begins.
  Sample Begin();

 private:
  std::atomic<uint32_t> begun_{0};
};

}  // namespace penstock
