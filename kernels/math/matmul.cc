// SPDX-License-Identifier: Apache-2.0
#include "kernels/math/matmul.h"

#include <limits>

#include "kernels/engine/broadcast.h"
#include "kernels/engine/float16_blocks.h"

namespace penstock {
namespace {

// Returns the sizes of the product from the last two dimensions of each operand. InvalidArgument if
// the inner sizes differ, or if a size does not fit in int32.
StatusOr<Product> MakeProduct(const Shape& a, const Shape& b, Side a_side, Side b_side) {
  const auto rows = [](const Shape& s) { return s.dim(s.rank() - 2); };
  const auto columns = [](const Shape& s) { return s.dim(s.rank() - 1); };
  const bool a_plain = a_side == Side::kPlain, b_plain = b_side == Side::kPlain;
  Product p = {.m = a_plain ? rows(a) : columns(a),
               .n = b_plain ? columns(b) : rows(b),
               .k = a_plain ? columns(a) : rows(a),
               .a = a_side,
               .b = b_side};
  if (p.k != (b_plain ? rows(b) : columns(b))) {
    return InvalidArgument("Matrix size-incompatible: In[0]: ", a.ToString(),
                           ", In[1]: ", b.ToString(), a_plain ? "" : ", a transposed",
                           b_plain ? "" : ", b transposed");
  }
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (p.m > kMax || p.n > kMax || p.k > kMax) {
    return Unimplemented("matrix products with a dimension above 2^31 - 1: ", a.ToString(), " by ",
                         b.ToString());
  }
  return p;
}

Shape BatchDims(const Shape& shape) { return Shape(shape.dims().subspan(0, shape.rank() - 2)); }

}  // namespace

StatusOr<Tensor> AsFloats(KernelContext& ctx, const Tensor& x) {
  if (x.dtype() == DType::kFloat) return x;
  ASSIGN_OR_RETURN(Tensor floats, ctx.Temporary(DType::kFloat, x.shape()));
  float* to = floats.mutable_data<float>();
  const char* from = static_cast<const char*>(x.raw_data());
  ForEachBlock(ctx.threads(), x.num_elements(), 0.2, [&](int64_t begin, int64_t end) {
    Float16ToFloat(x.dtype(), from + 2 * begin, to + begin, end - begin);
  });
  return floats;
}

Status TwoMatrixKernel::Init(const KernelInit& node) {
  bool transpose_a = false, transpose_b = false;
  RETURN_IF_ERROR(node.Attr("transpose_a", &transpose_a));
  RETURN_IF_ERROR(node.Attr("transpose_b", &transpose_b));
  if (transpose_a) a_ = Side::kTransposed;
  if (transpose_b) b_ = Side::kTransposed;
  return OkStatus();
}

StatusOr<Product> TwoMatrixKernel::ProductOf(const KernelContext& ctx) const {
  const Shape &a = ctx.input(0).shape(), &b = ctx.input(1).shape();
  if (a.rank() != 2 || b.rank() != 2) {
    return InvalidArgument("a and b must be matrices, have shapes ", a.ToString(), " and ",
                           b.ToString());
  }
  if (a.dim(a_ == Side::kPlain ? 1 : 0) != b.dim(b_ == Side::kPlain ? 0 : 1)) {
    return InvalidArgument("Matrix size incompatible: a: ", a.ToString(), ", b: ", b.ToString());
  }
  return MakeProduct(a, b, a_, b_);
}

Status MatMulKernel::Compute(KernelContext& ctx) {
  for (int i = 0; i < 2; ++i) {
    if (ctx.input(i).rank() != 2) {
      return InvalidArgument("In[", i, "] is not a matrix. Instead it has shape ",
                             ctx.input(i).shape().ToString());
    }
  }
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  ASSIGN_OR_RETURN(const Product product, MakeProduct(a.shape(), b.shape(), a_side(), b_side()));
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make({product.m, product.n}));
  Tensor* c;
  RETURN_IF_ERROR(ctx.Allocate(0, shape, &c));
  if (c->num_elements() == 0) return OkStatus();
  static const MatrixPairs kOne = {{0}, {0}};
  return multiply_(ctx, product, kOne, a, b, c);
}

Status BatchMatMulKernel::Init(const KernelInit& node) {
  bool adj_x = false, adj_y = false;
  RETURN_IF_ERROR(node.Attr("adj_x", &adj_x));
  RETURN_IF_ERROR(node.Attr("adj_y", &adj_y));
  if (adj_x) a_ = Side::kAdjoint;
  if (adj_y) b_ = Side::kAdjoint;
  return OkStatus();
}

Status BatchMatMulKernel::Compute(KernelContext& ctx) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  for (int i = 0; i < 2; ++i) {
    const Shape& shape = ctx.input(i).shape();
    if (shape.rank() >= 2) continue;
    return InvalidArgument("In[", i, "] ndims must be >= 2: ", shape.rank(), ", it has shape ",
                           shape.ToString());
  }
  ASSIGN_OR_RETURN(const Product product, MakeProduct(a.shape(), b.shape(), a_, b_));
  const Shape a_batch = BatchDims(a.shape()), b_batch = BatchDims(b.shape());
  if (!broadcasts_ && a_batch != b_batch) {
    return InvalidArgument("the dimensions before the last two must be equal: ",
                           a.shape().ToString(), " and ", b.shape().ToString());
  }
  ASSIGN_OR_RETURN(const BroadcastPlan plan, BroadcastPlan::Make({&a_batch, &b_batch}));
  Dims dims(plan.output().dims().begin(), plan.output().dims().end());
  dims.push_back(product.m);
  dims.push_back(product.n);
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  Tensor* c;
  RETURN_IF_ERROR(ctx.Allocate(0, shape, &c));
  if (c->num_elements() == 0) return OkStatus();

  MatrixPairs pairs;
  pairs.a.resize(plan.output().num_elements());
  pairs.b.resize(plan.output().num_elements());
  plan.ForEachPanel(ctx.threads(), 1, [&](const BroadcastPanel& p) {
    for (int64_t r = 0; r < p.rows; ++r) {
      for (int64_t i = 0; i < p.n; ++i) {
        const int64_t at = p.out + r * p.n + i;
        pairs.a[at] = p.offset[0] + r * p.row_step[0] + (p.repeats[0] ? 0 : i);
        pairs.b[at] = p.offset[1] + r * p.row_step[1] + (p.repeats[1] ? 0 : i);
      }
    }
  });
  return multiply_(ctx, product, pairs, a, b, c);
}

}  // namespace penstock
