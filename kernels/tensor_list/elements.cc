// SPDX-License-Identifier: Apache-2.0
//
// Ops on one element of a list: TensorListPushBack, TensorListPushBackBatch, TensorListPopBack,
// TensorListGetItem, TensorListSetItem.
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/array/arguments.h"
#include "kernels/array/rows.h"
#include "kernels/tensor_list/element_shape.h"
#include "kernels/tensor_list/tensor_list.h"

namespace penstock {
namespace {

class TensorListPushBackKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(OwnList own, TakeList(ctx, 0, ctx.input(1).dtype()));
    RETURN_IF_ERROR(own.list->Push(ctx.TakeInput(1)));
    ctx.SetOutput(0, std::move(own.handle));
    return OkStatus();
  }
};

class TensorListPushBackBatchKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& handles = ctx.input(0);
    const Tensor& rows = ctx.input(1);
    if (handles.rank() != 1 || rows.rank() < 1 || rows.dim(0) != handles.dim(0)) {
      return InvalidArgument("Expected as many rows of tensor as there are lists, but saw ",
                             rows.shape().ToString(), " and ", handles.shape().ToString());
    }
    Shape each = rows.shape();
    each.RemoveDim(0);
    Tensor* pushed;
    RETURN_IF_ERROR(ctx.Allocate(0, handles.shape(), &pushed));
    for (int64_t i = 0; i < handles.dim(0); ++i) {
      ASSIGN_OR_RETURN(const TensorListValue* list,
                       ListOf(handles.flat<Variant>()[i], rows.dtype()));
      ASSIGN_OR_RETURN(Tensor row, Rows(ctx, rows, i, i + 1, each));
      auto longer = std::make_shared<TensorListValue>(*list);
      RETURN_IF_ERROR(longer->Push(std::move(row)));
      pushed->mutable_flat<Variant>()[i].value = std::move(longer);
    }
    return OkStatus();
  }
};

class TensorListPopBackKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const PartialShape asked, ElementShape(ctx.input(1)));
    ASSIGN_OR_RETURN(OwnList own, TakeList(ctx, 0, ctx.output_type(1).dtype));
    if (own.list->size() == 0) return InvalidArgument("Trying to pop from an empty list.");
    ASSIGN_OR_RETURN(Tensor element, ElementOrZeros(ctx, *own.list, own.list->Pop(), asked));
    ctx.SetOutput(0, std::move(own.handle));
    ctx.SetOutput(1, std::move(element));
    return OkStatus();
  }
};

class TensorListGetItemKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const TensorListValue* list, ListInput(ctx, 0, ctx.output_type(0).dtype));
    ASSIGN_OR_RETURN(const int64_t index, IntScalar(ctx.input(1), "index"));
    ASSIGN_OR_RETURN(const PartialShape asked, ElementShape(ctx.input(2)));
    if (index < 0 || index >= list->size()) {
      return InvalidArgument("Trying to access element ", index, " in a list with ", list->size(),
                             " elements.");
    }
    ASSIGN_OR_RETURN(Tensor item, ElementOrZeros(ctx, *list, list->elements()[index], asked));
    ctx.SetOutput(0, std::move(item));
    return OkStatus();
  }
};

class TensorListSetItemKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    return node.Attr("resize_if_index_out_of_bounds", &resize_);
  }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const int64_t index, IntScalar(ctx.input(1), "index"));
    ASSIGN_OR_RETURN(OwnList own, TakeList(ctx, 0, ctx.input(2).dtype()));
    if (index < 0 || (index >= own.list->size() && !resize_)) {
      return InvalidArgument("Trying to modify element ", index, " in a list with ",
                             own.list->size(), " elements.");
    }
    if (index >= own.list->size()) RETURN_IF_ERROR(own.list->Resize(index + 1));
    RETURN_IF_ERROR(own.list->Set(index, ctx.TakeInput(2)));
    ctx.SetOutput(0, std::move(own.handle));
    return OkStatus();
  }

 private:
  bool resize_ = false;
};

// Sets output 0 to the list of input 0, with an element of the shape of input `item` added or
// replaced.
Status SetPutShape(ShapeScope& s, int item) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  const PartialShape elements = ElementsOf(s, 0);
  RETURN_IF_ERROR(elements.Merge(s.input(item)).status());
  SetListOutput(s, ElementType(s), elements);
  return OkStatus();
}

Status PushBackShape(ShapeScope& s) { return SetPutShape(s, 1); }

Status PushBackBatchShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape handles, s.WithRank(0, 1));
  ASSIGN_OR_RETURN(const PartialShape rows, s.WithRankAtLeast(1, 1));
  PartialShape count = handles;
  if (rows.known_rank()) {
    ASSIGN_OR_RETURN(count, handles.Merge(PartialShape({rows.dim(0)})));
  }
  s.set_output(0, std::move(count));
  if (s.element(0) != nullptr) s.set_output_element(0, *s.element(0));
  return OkStatus();
}

