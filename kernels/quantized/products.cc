// SPDX-License-Identifier: Apache-2.0
//
// QuantizedMatMul and QuantizedConv2D: add up products of 8-bit integers exactly, in 32 bits.
#include <vector>

#include "core/op/flops.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/math/gemm.h"
#include "kernels/math/matmul.h"
#include "kernels/nn/conv_geometry.h"
#include "kernels/quantized/quantization.h"

namespace penstock {
namespace {

// Returns the distance of each integer from the integer that stands for zero. InvalidArgument if
// zero is so far from the range that sums of products might overflow 32 bits.
StatusOr<Tensor> DistancesFromZero(KernelContext& ctx, const Tensor& x, QuantizedRange range,
                                   const char* what) {
  const int64_t zero = QuantizeUnclamped<quint8>(0, range);
  constexpr int64_t kDistanceMax = 1 << 20;
  if (zero < -kDistanceMax || zero > kDistanceMax) {
    return InvalidArgument("the range of ", what, ", [", range.min, ", ", range.max,
                           "], is too far from zero");
  }
  ASSIGN_OR_RETURN(Tensor distances, ctx.Temporary(DType::kInt32, x.shape()));
  const quint8* from = x.data<quint8>();
  int32_t* to = distances.mutable_data<int32_t>();
  for (int64_t i = 0; i < x.num_elements(); ++i) to[i] = from[i].value - static_cast<int32_t>(zero);
  return distances;
}

class QuantizedMatMulKernel final : public TwoMatrixKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Product product, ProductOf(ctx));
    ASSIGN_OR_RETURN(const QuantizedRange a_range, RangeInput(ctx, 2, "a"));
    ASSIGN_OR_RETURN(const QuantizedRange b_range, RangeInput(ctx, 4, "b"));
    if (a_range.min == a_range.max || b_range.min == b_range.max) {
      return InvalidArgument("expected min_a < max_a and min_b < max_b, are ", a_range.min, ", ",
                             a_range.max, ", ", b_range.min, ", ", b_range.max);
    }
    ASSIGN_OR_RETURN(const Tensor left, DistancesFromZero(ctx, ctx.input(0), a_range, "a"));
    ASSIGN_OR_RETURN(const Tensor right, DistancesFromZero(ctx, ctx.input(1), b_range, "b"));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({product.m, product.n}), &out));
    Multiply(ctx.threads(), product, left.data<int32_t>(), right.data<int32_t>(),
             static_cast<int32_t*>(out->mutable_raw_data()));
    return SetRangeOutputs(ctx, 1, ProductRange<quint8, quint8>(a_range, b_range));
  }
};

class QuantizedConvKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    ASSIGN_OR_RETURN(window_, WindowAttrs::From(node.attrs));
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const ConvGeometry geometry,
                     ConvGeometry::Of(window_, ctx.input(0).shape(), ctx.input(1).shape()));
    if (geometry.groups != 1) {
      return InvalidArgument("filter must have the ", geometry.in_channels,
                             " channels of input, has shape ", ctx.input(1).shape().ToString());
    }
    ASSIGN_OR_RETURN(const QuantizedRange image_range, RangeInput(ctx, 2, "input"));
    ASSIGN_OR_RETURN(const QuantizedRange filter_range, RangeInput(ctx, 4, "filter"));
    ASSIGN_OR_RETURN(const Tensor image,
                     DistancesFromZero(ctx, ctx.input(0), image_range, "input"));
    ASSIGN_OR_RETURN(const Tensor filter,
                     DistancesFromZero(ctx, ctx.input(1), filter_range, "filter"));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, geometry.output(), &output));
    UnrolledForward(geometry, image.data<int32_t>(), filter.data<int32_t>(),
                    static_cast<int32_t*>(output->mutable_raw_data()), ctx.threads());
    return SetRangeOutputs(ctx, 1, ProductRange<quint8, quint8>(image_range, filter_range));
  }

 private:
  WindowAttrs window_;
};

