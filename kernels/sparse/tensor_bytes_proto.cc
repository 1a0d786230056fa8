// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "kernels/sparse/tensor_bytes.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {

namespace {

// Encodes strings like tensor_content: all lengths as varints, then all bytes.
std::string Packed(const Tensor& strings) {
  std::string content;
  {
    google::protobuf::io::StringOutputStream stream(&content);
    google::protobuf::io::CodedOutputStream coded(&stream);
    for (const std::string& s : strings.flat<std::string>()) coded.WriteVarint64(s.size());
  }
  for (const std::string& s : strings.flat<std::string>()) content += s;
  return content;
}

// Decodes the strings of `*strings`. Returns false unless `content` holds a length for each of
// these strings, and then their bytes.
bool Unpack(const std::string& content, Tensor* strings) {
  google::protobuf::io::CodedInputStream coded(reinterpret_cast<const uint8_t*>(content.data()),
                                               static_cast<int>(content.size()));
  std::vector<uint64_t> lengths(strings->num_elements());
  for (uint64_t& length : lengths) {
    if (!coded.ReadVarint64(&length) || length > content.size()) return false;
  }
  for (int64_t i = 0; i < strings->num_elements(); ++i) {
    std::string* s = &strings->mutable_data<std::string>()[i];
    if (!coded.ReadString(s, static_cast<int>(lengths[i]))) return false;
  }
  return coded.CurrentPosition() == static_cast<int>(content.size());
}

}  // namespace

std::string TensorBytes(const Tensor& tensor) {
  tensorflow::TensorProto proto;
  proto.set_dtype(static_cast<tensorflow::DataType>(Number(tensor.dtype())));
  proto.mutable_tensor_shape();
  for (const int64_t dim : tensor.shape().dims()) {
    proto.mutable_tensor_shape()->add_dim()->set_size(dim);
  }
  if (tensor.dtype() == DType::kString) {
    *proto.mutable_tensor_content() = Packed(tensor);
  } else {
    proto.set_tensor_content(tensor.raw_data(), tensor.bytes());
  }
  return proto.SerializeAsString();
}

StatusOr<Tensor> TensorFromBytes(const std::string& bytes, Allocator& allocator) {
  tensorflow::TensorProto proto;
  if (!proto.ParseFromString(bytes)) return InvalidArgument("Could not parse serialized proto");
  ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(proto.dtype()));
  Dims dims;
  for (const auto& dim : proto.tensor_shape().dim()) dims.push_back(dim.size());
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  const int64_t n = shape.num_elements();
  if (dtype == DType::kString) {
    // In tensor_content every string takes at least one byte, for its length.
    const bool listed = proto.string_val_size() == n;
    const size_t holds = proto.tensor_content().size();
    if (!listed && static_cast<uint64_t>(n) > holds) {
      return InvalidArgument("a serialized tensor of shape ", shape.ToString(), " holds ", holds,
                             " bytes of strings");
    }
    ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(allocator, dtype, shape));
    for (int64_t i = 0; listed && i < n; ++i) {
      tensor.mutable_data<std::string>()[i] = proto.string_val(static_cast<int>(i));
    }
    if (listed || Unpack(proto.tensor_content(), &tensor)) return tensor;
    return InvalidArgument("a serialized tensor of shape ", shape.ToString(),
                           " holds another number of strings");
  }
  if (!IsPlain(dtype)) return InvalidArgument("a serialized tensor of type ", Name(dtype));
  // Divides instead of multiplying, and checks before allocating, because the shape may claim more
  // elements than the bytes hold.
  if (proto.tensor_content().size() / SizeOf(dtype) != static_cast<size_t>(n) ||
      proto.tensor_content().size() % SizeOf(dtype) != 0) {
    return InvalidArgument("a serialized ", Name(dtype), " tensor of shape ", shape.ToString(),
                           " holds ", proto.tensor_content().size(), " bytes of content");
  }
  ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(allocator, dtype, shape));
  if (n > 0) std::memcpy(tensor.mutable_raw_data(), proto.tensor_content().data(), tensor.bytes());
  return tensor;
}

}  // namespace penstock
