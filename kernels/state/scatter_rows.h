// SPDX-License-Identifier: Apache-2.0
//
// Computes variable[rows[k]] op= updates[k], for the scatter ops. Only the loop over the elements
// of one row is compiled separately for each type.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "kernels/array/elements.h"
#include "kernels/state/row_updates.h"
#include "kernels/state/update_functors.h"

namespace penstock {

// The operation on one row, for elements of one type.
struct RowScatter {
  // Updates `length` elements at `row` with the elements at `update`: as many or, if `scalar`, one
  // for all.
  void (*apply)(DType dtype, void* row, const void* update, bool scalar, int64_t length);
  // Returns InvalidArgument if an integer would be divided by zero. Null if there is nothing to
  // check.
  Status (*check)(const Tensor& updates) = nullptr;
  DType dtype = DType::kInvalid;  // dtype of the elements; kInvalid: any
};

template <class Fn, class T>
void ScatterRow(DType, void* row, const void* update, bool scalar, int64_t length) {
  T* const to = static_cast<T*>(row);
  const T* const from = static_cast<const T*>(update);
  if (scalar) {
    for (int64_t i = 0; i < length; ++i) Fn::Apply(to[i], *from);
  } else {
    for (int64_t i = 0; i < length; ++i) Fn::Apply(to[i], from[i]);
  }
}
// Replaces the elements of a row by those of `update` or, if `scalar`, by the one element there.
// Serves every type.
inline void ReplaceRow(DType dtype, void* row, const void* update, bool scalar, int64_t length) {
  if (scalar) {
    FillElements(dtype, update, row, length);
  } else {
    CopyElements(dtype, update, row, length);
  }
}

template <class T>
Status CheckDivisors(const Tensor& updates) {
  const auto divisors = updates.flat<T>();
  if (std::find(divisors.begin(), divisors.end(), T{0}) == divisors.end()) return OkStatus();
  return InvalidArgument("integer division by zero: updates hold a 0");
}

template <class Fn, class T>
constexpr RowScatter ScatterBy() {
  RowScatter scatter{.apply = ScatterRow<Fn, T>, .dtype = kDTypeOf<T>};
  if (std::is_same_v<Fn, DivideBy> && std::is_integral_v<T>) scatter.check = CheckDivisors<T>;
  return scatter;
}

// Applies the updates: `updates` holds a row for each of `rows`, or is a scalar for all. REQUIRES:
// indices and updates have been checked.
template <class Index>
void ScatterRows(Scheduler& threads, const RowScatter& scatter, absl::Span<const Index> rows,
                 const Tensor& updates, int64_t length, Tensor& variable) {
  const DType dtype = variable.dtype();
  CHECK(updates.dtype() == dtype && (scatter.dtype == DType::kInvalid || scatter.dtype == dtype));
  const int64_t row_bytes = length * static_cast<int64_t>(SizeOf(dtype));
  char* const base = static_cast<char*>(variable.mutable_raw_data());
  const char* const from = static_cast<const char*>(updates.raw_data());
  const bool scalar = updates.rank() == 0;
  const auto update = [=, apply = scatter.apply](int64_t k, int64_t row) {
    apply(dtype, base + row * row_bytes, scalar ? from : from + k * row_bytes, scalar, length);
  };
  const auto prefetch = [=](int64_t row) { PrefetchRow(base + row * row_bytes, row_bytes); };
  // 5 ns for the remaining cost of a cache miss, plus the transfer from memory.
  ForEachRowUpdate(threads, rows, 5 + row_bytes / 8.0, update, prefetch);
}

// Makes a kernel of class `Base` that passes a RowScatter to its constructor.
template <class Base, class Fn, class T>
class ScatterKernelBy : public Base {
 public:
  ScatterKernelBy() : Base(ScatterBy<Fn, T>()) {}
};
template <class Base>
class ReplaceKernelOf : public Base {
 public:
  ReplaceKernelOf() : Base({.apply = ReplaceRow}) {}
};

}  // namespace penstock
