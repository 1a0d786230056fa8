// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/grpc/exchange_frame.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <cstring>

#include "distributed/calls/status_proto.h"

namespace penstock {
namespace {

// Up to this size, copying bytes costs less than a reference-counted slice of their own and its
// entry in the list of buffers for the socket.
constexpr size_t kCopiedBytesMax = 4096;
constexpr uint32_t kHeaderTag = 1 << 3 | 2;  // field 1, length-delimited
constexpr uint32_t kBodyTag = 2 << 3 | 2;

}  // namespace

bool FrameWriter::Add(const OutgoingTensor& tensor, size_t* sent) {
  const size_t room = kFrameBytes - std::min(kFrameBytes, body_bytes_);
  const size_t count = std::min(room, tensor.bytes() - *sent);
  wire::TensorPart* const part = header_.add_part();
  part->set_step_id(static_cast<uint64_t>(tensor.step_id()));
  NameKey(tensor.key(), part);
  if (*sent == 0) {
    const TensorHeader header = tensor.header();
    part->set_is_dead(header.is_dead);
    part->set_is_proto(header.is_encoded);
    part->set_total_bytes(header.bytes);
    part->set_dtype(static_cast<tensorflow::DataType>(header.dtype));
    for (const int64_t dim : header.dims) part->add_dim(dim);
  }
  part->set_offset(*sent);
  part->set_bytes(count);
  AddBytes(tensor, *sent, count);
  *sent += count;
  return *sent == tensor.bytes();
}

void FrameWriter::NameKey(const HashedKey& key, wire::TensorPart* part) {
  part->set_frame(key.frame());
  part->set_iteration(key.iteration());
  const KeyNumbers::Number number = keys_.NumberOf(key);
  part->set_key(number.value);
  if (number.is_new) part->set_key_text(KeyNumbers::TextOf(key));
}

void FrameWriter::AddBytes(const OutgoingTensor& tensor, size_t from, size_t count) {
  body_bytes_ += count;
  if (count == 0) return;
  const char* const bytes = tensor.data() + from;
  if (count <= kCopiedBytesMax) {
    small_.append(bytes, count);
    return;
  }
  FlushSmall();
  Buffer* const buffer = tensor.body().buffer();  // the slice keeps the tensor's bytes alive
  buffer->Ref();
  body_.emplace_back(
      const_cast<char*>(bytes), count, [](void* kept) { static_cast<Buffer*>(kept)->Unref(); },
      buffer);
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

  // Copies the next `count` bytes to `to`, or skips them if `to` is null. REQUIRES: count
  // <= left().
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

  // Reads the tag and the length of a field, and returns the length. DataLoss if the tag is not
  // `tag` or the length exceeds the message.
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
                         std::vector<ReceivedTensor>* received, std::vector<RefusedStep>* refused) {
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
    const int64_t step_id = static_cast<int64_t>(refusal.step_id());
    if (wanted(step_id)) refused->push_back({step_id, FromProto(refusal.cause())});
  }
  return OkStatus();
}

Status FrameReader::ReadPart(const wire::TensorPart& part, bool wanted, Cursor* body,
                             std::vector<ReceivedTensor>* received,
                             std::vector<RefusedStep>* refused) {
  if (part.bytes() > body->left()) return DataLoss("a tensor is longer than its message");
  ASSIGN_OR_RETURN(HashedKey key,
                   keys_.Find(part.key(), part.key_text(), part.frame(), part.iteration()));
  const int64_t step_id = static_cast<int64_t>(part.step_id());
  if (!wanted) {
    body->Read(part.bytes(), nullptr);
    return OkStatus();
  }
  const auto refuse = [&](const Status& why) {
    refused->push_back({step_id, Annotate(why, StrCat("receiving '", key.key().tensor, "'"))});
  };
  const PartialKey id(step_id, key.hash());
  const auto begun = partials_.find(id);
  if (begun == partials_.end() && part.offset() != 0) {
    // This is the rest of a tensor that was refused or not wanted.
    body->Read(part.bytes(), nullptr);
    return OkStatus();
  }
  StatusOr<IncomingTensor> tensor =
      begun == partials_.end() ? Begin(part, key) : std::move(begun->second);
  if (begun != partials_.end()) partials_.erase(begun);
  if (!tensor.ok()) {
    body->Read(part.bytes(), nullptr);
    refuse(tensor.status());
    return OkStatus();
  }
  if (part.offset() != tensor->filled() || part.bytes() > tensor->missing()) {
    return DataLoss("parts of '", key.key().tensor, "' do not fit together");
  }
  body->Read(part.bytes(), tensor->Next(part.bytes()));
  if (tensor->missing() > 0) {
    partials_.emplace(id, *std::move(tensor));
    return OkStatus();
  }
  const bool is_dead = tensor->is_dead();
  StatusOr<Tensor> value = (*std::move(tensor)).Finish();
  if (value.ok()) {
    received->push_back({step_id, std::move(key), *std::move(value), is_dead});
  } else {
    refuse(value.status());
  }
  return OkStatus();
}

StatusOr<IncomingTensor> FrameReader::Begin(const wire::TensorPart& part, const HashedKey& key) {
  const TensorHeader header = {
      .dtype = part.dtype(),
      .dims = absl::MakeConstSpan(part.dim().data(), static_cast<size_t>(part.dim().size())),
      .is_dead = part.is_dead(),
      .is_encoded = part.is_proto(),
      .bytes = part.total_bytes()};
  return IncomingTensor::Begin(static_cast<int64_t>(part.step_id()), key, header, landing_);
}

}  // namespace penstock
