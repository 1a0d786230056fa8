// SPDX-License-Identifier: Apache-2.0
#include "core/op/variable.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "core/op/state_replay.h"
#include "core/tensor/allocator.h"

namespace penstock {

// Called after each change, under the variable's lock, while a ChangeWatch (change_watch.h) watches
// any variable; else null.
std::atomic<void (*)(const Variable&, absl::FunctionRef<Slices()> changed)> change_observer{
    nullptr};

namespace {

constexpr char kAssignAction[] = "assign", kUpdateAction[] = "update", kSlicesAction[] = "slices";

void NotifyChangeWatches(const Variable& variable, absl::FunctionRef<Slices()> changed) {
  const auto observer = change_observer.load(std::memory_order_acquire);
  if (observer != nullptr) [[unlikely]]
    observer(variable, changed);
}

// Returns where to put a new value of a variable: in the memory of the device, and if that is the
// CPU's, not where a transport has put the old one.
Allocator& AllocatorOfNewValue(const Tensor& old) {
  Allocator* const allocator = old.buffer()->allocator();
  return allocator == nullptr || allocator->host_accessible() ? CpuAllocator() : *allocator;
}

}  // namespace

Variable::Variable(std::string name, DType dtype, PartialShape shape)
    : name_(std::move(name)), dtype_(dtype), shape_(std::move(shape)) {}

std::string Variable::DebugString() const {
  MutexLock lock(mu_);
  return StrCat("Variable '", name_, "' ", Name(dtype_), shape_.ToString(), " version ", version(),
                value_.valid() ? "" : ", not initialized");
}

PartialShape Variable::shape() const {
  MutexLock lock(mu_);
  return shape_;
}

bool Variable::initialized() const {
  MutexLock lock(mu_);
  return value_.valid();
}

Status Variable::Declare(const std::string& node, const PartialShape& shape) {
  MutexLock lock(mu_);
  for (Declaration& other : declared_) {
    if (other.node == node && other.shape == shape) {
      ++other.count;
      return OkStatus();
    }
  }
  for (const Declaration& other : declared_) {
    if (other.shape.Compatible(shape)) continue;
    return InvalidArgument(
        "variable '", name_, "' is in use as ", Name(dtype_), other.shape.ToString(), " by node '",
        other.node, "', where this node says ", Name(dtype_), shape.ToString(),
        ": all workers must run the same program. If that node's program has crashed, its session "
        "ends with its lease");
  }
  declared_.push_back({node, shape, 1});
  return OkStatus();
}

void Variable::Withdraw(const std::string& node, const PartialShape& shape) {
  MutexLock lock(mu_);
  const auto found =
      std::find_if(declared_.begin(), declared_.end(), [&](const Declaration& declaration) {
        return declaration.node == node && declaration.shape == shape;
      });
  CHECK(found != declared_.end(), "no node '", node, "' declares variable '", name_, "'");
  if (--found->count == 0) declared_.erase(found);
}

bool Variable::MayReplaceShape(const Shape& shape) const {
  MutexLock lock(mu_);
  return ReplacesShape(shape);
}

bool Variable::ReplacesShape(const Shape& shape) const {
  return !declared_.empty() &&
         std::all_of(declared_.begin(), declared_.end(), [&](const Declaration& declaration) {
           mu_.AssertHeld();
           return declaration.shape.Compatible(shape) &&
                  !declaration.shape.Compatible(value_.valid() ? PartialShape(value_.shape())
                                                               : shape_);
         });
}

void Variable::Shutdown() {
  removed_.store(true, std::memory_order_release);
  Tensor old;  // destroyed after the lock is released
  MutexLock lock(mu_);
  std::swap(old, value_);
}

Status Variable::CheckInitialized() const {
  if (value_.valid()) return OkStatus();
  return FailedPrecondition("Attempting to use uninitialized value ", name_);
}

StatusOr<Tensor> Variable::Read() const {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(CheckInitialized());
  return value_;
}

Status Variable::Inspect(absl::FunctionRef<Status(const Tensor&)> fn) const {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(CheckInitialized());
  return fn(value_);
}

Status Variable::Assign(Tensor value, bool validate_shape, const UpdateOrigin& origin) {
  if (value.dtype() != dtype_) {
    return InvalidArgument("variable '", name_, "' holds ", Name(dtype_), ", assigned a value of ",
                           Name(value.dtype()));
  }
  // The old value is destroyed after the lock is released: freeing much memory takes time.
  Tensor old;
  MutexLock lock(mu_);
  const bool other_shape = !value_.valid() || value_.shape() != value.shape();
  if (other_shape && ReplacesShape(value.shape())) {
    shape_ = declared_.front().shape;
    for (const Declaration& declaration : declared_) {
      const auto both = shape_.Merge(declaration.shape);
      if (both.ok()) shape_ = *both;
    }
  } else if (!shape_.Compatible(value.shape())) {
    if (validate_shape) {
      return InvalidArgument(
          "Assign requires shapes of both tensors to match. lhs shape= ", shape_.ToString(),
          " rhs shape= ", value.shape().ToString(), " (variable '", name_, "')");
    }
    shape_ = value.shape();
  }
  old = std::exchange(value_, std::move(value));
  NotifyChangeWatches(*this, [] { return Slices::All(); });
  Changed(origin, kAssignAction, [this] {
    mu_.AssertHeld();
    return std::vector<Tensor>{value_};
  });
  return OkStatus();
}

bool Variable::IsExclusive() const {
  // A buffer without allocator is foreign memory, which must not be written even by its sole owner.
  return value_.unique() && value_.buffer()->allocator() != nullptr;
}

Status Variable::MakeExclusive() {
  if (IsExclusive()) return OkStatus();
  ASSIGN_OR_RETURN(value_, value_.TryCloneInItsMemory());
  return OkStatus();
}

// Locks variables in address order, each once.
class Variable::GroupLock {
 public:
  explicit GroupLock(absl::Span<Variable* const> variables) ABSL_NO_THREAD_SAFETY_ANALYSIS
      : once_(variables.begin(), variables.end()) {
    std::sort(once_.begin(), once_.end(), std::less<>());
    once_.erase(std::unique(once_.begin(), once_.end()), once_.end());
    for (Variable* variable : once_) variable->mu_.Lock();
  }
  ~GroupLock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (Variable* variable : once_) variable->mu_.Unlock();
  }
  GroupLock(const GroupLock&) = delete;
  GroupLock& operator=(const GroupLock&) = delete;

