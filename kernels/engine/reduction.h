// SPDX-License-Identifier: Apache-2.0
//
// Kernels that reduce a tensor along axes, each made from one reducer:
//
//   KERNEL_HOST_ARGS(("reduction_indices"), Sum, Reduction<SumReducer>::Kernel, float, double);
//
// A reducer is a stateless type whose functions run on CPUs and GPUs:
//   template <class T> using Accumulator = ...;            // type in which T is accumulated
//   template <class A> static A Identity();
//   template <class A, class T> static A Add(A a, T x);    // adds one element
//   template <class A> static A Merge(A a, A b);
//   template <class T, class A> static T Finish(A a, int64_t count);
//   static constexpr bool kReturnsSingleElement;  // if true: reducing one element returns it
// T is the type that loops compute in (functor.h): float for 16-bit floats.
//
// Only the inner loops are templates. Inputs: data, axes (in host memory); attribute keep_dims. The
// work is split in the same way for any number of threads, so the result does not depend on it.
#pragma once

#include <cstdint>
#include <limits>

#include "core/op/registry.h"
#include "kernels/engine/functor.h"
#include "kernels/engine/reduction_plan.h"

namespace penstock {

struct ReductionLoop {
  DType type;
  size_t accumulator_bytes;
  bool returns_single_element;
  // The five functions from `reset` to `finish` run on the CPU. Each works on n accumulators.
  void (*reset)(void* accumulators, int64_t n) = nullptr;
  // accumulators[i] += x[i * step + k] for k < length: accumulator i reduces row i of x.
  void (*across)(const void* x, int64_t n, int64_t step, int64_t length,
                 void* accumulators) = nullptr;
  // accumulators[i] += x[i + k * step] for k < length: each output is a column of x.
  void (*down)(const void* x, int64_t n, int64_t step, int64_t length,
               void* accumulators) = nullptr;
  void (*merge)(const void* from, int64_t n, void* accumulators) = nullptr;
  void (*finish)(const void* accumulators, int64_t count, int64_t n, void* y) = nullptr;
  // On other devices, used instead of the functions above.
  Status (*launch)(KernelContext& ctx, const ReductionPlan& plan, const void* x, void* y) = nullptr;
};

class ReductionKernel : public Kernel {
 public:
  explicit ReductionKernel(const ReductionLoop& loop) : loop_(loop) {}
  Status Init(const KernelInit& node) override;
  Status Compute(KernelContext& ctx) override;

 private:
  const ReductionLoop& loop_;
  bool keep_dims_ = false;
};

// Reduces x into y as the plan says, on the CPU.
void Reduce(Scheduler& threads, const ReductionLoop& loop, const ReductionPlan& plan, const void* x,
            void* y);

// The type in which sums of T lose little: double for floats, unsigned integers of 32 or 64 bits
// for integers.
template <class T>
struct WideOf {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};
template <>
struct WideOf<float> {
  using type = double;
};
template <>
struct WideOf<double> {
  using type = double;
};
template <class F>
struct WideOf<LoopComplex<F>> {
  using type = LoopComplex<double>;
};
template <class T>
using Wide = typename WideOf<T>::type;

#if defined(PENSTOCK_CUDA_DEVICE)
}  // namespace penstock
#include "kernels/engine/reduction.cuh"
namespace penstock {
inline namespace PENSTOCK_PASS {
#else

inline namespace PENSTOCK_PASS {

template <class R, class T>
struct ReductionLoops {
  using A = typename R::template Accumulator<T>;

  static void Reset(void* accumulators, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<A*>(accumulators)[i] = R::template Identity<A>();
  }

  // Keeps many partial results: they fill vector registers, and each accumulates few elements.
  static A Fold(const T* x, int64_t n) {
    constexpr int kLanes = 256 / sizeof(A);
    A lanes[kLanes];
    for (A& lane : lanes) lane = R::template Identity<A>();
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) lanes[j] = R::Add(lanes[j], x[i + j]);
    }
    for (int j = 0; i < n; ++i, ++j) lanes[j] = R::Add(lanes[j], x[i]);
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int j = 0; j < width; ++j) lanes[j] = R::Merge(lanes[j], lanes[j + width]);
    }
    return lanes[0];
  }

  static void Across(const void* data, int64_t n, int64_t step, int64_t length,
                     void* accumulators) {
    const T* x = static_cast<const T*>(data);
    A* a = static_cast<A*>(accumulators);
    constexpr int64_t kShort = 16;
    for (int64_t i = 0; i < n; ++i, x += step) {
      if (length > kShort) {
        a[i] = R::Merge(a[i], Fold(x, length));
      } else {
        for (int64_t k = 0; k < length; ++k) a[i] = R::Add(a[i], x[k]);
      }
    }
  }

  static void Down(const void* data, int64_t n, int64_t step, int64_t length, void* accumulators) {
    const T* x = static_cast<const T*>(data);
    A* a = static_cast<A*>(accumulators);
    int64_t k = 0;
    // Four rows at once: reads and writes the accumulators a quarter as often.
    for (; k + 4 <= length; k += 4, x += 4 * step) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        a[i] = R::Add(R::Add(R::Add(R::Add(a[i], x[i]), x[i + step]), x[i + 2 * step]),
                      x[i + 3 * step]);
      }
    }
    for (; k < length; ++k, x += step) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) a[i] = R::Add(a[i], x[i]);
    }
  }

  static void Merge(const void* from, int64_t n, void* accumulators) {
    const A* b = static_cast<const A*>(from);
    A* a = static_cast<A*>(accumulators);
    for (int64_t i = 0; i < n; ++i) a[i] = R::Merge(a[i], b[i]);
  }

  static void Finish(const void* accumulators, int64_t count, int64_t n, void* out) {
    const A* a = static_cast<const A*>(accumulators);
    T* y = static_cast<T*>(out);
    for (int64_t i = 0; i < n; ++i) y[i] = R::template Finish<T>(a[i], count);
  }
};

template <class R, class T>
constexpr void SetLoops(ReductionLoop* loop) {
  using Loops = ReductionLoops<R, LoopType<T>>;
  loop->reset = Loops::Reset;
  loop->across = Loops::Across;
  loop->down = Loops::Down;
  loop->merge = Loops::Merge;
  loop->finish = Loops::Finish;
}

#endif

template <class R, class T>
constexpr ReductionLoop ReductionLoopOf() {
  ReductionLoop loop = {.type = kDTypeOf<T>,
                        .accumulator_bytes = sizeof(typename R::template Accumulator<LoopType<T>>),
                        .returns_single_element = R::kReturnsSingleElement};
  SetLoops<R, T>(&loop);
  return loop;
}

template <class R>
struct Reduction {
  template <class T>
  struct Kernel final : ReductionKernel {
    static constexpr ReductionLoop kLoop = ReductionLoopOf<R, T>();
    Kernel() : ReductionKernel(kLoop) {}
  };
};

}  // namespace PENSTOCK_PASS
}  // namespace penstock
