// SPDX-License-Identifier: Apache-2.0
//
// The client's side of TensorFlow's session protocol. Every call blocks its thread, and the same
// thread polls for the answer, which is fastest for one call at a time.
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/base/mutex.h"
#include "core/base/timeout.h"
#include "core/graph/graph_proto.h"
#include "distributed/calls/channel.h"
#include "distributed/calls/status_proto.h"
#include "distributed/calls/unary_call.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/rpc/protocol.h"
#include "distributed/rpc/session_config.h"
#include "distributed/rpc/tensor_message.h"
#include "distributed/rpc/value_proto.h"
#include "distributed/security/credentials.h"
#include "distributed/session/in_process_sessions.h"
#include "distributed/session/session.h"
#include "proto/tensorflow/master_service.grpc.pb.h"

namespace penstock {
namespace {

constexpr char kScheme[] = "grpc://";
constexpr int64_t kMinuteMs = 60'000;
constexpr int64_t kDayMs = 24 * 60 * kMinuteMs;
// The master ends a step at its deadline and reports why; the call waits this much longer for
// the report.
constexpr int64_t kAnswerSlackMs = 3'000;
// The timeout of a session's last call to a server: one that finds out why the server did not
// answer, or tells it that a partial run has ended.
constexpr int64_t kLastAttemptMs = 1'000;
constexpr size_t kRequestBytesMax = (size_t{1} << 31) - 1;  // protobuf's limit

constexpr TensorField kFetch = {tensorflow::RunStepResponse::kTensorFieldNumber, /*named=*/true,
                                "fetch"};
constexpr TensorField kCallableFetch = {tensorflow::RunCallableResponse::kFetchFieldNumber,
                                        /*named=*/false, "fetch"};

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

Status Misfit(const std::string& target, const std::string& what) {
  return Status(StatusCode::kUnauthenticated, StrCat(target, ": ", what));
}

StatusOr<std::string> AddressOf(const std::string& target) {
  if (!absl::StartsWith(target, kScheme)) {
    return InvalidArgument("target '", target, "' is not of the form grpc://host:port");
  }
  const auto address = HostPort::Parse(absl::StripPrefix(target, kScheme));
  if (!address.ok()) return InvalidArgument("target '", target, "': ", address.status().message());
  return address->ToString();
}

void SetOptions(const RunOptions& options, int64_t timeout_ms, tensorflow::RunOptions* proto) {
  proto->set_timeout_in_ms(timeout_ms);
  proto->set_output_partition_graphs(options.partition_graphs);
  if (options.trace) proto->set_trace_level(tensorflow::RunOptions::FULL_TRACE);
}

Status ReadMetadata(const tensorflow::RunMetadata& proto, RunMetadata* metadata) {
  if (metadata == nullptr) return OkStatus();
  ASSIGN_OR_RETURN(metadata->step_stats, FromProto(proto.step_stats()));
  ASSIGN_OR_RETURN(metadata->cost_graph, FromProto(proto.cost_graph()));
  metadata->partition_graphs.clear();
  for (const tensorflow::GraphDef& def : proto.partition_graphs()) {
    Graph graph(Registry::Global());
    RETURN_IF_ERROR(ImportGraph(def, &graph));
    const std::string device = def.node_size() > 0 ? def.node(0).device() : "";
    metadata->partition_graphs.emplace_back(device, std::move(graph));
  }
  return OkStatus();
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

class RemoteSession final : public SessionInterface {
 public:
  RemoteSession(std::string target, const std::string& address, const SessionOptions& options,
                Env& env)
      : target_(std::move(target)), options_(options), env_(env), address_(address) {}
  ~RemoteSession() override { (void)Close(); }

  Status Extend(const Graph& graph) override {
    MutexLock lock(mu_);
    if (closed_) return Closed();
    if (graph.max_id() == nodes_sent_ && !handle_.empty()) return OkStatus();
    if (graph.max_id() < nodes_sent_) {
      return InvalidArgument("Extend: the graph has fewer nodes than the session has seen");
    }
    RETURN_IF_ERROR(handle_.empty() ? Create(&graph) : Grow(graph));
    nodes_sent_ = graph.max_id();
    return OkStatus();
  }

  Status Run(const RunOptions& options, const Feeds& feeds, const std::vector<std::string>& fetches,
             const std::vector<std::string>& targets, std::vector<Tensor>* outputs,
             RunMetadata* metadata) override {
    tensorflow::RunStepRequest request;
    request.mutable_target()->Add(targets.begin(), targets.end());
    return RunStep(std::move(request), options, feeds, fetches, outputs, metadata);
  }

  StatusOr<std::string> SetUpPartialRun(const CallableSpec& spec) override {
    tensorflow::PartialRunSetupRequest request;
    ASSIGN_OR_RETURN(*request.mutable_session_handle(), Handle());
    request.mutable_feed()->Add(spec.feeds.begin(), spec.feeds.end());
    request.mutable_fetch()->Add(spec.fetches.begin(), spec.fetches.end());
    request.mutable_target()->Add(spec.targets.begin(), spec.targets.end());
    request.set_request_id(NewRequestId());
    tensorflow::PartialRunSetupResponse response;
    RETURN_IF_ERROR(Call(&Stub::PartialRunSetup, request, &response));
    return response.partial_run_handle();
  }

  Status RunPartial(const std::string& handle, const RunOptions& options, const Feeds& feeds,
                    const std::vector<std::string>& fetches,
                    std::vector<Tensor>* outputs) override {
    if (handle.empty()) return InvalidArgument("a partial run without a handle");
    tensorflow::RunStepRequest request;
    request.set_partial_run_handle(handle);
    const Status ran = RunStep(std::move(request), options, feeds, fetches, outputs, nullptr);
    const bool cancelled = options.cancellation != nullptr && options.cancellation->cancelled();
    if (!ran.ok() && cancelled) EndPartialRun(handle);
    return ran;
  }

  StatusOr<CallableId> MakeCallable(const CallableSpec& spec) override {
    tensorflow::MakeCallableRequest request;
    ASSIGN_OR_RETURN(*request.mutable_session_handle(), Handle());
    tensorflow::CallableOptions* const options = request.mutable_options();
    options->mutable_feed()->Add(spec.feeds.begin(), spec.feeds.end());
    options->mutable_fetch()->Add(spec.fetches.begin(), spec.fetches.end());
    options->mutable_target()->Add(spec.targets.begin(), spec.targets.end());
    request.set_request_id(NewRequestId());
    tensorflow::MakeCallableResponse response;
    RETURN_IF_ERROR(Call(&Stub::MakeCallable, request, &response));
    MutexLock lock(mu_);
    callables_[response.handle()] = spec;
    return response.handle();
  }

  // Runs a callable. In the protocol, a run of a callable has no options, so a run with a trace,
  // partition graphs or a timeout of its own is sent as a step with names.
  Status RunCallable(CallableId callable, const RunOptions& options, absl::Span<const Tensor> feeds,
                     std::vector<Tensor>* outputs, RunMetadata* metadata) override {
    CallableSpec spec;
    {
      MutexLock lock(mu_);
      const auto found = callables_.find(callable);
      if (found == callables_.end()) {
        return InvalidArgument("callable ", callable, " was never made or has been released");
      }
      spec = found->second;
    }
    if (feeds.size() != spec.feeds.size()) {
      return InvalidArgument("expected ", spec.feeds.size(), " feeds, got ", feeds.size());
    }
    if (!options.trace && !options.partition_graphs && options.timeout_ms == 0) {
      return RunPlain(callable, options, feeds, spec.fetches.size(), outputs);
    }
    Feeds named;
    for (size_t i = 0; i < feeds.size(); ++i) named.emplace_back(spec.feeds[i], feeds[i]);
    return Run(options, named, spec.fetches, spec.targets, outputs, metadata);
  }

  Status ReleaseCallable(CallableId callable) override {
    {
      MutexLock lock(mu_);
      callables_.erase(callable);
    }
    tensorflow::ReleaseCallableRequest request;
    ASSIGN_OR_RETURN(*request.mutable_session_handle(), Handle());
    request.set_handle(callable);
    tensorflow::ReleaseCallableResponse response;
    return Call(&Stub::ReleaseCallable, request, &response);
  }

  StatusOr<std::vector<DeviceInfo>> ListDevices() override {
    tensorflow::ListDevicesRequest request;
    ASSIGN_OR_RETURN(*request.mutable_session_handle(), Handle());
    tensorflow::ListDevicesResponse response;
    RETURN_IF_ERROR(Call(&Stub::ListDevices, request, &response));
    std::vector<DeviceInfo> devices;
    for (const auto* list : {&response.local_device(), &response.remote_device()}) {
      for (const tensorflow::DeviceAttributes& proto : *list) {
        StatusOr<DeviceInfo> device = FromProto(proto);
        RETURN_IF_ERROR(BrokenAnswer(device.status()));
        devices.push_back(*std::move(device));
      }
    }
    return devices;
  }

  Status Close() override {
    tensorflow::CloseSessionRequest request;
    {
      MutexLock lock(mu_);
      if (std::exchange(closed_, true) || handle_.empty()) return OkStatus();
      request.set_session_handle(handle_);
    }
    tensorflow::CloseSessionResponse response;
    return Call(&Stub::CloseSession, request, &response);
  }

 private:
  using Stub = tensorflow::MasterService::Stub;

  static Status Closed() { return FailedPrecondition("Session is closed."); }

  // Returns the session's handle. Creates the session, with an empty graph, if there is none
  // yet.
  StatusOr<std::string> Handle() {
    MutexLock lock(mu_);
    if (closed_) return Closed();
    if (handle_.empty()) RETURN_IF_ERROR(Create(nullptr));
    return handle_;
  }

  // Ends a partial run of which an instalment was cancelled. gRPC drops the request of a call that
  // is cancelled before it is sent, so the master may not know. Errors of this call are ignored:
  // either the master knows of the end already, or the run will end with the session.
  void EndPartialRun(const std::string& handle) {
    tensorflow::RunStepRequest request;
    const auto session = Handle();
    if (!session.ok()) return;
    request.set_session_handle(*session);
    request.set_partial_run_handle(handle);
    request.set_store_errors_in_response_body(true);
    request.set_request_id(NewRequestId());
    tensorflow::RunStepResponse response;
    grpc::ClientContext context;
    context.AddMetadata(kEndsPartialRunMetadata, "1");
    (void)Answer(&Stub::RunStep, request, &response, &context, kLastAttemptMs);
  }

  int64_t NewRequestId() { return static_cast<int64_t>(env_.RandomU64() | 1); }

  // Runs a step. `request` has its targets, or the handle of its partial run; the other fields are
  // added here.
  Status RunStep(tensorflow::RunStepRequest request, const RunOptions& options, const Feeds& feeds,
                 const std::vector<std::string>& fetches, std::vector<Tensor>* outputs,
                 RunMetadata* metadata) {
    outputs->clear();
    ASSIGN_OR_RETURN(*request.mutable_session_handle(), Handle());
    request.mutable_fetch()->Add(fetches.begin(), fetches.end());
    request.set_store_errors_in_response_body(true);
    request.set_request_id(NewRequestId());
    SetOptions(options, TimeoutMs(options), request.mutable_options());
    const auto names = [&] {
      std::vector<std::string> all = fetches;
      all.insert(all.end(), request.target().begin(), request.target().end());
      return all;
    };
    TensorMessageWriter writer;
    writer.Add(request);
    for (const auto& [name, value] : feeds) {
      writer.AddNamedTensor(tensorflow::RunStepRequest::kFeedFieldNumber, name, value);
    }
    std::string payloads;
    ASSIGN_OR_RETURN(grpc::ByteBuffer answer,
                     CallStep("RunStep", names, options, &writer, &payloads));

    tensorflow::RunStepResponse response;
    std::vector<std::pair<std::string, Tensor>> tensors;
    RETURN_IF_ERROR(BrokenAnswer(ReadTensorMessage(&answer, kFetch, &response, &tensors)));
    if (response.status_code() != 0) {
      return WithPayloadBytes(
          Status(static_cast<StatusCode>(response.status_code()), response.status_error_message()),
          payloads);
    }
    RETURN_IF_ERROR(
        Annotate(ReadMetadata(response.metadata(), metadata), StrCat(master_, ": metadata")));
    return BrokenAnswer(TakeOutputs(std::move(tensors), fetches, outputs));
  }

  Status Create(const Graph* graph) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    tensorflow::CreateSessionRequest request;
    if (graph != nullptr) ExportGraph(*graph, request.mutable_graph_def());
    ToProto(options_, request.mutable_config());
    request.set_target(target_);
    RETURN_IF_ERROR(CheckSize(request));
    tensorflow::CreateSessionResponse response;
    // The server may not have started yet. Once it has, it may have to wait for other tasks, too.
    const int64_t given = options_.operation_timeout_ms;
    ASSIGN_OR_RETURN(const auto channels, ProcessChannels());
    std::string misfit;
    const auto channel = channels->Connect(address_, given > 0 ? given : kMinuteMs, &misfit);
    if (!misfit.empty()) return Misfit(target_, misfit);
    const bool connected = channel->GetState(false) == GRPC_CHANNEL_READY;
    stub_ = tensorflow::MasterService::NewStub(channel);
    steps_ = std::make_unique<grpc::GenericStub>(channel);
    grpc::ClientContext context;
    const grpc::Status created =
        Answer(&Stub::CreateSession, request, &response, &context, connected ? 0 : kLastAttemptMs);
    if (!connected && !created.ok()) {
      return DeadlineExceeded(target_, ": no server answers there; is it running? ",
                              created.error_message());
    }
    RETURN_IF_ERROR(FromGrpc(created, target_));
    if (response.session_handle().empty()) {
      return Internal(target_, ": the server has made a session without a handle");
    }
    const auto& metadata = context.GetServerTrailingMetadata();
    const auto task = metadata.find(kMasterTaskMetadata);
    if (task != metadata.end()) {
      master_ = StrCat("the master ", string_view(task->second.data(), task->second.size()), " at ",
                       target_);
    }
    handle_ = response.session_handle();
    version_ = response.graph_version();
    return OkStatus();
  }

  Status Grow(const Graph& graph) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    tensorflow::ExtendSessionRequest request;
    request.set_session_handle(handle_);
    request.set_current_graph_version(version_);
    ExportGraph(graph, request.mutable_graph_def(), nodes_sent_);
    RETURN_IF_ERROR(CheckSize(request));
    tensorflow::ExtendSessionResponse response;
    RETURN_IF_ERROR(Call(&Stub::ExtendSession, request, &response));
    version_ = response.new_graph_version();
    return OkStatus();
  }

