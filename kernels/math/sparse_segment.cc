// SPDX-License-Identifier: Apache-2.0
//
// SparseSegmentSum, SparseSegmentMean, SparseSegmentSqrtN: reduce the rows of `data` that `indices`
// selects into the segments named by sorted ids. The WithNumSegments variants fix the number of
// segments. Also their gradient ops.
#include "core/op/registry.h"
#include "core/tensor/type_lists.h"
#include "kernels/array/arguments.h"
#include "kernels/math/forms.h"
#include "kernels/math/segments.h"

namespace penstock {
namespace {

enum class Scale { kNone, kMean, kSqrtN };

Status CheckVectors(const Tensor& data, const Tensor& indices, const Tensor& ids) {
  if (data.rank() < 1) return InvalidArgument("data must have rank 1 or more, is a scalar");
  if (indices.rank() != 1 || ids.rank() != 1 || indices.dim(0) != ids.dim(0)) {
    return InvalidArgument(
        "segment_ids and indices should have same size and be vectors: their shapes are ",
        ids.shape().ToString(), " and ", indices.shape().ToString());
  }
  return OkStatus();
}

// `num_segments` is input 3, if the op has it.
class SparseSegmentKernel : public Kernel {
 public:
  explicit SparseSegmentKernel(SegmentFold fold) : fold_(fold) {}
  Status Compute(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    RETURN_IF_ERROR(CheckVectors(data, ctx.input(1), ctx.input(2)));
    const std::vector<int64_t> rows = AsInt64(ctx.input(1)), segments = AsInt64(ctx.input(2));
    RETURN_IF_ERROR(CheckSorted(segments));
    RETURN_IF_ERROR(CheckRows(rows, data.dim(0)));
    int64_t count = CountOf(segments);
    if (ctx.num_inputs() > 3) {
      ASSIGN_OR_RETURN(const int64_t wanted, IntScalar(ctx.input(3), "num_segments"));
      if (wanted < count) {
        return InvalidArgument("segment ids must be < num_segments: ", count - 1, " and ", wanted);
      }
      count = wanted;
    }
    return FoldIntoOutput(ctx, fold_, data, {.segments = segments, .rows = rows}, count);
  }

 private:
  const SegmentFold fold_;
};

template <class F>
struct SparseSegment {
  template <class T>
  struct Kernel final : SparseSegmentKernel {
    Kernel() : SparseSegmentKernel(FoldSegmentRange<F, T>) {}
  };
};

// Adds row segment_ids[i] of `grad`, scaled, to row indices[i] of the output. With two outputs
// (V2), the first holds only the rows that occur, in order, and the second their indices.
class SparseSegmentGradKernel : public Kernel {
 public:
  explicit SparseSegmentGradKernel(SegmentFold fold, Scale scale) : fold_(fold), scale_(scale) {}
  Status Compute(KernelContext& ctx) override {
    const Tensor &grad = ctx.input(0), &indices = ctx.input(1);
    RETURN_IF_ERROR(CheckVectors(grad, indices, ctx.input(2)));
    ASSIGN_OR_RETURN(int64_t count, IntScalar(ctx.input(3), "output_dim0"));
    std::vector<int64_t> targets = AsInt64(indices);
    const std::vector<int64_t> segments = AsInt64(ctx.input(2));
    for (size_t i = 0; i < segments.size(); ++i) {
      if (segments[i] < 0 || segments[i] >= grad.dim(0)) {
        return InvalidArgument("Segment id ", segments[i], " out of range [0, ", grad.dim(0), ").");
      }
      if (targets[i] < 0 || targets[i] >= count) {
        return InvalidArgument("Index ", targets[i], " out of range [0, ", count, ").");
      }
    }
    if (ctx.num_outputs() > 1) RETURN_IF_ERROR(Compact(ctx, indices.dtype(), &targets, &count));
    const std::vector<double> weights = Weights(segments, grad.dim(0));
    return FoldIntoOutput(ctx, fold_, grad,
                          {.segments = targets, .rows = segments, .weights = weights}, count);
  }

