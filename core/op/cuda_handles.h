// SPDX-License-Identifier: Apache-2.0
//
// CudaHandles: library handles of a CUDA device that kernels get through
// KernelContext::device_handles(). Library calls with a handle launch their work on the device's
// stream. Kernels must not change a handle's settings, because all threads share the handles.
#pragma once

struct cublasContext;

namespace penstock {

struct CudaHandles {
  cublasContext* blas = nullptr;  // a cublasHandle_t
};

}  // namespace penstock
