// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/tensor_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "core/wire/attr_proto.h"
#include "core/wire/tensor_proto.h"
#include "proto/tensorflow/master.pb.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;

// Tensors up to this size are written by protobuf's own code: copying them costs less than a
// reference-counted slice.
constexpr size_t kCopiedBytesMax = 4096;
constexpr size_t kMessageBytesMax = (size_t{1} << 31) - 1;
// Smaller tensors are not named in errors, so that no time is spent on their names.
constexpr size_t kNamedBytesMin = size_t{1} << 20;
constexpr uint32_t kNameTag = tensorflow::NamedTensorProto::kNameFieldNumber << 3 | 2;
constexpr uint32_t kTensorTag = tensorflow::NamedTensorProto::kTensorFieldNumber << 3 | 2;
constexpr uint32_t kDTypeTag = tensorflow::TensorProto::kDtypeFieldNumber << 3 | 0;
constexpr uint32_t kShapeTag = tensorflow::TensorProto::kTensorShapeFieldNumber << 3 | 2;
constexpr uint32_t kContentTag = tensorflow::TensorProto::kTensorContentFieldNumber << 3 | 2;

bool IsLarge(const Tensor& tensor) {
  return IsPlain(tensor.dtype()) && tensor.bytes() > kCopiedBytesMax;
}

size_t VarintSize(uint64_t value) { return CodedOutputStream::VarintSize64(value); }

void AppendTagAndLength(uint32_t tag, size_t length, std::string* to) {
  StringOutputStream stream(to);
  CodedOutputStream out(&stream);
  out.WriteTag(tag);
  out.WriteVarint64(length);
}

// Returns the bytes before the contents of a large tensor, or all bytes of a small one.
StatusOr<std::string> HeadOf(const Tensor& tensor) {
  tensorflow::TensorProto proto;
  if (!IsLarge(tensor)) {
    RETURN_IF_ERROR(TensorToProto(tensor, &proto));
    return proto.SerializeAsString();
  }
  proto.set_dtype(static_cast<tensorflow::DataType>(Number(tensor.dtype())));
  ShapeToProto(tensor.shape(), proto.mutable_tensor_shape());
  std::string head = proto.SerializeAsString();
  AppendTagAndLength(kContentTag, tensor.bytes(), &head);
  return head;
}

size_t LengthOf(const Tensor& tensor, const std::string& head) {
  return head.size() + (IsLarge(tensor) ? tensor.bytes() : 0);
}

Status Malformed() { return InvalidArgument("malformed message"); }

// A string to which fields are copied, one after the other. The streams are kept, because each new
// one would extend the string to its capacity.
class FieldCopies {
 public:
  bool Add(CodedInputStream* in, uint32_t tag) { return WireFormatLite::SkipField(in, tag, &out_); }
  const std::string& bytes() {
    out_.Trim();
    return bytes_;
  }

 private:
  std::string bytes_;
  StringOutputStream stream_{&bytes_};
  CodedOutputStream out_{&stream_};
};

bool ReadLength(CodedInputStream* in, size_t* length) {
  uint64_t value = 0;
  if (!in->ReadVarint64(&value)) return false;
  // ReadTensorMessage has set a limit: no length exceeds the rest of the message, so no more
  // memory is allocated than bytes were sent.
  if (value > static_cast<uint64_t>(in->BytesUntilLimit())) return false;
  *length = static_cast<size_t>(value);
  return true;
}

// Reads the message of `length` bytes that comes next; calls `read_field` with the tag of each
// field. Returns false if the bytes are not a valid message.
bool ReadMessage(CodedInputStream* in, size_t length,
                 absl::FunctionRef<bool(uint32_t)> read_field) {
  const auto limit = in->PushLimit(static_cast<int>(length));
  while (const uint32_t tag = in->ReadTag()) {
    if (!read_field(tag)) return false;
  }
  const bool whole = in->ConsumedEntireMessage() && in->BytesUntilLimit() == 0;
  in->PopLimit(limit);
  return whole;
}

// Reads one TensorProto.
class TensorReader {
 public:
  explicit TensorReader(CodedInputStream* in) : in_(in) {}

