// SPDX-License-Identifier: Apache-2.0
#include "distributed/testing/test_ops.h"

#include <chrono>

#include "core/base/cond_var.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

// Counts the kernels that block.
struct Blocked {
  Mutex mu;
  CondVar changed;
  int64_t count ABSL_GUARDED_BY(mu) = 0;

  void Add(int64_t kernels) {
    MutexLock lock(mu);
    count += kernels;
    changed.NotifyAll();
  }
};
Blocked& GlobalBlocked() {
  static Blocked& blocked = *new Blocked;
  return blocked;
}

class BlockKernel final : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) override {
    struct Waiting {
      explicit Waiting(Done d) : done(std::move(d)) {}
      Done done;
    };
    auto* const waiting = new Waiting(std::move(done));
    Cancellation::Token token;
    GlobalBlocked().Add(1);
    const auto cancelled = [waiting](const Status& why) {
      GlobalBlocked().Add(-1);
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

bool AwaitBlocked(int64_t count) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  Blocked& blocked = GlobalBlocked();
  MutexLock lock(blocked.mu);
  while (blocked.count < count) {
    if (!blocked.changed.WaitUntil(blocked.mu, limit)) return false;
  }
  return true;
}

}  // namespace penstock
