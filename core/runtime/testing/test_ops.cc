// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/testing/test_ops.h"

#include <chrono>
#include <new>
#include <thread>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/op/variable.h"

namespace penstock {
namespace {

class SumKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("plus", &plus_); }
  Status Compute(KernelContext& ctx) override {
    int64_t sum = plus_;
    for (int i = 0; i < ctx.num_inputs(); ++i) sum += ctx.input(i).scalar<int64_t>();
    Tensor* output = nullptr;
    if (ctx.num_inputs() > 0) {
      RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, {}, &output));
    } else {
      RETURN_IF_ERROR(ctx.Allocate(0, {}, &output));
    }
    *output->mutable_data<int64_t>() = sum;
    return OkStatus();
  }

 private:
  int64_t plus_ = 0;
};

class SpinKernel final : public SumKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("micros", &micros_));
    RETURN_IF_ERROR(node.Attr("declared", &declared_));
    return SumKernel::Init(node);
  }
  Status Compute(KernelContext& ctx) override {
    Env& env = *ctx.step().env;
    const int64_t until = env.NowNanos() + micros_ * 1000;
    while (env.NowNanos() < until) {
    }
    return SumKernel::Compute(ctx);
  }
  int64_t CostNanos() const override { return declared_ ? micros_ * 1000 : 0; }

 private:
  int64_t micros_ = 0;
  bool declared_ = true;
};

class TestAsyncKernel final : public AsyncKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("inline", &inline_));
    RETURN_IF_ERROR(node.Attr("fail", &fail_));
    return sum_.Init(node);
  }
  void ComputeAsync(KernelContext& ctx, Done done) override {
    if (inline_) return End(ctx, std::move(done));
    ctx.threads().Schedule(
        [this, &ctx, done = std::move(done)]() mutable { End(ctx, std::move(done)); });
  }

 private:
  void End(KernelContext& ctx, Done done) {
    if (fail_) return std::move(done)(Unavailable("asynchronous failure"));
    std::move(done)(sum_.Compute(ctx));
  }
  SumKernel sum_;
  bool inline_ = false, fail_ = false;
};

class FailKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("message", &message_); }
  Status Compute(KernelContext& ctx) override { return InvalidArgument(message_); }

 private:
  std::string message_;
};

class ForgetKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override { return OkStatus(); }
};

class WrongKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, Tensor::Scalar(1.0f));
    return OkStatus();
  }
};

class ThrowKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override { throw std::bad_alloc(); }
};

class AliasKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(1, Tensor::Scalar(ctx.input(0).unique()));
    ctx.SetOutput(0, ctx.TakeInput(0));
    return OkStatus();
  }
};

// Counts the kernels of TestStall that wait.
struct Stalled {
  Mutex mu;
  CondVar changed;
  int64_t count ABSL_GUARDED_BY(mu) = 0;

  void Add(int64_t kernels) {
    MutexLock lock(mu);
    count += kernels;
    changed.NotifyAll();
  }
};
Stalled& GlobalStalled() {
  static Stalled& stalled = *new Stalled;
  return stalled;
}

class StallKernel final : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) override {
    struct Wait {
      Done done;
      Cancellation::Token token = 0;
    };
    auto wait = std::make_shared<Wait>(Wait{std::move(done)});
    GlobalStalled().Add(1);
    const auto end = [wait](const Status& why) {
      GlobalStalled().Add(-1);
      std::move(wait->done)(why);
    };
    // The callback need not be deregistered: it is destroyed with the cancellation, which outlives
    // the step.
    if (!ctx.step().cancellation->Register(end, &wait->token)) {
      end(ctx.step().cancellation->status());
    }
  }
};

class VariableKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("name", &name_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(std::shared_ptr<Resource> variable,
                     ctx.resources().LookupOrCreate(kDefaultContainer, name_, "Variable", [&] {
                       return std::make_shared<Variable>(name_, DType::kInt64, PartialShape());
                     }));
    ctx.SetOutput(0, Tensor::Scalar(ResourceHandle{.name = name_, .resource = variable}));
    return OkStatus();
  }

 private:
  std::string name_;
};

class AssignKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const ResourceHandle& handle = ctx.input(0).scalar<ResourceHandle>();
    ASSIGN_OR_RETURN(auto variable, ResolveHandleAs<Variable>(handle, ctx.resources()));
    RETURN_IF_ERROR(variable->Assign(ctx.TakeInput(1), true, ctx.origin()));
    ctx.SetOutput(0, ctx.TakeInput(0));
    return OkStatus();
  }
};

class LessKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0,
                  Tensor::Scalar(ctx.input(0).scalar<int64_t>() < ctx.input(1).scalar<int64_t>()));
    return OkStatus();
  }
};

class OddKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, Tensor::Scalar((ctx.input(0).scalar<int64_t>() & 1) != 0));
    return OkStatus();
  }
};

class LowKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, Tensor::Scalar(ctx.input(0).scalar<int64_t>() & 3));
    return OkStatus();
  }
};

class HalfKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, Tensor::Scalar(ctx.input(0).scalar<int64_t>() / 2));
    return OkStatus();
  }
};

class SleepKernel final : public AsyncKernel {
 public:
  Status Init(const KernelInit& node) override { return sum_.Init(node); }
  void ComputeAsync(KernelContext& ctx, Done done) override {
    auto kept = std::make_shared<Done>(std::move(done));
    DeadlineTimer::Real().Arm(Env::Real().NowNanos() + 1'000'000,
                              [this, &ctx, kept] { std::move (*kept)(sum_.Compute(ctx)); });
  }

 private:
  SumKernel sum_;
};

class PassKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, ctx.TakeInput(0));
    return OkStatus();
  }
};

class WhereKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const auto iteration = static_cast<int64_t>(ctx.iteration());
    ctx.SetOutput(0, Tensor::Scalar(ctx.input(0).scalar<int64_t>() + iteration));
    ctx.SetOutput(1, Tensor::Scalar(static_cast<int64_t>(ctx.frame())));
    return OkStatus();
  }
};

#define PENSTOCK_TEST_SUM(Name, ...)                       \
  OP(Name) {                                               \
    return {                                               \
        .inputs = {{"x", Repeat("N", "int64")}},           \
        .outputs = {{"y", "int64"}},                       \
        .attrs = {{"N", Ints{}}, {"plus", 0} __VA_ARGS__}, \
        .shape = ScalarShape,                              \
        .stateful = true,                                  \
    };                                                     \
  }
PENSTOCK_TEST_SUM(TestSum)
PENSTOCK_TEST_SUM(TestSpin, , {"micros", 0}, {"declared", true})
PENSTOCK_TEST_SUM(TestAsync, , {"inline", false}, {"fail", false})
PENSTOCK_TEST_SUM(TestFail, , {"message", "failed"})
PENSTOCK_TEST_SUM(TestForget)
PENSTOCK_TEST_SUM(TestWrong)
PENSTOCK_TEST_SUM(TestStall)
PENSTOCK_TEST_SUM(TestThrow)
PENSTOCK_TEST_SUM(TestSleep)
OP(TestAlias) {
  return {
      .inputs = {{"x", "int64"}},
      .outputs = {{"y", "int64"}, {"unique", "bool"}},
      .shape = ScalarShape,
  };
}

OP(TestVariable) {
  return {
      .outputs = {{"ref", Ref("int64")}},
      .attrs = {{"name", Strings{}}},
      .stateful = true,
  };
}

OP(TestAssign) {
  return {
      .inputs = {{"ref", Ref("int64")}, {"value", "int64"}},
      .outputs = {{"out", Ref("int64")}},
      .stateful = true,
      .allows_uninitialized_input = true,
  };
}

OP(TestLess) {
  return {
      .inputs = {{"x", "int64"}, {"y", "int64"}},
      .outputs = {{"z", "bool"}},
      .shape = ScalarShape,
  };
}

OP(TestOdd) {
  return {.inputs = {{"x", "int64"}}, .outputs = {{"y", "bool"}}, .shape = ScalarShape};
}

OP(TestLow) {
  return {.inputs = {{"x", "int64"}}, .outputs = {{"y", "int64"}}, .shape = ScalarShape};
}

OP(TestHalf) {
  return {.inputs = {{"x", "int64"}}, .outputs = {{"y", "int64"}}, .shape = ScalarShape};
}

OP(TestPass) {
  return {
      .inputs = {{"x", "T"}},
      .outputs = {{"y", "T"}},
      .types = {{"T", kAllTypes}},
      .shape = SameShape,
  };
}

