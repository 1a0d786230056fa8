// SPDX-License-Identifier: Apache-2.0
#include "kernels/tensor_array/tensor_array.h"

#include <utility>

#include "kernels/array/elements.h"
#include "kernels/math/accumulate.h"

namespace penstock {

namespace {

std::vector<Tensor> NoValues() { return {}; }

Status CheckSize(string_view name, int64_t size) {
  if (size <= TensorArray::kSizeMax) return OkStatus();
  return ResourceExhausted("TensorArray ", name, " of size ", size, ": at most ",
                           TensorArray::kSizeMax);
}

}  // namespace

StatusOr<std::shared_ptr<TensorArray>> TensorArray::Make(std::string name, int64_t size,
                                                         Options options) {
  RETURN_IF_ERROR(CheckSize(name, size));
  return std::shared_ptr<TensorArray>(new TensorArray(std::move(name), size, std::move(options)));
}

std::string TensorArray::DebugString() const {
  MutexLock lock(mu_);
  return StrCat("TensorArray ", name_, " of ", size_, " ", Name(options_.dtype),
                options_.element_shape.ToString());
}

Status TensorArray::CheckOpen() const {
  if (!closed_) return OkStatus();
  return InvalidArgument("TensorArray ", name_, " has already been closed.");
}

StatusOr<int64_t> TensorArray::Size() const {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(CheckOpen());
  return size_;
}

StatusOr<int64_t> TensorArray::SizeOfWhole() const {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(CheckOpen());
  return options_.sums && parts_ >= 0 ? parts_ : size_;
}

void TensorArray::MarkSplit(int64_t parts) {
  MutexLock lock(mu_);
  if (!options_.sums) parts_ = parts;
}

PartialShape TensorArray::element_shape() const {
  MutexLock lock(mu_);
  return options_.element_shape;
}

bool TensorArray::dynamic_size() const {
  MutexLock lock(mu_);
  return options_.dynamic_size;
}

Status TensorArray::Write(KernelContext& ctx, absl::Span<const int64_t> indices,
                          std::vector<Tensor> values) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(CheckOpen());
  Status status;
  for (size_t i = 0; i < indices.size() && status.ok(); ++i) {
    status = WriteOne(ctx, indices[i], std::move(values[i]));
  }
  Changed(ctx.origin(), "write", NoValues);
  return status;
}

Status TensorArray::MakeRoom(int64_t index) {
  if (index >= 0 && index < size_) return OkStatus();
  if (index < 0 || !options_.dynamic_size) {
    return InvalidArgument("TensorArray ", name_, ": Tried to write to index ", index,
                           " but array is ", options_.dynamic_size ? "" : "not resizeable and ",
                           "of size: ", size_);
  }
  RETURN_IF_ERROR(CheckSize(name_, index + 1));
  size_ = index + 1;
  return OkStatus();
}

Status TensorArray::CheckShape(int64_t index, const Shape& shape) {
  PartialShape& known = options_.element_shape;
  if (!known.Compatible(shape)) {
    return InvalidArgument("TensorArray ", name_, ": Could not write to TensorArray index ", index,
                           " because the value shape is ", shape.ToString(),
                           " which is incompatible with the TensorArray's ",
                           options_.identical_element_shapes ? "inferred " : "",
                           "element shape: ", known.ToString(),
                           " (consider setting infer_shape=False).");
  }
  if (options_.identical_element_shapes) known = shape;
  return OkStatus();
}

Status TensorArray::WriteOne(KernelContext& ctx, int64_t index, Tensor value) {
  RETURN_IF_ERROR(MakeRoom(index));
  RETURN_IF_ERROR(CheckShape(index, value.shape()));
  Place& place = places_[index];
  const auto refused = [&](const char* why) {
    return InvalidArgument("TensorArray ", name_, ": Could not write to TensorArray index ", index,
                           " because it has already been ", why, ".");
  };
  if (place.read) return refused("read");
  if (place.written && !options_.sums) return refused("written to");
  if (options_.sums && !place.shape.Compatible(value.shape())) {
    return InvalidArgument("TensorArray ", name_, ": Could not aggregate to TensorArray index ",
                           index, " because the existing shape is ", place.shape.ToString(),
                           " but the new input shape is ", value.shape().ToString(), ".");
  }
  place.shape = value.shape();
  if (place.value.valid()) {
    RETURN_IF_ERROR(AddInPlace(ctx, &place.value, value));
  } else {
    place.value = std::move(value);
  }
  place.written = true;
  return OkStatus();
}