  // Returns false if the bytes are not a valid message. If they are a message but not a valid
  // tensor, returns true and sets `*tensor` to an error.
  bool Read(size_t length, StatusOr<Tensor>* tensor) {
    if (!ReadMessage(in_, length, [this](uint32_t tag) { return ReadField(tag); })) return false;
    tensorflow::TensorProto proto;
    if (!error_.ok()) {
      *tensor = error_;
    } else if (tensor_.valid()) {
      *tensor = std::move(tensor_);
    } else if (proto.ParseFromString(head_.bytes())) {
      *tensor = TensorFromProto(proto);
    } else {
      return false;
    }
    return true;
  }

 private:
  bool ReadField(uint32_t tag) {
    // TensorIsDescribed parses all earlier fields. It is called only for the first content, because
    // a message may have many, and calling it for each would take quadratic time.
    if (tag == kContentTag && !std::exchange(content_seen_, true) && TensorIsDescribed()) {
      return ReadContent();
    }
    // Refuses a field that describes the tensor after its content, and a second content. Protobuf's
    // writers send neither.
    if (tensor_.valid() && (tag == kDTypeTag || tag == kShapeTag || tag == kContentTag)) {
      return false;
    }
    return head_.Add(in_, tag);
  }

  // Returns whether the fields so far give the dtype and shape of the content.
  bool TensorIsDescribed() {
    tensorflow::TensorProto proto;
    if (!proto.ParseFromString(head_.bytes())) return false;
    const auto dtype = DTypeFromNumber(proto.dtype());
    const auto declared = ShapeFromProto(proto.tensor_shape());
    if (!dtype.ok() || !IsPlain(*dtype) || !declared.ok() || !declared->fully_known()) return false;
    const auto shape = Shape::Make(declared->dims());
    if (!shape.ok()) return false;
    dtype_ = *dtype;
    shape_ = *shape;
    return true;
  }

  // Reads the content into the tensor's memory.
  bool ReadContent() {
    size_t length = 0;
    if (!ReadLength(in_, &length)) return false;
    if (length == 0) return true;  // same as no content: the values are in other fields
    // Divides, because a product of numbers from another process may overflow.
    if (length % SizeOf(dtype_) != 0 ||
        length / SizeOf(dtype_) != static_cast<uint64_t>(shape_.num_elements())) {
      error_ = InvalidArgument("tensor_content of ", length, " bytes for a tensor ", Name(dtype_),
                               shape_.ToString());
      return in_->Skip(static_cast<int>(length));
    }
    auto made = Tensor::Make(CpuAllocator(), dtype_, shape_);
    if (!made.ok()) {
      error_ = made.status();
      return in_->Skip(static_cast<int>(length));
    }
    tensor_ = *std::move(made);
    return in_->ReadRaw(tensor_.mutable_raw_data(), static_cast<int>(length));
  }

  CodedInputStream* const in_;
  FieldCopies head_;  // copies of the fields so far, without the content that is read in place
  bool content_seen_ = false;
  DType dtype_ = DType::kInvalid;
  Shape shape_;
  Tensor tensor_;
  Status error_;
};

bool ReadNamedTensor(CodedInputStream* in, size_t length, std::string* name,
                     StatusOr<Tensor>* tensor) {
  bool seen = false;
  return ReadMessage(in, length, [&](uint32_t tag) {
    size_t field_length = 0;
    if (tag == kNameTag) {
      return ReadLength(in, &field_length) && in->ReadString(name, static_cast<int>(field_length));
    }
    if (tag == kTensorTag) {
      // Refuses a second tensor, which protobuf would merge with the first.
      if (std::exchange(seen, true)) return false;
      return ReadLength(in, &field_length) && TensorReader(in).Read(field_length, tensor);
    }
    return WireFormatLite::SkipField(in, tag);
  });
}

}  // namespace

void TensorMessageWriter::Add(const google::protobuf::MessageLite& message) {
  if (const size_t bytes = message.ByteSizeLong(); bytes <= kMessageBytesMax) {
    message.AppendToString(&small_);
  } else if (status_.ok()) {
    status_ = ResourceExhausted("the message takes ", bytes, " bytes without its tensors; at most ",
                                kMessageBytesMax, " can be sent");
  }
}

