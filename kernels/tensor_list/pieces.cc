// SPDX-License-Identifier: Apache-2.0
//
// TensorListSplit, TensorListConcat, TensorListConcatV2: convert between a tensor and a list of its
// pieces, which may have different lengths along dimension 0.
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/array/arguments.h"
#include "kernels/array/rows.h"
#include "kernels/tensor_list/element_shape.h"
#include "kernels/tensor_list/tensor_list.h"

namespace penstock {
namespace {

PartialShape WithoutFirstDim(const PartialShape& shape) {
  return shape.known_rank() && shape.rank() > 0 ? SubShape(shape, 1, shape.rank()) : PartialShape();
}

class TensorListSplitKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor tensor = ctx.TakeInput(0);
    ASSIGN_OR_RETURN(PartialShape element_shape, ElementShape(ctx.input(1)));
    ASSIGN_OR_RETURN(const Dims lengths, IntVector(ctx.input(2), "lengths"));
    if (tensor.rank() == 0) {
      return InvalidArgument("Tensor must be at least a vector, but saw shape: []");
    }
    Shape each = tensor.shape();
    each.RemoveDim(0);
    OwnList made = NewList(tensor.dtype(), std::move(element_shape));
    int64_t begin = 0;
    for (const int64_t length : lengths) {
      if (length < 0 || length > tensor.dim(0) - begin) return WrongLengths(ctx, tensor);
      ASSIGN_OR_RETURN(const Shape shape, WithFirst(length, each));
      ASSIGN_OR_RETURN(Tensor piece, Rows(ctx, tensor, begin, begin + length, shape));
      RETURN_IF_ERROR(made.list->Push(std::move(piece)));
      begin += length;
    }
    if (begin != tensor.dim(0)) return WrongLengths(ctx, tensor);
    ctx.SetOutput(0, std::move(made.handle));
    return OkStatus();
  }

 private:
  static Status WrongLengths(const KernelContext& ctx, const Tensor& tensor) {
    return InvalidArgument("lengths must not be negative, and add up to the ", tensor.dim(0),
                           " rows of tensor; they are ", ctx.input(2).ToString());
  }
};

// Computes the shape of the concatenation: merges the shapes that the list, the op and the elements
// declare.
class Joined {
 public:
  static StatusOr<Joined> Of(const TensorListValue& list, const PartialShape& asked) {
    Joined joined;
    ASSIGN_OR_RETURN(const PartialShape all, list.element_shape().Merge(asked));
    if (all.rank() == 0) {
      return InvalidArgument(
          "Concat requires elements to be at least vectors, found scalars "
          "instead.");
    }
    joined.first_ = all.known_rank() ? all.dim(0) : PartialShape::kUnknown;
    joined.rest_ = WithoutFirstDim(all);
    for (int64_t i = 0; i < list.size(); ++i) {
      if (list.elements()[i].valid())
        RETURN_IF_ERROR(joined.MergeElementShape(list.elements()[i].shape(), i));
    }
    if (joined.rest_.fully_known()) return joined;
    return InvalidArgument("All except the first dimension must be fully defined when concating ",
                           list.size() == 0 ? "an empty" : "a",
                           " tensor list. element_shape: ", all.ToString());
  }

  Shape rest() const { return rest_.ToShape(); }
  // Returns the length of element i, which is not set. InvalidArgument if neither the list nor the
  // op declares the length.
  StatusOr<int64_t> LengthOfUnset(int64_t i, const Dims& leading_dims) const {
    if (first_ >= 0) return first_;
    if (i < static_cast<int64_t>(leading_dims.size()) && leading_dims[i] >= 0) {
      return leading_dims[i];
    }
    return InvalidArgument("Concating lists with uninitialized tensors is not supported in this ",
                           "version of TensorListConcat, or there is no leading dim for element ",
                           i);
  }

 private:
  Status MergeElementShape(const Shape& element, int64_t i) {
    if (element.rank() > 0 && (first_ < 0 || first_ == element.dim(0))) {
      StatusOr<PartialShape> rest = rest_.Merge(WithoutFirstDim(element));
      if (rest.ok()) {
        rest_ = *std::move(rest);
        return OkStatus();
      }
    }
    return InvalidArgument("Tried to concat tensors with unequal shapes: element ", i, " has ",
                           element.ToString(), ", the others, but for their first dimension, ",
                           rest_.ToString());
  }

  int64_t first_ = PartialShape::kUnknown;  // declared length of every element
  PartialShape rest_;
};

class TensorListConcatKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    if (!node.attrs.contains("element_shape")) return OkStatus();
    return node.Attr("element_shape", &asked_);
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const TensorListValue* list, ListInput(ctx, 0, ctx.output_type(0).dtype));
    PartialShape asked = asked_;
    Dims leading_dims;
    if (ctx.num_inputs() > 1) {
      ASSIGN_OR_RETURN(asked, ElementShape(ctx.input(1)));
      ASSIGN_OR_RETURN(leading_dims, IntVector(ctx.input(2), "leading_dims"));
    }
    ASSIGN_OR_RETURN(const Joined joined, Joined::Of(*list, asked));
    Tensor* lengths;
    RETURN_IF_ERROR(ctx.Allocate(1, Shape{list->size()}, &lengths));
    std::vector<Tensor> parts;
    int64_t total = 0;
    for (int64_t i = 0; i < list->size(); ++i) {
      Tensor part = list->elements()[i];
      if (!part.valid()) {
        ASSIGN_OR_RETURN(const int64_t length, joined.LengthOfUnset(i, leading_dims));
        ASSIGN_OR_RETURN(const Shape shape, WithFirst(length, joined.rest()));
        ASSIGN_OR_RETURN(part, ElementOrZeros(ctx, *list, Tensor(), shape));
      }
      lengths->mutable_flat<int64_t>()[i] = part.dim(0);
      if (__builtin_add_overflow(total, part.dim(0), &total)) {
        return InvalidArgument("the lengths of the elements add up to more than 64 bits hold");
      }
      parts.push_back(std::move(part));
    }
    ASSIGN_OR_RETURN(const Shape shape, WithFirst(total, joined.rest()));
    Tensor* tensor;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &tensor));
    JoinRows(ctx, parts, tensor);
    return OkStatus();
  }

 private:
  PartialShape asked_;
};