 private:
  // Replaces each target by its position among the distinct targets, in ascending order. Writes the
  // distinct targets to output 1, and their number to *count.
  static Status Compact(KernelContext& ctx, DType dtype, std::vector<int64_t>* targets,
                        int64_t* count) {
    std::vector<int64_t> distinct = *targets;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (int64_t& target : *targets) {
      target = std::lower_bound(distinct.begin(), distinct.end(), target) - distinct.begin();
    }
    *count = static_cast<int64_t>(distinct.size());
    Tensor* numbers;
    RETURN_IF_ERROR(ctx.Allocate(1, Shape{*count}, &numbers));
    if (dtype == DType::kInt32) {
      std::copy(distinct.begin(), distinct.end(), numbers->mutable_data<int32_t>());
    } else {
      std::copy(distinct.begin(), distinct.end(), numbers->mutable_data<int64_t>());
    }
    return OkStatus();
  }

  std::vector<double> Weights(const std::vector<int64_t>& segments, int64_t num_segments) const {
    std::vector<double> weights;
    if (scale_ == Scale::kNone) return weights;
    std::vector<int64_t> members(num_segments);
    for (const int64_t s : segments) ++members[s];
    for (const int64_t s : segments) {
      const double n = static_cast<double>(members[s]);
      weights.push_back(1 / (scale_ == Scale::kMean ? n : std::sqrt(n)));
    }
    return weights;
  }

  const SegmentFold fold_;
  const Scale scale_;
};

template <Scale kScale>
struct SparseSegmentGrad {
  template <class T>
  struct Kernel final : SparseSegmentGradKernel {
    Kernel() : SparseSegmentGradKernel(FoldSegmentRange<SegmentSumFold, T>, kScale) {}
  };
};

Status SparseSegmentShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, s.WithRankAtLeast(0, 1));
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  RETURN_IF_ERROR(s.WithRank(2, 1).status());
  std::vector<int64_t> rows;
  const bool known = s.num_inputs() > 3 && s.num_outputs() == 1 && s.ConstantInts(3, &rows) &&
                     rows.size() == 1 && rows[0] >= 0;
  if (shape.known_rank()) shape.set_dim(0, known ? rows[0] : PartialShape::kUnknown);
  s.set_output(0, std::move(shape));
  if (s.num_outputs() > 1) s.set_output(1, PartialShape{PartialShape::kUnknown});
  return OkStatus();
}

// A family of ops: sum, mean or sqrt n.
struct Family {
  std::string name;  // "Sum"
  DTypes types;
};

GradientFn SparseSegmentGradient(const std::string& name) {
  return [name](const GradientScope& g) -> Gradients {
    Gradients dx(g.num_inputs());
    const Output rows = Gather(ShapeOf(g.x()), g.Const<int32_t>(0), g.Const<int32_t>(0));
    const std::string op = "SparseSegment" + name + "Grad";
    if (g.attr<bool>("sparse_gradient")) {
      const Outputs y = CallN(op + "V2", {g.dy(), g.x(1), g.x(2), rows});
      dx[0] = Gradient(y[0], y[1], ShapeOf(g.x()));
    } else {
      dx[0] = Call(op, {g.dy(), g.x(1), g.x(2), rows});
    }
    return dx;
  };
}

