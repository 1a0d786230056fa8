// SPDX-License-Identifier: Apache-2.0
//
// TensorListValue: a list of tensors of one type, as the value of a variant. Loops of TensorFlow 2
// keep values from iteration to iteration in such lists, also for their gradients. An op that
// changes a list outputs a new list; if there is no other reference to the input list, the op
// changes it in place.
//
// Thread-safe like every VariantValue: it is not changed while it is shared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/op/kernel.h"
#include "core/tensor/shape.h"
#include "kernels/math/accumulate.h"

namespace penstock {

class TensorListValue final : public ArithmeticVariant {
 public:
  static constexpr char kTypeName[] = "tensorflow::TensorList";
  static constexpr int64_t kUnlimited = -1;
  // The maximum length, because elements that are not set take memory, too.
  static constexpr int64_t kLengthMax = int64_t{1} << 23;

  // `max_length`: the length above which Push fails.
  TensorListValue(DType element_dtype, PartialShape element_shape, int64_t max_length = kUnlimited)
      : element_dtype_(element_dtype),
        element_shape_(std::move(element_shape)),
        max_length_(max_length) {}

  const char* TypeName() const override { return kTypeName; }
  std::string ToString() const override;
  // Encodes as TensorFlow does: varints (the number of elements that are not set, their indices,
  // the dtype's number, the maximum length), then a TensorShapeProto. `tensors` are the elements
  // that are set.
  Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const override;
  static StatusOr<Variant> Decode(const std::string& metadata, const std::vector<Tensor>& tensors);
  StatusOr<Variant> ZerosLike(KernelContext& ctx) const override;
  StatusOr<Variant> Plus(KernelContext& ctx, const VariantValue& other) const override;

  DType element_dtype() const { return element_dtype_; }
  const PartialShape& element_shape() const { return element_shape_; }
  int64_t size() const { return static_cast<int64_t>(elements_.size()); }
  // Elements that are not set are invalid tensors.
  const std::vector<Tensor>& elements() const { return elements_; }

  // Appends an element. InvalidArgument if the element does not have the list's type and shape.
  Status Push(Tensor element);
  Status Set(int64_t index, Tensor element);  // REQUIRES: 0 <= index < size()
  // Removes and returns the last element. REQUIRES: the list is not empty.
  Tensor Pop();
  // Sets the length; new elements are not set. ResourceExhausted if it exceeds kLengthMax,
  // InvalidArgument if it is negative.
  Status Resize(int64_t size);
  // Appends the elements of another list. InvalidArgument if it has another element type or shape.
  Status Append(const TensorListValue& other);

  // Returns the known shape of all elements, merged from the list, from `asked` and from the
  // elements that are set. InvalidArgument if these contradict each other.
  StatusOr<PartialShape> CommonShape(const PartialShape& asked) const;

 private:
  Status Check(const Tensor& element);

  DType element_dtype_;
  PartialShape element_shape_;
  int64_t max_length_;
  std::vector<Tensor> elements_;
};

// For kernels: returns the list in a variant, which lives as long as the variant. InvalidArgument
// if the variant holds no list, or one of another type than `dtype`.
StatusOr<const TensorListValue*> ListOf(const Variant& variant, DType dtype);
// Return the list in input i. InvalidArgument unless it is a scalar that holds a list, of element
// type `dtype` if that is given.
StatusOr<const TensorListValue*> ListInput(KernelContext& ctx, int i);
StatusOr<const TensorListValue*> ListInput(KernelContext& ctx, int i, DType dtype);

// Returns true if a kernel may change the value of a scalar variant, because no other tensor holds
// it.
bool IsUnshared(const Tensor& handle);

// A list that a kernel may change, and outputs.
struct OwnList {
  Tensor handle;          // the output
  TensorListValue* list;  // in `handle`; no other tensor shares it
};
// Takes the list in input i: the list itself if there is no other reference to it, else a copy.
// InvalidArgument if the input is no list, or no list of `dtype`.
StatusOr<OwnList> TakeList(KernelContext& ctx, int i);
StatusOr<OwnList> TakeList(KernelContext& ctx, int i, DType dtype);
OwnList NewList(DType dtype, PartialShape element_shape,
                int64_t max_length = TensorListValue::kUnlimited);

// Returns `element` of `list`, or zeros if it is not set. InvalidArgument if its shape does not fit
// `asked`, or if the shape of the zeros is not known.
StatusOr<Tensor> ElementOrZeros(KernelContext& ctx, const TensorListValue& list, Tensor element,
                                const PartialShape& asked);

}  // namespace penstock
