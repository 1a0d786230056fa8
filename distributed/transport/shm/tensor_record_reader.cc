// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/shm/tensor_record_reader.h"

#include <cstring>
#include <string>
#include <utility>

namespace penstock {
namespace {

constexpr size_t kRankMax = 254;  // as shapes have it

}  // namespace

// A tensor's record but for the bytes of Place::kInline, which are the next in the ring.
struct TensorRecordReader::Parsed {
  TensorFields fields;
  std::vector<int64_t> dims;
  HashedKey key;

  TensorHeader header() const {
    return {.dtype = fields.dtype,
            .dims = dims,
            .is_dead = fields.is_dead != 0,
            .is_encoded = fields.is_encoded != 0,
            .bytes = fields.total_bytes};
  }
};

StatusOr<bool> TensorRecordReader::Read(absl::FunctionRef<bool(int64_t)> wanted,
                                        std::vector<ReceivedTensor>* received,
                                        std::vector<RefusedStep>* refused) {
  ASSIGN_OR_RETURN(const size_t readable, ring_.Readable());
  if (readable == 0) return false;
  RecordHead head;
  if (readable < sizeof(head)) return DataLoss("a shared ring ends within a record");
  ring_.Read(&head, sizeof(head));
  if (head.bytes > readable - sizeof(head)) {
    return DataLoss("a record of ", head.bytes, " bytes is longer than its shared ring");
  }
  Status status = DataLoss("a shared ring has a record of unknown kind ", head.kind);
  if (head.kind == RecordKind::kTensor) status = ReadTensor(head.bytes, wanted, received, refused);
  if (head.kind == RecordKind::kPiece) status = ReadPiece(head.bytes, wanted, received, refused);
  if (head.kind == RecordKind::kRefusal) status = ReadRefusal(head.bytes, wanted, refused);
  RETURN_IF_ERROR(status);
  ring_.Release();
  return true;
}

StatusOr<TensorRecordReader::Parsed> TensorRecordReader::ParseTensor(size_t bytes) {
  TensorFields fields;
  if (bytes < sizeof(fields)) return DataLoss("a tensor's record of ", bytes, " bytes");
  ring_.Read(&fields, sizeof(fields));
  const size_t body = fields.place == Place::kInline ? fields.total_bytes : 0;
  if (fields.rank > kRankMax || fields.key_bytes > kRecordTextMax || body > kInlineBytesMax ||
      bytes != sizeof(fields) + fields.rank * sizeof(RecordDim) + fields.key_bytes + body) {
    return DataLoss("the lengths in a tensor's record of ", bytes, " bytes do not fit together");
  }
  if (fields.place > Place::kPieces) {
    return DataLoss("a tensor's record says that its bytes are at place ", fields.place);
  }
  if (fields.place != Place::kInline && fields.total_bytes <= kInlineBytesMax) {
    return DataLoss("a tensor of ", fields.total_bytes, " bytes is not in its record");
  }
  std::vector<int64_t> dims(fields.rank);
  ring_.Read(dims.data(), fields.rank * sizeof(RecordDim));
  std::string text(fields.key_bytes, '\0');
  ring_.Read(text.data(), text.size());
  ASSIGN_OR_RETURN(HashedKey key, keys_.Find(fields.key, text, fields.frame, fields.iteration));
  return Parsed{fields, std::move(dims), std::move(key)};
}

Status TensorRecordReader::ReadTensor(size_t bytes, absl::FunctionRef<bool(int64_t)> wanted,
                                      std::vector<ReceivedTensor>* received,
                                      std::vector<RefusedStep>* refused) {
  ASSIGN_OR_RETURN(Parsed parsed, ParseTensor(bytes));
  const TensorFields& fields = parsed.fields;
  if (fields.place == Place::kPieces) {
    partial_.reset();  // the producer has dropped what it had begun
    pieces_left_ = fields.total_bytes;
  }
  if (fields.place == Place::kArena) {
    RETURN_IF_ERROR(memory_->Find(fields.offset, fields.total_bytes).status());
  }
  if (wanted(fields.step_id)) return Receive(std::move(parsed), received, refused);
  if (fields.place == Place::kInline) ring_.Read(nullptr, fields.total_bytes);
  if (fields.place == Place::kArena) memory_->Free(fields.offset);
  return OkStatus();
}

Status TensorRecordReader::Receive(Parsed parsed, std::vector<ReceivedTensor>* received,
                                   std::vector<RefusedStep>* refused) {
  const TensorFields& fields = parsed.fields;
  const size_t bytes = fields.total_bytes;
  const bool in_arena = fields.place == Place::kArena;
  bool in_place = false;
  StatusOr<IncomingTensor> tensor =
      in_arena ? memory_->Begin(fields.step_id, parsed.key, parsed.header(), fields.offset,
                                landing_, &in_place)
               : IncomingTensor::Begin(fields.step_id, parsed.key, parsed.header(), landing_);
  if (tensor.ok() && in_arena && !in_place) {
    ASSIGN_OR_RETURN(const char* const from, memory_->Find(fields.offset, bytes));
    std::memcpy(tensor->Next(bytes), from, bytes);
  }
  if (in_arena && !in_place) memory_->Free(fields.offset);
  if (fields.place == Place::kInline)
    ring_.Read(tensor.ok() ? tensor->Next(bytes) : nullptr, bytes);
  if (!tensor.ok()) {
    refused->push_back(
        {fields.step_id,
         Annotate(tensor.status(), StrCat("receiving '", parsed.key.key().tensor, "'"))});
    return OkStatus();
  }
  Partial begun{fields.step_id, std::move(parsed.key), *std::move(tensor)};
  if (fields.place == Place::kPieces) {
    partial_.emplace(std::move(begun));
  } else {
    Finish(std::move(begun), received, refused);
  }
  return OkStatus();
}

void TensorRecordReader::Finish(Partial partial, std::vector<ReceivedTensor>* received,
                                std::vector<RefusedStep>* refused) {
  const bool is_dead = partial.tensor.is_dead();
  StatusOr<Tensor> value = std::move(partial.tensor).Finish();
  if (value.ok()) {
    received->push_back({partial.step_id, std::move(partial.key), *std::move(value), is_dead});
  } else {
    refused->push_back(
        {partial.step_id,
         Annotate(value.status(), StrCat("receiving '", partial.key.key().tensor, "'"))});
  }
}

void TensorRecordReader::DropUnwanted(absl::FunctionRef<bool(int64_t)> wanted) {
  if (partial_.has_value() && !wanted(partial_->step_id)) partial_.reset();
}

Status TensorRecordReader::ReadPiece(size_t bytes, absl::FunctionRef<bool(int64_t)> wanted,
                                     std::vector<ReceivedTensor>* received,
                                     std::vector<RefusedStep>* refused) {
  if (bytes == 0 || bytes > pieces_left_) {
    return DataLoss("a piece of ", bytes, " bytes of a tensor that lacks ", pieces_left_);
  }
  pieces_left_ -= bytes;
  DropUnwanted(wanted);
  ring_.Read(partial_.has_value() ? partial_->tensor.Next(bytes) : nullptr, bytes);
  if (pieces_left_ > 0 || !partial_.has_value()) return OkStatus();
  Finish(*std::exchange(partial_, std::nullopt), received, refused);
  return OkStatus();
}

Status TensorRecordReader::ReadRefusal(size_t bytes, absl::FunctionRef<bool(int64_t)> wanted,
                                       std::vector<RefusedStep>* refused) {
  RefusalFields fields;
  if (bytes < sizeof(fields) || bytes > sizeof(fields) + kRecordTextMax) {
    return DataLoss("a refusal's record of ", bytes, " bytes");
  }
  ring_.Read(&fields, sizeof(fields));
  std::string message(bytes - sizeof(fields), '\0');
  ring_.Read(message.data(), message.size());
  if (!wanted(fields.step_id)) return OkStatus();
  const bool known = fields.code > 0 && fields.code <= 16;  // the canonical codes
  const StatusCode code = known ? static_cast<StatusCode>(fields.code) : StatusCode::kUnknown;
  refused->push_back({fields.step_id, Status(code, message)});
  return OkStatus();
}

}  // namespace penstock
