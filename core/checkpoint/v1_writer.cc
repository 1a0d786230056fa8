// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/v1_writer.h"

#include "core/checkpoint/slice_proto.h"
#include "core/checkpoint/table.h"
#include "core/wire/tensor_fields.h"
#include "proto/tensorflow/checkpoint.pb.h"

namespace penstock {
namespace {

constexpr int kProducerVersion = 1;

// TensorFlow reads only these types in this format.
bool IsSaved(DType dtype) {
  switch (dtype) {
    case DType::kBfloat16:
    case DType::kUint32:
    case DType::kUint64:
      return false;
    default:
      return IsPlain(dtype) || dtype == DType::kString;
  }
}

Status TooLarge(string_view name) {
  return InvalidArgument("tensor '", name, "' is too large for a V1 checkpoint, which holds less ",
                         "than 2 GiB of each; SaveV2 takes any size");
}

tensorflow::DataType NumberOf(DType dtype) {
  return static_cast<tensorflow::DataType>(Number(dtype));
}

}  // namespace

Status V1Writer::Add(string_view name, const Tensor& tensor) {
  return AddSlice(name, tensor.shape(), TensorSlice::Whole(tensor.rank()), tensor);
}

Status V1Writer::AddSlice(string_view name, const Shape& whole, const TensorSlice& slice,
                          const Tensor& tensor) {
  if (name.empty()) return InvalidArgument("a tensor needs a name");
  RETURN_IF_ERROR(CheckSliceShape(name, whole, slice, tensor.shape()));
  if (!IsSaved(tensor.dtype())) {
    return Unimplemented("tensor '", name, "' is ", Name(tensor.dtype()),
                         ", which a V1 checkpoint cannot hold; SaveV2 can");
  }
  // Each value needs at least a byte, and a complex number counts as two values.
  if (tensor.num_elements() > INT32_MAX / 2) return TooLarge(name);
  Entry& entry = tensors_[std::string(name)];
  if (entry.slices.empty()) {
    entry.dtype = tensor.dtype();
    entry.shape = whole;
  } else if (entry.dtype != tensor.dtype() || entry.shape != whole) {
    return InvalidArgument("tensor '", name, "' is saved as a slice of ", Name(entry.dtype),
                           entry.shape.ToString(), " and of ", Name(tensor.dtype()),
                           whole.ToString());
  }
  entry.slices.push_back(slice);

  tensorflow::SavedTensorSlices proto;
  proto.mutable_data()->set_name(std::string(name));
  SliceToProto(slice, proto.mutable_data()->mutable_slice());
  CHECK(WriteField(tensor, proto.mutable_data()->mutable_data()), Name(tensor.dtype()));
  if (proto.ByteSizeLong() > INT32_MAX) return TooLarge(name);
  if (!table_.try_emplace(SliceKey(name, slice), proto.SerializeAsString()).second) {
    return InvalidArgument("tensor '", name, "', slice '", slice.ToString(), "' is saved twice");
  }
  return OkStatus();
}

// Rejects slices that no reader accepts: such a file must not replace a readable one.
Status V1Writer::CheckSlices(const std::string& name, const Entry& entry) {
  std::vector<TensorSlice> boxes;
  for (const TensorSlice& slice : entry.slices) {
    ASSIGN_OR_RETURN(TensorSlice box, slice.Within(entry.shape));
    boxes.push_back(std::move(box));
  }
  const Status status = CheckDisjoint(boxes);
  return status.ok() ? status : InvalidArgument("tensor '", name, "': ", status.message());
}

Status V1Writer::Finish() {
  tensorflow::SavedTensorSlices list;
  for (const auto& [name, entry] : tensors_) {
    RETURN_IF_ERROR(CheckSlices(name, entry));
    tensorflow::SavedSliceMeta* tensor = list.mutable_meta()->add_tensor();
    tensor->set_name(name);
    SavedShapeToProto(entry.shape, tensor->mutable_shape());
    tensor->set_type(NumberOf(entry.dtype));
    for (const TensorSlice& slice : entry.slices) SliceToProto(slice, tensor->add_slice());
  }
  list.mutable_meta()->mutable_versions()->set_producer(kProducerVersion);
  if (list.ByteSizeLong() > INT32_MAX) {
    return InvalidArgument("the names and shapes of ", tensors_.size(), " tensors take more than ",
                           "2 GiB; SaveV2 takes any number");
  }
  table_[""] = list.SerializeAsString();
  ASSIGN_OR_RETURN(const std::string contents, BuildTable(table_));
  return env_.WriteFileAtomically(path_, contents);
}

}  // namespace penstock
