// SPDX-License-Identifier: Apache-2.0
//
// The device code of elementwise.h: runs the same functors in CUDA kernels.
#pragma once

#include "kernels/engine/cuda_launch.cuh"

namespace penstock {

template <class Fn, class T, class X, class Y>
__global__ void UnaryOnDevice(const X* x, Y* y, int64_t n) {
  FOR_EACH_ON_DEVICE(i, n) y[i] = static_cast<Y>(Fn()(static_cast<T>(x[i])));
}

// An operand's stride is 0 if it is a scalar, 1 if it has the shape of the result.
template <class Fn, class T, class X, class Z>
__global__ void BinaryOnDevice(const X* x, int x_stride, const X* y, int y_stride, Z* z,
                               int64_t n) {
  FOR_EACH_ON_DEVICE(i, n) {
    z[i] = static_cast<Z>(Fn()(static_cast<T>(x[i * x_stride]), static_cast<T>(y[i * y_stride])));
  }
}

template <class Fn, class T, class X, class Z>
__global__ void BroadcastOnDevice(DeviceBroadcast plan, const X* x, const X* y, Z* z, int64_t n) {
  FOR_EACH_ON_DEVICE(i, n) {
    int64_t at[2];
    plan.Locate(i, at);
    z[i] = static_cast<Z>(Fn()(static_cast<T>(x[at[0]]), static_cast<T>(y[at[1]])));
  }
}

template <class Fn, class T>
Status LaunchUnary(void* stream, const void* x, void* y, int64_t n) {
  using L = LoopType<T>;
  using X = DeviceElement<T>;
  using Y = DeviceElement<ElementType<T, decltype(Fn()(L()))>>;
  UnaryOnDevice<Fn, L, X, Y><<<GridFor(n), kThreadsPerBlock, 0, CudaStream(stream)>>>(
      static_cast<const X*>(x), static_cast<Y*>(y), n);
  return LaunchStatus();
}

template <class Fn, class T>
Status LaunchBinary(void* stream, const BroadcastPlan& plan, const void* x, const void* y,
                    void* z) {
  using L = LoopType<T>;
  using X = DeviceElement<T>;
  using Z = DeviceElement<ElementType<T, decltype(Fn()(L(), L()))>>;
  const X* left = static_cast<const X*>(x);
  const X* right = static_cast<const X*>(y);
  const int64_t n = plan.output().num_elements();
  if (plan.rank() <= 1) {
    const int x_stride = plan.rank() == 0 ? 0 : static_cast<int>(plan.stride(0, 0));
    const int y_stride = plan.rank() == 0 ? 0 : static_cast<int>(plan.stride(1, 0));
    BinaryOnDevice<Fn, L><<<GridFor(n), kThreadsPerBlock, 0, CudaStream(stream)>>>(
        left, x_stride, right, y_stride, static_cast<Z*>(z), n);
    return LaunchStatus();
  }
  ASSIGN_OR_RETURN(const DeviceBroadcast device, DeviceBroadcast::Make(plan));
  BroadcastOnDevice<Fn, L><<<GridFor(n), kThreadsPerBlock, 0, CudaStream(stream)>>>(
      device, left, right, static_cast<Z*>(z), n);
  return LaunchStatus();
}

template <class Fn, class T>
constexpr void SetLoops(UnaryLoop* loop) {
  loop->launch = LaunchUnary<Fn, T>;
}

// `invalid` stays null, because the CPU cannot read an operand in device memory.
template <class Fn, class T>
constexpr void SetLoops(BinaryLoop* loop) {
  loop->launch = LaunchBinary<Fn, T>;
}

}  // namespace penstock
