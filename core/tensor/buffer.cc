// SPDX-License-Identifier: Apache-2.0
//
// Buffer::New. A small buffer is one allocation with the header in front of the elements; a scalar
// even shares the header's cache line. Above 4 KiB the header has an allocation of its own, because
// it would push sizes that are powers of two into the next size class.
#include <memory>
#include <new>

#include "core/tensor/resource_handle.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variant.h"

namespace penstock {
namespace {

constexpr size_t kHeaderBytes = Allocator::kAlignment;
constexpr size_t kTinyHeaderBytes = 48;
constexpr size_t kTinyBytesMax = kHeaderBytes - kTinyHeaderBytes;
constexpr size_t kOneAllocationBytesMax = 4096;

// The elements follow the header in one allocation.
class InlineBuffer final : public Buffer {
 public:
  InlineBuffer(Allocator& allocator, size_t bytes)
      : Buffer(reinterpret_cast<char*>(this) + HeaderBytes(bytes), bytes), allocator_(allocator) {}
  static size_t HeaderBytes(size_t bytes) {
    return bytes <= kTinyBytesMax ? kTinyHeaderBytes : kHeaderBytes;
  }
  Allocator* allocator() const override { return &allocator_; }

 private:
  void Destroy() override {
    Allocator& allocator = allocator_;
    const size_t total = HeaderBytes(bytes()) + bytes();
    this->~InlineBuffer();
    allocator.Deallocate(this, total);
  }
  Allocator& allocator_;
};
static_assert(sizeof(InlineBuffer) <= kTinyHeaderBytes);

// The elements have an allocation of their own, possibly in a device's memory.
class OutlineBuffer : public Buffer {
 public:
  OutlineBuffer(Allocator& allocator, void* data, size_t bytes)
      : Buffer(data, bytes), allocator_(allocator) {}
  ~OutlineBuffer() override { allocator_.Deallocate(data(), bytes()); }
  Allocator* allocator() const override { return &allocator_; }

  static void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
    return CpuAllocator().Allocate(bytes);
  }
  static void operator delete(void* pointer, size_t bytes) {
    CpuAllocator().Deallocate(pointer, bytes);
  }

 private:
  Allocator& allocator_;
};

// The elements are C++ objects.
template <class T>
class ObjectBuffer final : public OutlineBuffer {
 public:
  ObjectBuffer(Allocator& allocator, void* data, int64_t count)
      : OutlineBuffer(allocator, data, count * sizeof(T)) {
    std::uninitialized_value_construct_n(static_cast<T*>(data), count);
  }
  ~ObjectBuffer() override { std::destroy_n(static_cast<T*>(data()), bytes() / sizeof(T)); }
};

Buffer* NewOutline(Allocator& allocator, DType dtype, int64_t count, size_t bytes) {
  void* data = allocator.Allocate(bytes);
  if (data == nullptr) return nullptr;
  Buffer* buffer = nullptr;
  switch (dtype) {
    case DType::kString:
      buffer = new (std::nothrow) ObjectBuffer<std::string>(allocator, data, count);
      break;
    case DType::kResource:
      buffer = new (std::nothrow) ObjectBuffer<ResourceHandle>(allocator, data, count);
      break;
    case DType::kVariant:
      buffer = new (std::nothrow) ObjectBuffer<Variant>(allocator, data, count);
      break;
    default:
      buffer = new (std::nothrow) OutlineBuffer(allocator, data, bytes);
  }
  if (buffer == nullptr) allocator.Deallocate(data, bytes);
  return buffer;
}

}  // namespace

Buffer* Buffer::New(Allocator& allocator, DType dtype, int64_t num_elements) {
  size_t bytes;
  if (__builtin_mul_overflow(static_cast<size_t>(num_elements), SizeOf(dtype), &bytes)) {
    return nullptr;
  }
  if (bytes > kOneAllocationBytesMax || !IsPlain(dtype) || !allocator.host_accessible()) {
    CHECK(IsPlain(dtype) || allocator.host_accessible(), Name(dtype), " on ", allocator.name());
    return NewOutline(allocator, dtype, num_elements, bytes);
  }
  void* memory = allocator.Allocate(InlineBuffer::HeaderBytes(bytes) + bytes);
  return memory == nullptr ? nullptr : new (memory) InlineBuffer(allocator, bytes);
}

}  // namespace penstock
