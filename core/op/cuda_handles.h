// SPDX-License-Identifier: Apache-2.0
//
// CudaHandles: what a CUDA device lends its kernels besides its stream, through
// KernelContext::device_handles(). Bound to the device's stream; kernels change no setting of them,
// so that all threads may use them at once.
#pragma once

struct cublasContext;

namespace penstock {

struct CudaHandles {
  cublasContext* blas = nullptr;  // a cublasHandle_t
};

}  // namespace penstock
