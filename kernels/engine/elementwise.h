// SPDX-License-Identifier: Apache-2.0
//
// Kernels made from one functor each (functor.h): y = fn(x) and z = fn(x, y) with NumPy
// broadcasting.
//
//   KERNEL(Exp, UnaryElementwise<ExpFn>::Kernel, half, bfloat16, float, double);
//   KERNEL(Less, BinaryElementwise<LessFn>::Kernel, float, int32_t);
//
// The functor's result type is the type of the output. Only the inner loops are templates.
// Everything else (shapes, buffers, broadcasting, splitting over threads, 16-bit floats) is in
// UnaryKernel and BinaryKernel, which are compiled once. The result is written into an input's
// buffer if types and sizes match and no other tensor shares the buffer.
//
// An element's result does not depend on its position in the tensor: the same operands give the
// same bits, in whichever blocks and rows the loops run.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/op/block_kernel.h"
#include "core/op/registry.h"
#include "kernels/engine/broadcast.h"
#include "kernels/engine/float16_blocks.h"
#include "kernels/engine/functor.h"

namespace penstock {

// The functions that run a unary functor for one pair of types.
struct UnaryLoop {
  DType in, out;
  double nanos;  // nanoseconds per element, memory traffic included
  // On the CPU, computes n elements. 16-bit floats are passed as floats.
  void (*run)(const void* x, void* y, int64_t n) = nullptr;
  // On other devices, used instead of `run`: computes n elements on `stream`, without waiting.
  Status (*launch)(void* stream, const void* x, void* y, int64_t n) = nullptr;
};

class UnaryKernel : public Kernel, public BlockKernel {
 public:
  explicit UnaryKernel(const UnaryLoop& loop);
  Status Init(const KernelInit& node) override;
  Status Compute(KernelContext& ctx) override;
  bool RunsInBlocks() const override;
  double BlockNanos() const override;
  void RunBlock(const BlockInput* inputs, void* output, int64_t n) const override;

 private:
  const UnaryLoop& loop_;
  const size_t x_size_, y_size_;
};

// The operands of a binary inner loop: `rows` rows of `n` elements. The output is contiguous.
struct BinaryRows {
  const void* x;
  const void* y;
  void* z;
  int64_t rows, n;
  int64_t x_step = 0, y_step = 0;             // elements between the starts of rows
  bool x_repeats = false, y_repeats = false;  // one element serves the whole row
};

struct BinaryLoop {
  DType in, out;
  double nanos;
  void (*run)(const BinaryRows& rows) = nullptr;
  Status (*launch)(void* stream, const BroadcastPlan& plan, const void* x, const void* y,
                   void* z) = nullptr;
  // If not null: checks the n right operands. Returns an error text if one of them is not allowed
  // (a zero divisor), else null.
  const char* (*invalid)(const void* y, int64_t n) = nullptr;
};

class BinaryKernel : public Kernel, public BlockKernel {
 public:
  explicit BinaryKernel(const BinaryLoop& loop);
  Status Init(const KernelInit& node) override;
  Status Compute(KernelContext& ctx) override;
  // False for functors with `Invalid`, which must check all right operands before the first block.
  bool RunsInBlocks() const override;
  double BlockNanos() const override;
  void RunBlock(const BlockInput* inputs, void* output, int64_t n) const override;

 private:
  Status CheckRight(const Tensor& y, int64_t num_outputs) const;
  Status AllocateOutput(KernelContext& ctx, const Shape& shape, Tensor** z) const;
  void RunFlat(KernelContext& ctx, Tensor* z) const;
  void RunBroadcast(KernelContext& ctx, const BroadcastPlan& plan, Tensor* z) const;
  const BinaryLoop& loop_;
  const size_t in_size_, out_size_;
};

// Nanoseconds of memory traffic for one element.
constexpr double TrafficNanos(size_t bytes) { return 0.04 * bytes; }
// Nanoseconds of traffic with the first-level cache for one element.
constexpr double kCacheNanos = 0.1;

#if defined(PENSTOCK_CUDA_DEVICE)
}  // namespace penstock
#include "kernels/engine/elementwise.cuh"
namespace penstock {
inline namespace PENSTOCK_PASS {
#else

inline namespace PENSTOCK_PASS {

template <class Fn, class T>
void RunUnary(const void* in, void* out, int64_t n) {
  using Y = decltype(Fn()(T()));
  const T* x = static_cast<const T*>(in);
  Y* y = static_cast<Y*>(out);
  const Fn fn;
  // The compiler may vectorise: input and output are the same buffer, or do not overlap.
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = fn(x[i]);
}

template <class Fn, class T>
void RunBinary(const BinaryRows& rows) {
  using Z = decltype(Fn()(T(), T()));
  const Fn fn;
  const T* x = static_cast<const T*>(rows.x);
  const T* y = static_cast<const T*>(rows.y);
  Z* z = static_cast<Z*>(rows.z);
  const int64_t n = rows.n;
  for (int64_t r = 0; r < rows.rows; ++r, x += rows.x_step, y += rows.y_step, z += n) {
    if (rows.x_repeats) {
      const T left = *x;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) z[i] = fn(left, y[i]);
    } else if (rows.y_repeats) {
      const T right = *y;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) z[i] = fn(x[i], right);
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) z[i] = fn(x[i], y[i]);
    }
  }
}

// The vector form of a maths function rounds differently from its scalar form, and loops call the
// scalar form for the last elements, which fill no vector. The functions below are for functors
// that take time (kNanos), because these call such functions. They pass only whole groups to the
// loops, and copy the last elements to a group of their own. Functors that take much time (Lgamma,
// Igamma, ...) have no vector form.
inline constexpr int64_t kGroup = 16;  // elements; a multiple of the largest vector
inline constexpr double kVectorNanosMax = 5;