OP(TestWhere) {
  return {
      .inputs = {{"x", "int64"}},
      .outputs = {{"y", "int64"}, {"frame", "int64"}},
      .shape = ScalarShape,
  };
}
KERNEL_ANY_TYPE(TestLess, LessKernel);
KERNEL_ANY_TYPE(TestOdd, OddKernel);
KERNEL_ANY_TYPE(TestLow, LowKernel);
KERNEL_ANY_TYPE(TestHalf, HalfKernel);
KERNEL_ANY_TYPE(TestSleep, SleepKernel);
KERNEL_ANY_TYPE(TestPass, PassKernel);
KERNEL_ANY_TYPE(TestWhere, WhereKernel);
KERNEL_ANY_TYPE(TestVariable, VariableKernel);
KERNEL_ANY_TYPE(TestAssign, AssignKernel);
KERNEL_ANY_TYPE(TestSum, SumKernel);
KERNEL_ANY_TYPE(TestSpin, SpinKernel);
KERNEL_ANY_TYPE(TestAsync, TestAsyncKernel);
KERNEL_ANY_TYPE(TestFail, FailKernel);
KERNEL_ANY_TYPE(TestForget, ForgetKernel);
KERNEL_ANY_TYPE(TestWrong, WrongKernel);
KERNEL_ANY_TYPE(TestStall, StallKernel);
KERNEL_ANY_TYPE(TestThrow, ThrowKernel);
KERNEL_ANY_TYPE(TestAlias, AliasKernel);

std::unique_ptr<Device> MakeCpu() {
  auto devices = MakeDevices({.task = *DeviceName::Parse("/job:worker/task:0"), .gpus_max = 0});
  CHECK_OK(devices.status());
  return std::move(devices->front());
}

}  // namespace

bool AwaitStalled(int64_t count) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  Stalled& stalled = GlobalStalled();
  MutexLock lock(stalled.mu);
  while (stalled.count < count) {
    if (!stalled.changed.WaitUntil(stalled.mu, limit)) return false;
  }
  return true;
}

TestTask::TestTask(int num_threads) : device(MakeCpu()), threads("test", num_threads) {}

StatusOr<std::unique_ptr<Executor>> TestTask::TryMake(Graph graph) {
  return MakeExecutor(std::move(graph), {.device = device.get(),
                                         .threads = &threads,
                                         .env = &Env::Real(),
                                         .timer = &DeadlineTimer::Real()});
}

std::unique_ptr<Executor> TestTask::Make(Graph graph) {
  auto executor = TryMake(std::move(graph));
  CHECK_OK(executor.status());
  return *std::move(executor);
}

Node* TestGraph::Add(const std::string& op, const std::vector<Node*>& inputs, Attrs attrs,
                     const std::vector<Node*>& after, const std::string& name) {
  Graph::NodeSpec spec = {.name = name.empty() ? StrCat("n", graph_.max_id()) : name,
                          .op = op,
                          .control_inputs = after,
                          .attrs = std::move(attrs)};
  for (Node* input : inputs) spec.inputs.push_back({input, 0});
  auto node = graph_.AddNode(std::move(spec));
  CHECK_OK(node.status());
  return *node;
}

Node* TestGraph::AddSum(const std::string& op, const std::vector<Node*>& inputs, Attrs attrs,
                        const std::vector<Node*>& after) {
  attrs["N"] = static_cast<int64_t>(inputs.size());
  return Add(op, inputs, std::move(attrs), after);
}

Node* TestGraph::Feed(int index, DType dtype) {
  return Add("_Feed", {}, {{"index", index}, {"T", dtype}});
}

Node* TestGraph::Fetch(Node* node, int index, int output) {
  auto fetch =
      graph_.AddNode({.name = StrCat("n", graph_.max_id()),
                      .op = "_Fetch",
                      .inputs = {{node, output}},
                      .attrs = {{"index", index}, {"T", node->output_type(output).dtype}}});
  CHECK_OK(fetch.status());
  return *fetch;
}

TestStep::TestStep(int num_fetches, std::vector<Tensor> feeds)
    : feeds(std::move(feeds)), fetches(num_fetches), rendezvous(NewLocalRendezvous()) {}

StepArgs TestStep::Args() {
  return {.step_id = 7,
          .rendezvous = rendezvous.get(),
          .cancellation = &cancellation,
          .step_resources = &step_resources,
          .deadline_ns = deadline_ns,
          .feeds = feeds.data(),
          .num_feeds = static_cast<int>(feeds.size()),
          .fetches = fetches.data(),
          .num_fetches = static_cast<int>(fetches.size()),
          .stats = stats};
}

}  // namespace penstock
