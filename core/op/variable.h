// SPDX-License-Identifier: Apache-2.0
//
// Variable: a named tensor that outlives steps, behind both kinds of front: a resource handle
// (VarHandleOp) and TensorFlow-1 reference edges (VariableV2).
//
// Reading yields a snapshot that shares the buffer; an update writes in place when nobody else
// holds the buffer and into a copy when somebody does, which the allocator that owns the buffer
// makes. So no reader ever sees half an update. Thread-safe.
//
// Actions in a StateLog: "assign" {value}, "update" {value} (the whole new value of an update), and
// "slices" {numbers, elements}: what core/op/slices.h puts into the value.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/op/resource.h"
#include "core/op/slices.h"
#include "core/tensor/tensor.h"

namespace penstock {

class Variable final : public Resource {
 public:
  // `shape` is what the variable may hold; assignments of another shape are errors unless it is
  // only partly known or the op says validate_shape=false.
  Variable(std::string name, DType dtype, PartialShape shape);

  const char* TypeName() const override { return "Variable"; }
  std::string DebugString() const override ABSL_LOCKS_EXCLUDED(mu_);
  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  PartialShape shape() const ABSL_LOCKS_EXCLUDED(mu_);
  bool initialized() const ABSL_LOCKS_EXCLUDED(mu_);

  const char* OpaqueReason() const override { return nullptr; }
  std::vector<Tensor> Describe() const override;
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override;

  // Taken out of its container: the value is dropped at once, whoever still holds the object.
  void Shutdown() override ABSL_LOCKS_EXCLUDED(mu_);
  // One load: what a kept handle is checked with, so that its variable is not looked up every step.
  bool removed() const { return removed_.load(std::memory_order_acquire); }

  // FailedPrecondition "Attempting to use uninitialized value NAME" before the first assignment
  // (client programs depend on these words).
  StatusOr<Tensor> Read() const ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `fn` with the value under the lock, without sharing the buffer: what Gather uses, so that
  // reading a few rows never makes a concurrent update copy the table. `fn` must not call back.
  Status Inspect(absl::FunctionRef<Status(const Tensor&)> fn) const ABSL_LOCKS_EXCLUDED(mu_);

  // Replaces the value (Assign). A new shape is taken where `validate_shape` is false.
  Status Assign(Tensor value, bool validate_shape, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Changes the values of `variables` together: locks them (in address order, so that no two
  // updates deadlock; one variable named twice is locked once), makes each buffer exclusively its
  // own, and calls `fn` with the tensors in the order given. Uninitialized ones are
  // FailedPrecondition. If `fn` fails, versions stay, and so must the tensors: fn validates before
  // it writes. (The analysis cannot follow locks whose number is not known.)
  static Status Update(absl::Span<Variable* const> variables, const UpdateOrigin& origin,
                       absl::FunctionRef<Status(absl::Span<Tensor* const>)> fn);
  // As above, for updates of a few rows: `changed(i)` is called after `fn`, only if there is a log,
  // and returns which slices of variable i `fn` may have changed.
  static Status Update(absl::Span<Variable* const> variables, const UpdateOrigin& origin,
                       absl::FunctionRef<Status(absl::Span<Tensor* const>)> fn,
                       absl::FunctionRef<Slices(size_t i)> changed) ABSL_NO_THREAD_SAFETY_ANALYSIS;

 private:
  using Group = absl::InlinedVector<Variable*, 4>;
  Status CheckInitialized() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status MakeExclusive() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Part UpdatePart(const Slices& changed) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Needs the locks of `once`.
  static void RecordUpdate(absl::Span<Variable* const> variables, const Group& once,
                           const UpdateOrigin& origin, absl::FunctionRef<Slices(size_t i)> changed)
      ABSL_NO_THREAD_SAFETY_ANALYSIS;

  const std::string name_;
  const DType dtype_;
  mutable Mutex mu_;
  PartialShape shape_ ABSL_GUARDED_BY(mu_);
  Tensor value_ ABSL_GUARDED_BY(mu_);  // invalid until assigned
  std::atomic<bool> removed_{false};
};

}  // namespace penstock
