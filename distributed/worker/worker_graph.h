// SPDX-License-Identifier: Apache-2.0
//
// WorkerGraph: what one task runs of a compiled step: one executor per device that has a part.
//
// Immutable; Run and RunAsync are thread-safe. Held by shared pointers: whoever runs it keeps it,
// so that it may be deregistered at any time.
#pragma once

#include <memory>
#include <vector>

#include "core/base/done.h"
#include "core/op/task_name.h"
#include "core/runtime/executor.h"

namespace penstock {

class WorkerGraph : public std::enable_shared_from_this<WorkerGraph> {
 public:
  struct Part {
    std::unique_ptr<Executor> executor;
    ResourceStore* resources = nullptr;         // null: the device's own
    std::shared_ptr<ResourceStore> store_kept;  // what `resources` points to, if it is a session's
  };

  // `producers`: other tasks that it receives tensors from. `communicates`: it has a _Send or
  // _Recv, so a step needs a rendezvous.
  WorkerGraph(std::vector<Part> parts, std::vector<TaskName> producers, bool communicates)
      : parts_(std::move(parts)), producers_(std::move(producers)), communicates_(communicates) {}

  const std::vector<TaskName>& producers() const { return producers_; }
  bool communicates() const { return communicates_; }
  const std::vector<Part>& parts() const { return parts_; }
  bool one_part() const { return parts_.size() == 1; }

  // Runs all parts; `done` is called when nothing of them runs any more. The parts share `args`,
  // which must bring a cancellation: the first failure ends them all and is the status.
  void RunAsync(const StepArgs& args, Done done);
  // On this thread. REQUIRES one_part().
  Status Run(StepArgs args) {
    args.resources = parts_[0].resources;
    return parts_[0].executor->Run(args);
  }

 private:
  const std::vector<Part> parts_;
  const std::vector<TaskName> producers_;
  const bool communicates_;
};

}  // namespace penstock
