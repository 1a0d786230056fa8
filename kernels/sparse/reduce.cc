// SPDX-License-Identifier: Apache-2.0
//
// SparseReduceSum, SparseReduceMax, their forms with sparse results, and SparseSoftmax.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/tensor/type_lists.h"
#include "kernels/engine/functor.h"
#include "kernels/engine/reduction_plan.h"
#include "kernels/math/add.h"
#include "kernels/sparse/forms.h"
#include "kernels/sparse/sparse_tensor.h"

namespace penstock {
namespace {

// The entries grouped by their coordinates in the kept dimensions.
struct Groups {
  std::vector<bool> reduced;   // per dimension
  Dims kept;                   // sizes of the dimensions that are not reduced
  Dims output;                 // `kept`; with keep_dims also 1 for each reduced dimension
  std::vector<int64_t> order;  // entries, group by group
  std::vector<int64_t> ends;   // end of each group in `order`
  std::vector<int64_t> place;  // index of each group in the dense result

  static StatusOr<Groups> Make(const SparseTensor& x, const Tensor& axes, bool keep_dims) {
    RETURN_IF_ERROR(x.CheckBounds());
    Groups g{.reduced = std::vector<bool>(x.rank())};
    if (axes.rank() > 1) {
      return InvalidArgument("reduction_axes must be a scalar or a vector, has shape ",
                             axes.shape().ToString());
    }
    ASSIGN_OR_RETURN(const auto values, AxisValues(axes, "reduction_axes"));
    for (const int64_t axis : values) {
      if (axis < -x.rank() || axis >= x.rank()) {
        return InvalidArgument("Invalid reduction dimension ", axis, ", for input with ", x.rank(),
                               " dimensions.");
      }
      g.reduced[axis < 0 ? axis + x.rank() : axis] = true;
    }
    for (int d = 0; d < x.rank(); ++d) {
      if (!g.reduced[d]) g.kept.push_back(x.shape()[d]);
      if (!g.reduced[d] || keep_dims) g.output.push_back(g.reduced[d] ? 1 : x.shape()[d]);
    }
    std::vector<int64_t> where(x.size());
    for (int64_t i = 0; i < x.size(); ++i) {
      for (int d = 0; d < x.rank(); ++d) {
        if (!g.reduced[d]) where[i] = where[i] * x.shape()[d] + x.place(i)[d];
      }
    }
    g.order.resize(x.size());
    std::iota(g.order.begin(), g.order.end(), 0);
    std::stable_sort(g.order.begin(), g.order.end(),
                     [&where](int64_t a, int64_t b) { return where[a] < where[b]; });
    for (size_t i = 0; i < g.order.size(); ++i) {
      const int64_t at = where[g.order[i]];
      if (i == 0 || at != g.place.back()) {
        if (i > 0) g.ends.push_back(static_cast<int64_t>(i));
        g.place.push_back(at);
      }
    }
    if (!g.order.empty()) g.ends.push_back(static_cast<int64_t>(g.order.size()));
    return g;
  }
};

struct SumFn {
  template <class L>
  L operator()(L a, L b) const {
    return AddFn()(a, b);
  }
};
struct MaxFn {
  template <class L>
  L operator()(L a, L b) const {
    return a > b || a != a ? a : b;
  }
};

// Returns one result per group: the fold of the values of its entries.
template <class T, class Fold>
std::vector<T> FoldGroups(const SparseTensor& x, const Groups& g) {
  using L = LoopType<T>;
  std::vector<T> results;
  int64_t i = 0;
  for (const int64_t end : g.ends) {
    L result = static_cast<L>(x.values().data<T>()[g.order[i++]]);
    for (; i < end; ++i) {
      result = Fold()(result, static_cast<L>(x.values().data<T>()[g.order[i]]));
    }
    results.push_back(static_cast<T>(result));
  }
  return results;
}

template <class T, class Fold, bool kSparse>
class SparseReduceKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("keep_dims", &keep_dims_); }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const SparseTensor x, SparseTensor::FromInputs(ctx, 0, "input"));
    ASSIGN_OR_RETURN(const Groups g, Groups::Make(x, ctx.input(3), keep_dims_));
    const std::vector<T> results = FoldGroups<T, Fold>(x, g);
    if constexpr (kSparse) {
      return WriteSparse(ctx, g, results);
    } else {
      ASSIGN_OR_RETURN(const Shape shape, Shape::Make(g.output));
      Tensor* y;
      RETURN_IF_ERROR(ctx.Allocate(0, shape, &y));
      std::fill_n(y->mutable_data<T>(), shape.num_elements(), T(0));
      for (size_t i = 0; i < results.size(); ++i) y->mutable_data<T>()[g.place[i]] = results[i];
      return OkStatus();
    }
  }

 private:
  static Status WriteSparse(KernelContext& ctx, const Groups& g, const std::vector<T>& results) {
    const int64_t n = static_cast<int64_t>(results.size());
    const int64_t rank = static_cast<int64_t>(g.output.size());
    Tensor *indices, *values;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape{n, rank}, &indices));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape{n}, &values));
    std::copy(results.begin(), results.end(), values->mutable_data<T>());
    for (int64_t i = 0; i < n; ++i) {
      int64_t at = g.place[i];
      for (int64_t d = rank - 1; d >= 0; --d) {
        indices->mutable_data<int64_t>()[i * rank + d] = at % g.output[d];
        at /= g.output[d];
      }
    }
    return WriteVector(ctx, 2, g.output);
  }

  bool keep_dims_ = false;
};

