// SPDX-License-Identifier: Apache-2.0
//
// QuantizedConcat: joins quantized tensors along one dimension, in a range that contains the ranges
// of all.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/quantized/quantization.h"

namespace penstock {
namespace {

// The inputs are the dimension, N tensors, and the N lower and N upper ends of their ranges.
struct ConcatParts {
  int count = 0;
  int64_t outer = 1, inner = 1;  // elements before and after the dimension
  Shape shape;

  int64_t RowOf(const Tensor& part, int dim) const { return part.dim(dim) * inner; }
  static StatusOr<ConcatParts> From(const KernelContext& ctx, int* dim) {
    ConcatParts p{.count = (ctx.num_inputs() - 1) / 3};
    const Shape& first = ctx.input(1).shape();
    ASSIGN_OR_RETURN(const int64_t wanted, IntScalar(ctx.input(0), "concat_dim"));
    if (wanted < 0 || wanted >= first.rank()) {
      return InvalidArgument("ConcatOp : Expected concatenating dimensions in the range [0, ",
                             first.rank(), "), but got ", wanted);
    }
    *dim = static_cast<int>(wanted);
    Dims dims(first.dims().begin(), first.dims().end());
    for (int i = 1; i < p.count; ++i) {
      const Shape& shape = ctx.input(1 + i).shape();
      bool fits = shape.rank() == first.rank();
      for (int d = 0; fits && d < first.rank(); ++d) {
        fits = d == *dim || shape.dim(d) == first.dim(d);
      }
      if (!fits) {
        return InvalidArgument("ConcatOp : Dimensions of inputs should match: shape[0] = ",
                               first.ToString(), " vs. shape[", i, "] = ", shape.ToString());
      }
      dims[*dim] = AddDims(dims[*dim], shape.dim(*dim));
    }
    ASSIGN_OR_RETURN(p.shape, Shape::Make(dims));
    for (int d = 0; d < first.rank(); ++d) {
      if (d != *dim) (d < *dim ? p.outer : p.inner) *= first.dim(d);
    }
    return p;
  }
};

// Returns the range of input `i` of `count`.
StatusOr<QuantizedRange> RangeOfPart(const KernelContext& ctx, int i, int count) {
  const Tensor &lower = ctx.input(1 + count + i), &upper = ctx.input(1 + 2 * count + i);
  if (lower.num_elements() != 1 || upper.num_elements() != 1) {
    return InvalidArgument("the range of value ", i, " must be two scalars, has shapes ",
                           lower.shape().ToString(), " and ", upper.shape().ToString());
  }
  const QuantizedRange range = {lower.scalar<float>(), upper.scalar<float>()};
  if (std::isfinite(range.min) && std::isfinite(range.max) && range.min <= range.max) return range;
  return InvalidArgument("the range of value ", i, " must be finite with min <= max, is [",
                         range.min, ", ", range.max, "]");
}

template <class Q>
class QuantizedConcatKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    int dim = 0;
    ASSIGN_OR_RETURN(const ConcatParts parts, ConcatParts::From(ctx, &dim));
    std::vector<QuantizedRange> ranges;
    QuantizedRange all;
    for (int i = 0; i < parts.count; ++i) {
      ASSIGN_OR_RETURN(const QuantizedRange range, RangeOfPart(ctx, i, parts.count));
      all = i == 0 ? range
                   : QuantizedRange{std::min(all.min, range.min), std::max(all.max, range.max)};
      ranges.push_back(range);
    }
    if (Levels<Q>::kSigned) {
      const float largest = std::max(std::abs(all.min), std::abs(all.max));
      all = {-largest, largest};
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, parts.shape, &output));
    if (parts.shape.num_elements() > 0) {
      Q* to = output->mutable_data<Q>();
      const int64_t row = parts.RowOf(*output, dim);
      for (int i = 0; i < parts.count; ++i) {
        const Tensor& part = ctx.input(1 + i);
        const int64_t own = parts.RowOf(part, dim);
        Copy(ctx, part.data<Q>(), ranges[i], all, {parts.outer, own, row}, to);
        to += own;
      }
    }
    return SetRangeOutputs(ctx, 1, all);
  }

  struct Rows {
    int64_t count, elements, stride;
  };

  // Copies rows to every `stride` elements of `to`; converts them if the ranges differ.
  static void Copy(KernelContext& ctx, const Q* from, QuantizedRange own, QuantizedRange all,
                   Rows rows, Q* to) {
    const bool same = own.min == all.min && own.max == all.max;
    const MinFirstDequantizer<Q> dequantize(own);
    const MinFirstQuantizer<Q> quantize(all);
    ctx.threads().ParallelFor(rows.count, 3.0 * static_cast<double>(rows.elements),
                              [&](int64_t begin, int64_t end) {
                                for (int64_t r = begin; r < end; ++r) {
                                  const Q* const x = from + r * rows.elements;
                                  Q* const y = to + r * rows.stride;
                                  for (int64_t k = 0; k < rows.elements; ++k) {
                                    y[k] = same ? x[k] : quantize(dequantize(x[k]));
                                  }
                                }
                              });
  }
};

Status QuantizedConcatShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  const PartialShape& first = s.input(1);
  const int count = (s.num_inputs() - 1) / 3;
  for (int i : {1, 2}) s.set_output(i, PartialShape::Scalar());
  if (!first.known_rank()) return OkStatus();
  std::vector<int64_t> dim;
  PartialShape out = PartialShape::UnknownOfRank(first.rank());
  if (s.ConstantInts(0, &dim) && dim.size() == 1 && dim[0] >= 0 && dim[0] < first.rank()) {
    out = first;
    for (int i = 1; i < count; ++i) {
      const PartialShape& part = s.input(1 + i);
      const bool known = part.rank() == first.rank();
      const int d = static_cast<int>(dim[0]);
      out.set_dim(d, AddDims(out.dim(d), known ? part.dim(d) : PartialShape::kUnknown));
    }
  }
  s.set_output(0, std::move(out));
  return OkStatus();
}

}  // namespace

OP(QuantizedConcat) {
  OpDef op = {
      .doc =
          "Joins quantized tensors along dimension concat_dim. The output's range contains the "
          "ranges of all.",
      .inputs = {{"concat_dim", "int32"},
                 {"values", Repeat("N", "T")},
                 {"input_mins", Repeat("N", "float")},
                 {"input_maxes", Repeat("N", "float")}},
      .outputs = {{"output", "T"}, {"output_min", "float"}, {"output_max", "float"}},
      .types = {{"T", kAllTypes}},
      .attrs = {{"N", Ints{.min = 2}}},
      .shape = QuantizedConcatShape,
      .gradient = NoGradient,
  };
  for (DType type : {DType::kQuint8, DType::kQint32}) {
    op.examples.push_back({.inputs = {{{.values = {1}}},
                                      {{{2, 2}}, {{2, 3}}},
                                      {{{}, {-1}}, {{}, {0}}},
                                      {{{}, {1}}, {{}, {3}}}},
                           .attrs = {{"T", type}}});
  }
  return op;
}
KERNEL(QuantizedConcat, QuantizedConcatKernel, quint8, qint32);

}  // namespace penstock
