// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/message_reader.h"

#include <utility>

namespace penstock {

StatusOr<bool> VerbsMessageReader::Read(absl::FunctionRef<bool(int64_t)> wanted,
                                        Messages* messages) {
  ASSIGN_OR_RETURN(const size_t readable, ring_.Readable());
  if (readable == 0) return false;
  VerbsMessageHead head;
  if (readable < sizeof(head)) return DataLoss("a ring ends within a message");
  ring_.Read(&head, sizeof(head));
  if (head.bytes > readable - sizeof(head)) {
    return DataLoss("a message of ", head.bytes, " bytes is longer than what was written");
  }
  Status status = DataLoss("a message of unknown kind ", head.kind);
  if (head.kind == VerbsMessageHead::kTensor) status = ReadTensor(head.bytes, wanted, messages);
  if (head.kind == VerbsMessageHead::kOffer) status = ReadOffer(head.bytes, messages);
  if (head.kind == VerbsMessageHead::kRefusal) status = ReadRefusal(head.bytes, wanted, messages);
  RETURN_IF_ERROR(status);
  ring_.Release();
  return true;
}

StatusOr<TensorOffer> VerbsMessageReader::ParseTensor(size_t bytes, bool has_body) {
  VerbsTensorFields fields;
  if (bytes < sizeof(fields)) return DataLoss("a tensor's message of ", bytes, " bytes");
  ring_.Read(&fields, sizeof(fields));
  const uint64_t body = has_body ? fields.bytes : 0;
  if (fields.rank > kVerbsRankMax || fields.key_bytes > kVerbsTextMax ||
      body > kVerbsInlineBytesMax ||
      bytes != sizeof(fields) + fields.rank * sizeof(int64_t) + fields.key_bytes + body) {
    return DataLoss("the lengths in a tensor's message of ", bytes, " bytes do not fit together");
  }
  std::vector<int64_t> dims(fields.rank);
  ring_.Read(dims.data(), fields.rank * sizeof(int64_t));
  std::string text(fields.key_bytes, '\0');
  ring_.Read(text.data(), text.size());
  ASSIGN_OR_RETURN(HashedKey key, keys_.Find(fields.key, text, fields.frame, fields.iteration));
  return TensorOffer{fields, std::move(dims), std::move(key)};
}

Status VerbsMessageReader::ReadTensor(size_t bytes, absl::FunctionRef<bool(int64_t)> wanted,
                                      Messages* messages) {
  ASSIGN_OR_RETURN(TensorOffer parsed, ParseTensor(bytes, /*has_body=*/true));
  const size_t body = parsed.fields.bytes;
  const int64_t step_id = parsed.fields.step_id;
  if (!wanted(step_id)) {
    ring_.Read(nullptr, body);
    return OkStatus();
  }
  StatusOr<IncomingTensor> tensor =
      IncomingTensor::Begin(step_id, parsed.key, parsed.header(), landing_);
  ring_.Read(tensor.ok() ? tensor->Next(body) : nullptr, body);
  StatusOr<Tensor> value =
      tensor.ok() ? (*std::move(tensor)).Finish() : StatusOr<Tensor>(tensor.status());
  if (value.ok()) {
    messages->tensors.push_back(
        {step_id, std::move(parsed.key), *std::move(value), parsed.fields.is_dead != 0});
  } else {
    messages->refused.push_back(
        {step_id, Annotate(value.status(), StrCat("receiving '", parsed.key.key().tensor, "'"))});
  }
  return OkStatus();
}

Status VerbsMessageReader::ReadOffer(size_t bytes, Messages* messages) {
  ASSIGN_OR_RETURN(TensorOffer parsed, ParseTensor(bytes, /*has_body=*/false));
  if (parsed.fields.bytes <= kVerbsInlineBytesMax) {
    return DataLoss("a tensor of ", parsed.fields.bytes, " bytes is not in its message");
  }
  messages->offers.push_back(std::move(parsed));
  return OkStatus();
}

Status VerbsMessageReader::ReadRefusal(size_t bytes, absl::FunctionRef<bool(int64_t)> wanted,
                                       Messages* messages) {
  VerbsRefusalFields fields;
  if (bytes < sizeof(fields) || bytes > sizeof(fields) + kVerbsTextMax) {
    return DataLoss("a refusal's message of ", bytes, " bytes");
  }
  ring_.Read(&fields, sizeof(fields));
  std::string text(bytes - sizeof(fields), '\0');
  ring_.Read(text.data(), text.size());
  if (!wanted(fields.step_id)) return OkStatus();
  const bool known = fields.code > 0 && fields.code <= 16;  // the canonical codes
  const StatusCode code = known ? static_cast<StatusCode>(fields.code) : StatusCode::kUnknown;
  messages->refused.push_back({fields.step_id, Status(code, text)});
  return OkStatus();
}

}  // namespace penstock