OpDef SparseSegmentOp(const std::string& doc, const char* name, const DTypes& types,
                      bool num_segments) {
  OpDef op = {
      .doc = StrCat(doc, num_segments ? ", for the stated number of segments." : "."),
      .inputs = {{"data", "T"}, {"indices", "Tidx"}, {"segment_ids", "Tsegmentids"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types},
                {"Tidx", kIndex, DType::kInt32},
                {"Tsegmentids", kIndex, DType::kInt32}},
      .attrs = {{"sparse_gradient", AttrValue(false)}},
      .shape = SparseSegmentShape,
      .gradient = SparseSegmentGradient(name),
      .examples = {{.inputs = {{{{3, 2}}}, {{{4}, {0, 2, 0, 1}}}, {{{4}, {0, 0, 0, 2}}}}}},
  };
  if (num_segments) {
    op.inputs.push_back({"num_segments", "Tnumsegments"});
    op.types.push_back({"Tnumsegments", kIndex, DType::kInt32});
    op.examples[0].inputs.push_back({{{}, {4}}});
  }
  return op;
}

// Returns the definition of a gradient op. The op is linear in `grad`, so its own gradient is the
// forward op.
OpDef SparseSegmentGradOp(const char* name, bool v2) {
  const std::string forward = StrCat("SparseSegment", name, "WithNumSegments");
  OpDef op = {
      .doc = StrCat("The gradient of SparseSegment", name, " for its data",
                    v2 ? ": only the rows that are not zero, and their indices." : "."),
      .inputs = {{"grad", "T"},
                 {"indices", "Tidx"},
                 {"segment_ids", "Tsegmentids"},
                 {v2 ? "dense_output_dim0" : "output_dim0", "int32"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating},
                {"Tidx", kIndex, DType::kInt32},
                {"Tsegmentids", kIndex, DType::kInt32}},
      .shape = SparseSegmentShape,
      .examples =
          {{.inputs = {{{{3, 2}}}, {{{4}, {0, 2, 0, 1}}}, {{{4}, {0, 0, 0, 2}}}, {{{}, {4}}}}}},
  };
  if (v2) {
    op.outputs.push_back({"sorted_unique_indices", "Tidx"});
  } else {
    op.gradient = [forward](const GradientScope& g) -> Gradients {
      const Output segments = Gather(ShapeOf(g.x()), g.Const<int32_t>(0), g.Const<int32_t>(0));
      return {Call(forward, {g.dy(), g.x(1), g.x(2), segments}), Gradient(), Gradient(),
              Gradient()};
    };
  }
  return op;
}

}  // namespace

#define SPARSE_SEGMENT(Name, doc, kTypes, kScale, ...)                                           \
  OP(SparseSegment##Name) { return SparseSegmentOp(doc, #Name, kTypes, false); }                 \
  OP(SparseSegment##Name##WithNumSegments) { return SparseSegmentOp(doc, #Name, kTypes, true); } \
  OP(SparseSegment##Name##Grad) { return SparseSegmentGradOp(#Name, false); }                    \
  OP(SparseSegment##Name##GradV2) { return SparseSegmentGradOp(#Name, true); }                   \
  KERNEL(SparseSegment##Name, SparseSegment<Segment##Name##Fold>::Kernel, __VA_ARGS__);          \
  KERNEL(SparseSegment##Name##WithNumSegments, SparseSegment<Segment##Name##Fold>::Kernel,       \
         __VA_ARGS__);                                                                           \
  KERNEL(SparseSegment##Name##Grad, SparseSegmentGrad<kScale>::Kernel, FLOATING_TYPES);          \
  KERNEL(SparseSegment##Name##GradV2, SparseSegmentGrad<kScale>::Kernel, FLOATING_TYPES)

SPARSE_SEGMENT(Sum, "output[s] = the sum of data[indices[i]] over the i of segment s", kReal,
               Scale::kNone, REAL_TYPES);
SPARSE_SEGMENT(Mean, "output[s] = the mean of data[indices[i]] over the i of segment s", kFloating,
               Scale::kMean, FLOATING_TYPES);
SPARSE_SEGMENT(SqrtN,
               "output[s] = the sum of data[indices[i]] over the n i of segment s, divided by the "
               "square root of n",
               kFloating, Scale::kSqrtN, FLOATING_TYPES);

}  // namespace penstock