  Status RunPlain(CallableId callable, const RunOptions& options, absl::Span<const Tensor> feeds,
                  size_t num_fetches, std::vector<Tensor>* outputs) {
    outputs->clear();
    tensorflow::RunCallableRequest request;
    ASSIGN_OR_RETURN(*request.mutable_session_handle(), Handle());
    request.set_handle(callable);
    request.set_request_id(NewRequestId());
    const auto names = [&] { return NamesOf(callable); };
    TensorMessageWriter writer;
    writer.Add(request);
    for (const Tensor& feed : feeds) {
      writer.AddTensor(tensorflow::RunCallableRequest::kFeedFieldNumber, feed);
    }
    ASSIGN_OR_RETURN(grpc::ByteBuffer answer, CallStep("RunCallable", names, options, &writer));
    tensorflow::RunCallableResponse response;
    std::vector<std::pair<std::string, Tensor>> tensors;
    RETURN_IF_ERROR(BrokenAnswer(ReadTensorMessage(&answer, kCallableFetch, &response, &tensors)));
    RETURN_IF_ERROR(BrokenAnswer(CheckCount(tensors.size(), num_fetches)));
    for (auto& [name, value] : tensors) outputs->push_back(std::move(value));
    return OkStatus();
  }

  // Returns the names of the callable's fetches and targets, for errors.
  std::vector<std::string> NamesOf(CallableId callable) {
    MutexLock lock(mu_);
    const auto found = callables_.find(callable);
    if (found == callables_.end()) return {};
    std::vector<std::string> names = found->second.fetches;
    names.insert(names.end(), found->second.targets.begin(), found->second.targets.end());
    return names;
  }

