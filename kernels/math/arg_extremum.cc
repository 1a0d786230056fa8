// SPDX-License-Identifier: Apache-2.0
//
// ArgMax and ArgMin: the index of the extremum along an axis; the first index if several elements
// equal the extremum. NaN is ignored.
#include <limits>

#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/broadcast.h"
#include "kernels/engine/float16_blocks.h"
#include "kernels/engine/functor.h"
#include "kernels/math/axis.h"
#include "kernels/math/forms.h"
#if defined(PENSTOCK_CUDA_DEVICE)
#include "kernels/engine/cuda_launch.cuh"
#endif

namespace penstock {
namespace {

struct ArgMaxOrder {
  template <class T>
  DEVICE_FN static bool Better(T a, T b) {
    return a > b;
  }
  template <class T>
  DEVICE_FN static constexpr T Worst() {
    if constexpr (std::numeric_limits<T>::has_infinity) return -std::numeric_limits<T>::infinity();
    return std::numeric_limits<T>::lowest();
  }
};

struct ArgMinOrder {
  template <class T>
  DEVICE_FN static bool Better(T a, T b) {
    return a < b;
  }
  template <class T>
  DEVICE_FN static constexpr T Worst() {
    if constexpr (std::numeric_limits<T>::has_infinity) return std::numeric_limits<T>::infinity();
    return std::numeric_limits<T>::max();
  }
};

#if defined(PENSTOCK_CUDA_DEVICE)

template <class Order, class L, class X, class Index>
__global__ void FindOnDevice(AxisView view, const X* x, Index* y) {
  FOR_EACH_ON_DEVICE(i, view.outer * view.inner) {
    const X* from = x + i / view.inner * view.length * view.inner + i % view.inner;
    L best = Order::template Worst<L>();
    int64_t at = 0;
    for (int64_t k = 0; k < view.length; ++k) {
      const L value = static_cast<L>(from[k * view.inner]);
      if (Order::Better(value, best)) {
        best = value;
        at = k;
      }
    }
    y[i] = static_cast<Index>(at);
  }
}

#else

// Indices within a piece fit in 32 bits: the axis is split into pieces of at most this length.
constexpr int64_t kPiece = 1 << 30;

// Returns the index of the best of n adjacent elements. Keeps kLanes candidates at a time, so that
// the compiler vectorises the loop.
template <class Order, class T>
int64_t FindInRow(const T* x, int64_t n) {
  constexpr int kLanes = 32;
  T best = Order::template Worst<T>();
  int64_t at = 0;
  for (int64_t start = 0; start < n; start += kPiece) {
    const int64_t end = std::min(n, start + kPiece);
    T lane[kLanes];
    int32_t place[kLanes] = {};
    for (T& l : lane) l = Order::template Worst<T>();
    int64_t k = start;
    for (; k + kLanes <= end; k += kLanes) {
      for (int j = 0; j < kLanes; ++j) {
        const bool better = Order::Better(x[k + j], lane[j]);
        lane[j] = better ? x[k + j] : lane[j];
        place[j] = better ? static_cast<int32_t>(k - start) : place[j];
      }
    }
    for (int j = 0; k + j < end; ++j) {
      if (Order::Better(x[k + j], lane[j])) {
        lane[j] = x[k + j];
        place[j] = static_cast<int32_t>(k - start);
      }
    }
    for (int j = 0; j < kLanes; ++j) {
      const int64_t here = start + place[j] + j;
      if (Order::Better(lane[j], best) ||
          (lane[j] == best && best != Order::template Worst<T>() && here < at)) {
        best = lane[j];
        at = here;
      }
    }
  }
  return at;
}

// For each of `n` columns of `length` elements, writes the row of the best element to `places`.
// Reads the columns row by row.
template <class Order, class T>
void FindInColumns(const T* x, int64_t length, int64_t step, int64_t n, int64_t* places) {
  constexpr int64_t kWidth = 256;
  for (int64_t first = 0; first < n; first += kWidth) {
    const int64_t width = std::min(kWidth, n - first);
    T best[kWidth];
    for (T& b : best) b = Order::template Worst<T>();
    std::fill_n(places + first, width, 0);
    for (int64_t k = 0; k < length; ++k) {
      const T* row = x + k * step + first;
      for (int64_t j = 0; j < width; ++j) {
        const bool better = Order::Better(row[j], best[j]);
        best[j] = better ? row[j] : best[j];
        places[first + j] = better ? k : places[first + j];
      }
    }
  }
}

template <class Order, class T>
void FindAll(Scheduler& threads, const AxisView& view, const T* x, int64_t* places) {
  const double nanos = 0.3 * view.length * view.inner;
  threads.ParallelFor(view.outer, nanos, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = x + i * view.length * view.inner;
      if (view.inner == 1) {
        places[i] = FindInRow<Order>(from, view.length);
      } else {
        FindInColumns<Order>(from, view.length, view.inner, view.inner, places + i * view.inner);
      }
    }
  });
}

