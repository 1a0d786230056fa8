// SPDX-License-Identifier: Apache-2.0
//
// Matrix products on the GPU: by cuBLAS, and by a simple kernel for integers, which cuBLAS does not
// support.
#include <cublas_v2.h>

#include <complex>

#include "core/op/cuda_handles.h"
#include "core/op/registry.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/cuda_launch.cuh"
#include "kernels/math/matmul.h"

namespace penstock {
namespace {

template <class T>
struct CublasType;
template <>
struct CublasType<half> {
  static constexpr cudaDataType_t kData = CUDA_R_16F;
  static constexpr cublasComputeType_t kCompute = CUBLAS_COMPUTE_32F;
  using Scale = float;
};
template <>
struct CublasType<bfloat16> {
  static constexpr cudaDataType_t kData = CUDA_R_16BF;
  static constexpr cublasComputeType_t kCompute = CUBLAS_COMPUTE_32F;
  using Scale = float;
};
template <>
struct CublasType<float> {
  static constexpr cudaDataType_t kData = CUDA_R_32F;
  static constexpr cublasComputeType_t kCompute = CUBLAS_COMPUTE_32F;
  using Scale = float;
};
template <>
struct CublasType<double> {
  static constexpr cudaDataType_t kData = CUDA_R_64F;
  static constexpr cublasComputeType_t kCompute = CUBLAS_COMPUTE_64F;
  using Scale = double;
};
template <>
struct CublasType<std::complex<float>> {
  static constexpr cudaDataType_t kData = CUDA_C_32F;
  static constexpr cublasComputeType_t kCompute = CUBLAS_COMPUTE_32F;
  using Scale = std::complex<float>;
};
template <>
struct CublasType<std::complex<double>> {
  static constexpr cudaDataType_t kData = CUDA_C_64F;
  static constexpr cublasComputeType_t kCompute = CUBLAS_COMPUTE_64F;
  using Scale = std::complex<double>;
};

cublasOperation_t Operation(Side side) {
  return side == Side::kPlain ? CUBLAS_OP_N : side == Side::kTransposed ? CUBLAS_OP_T : CUBLAS_OP_C;
}

// Returns the distance between the matrices of a batch if it is constant, else -1.
int64_t UniformStep(const std::vector<int64_t>& matrices) {
  if (matrices.size() < 2) return 0;
  const int64_t step = matrices[1] - matrices[0];
  for (size_t i = 2; i < matrices.size(); ++i) {
    if (matrices[i] - matrices[i - 1] != step) return -1;
  }
  return step;
}

// Computes `count` products at constant distances. cuBLAS is column-major and sees the transposes
// of row-major matrices, so this function computes c' = b' a'.
template <class T>
Status MultiplyRun(cublasHandle_t cublas, const Product& p, const T* a, int64_t a_step, const T* b,
                   int64_t b_step, T* c, int64_t count) {
  using Type = CublasType<T>;
  const typename Type::Scale one(1), zero(0);
  const int lda = static_cast<int>(p.a == Side::kPlain ? p.k : p.m);
  const int ldb = static_cast<int>(p.b == Side::kPlain ? p.n : p.k);
  const cublasStatus_t status = cublasGemmStridedBatchedEx(
      cublas, Operation(p.b), Operation(p.a), static_cast<int>(p.n), static_cast<int>(p.m),
      static_cast<int>(p.k), &one, b, Type::kData, ldb, b_step * p.k * p.n, a, Type::kData, lda,
      a_step * p.m * p.k, &zero, c, Type::kData, static_cast<int>(p.n), p.m * p.n,
      static_cast<int>(count), Type::kCompute, CUBLAS_GEMM_DEFAULT);
  if (status == CUBLAS_STATUS_SUCCESS) return OkStatus();
  return Internal("cuBLAS: ", cublasGetStatusString(status));
}

template <class T>
Status MultiplyFloating(KernelContext& ctx, const Product& p, const MatrixPairs& pairs, const T* a,
                        const T* b, T* c) {
  const auto* handles = static_cast<const CudaHandles*>(ctx.device_handles());
  if (handles == nullptr || handles->blas == nullptr) {
    return FailedPrecondition("device ", ctx.device_name(), " lends no cuBLAS handle");
  }
  const cublasHandle_t cublas = handles->blas;
  const int64_t count = static_cast<int64_t>(pairs.a.size());
  const int64_t a_step = UniformStep(pairs.a), b_step = UniformStep(pairs.b);
  if (a_step >= 0 && b_step >= 0) {
    return MultiplyRun(cublas, p, a, a_step, b, b_step, c, count);
  }
  for (int64_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(MultiplyRun(cublas, p, a + pairs.a[i] * p.m * p.k, 0,
                                b + pairs.b[i] * p.k * p.n, 0, c + i * p.m * p.n, 1));
  }
  return OkStatus();
}

template <class T>
__global__ void MultiplyOnDevice(Product p, const T* a, const T* b, T* c) {
  using W = Wrapping<T>;
  FOR_EACH_ON_DEVICE(i, p.m * p.n) {
    const int64_t row = i / p.n, column = i % p.n;
    W sum = 0;
    for (int64_t l = 0; l < p.k; ++l) {
      const T x = p.a == Side::kPlain ? a[row * p.k + l] : a[l * p.m + row];
      const T y = p.b == Side::kPlain ? b[l * p.n + column] : b[column * p.k + l];
      sum += static_cast<W>(x) * static_cast<W>(y);
    }
    c[i] = static_cast<T>(sum);
  }
}

template <class T>
Status MultiplyIntegers(KernelContext& ctx, const Product& p, const MatrixPairs& pairs, const T* a,
                        const T* b, T* c) {
  for (size_t i = 0; i < pairs.a.size(); ++i) {
    MultiplyOnDevice<<<GridFor(p.m * p.n), kThreadsPerBlock, 0, CudaStream(ctx.stream())>>>(
        p, a + pairs.a[i] * p.m * p.k, b + pairs.b[i] * p.k * p.n, c + i * p.m * p.n);
  }
  return LaunchStatus();
}

template <class T>
Status MultiplyOnGpu(KernelContext& ctx, const Product& product, const MatrixPairs& pairs,
                     const Tensor& a, const Tensor& b, Tensor* c) {
  T* to = c->mutable_data<T>();
  if (product.k == 0) {
    cudaMemsetAsync(to, 0, c->bytes(), CudaStream(ctx.stream()));
    return LaunchStatus();
  }
  if constexpr (std::is_integral_v<T>) {
    return MultiplyIntegers(ctx, product, pairs, a.data<T>(), b.data<T>(), to);
  } else {
    return MultiplyFloating(ctx, product, pairs, a.data<T>(), b.data<T>(), to);
  }
}

template <class T>
using MatMulOnGpu = MatMulOf<MultiplyOnGpu<T>>;
template <class T>
using BatchMatMulOnGpu = BatchMatMulOf<MultiplyOnGpu<T>, false>;
template <class T>
using BatchMatMulV2OnGpu = BatchMatMulOf<MultiplyOnGpu<T>, true>;

}  // namespace

KERNEL(MatMul, MatMulOnGpu, FLOATING_TYPES, int32_t, int64_t, COMPLEX_TYPES);
KERNEL(BatchMatMul, BatchMatMulOnGpu, FLOATING_TYPES, int16_t, int32_t, int64_t, COMPLEX_TYPES);
KERNEL(BatchMatMulV2, BatchMatMulV2OnGpu, FLOATING_TYPES, int16_t, int32_t, int64_t, COMPLEX_TYPES);

}  // namespace penstock