Status MatMulShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape a, s.WithRank(0, 2));
  ASSIGN_OR_RETURN(const PartialShape b, s.WithRank(1, 2));
  const auto dim = [](const PartialShape& shape, int i) {
    return shape.known_rank() ? shape.dim(i) : PartialShape::kUnknown;
  };
  s.set_output(0, PartialShape({dim(a, s.attr<bool>("transpose_a") ? 1 : 0),
                                dim(b, s.attr<bool>("transpose_b") ? 0 : 1)}));
  for (int i : {1, 2}) s.set_output(i, PartialShape::Scalar());
  return OkStatus();
}

Status ConvShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape image, s.WithRank(0, 4));
  ASSIGN_OR_RETURN(const PartialShape filter, s.WithRank(1, 4));
  ASSIGN_OR_RETURN(const WindowAttrs window, WindowAttrs::From(s.attrs()));
  Dims dims(4, PartialShape::kUnknown);
  if (image.known_rank()) dims[0] = image.dim(0);
  if (filter.known_rank()) dims[3] = filter.dim(3);
  for (int i : {1, 2}) {
    if (!image.known_rank() || !filter.known_rank()) break;
    ASSIGN_OR_RETURN(dims[i], WindowOutput(window, i, image.dim(i), filter.dim(i - 1)));
  }
  s.set_output(0, PartialShape(dims));
  for (int i : {1, 2}) s.set_output(i, PartialShape::Scalar());
  return OkStatus();
}

const std::vector<ExampleTensor> kMin = {{{}, {-1}}}, kMax = {{{}, {1.5}}};

}  // namespace

OP(QuantizedMatMul) {
  const Attrs types = {{"T1", DType::kQuint8},
                       {"T2", DType::kQuint8},
                       {"Toutput", DType::kQint32},
                       {"Tactivation", DType::kQuint8}};
  return {
      .doc =
          "Multiplies two matrices of quantized integers, and returns the range that the "
          "32-bit sums of such products stand for.",
      .inputs = {{"a", "T1"},
                 {"b", "T2"},
                 {"min_a", "float"},
                 {"max_a", "float"},
                 {"min_b", "float"},
                 {"max_b", "float"}},
      .outputs = {{"out", "Toutput"}, {"min_out", "float"}, {"max_out", "float"}},
      .types = {{"T1", kQuantized},
                {"T2", kQuantized},
                {"Toutput", kQuantized, DType::kQint32},
                {"Tactivation", kQuantized, DType::kQuint8}},
      .attrs = {{"transpose_a", false}, {"transpose_b", false}},
      .shape = MatMulShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{3, 4}}}, kMin, kMax, kMin, kMax}, .attrs = types}},
      .flops = MatMulFlops,
  };
}
KERNEL_DEF({.op = "QuantizedMatMul",
            .types = {{"T1", DType::kQuint8}, {"T2", DType::kQuint8}, {"Toutput", DType::kQint32}},
            .make = Make<QuantizedMatMulKernel>});

OP(QuantizedConv2D) {
  return {
      .doc =
          "Convolves quantized images with a quantized filter. Padding counts as the number "
          "zero.",
      .inputs = {{"input", "Tinput"},
                 {"filter", "Tfilter"},
                 {"min_input", "float"},
                 {"max_input", "float"},
                 {"min_filter", "float"},
                 {"max_filter", "float"}},
      .outputs = {{"output", "out_type"}, {"min_output", "float"}, {"max_output", "float"}},
      .types = {{"Tinput", kQuantized},
                {"Tfilter", kQuantized},
                {"out_type", kQuantized, DType::kQint32}},
      .attrs = {{"strides", IntList{}},
                {"padding", OneOf{{"SAME", "VALID"}}},
                {"dilations", IntList{}, std::vector<int64_t>{1, 1, 1, 1}}},
      .shape = ConvShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{1, 4, 4, 2}}}, {{{2, 2, 2, 3}}}, kMin, kMax, kMin, kMax},
                    .attrs = {{"Tinput", DType::kQuint8},
                              {"Tfilter", DType::kQuint8},
                              {"out_type", DType::kQint32},
                              {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                              {"padding", "SAME"}}}},
      .flops = ConvolutionFlops,
  };
}
KERNEL_DEF({.op = "QuantizedConv2D",
            .types = {{"Tinput", DType::kQuint8},
                      {"Tfilter", DType::kQuint8},
                      {"out_type", DType::kQint32}},
            .make = Make<QuantizedConvKernel>});

}  // namespace penstock
