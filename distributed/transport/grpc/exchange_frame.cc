// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/grpc/exchange_frame.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <cstring>

#include "core/wire/tensor_proto.h"
#include "distributed/rpc/calls/status_proto.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {
namespace {

// Below this a copy costs less than a reference-counted slice and its entry in the socket's list.
constexpr size_t kCopiedBytesMax = 4096;
// A stream names at most so many keys by number.
constexpr size_t kNumberedKeysMax = size_t{1} << 20;
// Protobuf's own limit.
constexpr uint64_t kProtoBytesMax = (uint64_t{1} << 31) - 1;
constexpr uint32_t kHeaderTag = 1 << 3 | 2;  // field 1, length-delimited
constexpr uint32_t kBodyTag = 2 << 3 | 2;

}  // namespace

OutgoingTensor::OutgoingTensor(int64_t step_id, HashedKey key, Tensor value, bool is_dead)
    : step_id_(step_id), key_(std::move(key)), value_(std::move(value)), is_dead_(is_dead) {
  if (!value_.valid()) return;  // dead
  if (IsPlain(value_.dtype())) {
    total_ = value_.bytes();
    return;
  }
  tensorflow::TensorProto proto;
  status_ = TensorToProto(value_, &proto);
  total_ = proto.ByteSizeLong();
  if (status_.ok() && total_ > kProtoBytesMax) {
    status_ = ResourceExhausted("a tensor ", Name(value_.dtype()), value_.shape().ToString(),
                                " of ", total_, " bytes: at most ", kProtoBytesMax, " can be sent");
  }
  if (!status_.ok()) return;
  proto_ = std::make_shared<const std::string>(proto.SerializeAsString());
}

bool FrameWriter::Add(OutgoingTensor* tensor) {
  const size_t room = kFrameBytes - std::min(kFrameBytes, body_bytes_);
  const size_t count = std::min(room, tensor->total_ - tensor->sent_);
  wire::TensorPart* const part = header_.add_part();
  part->set_step_id(static_cast<uint64_t>(tensor->step_id_));
  NameKey(tensor->key_, part);
  if (tensor->sent_ == 0) {
    part->set_is_dead(tensor->is_dead_);
    part->set_is_proto(tensor->proto_ != nullptr);
    part->set_total_bytes(tensor->total_);
    if (tensor->value_.valid()) {
      part->set_dtype(static_cast<tensorflow::DataType>(tensor->value_.dtype()));
      for (const int64_t dim : tensor->value_.shape().dims()) part->add_dim(dim);
    }
  }
  part->set_offset(tensor->sent_);
  part->set_bytes(count);
  AddBytes(*tensor, count);
  tensor->sent_ += count;
  return tensor->sent_ == tensor->total_;
}

void FrameWriter::NameKey(const HashedKey& key, wire::TensorPart* part) {
  part->set_frame(key.frame());
  part->set_iteration(key.iteration());
  const HashedKey base = key.In(0, 0);
  const auto known = keys_.find(base);
  if (known != keys_.end()) return part->set_key(known->second);
  part->set_key_text(base.key().ToString());
  if (keys_.size() >= kNumberedKeysMax) return;
  part->set_key(static_cast<uint32_t>(keys_.size() + 1));
  keys_.emplace(base, part->key());
}

void FrameWriter::AddBytes(const OutgoingTensor& tensor, size_t count) {
  body_bytes_ += count;
  if (count == 0) return;
  const char* const from =
      (tensor.proto_ != nullptr ? tensor.proto_->data()
                                : static_cast<const char*>(tensor.value_.raw_data())) +
      tensor.sent_;
  if (count <= kCopiedBytesMax) {
    small_.append(from, count);
    return;
  }
  FlushSmall();
  // The slice keeps what it points into.
  void* const bytes = const_cast<char*>(from);
  if (tensor.proto_ != nullptr) {
    using Kept = std::shared_ptr<const std::string>;
    body_.emplace_back(
        bytes, count, [](void* kept) { delete static_cast<Kept*>(kept); }, new Kept(tensor.proto_));
  } else {
    tensor.value_.buffer()->Ref();
    body_.emplace_back(
        bytes, count, [](void* kept) { static_cast<Buffer*>(kept)->Unref(); },
        tensor.value_.buffer());
  }
}

void FrameWriter::FlushSmall() {
  if (small_.empty()) return;
  body_.emplace_back(small_);
  small_.clear();
}

