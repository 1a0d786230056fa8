// SPDX-License-Identifier: Apache-2.0
#include "kernels/tensor_list/tensor_list.h"

#include <utility>

#include "kernels/array/elements.h"

namespace penstock {
namespace {

const bool list_registered =
    RegisterVariantDecoder(TensorListValue::kTypeName, TensorListValue::Decode);

StatusOr<const TensorListValue*> ListOf(const Variant& variant) {
  const auto* list = dynamic_cast<const TensorListValue*>(variant.value.get());
  if (list != nullptr) return list;
  return InvalidArgument("Input handle is not a list. Saw: '",
                         variant.value == nullptr ? "nothing" : variant.value->ToString(), "'");
}

Status CheckType(const TensorListValue& list, DType dtype) {
  if (list.element_dtype() == dtype) return OkStatus();
  return InvalidArgument("Invalid data types; op elements ", Name(dtype), " but list elements ",
                         Name(list.element_dtype()));
}

}  // namespace

std::string TensorListValue::ToString() const {
  return StrCat("a list of ", size(), " ", Name(element_dtype_), element_shape_.ToString());
}

Status TensorListValue::Check(const Tensor& element) {
  RETURN_IF_ERROR(CheckType(*this, element.dtype()));
  if (!element_shape_.Compatible(element.shape())) {
    return InvalidArgument("Tried to put a tensor with incompatible shape into a list. Op element ",
                           "shape: ", element.shape().ToString(),
                           " list shape: ", element_shape_.ToString());
  }
  return Admit(element);
}

Status TensorListValue::Push(Tensor element) {
  if (max_length_ != kUnlimited && size() >= max_length_) {
    return InvalidArgument("Tried to push item into a full list. list size: ", size(),
                           " max_num_elements: ", max_length_);
  }
  RETURN_IF_ERROR(Check(element));
  elements_.push_back(std::move(element));
  return OkStatus();
}

Status TensorListValue::Set(int64_t index, Tensor element) {
  RETURN_IF_ERROR(Check(element));
  elements_[index] = std::move(element);
  return OkStatus();
}

Tensor TensorListValue::Pop() {
  Tensor last = std::move(elements_.back());
  elements_.pop_back();
  return last;
}

Status TensorListValue::Resize(int64_t size) {
  if (size < 0) return InvalidArgument("a list cannot have ", size, " elements");
  if (size > kLengthMax) {
    return ResourceExhausted("a list of ", size, " elements; at most ", kLengthMax, " can be made");
  }
  elements_.resize(size);
  return OkStatus();
}

Status TensorListValue::Append(const TensorListValue& other) {
  RETURN_IF_ERROR(CheckType(*this, other.element_dtype_));
  if (element_shape_ != other.element_shape_) {
    return InvalidArgument("the element shapes of two lists that are joined are not identical: ",
                           element_shape_.ToString(), " and ", other.element_shape_.ToString());
  }
  const int64_t before = size();
  RETURN_IF_ERROR(Resize(before + other.size()));
  for (int64_t i = 0; i < other.size(); ++i) {
    RETURN_IF_ERROR(Admit(other.elements_[i]));
    elements_[before + i] = other.elements_[i];
  }
  return OkStatus();
}

StatusOr<PartialShape> TensorListValue::CommonShape(const PartialShape& asked) const {
  StatusOr<PartialShape> common = element_shape_.Merge(asked);
  if (!common.ok()) {
    return InvalidArgument("Incompatible shapes during merge: the list has elements of shape ",
                           element_shape_.ToString(), ", asked for was ", asked.ToString());
  }
  for (const Tensor& element : elements_) {
    if (common->fully_known()) break;
    if (!element.valid()) continue;
    ASSIGN_OR_RETURN(common, common->Merge(element.shape()));
  }
  return common;
}

StatusOr<Variant> TensorListValue::ZerosLike(KernelContext& ctx) const {
  auto zeros = std::make_shared<TensorListValue>(*this);
  for (Tensor& element : zeros->elements_) {
    if (!element.valid()) continue;
    ASSIGN_OR_RETURN(element, ZerosOf(ctx, element));
  }
  return Variant{std::move(zeros)};
}

StatusOr<Variant> TensorListValue::Plus(KernelContext& ctx, const VariantValue& other) const {
  const auto* addend = dynamic_cast<const TensorListValue*>(&other);
  if (addend == nullptr) {
    return InvalidArgument("a list and a variant of type '", other.TypeName(), "' have no sum");
  }
  RETURN_IF_ERROR(CheckType(*this, addend->element_dtype_));
  if (size() != addend->size()) {
    return InvalidArgument("Trying to add two lists of tensors with different lengths. One is ",
                           "size: ", size(), " but other is size: ", addend->size());
  }
  auto sum = std::make_shared<TensorListValue>(*this);
  ASSIGN_OR_RETURN(sum->element_shape_, element_shape_.Merge(addend->element_shape_));
  for (int64_t i = 0; i < size(); ++i) {
    const Tensor& more = addend->elements_[i];
    Tensor& element = sum->elements_[i];
    if (!more.valid()) continue;
    if (element.valid()) {
      RETURN_IF_ERROR(AddInPlace(ctx, &element, more));
    } else {
      RETURN_IF_ERROR(sum->Admit(more));
      element = more;
    }
  }
  return Variant{std::move(sum)};
}

StatusOr<const TensorListValue*> ListOf(const Variant& variant, DType dtype) {
  ASSIGN_OR_RETURN(const TensorListValue* list, ListOf(variant));
  RETURN_IF_ERROR(CheckType(*list, dtype));
  return list;
}

StatusOr<const TensorListValue*> ListInput(KernelContext& ctx, int i) {
  const Tensor& handle = ctx.input(i);
  if (handle.rank() == 0) return ListOf(handle.scalar<Variant>());
  return InvalidArgument("Input handle must be a scalar, has shape ", handle.shape().ToString());
}

StatusOr<const TensorListValue*> ListInput(KernelContext& ctx, int i, DType dtype) {
  ASSIGN_OR_RETURN(const TensorListValue* list, ListInput(ctx, i));
  RETURN_IF_ERROR(CheckType(*list, dtype));
  return list;
}

bool IsUnshared(const Tensor& handle) {
  if (!handle.unique()) return false;
  // Copies the pointer, which orders this thread after the release by the last other holder: in
  // libstdc++, an increment of the count is ordered after an earlier decrement. Only reading the
  // count would not order the threads.
  const std::shared_ptr<VariantValue> own = handle.scalar<Variant>().value;
  return own.use_count() == 2;
}

StatusOr<OwnList> TakeList(KernelContext& ctx, int i) {
  ASSIGN_OR_RETURN(const TensorListValue* list, ListInput(ctx, i));
  Tensor handle = ctx.TakeInput(i);
  if (!IsUnshared(handle)) {
    handle = Tensor::Scalar(Variant{std::make_shared<TensorListValue>(*list)});
  }
  VariantValue* const own = handle.scalar<Variant>().value.get();
  return OwnList{std::move(handle), static_cast<TensorListValue*>(own)};
}

StatusOr<OwnList> TakeList(KernelContext& ctx, int i, DType dtype) {
  RETURN_IF_ERROR(ListInput(ctx, i, dtype).status());
  return TakeList(ctx, i);
}

OwnList NewList(DType dtype, PartialShape element_shape, int64_t max_length) {
  auto list = std::make_shared<TensorListValue>(dtype, std::move(element_shape), max_length);
  TensorListValue* const own = list.get();
  return {Tensor::Scalar(Variant{std::move(list)}), own};
}

StatusOr<Tensor> ElementOrZeros(KernelContext& ctx, const TensorListValue& list, Tensor element,
                                const PartialShape& asked) {
  if (element.valid()) {
    if (asked.Compatible(element.shape())) return element;
    return InvalidArgument("an element of shape ", element.shape().ToString(),
                           " is not of the element_shape ", asked.ToString());
  }
  ASSIGN_OR_RETURN(const PartialShape shape, list.CommonShape(asked));
  if (!shape.fully_known()) {
    return InvalidArgument("Trying to read an uninitialized tensor but element_shape is not fully ",
                           "defined: ", shape.ToString(), " and no list element is set.");
  }
  ASSIGN_OR_RETURN(Tensor zeros, ctx.Temporary(list.element_dtype(), shape.ToShape()));
  Zero(zeros, ctx.threads());
  return zeros;
}

}  // namespace penstock