  const Group& once() const { return once_; }

 private:
  Group once_;
};

Status Variable::Update(absl::Span<Variable* const> variables, const UpdateOrigin& origin,
                        absl::FunctionRef<Status(absl::Span<Tensor* const>)> fn) {
  return Update(variables, origin, fn, [](size_t) { return Slices::All(); });
}

Status Variable::Update(absl::Span<Variable* const> variables, const UpdateOrigin& origin,
                        absl::FunctionRef<Status(absl::Span<Tensor* const>)> fn,
                        absl::FunctionRef<Slices(size_t i)> changed) {
  const GroupLock lock(variables);
  // Check all variables before MakeExclusive, so that an update that fails copies no value.
  for (Variable* variable : lock.once()) RETURN_IF_ERROR(variable->CheckInitialized());
  for (Variable* variable : lock.once()) RETURN_IF_ERROR(variable->MakeExclusive());

  absl::InlinedVector<Tensor*, 4> values;
  for (Variable* variable : variables) values.push_back(&variable->value_);
  // A cancelled step must not end a loop of `fn` early, which would leave half an update.
  const WatchedLoops unwatched(nullptr);
  RETURN_IF_ERROR(fn(values));
  EndUpdate(variables, lock.once(), origin, changed);
  return OkStatus();
}

Status Variable::UpdateAll(absl::Span<Variable* const> variables, const UpdateOrigin& origin,
                           absl::FunctionRef<Status(absl::Span<const Renewal>)> fn) {
  // New values of the variables in `once` that are shared; later their old values, which are
  // destroyed after the locks are released.
  absl::InlinedVector<Tensor, 4> renewed(variables.size());
  const GroupLock lock(variables);
  const Group& once = lock.once();
  for (Variable* variable : once) RETURN_IF_ERROR(variable->CheckInitialized());
  for (size_t i = 0; i < once.size(); ++i) {
    const Tensor& value = once[i]->value_;
    CHECK(IsPlain(value.dtype()), "variable '", once[i]->name_, "' is not plain");
    if (once[i]->IsExclusive()) continue;
    ASSIGN_OR_RETURN(renewed[i],
                     Tensor::Make(AllocatorOfNewValue(value), value.dtype(), value.shape()));
  }
  absl::InlinedVector<Renewal, 4> renewals;
  for (Variable* variable : variables) {
    const size_t i =
        std::lower_bound(once.begin(), once.end(), variable, std::less<>()) - once.begin();
    const bool shared = renewed[i].valid();
    renewals.push_back({.value = shared ? &renewed[i] : &variable->value_,
                        .shared = shared ? &variable->value_ : nullptr});
  }
  // A cancelled step must not end a loop of `fn` early, which would leave half an update.
  const WatchedLoops unwatched(nullptr);
  RETURN_IF_ERROR(fn(renewals));
  for (size_t i = 0; i < once.size(); ++i) {
    if (renewed[i].valid()) std::swap(once[i]->value_, renewed[i]);
  }
  EndUpdate(variables, once, origin, [](size_t) { return Slices::All(); });
  return OkStatus();
}

