// SPDX-License-Identifier: Apache-2.0
//
// The device code of reduction.h. If an output is computed from many adjacent elements, a block of
// threads reduces them together. Otherwise each thread computes whole outputs, and neighbouring
// threads read neighbouring elements. If there are few outputs of many elements, each is computed
// in pieces, which MergePieces merges.
#pragma once

#include "kernels/engine/cuda_launch.cuh"
#include "kernels/engine/reduction_plan.h"

namespace penstock {

struct DeviceDims {
  static constexpr int kMaxRank = 8;
  int rank = 0;
  int64_t size[kMaxRank];
  int64_t stride[kMaxRank];

  // Returns the dimensions `outer`, followed by `inner`.
  static StatusOr<DeviceDims> Make(const ReductionPlan::Dims& outer, ReductionPlan::Dim inner) {
    if (outer.size() >= kMaxRank) {
      return Unimplemented("reductions with more than ", kMaxRank,
                           " dimensions of a kind that cannot be joined, on the GPU");
    }
    DeviceDims dims;
    for (const ReductionPlan::Dim& d : outer) dims.Add(d);
    dims.Add(inner);
    return dims;
  }

  // The outermost dimension needs no division.
  __device__ int64_t Offset(int64_t index) const {
    int64_t offset = 0;
    for (int d = rank - 1; d > 0; --d) {
      offset += index % size[d] * stride[d];
      index /= size[d];
    }
    return offset + index * stride[0];
  }

 private:
  void Add(ReductionPlan::Dim d) {
    size[rank] = d.size;
    stride[rank++] = d.stride;
  }
};

struct DeviceReduction {
  DeviceDims kept, reduced;
  int64_t num_outputs, num_reduced, pieces;
};

// Exactly one of `y` (the final results) and `partial` (one accumulator per output and piece) is
// not null.
template <class R, class L, class A, class X>
__device__ void StoreReduced(A a, int64_t output, const DeviceReduction& plan, A* partial, X* y) {
  if (y != nullptr) {
    y[output] = static_cast<X>(R::template Finish<L>(a, plan.num_reduced));
  } else {
    partial[output * plan.pieces + blockIdx.y] = a;
  }
}

template <class R, class L, class A, class X>
__global__ void ReduceByBlock(DeviceReduction plan, const X* x, A* partial, X* y) {
  extern __shared__ unsigned char shared[];
  A* lanes = reinterpret_cast<A*>(shared);
  const int64_t begin = plan.num_reduced * blockIdx.y / plan.pieces;
  const int64_t end = plan.num_reduced * (blockIdx.y + 1) / plan.pieces;
  for (int64_t output = blockIdx.x; output < plan.num_outputs; output += gridDim.x) {
    const X* from = x + plan.kept.Offset(output);
    A a = R::template Identity<A>();
    for (int64_t k = begin + threadIdx.x; k < end; k += blockDim.x) {
      a = R::Add(a, static_cast<L>(from[plan.reduced.Offset(k)]));
    }
    lanes[threadIdx.x] = a;
    __syncthreads();
    for (int width = blockDim.x / 2; width > 0; width /= 2) {
      if (threadIdx.x < width) {
        lanes[threadIdx.x] = R::Merge(lanes[threadIdx.x], lanes[threadIdx.x + width]);
      }
      __syncthreads();
    }
    if (threadIdx.x == 0) StoreReduced<R, L>(lanes[0], output, plan, partial, y);
    __syncthreads();
  }
}

template <class R, class L, class A, class X>
__global__ void ReduceByThread(DeviceReduction plan, const X* x, A* partial, X* y) {
  const int64_t begin = plan.num_reduced * blockIdx.y / plan.pieces;
  const int64_t end = plan.num_reduced * (blockIdx.y + 1) / plan.pieces;
  FOR_EACH_ON_DEVICE(output, plan.num_outputs) {
    const X* from = x + plan.kept.Offset(output);
    A a = R::template Identity<A>();
    for (int64_t k = begin; k < end; ++k) {
      a = R::Add(a, static_cast<L>(from[plan.reduced.Offset(k)]));
    }
    StoreReduced<R, L>(a, output, plan, partial, y);
  }
}

template <class R, class L, class A, class X>
__global__ void MergePieces(DeviceReduction plan, const A* partial, X* y) {
  FOR_EACH_ON_DEVICE(output, plan.num_outputs) {
    A a = partial[output * plan.pieces];
    for (int64_t i = 1; i < plan.pieces; ++i) {
      a = R::Merge(a, partial[output * plan.pieces + i]);
    }
    y[output] = static_cast<X>(R::template Finish<L>(a, plan.num_reduced));
  }
}

template <class R, class T>
Status LaunchReduction(KernelContext& ctx, const ReductionPlan& plan, const void* in, void* out) {
  using L = LoopType<T>;
  using X = DeviceElement<T>;
  using A = typename R::template Accumulator<L>;
  constexpr int64_t kLong = 4096;  // the minimum number of elements of a piece
  constexpr int64_t kManyThreads = 1 << 17;

  DeviceReduction device = {.num_outputs = plan.num_outputs, .num_reduced = plan.num_reduced};
  ASSIGN_OR_RETURN(device.kept, DeviceDims::Make(plan.outer_kept, plan.kept));
  ASSIGN_OR_RETURN(device.reduced, DeviceDims::Make(plan.outer_reduced, plan.reduced));
  const bool by_block = plan.reduced.stride == 1 && plan.num_reduced >= 64;
  const int64_t threads = plan.num_outputs * (by_block ? kThreadsPerBlock : 1);
  device.pieces =
      std::clamp<int64_t>(std::min(plan.num_reduced / kLong, kManyThreads / threads), 1, 1024);

  const cudaStream_t stream = CudaStream(ctx.stream());
  const X* x = static_cast<const X*>(in);
  X* y = static_cast<X*>(out);
  Tensor scratch;  // freed in stream order by the device's allocator
  A* partial = nullptr;
  if (device.pieces > 1) {
    const int64_t bytes = plan.num_outputs * device.pieces * sizeof(A);
    ASSIGN_OR_RETURN(scratch, ctx.Temporary(DType::kUint8, Shape{bytes}));
    partial = static_cast<A*>(scratch.mutable_raw_data());
  }
  X* const direct = device.pieces > 1 ? nullptr : y;
  const unsigned pieces = static_cast<unsigned>(device.pieces);
  if (by_block) {
    const dim3 grid(static_cast<unsigned>(std::min<int64_t>(plan.num_outputs, 1 << 16)), pieces);
    ReduceByBlock<R, L, A, X><<<grid, kThreadsPerBlock, kThreadsPerBlock * sizeof(A), stream>>>(
        device, x, partial, direct);
  } else {
    const dim3 grid(GridFor(plan.num_outputs), pieces);
    ReduceByThread<R, L, A, X><<<grid, kThreadsPerBlock, 0, stream>>>(device, x, partial, direct);
  }
  if (device.pieces > 1) {
    MergePieces<R, L, A, X>
        <<<GridFor(plan.num_outputs), kThreadsPerBlock, 0, stream>>>(device, partial, y);
  }
  return LaunchStatus();
}

template <class R, class T>
constexpr void SetLoops(ReductionLoop* loop) {
  loop->launch = LaunchReduction<R, T>;
}

}  // namespace penstock
