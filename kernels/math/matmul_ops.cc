// SPDX-License-Identifier: Apache-2.0
//
// MatMul, BatchMatMul, BatchMatMulV2, BatchMatMulV3 and their CPU kernels.
#include <complex>

#include "core/op/flops.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/broadcast.h"
#include "kernels/math/cast.h"
#include "kernels/math/forms.h"
#include "kernels/math/matmul_cpu.h"

namespace penstock {
namespace {

#define MATRIX_TYPES FLOATING_TYPES, int16_t, int32_t, int64_t, COMPLEX_TYPES

#define SIDE_TYPES MATRIX_TYPES, uint8_t, int8_t

template <class To, class From>
bool ConvertFrom(const Tensor& x, Tensor* to) {
  if (x.dtype() != kDTypeOf<From>) return false;
  const From* const from = x.data<From>();
  To* const out = to->mutable_data<To>();
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    out[i] = To(CastTo<LoopType<To>>(static_cast<LoopType<From>>(from[i])));
  }
  return true;
}

template <class To, class... From>
StatusOr<Tensor> ConvertedFrom(KernelContext& ctx, const Tensor& x) {
  if (x.dtype() == kDTypeOf<To>) return x;
  ASSIGN_OR_RETURN(Tensor converted, ctx.Temporary(kDTypeOf<To>, x.shape()));
  if ((ConvertFrom<To, From>(x, &converted) || ...)) return converted;
  return InvalidArgument("no products of ", Name(x.dtype()));
}

template <class T>
Status ConvertAndMultiply(KernelContext& ctx, const Product& product, const MatrixPairs& pairs,
                          const Tensor& a, const Tensor& b, Tensor* c) {
  ASSIGN_OR_RETURN(const Tensor left, (ConvertedFrom<T, SIDE_TYPES>(ctx, a)));
  ASSIGN_OR_RETURN(const Tensor right, (ConvertedFrom<T, SIDE_TYPES>(ctx, b)));
  return MultiplyOnCpu<T>(ctx, product, pairs, left, right, c);
}

template <class T>
using BatchMatMulV3OnCpu = BatchMatMulOf<ConvertAndMultiply<T>, true>;
template <class T>
using MatMulOnCpu = MatMulOf<MultiplyOnCpu<T>>;
template <class T>
using BatchMatMulOnCpu = BatchMatMulOf<MultiplyOnCpu<T>, false>;
template <class T>
using BatchMatMulV2OnCpu = BatchMatMulOf<MultiplyOnCpu<T>, true>;

// Sets the dimensions m x n of one product from the last two dimensions of each operand; -1:
// unknown. InvalidArgument if the inner dimensions differ.
Status ProductDims(const PartialShape& a, const PartialShape& b, bool turn_a, bool turn_b,
                   int64_t* m, int64_t* n) {
  const auto dim = [](const PartialShape& s, bool last) {
    return s.dim(s.rank() - (last ? 1 : 2));
  };
  const int64_t k_a = dim(a, !turn_a), k_b = dim(b, turn_b);
  if (k_a >= 0 && k_b >= 0 && k_a != k_b) {
    return InvalidArgument("inner dimensions ", k_a, " and ", k_b, " must be equal; shapes ",
                           a.ToString(), " and ", b.ToString());
  }
  *m = dim(a, turn_a);
  *n = dim(b, !turn_b);
  return OkStatus();
}

Status MatMulShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape a, s.WithRank(0, 2));
  ASSIGN_OR_RETURN(const PartialShape b, s.WithRank(1, 2));
  int64_t m, n;
  RETURN_IF_ERROR(
      ProductDims(a, b, s.attr<bool>("transpose_a"), s.attr<bool>("transpose_b"), &m, &n));
  s.set_output(0, PartialShape{m, n});
  return OkStatus();
}

template <bool kBroadcasts>
Status BatchMatMulShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape a, s.WithRankAtLeast(0, 2));
  ASSIGN_OR_RETURN(const PartialShape b, s.WithRankAtLeast(1, 2));
  if (!a.known_rank() || !b.known_rank()) return UnknownShape(s);
  int64_t m, n;
  RETURN_IF_ERROR(ProductDims(a, b, s.attr<bool>("adj_x"), s.attr<bool>("adj_y"), &m, &n));
  const PartialShape a_batch(a.dims().subspan(0, a.rank() - 2));
  const PartialShape b_batch(b.dims().subspan(0, b.rank() - 2));
  ASSIGN_OR_RETURN(PartialShape shape,
                   kBroadcasts ? Broadcast(a_batch, b_batch) : a_batch.Merge(b_batch));
  shape.AddDim(m);
  shape.AddDim(n);
  s.set_output(0, std::move(shape));
  return OkStatus();
}

Gradients MatMulGradient(const GradientScope& g) {
  const Output a = Conj(g.x(0)), b = Conj(g.x(1)), dy = g.dy();
  const bool ta = g.attr<bool>("transpose_a"), tb = g.attr<bool>("transpose_b");
  return {ta ? MatMul(b, dy, tb, true) : MatMul(dy, b, false, !tb),
          tb ? MatMul(dy, a, true, ta) : MatMul(a, dy, !ta, false)};
}