void Variable::EndUpdate(absl::Span<Variable* const> variables, const Group& once,
                         const UpdateOrigin& origin, absl::FunctionRef<Slices(size_t i)> changed) {
  bool logged = false;
  for (Variable* variable : once) {
    variable->RaiseVersion();
    logged |= variable->logged();
  }
  if (logged) [[unlikely]]
    RecordUpdate(variables, once, origin, changed);
  for (size_t i = 0; i < variables.size(); ++i) {
    NotifyChangeWatches(*variables[i], [&] { return changed(i); });
  }
}

void Variable::RecordUpdate(absl::Span<Variable* const> variables, const Group& once,
                            const UpdateOrigin& origin,
                            absl::FunctionRef<Slices(size_t i)> changed) {
  std::vector<Part> parts;
  for (const Variable* variable : once) {
    if (!variable->logged()) continue;
    Slices slices = Slices::None();
    for (size_t i = 0; i < variables.size(); ++i) {
      if (variables[i] == variable) slices.Add(changed(i));
    }
    parts.push_back(variable->UpdatePart(slices));
  }
  RecordTogether(origin, std::move(parts));
}

Resource::Part Variable::UpdatePart(const Slices& changed) const {
  if (!changed.all()) {
    // If there is not enough memory to copy the slices, record the complete value, which needs no
    // copy.
    StatusOr<Tensor> elements = GatherSlices(value_, changed);
    if (elements.ok()) return {this, kSlicesAction, {changed.Numbers(), *std::move(elements)}};
  }
  return {this, kUpdateAction, {value_}};
}

std::vector<Tensor> Variable::Describe() const {
  MutexLock lock(mu_);
  return DescribeLocked();
}

StatusOr<Resource::Description> Variable::DescribeNow() const {
  MutexLock lock(mu_);
  return Description{DescribeLocked(), version()};
}

std::vector<Tensor> Variable::DescribeLocked() const {
  std::vector<Tensor> values = {Value(dtype_), Value(shape_)};
  // A variable may be assigned before it is added to a store.
  if (value_.valid()) values.push_back(value_);
  return values;
}

Status Variable::Replay(const ResourceChange& change, const UpdateOrigin& origin) {
  const ReplayValues values(change);
  if (change.action == kAssignAction || change.action == kUpdateAction) {
    RETURN_IF_ERROR(values.Expect(1));
    return Assign(change.values[0], /*validate_shape=*/false, origin);
  }
  if (change.action != kSlicesAction) return values.UnknownAction();
  RETURN_IF_ERROR(values.Expect(2));
  ASSIGN_OR_RETURN(const Slices slices, Slices::Of(change.values[0], change.values[1]));
  Variable* const one[] = {this};
  return Update(
      one, origin,
      [&](absl::Span<Tensor* const> state) {
        return ScatterSlices(slices, change.values[1], state[0]);
      },
      [&](size_t) { return slices; });
}

namespace {

StatusOr<std::shared_ptr<Resource>> MakeVariable(const std::string& name,
                                                 const ReplayValues& values, Env&) {
  RETURN_IF_ERROR(values.ExpectAtLeast(2));
  ASSIGN_OR_RETURN(const DType dtype, values.Type(0));
  ASSIGN_OR_RETURN(PartialShape shape, values.GetShape(1));
  auto variable = std::make_shared<Variable>(name, dtype, std::move(shape));
  if (values.size() > 2) RETURN_IF_ERROR(variable->Assign(values.Get(2), true, {}));
  return variable;
}

const ResourceMakerDeclaration maker("Variable", MakeVariable);

}  // namespace

}  // namespace penstock