template <class T>
using ReduceSum = SparseReduceKernel<T, SumFn, false>;
template <class T>
using ReduceSumSparse = SparseReduceKernel<T, SumFn, true>;
template <class T>
using ReduceMax = SparseReduceKernel<T, MaxFn, false>;
template <class T>
using ReduceMaxSparse = SparseReduceKernel<T, MaxFn, true>;

// Softmax over the entries of each row; places without an entry are ignored.
template <class T>
class SparseSoftmaxKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const SparseTensor x, SparseTensor::FromInputs(ctx, 0, "sp"));
    if (x.rank() < 2) {
      return InvalidArgument("Input should have rank >= 2, but received shape: ",
                             ToString(x.shape()));
    }
    ASSIGN_OR_RETURN(const Groups g, Groups::Make(x, Tensor::Scalar<int32_t>(-1), false));
    Tensor* y;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape{x.size()}, &y));
    using L = LoopType<T>;
    const T* in = x.values().data<T>();
    int64_t begin = 0;
    for (const int64_t end : g.ends) {
      L most = static_cast<L>(in[g.order[begin]]);
      for (int64_t i = begin; i < end; ++i) most = std::max(most, static_cast<L>(in[g.order[i]]));
      L sum = 0;
      for (int64_t i = begin; i < end; ++i) sum += std::exp(static_cast<L>(in[g.order[i]]) - most);
      for (int64_t i = begin; i < end; ++i) {
        y->mutable_data<T>()[g.order[i]] =
            static_cast<T>(std::exp(static_cast<L>(in[g.order[i]]) - most) / sum);
      }
      begin = end;
    }
    return OkStatus();
  }
};

// Sets the sizes of the result if the shape and the axes are known. InvalidArgument if an axis is
// out of range.
Status ReduceShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const int64_t rank, SparseInputRank(s, 0));
  std::vector<int64_t> shape, axes;
  if (rank < 0 || !s.ConstantInts(2, &shape) || !s.ConstantInts(3, &axes)) return OkStatus();
  std::vector<bool> reduced(rank);
  for (const int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      return InvalidArgument("Invalid reduction dimension ", axis, ", for input with ", rank,
                             " dimensions.");
    }
    reduced[axis < 0 ? axis + rank : axis] = true;
  }
  Dims dims;
  for (int64_t d = 0; d < rank; ++d) {
    if (!reduced[d]) {
      dims.push_back(shape[d]);
    } else if (s.attr<bool>("keep_dims")) {
      dims.push_back(1);
    }
  }
  ASSIGN_OR_RETURN(PartialShape output, PartialShape::Make(dims));
  s.set_output(0, std::move(output));
  return OkStatus();
}

Status ReduceSparseShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const int64_t rank, SparseInputRank(s, 0));
  SetSparseOutput(s, 0, -1, s.attr<bool>("keep_dims") ? rank : -1);
  return OkStatus();
}

