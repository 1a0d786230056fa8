// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/records/tensor_record_writer.h"

#include <algorithm>
#include <string>

namespace penstock {
namespace {

constexpr size_t kMaxChunkBytes = size_t{128} << 10;

size_t HeaderBytes(const OutgoingTensor& tensor) {
  // Leaves room for the key's text: it is not known yet whether the key already has a number.
  const RendezvousKey& key = tensor.key().key();
  const size_t text = key.src_device.size() + key.dst_device.size() + key.tensor.size() + 64;
  return sizeof(RecordHead) + sizeof(TensorFields) + tensor.header().dims.size() * sizeof(int64_t) +
         text;
}

}  // namespace

Status TensorRecordWriter::CheckHeader(const OutgoingTensor& tensor) {
  if (HeaderBytes(tensor) <= kRecordTextMax) return OkStatus();
  return ResourceExhausted("the name of an edge has ", tensor.key().key().tensor.size(),
                           " bytes: at most ", kRecordTextMax, " with its devices can be sent");
}

StatusOr<bool> TensorRecordWriter::Write(const OutgoingTensor& tensor, Place place,
                                         const ElsewhereBytes& where) {
  const size_t body = place == Place::kInline ? tensor.bytes() : 0;
  ASSIGN_OR_RETURN(const size_t room, ring_.Room());
  if (room < HeaderBytes(tensor) + body) return false;
  const TensorHeader header = tensor.header();
  const KeyNumbers::Number number = keys_.NumberOf(tensor.key());
  const std::string text = number.is_new ? KeyNumbers::TextOf(tensor.key()) : "";
  const TensorFields fields = {.step_id = tensor.step_id(),
                               .frame = tensor.key().frame(),
                               .iteration = tensor.key().iteration(),
                               .total_bytes = header.bytes,
                               .address = where.address,
                               .offer = where.offer,
                               .address_key = where.address_key,
                               .key = number.value,
                               .key_bytes = static_cast<uint32_t>(text.size()),
                               .dtype = header.dtype,
                               .rank = static_cast<uint32_t>(header.dims.size()),
                               .is_dead = header.is_dead,
                               .is_encoded = header.is_encoded,
                               .place = place,
                               .unused = 0};
  const size_t dims = header.dims.size() * sizeof(int64_t);
  const RecordHead head = {RecordKind::kTensor,
                           static_cast<uint32_t>(sizeof(fields) + dims + text.size() + body)};
  ring_.Append(&head, sizeof(head));
  ring_.Append(&fields, sizeof(fields));
  ring_.Append(header.dims.data(), dims);
  ring_.Append(text.data(), text.size());
  if (body > 0) ring_.Append(tensor.data(), body);
  ring_.Publish();
  return true;
}

Status TensorRecordWriter::WritePieces(const OutgoingTensor& tensor, size_t* sent) {
  while (*sent < tensor.bytes()) {
    ASSIGN_OR_RETURN(const size_t room, ring_.Room());
    const size_t count = std::min(kMaxChunkBytes, tensor.bytes() - *sent);
    if (room < sizeof(RecordHead) + count) return OkStatus();
    const RecordHead head = {RecordKind::kPiece, static_cast<uint32_t>(count)};
    ring_.Append(&head, sizeof(head));
    ring_.Append(tensor.data() + *sent, count);
    ring_.Publish();
    *sent += count;
  }
  return OkStatus();
}

StatusOr<bool> TensorRecordWriter::WriteRefusal(int64_t step_id, const Status& why) {
  const string_view message = why.message().substr(0, kRecordTextMax);
  const RefusalFields fields = {step_id, static_cast<int64_t>(why.code())};
  ASSIGN_OR_RETURN(const size_t room, ring_.Room());
  if (room < sizeof(RecordHead) + sizeof(fields) + message.size()) return false;
  const RecordHead head = {RecordKind::kRefusal,
                           static_cast<uint32_t>(sizeof(fields) + message.size())};
  ring_.Append(&head, sizeof(head));
  ring_.Append(&fields, sizeof(fields));
  ring_.Append(message.data(), message.size());
  ring_.Publish();
  return true;
}

}  // namespace penstock
