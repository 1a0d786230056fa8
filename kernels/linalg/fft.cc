// SPDX-License-Identifier: Apache-2.0
//
// FFT, IFFT over the last one, two or three dimensions; also under their old Batch names.
#include "kernels/linalg/fft.h"

#include <algorithm>

#include "core/op/shape_scope.h"

namespace penstock {
namespace {

template <int kRank, FftDirection kDirection, class T>
class FftKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    RETURN_IF_ERROR(CheckFftRank(input, kRank));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
    if (input.num_elements() == 0) return OkStatus();
    std::copy_n(input.data<T>(), input.num_elements(), output->mutable_data<T>());
    for (int axis = input.rank() - kRank; axis < input.rank(); ++axis) {
      Transform(ctx.threads(), kDirection, input.shape().dims(), axis, output->mutable_data<T>());
    }
    return OkStatus();
  }
};

template <int kRank>
Status FftShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, s.WithRankAtLeast(0, kRank));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

Gradients FftGradient(const GradientScope& g, int rank, FftDirection direction) {
  const Output n = FftSize(LastSizes(g.x(), rank), g.dtype());
  if (direction == FftDirection::kForward) return {Call(FftName("IFFT", rank), {g.dy()}) * n};
  return {Call(FftName("FFT", rank), {g.dy()}) / n};
}

template <int kRank, FftDirection kDirection>
OpDef FftOp(bool batch_name) {
  OpDef op = {
      .doc = StrCat("The ", kDirection == FftDirection::kForward ? "" : "inverse ",
                    "discrete Fourier transform over the last ", kRank, " dimension(s)."),
      .inputs = {{"input", "Tcomplex"}},
      .outputs = {{"output", "Tcomplex"}},
      .types = {{"Tcomplex", kComplexTypes, DType::kComplex64}},
      .shape = FftShape<kRank>,
      .gradient = [](const GradientScope& g) { return FftGradient(g, kRank, kDirection); },
      .examples = {{.inputs = {{{{2, 3, 2, 2}}}}}, {.inputs = {{{{3, 4, 5}}}}}},
  };
  if (batch_name) {  // complex64 only
    op.inputs = {{"input", "complex64"}};
    op.outputs = {{"output", "complex64"}};
    op.types = {};
  }
  return op;
}

}  // namespace

#define COMPLEX_FFT(suffix, rank)                                                                \
  template <class T>                                                                             \
  using Forward##rank = FftKernel<rank, FftDirection::kForward, T>;                              \
  template <class T>                                                                             \
  using Inverse##rank = FftKernel<rank, FftDirection::kInverse, T>;                              \
  OP(FFT##suffix) { return FftOp<rank, FftDirection::kForward>(false); }                         \
  OP(IFFT##suffix) { return FftOp<rank, FftDirection::kInverse>(false); }                        \
  OP(BatchFFT##suffix) { return FftOp<rank, FftDirection::kForward>(true); }                     \
  OP(BatchIFFT##suffix) { return FftOp<rank, FftDirection::kInverse>(true); }                    \
  KERNEL_BY("Tcomplex", FFT##suffix, Forward##rank, std::complex<float>, std::complex<double>);  \
  KERNEL_BY("Tcomplex", IFFT##suffix, Inverse##rank, std::complex<float>, std::complex<double>); \
  KERNEL_ANY_TYPE(BatchFFT##suffix, Forward##rank<std::complex<float>>);                         \
  KERNEL_ANY_TYPE(BatchIFFT##suffix, Inverse##rank<std::complex<float>>)

COMPLEX_FFT(, 1);
COMPLEX_FFT(2D, 2);
COMPLEX_FFT(3D, 3);

}  // namespace penstock
