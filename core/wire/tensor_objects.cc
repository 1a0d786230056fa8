// SPDX-License-Identifier: Apache-2.0
#include "core/wire/tensor_objects.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/tensor/resource_handle.h"
#include "core/tensor/variant.h"
#include "core/wire/attr_proto.h"
#include "core/wire/tensor_fields.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {

namespace {

using tensorflow::TensorProto;
using VariantProto = tensorflow::VariantTensorDataProto;

// Removes a varint of at most 32 bits from the front of `text`.
bool ConsumeVarint32(string_view* text, uint32_t* value) {
  uint64_t result = 0;
  for (size_t i = 0; i < 5 && i < text->size(); ++i) {
    const uint8_t byte = static_cast<uint8_t>((*text)[i]);
    result |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte & 0x80u) continue;
    text->remove_prefix(i + 1);
    *value = static_cast<uint32_t>(result);
    return result <= UINT32_MAX;
  }
  return false;
}

// Parses a list of byte strings in tensor_content: all lengths as varints, then all bytes.
StatusOr<std::vector<string_view>> SplitList(string_view content, int64_t n) {
  if (n > static_cast<int64_t>(content.size())) {  // check before allocating n strings
    return InvalidArgument("tensor_content has ", content.size(), " bytes, too few for ", n,
                           " elements");
  }
  string_view rest = content;
  std::vector<uint32_t> lengths(n);
  uint64_t total = 0;
  for (uint32_t& length : lengths) {
    if (!ConsumeVarint32(&rest, &length)) {
      return InvalidArgument("tensor_content ends within the lengths of its ", n, " elements");
    }
    total += length;
  }
  if (total != rest.size()) {
    return InvalidArgument("tensor_content has ", rest.size(), " bytes of elements, their ",
                           "lengths add up to ", total);
  }
  std::vector<string_view> elements;
  elements.reserve(n);
  for (const uint32_t length : lengths) {
    elements.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return elements;
}

Status HandleFromProto(const tensorflow::ResourceHandleProto& proto, ResourceHandle* handle) {
  handle->device = proto.device();
  handle->container = proto.container();
  handle->name = proto.name();
  handle->type = proto.maybe_type_name();
  for (const auto& held : proto.dtypes_and_shapes()) {
    ResourceHandle::Element element;
    ASSIGN_OR_RETURN(element.dtype, DTypeFromNumber(held.dtype()));
    ASSIGN_OR_RETURN(element.shape, ShapeFromProto(held.shape()));
    handle->elements.push_back(std::move(element));
  }
  return OkStatus();
}

void HandleToProto(const ResourceHandle& handle, tensorflow::ResourceHandleProto* proto) {
  proto->set_device(handle.device);
  proto->set_container(handle.container);
  proto->set_name(handle.name);
  proto->set_maybe_type_name(handle.type);
  for (const ResourceHandle::Element& element : handle.elements) {
    auto* held = proto->add_dtypes_and_shapes();
    held->set_dtype(static_cast<tensorflow::DataType>(Number(element.dtype)));
    ShapeToProto(element.shape, held->mutable_shape());
  }
}

Status UnpackStrings(const TensorProto& proto, Tensor* tensor) {
  if (proto.tensor_content().empty()) {
    FillFromFields(proto, tensor);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<string_view> elements,
                   SplitList(proto.tensor_content(), tensor->num_elements()));
  std::string* out = tensor->mutable_data<std::string>();
  for (size_t i = 0; i < elements.size(); ++i) out[i] = std::string(elements[i]);
  return OkStatus();
}

// Decodes a variant. An empty type name means an element that was not set.
Status VariantFromProto(const VariantProto& proto, TensorBudget* budget, Variant* variant) {
  if (proto.type_name().empty()) {
    if (proto.metadata().empty() && proto.tensors().empty()) return OkStatus();
    return InvalidArgument("a variant without a type name");
  }
  if (budget->depth >= kVariantDepthMax) {
    return InvalidArgument("variants in variants, more than ", kVariantDepthMax, " deep");
  }
  ++budget->depth;
  std::vector<Tensor> tensors;
  for (const TensorProto& held : proto.tensors()) {
    StatusOr<Tensor> tensor = UnpackTensor(held, budget);
    if (!tensor.ok()) {
      return Annotate(tensor.status(),
                      StrCat("tensor ", tensors.size(), " of a variant '", proto.type_name(), "'"));
    }
    tensors.push_back(*std::move(tensor));
  }
  --budget->depth;
  ASSIGN_OR_RETURN(*variant, DecodeVariant(proto.type_name(), proto.metadata(), tensors));
  return OkStatus();
}

// The bytes of memory that a message takes in addition to its contents.
constexpr size_t kMessageBytes = 256;

Status ChargeBudget(size_t bytes, TensorBudget* budget) {
  budget->bytes_left -= static_cast<int64_t>(bytes);
  if (budget->bytes_left >= 0) return OkStatus();
  return ResourceExhausted("the tensors of a variant are larger than a message can be");
}

Status VariantToProto(const Variant& variant, TensorBudget* budget, VariantProto* proto) {
  if (variant.value == nullptr) return OkStatus();
  proto->set_type_name(variant.value->TypeName());
  std::vector<Tensor> tensors;
  RETURN_IF_ERROR(variant.value->Encode(proto->mutable_metadata(), &tensors));
  RETURN_IF_ERROR(ChargeBudget(kMessageBytes + proto->ByteSizeLong(), budget));
  ++budget->depth;
  for (const Tensor& tensor : tensors) {
    RETURN_IF_ERROR(
        ChargeBudget(kMessageBytes + (IsPlain(tensor.dtype()) ? tensor.bytes() : 0), budget));
    RETURN_IF_ERROR(PackTensor(tensor, budget, proto->add_tensors()));
  }
  --budget->depth;
  return OkStatus();
}

// Parses elements that are messages. The last message repeats. `unpack` converts one message.
template <class Object, class Message, class Field, class Unpack>
Status UnpackMessages(const std::string& content, const Field& field, Tensor* tensor,
                      Unpack unpack) {
  const int64_t n = tensor->num_elements();
  Object* const out = tensor->mutable_data<Object>();
  if (content.empty()) {
    const int64_t given = std::min<int64_t>(field.size(), n);
    for (int64_t i = 0; i < given; ++i) {
      RETURN_IF_ERROR(unpack(field.Get(static_cast<int>(i)), &out[i]));
    }
    for (int64_t i = std::max<int64_t>(given, 1); i < n; ++i) out[i] = out[i - 1];
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<string_view> elements, SplitList(content, n));
  for (size_t i = 0; i < elements.size(); ++i) {
    Message message;
    if (!message.ParseFromArray(elements[i].data(), static_cast<int>(elements[i].size()))) {
      return InvalidArgument("element ", i, " of tensor_content is no ", Name(tensor->dtype()),
                             kDTypeOf<Object> == DType::kResource ? " handle" : "");
    }
    RETURN_IF_ERROR(unpack(message, &out[i]));
  }
  return OkStatus();
}

// If the last elements are equal, writes that element once, so that the message of a tensor is no
// longer than the one from which it was read.
Status PackVariants(absl::Span<const Variant> variants, TensorBudget* budget, TensorProto* proto) {
  size_t n = variants.size();
  while (n > 1 && variants[n - 1].value == variants[n - 2].value) --n;
  for (const Variant& variant : variants.first(n)) {
    RETURN_IF_ERROR(VariantToProto(variant, budget, proto->add_variant_val()));
  }
  return OkStatus();
}

}  // namespace

