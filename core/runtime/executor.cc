// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/executor.h"

#include <atomic>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/runtime/executable.h"
#include "core/runtime/execution.h"

namespace penstock {
namespace {

class PartitionExecutor final : public Executor {
 public:
  PartitionExecutor(std::unique_ptr<Executable> executable, const ExecutorOptions& options)
      : executable_(std::move(executable)), options_(options) {}
  ~PartitionExecutor() override { delete spare_.load(); }

  Status Run(const StepArgs& args) override {
    Execution* const execution = Acquire();
    Status status = execution->Run(args);
    Release(execution);
    return status;
  }

  void RunAsync(const StepArgs& args, Done done) override {
    Execution* const execution = Acquire();
    execution->RunAsync(args, [this, execution, done = std::move(done)](Status status) mutable {
      Release(execution);  // must precede `done`, which may destroy the executor
      std::move(done)(std::move(status));
    });
  }

  const Graph& graph() const override { return executable_->graph(); }
  const Device& device() const override { return *options_.device; }

  std::vector<StepActivity> Activities() override {
    std::vector<StepActivity> activities;
    MutexLock lock(mu_);
    for (Execution* const execution : all_) {
      if (auto activity = execution->Activity()) activities.push_back(*std::move(activity));
    }
    return activities;
  }

 private:
  // Most steps run one at a time. Then the spare execution is reused without a lock.
  Execution* Acquire() {
    if (Execution* const spare = spare_.exchange(nullptr, std::memory_order_acquire)) return spare;
    MutexLock lock(mu_);
    if (idle_.empty()) return all_.emplace_back(new Execution(*executable_, options_));
    Execution* const execution = idle_.back().release();
    idle_.pop_back();
    return execution;
  }

  void Release(Execution* execution) {
    Execution* none = nullptr;
    if (spare_.compare_exchange_strong(none, execution, std::memory_order_release)) return;
    MutexLock lock(mu_);
    idle_.emplace_back(execution);
  }

  const std::unique_ptr<Executable> executable_;
  const ExecutorOptions options_;
  std::atomic<Execution*> spare_{nullptr};
  Mutex mu_;
  std::vector<std::unique_ptr<Execution>> idle_ ABSL_GUARDED_BY(mu_);
  std::vector<Execution*> all_ ABSL_GUARDED_BY(mu_);  // idle, spare and running
};

}  // namespace

StatusOr<std::unique_ptr<Executor>> MakeExecutor(Graph graph, const ExecutorOptions& options) {
  CHECK(options.device != nullptr && options.threads != nullptr && options.env != nullptr &&
        options.timer != nullptr);
  ASSIGN_OR_RETURN(std::unique_ptr<Executable> executable,
                   Executable::Make(std::move(graph), *options.device, options.kernels));
  return std::make_unique<PartitionExecutor>(std::move(executable), options);
}

}  // namespace penstock