// Sets the shape of output `item`, an element, from the list and from input `asked`, the requested
// shape.
Status SetItemShape(ShapeScope& s, int asked, int item) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  ASSIGN_OR_RETURN(const PartialShape wanted, ElementShapeInput(s, asked));
  ASSIGN_OR_RETURN(PartialShape shape, ElementsOf(s, 0).Merge(wanted));
  s.set_output(item, std::move(shape));
  return OkStatus();
}

Status PopBackShape(ShapeScope& s) {
  RETURN_IF_ERROR(SameList(s));
  return SetItemShape(s, 1, 1);
}

Status GetItemShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  return SetItemShape(s, 2, 0);
}

Status SetItemInputsShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  return SetPutShape(s, 2);
}

Attrs Elements(DType dtype) { return {{"element_dtype", dtype}}; }
Output ShapeOfElements(Output list) {
  return Call("TensorListElementShape", {list}, {{"shape_type", DType::kInt32}});
}

std::vector<Gradient> PushBackGradient(const GradientScope& g) {
  const Outputs popped =
      CallN("TensorListPopBack", {g.dy(), ShapeOf(g.x(1))}, Elements(g.x(1).dtype()));
  return {popped[0], popped[1]};
}

std::vector<Gradient> PopBackGradient(const GradientScope& g) {
  Output list;
  if (g.has_dy(0)) {
    list = g.dy(0);
  } else {
    list = Call("EmptyTensorList", {ShapeOfElements(g.y(0)), g.Const<int32_t>(-1)},
                Elements(g.y(1).dtype()));
  }
  return {Call("TensorListPushBack", {list, g.dy(1)}), Gradient()};
}

std::vector<Gradient> GetItemGradient(const GradientScope& g) {
  const Output zeros =
      Call("TensorListReserve", {ShapeOfElements(g.x(0)), Call("TensorListLength", {g.x(0)})},
           Elements(g.dy().dtype()));
  return {Call("TensorListSetItem", {zeros, g.x(1), g.dy()}), Gradient(), Gradient()};
}

std::vector<Gradient> SetItemGradient(const GradientScope& g) {
  const Output item = g.x(2);
  return {Call("TensorListSetItem", {g.dy(), g.x(1), ZerosLike(item)}), Gradient(),
          Call("TensorListGetItem", {g.dy(), g.x(1), ShapeOf(item)}, Elements(item.dtype()))};
}

OP(TensorListPushBack) {
  return {
      .doc = "Appends an element to a list.",
      .inputs = {{"input_handle", "variant"}, {"tensor", "element_dtype"}},
      .outputs = {{"output_handle", "variant"}},
      .types = {{"element_dtype", kAnyType}},
      .shape = PushBackShape,
      .gradient = PushBackGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{3}}}}}},
  };
}

OP(TensorListPushBackBatch) {
  return {
      .doc = "Appends a row of `tensor` to each of a batch of lists.",
      .inputs = {{"input_handles", "variant"}, {"tensor", "element_dtype"}},
      .outputs = {{"output_handles", "variant"}},
      .types = {{"element_dtype", kAnyType}},
      .shape = PushBackBatchShape,
      .gradient = PushBackGradient,
      .examples = {{.inputs = {{{{2, 2, 3}}}, {{{2, 3}}}}}},
  };
}

OP(TensorListPopBack) {
  return {
      .doc = "Removes the last element of a list; returns the list and the element.",
      .inputs = {{"input_handle", "variant"}, {"element_shape", "int32"}},
      .outputs = {{"output_handle", "variant"}, {"tensor", "element_dtype"}},
      .types = {{"element_dtype", kAnyType}},
      .shape = PopBackShape,
      .gradient = PopBackGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{1}, {-1}}}}}},
  };
}

OP(TensorListGetItem) {
  return {
      .doc = "Returns an element of a list; zeros if it was never set.",
      .inputs = {{"input_handle", "variant"}, {"index", "int32"}, {"element_shape", "Tshape"}},
      .outputs = {{"item", "element_dtype"}},
      .types = {{"element_dtype", kAnyType}, {"Tshape", kIndex, DType::kInt32}},
      .shape = GetItemShape,
      .gradient = GetItemGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{.values = {1}}}, {{{1}, {3}}}}}},
  };
}

OP(TensorListSetItem) {
  return {
      .doc = "Returns a list in which one element is replaced.",
      .inputs = {{"input_handle", "variant"}, {"index", "int32"}, {"item", "element_dtype"}},
      .outputs = {{"output_handle", "variant"}},
      .types = {{"element_dtype", kAnyType}},
      .attrs = {{"resize_if_index_out_of_bounds", false}},
      .shape = SetItemInputsShape,
      .gradient = SetItemGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{.values = {1}}}, {{{3}}}}}},
  };
}

KERNEL_ANY_TYPE(TensorListPushBack, TensorListPushBackKernel);
KERNEL_ANY_TYPE(TensorListPushBackBatch, TensorListPushBackBatchKernel);
KERNEL_ANY_TYPE(TensorListPopBack, TensorListPopBackKernel);
KERNEL_ANY_TYPE(TensorListGetItem, TensorListGetItemKernel);
KERNEL_ANY_TYPE(TensorListSetItem, TensorListSetItemKernel);

}  // namespace
}  // namespace penstock
