// SPDX-License-Identifier: Apache-2.0
//
// Ops that convert between a tensor and a list of its slices along dimension 0:
// TensorListFromTensor, TensorListStack, TensorListGather, TensorListScatter, TensorListScatterV2,
// TensorListScatterIntoExistingList.
#include "kernels/array/rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/array/arguments.h"
#include "kernels/tensor_list/element_shape.h"
#include "kernels/tensor_list/tensor_list.h"

namespace penstock {
namespace {

// Sets the elements `indices` of `list`, which must exist, to the rows of `tensor`.
Status SetRows(KernelContext& ctx, const Tensor& tensor, const Dims& indices,
               TensorListValue* list) {
  Shape each = tensor.shape();
  each.RemoveDim(0);
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i);
    ASSIGN_OR_RETURN(Tensor row, Rows(ctx, tensor, at, at + 1, each));
    RETURN_IF_ERROR(list->Set(indices[i], std::move(row)));
  }
  return OkStatus();
}

// Stacks the elements at `indices` into one tensor, output 0. InvalidArgument if their shapes
// differ.
Status Stack(KernelContext& ctx, const TensorListValue& list, const Dims& indices,
             const PartialShape& asked) {
  ASSIGN_OR_RETURN(PartialShape common, list.element_shape().Merge(asked));
  std::vector<Tensor> parts;
  Tensor zeros;
  for (const int64_t index : indices) {
    Tensor part = list.elements()[index];
    if (!part.valid()) {
      if (!zeros.valid()) {
        ASSIGN_OR_RETURN(zeros, ElementOrZeros(ctx, list, Tensor(), asked));
      }
      part = zeros;
    }
    const StatusOr<PartialShape> both = common.Merge(part.shape());
    if (!both.ok()) {
      return InvalidArgument("Tried to stack tensors with unequal shapes: ", common.ToString(),
                             " vs ", part.shape().ToString());
    }
    common = *both;
    parts.push_back(std::move(part));
  }
  if (!common.fully_known()) {
    return InvalidArgument("Tried to stack elements of an empty list with non-fully-defined ",
                           "element_shape: ", common.ToString());
  }
  ASSIGN_OR_RETURN(const Shape shape,
                   WithFirst(static_cast<int64_t>(parts.size()), common.ToShape()));
  Tensor* stacked;
  RETURN_IF_ERROR(ctx.Allocate(0, shape, &stacked));
  JoinRows(ctx, parts, stacked);
  return OkStatus();
}

Dims AllIndices(int64_t size) {
  Dims indices(size);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

class TensorListFromTensorKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor tensor = ctx.TakeInput(0);
    ASSIGN_OR_RETURN(PartialShape shape, ElementShape(ctx.input(1)));
    if (tensor.rank() == 0) {
      return InvalidArgument("Tensor must be at least a vector, but saw shape: []");
    }
    Shape each = tensor.shape();
    each.RemoveDim(0);
    if (!shape.Merge(each).ok()) {
      return InvalidArgument("Specified a list with shape ", shape.ToString(),
                             " from a tensor with shape ", each.ToString());
    }
    OwnList made = NewList(tensor.dtype(), std::move(shape));
    RETURN_IF_ERROR(made.list->Resize(tensor.dim(0)));
    RETURN_IF_ERROR(SetRows(ctx, tensor, AllIndices(tensor.dim(0)), made.list));
    ctx.SetOutput(0, std::move(made.handle));
    return OkStatus();
  }
};

class TensorListStackKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("num_elements", &wanted_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const TensorListValue* list, ListInput(ctx, 0, ctx.output_type(0).dtype));
    ASSIGN_OR_RETURN(const PartialShape asked, ElementShape(ctx.input(1)));
    if (wanted_ != -1 && list->size() != wanted_) {
      return InvalidArgument("Operation expected a list with ", wanted_,
                             " elements but got a list with ", list->size(), " elements.");
    }
    return Stack(ctx, *list, AllIndices(list->size()), asked);
  }

 private:
  int64_t wanted_ = -1;
};

class TensorListGatherKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const TensorListValue* list, ListInput(ctx, 0, ctx.output_type(0).dtype));
    ASSIGN_OR_RETURN(const Dims indices, IntVector(ctx.input(1), "indices"));
    ASSIGN_OR_RETURN(const PartialShape asked, ElementShape(ctx.input(2)));
    for (const int64_t index : indices) {
      if (index >= 0 && index < list->size()) continue;
      return InvalidArgument("Trying to gather element ", index, " in a list with ", list->size(),
                             " elements.");
    }
    return Stack(ctx, *list, indices, asked);
  }
};

// Returns the indices in `input`, one for each row of `tensor`. InvalidArgument if there are more
// or fewer indices than rows, or if an index is negative. Sets `*length` to the least length of a
// list that has these elements.
StatusOr<Dims> ScatterIndices(const Tensor& tensor, const Tensor& input, int64_t* length) {
  ASSIGN_OR_RETURN(Dims indices, IntVector(input, "indices"));
  if (tensor.rank() == 0) {
    return InvalidArgument("Tensor must be at least a vector, but saw shape: []");
  }
  if (static_cast<int64_t>(indices.size()) != tensor.dim(0)) {
    return InvalidArgument("Invalid number of rows in input tensor. Expected: ", indices.size(),
                           " Actual: ", tensor.dim(0));
  }
  *length = 0;
  for (const int64_t index : indices) {
    if (index < 0) {
      return InvalidArgument("Indices in TensorListScatter must all be non-negative, one is ",
                             index);
    }
    *length = std::max(*length, index + 1);
  }
  return indices;
}

// The kernel of TensorListScatter and TensorListScatterV2. Only V2 has the input num_elements.
class TensorListScatterKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor tensor = ctx.TakeInput(0);
    ASSIGN_OR_RETURN(PartialShape shape, ElementShape(ctx.input(2)));
    int64_t length = 0;
    ASSIGN_OR_RETURN(const Dims indices, ScatterIndices(tensor, ctx.input(1), &length));
    if (ctx.num_inputs() > 3) {
      ASSIGN_OR_RETURN(const int64_t wanted, IntScalar(ctx.input(3), "num_elements"));
      if (wanted < -1 || (wanted >= 0 && wanted < length)) {
        return InvalidArgument("TensorListScatter expects num_elements to be -1 or at least ",
                               length, ", one more than the largest index; it is ", wanted);
      }
      length = std::max(length, wanted);
    }
    OwnList made = NewList(tensor.dtype(), std::move(shape));
    RETURN_IF_ERROR(made.list->Resize(length));
    RETURN_IF_ERROR(SetRows(ctx, tensor, indices, made.list));
    ctx.SetOutput(0, std::move(made.handle));
    return OkStatus();
  }
};

class TensorListScatterIntoExistingListKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor tensor = ctx.TakeInput(1);
    int64_t length = 0;
    ASSIGN_OR_RETURN(const Dims indices, ScatterIndices(tensor, ctx.input(2), &length));
    ASSIGN_OR_RETURN(OwnList own, TakeList(ctx, 0, tensor.dtype()));
    if (length > own.list->size()) RETURN_IF_ERROR(own.list->Resize(length));
    RETURN_IF_ERROR(SetRows(ctx, tensor, indices, own.list));
    ctx.SetOutput(0, std::move(own.handle));
    return OkStatus();
  }
};

PartialShape RowOf(const PartialShape& tensor) {
  return tensor.known_rank() ? SubShape(tensor, 1, tensor.rank()) : PartialShape();
}

// Sets output 0 to a list of the rows of input 0. Input `element_shape` gives their shape.
Status SetRowsShape(ShapeScope& s, int element_shape) {
  ASSIGN_OR_RETURN(const PartialShape tensor, s.WithRankAtLeast(0, 1));
  ASSIGN_OR_RETURN(PartialShape shape, ElementShapeInput(s, element_shape));
  RETURN_IF_ERROR(shape.Merge(RowOf(tensor)).status());
  SetListOutput(s, ElementType(s), std::move(shape));
  return OkStatus();
}

