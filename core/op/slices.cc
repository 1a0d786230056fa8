// SPDX-License-Identifier: Apache-2.0
#include "core/op/slices.h"

#include <algorithm>
#include <utility>

#include "core/tensor/resource_handle.h"
#include "core/tensor/variant.h"

namespace penstock {
namespace {

// Copies `count` elements of `from`, from element `source` on, to `to`, from element `target` on.
Status CopyRun(const Tensor& from, int64_t source, Tensor* to, int64_t target, int64_t count) {
  const auto copy = [&]<class T>(T*) {
    std::copy_n(from.data<T>() + source, count, to->mutable_data<T>() + target);
    return OkStatus();
  };
  if (from.dtype() == DType::kString) return copy(static_cast<std::string*>(nullptr));
  if (from.dtype() == DType::kResource) return copy(static_cast<ResourceHandle*>(nullptr));
  if (from.dtype() == DType::kVariant) return copy(static_cast<Variant*>(nullptr));
  const size_t size = SizeOf(from.dtype());
  Allocator* const owner = to->buffer()->allocator();
  Allocator& allocator = owner != nullptr ? *owner : CpuAllocator();
  return allocator.Copy(static_cast<const char*>(from.raw_data()) + source * size,
                        static_cast<char*>(to->mutable_raw_data()) + target * size, count * size);
}

}  // namespace

Slices::Slices(int64_t length, std::vector<int64_t> numbers)
    : length_(length), numbers_(std::move(numbers)) {
  std::sort(numbers_.begin(), numbers_.end());
  numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
}

Slices Slices::Rows(const Tensor& indices, int64_t length) {
  if (length == 0) return None();
  std::vector<int64_t> numbers(indices.num_elements());
  if (indices.dtype() == DType::kInt32) {
    std::copy_n(indices.data<int32_t>(), numbers.size(), numbers.begin());
  } else {
    std::copy_n(indices.data<int64_t>(), numbers.size(), numbers.begin());
  }
  return Slices(length, std::move(numbers));
}

StatusOr<Slices> Slices::Of(const Tensor& numbers, const Tensor& elements) {
  if (numbers.dtype() != DType::kInt64 || numbers.rank() != 1 || elements.rank() != 2 ||
      elements.dim(0) != numbers.dim(0)) {
    return InvalidArgument("slices need an int64 vector and a matrix with as many rows, not ",
                           Name(numbers.dtype()), numbers.shape().ToString(), " and ",
                           elements.shape().ToString());
  }
  const auto flat = numbers.flat<int64_t>();
  if (std::adjacent_find(flat.begin(), flat.end(), std::greater_equal<>()) != flat.end()) {
    return InvalidArgument("the numbers of slices must be sorted and distinct, are ",
                           numbers.ToString());
  }
  return Slices(elements.dim(1), std::vector<int64_t>(flat.begin(), flat.end()));
}

void Slices::Add(const Slices& other) {
  if (all_ || (!other.all_ && other.numbers_.empty())) return;
  if (numbers_.empty()) {
    *this = other;
  } else if (other.all_ || other.length_ != length_) {
    *this = All();
  } else {
    std::vector<int64_t> both = std::move(numbers_);
    both.insert(both.end(), other.numbers_.begin(), other.numbers_.end());
    *this = Slices(length_, std::move(both));
  }
}

StatusOr<Tensor> GatherSlices(const Tensor& from, const Slices& slices) {
  Allocator* const owner = from.buffer()->allocator();
  const int64_t count = static_cast<int64_t>(slices.numbers().size());
  ASSIGN_OR_RETURN(Tensor elements, Tensor::Make(owner != nullptr ? *owner : CpuAllocator(),
                                                 from.dtype(), {count, slices.length()}));
  for (int64_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(CopyRun(from, slices.numbers()[i] * slices.length(), &elements,
                            i * slices.length(), slices.length()));
  }
  return elements;
}

Status ScatterSlices(const Slices& slices, const Tensor& elements, Tensor* to) {
  if (elements.dtype() != to->dtype()) {
    return InvalidArgument("slices of ", Name(elements.dtype()), " for a value of ",
                           Name(to->dtype()));
  }
  if (slices.numbers().empty()) return OkStatus();
  const int64_t length = slices.length();
  const int64_t last = slices.numbers().back();
  if (length == 0 || slices.numbers().front() < 0 || last >= to->num_elements() / length) {
    return InvalidArgument("slice ", last, " of ", length, " elements of a value of shape ",
                           to->shape().ToString());
  }
  for (size_t i = 0; i < slices.numbers().size(); ++i) {
    RETURN_IF_ERROR(CopyRun(elements, static_cast<int64_t>(i) * length, to,
                            slices.numbers()[i] * length, length));
  }
  return OkStatus();
}

}  // namespace penstock
