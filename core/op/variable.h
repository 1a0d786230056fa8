// SPDX-License-Identifier: Apache-2.0
//
// Variable: a named tensor that outlives steps. Ops refer to it by a resource handle (VarHandleOp)
// or by TensorFlow 1's ref edges (VariableV2).
//
// Reading returns a snapshot that shares the variable's buffer. An update writes in place if the
// variable has the only reference to the buffer; else it first copies the value into a new buffer
// in the same device's memory. So no reader ever sees half an update. An update of all elements
// (UpdateAll) computes a shared value directly into the new buffer instead. Thread-safe.
//
// Actions in a StateLog: "assign" {value}, "update" {value} (the complete new value), and "slices"
// {numbers, elements} (replay writes them into the value with ScatterSlices, core/op/slices.h).
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
  // `shape` is the shape of the variable's values. Assigning a value of an incompatible shape is an
  // error, unless the op has validate_shape=false or MayReplaceShape returns true.
  Variable(std::string name, DType dtype, PartialShape shape);

  const char* TypeName() const override { return "Variable"; }
  std::string DebugString() const override ABSL_LOCKS_EXCLUDED(mu_);
  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  PartialShape shape() const ABSL_LOCKS_EXCLUDED(mu_);
  bool initialized() const ABSL_LOCKS_EXCLUDED(mu_);

  const char* OpaqueReason() const override { return nullptr; }
  std::vector<Tensor> Describe() const override ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<Description> DescribeNow() const override ABSL_LOCKS_EXCLUDED(mu_);
  Status Replay(const ResourceChange& change, const UpdateOrigin& origin) override;

  // Declare records that the node `node` of some program uses the variable for values of `shape`,
  // until Withdraw is called with the same arguments. InvalidArgument if the shape contradicts
  // another declaration: then two programs, or two nodes of one program, use one name for different
  // variables. A StateLog does not record declarations.
  Status Declare(const std::string& node, const PartialShape& shape) ABSL_LOCKS_EXCLUDED(mu_);
  void Withdraw(const std::string& node, const PartialShape& shape) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns true if a value of `shape` fits all declarations, and the variable's present shape,
  // which an earlier program has set, fits none of them. Assign then accepts the value.
  bool MayReplaceShape(const Shape& shape) const ABSL_LOCKS_EXCLUDED(mu_);

  // Drops the value. Called when the variable is removed from its container, even if handles still
  // refer to it.
  void Shutdown() override ABSL_LOCKS_EXCLUDED(mu_);
  // Returns whether the variable was removed from its container. Costs one atomic load. A step that
  // has kept a handle calls this instead of looking up the variable by name.
  bool removed() const { return removed_.load(std::memory_order_acquire); }

  // Returns a snapshot. FailedPrecondition "Attempting to use uninitialized value NAME" before the
  // first assignment (client programs depend on these words).
  StatusOr<Tensor> Read() const ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `fn` with the value under the variable's lock, and returns the status of `fn`;
  // FailedPrecondition in the same case as Read. Because the buffer is not shared, reading a few
  // rows (Gather) never makes a concurrent update copy the table. `fn` must not call the variable.
  Status Inspect(absl::FunctionRef<Status(const Tensor&)> fn) const ABSL_LOCKS_EXCLUDED(mu_);

  // Replaces the value. InvalidArgument if `value` has another dtype, or a shape that is not
  // compatible with shape(), unless `validate_shape` is false or MayReplaceShape returns true.
  Status Assign(Tensor value, bool validate_shape, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Changes the values of `variables` together: locks them (in address order, so that no two
  // updates deadlock; a variable listed twice is locked once), makes each the only owner of its
  // buffer, and calls `fn` with the tensors in the given order. FailedPrecondition if a variable is
  // uninitialized. If `fn` returns an error, the versions do not change and the log gets no record,
  // so `fn` must check everything before it writes to a tensor. (The thread-safety analysis cannot
  // follow a variable number of locks.)
  static Status Update(absl::Span<Variable* const> variables, const UpdateOrigin& origin,
                       absl::FunctionRef<Status(absl::Span<Tensor* const>)> fn);
  // Does the same as the function above, for updates of a few rows: `changed(i)` returns the slices
  // of variable i that `fn` may have changed. Update calls it after `fn`, and only if there is a
  // log or a ChangeWatch.
  static Status Update(absl::Span<Variable* const> variables, const UpdateOrigin& origin,
                       absl::FunctionRef<Status(absl::Span<Tensor* const>)> fn,
                       absl::FunctionRef<Slices(size_t i)> changed) ABSL_NO_THREAD_SAFETY_ANALYSIS;

  // A place to which UpdateAll writes the new value of a variable.
  struct Renewal {
    Tensor* value;         // the elements to change
    const Tensor* shared;  // null: `value` holds the old elements; else they are here, and `value`
                           // is uninitialized memory of the same shape
  };
  // Like Update, for updates that write every element. Does not copy a shared value, which would
  // read and write the value once more: `fn` computes the new elements from the shared ones.
  // REQUIRES: the elements of all variables are plain bytes (IsPlain).
  static Status UpdateAll(absl::Span<Variable* const> variables, const UpdateOrigin& origin,
                          absl::FunctionRef<Status(absl::Span<const Renewal>)> fn)
      ABSL_NO_THREAD_SAFETY_ANALYSIS;

 private:
  using Group = absl::InlinedVector<Variable*, 4>;
  class GroupLock;
  std::vector<Tensor> DescribeLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool ReplacesShape(const Shape& shape) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckInitialized() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsExclusive() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status MakeExclusive() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Part UpdatePart(const Slices& changed) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Raises the versions after an update, and reports it to the state log and to ChangeWatches.
  // REQUIRES: the caller holds the locks of `once`, the variables without duplicates.
  static void EndUpdate(absl::Span<Variable* const> variables, const Group& once,
                        const UpdateOrigin& origin,
                        absl::FunctionRef<Slices(size_t i)> changed) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Records an update of `variables` in the state log. REQUIRES: as EndUpdate.
  static void RecordUpdate(absl::Span<Variable* const> variables, const Group& once,
                           const UpdateOrigin& origin, absl::FunctionRef<Slices(size_t i)> changed)
      ABSL_NO_THREAD_SAFETY_ANALYSIS;

  const std::string name_;
  const DType dtype_;
  mutable Mutex mu_;
  PartialShape shape_ ABSL_GUARDED_BY(mu_);
  Tensor value_ ABSL_GUARDED_BY(mu_);  // invalid until assigned
  struct Declaration {
    std::string node;
    PartialShape shape;
    int count = 0;  // the declarations that have not been withdrawn
  };
  std::vector<Declaration> declared_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> removed_{false};
};

}  // namespace penstock