void FrameWriter::Refuse(int64_t step_id, const Status& why) {
  wire::Refusal* const refusal = header_.add_refusal();
  refusal->set_step_id(static_cast<uint64_t>(step_id));
  ToProto(why, refusal->mutable_cause());
}

grpc::ByteBuffer FrameWriter::Take() {
  using google::protobuf::io::CodedOutputStream;
  FlushSmall();
  const size_t header_bytes = header_.ByteSizeLong();
  std::string prefix;
  {
    google::protobuf::io::StringOutputStream stream(&prefix);
    CodedOutputStream out(&stream);
    out.WriteTag(kHeaderTag);
    out.WriteVarint32(static_cast<uint32_t>(header_bytes));
    header_.SerializeWithCachedSizes(&out);
    out.WriteTag(kBodyTag);
    out.WriteVarint32(static_cast<uint32_t>(body_bytes_));
  }
  std::vector<grpc::Slice> slices;
  slices.reserve(body_.size() + 1);
  slices.emplace_back(prefix);
  std::move(body_.begin(), body_.end(), std::back_inserter(slices));
  header_.Clear();
  body_.clear();
  body_bytes_ = 0;
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// Reads from the slices of a message.
class FrameReader::Cursor {
 public:
  explicit Cursor(const std::vector<grpc::Slice>& slices) : slices_(slices) {
    for (const grpc::Slice& slice : slices) left_ += slice.size();
  }
  size_t left() const { return left_; }

  // Copies the next `count` bytes; with a null `to` skips them. REQUIRES count <= left().
  void Read(size_t count, char* to) {
    left_ -= count;
    while (count > 0) {
      const grpc::Slice& slice = slices_[index_];
      const size_t here = std::min(count, slice.size() - offset_);
      if (to != nullptr) {
        std::memcpy(to, slice.begin() + offset_, here);
        to += here;
      }
      count -= here;
      offset_ += here;
      if (offset_ == slice.size()) ++index_, offset_ = 0;
    }
  }

  // A field of `tag` that fits into the message; its length.
  StatusOr<size_t> ReadFieldLength(uint32_t tag) {
    uint64_t found = 0, length = 0;
    if (!ReadVarint(&found) || found != tag || !ReadVarint(&length) || length > left_) {
      return DataLoss("malformed message in the exchange of tensors");
    }
    return static_cast<size_t>(length);
  }

 private:
  bool ReadVarint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      if (left_ == 0) return false;
      char byte = 0;
      Read(1, &byte);
      *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }

  const std::vector<grpc::Slice>& slices_;
  size_t index_ = 0;
  size_t offset_ = 0;
  size_t left_ = 0;
};

Status FrameReader::Read(const grpc::ByteBuffer& frame, absl::FunctionRef<bool(int64_t)> wanted,
                         std::vector<Received>* received, std::vector<Refused>* refused) {
  std::vector<grpc::Slice> slices;
  if (!frame.Dump(&slices).ok()) return DataLoss("unreadable message in the exchange of tensors");
  Cursor cursor(slices);
  ASSIGN_OR_RETURN(const size_t header_bytes, cursor.ReadFieldLength(kHeaderTag));
  std::string bytes(header_bytes, '\0');
  cursor.Read(header_bytes, bytes.data());
  wire::TensorBatchHeader header;
  if (!header.ParseFromString(bytes)) {
    return DataLoss("malformed header in the exchange of tensors");
  }
  ASSIGN_OR_RETURN(const size_t body_bytes, cursor.ReadFieldLength(kBodyTag));
  if (body_bytes != cursor.left()) return DataLoss("wrong length in the exchange of tensors");

  absl::erase_if(partials_, [&](const auto& partial) { return !wanted(partial.first.first); });
  for (const wire::TensorPart& part : header.part()) {
    const bool keep = wanted(static_cast<int64_t>(part.step_id()));
    RETURN_IF_ERROR(ReadPart(part, keep, &cursor, received, refused));
  }
  for (const wire::Refusal& refusal : header.refusal()) {
    refused->push_back({static_cast<int64_t>(refusal.step_id()), FromProto(refusal.cause())});
  }
  return OkStatus();
}