  template <class Message>
  static Status CheckSize(const Message& request) {
    if (request.ByteSizeLong() <= kRequestBytesMax) return OkStatus();
    return ResourceExhausted(
        "the request is larger than 2 GiB: restore large constants from a "
        "checkpoint, or feed them in parts");
  }

  int64_t TimeoutMs(const RunOptions& options) const {
    return options.timeout_ms > 0 ? options.timeout_ms : options_.operation_timeout_ms;
  }

  template <class Request, class Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

  template <class Request, class Response>
  Status Call(Method<Request, Response> method, const Request& request, Response* response) {
    grpc::ClientContext context;
    return FromGrpc(Answer(method, request, response, &context, 0), master_);
  }

  // Makes the call and blocks until it ends. A `timeout_ms` of 0 means the session's operation
  // timeout.
  template <class Request, class Response>
  grpc::Status Answer(Method<Request, Response> method, const Request& request, Response* response,
                      grpc::ClientContext* context, int64_t timeout_ms) {
    const int64_t given = options_.operation_timeout_ms;
    if (timeout_ms == 0)
      timeout_ms = (given > 0 ? LimitTimeout(given) : kMinuteMs) + kAnswerSlackMs;
    SetTimeout(timeout_ms, context);
    return (stub_.get()->*method)(context, request, response);
  }

