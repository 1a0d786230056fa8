// SPDX-License-Identifier: Apache-2.0
//
// SparseMatMul: the product of float and bfloat16 matrices, in any combination, as float. The op's
// attributes hint that most elements are zero. Dense products are faster unless more than 99 % of
// the elements are zero, so the kernel ignores the hints.
#include "core/op/flops.h"
#include "core/op/shape_scope.h"
#include "kernels/math/forms.h"
#include "kernels/math/matmul.h"

namespace penstock {
namespace {

class SparseMatMulKernel final : public TwoMatrixKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Product p, ProductOf(ctx));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make({p.m, p.n}));
    ASSIGN_OR_RETURN(const Tensor left, AsFloats(ctx, ctx.input(0)));
    ASSIGN_OR_RETURN(const Tensor right, AsFloats(ctx, ctx.input(1)));
    Tensor* c;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &c));
    if (shape.num_elements() == 0) return OkStatus();
    Multiply(ctx.threads(), p, left.data<float>(), right.data<float>(), c->mutable_data<float>());
    return OkStatus();
  }
};

Status SparseMatMulShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape a, s.WithRank(0, 2));
  ASSIGN_OR_RETURN(const PartialShape b, s.WithRank(1, 2));
  const bool ta = s.attr<bool>("transpose_a"), tb = s.attr<bool>("transpose_b");
  const auto dim = [](const PartialShape& shape, int i) {
    return shape.known_rank() ? shape.dim(i) : PartialShape::kUnknown;
  };
  const int64_t k_a = dim(a, ta ? 0 : 1), k_b = dim(b, tb ? 1 : 0);
  if (k_a >= 0 && k_b >= 0 && k_a != k_b) {
    return InvalidArgument("inner dimensions ", k_a, " and ", k_b, " must be equal");
  }
  s.set_output(0, PartialShape{dim(a, ta ? 1 : 0), dim(b, tb ? 0 : 1)});
  return OkStatus();
}

Output Multiply(Output a, Output b, bool transpose_a, bool transpose_b) {
  return Call("SparseMatMul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

Gradients SparseMatMulGradient(const GradientScope& g) {
  const Output a = g.x(0), b = g.x(1), dy = g.dy();
  const bool ta = g.attr<bool>("transpose_a"), tb = g.attr<bool>("transpose_b");
  return {Cast(ta ? Multiply(b, dy, tb, true) : Multiply(dy, b, false, !tb), a.dtype()),
          Cast(tb ? Multiply(dy, a, true, ta) : Multiply(a, dy, !ta, false), b.dtype())};
}

const DTypes kTypes = {DType::kFloat, DType::kBfloat16};

}  // namespace

OP(SparseMatMul) {
  return {
      .doc =
          "The product, as float, of two matrices; the attributes a_is_sparse and "
          "b_is_sparse tell which of them have many zeros.",
      .inputs = {{"a", "Ta"}, {"b", "Tb"}},
      .outputs = {{"product", "float"}},
      .types = {{"Ta", kTypes, DType::kFloat}, {"Tb", kTypes, DType::kFloat}},
      .attrs = {{"transpose_a", AttrValue(false)},
                {"transpose_b", AttrValue(false)},
                {"a_is_sparse", AttrValue(false)},
                {"b_is_sparse", AttrValue(false)}},
      .shape = SparseMatMulShape,
      .gradient = SparseMatMulGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{3, 2}}}}},
                   {.inputs = {{{{3, 2}}}, {{{2, 3}}}},
                    .attrs = {{"transpose_a", true}, {"transpose_b", true}}}},
      .flops = MatMulFlops,
  };
}
KERNEL_ANY_TYPE(SparseMatMul, SparseMatMulKernel);

}  // namespace penstock