StatusOr<HashedKey> FrameReader::KeyOf(const wire::TensorPart& part) {
  const size_t number = part.key();
  if (!part.key_text().empty()) {
    ASSIGN_OR_RETURN(RendezvousKey parsed, RendezvousKey::Parse(part.key_text()));
    const HashedKey key(std::move(parsed));
    if (number != 0) {
      if (number != keys_.size() + 1 || number > kNumberedKeysMax) {
        return DataLoss("key ", number, " is out of order");
      }
      keys_.push_back(key);
    }
    return key.In(part.frame(), part.iteration());
  }
  if (number == 0 || number > keys_.size()) return DataLoss("key ", number, " has no name");
  return keys_[number - 1].In(part.frame(), part.iteration());
}

Status FrameReader::ReadPart(const wire::TensorPart& part, bool wanted, Cursor* body,
                             std::vector<Received>* received, std::vector<Refused>* refused) {
  if (part.bytes() > body->left()) return DataLoss("a tensor is longer than its message");
  ASSIGN_OR_RETURN(HashedKey key, KeyOf(part));
  const int64_t step_id = static_cast<int64_t>(part.step_id());
  if (!wanted) {
    body->Read(part.bytes(), nullptr);
    return OkStatus();
  }
  const auto refuse = [&](const Status& why) {
    refused->push_back({step_id, Annotate(why, StrCat("receiving '", key.key().tensor, "'"))});
  };
  const PartialKey id(step_id, key.hash());
  Partial partial;
  const auto begun = partials_.find(id);
  if (begun != partials_.end()) {
    partial = std::move(begun->second);
    partials_.erase(begun);
  } else {
    // The rest of a tensor may come of which the beginning was refused, or not wanted.
    StatusOr<Partial> first = part.offset() == 0 ? Begin(part) : Cancelled("not wanted");
    if (!first.ok()) {
      body->Read(part.bytes(), nullptr);
      if (part.offset() == 0) refuse(first.status());
      return OkStatus();
    }
    partial = *std::move(first);
  }
  if (part.offset() != partial.filled || part.bytes() > partial.total - partial.filled) {
    return DataLoss("parts of '", key.key().tensor, "' do not fit together");
  }
  // Grows with what comes, not with what was promised.
  if (partial.is_proto) partial.proto.resize(partial.filled + part.bytes());
  char* const to = partial.is_proto ? partial.proto.data()
                                    : static_cast<char*>(partial.value.mutable_raw_data());
  body->Read(part.bytes(), part.bytes() == 0 ? nullptr : to + partial.filled);
  partial.filled += part.bytes();
  if (partial.filled < partial.total) {
    partials_.emplace(id, std::move(partial));
    return OkStatus();
  }
  const bool is_dead = partial.is_dead;
  StatusOr<Tensor> value = Finish(std::move(partial));
  if (value.ok()) {
    received->push_back({step_id, std::move(key), *std::move(value), is_dead});
  } else {
    refuse(value.status());
  }
  return OkStatus();
}

StatusOr<FrameReader::Partial> FrameReader::Begin(const wire::TensorPart& part) {
  Partial partial{
      .is_proto = part.is_proto(), .is_dead = part.is_dead(), .total = part.total_bytes()};
  if (partial.is_dead && part.dtype() == 0) {
    if (partial.total == 0 && part.bytes() == 0) return partial;
    return DataLoss("a dead value of ", partial.total, " bytes");
  }
  if (partial.is_proto) {
    if (partial.total <= kProtoBytesMax) return partial;
    return ResourceExhausted("a tensor of strings, handles or variants of ", partial.total,
                             " bytes");
  }
  ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(part.dtype()));
  ASSIGN_OR_RETURN(const Shape shape,
                   Shape::Make(absl::MakeConstSpan(part.dim().data(), part.dim().size())));
  // Division, because the product of foreign numbers may overflow.
  if (!IsPlain(dtype) || partial.total % SizeOf(dtype) != 0 ||
      static_cast<uint64_t>(shape.num_elements()) != partial.total / SizeOf(dtype)) {
    return DataLoss("a tensor ", Name(dtype), shape.ToString(), " of ", partial.total, " bytes");
  }
  ASSIGN_OR_RETURN(partial.value, Tensor::Make(CpuAllocator(), dtype, shape));
  return partial;
}

StatusOr<Tensor> FrameReader::Finish(Partial partial) {
  if (!partial.is_proto) return std::move(partial.value);
  tensorflow::TensorProto proto;
  if (!proto.ParseFromString(partial.proto)) return DataLoss("a malformed tensor");
  return TensorFromProto(proto);
}

}  // namespace penstock
