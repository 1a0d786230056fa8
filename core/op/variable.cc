// SPDX-License-Identifier: Apache-2.0
#include "core/op/variable.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/inlined_vector.h"

namespace penstock {

Variable::Variable(std::string name, DType dtype, PartialShape shape)
    : name_(std::move(name)), dtype_(dtype), shape_(std::move(shape)) {}

std::string Variable::DebugString() const {
  MutexLock lock(mu_);
  return StrCat("Variable '", name_, "' ", Name(dtype_), shape_.ToString(), " version ", version_,
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

int64_t Variable::version() const {
  MutexLock lock(mu_);
  return version_;
}

void Variable::Shutdown() {
  removed_.store(true, std::memory_order_release);
  Tensor old;  // ends after the lock is released
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

void Variable::Changed(const UpdateOrigin& origin) { ++version_; }

Status Variable::Assign(Tensor value, bool validate_shape, const UpdateOrigin& origin) {
  if (value.dtype() != dtype_) {
    return InvalidArgument("variable '", name_, "' holds ", Name(dtype_), ", assigned a value of ",
                           Name(value.dtype()));
  }
  // The old value ends after the lock is released: freeing much memory takes time.
  Tensor old;
  MutexLock lock(mu_);
  if (!shape_.Compatible(value.shape())) {
    if (validate_shape) {
      return InvalidArgument(
          "Assign requires shapes of both tensors to match. lhs shape= ", shape_.ToString(),
          " rhs shape= ", value.shape().ToString(), " (variable '", name_, "')");
    }
    shape_ = value.shape();
  }
  old = std::exchange(value_, std::move(value));
  Changed(origin);
  return OkStatus();
}

Status Variable::MakeExclusive() {
  if (value_.unique()) return OkStatus();
  const Allocator* allocator = value_.buffer()->allocator();
  if (allocator != nullptr && !allocator->host_accessible()) {
    return Unimplemented("variable '", name_, "': its value in ", allocator->name(),
                         " is still being read; updating a copy is implemented for the CPU only");
  }
  ASSIGN_OR_RETURN(value_, value_.TryClone());
  return OkStatus();
}

Status Variable::Update(absl::Span<Variable* const> variables, const UpdateOrigin& origin,
                        absl::FunctionRef<Status(absl::Span<Tensor* const>)> fn) {
  absl::InlinedVector<Variable*, 4> once(variables.begin(), variables.end());
  std::sort(once.begin(), once.end(), std::less<>());
  once.erase(std::unique(once.begin(), once.end()), once.end());

  for (Variable* variable : once) variable->mu_.Lock();
  const absl::Cleanup unlock = [&once]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (Variable* variable : once) variable->mu_.Unlock();
  };
  // All or none: no copy is made for an update that cannot happen.
  for (Variable* variable : once) RETURN_IF_ERROR(variable->CheckInitialized());
  for (Variable* variable : once) RETURN_IF_ERROR(variable->MakeExclusive());

  absl::InlinedVector<Tensor*, 4> values;
  for (Variable* variable : variables) values.push_back(&variable->value_);
  RETURN_IF_ERROR(fn(values));
  for (Variable* variable : once) variable->Changed(origin);
  return OkStatus();
}

}  // namespace penstock