void TensorMessageWriter::AddNamedTensor(int field, string_view name, const Tensor& tensor) {
  const std::string head = Head(tensor);
  const size_t tensor_length = LengthOf(tensor, head);
  const size_t length =
      1 + VarintSize(name.size()) + name.size() + 1 + VarintSize(tensor_length) + tensor_length;
  AppendTagAndLength(static_cast<uint32_t>(field) << 3 | 2, length, &small_);
  AppendTagAndLength(kNameTag, name.size(), &small_);
  small_.append(name.data(), name.size());
  AppendTagAndLength(kTensorTag, tensor_length, &small_);
  small_ += head;
  AddContent(name, tensor);
}

void TensorMessageWriter::AddTensor(int field, string_view name, const Tensor& tensor) {
  const std::string head = Head(tensor);
  AppendTagAndLength(static_cast<uint32_t>(field) << 3 | 2, LengthOf(tensor, head), &small_);
  small_ += head;
  AddContent(name, tensor);
}

std::string TensorMessageWriter::Head(const Tensor& tensor) {
  ++tensors_;
  StatusOr<std::string> head = HeadOf(tensor);
  if (head.ok()) return *std::move(head);
  if (status_.ok()) status_ = head.status();
  return "";
}

void TensorMessageWriter::AddContent(string_view name, const Tensor& tensor) {
  if (!IsLarge(tensor)) return;
  if (tensor.bytes() > std::max(largest_bytes_, kNamedBytesMin)) {
    largest_ = name.empty() ? StrCat("number ", tensors_ - 1) : StrCat("'", name, "'");
    largest_bytes_ = tensor.bytes();
  }
  Flush();
  tensor.buffer()->Ref();
  slices_.emplace_back(
      const_cast<void*>(tensor.raw_data()), tensor.bytes(),
      [](void* buffer) { static_cast<Buffer*>(buffer)->Unref(); }, tensor.buffer());
  bytes_ += tensor.bytes();
}

void TensorMessageWriter::Flush() {
  if (small_.empty()) return;
  bytes_ += small_.size();
  slices_.emplace_back(small_);
  small_.clear();
}

StatusOr<grpc::ByteBuffer> TensorMessageWriter::Take() {
  RETURN_IF_ERROR(status_);
  Flush();
  if (bytes_ > kMessageBytesMax) {
    const std::string largest = largest_bytes_ == 0 ? ""
                                                    : StrCat("; the largest one, ", largest_,
                                                             ", takes ", largest_bytes_, " bytes");
    return ResourceExhausted("the tensors are larger than 2 GiB together", largest);
  }
  if (slices_.empty()) slices_.emplace_back("", 0);
  return grpc::ByteBuffer(slices_.data(), slices_.size());
}

Status ReadTensorMessage(grpc::ByteBuffer* bytes, TensorField field,
                         google::protobuf::MessageLite* rest,
                         std::vector<std::pair<std::string, Tensor>>* tensors) {
  if (bytes->Length() > kMessageBytesMax) return InvalidArgument("a message larger than 2 GiB");
  grpc::ProtoBufferReader reader(bytes);
  CodedInputStream in(&reader);
  in.SetTotalBytesLimit(static_cast<int>(kMessageBytesMax));
  in.PushLimit(static_cast<int>(bytes->Length()));
  const uint32_t tensor_tag = static_cast<uint32_t>(field.number) << 3 | 2;
  FieldCopies others;
  Status bad;
  while (const uint32_t tag = in.ReadTag()) {
    if (tag != tensor_tag) {
      if (!others.Add(&in, tag)) return Malformed();
      continue;
    }
    size_t length = 0;
    std::string name;
    StatusOr<Tensor> tensor = InvalidArgument("there is no tensor");
    if (!ReadLength(&in, &length)) return Malformed();
    if (!(field.named ? ReadNamedTensor(&in, length, &name, &tensor)
                      : TensorReader(&in).Read(length, &tensor))) {
      return Malformed();
    }
    if (tensor.ok()) {
      tensors->emplace_back(std::move(name), *std::move(tensor));
    } else if (bad.ok()) {
      const std::string label = field.named ? StrCat("'", name, "'") : StrCat(tensors->size());
      bad = Annotate(tensor.status(), StrCat(field.what, " ", label));
    }
  }
  if (!in.ConsumedEntireMessage() || !rest->ParseFromString(others.bytes())) return Malformed();
  return bad;
}

}  // namespace penstock