  // Sends the message in `writer` and returns the answer. The call ends with the step, or a little
  // after its deadline.
  // `names`: the step's names, for errors of the connection. `payloads`, if not null, receives
  // the payloads of an error in the answer.
  StatusOr<grpc::ByteBuffer> CallStep(const char* method,
                                      absl::FunctionRef<std::vector<std::string>()> names,
                                      const RunOptions& options, TensorMessageWriter* writer,
                                      std::string* payloads = nullptr) {
    ASSIGN_OR_RETURN(const grpc::ByteBuffer request, writer->Take());
    grpc::ClientContext context;
    const int64_t timeout_ms = TimeoutMs(options);
    SetTimeout(timeout_ms > 0 ? LimitTimeout(timeout_ms) + kAnswerSlackMs : kDayMs, &context);
    const CancelCall cancel(options.cancellation, &context);

    grpc::CompletionQueue queue;
    grpc::ByteBuffer answer;
    grpc::Status status;
    const auto call = steps_->PrepareUnaryCall(
        &context, StrCat("/tensorflow.MasterService/", method), request, &queue);
    call->StartCall();
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    CHECK(queue.Next(&tag, &ok), "a call has not ended");
    if (!status.ok()) {
      return cancel.Explain(FromGrpc(status, StrCat(master_, DescribeStep(names()))));
    }
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto found = trailers.find(kPayloadsKey);
    if (payloads != nullptr && found != trailers.end()) {
      payloads->assign(found->second.data(), found->second.size());
    }
    return answer;
  }