// Returns the gradient of the values: each entry gets the gradient of its group.
Gradients ReduceSumGradient(const GradientScope& g) {
  const Output shape = Cast(g.x(2), DType::kInt32),
               axes = Reshape(g.x(3), g.Const(Tensor::Vector<int32_t>({-1})));
  const Output rank = SizeOf(shape);
  const Output all = Range(g.Const<int32_t>(0), rank, g.Const<int32_t>(1));
  // `kept` is the shape of the result with keep_dims: 1 for reduced dimensions.
  const Output positive = Call("FloorMod", {axes + rank, rank});
  const Output kept =
      Call("DynamicStitch", {Outputs{all, positive}, Outputs{shape, OnesLike(positive)}});
  const Output scale = Cast(shape / Maximum(kept, OnesLike(kept)), DType::kInt64);
  const Output places = Call("FloorDiv", {g.x(0), Maximum(scale, OnesLike(scale))});
  return {Gradient(), GatherNd(Reshape(g.dy(), kept), places), Gradient(), Gradient()};
}

Gradients SoftmaxGradient(const GradientScope& g) {
  const Output y = g.y(), dy = g.dy(), last = g.Const(Tensor::Vector<int32_t>({-1}));
  const Output sums =
      Call("SparseReduceSum", {g.x(0), y * dy, g.x(2), last}, {{"keep_dims", true}});
  const Output centred = Call("SparseDenseCwiseAdd", {g.x(0), dy, g.x(2), -sums});
  return {Gradient(), centred * y, Gradient()};
}

OpDef ReduceOp(const char* doc, const DTypes& types, bool sparse, GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = Join(SparseArgs("input"), {{"reduction_axes", "int32"}}),
      .outputs = sparse ? SparseArgs("output") : std::vector<ArgDef>{{"output", "T"}},
      .types = {{"T", types}},
      .attrs = {{"keep_dims", AttrValue(false)}},
      .shape = sparse ? ReduceSparseShape : ReduceShape,
      .gradient = std::move(gradient),
      .examples = {{.inputs = Join(SparseExample(), {{{{1}, {0}}}})},
                   {.inputs = Join(SparseExample(), {{{{1}, {-1}}}}),
                    .attrs = {{"keep_dims", true}}}},
  };
}

}  // namespace

OP(SparseReduceSum) {
  return ReduceOp("Sums the entries of a sparse tensor along axes.", kNumber, false,
                  ReduceSumGradient);
}

OP(SparseReduceSumSparse) {
  return ReduceOp("The same as SparseReduceSum, with a sparse result.", kNumber, true, nullptr);
}

OP(SparseReduceMax) {
  return ReduceOp(
      "Returns the largest entries of a sparse tensor along axes; zero if there are "
      "none.",
      kReal, false, nullptr);
}

OP(SparseReduceMaxSparse) {
  return ReduceOp("The same as SparseReduceMax, with a sparse result.", kReal, true, nullptr);
}
KERNEL(SparseReduceSum, ReduceSum, NUMBER_TYPES);
KERNEL(SparseReduceSumSparse, ReduceSumSparse, NUMBER_TYPES);
KERNEL(SparseReduceMax, ReduceMax, REAL_TYPES);
KERNEL(SparseReduceMaxSparse, ReduceMaxSparse, REAL_TYPES);

OP(SparseSoftmax) {
  return {
      .doc =
          "Returns the softmax of each row (the last dimension) of a sparse tensor over its "
          "entries; missing entries do not count.",
      .inputs = SparseArgs("sp"),
      .outputs = {{"output", "T"}},
      .types = {{"T", {DType::kFloat, DType::kHalf, DType::kDouble}}},
      .shape = [](ShapeScope& s) -> Status {
        RETURN_IF_ERROR(SparseInputRank(s, 0).status());
        s.set_output(0, s.input(1).known_rank() ? s.input(1) : PartialShape{-1});
        return OkStatus();
      },
      .gradient = SoftmaxGradient,
      // The example's gradient is not checked, because it uses SparseDenseCwiseAdd, which has no
      // gradient for its dense operand.
      .examples = {{.inputs = SparseExample(), .check_gradient = false}},
  };
}
KERNEL(SparseSoftmax, SparseSoftmaxKernel, float, half, double);

}  // namespace penstock
