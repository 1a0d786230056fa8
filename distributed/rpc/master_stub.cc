// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/master_stub.h"

#include <grpcpp/completion_queue.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/base/mutex.h"
#include "core/base/timeout.h"
#include "distributed/calls/channel.h"
#include "distributed/calls/unary_call.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/rpc/protocol.h"
#include "distributed/security/credentials.h"

namespace penstock {
namespace {

constexpr char kScheme[] = "grpc://";
constexpr int64_t kMinuteMs = 60'000;
constexpr int64_t kDayMs = 24 * 60 * kMinuteMs;
// The master ends a step at its deadline and answers with the reason. The client waits this much
// longer for that answer.
constexpr int64_t kAnswerSlackMs = 3'000;

// Returns the channels of this process: one for each master, until the credentials change.
StatusOr<std::shared_ptr<Channels>> ProcessChannels() {
  struct SharedChannels {
    Mutex mu;
    std::shared_ptr<const Credentials> credentials ABSL_GUARDED_BY(mu);
    std::shared_ptr<Channels> channels ABSL_GUARDED_BY(mu);
  };
  static SharedChannels& made = *new SharedChannels;
  ASSIGN_OR_RETURN(std::shared_ptr<const Credentials> credentials, ProcessCredentials());
  MutexLock lock(made.mu);
  if (made.credentials != credentials) {
    made.credentials = std::move(credentials);
    made.channels = std::make_shared<Channels>(KeepaliveOptions(), made.credentials);
  }
  return made.channels;
}

// Cancels the call that waits for a step when the step is cancelled.
class CancelCall {
 public:
  CancelCall(Cancellation* cancellation, grpc::ClientContext* context)
      : cancellation_(cancellation) {
    if (cancellation_ == nullptr) return;
    registered_ =
        cancellation_->Register([context](const Status&) { context->TryCancel(); }, &token_);
    if (!registered_) context->TryCancel();
  }
  ~CancelCall() {
    if (registered_) cancellation_->Deregister(token_);
  }
  // Returns the status of the cancellation if the call has failed because the caller cancelled it,
  // else `status`.
  Status Explain(const Status& status) const {
    const bool by_caller = cancellation_ != nullptr && cancellation_->cancelled();
    return by_caller && !status.ok() ? cancellation_->status() : status;
  }

 private:
  Cancellation* const cancellation_;
  Cancellation::Token token_ = 0;
  bool registered_ = false;
};

// Returns ", running a step of 'a:0', 'b:0' and 3 more".
std::string DescribeStep(const std::vector<std::string>& names) {
  constexpr size_t kShownMax = 3;
  std::string text = ", running a step of ";
  for (size_t i = 0; i < std::min(names.size(), kShownMax); ++i) {
    StrAppend(&text, i == 0 ? "'" : ", '", names[i], "'");
  }
  if (names.size() > kShownMax) StrAppend(&text, " and ", names.size() - kShownMax, " more");
  return names.empty() ? "" : text;
}

}  // namespace

StatusOr<std::string> MasterAddressOf(const std::string& target) {
  if (!absl::StartsWith(target, kScheme)) {
    return InvalidArgument("target '", target, "' is not of the form grpc://host:port");
  }
  const auto address = HostPort::Parse(absl::StripPrefix(target, kScheme));
  if (!address.ok()) return InvalidArgument("target '", target, "': ", address.status().message());
  return address->ToString();
}

StatusOr<MasterChannel> ConnectToMaster(const std::string& target, const std::string& address,
                                        int64_t timeout_ms) {
  ASSIGN_OR_RETURN(const auto channels, ProcessChannels());
  std::string mismatch;
  auto channel = channels->Connect(address, timeout_ms, &mismatch);
  if (!mismatch.empty()) {
    return Status(StatusCode::kUnauthenticated, StrCat(target, ": ", mismatch));
  }
  const bool connected = channel->GetState(false) == GRPC_CHANNEL_READY;
  return MasterChannel{.channel = std::move(channel), .connected = connected};
}

MasterStub::MasterStub(std::string target, std::string address, int64_t operation_timeout_ms)
    : target_(std::move(target)),
      address_(std::move(address)),
      operation_timeout_ms_(operation_timeout_ms),
      name_(target_) {}

Status MasterStub::CreateSession(const tensorflow::CreateSessionRequest& request,
                                 tensorflow::CreateSessionResponse* response) {
  // The server may not have started yet. Once it has, it may have to wait for other tasks, too.
  const int64_t given = operation_timeout_ms_;
  ASSIGN_OR_RETURN(const MasterChannel made,
                   ConnectToMaster(target_, address_, given > 0 ? given : kMinuteMs));
  stub_ = tensorflow::MasterService::NewStub(made.channel);
  steps_ = std::make_unique<grpc::GenericStub>(made.channel);
  grpc::ClientContext context;
  const grpc::Status created = Answer(&Stub::CreateSession, request, response, &context,
                                      made.connected ? 0 : kLastAttemptMs);
  if (!made.connected && !created.ok()) {
    return DeadlineExceeded(target_, ": no server answers there; is it running? ",
                            created.error_message());
  }
  RETURN_IF_ERROR(FromGrpc(created, target_));
  if (response->session_handle().empty()) {
    return Internal(target_, ": the server has made a session without a handle");
  }
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto task = metadata.find(kMasterTaskMetadata);
  if (task != metadata.end()) {
    name_ = StrCat("the master ", string_view(task->second.data(), task->second.size()), " at ",
                   target_);
  }
  return OkStatus();
}

void MasterStub::LimitCall(int64_t timeout_ms, grpc::ClientContext* context) const {
  const int64_t given = operation_timeout_ms_;
  if (timeout_ms == 0) timeout_ms = (given > 0 ? LimitTimeout(given) : kMinuteMs) + kAnswerSlackMs;
  SetTimeout(timeout_ms, context);
}

StatusOr<grpc::ByteBuffer> MasterStub::CallStep(const char* method,
                                                absl::FunctionRef<std::vector<std::string>()> names,
                                                const RunOptions& options,
                                                TensorMessageWriter* writer,
                                                std::string* payloads) {
  ASSIGN_OR_RETURN(const grpc::ByteBuffer request, writer->Take());
  grpc::ClientContext context;
  const int64_t timeout_ms = TimeoutMs(options);
  SetTimeout(timeout_ms > 0 ? LimitTimeout(timeout_ms) + kAnswerSlackMs : kDayMs, &context);
  const CancelCall cancel(options.cancellation, &context);

  grpc::CompletionQueue queue;
  grpc::ByteBuffer answer;
  grpc::Status status;
  const auto call = steps_->PrepareUnaryCall(&context, StrCat("/tensorflow.MasterService/", method),
                                             request, &queue);
  call->StartCall();
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  CHECK(queue.Next(&tag, &ok), "a call has not ended");
  if (!status.ok()) {
    return cancel.Explain(FromGrpc(status, StrCat(name_, DescribeStep(names()))));
  }
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find(kPayloadsKey);
  if (payloads != nullptr && found != trailers.end()) {
    payloads->assign(found->second.data(), found->second.size());
  }
  return answer;
}

Status MasterStub::BrokenAnswer(const Status& status) const {
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  return Internal(name_, ": the answer is broken: ", status.message());
}

}  // namespace penstock
