// SPDX-License-Identifier: Apache-2.0
//
// Ops on whole lists: EmptyTensorList, TensorListReserve, TensorListLength, TensorListElementShape,
// TensorListResize, TensorListConcatLists.
#include <limits>
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/array/arguments.h"
#include "kernels/tensor_list/element_shape.h"
#include "kernels/tensor_list/tensor_list.h"

namespace penstock {
namespace {

class EmptyTensorListKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("element_dtype", &dtype_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(PartialShape shape, ElementShape(ctx.input(0)));
    ASSIGN_OR_RETURN(const int64_t max_length, IntScalar(ctx.input(1), "max_num_elements"));
    ctx.SetOutput(0, NewList(dtype_, std::move(shape), max_length).handle);
    return OkStatus();
  }

 private:
  DType dtype_ = DType::kInvalid;
};

class TensorListReserveKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("element_dtype", &dtype_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(PartialShape shape, ElementShape(ctx.input(0)));
    ASSIGN_OR_RETURN(const int64_t length, IntScalar(ctx.input(1), "num_elements"));
    if (length < 0) {
      return InvalidArgument("The num_elements to reserve must be a non negative number, but got ",
                             length);
    }
    OwnList made = NewList(dtype_, std::move(shape));
    RETURN_IF_ERROR(made.list->Resize(length));
    ctx.SetOutput(0, std::move(made.handle));
    return OkStatus();
  }

 private:
  DType dtype_ = DType::kInvalid;
};

class TensorListLengthKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const TensorListValue* list, ListInput(ctx, 0));
    ctx.SetOutput(0, Tensor::Scalar(static_cast<int32_t>(list->size())));
    return OkStatus();
  }
};

template <class Index>
Tensor ShapeTensor(const PartialShape& shape) {
  if (!shape.known_rank()) return Tensor::Scalar<Index>(-1);
  return Tensor::Vector<Index>(std::vector<Index>(shape.dims().begin(), shape.dims().end()));
}

class TensorListElementShapeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const TensorListValue* list, ListInput(ctx, 0));
    const PartialShape& shape = list->element_shape();
    if (ctx.output_type(0).dtype == DType::kInt64) {
      ctx.SetOutput(0, ShapeTensor<int64_t>(shape));
      return OkStatus();
    }
    for (const int64_t dim : shape.dims()) {
      if (dim > std::numeric_limits<int32_t>::max()) {
        return InvalidArgument("the element shape ", shape.ToString(), " does not fit in int32");
      }
    }
    ctx.SetOutput(0, ShapeTensor<int32_t>(shape));
    return OkStatus();
  }
};

class TensorListResizeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const int64_t size, IntScalar(ctx.input(1), "size"));
    if (size < 0) {
      return InvalidArgument("TensorListSlice expects size to be non-negative. Got: ", size);
    }
    ASSIGN_OR_RETURN(OwnList own, TakeList(ctx, 0));
    RETURN_IF_ERROR(own.list->Resize(size));
    ctx.SetOutput(0, std::move(own.handle));
    return OkStatus();
  }
};

// Concatenates each list of a tensor of lists with the list at the same place of the other tensor.
class TensorListConcatListsKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("element_dtype", &dtype_); }
  Status Compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    if (a.shape() != b.shape()) {
      return InvalidArgument("the lists that are joined have shapes ", a.shape().ToString(),
                             " and ", b.shape().ToString());
    }
    Tensor* joined;
    RETURN_IF_ERROR(ctx.Allocate(0, a.shape(), &joined));
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      ASSIGN_OR_RETURN(const TensorListValue* x, ListOf(a.flat<Variant>()[i], dtype_));
      ASSIGN_OR_RETURN(const TensorListValue* y, ListOf(b.flat<Variant>()[i], dtype_));
      auto both = std::make_shared<TensorListValue>(*x);
      RETURN_IF_ERROR(both->Append(*y));
      joined->mutable_flat<Variant>()[i].value = std::move(both);
    }
    return OkStatus();
  }

 private:
  DType dtype_ = DType::kInvalid;
};