#endif

template <class Order>
struct ArgExtremum {
  template <class T>
  class Kernel final : public penstock::Kernel {
   public:
    Status Init(const KernelInit& node) override { return node.Attr("output_type", &type_); }

    Status Compute(KernelContext& ctx) override {
      const Tensor& x = ctx.input(0);
      ASSIGN_OR_RETURN(const int axis, AxisValue(ctx.input(1), x.rank(), "dimension"));
      const AxisView view = ViewAlong(x.shape(), axis);
      Shape shape = x.shape();
      shape.RemoveDim(axis);
      Tensor* y;
      RETURN_IF_ERROR(ctx.Allocate(0, shape, &y));
      if (view.length == 0) {
        return InvalidArgument("Reduction axis ", axis, " is empty in shape ",
                               x.shape().ToString());
      }
      if (shape.num_elements() == 0) return OkStatus();
      return Find(ctx, view, x, y);
    }

   private:
#if defined(PENSTOCK_CUDA_DEVICE)
    template <class Index>
    Status FindAs(KernelContext& ctx, const AxisView& view, const Tensor& x, Tensor* y) const {
      FindOnDevice<Order, LoopType<T>>
          <<<GridFor(y->num_elements()), kThreadsPerBlock, 0, CudaStream(ctx.stream())>>>(
              view, x.data<T>(), y->mutable_data<Index>());
      return LaunchStatus();
    }
    Status Find(KernelContext& ctx, const AxisView& view, const Tensor& x, Tensor* y) const {
      return type_ == DType::kInt64 ? FindAs<int64_t>(ctx, view, x, y)
                                    : FindAs<int32_t>(ctx, view, x, y);
    }
#else
    Status Find(KernelContext& ctx, const AxisView& view, const Tensor& x, Tensor* y) const {
      Tensor places;
      if (type_ == DType::kInt32) {
        ASSIGN_OR_RETURN(places, ctx.Temporary(DType::kInt64, y->shape()));
      }
      int64_t* to =
          type_ == DType::kInt32 ? places.mutable_data<int64_t>() : y->mutable_data<int64_t>();
      if constexpr (kIsHalf<T>) {
        ASSIGN_OR_RETURN(Tensor floats, ctx.Temporary(DType::kFloat, x.shape()));
        float* all = floats.mutable_data<float>();
        ForEachBlock(ctx.threads(), x.num_elements(), 0.2, [&](int64_t begin, int64_t end) {
          Float16ToFloat(kDTypeOf<T>, x.data<T>() + begin, all + begin, end - begin);
        });
        FindAll<Order>(ctx.threads(), view, floats.data<float>(), to);
      } else {
        FindAll<Order>(ctx.threads(), view, x.data<T>(), to);
      }
      if (type_ == DType::kInt32) {
        std::copy_n(to, y->num_elements(), y->mutable_data<int32_t>());
      }
      return OkStatus();
    }
#endif
    DType type_ = DType::kInt64;
  };
};

Status ArgShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const int axis, KnownAxis(s, 1));
  if (!s.input(0).known_rank()) return UnknownShape(s);
  if (axis < 0) {
    if (s.input(0).rank() == 0) return InvalidArgument("input must have a dimension");
    s.set_output(0, PartialShape::UnknownOfRank(s.input(0).rank() - 1));
    return OkStatus();
  }
  PartialShape output = PartialShape::Scalar();
  for (int d = 0; d < s.input(0).rank(); ++d) {
    if (d != axis) output.AddDim(s.input(0).dim(d));
  }
  s.set_output(0, std::move(output));
  return OkStatus();
}

OpDef ArgOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"input", "T"}, {"dimension", "Tidx"}},
      .outputs = {{"output", "output_type"}},
      .types = {{"T", TypesOf<REAL_TYPES, bool>()},
                {"Tidx", {DType::kInt16, DType::kInt32, DType::kInt64}, DType::kInt32},
                {"output_type", kIndex, DType::kInt64}},
      .shape = ArgShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{}, {1}}}}}, {.inputs = {{{{2, 3}}}, {{{}, {0}}}}}},
  };
}

}  // namespace

OP(ArgMax) { return ArgOp("Returns the index of the largest element along an axis."); }
KERNEL_HOST_ARGS(("dimension"), ArgMax, ArgExtremum<ArgMaxOrder>::Kernel, REAL_TYPES, bool);
OP(ArgMin) { return ArgOp("Returns the index of the smallest element along an axis."); }
KERNEL_HOST_ARGS(("dimension"), ArgMin, ArgExtremum<ArgMinOrder>::Kernel, REAL_TYPES, bool);

}  // namespace penstock
