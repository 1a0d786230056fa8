// SPDX-License-Identifier: Apache-2.0
//
// StartedStep: a training step whose outputs the caller takes with get. It runs on a thread of its
// own, or on the thread that calls get.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock::client {

class StartedStep {
 public:
  using Outputs = StatusOr<std::vector<Tensor>>;

  // Runs the step when get is called.
  explicit StartedStep(std::function<Outputs()> run) : run_(std::move(run)) {}
  // Runs the step now, on a thread of its own. The destructor waits for the thread to end.
  StartedStep(std::function<Outputs()> run, Scheduler& scheduler)
      : ran_(std::make_unique<std::optional<Outputs>>()),
        thread_(scheduler.StartThread(
            "step", [ran = ran_.get(), run = std::move(run)] { ran->emplace(run()); })) {}

  StartedStep(StartedStep&&) = default;
  StartedStep& operator=(StartedStep&&) = delete;

  // Runs the step, or waits until its thread has run it, and returns the outputs. REQUIRES: get is
  // called once.
  Outputs get() {
    if (thread_ == nullptr) return run_();
    thread_ = nullptr;
    return *std::move(*ran_);
  }

 private:
  std::function<Outputs()> run_;
  std::unique_ptr<std::optional<Outputs>> ran_;
  std::unique_ptr<Thread> thread_;  // writes *ran_
};

}  // namespace penstock::client
