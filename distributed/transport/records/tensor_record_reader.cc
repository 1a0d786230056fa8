// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/records/tensor_record_reader.h"

#include <string>
#include <utility>

namespace penstock {
namespace {

constexpr size_t kRankMax = 254;  // the maximum rank, the same as for shapes

}  // namespace

StatusOr<bool> TensorRecordReader::Read(Wanted wanted, Received* received) {
  ASSIGN_OR_RETURN(const size_t readable, ring_.Readable());
  if (readable == 0) return false;
  RecordHead head;
  if (readable < sizeof(head)) return DataLoss("a ring ends within a record");
  ring_.Read(&head, sizeof(head));
  if (head.bytes > readable - sizeof(head)) {
    return DataLoss("a record of ", head.bytes, " bytes is longer than what was written");
  }
  switch (head.kind) {
    case RecordKind::kTensor:
      RETURN_IF_ERROR(ReadTensor(head.bytes, wanted, received));
      break;
    case RecordKind::kPiece:
      RETURN_IF_ERROR(ReadPiece(head.bytes, wanted, received));
      break;
    case RecordKind::kRefusal:
      RETURN_IF_ERROR(ReadRefusal(head.bytes, wanted, received));
      break;
    default:
      return DataLoss("a ring has a record of unknown kind ", head.kind);
  }
  ring_.Release();
  return true;
}

StatusOr<TensorRecord> TensorRecordReader::ParseTensor(size_t bytes) {
  TensorFields fields;
  if (bytes < sizeof(fields)) return DataLoss("a tensor's record of ", bytes, " bytes");
  ring_.Read(&fields, sizeof(fields));
  const size_t body = fields.place == Place::kInline ? fields.total_bytes : 0;
  if (fields.rank > kRankMax || fields.key_bytes > kRecordTextMax || body > kInlineBytesMax ||
      bytes != sizeof(fields) + fields.rank * sizeof(int64_t) + fields.key_bytes + body) {
    return DataLoss("the lengths in a tensor's record of ", bytes, " bytes do not fit together");
  }
  if (fields.place > Place::kPieces) {
    return DataLoss("a tensor's record says that its bytes are at place ", fields.place);
  }
  if (fields.place != Place::kInline && fields.total_bytes <= kInlineBytesMax) {
    return DataLoss("a tensor of ", fields.total_bytes, " bytes is not in its record");
  }
  std::vector<int64_t> dims(fields.rank);
  ring_.Read(dims.data(), fields.rank * sizeof(int64_t));
  std::string text(fields.key_bytes, '\0');
  ring_.Read(text.data(), text.size());
  ASSIGN_OR_RETURN(HashedKey key, keys_.Find(fields.key, text, fields.frame, fields.iteration));
  return TensorRecord{fields, std::move(dims), std::move(key)};
}

Status TensorRecordReader::ReadTensor(size_t bytes, Wanted wanted, Received* received) {
  ASSIGN_OR_RETURN(TensorRecord record, ParseTensor(bytes));
  const TensorFields& fields = record.fields;
  const bool is_wanted = wanted(fields.step_id);
  if (fields.place == Place::kElsewhere) {
    return ReadElsewhere(std::move(record), is_wanted, received);
  }
  if (fields.place == Place::kPieces) {
    partial_.reset();  // the producer has dropped the previous tensor
    pieces_left_ = fields.total_bytes;
  }
  const size_t body = fields.place == Place::kInline ? fields.total_bytes : 0;
  if (!is_wanted) {
    ring_.Read(nullptr, body);
    return OkStatus();
  }
  StatusOr<IncomingTensor> tensor =
      IncomingTensor::Begin(fields.step_id, record.key, record.header(), landing_);
  if (fields.place == Place::kPieces && tensor.ok()) {
    partial_.emplace(Partial{std::move(record), *std::move(tensor)});
    return OkStatus();
  }
  ring_.Read(tensor.ok() ? tensor->Next(body) : nullptr, body);
  Finish(record, std::move(tensor), received);
  return OkStatus();
}

void TensorRecordReader::Finish(const TensorRecord& record, StatusOr<IncomingTensor> tensor,
                                Received* received) {
  const bool is_dead = tensor.ok() && tensor->is_dead();
  StatusOr<Tensor> value =
      tensor.ok() ? (*std::move(tensor)).Finish() : StatusOr<Tensor>(tensor.status());
  const int64_t step_id = record.fields.step_id;
  if (value.ok()) {
    received->tensors.push_back({step_id, record.key, *std::move(value), is_dead});
  } else {
    received->refused.push_back(
        {step_id, Annotate(value.status(), StrCat("receiving '", record.key.key().tensor, "'"))});
  }
}

void TensorRecordReader::DropUnwanted(Wanted wanted) {
  if (partial_.has_value() && !wanted(partial_->record.fields.step_id)) partial_.reset();
}

Status TensorRecordReader::ReadPiece(size_t bytes, Wanted wanted, Received* received) {
  if (bytes == 0 || bytes > pieces_left_) {
    return DataLoss("a piece of ", bytes, " bytes of a tensor that lacks ", pieces_left_);
  }
  pieces_left_ -= bytes;
  DropUnwanted(wanted);
  ring_.Read(partial_.has_value() ? partial_->tensor.Next(bytes) : nullptr, bytes);
  if (pieces_left_ > 0 || !partial_.has_value()) return OkStatus();
  Partial whole = *std::exchange(partial_, std::nullopt);
  Finish(whole.record, std::move(whole.tensor), received);
  return OkStatus();
}

Status TensorRecordReader::ReadRefusal(size_t bytes, Wanted wanted, Received* received) {
  RefusalFields fields;
  if (bytes < sizeof(fields) || bytes > sizeof(fields) + kRecordTextMax) {
    return DataLoss("a refusal's record of ", bytes, " bytes");
  }
  ring_.Read(&fields, sizeof(fields));
  std::string message(bytes - sizeof(fields), '\0');
  ring_.Read(message.data(), message.size());
  if (!wanted(fields.step_id)) return OkStatus();
  const bool known = fields.code > 0 && fields.code <= 16;  // gRPC's canonical codes
  const StatusCode code = known ? static_cast<StatusCode>(fields.code) : StatusCode::kUnknown;
  received->refused.push_back({fields.step_id, Status(code, message)});
  return OkStatus();
}

}  // namespace penstock
