// SPDX-License-Identifier: Apache-2.0
//
// variable[rows[k]] op= updates[k]: the loop of all scatter ops.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/base/status.h"
#include "kernels/state/row_updates.h"
#include "kernels/state/update_functors.h"

namespace penstock {

// InvalidArgument where Fn would divide an integer by zero.
template <class Fn, class T>
Status CheckDivisors(const Tensor& updates) {
  if constexpr (std::is_same_v<Fn, DivideBy> && std::is_integral_v<T>) {
    const auto divisors = updates.flat<T>();
    if (std::find(divisors.begin(), divisors.end(), T{0}) != divisors.end()) {
      return InvalidArgument("integer division by zero: updates hold a 0");
    }
  }
  return OkStatus();
}

// `updates` holds a row for each of `rows`, or is a scalar for all. REQUIRES everything checked.
template <class Fn, class T, class Index>
void ScatterRows(ThreadPool& threads, absl::Span<const Index> rows, const Tensor& updates,
                 int64_t length, Tensor& variable) {
  T* const base = variable.mutable_data<T>();
  const T* const from = updates.data<T>();
  const bool scalar = updates.rank() == 0;
  const auto update = [=](int64_t k, int64_t row) {
    T* const to = base + row * length;
    const T* const values = from + k * length;
    if (scalar) {
      for (int64_t i = 0; i < length; ++i) Fn::Apply(to[i], *from);
    } else {
      for (int64_t i = 0; i < length; ++i) Fn::Apply(to[i], values[i]);
    }
  };
  const auto prefetch = [=](int64_t row) { PrefetchRow(base + row * length, length * sizeof(T)); };
  // 5 ns for what is left of a cache miss, then what memory bandwidth gives.
  ForEachRowUpdate(threads, rows, 5 + length * sizeof(T) / 8.0, update, prefetch);
}

}  // namespace penstock
