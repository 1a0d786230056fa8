// SPDX-License-Identifier: Apache-2.0
//
// The client's side of TensorFlow's session protocol. Every call blocks its thread.
#include "distributed/rpc/remote_session.h"

#include <atomic>
#include <map>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/timeout.h"
#include "core/graph/graph_proto.h"
#include "distributed/calls/status_proto.h"
#include "distributed/rpc/graph_upload.h"
#include "distributed/rpc/master_stub.h"
#include "distributed/rpc/protocol.h"
#include "distributed/rpc/session_config.h"
#include "distributed/rpc/tensor_message.h"
#include "distributed/rpc/value_proto.h"
#include "distributed/session/in_process_sessions.h"
#include "distributed/session/session.h"

namespace penstock {
namespace {

constexpr size_t kRequestBytesMax = (size_t{1} << 31) - 1;  // protobuf's limit

constexpr TensorField kFetch = {tensorflow::RunStepResponse::kTensorFieldNumber, /*named=*/true,
                                "fetch"};
constexpr TensorField kCallableFetch = {tensorflow::RunCallableResponse::kFetchFieldNumber,
                                        /*named=*/false, "fetch"};

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

class RemoteSession final : public SessionInterface {
 public:
  RemoteSession(std::string target, const std::string& address, const SessionOptions& options,
                Env& env, const PieceLimits& limits)
      : target_(std::move(target)),
        options_(options),
        env_(env),
        limits_(limits),
        master_(target_, address, options.operation_timeout_ms) {}
  ~RemoteSession() override { (void)Close(); }

  Status Extend(const Graph& graph) override {
    MutexLock extending(extend_mu_);
    {
      MutexLock lock(mu_);
      if (closed_) return Closed();
      if (graph.max_id() == nodes_sent_ && !handle_.empty()) return OkStatus();
    }
    if (graph.max_id() < nodes_sent_) {
      return InvalidArgument("Extend: the graph has fewer nodes than the session has seen");
    }
    RETURN_IF_ERROR(Send(graph));
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
    RETURN_IF_ERROR(master_.Call(&Stub::PartialRunSetup, request, &response));
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
    RETURN_IF_ERROR(master_.Call(&Stub::MakeCallable, request, &response));
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
      return RunPlain(callable, spec, options, feeds, outputs);
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
    return master_.Call(&Stub::ReleaseCallable, request, &response);
  }

  StatusOr<std::vector<DeviceInfo>> ListDevices() override {
    tensorflow::ListDevicesRequest request;
    ASSIGN_OR_RETURN(*request.mutable_session_handle(), Handle());
    tensorflow::ListDevicesResponse response;
    RETURN_IF_ERROR(master_.Call(&Stub::ListDevices, request, &response));
    std::vector<DeviceInfo> devices;
    for (const auto* list : {&response.local_device(), &response.remote_device()}) {
      for (const tensorflow::DeviceAttributes& proto : *list) {
        StatusOr<DeviceInfo> device = FromProto(proto);
        RETURN_IF_ERROR(master_.BrokenAnswer(device.status()));
        devices.push_back(*std::move(device));
      }
    }
    return devices;
  }

  Status Close() override {
    tensorflow::CloseSessionRequest request;
    closing_ = true;  // ends an upload
    {
      MutexLock lock(mu_);
      if (std::exchange(closed_, true) || handle_.empty()) return OkStatus();
      request.set_session_handle(handle_);
    }
    tensorflow::CloseSessionResponse response;
    return master_.Call(&Stub::CloseSession, request, &response);
  }

 private:
  using Stub = MasterStub::Stub;

  static Status Closed() { return FailedPrecondition("Session is closed."); }

  // Returns the session's handle. Creates the session, with an empty graph, if there is none
  // yet.
  StatusOr<std::string> Handle() {
    MutexLock lock(mu_);
    if (closed_) return Closed();
    if (handle_.empty()) RETURN_IF_ERROR(Create(nullptr));
    return handle_;
  }

  // Tells the master to end a partial run after the client has cancelled an instalment. The master
  // may not know about the cancellation, because gRPC does not send a request that is cancelled
  // early. Ignores errors: the run then ends with the session.
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
    (void)master_.Answer(&Stub::RunStep, request, &response, &context, kLastAttemptMs);
  }