StatusOr<std::vector<Tensor>> TensorArray::Read(KernelContext& ctx,
                                                absl::Span<const int64_t> indices) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(CheckOpen());
  std::vector<Tensor> values;
  values.reserve(indices.size());
  Status status;
  for (const int64_t index : indices) {
    StatusOr<Tensor> value = ReadOne(ctx, index);
    status = value.status();
    if (!status.ok()) break;
    values.push_back(*std::move(value));
  }
  Changed(ctx.origin(), "read", NoValues);
  RETURN_IF_ERROR(status);
  return values;
}

StatusOr<Tensor> TensorArray::ReadOne(KernelContext& ctx, int64_t index) {
  if (index < 0 || index >= size_) {
    return InvalidArgument("TensorArray ", name_, ": Tried to read from index ", index,
                           " but array size is: ", size_);
  }
  Place& place = places_[index];
  if (place.cleared) {
    return InvalidArgument("TensorArray ", name_, ": Could not read index ", index,
                           " twice because it was cleared after a previous read ",
                           "(perhaps try setting clear_after_read = false?).");
  }
  if (!place.value.valid()) {
    ASSIGN_OR_RETURN(place.value, Zeros(ctx, place, index));
    place.shape = place.value.shape();
  }
  place.read = true;
  if (!options_.clear_after_read) return place.value;
  place.cleared = true;
  return std::move(place.value);
}

StatusOr<Tensor> TensorArray::Zeros(KernelContext& ctx, const Place& place, int64_t index) const {
  ASSIGN_OR_RETURN(const PartialShape known, place.shape.Merge(options_.element_shape));
  if (!known.fully_known()) {
    return InvalidArgument(
        "TensorArray ", name_, ": Could not read from TensorArray index ", index,
        ": nothing has been written there, and the element shape is not fully defined: ",
        known.ToString(),
        ".  With the full element_shape given to the (forward) TensorArray, zeros would be read.");
  }
  ASSIGN_OR_RETURN(Tensor zeros, ctx.Temporary(options_.dtype, known.ToShape()));
  Zero(zeros, ctx.threads());
  return zeros;
}

StatusOr<std::shared_ptr<TensorArray>> TensorArray::MakeGradient(std::string name,
                                                                 const Shape& prefix,
                                                                 const UpdateOrigin& origin) {
  const auto with_prefix = [&prefix](const PartialShape& shape) {
    if (!shape.known_rank()) return shape;
    PartialShape result(prefix);
    for (const int64_t dim : shape.dims()) result.AddDim(dim);
    return result;
  };
  MutexLock lock(mu_);
  RETURN_IF_ERROR(CheckOpen());
  options_.dynamic_size = false;
  ASSIGN_OR_RETURN(auto gradient,
                   Make(std::move(name), size_,
                        {.dtype = options_.dtype,
                         .element_shape = with_prefix(options_.element_shape),
                         // If this array adds up repeated writes to a place, the gradient of each
                         // write is read from the same place of the array of gradients, so a read
                         // must not clear that place.
                         .clear_after_read = !options_.sums,
                         .identical_element_shapes = options_.identical_element_shapes,
                         .sums = true}));
  // No other thread has the new array yet.
  MutexLock gradient_lock(gradient->mu_);
  gradient->parts_ = parts_;
  for (const auto& [index, place] : places_) {
    gradient->places_[index].shape = with_prefix(place.shape);
  }
  Changed(origin, "gradient", NoValues);
  return gradient;
}

void TensorArray::Close(const UpdateOrigin& origin) {
  absl::flat_hash_map<int64_t, Place> dropped;  // destroyed outside the lock
  MutexLock lock(mu_);
  dropped.swap(places_);
  if (std::exchange(closed_, true)) return;
  Changed(origin, "close", NoValues);
}

}  // namespace penstock
