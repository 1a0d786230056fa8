// SPDX-License-Identifier: Apache-2.0
//
// TensorArray: tensors by number, which live within one step: what loops read from and write to,
// iteration by iteration. Its gradient is another one of the same size, in which repeated writes of
// a place add up.
//
// A place is written once and, if the array clears what was read, read once. One that was never
// written reads as zeros if its shape is known. Thread-safe. Errors name array and index.
//
// Opaque in a StateLog, where its actions have no values: "write", "read", "gradient" (from then on
// it does not grow), "close".
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

// Why the resources of steps cannot be replayed. A step that is cut off runs again as a whole.
inline constexpr char kLivesWithinOneStep[] = "it lives within one step";

class TensorArray final : public Resource {
 public:
  struct Options {
    DType dtype = DType::kInvalid;
    PartialShape element_shape;
    bool dynamic_size = false;              // writing past the end makes room
    bool clear_after_read = true;           // frees a tensor when it is read
    bool identical_element_shapes = false;  // the first write says what the others must be
    bool sums = false;                      // repeated writes add up: a gradient
  };
  // Places take memory when they are used, but who moves all of an array lists them.
  static constexpr int64_t kSizeMax = int64_t{1} << 24;
  // ResourceExhausted above kSizeMax. REQUIRES size >= 0.
  static StatusOr<std::shared_ptr<TensorArray>> Make(std::string name, int64_t size,
                                                     Options options);

  const char* TypeName() const override { return "TensorArray"; }
  std::string DebugString() const override;
  const char* OpaqueReason() const override { return kLivesWithinOneStep; }
  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }

  StatusOr<int64_t> Size() const;
  // How many elements there are for ops that take all of them: Size, but for the gradient of an
  // array that was filled by a split only as many as there were parts. Elements that were written
  // behind those have gradients of their own.
  StatusOr<int64_t> SizeOfWhole() const;
  // Tells that a split has filled the first `parts` elements. Of a gradient it says nothing.
  void MarkSplit(int64_t parts);
  // The known shape of every element: the declared one and, if all are alike, the one that writes
  // have shown.
  PartialShape element_shape() const;
  bool dynamic_size() const;

  // values[k] to indices[k]. `ctx` lends memory and threads for sums. Places before a failing one
  // have been written.
  Status Write(KernelContext& ctx, absl::Span<const int64_t> indices, std::vector<Tensor> values);
  StatusOr<std::vector<Tensor>> Read(KernelContext& ctx, absl::Span<const int64_t> indices);

  // An array for gradients: as long as this one, its elements shaped as those here with `prefix` in
  // front. From now on this one does not grow.
  StatusOr<std::shared_ptr<TensorArray>> MakeGradient(std::string name, const Shape& prefix,
                                                      const UpdateOrigin& origin);

  // Drops the elements; everything after that is an error.
  void Close(const UpdateOrigin& origin);
  void Shutdown() override { Close({}); }

 private:
  struct Place {
    Tensor value;  // invalid: not written, cleared, or zeros of `shape`
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
  mutable Mutex mu_;                      // locked before that of its gradient
  Options options_ ABSL_GUARDED_BY(mu_);  // element_shape and dynamic_size change
  int64_t size_ ABSL_GUARDED_BY(mu_);
  // The number of parts of the last split; for a gradient, that of the array it belongs to. -1:
  // there was none.
  int64_t parts_ ABSL_GUARDED_BY(mu_) = -1;
  absl::flat_hash_map<int64_t, Place> places_
      ABSL_GUARDED_BY(mu_);  // those that were read or written, by index
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock
