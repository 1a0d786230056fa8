// SPDX-License-Identifier: Apache-2.0
//
// Encodes and decodes the metadata of a list.
#include <limits>
#include <utility>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "kernels/tensor_list/tensor_list.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

tensorflow::TensorShapeProto ShapeProto(const PartialShape& shape) {
  tensorflow::TensorShapeProto proto;
  proto.set_unknown_rank(!shape.known_rank());
  for (const int64_t dim : shape.dims()) proto.add_dim()->set_size(dim);
  return proto;
}

StatusOr<PartialShape> ShapeOf(const tensorflow::TensorShapeProto& proto) {
  if (proto.unknown_rank()) return PartialShape();
  Dims dims;
  for (const auto& dim : proto.dim()) dims.push_back(dim.size());
  return PartialShape::Make(dims);
}

Status Malformed(const char* what) {
  return InvalidArgument("a list whose metadata is malformed: ", what);
}

// Reads the indices of elements that are not set, in order. `set` is the number of elements that
// are set. InvalidArgument if the bytes are malformed.
StatusOr<std::vector<uint64_t>> ReadUnset(CodedInputStream* in, uint64_t set) {
  uint64_t count = 0;
  // Refuses a count that the bytes cannot hold: each index takes at least one byte.
  if (!in->ReadVarint64(&count) || count > static_cast<uint64_t>(in->BytesUntilLimit())) {
    return Malformed("it does not say which elements are not set");
  }
  std::vector<uint64_t> unset(count);
  for (uint64_t i = 0; i < count; ++i) {
    if (!in->ReadVarint64(&unset[i]) || unset[i] >= set + count ||
        (i > 0 && unset[i] <= unset[i - 1])) {
      return Malformed("the elements that are not set must be in order, and in the list");
    }
  }
  return unset;
}

}  // namespace

Status TensorListValue::Encode(std::string* metadata, std::vector<Tensor>* tensors) const {
  google::protobuf::io::StringOutputStream stream(metadata);
  CodedOutputStream out(&stream);
  tensors->clear();
  for (const Tensor& element : elements_) {
    if (element.valid()) tensors->push_back(element);
  }
  out.WriteVarint64(elements_.size() - tensors->size());
  for (int64_t i = 0; i < size(); ++i) {
    if (!elements_[i].valid()) out.WriteVarint64(static_cast<uint64_t>(i));
  }
  out.WriteVarint64(static_cast<uint64_t>(Number(element_dtype_)));
  out.WriteVarint64(static_cast<uint64_t>(max_length_));
  out.WriteString(ShapeProto(element_shape_).SerializeAsString());
  return OkStatus();
}

StatusOr<Variant> TensorListValue::Decode(const std::string& metadata,
                                          const std::vector<Tensor>& tensors) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(metadata.data()),
                      static_cast<int>(metadata.size()));
  in.PushLimit(static_cast<int>(metadata.size()));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> unset, ReadUnset(&in, tensors.size()));
  uint64_t number = 0, max_length = 0;
  if (!in.ReadVarint64(&number) || number > std::numeric_limits<int>::max() ||
      !in.ReadVarint64(&max_length)) {
    return Malformed("no type, or no maximal length");
  }
  ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(static_cast<int>(number)));
  tensorflow::TensorShapeProto shape_proto;
  if (!shape_proto.MergeFromCodedStream(&in) || !in.ConsumedEntireMessage()) {
    return Malformed("no shape of elements");
  }
  ASSIGN_OR_RETURN(PartialShape shape, ShapeOf(shape_proto));
  auto list = std::make_shared<TensorListValue>(dtype, std::move(shape));
  RETURN_IF_ERROR(list->Resize(static_cast<int64_t>(tensors.size() + unset.size())));
  auto next_unset = unset.begin();
  auto tensor = tensors.begin();
  for (int64_t i = 0; i < list->size(); ++i) {
    if (next_unset != unset.end() && *next_unset == static_cast<uint64_t>(i)) {
      ++next_unset;
    } else {
      RETURN_IF_ERROR(list->Set(i, *tensor++));
    }
  }
  list->max_length_ = static_cast<int64_t>(max_length);
  return Variant{std::move(list)};
}

}  // namespace penstock
