// SPDX-License-Identifier: Apache-2.0
//
// SparseTensorDenseMatMul: the product of a sparse and a dense matrix; each may be replaced by its
// adjoint.
#include <complex>

#include "core/tensor/type_lists.h"
#include "kernels/engine/functor.h"
#include "kernels/math/add.h"
#include "kernels/sparse/forms.h"
#include "kernels/sparse/sparse_tensor.h"

namespace penstock {
namespace {

template <class T>
T ConjOf(T x) {
  if constexpr (kIsComplex<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

template <class L>
L MulOf(L a, L b) {
  if constexpr (std::is_integral_v<L>) {
    return static_cast<L>(static_cast<Wrapping<L>>(a) * static_cast<Wrapping<L>>(b));
  } else {
    return a * b;
  }
}

struct Problem {
  int64_t rows, inner, cols;  // sizes of the product
  bool adjoint_a, adjoint_b;
};

template <class T>
class SparseTensorDenseMatMulKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("adjoint_a", &adjoint_a_));
    return node.Attr("adjoint_b", &adjoint_b_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor &indices = ctx.input(0), &values = ctx.input(1), &shape = ctx.input(2),
                 &b = ctx.input(3);
    if (b.rank() != 2) {
      return InvalidArgument("Tensor 'b' is not a matrix, has shape ", b.shape().ToString());
    }
    if (shape.rank() != 1 || shape.dim(0) != 2) {
      return InvalidArgument("Tensor 'a_shape' must have 2 elements, has shape ",
                             shape.shape().ToString());
    }
    Tensor wide = indices;
    if (indices.dtype() == DType::kInt32) {
      wide = Tensor(DType::kInt64, indices.shape());
      std::copy_n(indices.data<int32_t>(), indices.num_elements(), wide.mutable_data<int64_t>());
    }
    ASSIGN_OR_RETURN(const SparseTensor a, SparseTensor::Make(wide, values, shape, "a"));
    const Problem p = {a.shape()[adjoint_a_ ? 1 : 0], a.shape()[adjoint_a_ ? 0 : 1],
                       b.dim(adjoint_b_ ? 0 : 1), adjoint_a_, adjoint_b_};
    if (p.inner != b.dim(adjoint_b_ ? 1 : 0)) {
      return InvalidArgument(
          "Cannot multiply A and B because inner dimension does not match: ", p.inner, " vs. ",
          b.dim(adjoint_b_ ? 1 : 0),
          ".  Did you forget a transpose?  Dimensions of A: ", ToString(a.shape()),
          ".  Dimensions of B: ", b.shape().ToString());
    }
    RETURN_IF_ERROR(CheckPlaces(a));
    ASSIGN_OR_RETURN(const Shape result, Shape::Make({p.rows, p.cols}));
    Tensor* c;
    RETURN_IF_ERROR(ctx.Allocate(0, result, &c));
    return Multiply(ctx, p, a, b.data<T>(), result, c->mutable_data<T>());
  }

 private:
  // Checks that every place lies within the shape. InvalidArgument names the first wrong index:
  // "index[1,1] = 3 out of bounds (>=3)".
  static Status CheckPlaces(const SparseTensor& a) {
    for (int64_t i = 0; i < a.size(); ++i) {
      for (int d = 0; d < 2; ++d) {
        const int64_t at = a.place(i)[d];
        if (at < 0 || at >= a.shape()[d]) {
          return InvalidArgument("index[", i, ",", d, "] = ", at,
                                 " out of bounds (>=", a.shape()[d], ")");
        }
      }
    }
    return OkStatus();
  }

  // Computes the product c. Each thread computes some of its columns, so that no two threads add to
  // the same element.
  static Status Multiply(KernelContext& ctx, const Problem& p, const SparseTensor& a, const T* b,
                         const Shape& shape, T* c) {
    using L = LoopType<T>;
    L* sums;
    Tensor wide;  // 16-bit floats are accumulated in float
    if constexpr (kIsHalf<T>) {
      ASSIGN_OR_RETURN(wide, ctx.Temporary(DType::kFloat, shape));
      sums = wide.mutable_data<float>();
    } else {
      sums = c;
    }
    std::fill_n(sums, shape.num_elements(), L(0));
    const T* values = a.values().data<T>();
    const int64_t step_col = p.adjoint_b ? p.inner : 1, step_row = p.adjoint_b ? 1 : p.cols;
    ctx.threads().ParallelFor(p.cols, 2.0 * a.size(), [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < a.size(); ++i) {
        const int64_t row = a.place(i)[p.adjoint_a ? 1 : 0], k = a.place(i)[p.adjoint_a ? 0 : 1];
        const L value = p.adjoint_a ? ConjOf(static_cast<L>(values[i])) : static_cast<L>(values[i]);
        L* to = sums + row * p.cols;
        const T* from = b + k * step_row;
        for (int64_t j = begin; j < end; ++j) {
          const L x = static_cast<L>(from[j * step_col]);
          to[j] = AddFn()(to[j], MulOf(value, p.adjoint_b ? ConjOf(x) : x));
        }
      }
    });
    if constexpr (kIsHalf<T>) {
      for (int64_t i = 0; i < shape.num_elements(); ++i) c[i] = static_cast<T>(sums[i]);
    }
    return OkStatus();
  }