Status FromTensorShape(ShapeScope& s) { return SetRowsShape(s, 1); }

Status ScatterShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  if (s.num_inputs() > 3) RETURN_IF_ERROR(s.WithRank(3, 0).status());
  return SetRowsShape(s, 2);
}

Status ScatterIntoShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape tensor, s.WithRankAtLeast(1, 1));
  RETURN_IF_ERROR(s.WithRank(2, 1).status());
  RETURN_IF_ERROR(ElementsOf(s, 0).Merge(RowOf(tensor)).status());
  return SameList(s);
}

// Sets output 0 to a tensor of `first` elements. The list and input `asked` give the elements'
// shape.
Status SetStackedShape(ShapeScope& s, int asked, int64_t first) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  ASSIGN_OR_RETURN(const PartialShape wanted, ElementShapeInput(s, asked));
  ASSIGN_OR_RETURN(const PartialShape each, ElementsOf(s, 0).Merge(wanted));
  ASSIGN_OR_RETURN(PartialShape shape, JoinShapes(PartialShape({first}), each));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

Status StackShape(ShapeScope& s) {
  const int64_t count = s.attr<int64_t>("num_elements");
  return SetStackedShape(s, 1, count >= 0 ? count : PartialShape::kUnknown);
}

Status GatherShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape indices, s.WithRank(1, 1));
  return SetStackedShape(s, 2, indices.dim(0));
}

Attrs Elements(DType dtype) { return {{"element_dtype", dtype}}; }
// Returns the shape of a tensor's rows, computed by nodes of the graph.
Output RowShape(Output tensor) {
  return Call("Slice", {ShapeOf(tensor), Constant(*tensor.sink, Tensor::Vector<int32_t>({1})),
                        Constant(*tensor.sink, Tensor::Vector<int32_t>({-1}))});
}

std::vector<Gradient> FromTensorGradient(const GradientScope& g) {
  const Output tensor = g.x(0);
  Attrs attrs = Elements(tensor.dtype());
  const PartialShape shape = tensor.shape();
  if (shape.known_rank() && shape.dim(0) >= 0) attrs["num_elements"] = shape.dim(0);
  return {Call("TensorListStack", {g.dy(), RowShape(tensor)}, std::move(attrs)), Gradient()};
}

std::vector<Gradient> StackGradient(const GradientScope& g) {
  return {Call("TensorListFromTensor", {g.dy(), RowShape(g.dy())}), Gradient()};
}

std::vector<Gradient> GatherGradient(const GradientScope& g) {
  const Output list = g.x(0);
  const Output shape = Call("TensorListElementShape", {list}, {{"shape_type", DType::kInt32}});
  const Output zeros = Call("TensorListReserve", {shape, Call("TensorListLength", {list})},
                            Elements(g.dy().dtype()));
  return {Call("TensorListScatterIntoExistingList", {zeros, g.dy(), g.x(1)}), Gradient(),
          Gradient()};
}

std::vector<Gradient> ScatterGradient(const GradientScope& g) {
  const Output tensor = g.x(0);
  std::vector<Gradient> dx(g.num_inputs());
  dx[0] = Call("TensorListGather", {g.dy(), g.x(1), RowShape(tensor)}, Elements(tensor.dtype()));
  return dx;
}

std::vector<Gradient> ScatterIntoGradient(const GradientScope& g) {
  const Output tensor = g.x(1), indices = g.x(2);
  return {Call("TensorListScatterIntoExistingList", {g.dy(), ZerosLike(tensor), indices}),
          Call("TensorListGather", {g.dy(), indices, RowShape(tensor)}, Elements(tensor.dtype())),
          Gradient()};
}

std::vector<TypeAttrDef> RowTypes() {
  return {{"element_dtype", kAnyType}, {"shape_type", kIndex}};
}