template <class Fn, class T>
inline constexpr bool kRunsInGroups =
    NanosOf<Fn>() > 0 && kVectorNanosMax > NanosOf<Fn>() && std::is_floating_point_v<T>;

// Not inlined or cloned, because the compiler would use scalar functions for a single group.
#if defined(__clang__)
#define PENSTOCK_OWN_LOOP [[gnu::noinline]]
#else
#define PENSTOCK_OWN_LOOP [[gnu::noinline, gnu::noclone]]
#endif
template <class Fn, class T>
PENSTOCK_OWN_LOOP void RunUnaryGroups(const void* in, void* out, int64_t n) {
  RunUnary<Fn, T>(in, out, n);
}
template <class Fn, class T>
PENSTOCK_OWN_LOOP void RunBinaryGroups(const BinaryRows& rows) {
  RunBinary<Fn, T>(rows);
}
#undef PENSTOCK_OWN_LOOP

template <class Fn, class T>
void RunUnaryInGroups(const void* in, void* out, int64_t n) {
  using Y = decltype(Fn()(T()));
  const int64_t whole = n - n % kGroup;
  if (whole > 0) RunUnaryGroups<Fn, T>(in, out, whole);
  if (whole == n) return;
  const T* x = static_cast<const T*>(in) + whole;
  T group[kGroup];
  Y results[kGroup];
  for (int64_t i = 0; i < kGroup; ++i) group[i] = x[std::min(i, n - whole - 1)];
  RunUnaryGroups<Fn, T>(group, results, kGroup);
  std::copy_n(results, n - whole, static_cast<Y*>(out) + whole);
}

template <class Fn, class T>
void RunBinaryInGroups(const BinaryRows& rows) {
  using Z = decltype(Fn()(T(), T()));
  const int64_t whole = rows.n - rows.n % kGroup, rest = rows.n - whole;
  if (rest == 0) return RunBinaryGroups<Fn, T>(rows);
  for (int64_t r = 0; r < rows.rows; ++r) {
    const T* x = static_cast<const T*>(rows.x) + r * rows.x_step;
    const T* y = static_cast<const T*>(rows.y) + r * rows.y_step;
    Z* z = static_cast<Z*>(rows.z) + r * rows.n;
    if (whole > 0) {
      RunBinaryGroups<Fn, T>({x, y, z, 1, whole, 0, 0, rows.x_repeats, rows.y_repeats});
    }
    T left[kGroup], right[kGroup];
    Z results[kGroup];
    for (int64_t i = 0; i < kGroup; ++i) {
      const int64_t at = whole + std::min(i, rest - 1);
      left[i] = x[rows.x_repeats ? 0 : at];
      right[i] = y[rows.y_repeats ? 0 : at];
    }
    RunBinaryGroups<Fn, T>({left, right, results, 1, kGroup});
    std::copy_n(results, rest, z + whole);
  }
}

template <class Fn, class T>
const char* FindInvalid(const void* operand, int64_t n) {
  const T* y = static_cast<const T*>(operand);
  for (int64_t i = 0; i < n; ++i) {
    if (const char* message = Fn::Invalid(y[i])) return message;
  }
  return nullptr;
}

template <class Fn, class T>
constexpr void SetLoops(UnaryLoop* loop) {
  using L = LoopType<T>;
  if constexpr (kRunsInGroups<Fn, L>) {
    loop->run = RunUnaryInGroups<Fn, L>;
  } else {
    loop->run = RunUnary<Fn, L>;
  }
}

template <class Fn, class T>
constexpr void SetLoops(BinaryLoop* loop) {
  using L = LoopType<T>;
  if constexpr (kRunsInGroups<Fn, L>) {
    loop->run = RunBinaryInGroups<Fn, L>;
  } else {
    loop->run = RunBinary<Fn, L>;
  }
  if constexpr (requires(T y) { Fn::Invalid(y); }) loop->invalid = FindInvalid<Fn, T>;
}

#endif

template <class Fn, class T>
constexpr UnaryLoop UnaryLoopOf() {
  using Y = ElementType<T, decltype(Fn()(LoopType<T>()))>;
  UnaryLoop loop = {.in = kDTypeOf<T>,
                    .out = kDTypeOf<Y>,
                    .nanos = NanosOf<Fn>() + TrafficNanos(sizeof(T) + sizeof(Y))};
  SetLoops<Fn, T>(&loop);
  return loop;
}

template <class Fn, class T>
constexpr BinaryLoop BinaryLoopOf() {
  using Z = ElementType<T, decltype(Fn()(LoopType<T>(), LoopType<T>()))>;
  BinaryLoop loop = {.in = kDTypeOf<T>,
                     .out = kDTypeOf<Z>,
                     .nanos = NanosOf<Fn>() + TrafficNanos(2 * sizeof(T) + sizeof(Z))};
  SetLoops<Fn, T>(&loop);
  return loop;
}

template <class Fn>
struct UnaryElementwise {
  template <class T>
  struct Kernel final : UnaryKernel {
    static constexpr UnaryLoop kLoop = UnaryLoopOf<Fn, T>();
    Kernel() : UnaryKernel(kLoop) {}
  };
};

template <class Fn>
struct BinaryElementwise {
  template <class T>
  struct Kernel final : BinaryKernel {
    static constexpr BinaryLoop kLoop = BinaryLoopOf<Fn, T>();
    Kernel() : BinaryKernel(kLoop) {}
  };
};

}  // namespace PENSTOCK_PASS
}  // namespace penstock