  bool adjoint_a_ = false, adjoint_b_ = false;
};

Status MatMulShape(ShapeScope& s) {
  RETURN_IF_ERROR(SparseInputRank(s, 0).status());
  ASSIGN_OR_RETURN(const PartialShape b, s.WithRank(3, 2));
  std::vector<int64_t> a;
  const bool known = s.ConstantInts(2, &a);
  if (known && a.size() != 2)
    return InvalidArgument("a_shape must have 2 elements, has ", a.size());
  const bool adjoint_a = s.attr<bool>("adjoint_a"), adjoint_b = s.attr<bool>("adjoint_b");
  const int64_t rows = known ? a[adjoint_a ? 1 : 0] : -1;
  s.set_output(
      0, PartialShape{std::max<int64_t>(rows, -1), b.known_rank() ? b.dim(adjoint_b ? 0 : 1) : -1});
  return OkStatus();
}

Output Adjoint(const GradientScope& g, Output x) {
  return Call("ConjugateTranspose", {x, g.Const(Tensor::Vector<int32_t>({1, 0}))});
}

Gradients MatMulGradient(const GradientScope& g) {
  const bool adjoint_a = g.attr<bool>("adjoint_a"), adjoint_b = g.attr<bool>("adjoint_b");
  const Output dy = g.dy(), zero = g.Const<int32_t>(0), one = g.Const<int32_t>(1);
  Output db =
      Call("SparseTensorDenseMatMul", {g.x(0), g.x(1), g.x(2), dy}, {{"adjoint_a", !adjoint_a}});
  if (adjoint_b) db = Adjoint(g, db);
  // Entry (i, k) of a is multiplied by row k of b and added to row i of the product.
  const Output at_0 = Gather(g.x(0), zero, one), at_1 = Gather(g.x(0), one, one);
  const Output b = adjoint_b ? Adjoint(g, g.x(3)) : g.x(3);
  const Output rows = Gather(dy, adjoint_a ? at_1 : at_0, zero);
  const Output partners = Gather(b, adjoint_a ? at_0 : at_1, zero);
  Output da = Sum(rows * Conj(partners), g.Const(Tensor::Vector<int32_t>({1})));
  if (adjoint_a) da = Conj(da);
  return {Gradient(), da, Gradient(), db};
}

const ExampleTensor kPlaces = {{3, 2}, {0, 0, 0, 2, 1, 1}};

}  // namespace

#define PRODUCT_TYPES FLOATING_TYPES, int32_t, COMPLEX_TYPES

OP(SparseTensorDenseMatMul) {
  return {
      .doc = "Multiplies the sparse matrix a and the dense matrix b, or their adjoints.",
      .inputs = {{"a_indices", "Tindices"}, {"a_values", "T"}, {"a_shape", "int64"}, {"b", "T"}},
      .outputs = {{"product", "T"}},
      .types = {{"T", TypesOf<PRODUCT_TYPES>()}, {"Tindices", kIndex, DType::kInt64}},
      .attrs = {{"adjoint_a", AttrValue(false)}, {"adjoint_b", AttrValue(false)}},
      .shape = MatMulShape,
      .gradient = MatMulGradient,
      .examples = {{.inputs = {{kPlaces}, {{{3}}}, {{{2}, {2, 3}}}, {{{3, 2}}}}},
                   {.inputs = {{kPlaces}, {{{3}}}, {{{2}, {2, 3}}}, {{{4, 2}}}},
                    .attrs = {{"adjoint_a", true}, {"adjoint_b", true}}}},
  };
}
KERNEL(SparseTensorDenseMatMul, SparseTensorDenseMatMulKernel, PRODUCT_TYPES);

}  // namespace penstock