  // Returns ", running a step of 'a:0', 'b:0' and 3 more".
  static std::string DescribeStep(const std::vector<std::string>& names) {
    constexpr size_t kShownMax = 3;
    std::string text = ", running a step of ";
    for (size_t i = 0; i < std::min(names.size(), kShownMax); ++i) {
      StrAppend(&text, i == 0 ? "'" : ", '", names[i], "'");
    }
    if (names.size() > kShownMax) StrAppend(&text, " and ", names.size() - kShownMax, " more");
    return names.empty() ? "" : text;
  }

  // Returns an Internal error that says that the master's answer is malformed. ResourceExhausted
  // stays as it is: this process has no memory for a tensor.
  Status BrokenAnswer(const Status& status) const {
    if (status.ok() || absl::IsResourceExhausted(status)) return status;
    return Internal(master_, ": the answer is broken: ", status.message());
  }
  static Status CheckCount(size_t tensors, size_t fetches) {
    if (tensors == fetches) return OkStatus();
    return Internal("asked for ", fetches, " tensors, got ", tensors);
  }
  static Status TakeOutputs(std::vector<std::pair<std::string, Tensor>> tensors,
                            const std::vector<std::string>& fetches, std::vector<Tensor>* outputs) {
    outputs->clear();
    RETURN_IF_ERROR(CheckCount(tensors.size(), fetches.size()));
    for (size_t i = 0; i < fetches.size(); ++i) {
      if (tensors[i].first != fetches[i]) {
        return Internal("asked for '", fetches[i], "', got '", tensors[i].first, "'");
      }
      outputs->push_back(std::move(tensors[i].second));
    }
    return OkStatus();
  }

