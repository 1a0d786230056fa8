// SPDX-License-Identifier: Apache-2.0
//
// TensorArray: an array of tensors that lives within one step. Loops read and write it, iteration
// by iteration. The gradient of an array is another array of the same size; writes to the same
// place of it are added up.
//
// A place may be written once and, if clear_after_read, read once. A place that was never written
// reads as zeros if its shape is known. Thread-safe. Errors name array and index.
//
// A StateLog cannot replay an array. The actions have no values: "write", "read", "gradient" (after
// which the array does not grow), "close".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/op/kernel.h"
#include "core/op/resource.h"
#include "core/tensor/tensor.h"

namespace penstock {

// The reason why resources of steps cannot be replayed. A step that was interrupted runs again as a
// whole.
inline constexpr char kLivesWithinOneStep[] = "it lives within one step";

class TensorArray final : public Resource {
 public:
  struct Options {
    DType dtype = DType::kInvalid;
    PartialShape element_shape;
    bool dynamic_size = false;              // true: writing past the end makes the array longer
    bool clear_after_read = true;           // true: an element is freed when it is read
    bool identical_element_shapes = false;  // true: all elements have the shape of the first write
    bool sums = false;                      // true (for gradients): repeated writes add up
  };
  // The maximum size. Only places in use take memory, but ops on all elements make lists of this
  // length.
  static constexpr int64_t kSizeMax = int64_t{1} << 24;
  // Makes an array. ResourceExhausted if `size` exceeds kSizeMax. REQUIRES: size >= 0.
  static StatusOr<std::shared_ptr<TensorArray>> Make(std::string name, int64_t size,
                                                     Options options);

  const char* TypeName() const override { return "TensorArray"; }
  std::string DebugString() const override;
  const char* OpaqueReason() const override { return kLivesWithinOneStep; }
  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }

  StatusOr<int64_t> Size() const;
  // Returns the number of elements for ops that take all of them. This is Size(), except for the
  // gradient of an array that was filled by a split: then it is the number of parts of the split.
  // Elements written after those parts have gradients of their own.
  StatusOr<int64_t> SizeOfWhole() const;
  // Records that a split has filled the first `parts` elements. Does nothing for a gradient.
  void MarkSplit(int64_t parts);
  // Returns the known shape of every element: the declared shape, merged with the shapes of the
  // written elements if all elements have the same shape.
  PartialShape element_shape() const;
  bool dynamic_size() const;

  // Writes values[k] to place indices[k]. `ctx` provides memory and threads for sums.
  // InvalidArgument if there is no such place, the value's shape does not fit, or the place has
  // been read, or written to (unless it sums). If a write fails, the places before it have been
  // written.
  Status Write(KernelContext& ctx, absl::Span<const int64_t> indices, std::vector<Tensor> values);
  StatusOr<std::vector<Tensor>> Read(KernelContext& ctx, absl::Span<const int64_t> indices);

  // Returns an array for gradients with the size of this array. Its elements have the shape of the
  // elements here, with `prefix` in front. From now on this array does not grow.
  StatusOr<std::shared_ptr<TensorArray>> MakeGradient(std::string name, const Shape& prefix,
                                                      const UpdateOrigin& origin);

  // Drops the elements. Every later call returns an error.
  void Close(const UpdateOrigin& origin);
  void Shutdown() override { Close({}); }

 private:
  struct Place {
    Tensor value;  // not valid if the place is not written, is cleared, or holds zeros of `shape`
    PartialShape shape;
    bool written = false, read = false, cleared = false;
  };

  TensorArray(std::string name, int64_t size, Options options)
      : name_(std::move(name)), dtype_(options.dtype), options_(std::move(options)), size_(size) {}

  Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status WriteOne(KernelContext& ctx, int64_t index, Tensor value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status MakeRoom(int64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckShape(int64_t index, const Shape& shape) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status AddTo(KernelContext& ctx, Place& place, int64_t index, Tensor value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StatusOr<Tensor> ReadOne(KernelContext& ctx, int64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StatusOr<Tensor> Zeros(KernelContext& ctx, const Place& place, int64_t index) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string name_;
  const DType dtype_;
  mutable Mutex mu_;                      // locked before the mutex of its gradient
  Options options_ ABSL_GUARDED_BY(mu_);  // element_shape and dynamic_size may change
  int64_t size_ ABSL_GUARDED_BY(mu_);
  // The number of parts of the last split, or -1 if there was none. In an array
  // of gradients: the number of parts of the last split of the forward array.
  int64_t parts_ ABSL_GUARDED_BY(mu_) = -1;
  absl::flat_hash_map<int64_t, Place> places_
      ABSL_GUARDED_BY(mu_);  // places that were read or written, by index
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock
