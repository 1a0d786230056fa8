// SPDX-License-Identifier: Apache-2.0
//
// MutexV2, MutexLock, ConsumeMutexLock: critical sections of graphs. A lock is a value; the mutex
// is released when the last copy of the value is destroyed, so it is released even if the step
// fails.
//
// Actions in a StateLog: "lock" {}, "unlock" {}. Replay ignores both: a lock belongs to a step, and
// no step continues on the replayed store, so its mutexes are free.
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/state_replay.h"
#include "core/tensor/variant.h"
#include "kernels/data/blocking.h"
#include "kernels/data/handle_kernel.h"

namespace penstock {
namespace {

constexpr char kLockAction[] = "lock", kUnlockAction[] = "unlock";

class GraphMutex final : public Blocking {
 public:
  using Receive = absl::AnyInvocable<void(Variant) &&>;

  explicit GraphMutex(std::string name) : Blocking("Mutex", std::move(name), 1) {}

  std::string DebugString() const override;
  const char* OpaqueReason() const override { return nullptr; }
  // Describes no state: in a copy of the store the mutex is free, even if it is locked here.
  StatusOr<Description> DescribeNow() const override { return Description{.version = version()}; }
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override;
  void Lock(Receive receive, const Caller& caller, Done done);

 private:
  class LockValue;
  class LockOperation;
  void Unlock(const UpdateOrigin& origin);

  bool locked_ ABSL_GUARDED_BY(mu_) = false;
  int64_t locked_by_ ABSL_GUARDED_BY(mu_) = 0;  // id of the step that holds the lock
};

class GraphMutex::LockValue final : public VariantValue {
 public:
  LockValue(std::shared_ptr<GraphMutex> mutex, int64_t step_id)
      : mutex_(std::move(mutex)), step_id_(step_id) {}
  // The origin names no node, because the node that dropped the last copy is not known.
  ~LockValue() override { mutex_->Unlock({.step_id = step_id_}); }
  const char* TypeName() const override { return "MutexLock"; }
  std::string ToString() const override { return StrCat("a lock of mutex '", mutex_->name(), "'"); }
  Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const override {
    return Unimplemented(ToString(), " cannot leave the task of the mutex");
  }

 private:
  const std::shared_ptr<GraphMutex> mutex_;
  const int64_t step_id_;  // the step that holds the lock
};

class GraphMutex::LockOperation final : public Operation {
 public:
  LockOperation(std::shared_ptr<GraphMutex> mutex, Receive receive, const Caller& caller, Done done)
      : Operation(caller, std::move(done)),
        mutex_(std::move(mutex)),
        receive_(std::move(receive)) {}

  StatusOr<Progress> Try() override {
    mutex_->mu_.AssertHeld();
    if (mutex_->locked_) return Progress::kNone;
    mutex_->locked_ = true;
    mutex_->locked_by_ = origin().step_id;
    mutex_->Changed(origin(), kLockAction, [] { return std::vector<Tensor>(); });
    return Progress::kDone;
  }
  Status Deliver() override {
    std::move(receive_)(Variant{std::make_shared<LockValue>(mutex_, origin().step_id)});
    return OkStatus();
  }

