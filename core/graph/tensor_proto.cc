// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/check.h"
#include "core/graph/graph_proto.h"
#include "core/graph/tensor_fields.h"
#include "core/tensor/resource_handle.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {

namespace {

using tensorflow::TensorProto;

void CopyRaw(const std::string& content, Tensor* tensor) {
  memcpy(tensor->mutable_raw_data(), content.data(), content.size());
  if (tensor->dtype() != DType::kBool) return;
  // C++ knows only two values of bool, senders may not.
  uint8_t* bytes = static_cast<uint8_t*>(tensor->mutable_raw_data());
  for (size_t i = 0; i < content.size(); ++i) bytes[i] = bytes[i] != 0;
}

// A varint of at most 32 bits from the front of `text`.
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

// How lists of byte strings lie in tensor_content: all lengths as varints, then all bytes.
StatusOr<std::vector<string_view>> SplitList(string_view content, int64_t n) {
  if (n > static_cast<int64_t>(content.size())) {  // before anything of size n is allocated
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

Status FillStrings(const TensorProto& proto, Tensor* tensor) {
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

Status FillHandles(const TensorProto& proto, Tensor* tensor) {
  const int64_t n = tensor->num_elements();
  ResourceHandle* out = tensor->mutable_data<ResourceHandle>();
  if (proto.tensor_content().empty()) {
    const int64_t given = std::min<int64_t>(proto.resource_handle_val_size(), n);
    for (int64_t i = 0; i < given; ++i) {
      RETURN_IF_ERROR(HandleFromProto(proto.resource_handle_val(static_cast<int>(i)), &out[i]));
    }
    for (int64_t i = std::max<int64_t>(given, 1); i < n; ++i) out[i] = out[i - 1];
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<string_view> elements, SplitList(proto.tensor_content(), n));
  for (size_t i = 0; i < elements.size(); ++i) {
    tensorflow::ResourceHandleProto handle;
    if (!handle.ParseFromArray(elements[i].data(), static_cast<int>(elements[i].size()))) {
      return InvalidArgument("element ", i, " of tensor_content is no resource handle");
    }
    RETURN_IF_ERROR(HandleFromProto(handle, &out[i]));
  }
  return OkStatus();
}

// What the tensor will take in memory; INT64_MAX where no number can say it.
int64_t UnpackedBytes(const TensorProto& proto, DType dtype, int64_t n) {
  int64_t element = static_cast<int64_t>(SizeOf(dtype));
  if (dtype == DType::kString && n > proto.string_val_size() && proto.string_val_size() > 0) {
    element += proto.string_val(proto.string_val_size() - 1).size();  // the one that repeats
  }
  int64_t bytes = 0;
  return __builtin_mul_overflow(n, element, &bytes) ? INT64_MAX : bytes;
}

// Before memory is taken for it: a short message must not make a large tensor by mistake.
Status CheckContentSize(const TensorProto& proto, DType dtype, int64_t n) {
  const int64_t size = static_cast<int64_t>(proto.tensor_content().size());
  if (size == 0 || !IsPlain(dtype) || size == n * static_cast<int64_t>(SizeOf(dtype))) {
    return OkStatus();
  }
  return InvalidArgument("tensor_content has ", size, " bytes, ", n, " elements of type ",
                         Name(dtype), " have ", n * SizeOf(dtype));
}

}  // namespace

StatusOr<Tensor> TensorFromProto(const TensorProto& proto, int64_t bytes_max) {
  ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(proto.dtype()));
  if (!IsPlain(dtype) && dtype != DType::kString && dtype != DType::kResource) {
    return Unimplemented("tensors of type ", Name(dtype), " cannot be received");
  }
  ASSIGN_OR_RETURN(const PartialShape declared, ShapeFromProto(proto.tensor_shape()));
  if (!declared.fully_known()) {
    return InvalidArgument("a tensor of shape ", declared.ToString(), ": every size must be known");
  }
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(declared.dims()));
  const int64_t bytes = UnpackedBytes(proto, dtype, shape.num_elements());
  if (bytes > bytes_max) {
    return ResourceExhausted("a ", Name(dtype), " tensor of shape ", shape.ToString(), " takes ",
                             bytes, " bytes, at most ", bytes_max, " are allowed here");
  }
  RETURN_IF_ERROR(CheckContentSize(proto, dtype, shape.num_elements()));

  ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(CpuAllocator(), dtype, shape));
  if (dtype == DType::kString) {
    RETURN_IF_ERROR(FillStrings(proto, &tensor));
  } else if (dtype == DType::kResource) {
    RETURN_IF_ERROR(FillHandles(proto, &tensor));
  } else if (!proto.tensor_content().empty()) {
    CopyRaw(proto.tensor_content(), &tensor);
  } else if (!FillFromFields(proto, &tensor)) {
    return Unimplemented("tensors of type ", Name(dtype), " cannot be received");
  }
  return tensor;
}

void TensorToProto(const Tensor& tensor, TensorProto* proto) {
  proto->Clear();
  proto->set_dtype(static_cast<tensorflow::DataType>(Number(tensor.dtype())));
  ShapeToProto(tensor.shape(), proto->mutable_tensor_shape());
  if (tensor.dtype() == DType::kString) {
    for (const std::string& s : tensor.flat<std::string>()) proto->add_string_val(s);
  } else if (tensor.dtype() == DType::kResource) {
    for (const ResourceHandle& handle : tensor.flat<ResourceHandle>()) {
      HandleToProto(handle, proto->add_resource_handle_val());
    }
  } else if (tensor.num_elements() > 0) {
    proto->set_tensor_content(tensor.raw_data(), tensor.bytes());
  }
}

}  // namespace penstock
