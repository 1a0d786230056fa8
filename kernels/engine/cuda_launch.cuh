// SPDX-License-Identifier: Apache-2.0
//
// Helpers to launch kernels on CUDA devices: grid sizes, errors, and broadcasting on the device.
// Only nvcc compiles this file.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "core/base/status.h"
#include "kernels/engine/broadcast.h"
#include "kernels/engine/functor.h"

namespace penstock {

inline constexpr int kThreadsPerBlock = 256;

// Returns enough blocks for n threads, limited to a number that keeps every multiprocessor busy.
// Kernels loop over the remaining elements (FOR_EACH_ON_DEVICE).
inline unsigned GridFor(int64_t n) {
  constexpr int64_t kMaxBlocks = 4096;
  return static_cast<unsigned>(
      std::clamp<int64_t>((n + kThreadsPerBlock - 1) / kThreadsPerBlock, 1, kMaxBlocks));
}

#define FOR_EACH_ON_DEVICE(i, n)                                            \
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < (n); \
       i += int64_t{blockDim.x} * gridDim.x)

// Returns the error of this thread's last launch, if any. Errors of the running kernel are reported
// later, to the code that waits for the stream.
inline Status LaunchStatus() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? OkStatus() : Internal("CUDA launch: ", cudaGetErrorString(error));
}

inline cudaStream_t CudaStream(void* stream) { return static_cast<cudaStream_t>(stream); }

// The type of elements of type T in device code: T itself, except for std::complex.
template <class T>
struct DeviceElementOf {
  using type = T;
};
template <class F>
struct DeviceElementOf<std::complex<F>> {
  using type = LoopComplex<F>;
};
template <class T>
using DeviceElement = typename DeviceElementOf<T>::type;

// A BroadcastPlan in a form that can be passed to a device kernel.
struct DeviceBroadcast {
  static constexpr int kMaxRank = 8;
  int rank;
  int64_t dim[kMaxRank];
  int64_t stride[BroadcastPlan::kMaxOperands][kMaxRank];

  static StatusOr<DeviceBroadcast> Make(const BroadcastPlan& plan) {
    if (plan.rank() > kMaxRank) {
      return Unimplemented("broadcasting with ", plan.rank(), " dimensions that cannot be joined; ",
                           "on the GPU at most ", kMaxRank);
    }
    DeviceBroadcast device{.rank = plan.rank()};
    for (int d = 0; d < plan.rank(); ++d) {
      device.dim[d] = plan.dim(d);
      for (int i = 0; i < plan.num_operands(); ++i) device.stride[i][d] = plan.stride(i, d);
    }
    return device;
  }

  // Sets `offset` to the offsets of the two operands' elements for output element `index`.
  template <int kOperands>
  __device__ void Locate(int64_t index, int64_t (&offset)[kOperands]) const {
    for (int i = 0; i < kOperands; ++i) offset[i] = 0;
    for (int d = rank - 1; d >= 0; --d) {
      // Uses 32 bits if they suffice: 64-bit division is slow on the device.
      const int64_t next = index >> 32 == 0 && dim[d] >> 32 == 0
                               ? static_cast<uint32_t>(index) / static_cast<uint32_t>(dim[d])
                               : index / dim[d];
      const int64_t at = index - next * dim[d];
      index = next;
      for (int i = 0; i < kOperands; ++i) offset[i] += at * stride[i][d];
    }
  }
};

}  // namespace penstock
