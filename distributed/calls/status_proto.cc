// SPDX-License-Identifier: Apache-2.0
#include "distributed/calls/status_proto.h"

#include <utility>

#include "absl/strings/cord.h"

namespace penstock {
namespace {

constexpr size_t kTrailerMessageMax = 3072;
constexpr size_t kTrailerPayloadsMax = 1024;

StatusCode CodeOf(int code) {
  return code > 0 && code <= 16 ? static_cast<StatusCode>(code) : StatusCode::kUnknown;
}

wire::ErrorPayloads PayloadsOf(const Status& status) {
  wire::ErrorPayloads payloads;
  status.ForEachPayload([&payloads](string_view type, const absl::Cord& payload) {
    (*payloads.mutable_payload())[std::string(type)] = std::string(payload);
  });
  return payloads;
}

Status WithPayloads(Status status, const wire::ErrorPayloads& payloads) {
  for (const auto& [type, payload] : payloads.payload()) {
    status.SetPayload(type, absl::Cord(payload));
  }
  return status;
}

}  // namespace

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message(status.message().substr(0, kTrailerMessageMax));
  if (message.size() < status.message().size()) message += " ... [truncated]";
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message, PayloadBytes(status));
}

Status FromGrpc(const grpc::Status& status, const std::string& task) {
  if (status.ok()) return OkStatus();
  const StatusCode code = CodeOf(status.error_code());
  const bool by_library = code == StatusCode::kUnavailable ||
                          code == StatusCode::kDeadlineExceeded || code == StatusCode::kCancelled ||
                          code == StatusCode::kUnknown || code == StatusCode::kUnauthenticated;
  const std::string named = by_library && !task.empty() ? StrCat(task, ": ") : "";
  // gRPC's message has only the sizes. Adds the name of the flag that sets the limit.
  const bool too_long = code == StatusCode::kResourceExhausted &&
                        status.error_message().find("essage larger than max") != std::string::npos;
  if (too_long) {
    return ResourceExhausted(task, task.empty() ? "" : ": ", status.error_message(),
                             ": the receiving task's --max_message_bytes; send less at a time, or "
                             "start the task with a higher limit");
  }
  return WithPayloadBytes(Status(code, StrCat(named, status.error_message())),
                          status.error_details());
}

void ToProto(const Status& status, wire::Error* error) {
  error->set_code(static_cast<tensorflow::error::Code>(status.code()));
  error->set_message(std::string(status.message()));
  wire::ErrorPayloads payloads = PayloadsOf(status);
  if (!payloads.payload().empty()) *error->mutable_payloads() = std::move(payloads);
}

Status FromProto(const wire::Error& error) {
  if (error.code() == 0) return OkStatus();
  return WithPayloads(Status(CodeOf(error.code()), error.message()), error.payloads());
}

std::string PayloadBytes(const Status& status) {
  std::string bytes = PayloadsOf(status).SerializeAsString();
  return bytes.size() > kTrailerPayloadsMax ? "" : bytes;
}

Status WithPayloadBytes(Status status, const std::string& bytes) {
  wire::ErrorPayloads payloads;
  if (!payloads.ParseFromString(bytes)) return status;
  return WithPayloads(std::move(status), payloads);
}

}  // namespace penstock
