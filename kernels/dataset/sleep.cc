// SPDX-License-Identifier: Apache-2.0
//
// SleepDataset: waits before each element. Programs use it to simulate a slow source.
#include <algorithm>
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/cancellable_wait.h"
#include "kernels/dataset/dataset_kernel.h"

namespace penstock {
namespace {

class SleepDataset final : public Dataset {
 public:
  SleepDataset(DatasetPtr input, int64_t nanos) : Dataset(input->spec(), {input}), nanos_(nanos) {}
  const char* Name() const override { return "Sleep"; }
  int64_t Cardinality() const override { return input().Cardinality(); }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    return std::make_unique<Iterator>(std::move(input), nanos_, *ctx.threads);
  }

 private:
  class Iterator final : public UnaryIterator {
   public:
    Iterator(IteratorPtr input, int64_t nanos, Scheduler& threads)
        : UnaryIterator(std::move(input)), nanos_(nanos), cancelled_(threads, "SleepDataset") {}
    bool NeverWaits() const override { return false; }
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      RETURN_IF_ERROR(Sleep(ctx));
      return input_->GetNext(ctx, element, end);
    }

   private:
    // Sleeps before an element. Returns early, with the step's status, if the step is cancelled.
    Status Sleep(const IteratorContext& ctx) {
      Cancellation& cancellation = *ctx.cancellation;
      const int64_t until = ctx.env->NowNanos() + nanos_;
      Cancellation::Token token = 0;
      const auto wake = [this](const Status&) {
        { MutexLock lock(mu_); }
        cancelled_.NotifyAll();
      };
      if (!cancellation.Register(wake, &token)) return cancellation.status();
      {
        MutexLock lock(mu_);
        cancelled_.WaitUntil(mu_, until, [&] { return cancellation.cancelled(); });
      }
      cancellation.Deregister(token);
      return cancellation.cancelled() ? cancellation.status() : OkStatus();
    }

    const int64_t nanos_;
    Mutex mu_;
    Condition cancelled_;
  };

  const int64_t nanos_;
};

class SleepKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    constexpr int64_t kMicrosMax = int64_t{1} << 50;  // 35 years
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(const int64_t micros, ScalarInput<int64_t>(ctx, 1, "sleep_microseconds"));
    if (micros < 0) return InvalidArgument("`sleep_microseconds` must be >= 0, is ", micros);
    return std::make_shared<SleepDataset>(std::move(input), std::min(micros, kMicrosMax) * 1000);
  }
};

DatasetOp SleepOp() {
  return {.doc = "Waits sleep_microseconds before each element of a dataset.",
          .inputs = {{"input_dataset", "variant"}, {"sleep_microseconds", "int64"}},
          .metadata = false};
}
OP(SleepDataset) { return SleepOp(); }
OP(ExperimentalSleepDataset) { return SleepOp(); }
KERNEL_ANY_TYPE(SleepDataset, SleepKernel);
KERNEL_ANY_TYPE(ExperimentalSleepDataset, SleepKernel);

}  // namespace
}  // namespace penstock
