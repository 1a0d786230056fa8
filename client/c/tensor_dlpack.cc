// SPDX-License-Identifier: Apache-2.0
//
// Converts tensors of c_api.h to and from DLPack.
#include <vector>

#include "client/c/c_api.h"
#include "client/c/dlpack.h"
#include "client/c/handles.h"

namespace penstock::c_api {
namespace {

struct TypePair {
  DType dtype;
  uint8_t code;
  uint8_t bits;
};
constexpr TypePair kTypes[] = {
    {DType::kFloat, kDLFloat, 32},       {DType::kDouble, kDLFloat, 64},
    {DType::kHalf, kDLFloat, 16},        {DType::kBfloat16, kDLBfloat, 16},
    {DType::kInt8, kDLInt, 8},           {DType::kInt16, kDLInt, 16},
    {DType::kInt32, kDLInt, 32},         {DType::kInt64, kDLInt, 64},
    {DType::kUint8, kDLUInt, 8},         {DType::kUint16, kDLUInt, 16},
    {DType::kUint32, kDLUInt, 32},       {DType::kUint64, kDLUInt, 64},
    {DType::kComplex64, kDLComplex, 64}, {DType::kComplex128, kDLComplex, 128},
    {DType::kBool, kDLBool, 8},
};

// Memory of another library. Calls the library's deleter when the last tensor that uses it is
// destroyed.
class ForeignBuffer final : public Buffer {
 public:
  ForeignBuffer(DLManagedTensor* managed, void* data, size_t bytes)
      : Buffer(data, bytes), managed_(managed) {}
  ~ForeignBuffer() override {
    if (managed_->deleter != nullptr) managed_->deleter(managed_);
  }

 private:
  DLManagedTensor* const managed_;
};

StatusOr<DType> TypeOf(const DLDataType& type) {
  for (const TypePair& pair : kTypes) {
    if (pair.code == type.code && pair.bits == type.bits && type.lanes == 1) return pair.dtype;
  }
  return InvalidArgument("DLPack's type of code ", int{type.code}, ", ", int{type.bits}, " bits, ",
                         type.lanes, " lanes is no type of tensors");
}

Status CheckRowMajor(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return OkStatus();
  int64_t expected = 1;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) {
      return InvalidArgument("the DLPack tensor has stride ", tensor.strides[i], " in dimension ",
                             i, ", expected ", expected, ": make it contiguous");
    }
    expected *= tensor.shape[i];
  }
  return OkStatus();
}

// Returns a tensor that shares the memory of `managed`. InvalidArgument if `managed` is not in CPU
// memory, not row-major, not aligned to its elements, or of a type that tensors do not have.
StatusOr<Tensor> Wrap(DLManagedTensor* managed) {
  const DLTensor& from = managed->dl_tensor;
  if (from.device.device_type != kDLCPU) {
    return InvalidArgument("the DLPack tensor is on a device of type ", from.device.device_type,
                           ", expected CPU memory");
  }
  if (from.ndim < 0) return InvalidArgument("the DLPack tensor has rank ", from.ndim);
  ASSIGN_OR_RETURN(const DType dtype, TypeOf(from.dtype));
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make({from.shape, static_cast<size_t>(from.ndim)}));
  if (shape.num_elements() > 0) RETURN_IF_ERROR(CheckRowMajor(from));
  char* const data = static_cast<char*>(from.data) + from.byte_offset;
  const size_t bytes = shape.num_elements() * SizeOf(dtype);
  if (reinterpret_cast<uintptr_t>(data) % SizeOf(dtype) != 0) {
    return InvalidArgument("the DLPack tensor is not aligned to its elements");
  }
  return Tensor::FromBuffer(dtype, shape, new ForeignBuffer(managed, data, bytes));
}

// A DLPack tensor together with the shape and the tensor that it points to.
struct Shared {
  DLManagedTensor managed;
  Tensor tensor;
  std::vector<int64_t> shape;
};

}  // namespace
}  // namespace penstock::c_api

using namespace penstock;         // NOLINT
using namespace penstock::c_api;  // NOLINT

PS_Status* PS_TensorFromDLPack(DLManagedTensor* managed, PS_Tensor** tensor) {
  return Call([&]() -> Status {
    RETURN_IF_ERROR(NotNull(managed, "managed"));
    RETURN_IF_ERROR(NotNull(tensor, "tensor"));
    auto made = std::make_unique<PS_Tensor>();  // allocated before `managed` is taken over
    ASSIGN_OR_RETURN(made->tensor, Wrap(managed));
    *tensor = made.release();
    return OkStatus();
  });
}

PS_Status* PS_TensorToDLPack(const PS_Tensor* tensor, DLManagedTensor** managed) {
  return Call([&]() -> Status {
    RETURN_IF_ERROR(NotNull(tensor, "tensor"));
    RETURN_IF_ERROR(NotNull(managed, "managed"));
    for (const TypePair& pair : kTypes) {
      if (pair.dtype != tensor->tensor.dtype()) continue;
      auto shared = std::make_unique<Shared>();
      shared->tensor = tensor->tensor;
      for (int i = 0; i < tensor->tensor.rank(); ++i)
        shared->shape.push_back(tensor->tensor.dim(i));
      shared->managed = {
          .dl_tensor = {.data = shared->tensor.mutable_raw_data(),
                        .device = {kDLCPU, 0},
                        .ndim = tensor->tensor.rank(),
                        .dtype = {pair.code, pair.bits, 1},
                        .shape = shared->shape.data(),
                        .strides = nullptr,
                        .byte_offset = 0},
          .manager_ctx = shared.get(),
          .deleter = [](DLManagedTensor* self) { delete static_cast<Shared*>(self->manager_ctx); }};
      *managed = &shared.release()->managed;
      return OkStatus();
    }
    return InvalidArgument("DLPack has no type for ", Name(tensor->tensor.dtype()));
  });
}