Status NewListShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  ASSIGN_OR_RETURN(PartialShape shape, ElementShapeInput(s, 0));
  SetListOutput(s, ElementType(s), std::move(shape));
  return OkStatus();
}

Status LengthShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  return ScalarShape(s);
}

Status ElementShapeShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  const PartialShape element = ElementsOf(s, 0);
  if (element.known_rank()) s.set_output(0, PartialShape({element.rank()}));
  return OkStatus();
}

Status ResizeShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  return SameList(s);
}

Status ConcatListsShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, s.input(0).Merge(s.input(1)));
  s.set_output(0, std::move(shape));
  if (s.element(0) != nullptr) s.set_output_element(0, *s.element(0));
  return OkStatus();
}

std::vector<Gradient> ResizeGradient(const GradientScope& g) {
  const Output length = Call("TensorListLength", {g.x(0)});
  return {Call("TensorListResize", {g.dy(), length}), Gradient()};
}

std::vector<TypeAttrDef> NewListTypes() {
  return {{"element_dtype", kAnyType}, {"shape_type", kIndex}};
}

OP(EmptyTensorList) {
  return {
      .doc =
          "Makes an empty list, which can hold up to max_num_elements elements (-1: no "
          "limit).",
      .inputs = {{"element_shape", "shape_type"}, {"max_num_elements", "int32"}},
      .outputs = {{"handle", "variant"}},
      .types = NewListTypes(),
      .shape = NewListShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}, {2, -1}}}, {{.values = {5}}}}}},
  };
}

OP(TensorListReserve) {
  return {
      .doc = "Makes a list of num_elements elements, none of which is set.",
      .inputs = {{"element_shape", "shape_type"}, {"num_elements", "int32"}},
      .outputs = {{"handle", "variant"}},
      .types = NewListTypes(),
      .shape = NewListShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}, {2, -1}}}, {{.values = {5}}}}}},
  };
}

OP(TensorListLength) {
  return {
      .doc = "Returns the number of elements of a list.",
      .inputs = {{"input_handle", "variant"}},
      .outputs = {{"length", "int32"}},
      .shape = LengthShape,
      .gradient = NoGradient,
  };
}

OP(TensorListElementShape) {
  return {
      .doc =
          "Returns the shape of a list's elements, with -1 for unknown dimensions; the "
          "scalar -1 if the rank is unknown.",
      .inputs = {{"input_handle", "variant"}},
      .outputs = {{"element_shape", "shape_type"}},
      .types = {{"shape_type", kIndex}},
      .shape = ElementShapeShape,
      .gradient = NoGradient,
  };
}

OP(TensorListResize) {
  return {
      .doc = "Resizes a list; added elements are not set.",
      .inputs = {{"input_handle", "variant"}, {"size", "int32"}},
      .outputs = {{"output_handle", "variant"}},
      .shape = ResizeShape,
      .gradient = ResizeGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{.values = {4}}}}}},
  };
}

OP(TensorListConcatLists) {
  return {
      .doc = "Concatenates two batches of lists, pair by pair.",
      .inputs = {{"input_a", "variant"}, {"input_b", "variant"}},
      .outputs = {{"output", "variant"}},
      .types = {{"element_dtype", kAnyType}},
      .shape = ConcatListsShape,
      .gradient = NoGradient,
  };
}

KERNEL_ANY_TYPE(EmptyTensorList, EmptyTensorListKernel);
KERNEL_ANY_TYPE(TensorListReserve, TensorListReserveKernel);
KERNEL_ANY_TYPE(TensorListLength, TensorListLengthKernel);
KERNEL_ANY_TYPE(TensorListElementShape, TensorListElementShapeKernel);
KERNEL_ANY_TYPE(TensorListResize, TensorListResizeKernel);
KERNEL_ANY_TYPE(TensorListConcatLists, TensorListConcatListsKernel);

}  // namespace
}  // namespace penstock
