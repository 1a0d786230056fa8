// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/tensor_encoding.h"

#include <utility>

#include "core/base/check.h"
#include "core/wire/tensor_proto.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {
namespace {

// Protobuf's limit for a message.
constexpr uint64_t kEncodedBytesMax = (uint64_t{1} << 31) - 1;

class StringBuffer final : public Buffer {
 public:
  static Tensor Of(std::string text) {
    auto* const moved = new std::string(std::move(text));
    return Tensor::FromBuffer(DType::kUint8, {static_cast<int64_t>(moved->size())},
                              new StringBuffer(moved));
  }

 private:
  explicit StringBuffer(std::string* text) : Buffer(text->data(), text->size()), text_(text) {}
  ~StringBuffer() override { delete text_; }

  std::string* const text_;
};

StatusOr<Tensor> Encode(const Tensor& value) {
  tensorflow::TensorProto proto;
  RETURN_IF_ERROR(TensorToProto(value, &proto));
  const size_t bytes = proto.ByteSizeLong();
  if (bytes > kEncodedBytesMax) {
    return ResourceExhausted("a tensor ", Name(value.dtype()), value.shape().ToString(), " of ",
                             bytes, " bytes: at most ", kEncodedBytesMax, " can be sent");
  }
  return StringBuffer::Of(proto.SerializeAsString());
}

}  // namespace

OutgoingTensor::OutgoingTensor(int64_t step_id, HashedKey key, Tensor value, bool is_dead)
    : step_id_(step_id), key_(std::move(key)), value_(std::move(value)), is_dead_(is_dead) {
  if (!value_.valid()) return;  // a dead value
  if (!IsPlain(value_.dtype())) {
    StatusOr<Tensor> encoded = Encode(value_);
    status_ = encoded.status();
    if (!status_.ok()) return;
    encoded_ = *std::move(encoded);
  }
  bytes_ = body().bytes();
}

TensorHeader OutgoingTensor::header() const {
  return {.dtype = Number(value_.dtype()),
          .dims = value_.shape().dims(),
          .is_dead = is_dead_,
          .is_encoded = encoded_.valid(),
          .bytes = bytes_};
}

StatusOr<IncomingTensor> IncomingTensor::Begin(int64_t step_id, const HashedKey& key,
                                               const TensorHeader& header, Landing& landing) {
  IncomingTensor tensor;
  tensor.is_dead_ = header.is_dead;
  tensor.is_encoded_ = header.is_encoded;
  tensor.total_ = header.bytes;
  if (header.is_dead && header.dtype == 0) {
    if (header.bytes == 0) return tensor;
    return DataLoss("a dead value of ", header.bytes, " bytes");
  }
  if (header.is_encoded) {
    if (header.bytes <= kEncodedBytesMax) return tensor;
    return ResourceExhausted("a tensor of strings, handles or variants of ", header.bytes,
                             " bytes");
  }
  ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(header.dtype));
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(header.dims));
  // Divides, because a product of numbers from another process may overflow.
  if (!IsPlain(dtype) || header.bytes % SizeOf(dtype) != 0 ||
      static_cast<uint64_t>(shape.num_elements()) != header.bytes / SizeOf(dtype)) {
    return DataLoss("a tensor ", Name(dtype), shape.ToString(), " of ", header.bytes, " bytes");
  }
  Allocator& memory = landing.AllocatorFor(step_id, key, dtype, shape);
  if (!memory.host_accessible()) {
    return Unimplemented("tensors cannot be received into ", memory.name(),
                         ": the CPU cannot write to it");
  }
  ASSIGN_OR_RETURN(tensor.value_, Tensor::Make(memory, dtype, shape));
  return tensor;
}

char* IncomingTensor::Next(size_t count) {
  CHECK(count <= missing());
  if (count == 0) return nullptr;
  const size_t from = std::exchange(filled_, filled_ + count);
  if (!is_encoded_) return static_cast<char*>(value_.mutable_raw_data()) + from;
  encoded_.resize(filled_);  // grows as bytes arrive: the length in the header may be false
  return encoded_.data() + from;
}

StatusOr<Tensor> IncomingTensor::Finish() && {
  CHECK(missing() == 0);
  if (!is_encoded_) return std::move(value_);
  tensorflow::TensorProto proto;
  if (!proto.ParseFromString(encoded_)) return DataLoss("a malformed tensor");
  return TensorFromProto(proto);
}

}  // namespace penstock
