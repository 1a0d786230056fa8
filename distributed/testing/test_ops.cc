// SPDX-License-Identifier: Apache-2.0
//
// Ops for the tests of this folder: one that waits until its step ends, one that fails, one that
// takes its time.
#include "core/base/env.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

class BlockKernel final : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) override {
    struct Waiting {
      explicit Waiting(Done d) : done(std::move(d)) {}
      Done done;
    };
    auto* const waiting = new Waiting(std::move(done));
    Cancellation::Token token;
    const auto cancelled = [waiting](const Status& why) {
      std::move(waiting->done)(why);
      delete waiting;
    };
    if (!ctx.step().cancellation->Register(cancelled, &token)) {
      cancelled(ctx.step().cancellation->status());
    }
  }
};

class FailKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("message", &message_); }
  Status Compute(KernelContext& ctx) override { return OutOfRange(message_); }

 private:
  std::string message_;
};

class SleepKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("millis", &millis_); }
  Status Compute(KernelContext& ctx) override {
    ctx.step().env->SleepForNanos(millis_ * 1'000'000);
    ctx.SetOutput(0, ctx.input(0));
    return OkStatus();
  }

 private:
  int64_t millis_ = 0;
};

OP(TestBlock) {
  return {
      .outputs = {{"y", "float"}},
      .shape = UnknownShape,
      .gradient = NoGradient,
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(TestBlock, BlockKernel);
OP(TestFail) {
  return {
      .outputs = {{"y", "float"}},
      .attrs = {{"message", "it went wrong"}},
      .shape = UnknownShape,
      .gradient = NoGradient,
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(TestFail, FailKernel);
OP(TestSleep) {
  return {
      .inputs = {{"x", "float"}},
      .outputs = {{"y", "float"}},
      .attrs = {{"millis", Ints{.min = 0}}},
      .shape = SameShape,
      .gradient = NoGradient,
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(TestSleep, SleepKernel);

}  // namespace
}  // namespace penstock
