// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/checkpoint_reader.h"

#include "core/base/match_files.h"
#include "core/checkpoint/bundle_entry.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/v1_reader.h"

namespace penstock {

// Declared in core/base/suggest.h.
std::string SuggestNames(string_view name, const std::vector<string_view>& known);

StatusOr<Tensor> CheckpointReader::ReadAs(DType dtype, string_view name,
                                          string_view shape_and_slice, Allocator& allocator) const {
  ASSIGN_OR_RETURN(const SavedTensor saved, Describe(name));
  if (saved.dtype != dtype) {
    return InvalidArgument("tensor_name = ", name, "; expected dtype ", Name(dtype),
                           " does not equal original dtype ", Name(saved.dtype), " in checkpoint '",
                           prefix_, "'");
  }
  TensorSlice slice = TensorSlice::Whole(saved.shape.rank());
  if (!shape_and_slice.empty()) {
    ASSIGN_OR_RETURN(ShapeAndSlice part, ShapeAndSlice::Parse(shape_and_slice));
    if (part.shape != saved.shape) {
      return InvalidArgument("tensor '", name, "' of checkpoint '", prefix_, "' has shape ",
                             saved.shape.ToString(), ", is to be restored as a part of ",
                             part.shape.ToString());
    }
    slice = std::move(part.slice);
  }
  return ReadSlice(name, slice, allocator);
}

// Client programs parse this text.
Status CheckpointReader::KeyNotFound(string_view name) const {
  const std::vector<std::string> saved = names();
  return NotFound("Key ", name, " not found in checkpoint '", prefix_, "'",
                  SuggestNames(name, {saved.begin(), saved.end()}));
}

StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpoint(Env& env, const std::string& prefix) {
  if (!env.FileExists(IndexPath(prefix)) && !MatchFiles(env, prefix).empty()) {
    ASSIGN_OR_RETURN(std::unique_ptr<CheckpointReader> reader, V1Reader::Open(env, prefix));
    return reader;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<CheckpointReader> reader, BundleReader::Open(env, prefix));
  return reader;
}

}  // namespace penstock
