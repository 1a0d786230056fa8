// SPDX-License-Identifier: Apache-2.0
//
// Tensor: a typed, shaped, reference-counted block of memory. Edges of a graph carry Tensors.
//
// Copies, Slice and Reshaped share the buffer. So only the creator of a Tensor may write to it,
// before there is a copy, and other code only if unique() returns true. Thread safety: one Tensor
// object must not be used by several threads if one of them changes it; different Tensors may share
// a buffer across threads while no thread writes to the buffer. Elements are aligned to
// Allocator::kAlignment; in tensors of up to 16 bytes to 16 bytes; in slices and foreign buffers
// only to the size of an element. The elements of string, resource and variant tensors are C++
// objects in the buffer: std::string, ResourceHandle and Variant.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/check.h"
#include "core/base/status.h"
#include "core/tensor/allocator.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace penstock {

// Reference-counted memory. Created by Buffer::New, or by a subclass that wraps foreign memory (a
// received message, a mapped file, registered RDMA memory).
class Buffer {
 public:
  // Returns null if the allocator has no memory. Elements that are not plain are constructed; plain
  // elements are not initialised.
  static Buffer* New(Allocator& allocator, DType dtype, int64_t num_elements);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    if (refs_.load(std::memory_order_acquire) == 1 ||
        refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      Destroy();
    }
  }
  bool unique() const { return refs_.load(std::memory_order_acquire) == 1; }
  virtual Allocator* allocator() const { return nullptr; }  // null: foreign memory

 protected:
  Buffer(void* data, size_t bytes) : data_(data), bytes_(bytes) {}
  virtual ~Buffer() = default;
  virtual void Destroy() { delete this; }

 private:
  void* data_;
  size_t bytes_;
  std::atomic<int32_t> refs_{1};
};

class Tensor {
 public:
  Tensor() = default;  // invalid: dtype kInvalid, no buffer
  // Makes a tensor with uninitialised numbers or empty strings. Throws std::bad_alloc if there is
  // no memory; core/base/guarded.h turns this exception into ResourceExhausted. Only for small
  // tensors; use Make if the size is not trusted.
  Tensor(DType dtype, const Shape& shape);
  // Makes a tensor in memory of `allocator`, with uninitialised numbers or empty strings.
  // ResourceExhausted if there is no memory; Unimplemented for kInvalid; InvalidArgument if
  // elements that are C++ objects would be in memory that the CPU cannot access.
  static StatusOr<Tensor> Make(Allocator& allocator, DType dtype, const Shape& shape);
  // Takes over one reference to `buffer`, whose memory must hold the tensor.
  static Tensor FromBuffer(DType dtype, Shape shape, Buffer* buffer);

  Tensor(const Tensor& other)
      : shape_(other.shape_), buffer_(other.buffer_), data_(other.data_), dtype_(other.dtype_) {
    if (buffer_ != nullptr) buffer_->Ref();
  }
  Tensor(Tensor&& other) noexcept
      : shape_(std::move(other.shape_)),
        buffer_(std::exchange(other.buffer_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        dtype_(std::exchange(other.dtype_, DType::kInvalid)) {}
  Tensor& operator=(const Tensor& other) { return *this = Tensor(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    if (this == &other) return *this;
    if (buffer_ != nullptr) buffer_->Unref();
    shape_ = std::move(other.shape_);
    buffer_ = std::exchange(other.buffer_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    dtype_ = std::exchange(other.dtype_, DType::kInvalid);
    return *this;
  }
  ~Tensor() {
    if (buffer_ != nullptr) buffer_->Unref();
  }

  // Make small tensors with given elements, for tests, clients and constants.
  template <class T>
  static Tensor Scalar(const T& value) {
    return Of<T>({}, {value});
  }
  template <class T>
  static Tensor Vector(const std::vector<T>& values) {
    return Of<T>({static_cast<int64_t>(values.size())}, values);
  }
  template <class T>
  static Tensor Of(const Shape& shape, const std::vector<T>& values) {
    Tensor t(kDTypeOf<T>, shape);
    CHECK(static_cast<int64_t>(values.size()) == shape.num_elements());
    auto flat = t.mutable_flat<T>();
    for (size_t i = 0; i < values.size(); ++i) flat[i] = values[i];
    return t;
  }

  bool valid() const { return dtype_ != DType::kInvalid; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_.dim(i); }
  int64_t num_elements() const { return shape_.num_elements(); }
  // The size of the elements in memory: for strings the C++ objects, not their characters.
  size_t bytes() const { return num_elements() * SizeOf(dtype_); }

  const void* raw_data() const { return data_; }
  void* mutable_raw_data() { return data_; }
  template <class T>
  const T* data() const {
    CheckType(kDTypeOf<T>);
    return static_cast<const T*>(data_);
  }
  template <class T>
  T* mutable_data() {
    CheckType(kDTypeOf<T>);
    return static_cast<T*>(data_);
  }
  template <class T>
  absl::Span<const T> flat() const {
    return absl::Span<const T>(data<T>(), static_cast<size_t>(num_elements()));
  }
  template <class T>
  absl::Span<T> mutable_flat() {
    return absl::Span<T>(mutable_data<T>(), static_cast<size_t>(num_elements()));
  }
  // REQUIRES: the tensor has one element.
  template <class T>
  const T& scalar() const {
    CHECK(num_elements() == 1);
    return *data<T>();
  }

  // Returns true if the buffer may be written: no other Tensor shares it, and it is not foreign
  // memory.
  bool unique() const { return buffer_ != nullptr && buffer_->unique(); }
  Buffer* buffer() const { return buffer_; }
  bool SharesBufferWith(const Tensor& other) const {
    return buffer_ != nullptr && buffer_ == other.buffer_;
  }

  // Returns rows [begin, end) of dimension 0, sharing the buffer. REQUIRES: rank >= 1 and a valid
  // range.
  Tensor Slice(int64_t begin, int64_t end) const;
  // Returns the same elements with another shape. REQUIRES: equal num_elements.
  Tensor Reshaped(const Shape& shape) const;
  // Returns the same bytes as elements of another dtype of equal element size (for Bitcast and
  // quantized types). Shares the buffer.
  Tensor Reinterpreted(DType dtype, const Shape& shape) const;
  // Returns a copy with a buffer of its own, on the CPU. Throws std::bad_alloc if there is no
  // memory; TryClone returns ResourceExhausted instead. REQUIRES: host memory.
  Tensor Clone() const;
  StatusOr<Tensor> TryClone() const;
  // Does the same as TryClone, but the copy comes from the allocator of this tensor's buffer, and
  // may so be in a device's memory (Allocator::Copy). A copy of foreign memory is on the CPU.
  StatusOr<Tensor> TryCloneInItsMemory() const;

  // Returns "float[2,2] 1 2 3 4", with at most `max_elements` elements.
  std::string ToString(int max_elements = 10) const;

 private:
  void CheckType(DType wanted) const {
    if (dtype_ != wanted) [[unlikely]]
      WrongType(wanted);
  }
  [[noreturn]] void WrongType(DType wanted) const;

  Shape shape_;
  Buffer* buffer_ = nullptr;
  void* data_ = nullptr;
  DType dtype_ = DType::kInvalid;
};

}  // namespace penstock