  int64_t NewRequestId() { return static_cast<int64_t>(env_.RandomU64() | 1); }

  // Runs a step. `request` has its targets, or the handle of its partial run; this function sets
  // the other fields.
  Status RunStep(tensorflow::RunStepRequest request, const RunOptions& options, const Feeds& feeds,
                 const std::vector<std::string>& fetches, std::vector<Tensor>* outputs,
                 RunMetadata* metadata) {
    outputs->clear();
    ASSIGN_OR_RETURN(*request.mutable_session_handle(), Handle());
    request.mutable_fetch()->Add(fetches.begin(), fetches.end());
    request.set_store_errors_in_response_body(true);
    request.set_request_id(NewRequestId());
    SetOptions(options, master_.TimeoutMs(options), request.mutable_options());
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
                     master_.CallStep("RunStep", names, options, &writer, &payloads));

    tensorflow::RunStepResponse response;
    std::vector<std::pair<std::string, Tensor>> tensors;
    RETURN_IF_ERROR(master_.BrokenAnswer(ReadTensorMessage(&answer, kFetch, &response, &tensors)));
    if (response.status_code() != 0) {
      return WithPayloadBytes(
          Status(static_cast<StatusCode>(response.status_code()), response.status_error_message()),
          payloads);
    }
    RETURN_IF_ERROR(Annotate(ReadMetadata(response.metadata(), metadata),
                             StrCat(master_.name(), ": metadata")));
    return master_.BrokenAnswer(TakeOutputs(std::move(tensors), fetches, outputs));
  }

  // Sends the nodes that the session has not seen: in one message if it holds them, else in parts.
  Status Send(const Graph& graph) ABSL_EXCLUSIVE_LOCKS_REQUIRED(extend_mu_) {
    const int64_t deadline_ns = env_.NowNanos() + TimeoutNanos(options_.operation_timeout_ms);
    PieceLimits limits = limits_;
    if (GraphUpload(graph, limits, 0, nodes_sent_).whole()) {
      tensorflow::GraphDef def;
      ExportGraph(graph, &def, nodes_sent_);
      if (static_cast<int64_t>(def.ByteSizeLong()) <= limits.whole_bytes_max) {
        return SendWhole(&def);
      }
      limits.whole_bytes_max = 0;
    }
    RETURN_IF_ERROR(Handle().status());
    return Upload(graph, limits, deadline_ns);
  }

  // Sends the nodes with the call that creates the session, or extends it. Clears `def`.
  Status SendWhole(tensorflow::GraphDef* def) {
    {
      MutexLock lock(mu_);
      if (closed_) return Closed();
      if (handle_.empty()) return Create(def);
    }
    tensorflow::ExtendSessionRequest request = NewExtension();
    request.mutable_graph_def()->Swap(def);
    return SendExtension(request, /*timeout_ms=*/0, /*last=*/true);
  }

  // Sends the nodes in parts. If the session has an operation timeout, they must be sent before
  // `deadline_ns`.
  Status Upload(const Graph& graph, const PieceLimits& limits, int64_t deadline_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(extend_mu_) {
    GraphUpload upload(graph, limits, env_.RandomU64(), nodes_sent_);
    tensorflow::ExtendSessionRequest request = NewExtension();
    while (upload.Next(request.mutable_graph_def())) {
      if (closing_) return Closed();
      int64_t left_ms = 0;
      if (options_.operation_timeout_ms > 0) {
        left_ms = (deadline_ns - env_.NowNanos()) / 1'000'000;
        if (left_ms <= 0) {
          return DeadlineExceeded(master_.name(), ": the graph was not sent within ",
                                  options_.operation_timeout_ms, " ms");
        }
      }
      const bool last = !ConstantPieces::IsPiece(request.graph_def());
      const Status sent = SendExtension(request, left_ms, last);
      if (!sent.ok()) return closing_ ? Closed() : sent;
    }
    return OkStatus();
  }

  // Creates the session, with a graph that this function clears, or an empty one if it is null.
  Status Create(tensorflow::GraphDef* graph) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    tensorflow::CreateSessionRequest request;
    if (graph != nullptr) request.mutable_graph_def()->Swap(graph);
    ToProto(options_, request.mutable_config());
    request.set_target(target_);
    RETURN_IF_ERROR(CheckSize(request));
    tensorflow::CreateSessionResponse response;
    RETURN_IF_ERROR(master_.CreateSession(request, &response));
    handle_ = response.session_handle();
    version_ = response.graph_version();
    return OkStatus();
  }