 private:
  const std::shared_ptr<GraphMutex> mutex_;
  Receive receive_;
};

std::string GraphMutex::DebugString() const {
  MutexLock lock(mu_);
  return locked_ ? StrCat("Mutex '", name(), "', locked by step ", locked_by_)
                 : StrCat("Mutex '", name(), "', not locked");
}

void GraphMutex::Lock(Receive receive, const Caller& caller, Done done) {
  auto self = std::static_pointer_cast<GraphMutex>(shared_from_this());
  Start(0, std::make_shared<LockOperation>(std::move(self), std::move(receive), caller,
                                           std::move(done)));
}

Status GraphMutex::Replay(const ResourceChange& change, const UpdateOrigin& origin) {
  const bool lock = change.action == kLockAction;
  if (!lock && change.action != kUnlockAction) return ReplayValues(change).UnknownAction();
  MutexLock guard(mu_);
  Changed(origin, lock ? kLockAction : kUnlockAction, [] { return std::vector<Tensor>(); });
  return OkStatus();
}

void GraphMutex::Unlock(const UpdateOrigin& origin) {
  Ended ended;
  {
    MutexLock lock(mu_);
    locked_ = false;
    Changed(origin, kUnlockAction, [] { return std::vector<Tensor>(); });
    Advance(&ended);
  }
  Finish(ended);
}

StatusOr<std::shared_ptr<Resource>> MakeMutex(const std::string& name, const ReplayValues& values,
                                              Env&) {
  RETURN_IF_ERROR(values.Expect(0));
  return std::make_shared<GraphMutex>(name);
}
const ResourceMakerDeclaration mutex_maker("Mutex", MakeMutex);

class MutexKernel final : public HandleKernel {
 protected:
  const char* Type() const override { return "Mutex"; }
  StatusOr<std::shared_ptr<Resource>> Make(KernelContext& ctx) const override {
    return std::make_shared<GraphMutex>(resource_name());
  }
};

class MutexLockKernel final : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) override {
    auto mutex = ResourceInput<GraphMutex>(ctx, 0);
    if (!mutex.ok()) return std::move(done)(mutex.status());
    const auto receive = [&ctx](Variant lock) { ctx.SetOutput(0, Tensor::Scalar(lock)); };
    (*mutex)->Lock(receive, CallerOf(ctx), ContinueOnPool(ctx.threads(), std::move(done)));
  }

 private:
  // Returns a Done that runs `done` on the pool. The continuation of the next waiter must not run
  // on the stack of the code that drops the last copy of a lock, because that code may hold the
  // mutex of a queue or of an executor.
  static Done ContinueOnPool(Scheduler& threads, Done done) {
    return Done([&threads, done = std::move(done)](Status status) mutable {
      threads.Schedule([done = std::move(done), status = std::move(status)]() mutable {
        std::move(done)(std::move(status));
      });
    });
  }
};

// This node runs after the nodes of the critical section, because it has control edges from them.
class ConsumeMutexLockKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor lock = ctx.TakeInput(0);
    const auto* variant = lock.num_elements() == 1 ? lock.data<Variant>() : nullptr;
    if (variant != nullptr && variant->value != nullptr &&
        string_view(variant->value->TypeName()) == "MutexLock") {
      return OkStatus();
    }
    return InvalidArgument("mutex_lock must be a scalar that MutexLock has made, is ",
                           lock.ToString());
  }
};

OP(MutexV2) {
  return {
      .doc = "Makes a mutex, which MutexLock locks.",
      .outputs = {{"resource", "resource"}},
      .attrs = {{"container", ""}, {"shared_name", ""}},
      .shape = ResourceHandleShape,
      .gradient = NoGradient,
      .stateful = true,
  };
}

OP(MutexLock) {
  return {
      .doc =
          "Waits for a mutex and locks it. The mutex is unlocked when the last copy of the "
          "output is released.",
      .inputs = {{"mutex", "resource"}},
      .outputs = {{"mutex_lock", "variant"}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .stateful = true,
      .may_wait = true,
      .resource_use = ResourceUse::kLocks,
      .untestable_alone = "waits for another op: kernels/data has its tests",
  };
}

OP(ConsumeMutexLock) {
  return {
      .doc = "Holds a lock until the nodes that this node depends on have run.",
      .inputs = {{"mutex_lock", "variant"}},
      .shape = NoOutputs,
      .gradient = NoGradient,
      .stateful = true,
      .may_wait = true,
      .untestable_alone = "waits for another op: kernels/data has its tests",
  };
}
KERNEL_ANY_TYPE(MutexV2, MutexKernel);
KERNEL_ANY_TYPE(MutexLock, MutexLockKernel);
KERNEL_ANY_TYPE(ConsumeMutexLock, ConsumeMutexLockKernel);

}  // namespace
}  // namespace penstock
