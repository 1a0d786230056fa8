// SPDX-License-Identifier: Apache-2.0
//
// The ops on WorkerClocks. TensorFlow has no such ops. client/sync/bounded_staleness.h adds them to
// a training step.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/timeout.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/worker_clocks/worker_clocks.h"

namespace penstock {
namespace {

class WorkerClocksKernel final : public HandleKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(HandleKernel::Init(node));
    return node.Attr("workers", &workers_);
  }

 private:
  const char* Type() const override { return WorkerClocks::kType; }
  StatusOr<std::shared_ptr<Resource>> Make(KernelContext&) const override {
    return WorkerClocks::Make(resource_name(), workers_);
  }
  Status Check(const Resource& resource) const override {
    const int64_t workers = static_cast<const WorkerClocks&>(resource).workers();
    if (workers == workers_) return OkStatus();
    return InvalidArgument("WorkerClocks '", resource_name(), "' exists already, with ", workers,
                           " workers where this node says ", workers_);
  }

  int64_t workers_ = 0;
};

// Returns the WorkerClocks of input 0, prepared for calls for `worker`. InvalidArgument if they
// have no such worker.
StatusOr<std::shared_ptr<WorkerClocks>> ClocksFor(const KernelContext& ctx, int64_t worker) {
  ASSIGN_OR_RETURN(auto clocks, ResourceInput<WorkerClocks>(ctx, 0));
  RETURN_IF_ERROR(clocks->Check(worker));
  RETURN_IF_ERROR(clocks->UseTime(ctx.threads(), *ctx.step().env));
  return clocks;
}

// Counts as a holder of the worker's clock for as long as it lives.
class Holder {
 public:
  Holder(std::shared_ptr<WorkerClocks> clocks, int64_t worker)
      : clocks_(std::move(clocks)), worker_(worker) {
    clocks_->AddHolder(worker_);
  }
  ~Holder() { clocks_->RemoveHolder(worker_); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  const WorkerClocks* clocks() const { return clocks_.get(); }

 private:
  const std::shared_ptr<WorkerClocks> clocks_;
  const int64_t worker_;
};

// A resource of one step. Its destructor tells the clocks that the step has ended.
class BegunStep final : public Resource {
 public:
  BegunStep(std::shared_ptr<WorkerClocks> clocks, int64_t worker, int64_t step_id)
      : clocks_(std::move(clocks)), worker_(worker), step_id_(step_id) {}
  ~BegunStep() override { clocks_->StepEnded(worker_, step_id_); }

  const char* TypeName() const override { return "BegunStep"; }
  std::string DebugString() const override { return StrCat("a step of worker ", worker_); }
  const char* OpaqueReason() const override { return "it lives within one step"; }

 private:
  const std::shared_ptr<WorkerClocks> clocks_;
  const int64_t worker_, step_id_;
};

// The kernel holds a Holder, and lives as long as the session keeps the step's graph on this task.
// So a worker that has died stops counting at the latest when the lease of its session ends.
class BeginKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("worker", &worker_));
    return node.Attr("label", &label_);
  }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto clocks, ClocksFor(ctx, worker_));
    ReplaceHolder(clocks);
    const int64_t step_id = ctx.origin().step_id;
    const auto make = [&]() -> StatusOr<std::shared_ptr<Resource>> {
      return std::make_shared<BegunStep>(clocks, worker_, step_id);
    };
    ResourceStore& of_step = *ctx.step().step_resources;
    // Makes the BegunStep before it calls Begin, so that the end of every step that has begun is
    // reported.
    const auto begun = of_step.LookupOrCreate("", ctx.node_name(), "BegunStep", make, ctx.origin());
    RETURN_IF_ERROR(begun.status());
    clocks->Begin(worker_, label_, ctx.origin());
    return OkStatus();
  }

 private:
  void ReplaceHolder(const std::shared_ptr<WorkerClocks>& clocks) {
    std::unique_ptr<Holder> old;  // released without the lock
    MutexLock lock(mu_);
    if (holder_ != nullptr && holder_->clocks() == clocks.get()) return;
    old = std::exchange(holder_, std::make_unique<Holder>(clocks, worker_));
  }

  int64_t worker_ = 0;
  std::string label_;
  Mutex mu_;
  std::unique_ptr<Holder> holder_ ABSL_GUARDED_BY(mu_);  // null until the first step
};

class AdvanceKernel final : public AsyncKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("worker", &worker_));
    RETURN_IF_ERROR(node.Attr("bound", &limits_.bound));
    int64_t timeout_ms = 0;
    RETURN_IF_ERROR(node.Attr("timeout_ms", &timeout_ms));
    if (limits_.bound < 0) return InvalidArgument("bound must be at least 0, is ", limits_.bound);
    if (timeout_ms < 0) return InvalidArgument("timeout_ms must be at least 0, is ", timeout_ms);
    limits_.timeout_ns = TimeoutNanos(timeout_ms);
    return OkStatus();
  }
  void ComputeAsync(KernelContext& ctx, Done done) override {
    const auto clocks = ClocksFor(ctx, worker_);
    if (!clocks.ok()) return std::move(done)(clocks.status());
    const auto receive = [&ctx](const WorkerClocks::Advanced& advanced) {
      ctx.SetOutput(0, Tensor::Scalar<int64_t>(advanced.clock));
      ctx.SetOutput(1, Tensor::Scalar<double>(advanced.waited_seconds));
    };
    (*clocks)->Advance(worker_, limits_, receive, CallerOf(ctx),
                       ContinueOnPool(ctx.threads(), std::move(done)));
  }

 private:
  // Returns a Done that runs `done` on the pool, because a step must not continue on the thread of
  // the step that it waited for.
  static Done ContinueOnPool(Scheduler& threads, Done done) {
    return Done([&threads, done = std::move(done)](Status status) mutable {
      threads.Schedule([done = std::move(done), status = std::move(status)]() mutable {
        std::move(done)(std::move(status));
      });
    });
  }

  int64_t worker_ = 0;
  WorkerClocks::Limits limits_;
};

class LeaveKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("worker", &worker_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto clocks, ClocksFor(ctx, worker_));
    clocks->Leave(worker_);
    return OkStatus();
  }

 private:
  int64_t worker_ = 0;
};

class ReadKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto clocks, ResourceInput<WorkerClocks>(ctx, 0));
    const WorkerClocks::Snapshot snapshot = clocks->Read();
    ctx.SetOutput(0, Tensor::Vector(snapshot.clocks));
    Tensor* counts = nullptr;
    RETURN_IF_ERROR(ctx.Allocate(1, {clocks->workers()}, &counts));
    std::copy(snapshot.counts.begin(), snapshot.counts.end(), counts->mutable_data<bool>());
    return OkStatus();
  }
};

Status AdvanceShape(ShapeScope& s) {
  s.set_output(0, PartialShape::Scalar());
  s.set_output(1, PartialShape::Scalar());
  return OkStatus();
}
Status ReadShape(ShapeScope& s) {
  s.set_output(0, PartialShape({PartialShape::kUnknown}));
  s.set_output(1, PartialShape({PartialShape::kUnknown}));
  return OkStatus();
}

// Defines an op on the clocks of its input.
OpDef ClocksOp(std::string doc, std::vector<AttrDef> attrs) {
  return {.doc = std::move(doc),
          .inputs = {{"clocks", "resource"}},
          .attrs = std::move(attrs),
          .shape = NoOutputs,
          .gradient = NoGradient,
          .stateful = true,
          .untestable_alone =
              "works on the clocks of several workers: kernels/worker_clocks has its tests"};
}

OP(WorkerClocks) {
  return {
      .doc =
          "Makes the clocks of the workers of an asynchronous training: for each worker, the "
          "number of steps that it has finished. WorkerClocksAdvance makes a worker wait while it "
          "is too far ahead of the slowest one.",
      .outputs = {{"clocks", "resource"}},
      .attrs = {{"workers", Ints{.min = 1}}, {"container", ""}, {"shared_name", ""}},
      .shape = ResourceHandleShape,
      .gradient = NoGradient,
      .examples = {{.attrs = {{"workers", 2}}}},
      .stateful = true,
  };
}

OP(WorkerClocksBegin) {
  return ClocksOp(
      "Announces that a worker begins a step. From now on the worker counts: other workers wait "
      "before they get too far ahead of it. If the step ends without WorkerClocksAdvance, the "
      "worker does not count until its next step. A worker that did not count gets the clock of "
      "the slowest worker that counts. `label` is the name of the worker in texts for people.",
      {{"worker", Ints{.min = 0}}, {"label", ""}});
}

OP(WorkerClocksAdvance) {
  OpDef op = ClocksOp(
      "Raises a worker's clock by one, at the end of its step, and then waits until the clock is "
      "at most `bound` ahead of the slowest worker that counts. A worker that has not moved its "
      "clock for timeout_ms while this one waits does not count until its next step (0: no limit). "
      "Returns the clock, and how many seconds this op has waited.",
      {{"worker", Ints{.min = 0}}, {"bound", Ints{.min = 0}}, {"timeout_ms", Ints{.min = 0}, 0}});
  op.outputs = {{"clock", "int64"}, {"waited_seconds", "double"}};
  op.shape = AdvanceShape;
  op.may_wait = true;
  return op;
}

OP(WorkerClocksLeave) {
  OpDef op = ClocksOp(
      "Announces that a worker has stopped: other workers do not wait for it until it begins a "
      "step again.",
      {{"worker", Ints{.min = 0}}});
  op.may_wait = true;
  return op;
}

OP(WorkerClocksRead) {
  OpDef op = ClocksOp("Returns the clock of each worker, and whether others wait for it.", {});
  op.outputs = {{"clock", "int64"}, {"counts", "bool"}};
  op.shape = ReadShape;
  op.only_reads = true;
  return op;
}
KERNEL_ANY_TYPE(WorkerClocks, WorkerClocksKernel);
KERNEL_ANY_TYPE(WorkerClocksBegin, BeginKernel);
KERNEL_ANY_TYPE(WorkerClocksAdvance, AdvanceKernel);
KERNEL_ANY_TYPE(WorkerClocksLeave, LeaveKernel);
KERNEL_ANY_TYPE(WorkerClocksRead, ReadKernel);

}  // namespace
}  // namespace penstock
