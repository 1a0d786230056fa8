// SPDX-License-Identifier: Apache-2.0
//
// MatMul, BatchMatMul, BatchMatMulV2 and their kernels on the CPU.
#include <complex>

#include "core/op/shape_scope.h"
#include "kernels/engine/broadcast.h"
#include "kernels/engine/float16_blocks.h"
#include "kernels/engine/functor.h"
#include "kernels/math/forms.h"
#include "kernels/math/matmul.h"
#include "kernels/math/types.h"

namespace penstock {
namespace {

// Small products go side by side, large ones one after the other, each on all threads.
template <class T>
void MultiplyPairs(ThreadPool& threads, const Product& p, const MatrixPairs& pairs, const T* a,
                   const T* b, T* c) {
  const double nanos = 2.0 * p.m * p.n * p.k / 100;
  const auto multiply = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Multiply(threads, p, a + pairs.a[i] * p.m * p.k, b + pairs.b[i] * p.k * p.n,
               c + i * p.m * p.n);
    }
  };
  const int64_t count = static_cast<int64_t>(pairs.a.size());
  if (count < threads.num_threads()) return multiply(0, count);
  threads.ParallelFor(count, nanos, multiply);
}

template <class T>
Status MultiplyOnCpu(KernelContext& ctx, const Product& product, const MatrixPairs& pairs,
                     const Tensor& a, const Tensor& b, Tensor* c) {
  if constexpr (kIsHalf<T>) {
    ASSIGN_OR_RETURN(const Tensor left, AsFloats(ctx, a));
    ASSIGN_OR_RETURN(const Tensor right, AsFloats(ctx, b));
    ASSIGN_OR_RETURN(Tensor sums, ctx.Temporary(DType::kFloat, c->shape()));
    MultiplyPairs(ctx.threads(), product, pairs, left.data<float>(), right.data<float>(),
                  sums.mutable_data<float>());
    FloatToFloat16(c->dtype(), sums.data<float>(), c->mutable_raw_data(), c->num_elements());
  } else {
    MultiplyPairs(ctx.threads(), product, pairs, a.data<T>(), b.data<T>(), c->mutable_data<T>());
  }
  return OkStatus();
}

#define MATRIX_TYPES FLOATING_TYPES, int16_t, int32_t, int64_t, COMPLEX_TYPES

template <class T>
using MatMulOnCpu = MatMulOf<MultiplyOnCpu<T>>;
template <class T>
using BatchMatMulOnCpu = BatchMatMulOf<MultiplyOnCpu<T>, false>;
template <class T>
using BatchMatMulV2OnCpu = BatchMatMulOf<MultiplyOnCpu<T>, true>;

// The shape of one product, from the last two dimensions of each side.
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
  const auto multiply = [op](Output x, Output y, bool adj_x, bool adj_y) {
    return Call(op, {x, y}, {{"adj_x", adj_x}, {"adj_y", adj_y}});
  };
  return {ta ? multiply(b, dy, tb, true) : multiply(dy, b, false, !tb),
          tb ? multiply(dy, a, true, ta) : multiply(a, dy, !ta, false)};
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
  };
}

}  // namespace

OP(MatMul,
   {
       .doc = "The product of two matrices, each transposed first if its attribute says so.",
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
   });
KERNEL(MatMul, MatMulOnCpu, FLOATING_TYPES, int32_t, int64_t, COMPLEX_TYPES);

OP(BatchMatMul, (BatchMatMulOp("Products of matrices in the last two dimensions, each pair of a "
                               "batch; with adj_x, adj_y of their adjoints.",
                               BatchMatMulShape<false>, [](const GradientScope& g) -> Gradients {
                                 return BatchMatMulGradient(g, "BatchMatMul");
                               })));
KERNEL(BatchMatMul, BatchMatMulOnCpu, MATRIX_TYPES);

OP(BatchMatMulV2,
   (BatchMatMulOp("BatchMatMul whose batch dimensions broadcast.", BatchMatMulShape<true>,
                  [](const GradientScope& g) -> Gradients {
                    const Gradients d = BatchMatMulGradient(g, "BatchMatMulV2");
                    return {SumToShapeOf(d[0].values, g.x(0)), SumToShapeOf(d[1].values, g.x(1))};
                  })));
KERNEL(BatchMatMulV2, BatchMatMulV2OnCpu, MATRIX_TYPES);

}  // namespace penstock
