// SPDX-License-Identifier: Apache-2.0
//
// UnsortedSegmentSum: adds up the rows that have the same id in segment_ids; the ids need not
// be sorted.
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/add.h"
#include "kernels/math/forms.h"
#include "kernels/math/segments.h"
#if defined(PENSTOCK_CUDA_DEVICE)
#include "kernels/engine/atomic_add.cuh"
#endif

namespace penstock {
namespace {

#if defined(PENSTOCK_CUDA_DEVICE)

// Rows with an id out of range are dropped: reporting an error would require waiting for the
// device.
template <class X, class Id>
__global__ void SumOnDevice(const X* data, const Id* ids, int64_t num_ids, int64_t row,
                            int64_t count, X* y) {
  FOR_EACH_ON_DEVICE(i, num_ids * row) {
    const int64_t id = ids[i / row];
    if (id >= 0 && id < count) AtomicAdd(&y[id * row + i % row], data[i]);
  }
}

template <class T, class Id>
Status Sum(KernelContext& ctx, const UnsortedSegments& s, const T* data, const Id* ids, T* y) {
  using X = DeviceElement<T>;
  const cudaStream_t stream = CudaStream(ctx.stream());
  cudaMemsetAsync(y, 0, s.count * s.row * sizeof(T), stream);
  if (s.ids * s.row > 0) {
    SumOnDevice<<<GridFor(s.ids * s.row), kThreadsPerBlock, 0, stream>>>(
        reinterpret_cast<const X*>(data), ids, s.ids, s.row, s.count, reinterpret_cast<X*>(y));
  }
  return LaunchStatus();
}

#else

template <class Id>
Status CheckIds(const Id* ids, int64_t n, int64_t count) {
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] >= count) {
      return InvalidArgument("segment_ids[", i, "] = ", ids[i],
                             " is out of range [0, num_segments = ", count, ")");
    }
  }
  return OkStatus();
}

// Computes the sums y. InvalidArgument if an id is too large. Each thread owns a range of segments,
// scans all ids, and adds the rows of its own segments in order. So no two threads write to the
// same segment, and the sums do not depend on the number of threads.
template <class T, class Id>
Status Sum(KernelContext& ctx, const UnsortedSegments& s, const T* data, const Id* ids, T* y) {
  using L = LoopType<T>;
  RETURN_IF_ERROR(CheckIds(ids, s.ids, s.count));
  L* sums;
  Tensor wide;  // 16-bit floats are accumulated in float
  if constexpr (kIsHalf<T>) {
    ASSIGN_OR_RETURN(wide, ctx.Temporary(DType::kFloat, s.output));
    sums = wide.mutable_data<float>();
  } else {
    sums = y;
  }
  const auto add_range = [&](int64_t first, int64_t last) {
    std::fill(sums + first * s.row, sums + last * s.row, L(0));
    for (int64_t i = 0; i < s.ids; ++i) {
      if (ids[i] < first || ids[i] >= last) continue;
      L* to = sums + ids[i] * s.row;
      const T* from = data + i * s.row;
      for (int64_t j = 0; j < s.row; ++j) to[j] = AddFn()(to[j], static_cast<L>(from[j]));
    }
    if constexpr (kIsHalf<T>) {
      FloatToFloat16(kDTypeOf<T>, sums + first * s.row, y + first * s.row, (last - first) * s.row);
    }
  };
  const int64_t work = s.ids * s.row + s.count * s.row;
  const int64_t pieces = std::clamp<int64_t>(work / (64 << 10), 1,
                                             std::max<int64_t>(1, std::min<int64_t>(s.count, 16)));
  ctx.threads().ParallelFor(pieces, 0.5 * work / pieces, [&](int64_t begin, int64_t end) {
    add_range(s.count * begin / pieces, s.count * end / pieces);
  });
  return OkStatus();
}

#endif

template <class T>
class UnsortedSegmentSumKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    const Tensor& ids = ctx.input(1);
    ASSIGN_OR_RETURN(const UnsortedSegments s,
                     UnsortedSegments::Make(data.shape(), ids.shape(), ctx.input(2)));
    Tensor* y;
    RETURN_IF_ERROR(ctx.Allocate(0, s.output, &y));
    return ids.dtype() == DType::kInt32
               ? Sum(ctx, s, data.data<T>(), ids.data<int32_t>(), y->mutable_data<T>())
               : Sum(ctx, s, data.data<T>(), ids.data<int64_t>(), y->mutable_data<T>());
  }
};

// Returns the gradient of the data: each row gets that of its segment; rows that were left out get
// zero.
Gradients SegmentSumGradient(const GradientScope& g) {
  return {RowsOfSegments(g, g.dy()), Gradient(), Gradient()};
}

}  // namespace

OP(UnsortedSegmentSum) {
  return {
      .doc =
          "output[s] = the sum of the rows of data whose segment id is s. Rows with "
          "negative ids are ignored.",
      .inputs = {{"data", "T"}, {"segment_ids", "Tindices"}, {"num_segments", "Tnumsegments"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kNumber}, {"Tindices", kIndex}, {"Tnumsegments", kIndex, DType::kInt32}},
      .shape = UnsortedSegmentShape,
      .gradient = SegmentSumGradient,
      .examples = {{.inputs = {{{{4, 2}}}, {{{4}, {1, 0, -1, 1}}}, {{{}, {3}}}}},
                   {.inputs = {{{{2, 2}}}, {{{2, 2}, {1, 0, 0, 1}}}, {{{}, {2}}}}}},
  };
}
KERNEL_HOST_ARGS(("num_segments"), UnsortedSegmentSum, UnsortedSegmentSumKernel, NUMBER_TYPES);

}  // namespace penstock
