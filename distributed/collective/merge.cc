// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/merge.h"

#include <type_traits>

#include "core/base/check.h"

namespace penstock::collective {
namespace {

// Calls fn(T()) with the C++ type of `dtype`. Returns false if this file has no
// arithmetic for it.
template <class F>
bool WithType(DType dtype, F fn) {
  switch (dtype) {
    case DType::kFloat:
      return fn(float()), true;
    case DType::kDouble:
      return fn(double()), true;
    case DType::kHalf:
      return fn(half()), true;
    case DType::kBfloat16:
      return fn(bfloat16()), true;
    case DType::kInt32:
      return fn(int32_t()), true;
    case DType::kInt64:
      return fn(int64_t()), true;
    default:
      return false;
  }
}

// The type in which values of type T are added. Signed integers use an unsigned type, because
// signed overflow would be undefined.
template <class T>
struct Wide {
  using type = float;
};
template <>
struct Wide<float> {
  using type = float;
};
template <>
struct Wide<double> {
  using type = double;
};
template <>
struct Wide<int32_t> {
  using type = uint32_t;
};
template <>
struct Wide<int64_t> {
  using type = uint64_t;
};

template <class T>
T Combine(MergeOp op, T a, T b) {
  using W = typename Wide<T>::type;
  // If `a` or `b` is a NaN, the comparisons below return it.
  if constexpr (std::is_integral_v<T>) {
    if (op == MergeOp::kMin) return b < a ? b : a;
    if (op == MergeOp::kMax) return a < b ? b : a;
  } else {
    const W x = static_cast<W>(a), y = static_cast<W>(b);
    if (op == MergeOp::kMin) return y < x || y != y ? b : a;
    if (op == MergeOp::kMax) return x < y || y != y ? b : a;
  }
  const W x = static_cast<W>(a), y = static_cast<W>(b);
  return static_cast<T>(op == MergeOp::kAdd ? x + y : x * y);
}

template <MergeOp kOp, class T>
void Loop(int64_t count, const T* a, const T* b, T* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = Combine<T>(kOp, a[i], b[i]);
}

template <class T>
void MergeAs(MergeOp op, int64_t count, const T* a, const T* b, T* to) {
  switch (op) {
    case MergeOp::kAdd:
      return Loop<MergeOp::kAdd>(count, a, b, to);
    case MergeOp::kMul:
      return Loop<MergeOp::kMul>(count, a, b, to);
    case MergeOp::kMin:
      return Loop<MergeOp::kMin>(count, a, b, to);
    case MergeOp::kMax:
      return Loop<MergeOp::kMax>(count, a, b, to);
  }
}

}  // namespace

Status CheckMergeable(DType dtype) {
  if (WithType(dtype, [](auto) {})) return OkStatus();
  return InvalidArgument("a collective cannot reduce tensors of type ", Name(dtype),
                         "; it reduces half, bfloat16, float, double, int32 and int64");
}

void Merge(MergeOp op, DType dtype, int64_t count, const void* a, const void* b, void* to) {
  CHECK(WithType(dtype, [&](auto zero) {
    using T = decltype(zero);
    MergeAs<T>(op, count, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(to));
  }));
}

void Divide(DType dtype, int64_t count, int64_t divisor, void* values) {
  CHECK(divisor > 0);
  CHECK(WithType(dtype, [&](auto zero) {
    using T = decltype(zero);
    T* const to = static_cast<T*>(values);
    if constexpr (std::is_integral_v<T>) {
      // Does not cast the divisor, which need not fit into T.
      for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(to[i] / divisor);
    } else {
      using W = typename Wide<T>::type;
      const W by = static_cast<W>(divisor);
      for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(static_cast<W>(to[i]) / by);
    }
  }));
}

}  // namespace penstock::collective