Status SplitShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape tensor, s.WithRankAtLeast(0, 1));
  RETURN_IF_ERROR(s.WithRank(2, 1).status());
  ASSIGN_OR_RETURN(PartialShape shape, ElementShapeInput(s, 1));
  RETURN_IF_ERROR(WithoutFirstDim(shape).Merge(WithoutFirstDim(tensor)).status());
  SetListOutput(s, ElementType(s), std::move(shape));
  return OkStatus();
}

Status ConcatShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  PartialShape asked;
  if (s.num_inputs() > 1) {
    ASSIGN_OR_RETURN(asked, ElementShapeInput(s, 1));
    RETURN_IF_ERROR(s.WithRank(2, 1).status());
  } else {
    asked = s.attr<PartialShape>("element_shape");
  }
  ASSIGN_OR_RETURN(const PartialShape each, ElementsOf(s, 0).Merge(asked));
  ASSIGN_OR_RETURN(PartialShape shape,
                   JoinShapes(PartialShape({PartialShape::kUnknown}), WithoutFirstDim(each)));
  s.set_output(0, std::move(shape));
  s.set_output(1, PartialShape::UnknownOfRank(1));
  return OkStatus();
}

std::vector<Gradient> SplitGradient(const GradientScope& g) {
  const Output tensor = g.x(0);
  const Output rest = Call("Slice", {ShapeOf(tensor), g.Const(Tensor::Vector<int32_t>({1})),
                                     g.Const(Tensor::Vector<int32_t>({-1}))});
  const Output shape =
      ConcatV2({g.Const(Tensor::Vector<int32_t>({-1})), rest}, g.Const<int32_t>(0));
  const Outputs joined =
      CallN("TensorListConcatV2", {g.dy(), shape, g.x(2)}, {{"element_dtype", tensor.dtype()}});
  return {joined[0], Gradient(), Gradient()};
}

std::vector<Gradient> ConcatGradient(const GradientScope& g) {
  const Output shape = Call("TensorListElementShape", {g.x(0)}, {{"shape_type", DType::kInt32}});
  std::vector<Gradient> dx(g.num_inputs());
  dx[0] = Call("TensorListSplit", {g.dy(0), shape, g.y(1)});
  return dx;
}

OP(TensorListSplit) {
  return {
      .doc = "Splits a tensor along dimension 0 into a list of pieces of the given lengths.",
      .inputs = {{"tensor", "element_dtype"},
                 {"element_shape", "shape_type"},
                 {"lengths", "int64"}},
      .outputs = {{"output_handle", "variant"}},
      .types = {{"element_dtype", kAnyType}, {"shape_type", kIndex}},
      .shape = SplitShape,
      .gradient = SplitGradient,
      .examples = {{.inputs = {{{{4, 3}}}, {{{2}, {-1, 3}}}, {{{3}, {1, 0, 3}}}}}},
  };
}

OP(TensorListConcat) {
  return {
      .doc =
          "Concatenates the elements of a list along dimension 0, and returns their "
          "lengths.",
      .inputs = {{"input_handle", "variant"}},
      .outputs = {{"tensor", "element_dtype"}, {"lengths", "int64"}},
      .types = {{"element_dtype", kAnyType}},
      .attrs = {{"element_shape", PartialShape()}},
      .shape = ConcatShape,
      .gradient = ConcatGradient,
      .examples = {{.inputs = {{{{2, 2, 3}}}}}},
  };
}

OP(TensorListConcatV2) {
  return {
      .doc =
          "Concatenates the elements of a list along dimension 0, and returns their "
          "lengths. An element that was never set counts as zeros, with the number of rows "
          "given by element_shape or leading_dims.",
      .inputs = {{"input_handle", "variant"},
                 {"element_shape", "shape_type"},
                 {"leading_dims", "int64"}},
      .outputs = {{"tensor", "element_dtype"}, {"lengths", "int64"}},
      .types = {{"element_dtype", kAnyType}, {"shape_type", kIndex}},
      .shape = ConcatShape,
      .gradient = ConcatGradient,
      .examples = {{.inputs = {{{{2, 2, 3}}}, {{{2}, {-1, 3}}}, {{{2}, {2, 2}}}}}},
  };
}

KERNEL_ANY_TYPE(TensorListSplit, TensorListSplitKernel);
KERNEL_ANY_TYPE(TensorListConcat, TensorListConcatKernel);
KERNEL_ANY_TYPE(TensorListConcatV2, TensorListConcatKernel);

}  // namespace
}  // namespace penstock
