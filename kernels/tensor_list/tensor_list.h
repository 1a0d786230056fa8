// SPDX-License-Identifier: Apache-2.0
//
// TensorListValue: a list of tensors of one type, as a value: what the loops of TensorFlow 2 keep
// from iteration to iteration, and for their gradients. An op that changes a list makes another
// one; if its input was the last to hold the list, that is the same one, changed in place.
//
// Thread safety: as any variant.
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
  // Places that nobody has set take memory, too: above this a length is a mistake.
  static constexpr int64_t kLengthMax = int64_t{1} << 23;

  // `max_length`: Push makes the list no longer than that.
  TensorListValue(DType element_dtype, PartialShape element_shape, int64_t max_length = kUnlimited)
      : element_dtype_(element_dtype),
        element_shape_(std::move(element_shape)),
        max_length_(max_length) {}

  const char* TypeName() const override { return kTypeName; }
  std::string ToString() const override;
  // TensorFlow's own coding: varints (how many places are not set, which; the type's number; the
  // maximal length), then a TensorShapeProto; the tensors are those that are set.
  Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const override;
  static StatusOr<Variant> Decode(const std::string& metadata, const std::vector<Tensor>& tensors);
  StatusOr<Variant> ZerosLike(KernelContext& ctx) const override;
  StatusOr<Variant> Plus(KernelContext& ctx, const VariantValue& other) const override;

  DType element_dtype() const { return element_dtype_; }
  const PartialShape& element_shape() const { return element_shape_; }
  int64_t size() const { return static_cast<int64_t>(elements_.size()); }
  // Invalid if nobody has set it.
  const std::vector<Tensor>& elements() const { return elements_; }

  // InvalidArgument if the element is not of the list's type and shape.
  Status Push(Tensor element);
  Status Set(int64_t index, Tensor element);  // REQUIRES 0 <= index < size()
  // REQUIRES a list that is not empty.
  Tensor Pop();
  // Further places are not set. ResourceExhausted above kLengthMax, InvalidArgument below 0.
  Status Resize(int64_t size);
  // Appends what another list holds, which must be of the same type and shape.
  Status Append(const TensorListValue& other);

  // Returns the known shape of every element: by the list, by `asked` and by the elements that are
  // set. InvalidArgument if these contradict each other.
  StatusOr<PartialShape> CommonShape(const PartialShape& asked) const;

 private:
  Status Check(const Tensor& element);

  DType element_dtype_;
  PartialShape element_shape_;
  int64_t max_length_;
  std::vector<Tensor> elements_;
};

// For kernels. The list that a variant is, of elements of type `dtype`; it lives as long as that.
StatusOr<const TensorListValue*> ListOf(const Variant& variant, DType dtype);
// The list that input i, a scalar, holds.
StatusOr<const TensorListValue*> ListInput(KernelContext& ctx, int i);
StatusOr<const TensorListValue*> ListInput(KernelContext& ctx, int i, DType dtype);

// A list that a kernel changes and gives on.
struct OwnList {
  Tensor handle;          // the output
  TensorListValue* list;  // in `handle`, and in nothing else
};
// Takes input i: itself if nobody else holds it, else a copy.
StatusOr<OwnList> TakeList(KernelContext& ctx, int i);
StatusOr<OwnList> TakeList(KernelContext& ctx, int i, DType dtype);
OwnList NewList(DType dtype, PartialShape element_shape,
                int64_t max_length = TensorListValue::kUnlimited);

// `element` of `list`, or zeros if nobody has set it. InvalidArgument if it is not of the
// shape that was `asked` for, and if the shape of the zeros is not known.
StatusOr<Tensor> ElementOrZeros(KernelContext& ctx, const TensorListValue& list, Tensor element,
                                const PartialShape& asked);

}  // namespace penstock
