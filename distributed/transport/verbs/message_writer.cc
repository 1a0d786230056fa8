// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/message_writer.h"

#include <string>

namespace penstock {
namespace {

size_t HeaderBytes(const OutgoingTensor& tensor) {
  // Whether the key has a number already is not known yet: leave room for its text.
  const RendezvousKey& key = tensor.key().key();
  const size_t text = key.src_device.size() + key.dst_device.size() + key.tensor.size() + 64;
  return sizeof(VerbsMessageHead) + sizeof(VerbsTensorFields) +
         tensor.header().dims.size() * sizeof(int64_t) + text;
}

}  // namespace

Status VerbsMessageWriter::CheckHeader(const OutgoingTensor& tensor) {
  if (HeaderBytes(tensor) <= kVerbsTextMax) return OkStatus();
  return ResourceExhausted("the name of an edge has ", tensor.key().key().tensor.size(),
                           " bytes: at most ", kVerbsTextMax, " with its devices can be sent");
}

StatusOr<bool> VerbsMessageWriter::Write(const OutgoingTensor& tensor, const OfferedBytes* where) {
  const size_t body = where == nullptr ? tensor.bytes() : 0;
  ASSIGN_OR_RETURN(const size_t room, ring_.Room());
  if (room < HeaderBytes(tensor) + body) return false;
  const TensorHeader header = tensor.header();
  const KeyNumbers::Number number = keys_.NumberOf(tensor.key());
  const std::string text = number.is_new ? KeyNumbers::TextOf(tensor.key()) : "";
  const OfferedBytes offered = where == nullptr ? OfferedBytes{} : *where;
  const VerbsTensorFields fields = {.step_id = tensor.step_id(),
                                    .frame = tensor.key().frame(),
                                    .iteration = tensor.key().iteration(),
                                    .bytes = header.bytes,
                                    .address = offered.address,
                                    .offer = offered.offer,
                                    .address_key = offered.address_key,
                                    .key = number.value,
                                    .key_bytes = static_cast<uint32_t>(text.size()),
                                    .dtype = header.dtype,
                                    .rank = static_cast<uint32_t>(header.dims.size()),
                                    .is_dead = header.is_dead,
                                    .is_encoded = header.is_encoded};
  const size_t dims = header.dims.size() * sizeof(int64_t);
  const VerbsMessageHead head = {
      where == nullptr ? VerbsMessageHead::kTensor : VerbsMessageHead::kOffer,
      static_cast<uint32_t>(sizeof(fields) + dims + text.size() + body)};
  ring_.Append(&head, sizeof(head));
  ring_.Append(&fields, sizeof(fields));
  ring_.Append(header.dims.data(), dims);
  ring_.Append(text.data(), text.size());
  if (body > 0) ring_.Append(tensor.data(), body);
  ring_.Publish();
  return true;
}

StatusOr<bool> VerbsMessageWriter::WriteRefusal(int64_t step_id, const Status& why) {
  const string_view text = why.message().substr(0, kVerbsTextMax);
  const VerbsRefusalFields fields = {step_id, static_cast<int64_t>(why.code())};
  const VerbsMessageHead head = {VerbsMessageHead::kRefusal,
                                 static_cast<uint32_t>(sizeof(fields) + text.size())};
  ASSIGN_OR_RETURN(const size_t room, ring_.Room());
  if (room < sizeof(head) + head.bytes) return false;
  ring_.Append(&head, sizeof(head));
  ring_.Append(&fields, sizeof(fields));
  ring_.Append(text.data(), text.size());
  ring_.Publish();
  return true;
}

}  // namespace penstock