  // Returns a request without a graph. REQUIRES: the session has been created.
  tensorflow::ExtendSessionRequest NewExtension() {
    tensorflow::ExtendSessionRequest request;
    MutexLock lock(mu_);
    request.set_session_handle(handle_);
    request.set_current_graph_version(version_);
    return request;
  }

  // Sends a graph or a part of one. A `timeout_ms` of 0 means the session's operation timeout.
  // `last`: the graph is complete, so that the session has a new version.
  Status SendExtension(const tensorflow::ExtendSessionRequest& request, int64_t timeout_ms,
                       bool last) {
    RETURN_IF_ERROR(CheckSize(request));
    tensorflow::ExtendSessionResponse response;
    grpc::ClientContext context;
    RETURN_IF_ERROR(
        FromGrpc(master_.Answer(&Stub::ExtendSession, request, &response, &context, timeout_ms),
                 master_.name()));
    MutexLock lock(mu_);
    if (last) version_ = response.new_graph_version();
    return OkStatus();
  }

  Status RunPlain(CallableId callable, const CallableSpec& spec, const RunOptions& options,
                  absl::Span<const Tensor> feeds, std::vector<Tensor>* outputs) {
    outputs->clear();
    tensorflow::RunCallableRequest request;
    ASSIGN_OR_RETURN(*request.mutable_session_handle(), Handle());
    request.set_handle(callable);
    request.set_request_id(NewRequestId());
    const auto names = [&] { return NamesOf(callable); };
    TensorMessageWriter writer;
    writer.Add(request);
    for (size_t i = 0; i < feeds.size(); ++i) {
      writer.AddTensor(tensorflow::RunCallableRequest::kFeedFieldNumber, spec.feeds[i], feeds[i]);
    }
    ASSIGN_OR_RETURN(grpc::ByteBuffer answer,
                     master_.CallStep("RunCallable", names, options, &writer));
    tensorflow::RunCallableResponse response;
    std::vector<std::pair<std::string, Tensor>> tensors;
    RETURN_IF_ERROR(
        master_.BrokenAnswer(ReadTensorMessage(&answer, kCallableFetch, &response, &tensors)));
    RETURN_IF_ERROR(master_.BrokenAnswer(CheckCount(tensors.size(), spec.fetches.size())));
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
        "the graph is larger than 2 GiB without its large constants of numbers: restore what is "
        "large from a checkpoint, or feed it in parts");
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
  const SessionOptions options_;
  Env& env_;
  const PieceLimits limits_;
  MasterStub master_;  // Create connects it, before it sets handle_
  std::atomic<bool> closing_{false};
  Mutex extend_mu_;  // held for the time of an Extend; locked before mu_
  int nodes_sent_ ABSL_GUARDED_BY(extend_mu_) = 0;
  Mutex mu_;  // held for the time of a call only while the session is created
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::string handle_ ABSL_GUARDED_BY(mu_);  // "" until Create has succeeded
  int64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<CallableId, CallableSpec> callables_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

StatusOr<std::unique_ptr<SessionInterface>> NewRemoteSession(const std::string& target,
                                                             const SessionOptions& options,
                                                             Env& env) {
  return NewRemoteSession(target, options, env, GraphUpload::kLimits);
}

StatusOr<std::unique_ptr<SessionInterface>> NewRemoteSession(const std::string& target,
                                                             const SessionOptions& options,
                                                             Env& env, const PieceLimits& limits) {
  ASSIGN_OR_RETURN(const std::string address, MasterAddressOf(target));
  if (auto here = InProcessSessions::New(address, options)) return here;
  return std::make_unique<RemoteSession>(target, address, options, env, limits);
}

}  // namespace penstock
