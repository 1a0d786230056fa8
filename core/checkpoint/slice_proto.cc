// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/slice_proto.h"

#include "proto/tensorflow/checkpoint.pb.h"

namespace penstock {

void SliceToProto(const TensorSlice& slice, tensorflow::TensorSliceProto* proto) {
  for (const TensorSlice::Extent& extent : slice.extents) {
    auto* out = proto->add_extent();
    if (extent.length == TensorSlice::kWhole) continue;
    out->set_start(extent.start);
    out->set_length(extent.length);
  }
}

TensorSlice SliceFromProto(const tensorflow::TensorSliceProto& proto) {
  TensorSlice slice;
  for (const auto& extent : proto.extent()) {
    const bool whole = extent.has_length_case() != tensorflow::TensorSliceProto::Extent::kLength;
    slice.extents.push_back({extent.start(), whole ? TensorSlice::kWhole : extent.length()});
  }
  return slice;
}

StatusOr<Shape> SavedShapeFromProto(const tensorflow::TensorShapeProto& proto) {
  if (proto.unknown_rank()) return InvalidArgument("shape of unknown rank");
  Dims dims;
  for (const auto& dim : proto.dim()) dims.push_back(dim.size());
  return Shape::Make(dims);
}

void SavedShapeToProto(const Shape& shape, tensorflow::TensorShapeProto* proto) {
  proto->Clear();
  for (const int64_t size : shape.dims()) proto->add_dim()->set_size(size);
}

}  // namespace penstock
