// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include <cstring>
#include <new>

#include "core/tensor/memory_account.h"
#include "core/tensor/resource_handle.h"
#include "core/tensor/variant.h"

namespace penstock {

namespace {

// Guarded turns this exception into ResourceExhausted.
class NoMemoryForTensor final : public std::bad_alloc {
 public:
  explicit NoMemoryForTensor(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  const std::string text_;
};

std::string NoMemory(DType dtype, const Shape& shape, const Allocator& allocator) {
  const double bytes = static_cast<double>(shape.num_elements()) * SizeOf(dtype);
  return StrCat("no memory for a tensor ", Name(dtype), shape.ToString(), " of ",
                bytes < 9e18 ? StrCat(static_cast<int64_t>(bytes)) : StrCat(bytes), " bytes on ",
                allocator.name(), TakeRefusal());
}

}  // namespace

void Tensor::WrongType(DType wanted) const {
  CHECK(dtype_ == wanted, "tensor is ", Name(dtype_), ", accessed as ", Name(wanted));
  __builtin_unreachable();
}

StatusOr<Tensor> Tensor::Make(Allocator& allocator, DType dtype, const Shape& shape) {
  if (SizeOf(dtype) == 0) return Unimplemented("tensors of type ", Name(dtype));
  if (!IsPlain(dtype) && !allocator.host_accessible()) {
    return InvalidArgument("a tensor of type ", Name(dtype), " cannot live in ", allocator.name());
  }
  Buffer* buffer = Buffer::New(allocator, dtype, shape.num_elements());
  if (buffer == nullptr) return ResourceExhausted(NoMemory(dtype, shape, allocator));
  return FromBuffer(dtype, shape, buffer);
}

Tensor::Tensor(DType dtype, const Shape& shape)
    : shape_(shape), buffer_(Buffer::New(CpuAllocator(), dtype, shape.num_elements())) {
  if (buffer_ == nullptr) throw NoMemoryForTensor(NoMemory(dtype, shape, CpuAllocator()));
  data_ = buffer_->data();
  dtype_ = dtype;
}

Tensor Tensor::FromBuffer(DType dtype, Shape shape, Buffer* buffer) {
  Tensor tensor;
  tensor.shape_ = std::move(shape);
  tensor.buffer_ = buffer;
  tensor.data_ = buffer->data();
  tensor.dtype_ = dtype;
  DCHECK(tensor.bytes() <= buffer->bytes());
  return tensor;
}

Tensor Tensor::Slice(int64_t begin, int64_t end) const {
  CHECK(rank() >= 1 && 0 <= begin && begin <= end && end <= dim(0), "rows [", begin, ",", end,
        ") of ", shape_.ToString());
  Tensor slice = *this;
  slice.shape_.set_dim(0, end - begin);
  const size_t row_bytes = dim(0) == 0 ? 0 : bytes() / dim(0);
  slice.data_ = static_cast<char*>(data_) + begin * row_bytes;
  return slice;
}

Tensor Tensor::Reshaped(const Shape& shape) const {
  CHECK(shape.num_elements() == num_elements(), shape_.ToString(), " as ", shape.ToString());
  Tensor reshaped = *this;
  reshaped.shape_ = shape;
  return reshaped;
}

Tensor Tensor::Reinterpreted(DType dtype, const Shape& shape) const {
  CHECK(IsPlain(dtype_) && IsPlain(dtype), Name(dtype_), " as ", Name(dtype));
  CHECK(shape.num_elements() * SizeOf(dtype) == bytes(), Name(dtype_), shape_.ToString(), " as ",
        Name(dtype), shape.ToString());
  Tensor reinterpreted = *this;
  reinterpreted.shape_ = shape;
  reinterpreted.dtype_ = dtype;
  return reinterpreted;
}

StatusOr<Tensor> Tensor::TryClone() const {
  if (!valid()) return Tensor();
  ASSIGN_OR_RETURN(Tensor copy, Make(CpuAllocator(), dtype_, shape_));
  if (dtype_ == DType::kString) {
    const auto from = flat<std::string>();
    std::copy(from.begin(), from.end(), copy.mutable_data<std::string>());
  } else if (dtype_ == DType::kResource) {
    const auto from = flat<ResourceHandle>();
    std::copy(from.begin(), from.end(), copy.mutable_data<ResourceHandle>());
  } else if (dtype_ == DType::kVariant) {
    const auto from = flat<Variant>();
    std::copy(from.begin(), from.end(), copy.mutable_data<Variant>());
  } else if (bytes() > 0) {
    memcpy(copy.data_, data_, bytes());
  }
  return copy;
}

StatusOr<Tensor> Tensor::TryCloneInItsMemory() const {
  Allocator* const allocator = buffer_ == nullptr ? nullptr : buffer_->allocator();
  if (allocator == nullptr || allocator->host_accessible()) return TryClone();
  ASSIGN_OR_RETURN(Tensor copy, Make(*allocator, dtype_, shape_));
  RETURN_IF_ERROR(allocator->Copy(data_, copy.data_, bytes()));
  return copy;
}

Tensor Tensor::Clone() const {
  StatusOr<Tensor> copy = TryClone();
  if (!copy.ok()) throw NoMemoryForTensor(std::string(copy.status().message()));
  return *std::move(copy);
}

}  // namespace penstock
