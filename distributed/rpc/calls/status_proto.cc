// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/calls/status_proto.h"

namespace penstock {
namespace {

constexpr size_t kTrailerMessageMax = 3072;

StatusCode CodeOf(int code) {
  return code > 0 && code <= 16 ? static_cast<StatusCode>(code) : StatusCode::kUnknown;
}

}  // namespace

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message(status.message().substr(0, kTrailerMessageMax));
  if (message.size() < status.message().size()) message += " ... [truncated]";
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message);
}

Status FromGrpc(const grpc::Status& status, const std::string& task) {
  if (status.ok()) return OkStatus();
  const StatusCode code = CodeOf(status.error_code());
  const bool by_library = code == StatusCode::kUnavailable ||
                          code == StatusCode::kDeadlineExceeded || code == StatusCode::kCancelled ||
                          code == StatusCode::kUnknown;
  if (!by_library || task.empty()) return Status(code, status.error_message());
  return Status(code, StrCat(task, ": ", status.error_message()));
}

void ToProto(const Status& status, wire::Error* error) {
  error->set_code(static_cast<tensorflow::error::Code>(status.code()));
  error->set_message(std::string(status.message()));
}

Status FromProto(const wire::Error& error) {
  if (error.code() == 0) return OkStatus();
  return Status(CodeOf(error.code()), error.message());
}

}  // namespace penstock
