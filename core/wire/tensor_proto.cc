// SPDX-License-Identifier: Apache-2.0
#include "core/wire/tensor_proto.h"

#include <cstring>

#include "core/base/check.h"
#include "core/wire/attr_proto.h"
#include "core/wire/tensor_fields.h"
#include "core/wire/tensor_objects.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {

namespace {

using tensorflow::TensorProto;

// Returns the bytes that the tensor will take in memory; INT64_MAX if that overflows.
int64_t UnpackedBytes(const TensorProto& proto, DType dtype, int64_t n) {
  int64_t element = static_cast<int64_t>(SizeOf(dtype));
  if (dtype == DType::kString && n > proto.string_val_size() && proto.string_val_size() > 0) {
    element += proto.string_val(proto.string_val_size() - 1).size();  // the last string repeats
  }
  int64_t bytes = 0;
  return __builtin_mul_overflow(n, element, &bytes) ? INT64_MAX : bytes;
}

// Checks that tensor_content has the right size. Called before memory for the tensor is allocated,
// so that a damaged short message cannot cause a large allocation.
Status CheckContentSize(const TensorProto& proto, DType dtype, int64_t n) {
  const int64_t size = static_cast<int64_t>(proto.tensor_content().size());
  if (size == 0 || !IsPlain(dtype) || size == n * static_cast<int64_t>(SizeOf(dtype))) {
    return OkStatus();
  }
  return InvalidArgument("tensor_content has ", size, " bytes, ", n, " elements of type ",
                         Name(dtype), " have ", n * SizeOf(dtype));
}

}  // namespace

void CopyPlainBytes(string_view bytes, DType dtype, void* to) {
  memcpy(to, bytes.data(), bytes.size());
  if (dtype != DType::kBool) return;
  uint8_t* bools = static_cast<uint8_t*>(to);
  for (size_t i = 0; i < bytes.size(); ++i) bools[i] = bools[i] != 0;
}

StatusOr<Tensor> UnpackTensor(const TensorProto& proto, TensorBudget* budget) {
  ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(proto.dtype()));
  ASSIGN_OR_RETURN(const PartialShape declared, ShapeFromProto(proto.tensor_shape()));
  if (!declared.fully_known()) {
    return InvalidArgument("a tensor of shape ", declared.ToString(), ": every size must be known");
  }
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(declared.dims()));
  const int64_t bytes = UnpackedBytes(proto, dtype, shape.num_elements());
  if (bytes > budget->bytes_left) {
    return ResourceExhausted("a ", Name(dtype), " tensor of shape ", shape.ToString(), " takes ",
                             bytes, " bytes, at most ", budget->bytes_left, " are allowed here");
  }
  budget->bytes_left -= bytes;
  RETURN_IF_ERROR(CheckContentSize(proto, dtype, shape.num_elements()));

  ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(CpuAllocator(), dtype, shape));
  if (!IsPlain(dtype)) {
    RETURN_IF_ERROR(UnpackObjects(proto, budget, &tensor));
  } else if (!proto.tensor_content().empty()) {
    CopyPlainBytes(proto.tensor_content(), dtype, tensor.mutable_raw_data());
  } else if (!FillFromFields(proto, &tensor)) {
    return Unimplemented("tensors of type ", Name(dtype), " cannot be received");
  }
  return tensor;
}

Status PackTensor(const Tensor& tensor, TensorBudget* budget, TensorProto* proto) {
  proto->Clear();
  proto->set_dtype(static_cast<tensorflow::DataType>(Number(tensor.dtype())));
  ShapeToProto(tensor.shape(), proto->mutable_tensor_shape());
  if (!IsPlain(tensor.dtype())) return PackObjects(tensor, budget, proto);
  if (tensor.num_elements() > 0) proto->set_tensor_content(tensor.raw_data(), tensor.bytes());
  return OkStatus();
}

StatusOr<Tensor> TensorFromProto(const TensorProto& proto, int64_t bytes_max) {
  TensorBudget budget{bytes_max};
  return UnpackTensor(proto, &budget);
}

Status TensorToProto(const Tensor& tensor, TensorProto* proto, int64_t bytes_max) {
  TensorBudget budget{bytes_max};
  return PackTensor(tensor, &budget, proto);
}

}  // namespace penstock
