// SPDX-License-Identifier: Apache-2.0
#include "kernels/array/elements.h"

#include <algorithm>
#include <string>

#include "core/base/check.h"
#include "core/tensor/resource_handle.h"
#include "core/tensor/variant.h"

namespace penstock {
namespace {

// Calls fn(Object()), where Object is the C++ class of the elements of `dtype`. REQUIRES: a dtype
// that is not plain.
template <class Fn>
void WithObject(DType dtype, Fn fn) {
  if (dtype == DType::kString) return fn(std::string());
  if (dtype == DType::kResource) return fn(ResourceHandle());
  CHECK(dtype == DType::kVariant, Name(dtype));
  fn(Variant());
}

template <class Object>
void FillObjects(const Object& value, void* to, int64_t count) {
  std::fill_n(static_cast<Object*>(to), count, value);
}

// A block of bytes with alignment 1, so that it can stand for any plain type of that size.
template <int kBytes>
struct Bytes {
  unsigned char bytes[kBytes];
};

template <int kBytes>
void FillPlain(const void* value, void* to, int64_t count) {
  FillObjects(*static_cast<const Bytes<kBytes>*>(value), to, count);
}

bool AllBytesEqual(const void* value, size_t bytes) {
  const auto* b = static_cast<const unsigned char*>(value);
  return std::all_of(b, b + bytes, [b](unsigned char x) { return x == b[0]; });
}

// Assumes that one thread writes about 10 bytes per nanosecond.
double CostNanos(DType dtype) { return IsPlain(dtype) ? 0.1 * SizeOf(dtype) : 10; }

}  // namespace

void CopyElements(DType dtype, const void* from, void* to, int64_t count) {
  if (IsPlain(dtype)) {
    if (count > 0) memcpy(to, from, count * SizeOf(dtype));
    return;
  }
  WithObject(dtype, [&]<class Object>(const Object&) {
    std::copy_n(static_cast<const Object*>(from), count, static_cast<Object*>(to));
  });
}

void ZeroElements(DType dtype, void* to, int64_t count) {
  if (IsPlain(dtype)) {
    if (count > 0) memset(to, 0, count * SizeOf(dtype));
    return;
  }
  WithObject(dtype, [&](const auto& empty) { FillObjects(empty, to, count); });
}

void FillElements(DType dtype, const void* value, void* to, int64_t count) {
  if (!IsPlain(dtype)) {
    return WithObject(dtype, [&]<class Object>(const Object&) {
      FillObjects(*static_cast<const Object*>(value), to, count);
    });
  }
  const size_t size = SizeOf(dtype);
  if (count > 0 && AllBytesEqual(value, size)) {
    memset(to, *static_cast<const unsigned char*>(value), count * size);
    return;
  }
  switch (size) {
    case 2:
      return FillPlain<2>(value, to, count);
    case 4:
      return FillPlain<4>(value, to, count);
    case 8:
      return FillPlain<8>(value, to, count);
    case 16:
      return FillPlain<16>(value, to, count);
    default:
      CHECK(count == 0, "no elements of ", size, " bytes");
  }
}

void Zero(Tensor& tensor, Scheduler& threads) {
  const DType dtype = tensor.dtype();
  void* data = tensor.mutable_raw_data();
  threads.ParallelFor(tensor.num_elements(), CostNanos(dtype), [&](int64_t begin, int64_t end) {
    ZeroElements(dtype, ElementAt(data, dtype, begin), end - begin);
  });
}

void FillWith(const void* value, Tensor& tensor, Scheduler& threads) {
  const DType dtype = tensor.dtype();
  void* data = tensor.mutable_raw_data();
  threads.ParallelFor(tensor.num_elements(), CostNanos(dtype), [&](int64_t begin, int64_t end) {
    FillElements(dtype, value, ElementAt(data, dtype, begin), end - begin);
  });
}

}  // namespace penstock
