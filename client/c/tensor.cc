// SPDX-License-Identifier: Apache-2.0
//
// Implements the tensors of c_api.h.
#include <limits>

#include "client/c/c_api.h"
#include "client/c/handles.h"

namespace penstock::c_api {
namespace {

StatusOr<Tensor> Make(DType dtype, const int64_t* dims, int rank) {
  if (rank < 0) return InvalidArgument("rank is ", rank, ", must be >= 0");
  if (rank > 0) RETURN_IF_ERROR(NotNull(dims, "dims"));
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make({dims, static_cast<size_t>(rank)}));
  return Tensor::Make(CpuAllocator(), dtype, shape);
}

}  // namespace
}  // namespace penstock::c_api

using namespace penstock;         // NOLINT
using namespace penstock::c_api;  // NOLINT

PS_Status* PS_NewTensor(PS_DType dtype, const int64_t* dims, int rank, PS_Tensor** tensor) {
  return Call([&]() -> Status {
    RETURN_IF_ERROR(NotNull(tensor, "tensor"));
    ASSIGN_OR_RETURN(const DType type, DTypeFromNumber(dtype));
    if (!IsPlain(type)) return InvalidArgument("dtype ", Name(type), " has no plain elements");
    ASSIGN_OR_RETURN(Tensor made, Make(type, dims, rank));
    *tensor = new PS_Tensor{std::move(made)};
    return OkStatus();
  });
}

PS_Status* PS_NewStringTensor(const int64_t* dims, int rank, const char* const* strings,
                              const size_t* sizes, PS_Tensor** tensor) {
  return Call([&]() -> Status {
    RETURN_IF_ERROR(NotNull(tensor, "tensor"));
    ASSIGN_OR_RETURN(Tensor made, Make(DType::kString, dims, rank));
    const auto flat = made.mutable_flat<std::string>();
    if (!flat.empty()) {
      RETURN_IF_ERROR(NotNull(strings, "strings"));
      RETURN_IF_ERROR(NotNull(sizes, "sizes"));
    }
    for (size_t i = 0; i < flat.size(); ++i) {
      if (sizes[i] == 0) continue;
      if (strings[i] == nullptr) return InvalidArgument("strings[", i, "] is NULL");
      flat[i].assign(strings[i], sizes[i]);
    }
    *tensor = new PS_Tensor{std::move(made)};
    return OkStatus();
  });
}

PS_DType PS_TensorDType(const PS_Tensor* tensor) {
  return static_cast<PS_DType>(Number(tensor->tensor.dtype()));
}
int PS_TensorRank(const PS_Tensor* tensor) { return tensor->tensor.rank(); }
int64_t PS_TensorDim(const PS_Tensor* tensor, int i) {
  return i >= 0 && i < tensor->tensor.rank() ? tensor->tensor.dim(i) : -1;
}
int64_t PS_TensorElements(const PS_Tensor* tensor) { return tensor->tensor.num_elements(); }

void* PS_TensorData(PS_Tensor* tensor) {
  return IsPlain(tensor->tensor.dtype()) ? tensor->tensor.mutable_raw_data() : nullptr;
}
size_t PS_TensorBytes(const PS_Tensor* tensor) {
  return IsPlain(tensor->tensor.dtype()) ? tensor->tensor.bytes() : 0;
}

const char* PS_TensorString(const PS_Tensor* tensor, int64_t i, size_t* size) {
  const Tensor& strings = tensor->tensor;
  if (strings.dtype() != DType::kString || i < 0 || i >= strings.num_elements()) return nullptr;
  const std::string& string = strings.data<std::string>()[i];
  if (size != nullptr) *size = string.size();
  return string.c_str();
}

void PS_DeleteTensor(PS_Tensor* tensor) { delete tensor; }