Status UnpackObjects(const TensorProto& proto, TensorBudget* budget, Tensor* tensor) {
  const std::string& content = proto.tensor_content();
  if (tensor->dtype() == DType::kString) return UnpackStrings(proto, tensor);
  if (tensor->dtype() == DType::kResource) {
    return UnpackMessages<ResourceHandle, tensorflow::ResourceHandleProto>(
        content, proto.resource_handle_val(), tensor, HandleFromProto);
  }
  return UnpackMessages<Variant, VariantProto>(content, proto.variant_val(), tensor,
                                               [&](const VariantProto& message, Variant* variant) {
                                                 return VariantFromProto(message, budget, variant);
                                               });
}

Status PackObjects(const Tensor& tensor, TensorBudget* budget, TensorProto* proto) {
  if (tensor.dtype() == DType::kVariant) {
    return PackVariants(tensor.flat<Variant>(), budget, proto);
  }
  if (tensor.dtype() == DType::kString) {
    for (const std::string& s : tensor.flat<std::string>()) proto->add_string_val(s);
  } else {
    for (const ResourceHandle& handle : tensor.flat<ResourceHandle>()) {
      HandleToProto(handle, proto->add_resource_handle_val());
    }
  }
  // Check only tensors in variants: the code that sends a tensor checks the tensor's total size.
  return budget->depth == 0 ? OkStatus() : ChargeBudget(proto->ByteSizeLong(), budget);
}

}  // namespace penstock