Gradients BatchMatMulGradient(const GradientScope& g, const char* op) {
  const Output a = g.x(0), b = g.x(1), dy = g.dy();
  const bool ta = g.attr<bool>("adj_x"), tb = g.attr<bool>("adj_y");
  const auto multiply = [&](Output x, Output y, bool adj_x, bool adj_y, DType type) {
    Attrs attrs = {{"adj_x", adj_x}, {"adj_y", adj_y}};
    if (g.attrs().contains("Tout")) attrs["Tout"] = type;
    return Call(op, {x, y}, attrs);
  };
  return {ta ? multiply(b, dy, tb, true, a.dtype()) : multiply(dy, b, false, !tb, a.dtype()),
          tb ? multiply(dy, a, true, ta, b.dtype()) : multiply(a, dy, !ta, false, b.dtype())};
}

// Like MatMulGradient, for batches that broadcast.
Gradients BroadcastMatMulGradient(const GradientScope& g, const char* op) {
  const Gradients d = BatchMatMulGradient(g, op);
  return {SumToShapeOf(d[0].values, g.x(0)), SumToShapeOf(d[1].values, g.x(1))};
}

OpDef BatchMatMulOp(const char* doc, ShapeFn shape, GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = {{"x", "T"}, {"y", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", TypesOf<MATRIX_TYPES>()}},
      .attrs = {{"adj_x", AttrValue(false)}, {"adj_y", AttrValue(false)}},
      .shape = std::move(shape),
      .gradient = std::move(gradient),
      .examples = {{.inputs = {{{{2, 3, 4}}}, {{{2, 4, 2}}}}},
                   {.inputs = {{{{2, 4, 3}}}, {{{2, 2, 4}}}},
                    .attrs = {{"adj_x", true}, {"adj_y", true}}}},
      .flops = MatMulFlops,
  };
}

// Defines the op whose operands may have any types. They are converted to the output's type.
OpDef BatchMatMulV3Op() {
  OpDef op = BatchMatMulOp("BatchMatMulV2 whose operands and output may have different types.",
                           BatchMatMulShape<true>, [](const GradientScope& g) -> Gradients {
                             return BroadcastMatMulGradient(g, "BatchMatMulV3");
                           });
  op.inputs = {{"x", "Ta"}, {"y", "Tb"}};
  op.outputs = {{"output", "Tout"}};
  const DTypes sides = TypesOf<SIDE_TYPES>();
  op.types = {{"Ta", sides}, {"Tb", sides}, {"Tout", TypesOf<MATRIX_TYPES>()}};
  for (const char* flag : {"grad_x", "grad_y"}) op.attrs.emplace_back(flag, AttrValue(false));
  const DType type = DType::kDouble;
  op.examples.push_back({.inputs = {{{{2, 1, 2, 3}}}, {{{3, 3, 2}}}},
                         .attrs = {{"Ta", type}, {"Tb", type}, {"Tout", type}}});
  return op;
}

}  // namespace

OP(MatMul) {
  return {
      .doc = "Multiplies two matrices; transpose_a and transpose_b transpose an operand first.",
      .inputs = {{"a", "T"}, {"b", "T"}},
      .outputs = {{"product", "T"}},
      .types = {{"T", TypesOf<FLOATING_TYPES, int32_t, int64_t, COMPLEX_TYPES>()}},
      .attrs = {{"transpose_a", AttrValue(false)}, {"transpose_b", AttrValue(false)}},
      .shape = MatMulShape,
      .gradient = MatMulGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{3, 2}}}}},
                   {.inputs = {{{{3, 2}}}, {{{3, 2}}}}, .attrs = {{"transpose_a", true}}},
                   {.inputs = {{{{2, 3}}}, {{{2, 3}}}}, .attrs = {{"transpose_b", true}}},
                   {.inputs = {{{{3, 2}}}, {{{2, 3}}}},
                    .attrs = {{"transpose_a", true}, {"transpose_b", true}}}},
      .flops = MatMulFlops,
  };
}
KERNEL(MatMul, MatMulOnCpu, FLOATING_TYPES, int32_t, int64_t, COMPLEX_TYPES);

OP(BatchMatMul) {
  return BatchMatMulOp(
      "Multiplies the matrices in the last two dimensions, pair by pair. adj_x and "
      "adj_y replace an operand by its adjoint.",
      BatchMatMulShape<false>,
      [](const GradientScope& g) -> Gradients { return BatchMatMulGradient(g, "BatchMatMul"); });
}
KERNEL(BatchMatMul, BatchMatMulOnCpu, MATRIX_TYPES);

OP(BatchMatMulV2) {
  return BatchMatMulOp("BatchMatMul whose batch dimensions broadcast.", BatchMatMulShape<true>,
                       [](const GradientScope& g) -> Gradients {
                         return BroadcastMatMulGradient(g, "BatchMatMulV2");
                       });
}
KERNEL(BatchMatMulV2, BatchMatMulV2OnCpu, MATRIX_TYPES);

OP(BatchMatMulV3) { return BatchMatMulV3Op(); }
KERNEL_BY("Tout", BatchMatMulV3, BatchMatMulV3OnCpu, MATRIX_TYPES);

}  // namespace penstock