  const std::string target_;
  // The name at the start of error texts: the target, and after Create the task as well.
  std::string master_ = target_;
  const SessionOptions options_;
  Env& env_;
  const std::string address_;
  // Made with the handle, and unchanged while there is a handle.
  std::unique_ptr<Stub> stub_;
  std::unique_ptr<grpc::GenericStub> steps_;
  Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::string handle_ ABSL_GUARDED_BY(mu_);  // "" before the first call
  int64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  int nodes_sent_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<CallableId, CallableSpec> callables_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

StatusOr<std::unique_ptr<SessionInterface>> NewRemoteSession(const std::string& target,
                                                             const SessionOptions& options,
                                                             Env& env) {
  ASSIGN_OR_RETURN(const std::string address, AddressOf(target));
  if (auto here = InProcessSessions::New(address, options)) return here;
  return std::make_unique<RemoteSession>(target, address, options, env);
}

Status ResetCluster(const std::string& target, const std::vector<std::string>& containers,
                    const SessionOptions& options) {
  ASSIGN_OR_RETURN(const std::string address, AddressOf(target));
  tensorflow::ResetRequest request;
  request.mutable_container()->Add(containers.begin(), containers.end());
  request.mutable_device_filters()->Add(options.device_filters.begin(),
                                        options.device_filters.end());
  const int64_t given = options.operation_timeout_ms;
  const int64_t timeout_ms = given > 0 ? LimitTimeout(given) : 2 * kMinuteMs;
  ASSIGN_OR_RETURN(const auto channels, ProcessChannels());
  std::string misfit;
  const auto channel = channels->Connect(address, timeout_ms, &misfit);
  if (!misfit.empty()) return Misfit(target, misfit);
  const bool connected = channel->GetState(false) == GRPC_CHANNEL_READY;
  const auto stub = tensorflow::MasterService::NewStub(channel);
  grpc::ClientContext context;
  SetTimeout(connected ? timeout_ms : kLastAttemptMs, &context);
  tensorflow::ResetResponse response;
  return FromGrpc(stub->Reset(&context, request, &response), target);
}

}  // namespace penstock
