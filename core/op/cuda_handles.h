// SPDX-License-Identifier: Apache-2.0
//
// CudaHandles: library handles of a CUDA device that kernels get through
// KernelContext::device_handles(). They launch their work on the device's stream. Kernels must not
// change their settings, because all threads use them at once.
#pragma once

struct cublasContext;

namespace penstock {

struct CudaHandles {
  cublasContext* blas = nullptr;  // a cublasHandle_t
};

}  // namespace penstock