OP(TensorListFromTensor) {
  return {
      .doc = "Makes a list of the slices of a tensor along dimension 0.",
      .inputs = {{"tensor", "element_dtype"}, {"element_shape", "shape_type"}},
      .outputs = {{"output_handle", "variant"}},
      .types = RowTypes(),
      .shape = FromTensorShape,
      .gradient = FromTensorGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{1}, {3}}}}}},
  };
}

OP(TensorListStack) {
  return {
      .doc =
          "Stacks the elements of a list into one tensor, with zeros for those that were "
          "never set.",
      .inputs = {{"input_handle", "variant"}, {"element_shape", "int32"}},
      .outputs = {{"tensor", "element_dtype"}},
      .types = {{"element_dtype", kAnyType}},
      .attrs = {{"num_elements", -1}},
      .shape = StackShape,
      .gradient = StackGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{1}, {-1}}}}},
                   {.inputs = {{{{2, 3}}}, {{{1}, {3}}}}, .attrs = {{"num_elements", 2}}}},
  };
}

OP(TensorListGather) {
  return {
      .doc =
          "Stacks the elements of a list at `indices` into one tensor, with zeros for those "
          "that were never set.",
      .inputs = {{"input_handle", "variant"}, {"indices", "int32"}, {"element_shape", "int32"}},
      .outputs = {{"values", "element_dtype"}},
      .types = {{"element_dtype", kAnyType}},
      .shape = GatherShape,
      .gradient = GatherGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{3}, {1, 0, 1}}}, {{{1}, {3}}}}}},
  };
}

OP(TensorListScatter) {
  return {
      .doc = "Makes a list that has the slices of a tensor along dimension 0 at `indices`.",
      .inputs = {{"tensor", "element_dtype"},
                 {"indices", "int32"},
                 {"element_shape", "shape_type"}},
      .outputs = {{"output_handle", "variant"}},
      .types = RowTypes(),
      .shape = ScatterShape,
      .gradient = ScatterGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{2}, {3, 1}}}, {{{1}, {3}}}}}},
  };
}

OP(TensorListScatterV2) {
  return {
      .doc =
          "Makes a list of num_elements elements (-1: as many as needed) that has the "
          "slices of a tensor along dimension 0 at `indices`.",
      .inputs = {{"tensor", "element_dtype"},
                 {"indices", "int32"},
                 {"element_shape", "shape_type"},
                 {"num_elements", "int32"}},
      .outputs = {{"output_handle", "variant"}},
      .types = RowTypes(),
      .shape = ScatterShape,
      .gradient = ScatterGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{2}, {3, 1}}}, {{{1}, {3}}}, {{.values = {6}}}}}},
  };
}

OP(TensorListScatterIntoExistingList) {
  return {
      .doc =
          "Replaces the elements of a list at `indices` by the slices of a tensor along "
          "dimension 0. The list grows if needed.",
      .inputs = {{"input_handle", "variant"}, {"tensor", "element_dtype"}, {"indices", "int32"}},
      .outputs = {{"output_handle", "variant"}},
      .types = {{"element_dtype", kAnyType}},
      .shape = ScatterIntoShape,
      .gradient = ScatterIntoGradient,
      .examples = {{.inputs = {{{{4, 3}}}, {{{2, 3}}}, {{{2}, {3, 1}}}}}},
  };
}

KERNEL_ANY_TYPE(TensorListFromTensor, TensorListFromTensorKernel);
KERNEL_ANY_TYPE(TensorListStack, TensorListStackKernel);
KERNEL_ANY_TYPE(TensorListGather, TensorListGatherKernel);
KERNEL_ANY_TYPE(TensorListScatter, TensorListScatterKernel);
KERNEL_ANY_TYPE(TensorListScatterV2, TensorListScatterKernel);
KERNEL_ANY_TYPE(TensorListScatterIntoExistingList, TensorListScatterIntoExistingListKernel);

}  // namespace
}  // namespace penstock
