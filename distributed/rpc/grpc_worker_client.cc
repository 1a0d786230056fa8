// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/grpc_worker_client.h"

#include <algorithm>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/timeout.h"
#include "distributed/calibration/calibration_file.h"
#include "distributed/calls/unary_call.h"
#include "distributed/rpc/protocol.h"
#include "distributed/rpc/run_graph_stream.h"
#include "distributed/rpc/value_proto.h"
#include "proto/penstock/worker.grpc.pb.h"

namespace penstock {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;
// The maximum number of nodes that a task may claim to run at the same time. The placer's memory
// grows with this number.
constexpr int kLanesMax = 1024;

class GrpcWorkerClient final : public WorkerClient {
 public:
  GrpcWorkerClient(const TaskId& task, Channels& channels, Env& env, Scheduler& threads,
                   CompletionLoop& loop, StepCalls* calls, const PieceLimits& limits)
      : name_(task.ToString()),
        task_(task.name),
        address_(task.address),
        channels_(channels),
        env_(env),
        threads_(threads),
        loop_(loop),
        calls_(calls),
        limits_(limits) {
    const StatusOr<TaskName> parsed = TaskName::Parse(task.name);
    if (parsed.ok()) {
      worker_ = *parsed;
    } else {
      calls_ = nullptr;
    }
  }

  void GetStatus(const StatusQuestion& question, const CallOptions& options,
                 StatusAnswer answer) override {
    wire::GetStatusRequest request;
    request.set_incarnation(options.incarnation);
    request.set_want_devices(question.want_devices);
    for (const std::string& session : question.sessions) request.add_session_handle(session);
    Call<wire::GetStatusResponse>(
        &Stub::PrepareAsyncGetStatus, request, options,
        [this, answer = std::move(answer)](const Status& status,
                                           wire::GetStatusResponse& response) mutable {
          if (status.ok()) return std::move(answer)(ParseStatus(response));
          std::move(answer)(Explain(status));
        });
  }

  void CreateSession(const WorkerSessionOptions& session, const CallOptions& options,
                     Done done) override {
    wire::CreateSessionRequest request;
    request.set_incarnation(options.incarnation);
    request.set_session_handle(session.handle);
    request.set_isolate(session.isolate_state);
    request.set_lease_ms(session.lease_ms);
    for (const TaskId& task : session.tasks) {
      wire::TaskIncarnation* const t = request.add_task();
      t->set_task(task.name);
      t->set_address(task.address);
      t->set_incarnation(task.incarnation);
    }
    Call<wire::CreateSessionResponse>(&Stub::PrepareAsyncCreateSession, request, options,
                                      std::move(done));
  }

  void DeleteSession(const std::string& session, const CallOptions& options, Done done) override {
    wire::DeleteSessionRequest request;
    request.set_incarnation(options.incarnation);
    request.set_session_handle(session);
    Call<wire::DeleteSessionResponse>(&Stub::PrepareAsyncDeleteSession, request, options,
                                      std::move(done));
  }

  void RegisterGraph(const std::string& session, uint64_t graph, std::vector<Partition> partitions,
                     const TrainingProgram& program, const CallOptions& options,
                     Done done) override {
    const auto registration = std::make_shared<Registration>(
        Registration{std::move(partitions), options,
                     env_.NowNanos() + TimeoutNanos(options.timeout_ms), std::move(done)});
    wire::RegisterGraphRequest& request = registration->request;
    request.set_incarnation(options.incarnation);
    request.set_session_handle(session);
    request.set_graph_handle(graph);
    if (!program.empty()) ToProto(program, request.mutable_program());
    PieceLimits limits = limits_;
    limits.whole_bytes_max /= std::max<int64_t>(1, registration->partitions.size());
    for (const Partition& partition : registration->partitions) {
      registration->uploads.emplace_back(partition.graph, limits, env_.RandomU64());
    }
    Continue(registration);
  }

  void DeregisterGraph(const std::string& session, uint64_t graph, const CallOptions& options,
                       Done done) override {
    wire::DeregisterGraphRequest request;
    request.set_incarnation(options.incarnation);
    request.set_session_handle(session);
    request.set_graph_handle(graph);
    Call<wire::DeregisterGraphResponse>(&Stub::PrepareAsyncDeregisterGraph, request, options,
                                        std::move(done));
  }

  void RunGraph(const RunGraphArgs& args, const CallOptions& options, Done done) override {
    wire::RunGraphRequest request;
    request.set_incarnation(options.incarnation);
    request.set_session_handle(args.session);
    request.set_graph_handle(args.graph);
    request.set_step_id(static_cast<uint64_t>(args.step_id));
    request.set_want_step_stats(args.stats != nullptr);
    if (args.deadline_ns != 0) {
      const int64_t left_ns = args.deadline_ns - env_.NowNanos();
      request.set_deadline_ms(std::max<int64_t>(1, left_ns / kNanosPerMilli));
    }
    RunGraphStream::Ended ended = [stats = args.stats, done = std::move(done)](
                                      Status status, wire::RunGraphResponse& response) mutable {
      if (status.ok()) status = FromProto(response.error());
      if (status.ok() && stats != nullptr) status = AddStats(response.step_stats(), stats);
      std::move(done)(std::move(status));
    };
    if (calls_ != nullptr) {
      if (calls_->Run(worker_, request, &ended)) return;
      AskToConnect(&request);
    }
    Run(std::move(request), std::move(ended));
  }

  void AbortStep(int64_t step_id, const Status& why, const CallOptions& options,
                 Done done) override {
    wire::AbortStepRequest request;
    request.set_incarnation(options.incarnation);
    request.set_step_id(static_cast<uint64_t>(step_id));
    ToProto(why, request.mutable_cause());
    Call<wire::AbortStepResponse>(&Stub::PrepareAsyncAbortStep, request, options, std::move(done));
  }

  void AbandonStep(int64_t step_id) override {
    if (calls_ != nullptr) calls_->Abandon(step_id);
    std::shared_ptr<RunGraphStream> steps;
    {
      MutexLock lock(mu_);
      steps = steps_;
    }
    if (steps != nullptr) steps->Abandon(step_id);
  }

  void Reset(const std::vector<std::string>& containers, const CallOptions& options,
             Done done) override {
    wire::ResetRequest request;
    request.set_incarnation(options.incarnation);
    for (const std::string& container : containers) request.add_container(container);
    Call<wire::ResetResponse>(&Stub::PrepareAsyncReset, request, options, std::move(done));
  }

  void Shutdown(const std::string& reason, const CallOptions& options, Done done) override {
    wire::ShutdownRequest request;
    request.set_incarnation(options.incarnation);
    request.set_reason(reason);
    Call<wire::ShutdownResponse>(&Stub::PrepareAsyncShutdown, request, options, std::move(done));
  }

 private:
  // A graph that is being registered.
  struct Registration {
    std::vector<Partition> partitions;
    CallOptions options;
    int64_t deadline_ns = 0;  // of all calls
    Done done;
    std::vector<GraphUpload> uploads = {};    // of the partitions
    wire::RegisterGraphRequest request = {};  // the last one, with the partitions that are complete
  };

  // Returns the options of the next call.
  CallOptions CallOptionsOf(const Registration& graph) const {
    CallOptions options = graph.options;
    options.timeout_ms = (graph.deadline_ns - env_.NowNanos()) / kNanosPerMilli;
    return options;
  }
  // Sends the next part of a graph, and the following ones when it is answered. The last request
  // contains the nodes of all partitions.
  void Continue(const std::shared_ptr<Registration>& graph) {
    wire::RegisterGraphRequest& request = graph->request;
    while (request.partition_size() < static_cast<int>(graph->partitions.size())) {
      const int next = request.partition_size();
      wire::Partition* const partition = request.add_partition();
      partition->set_device(graph->partitions[next].device);
      graph->uploads[next].Next(partition->mutable_graph());
      if (ConstantPieces::IsPiece(partition->graph())) return SendPart(graph);
    }
    constexpr size_t kMessageBytesMax = (size_t{1} << 31) - 1;  // protobuf's limit
    if (request.ByteSizeLong() > kMessageBytesMax) {
      return std::move(graph->done)(ResourceExhausted(
          "the graph for ", name_, " is larger than 2 GiB without its large constants of numbers"));
    }
    const CallOptions options = CallOptionsOf(*graph);
    if (options.timeout_ms <= 0) return std::move(graph->done)(TooLate(*graph));
    Call<wire::RegisterGraphResponse>(&Stub::PrepareAsyncRegisterGraph, request, options,
                                      std::move(graph->done));
  }
  // Sends the last partition of the request alone, and removes it from the request.
  void SendPart(const std::shared_ptr<Registration>& graph) {
    CallOptions options = CallOptionsOf(*graph);
    if (options.timeout_ms <= 0) return std::move(graph->done)(TooLate(*graph));
    options.timeout_ms = std::min(options.timeout_ms, kPartTimeoutMs);
    wire::RegisterGraphRequest& request = graph->request;
    wire::RegisterGraphRequest part;
    part.set_incarnation(request.incarnation());
    part.set_session_handle(request.session_handle());
    part.set_graph_handle(request.graph_handle());
    part.mutable_partition()->AddAllocated(request.mutable_partition()->ReleaseLast());
    Call<wire::RegisterGraphResponse>(&Stub::PrepareAsyncRegisterGraph, part, options,
                                      Done([this, graph](const Status& sent) {
                                        // graph->done keeps this client alive.
                                        threads_.Schedule([this, graph, sent] {
                                          if (sent.ok()) return Continue(graph);
                                          std::move(graph->done)(sent);
                                        });
                                      }));
  }
  Status TooLate(const Registration& graph) const {
    return DeadlineExceeded(name_, ": the graph was not sent within ", graph.options.timeout_ms,
                            " ms");
  }

  using Stub = wire::Worker::Stub;
  template <class Request, class Response>
  using Prepare = std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> (Stub::*)(
      grpc::ClientContext*, const Request&, grpc::CompletionQueue*);

  template <class Response, class Request>
  void Call(Prepare<Request, Response> prepare, const Request& request, const CallOptions& options,
            typename ClientCall<Response>::Ended ended) {
    ClientCall<Response>::Start(
        loop_, name_, options.timeout_ms,
        [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
          return (stub().get()->*prepare)(context, request, queue);
        },
        std::move(ended));
  }
  template <class Response, class Request>
  void Call(Prepare<Request, Response> prepare, const Request& request, const CallOptions& options,
            Done done) {
    typename ClientCall<Response>::Ended ended = [done = std::move(done)](const Status& status,
                                                                          Response&) mutable {
      std::move(done)(status);
    };
    Call<Response, Request>(prepare, request, options, std::move(ended));
  }

  // Replaces an Unavailable error by one that says what is wrong with the security settings of the
  // two tasks, if that is known by now.
  Status Explain(const Status& status) {
    if (!absl::IsUnavailable(status)) return status;
    const std::string mismatch = channels_.Mismatch(address_);
    return mismatch.empty() ? status : Unavailable(name_, ": ", mismatch);
  }

  static StatusOr<TaskStatus> ParseStatus(const wire::GetStatusResponse& response) {
    const wire::TaskIncarnation& self = response.self();
    TaskStatus status{
        .self = {self.task(), self.address(), self.incarnation()},
        .serving = response.serving(),
        .protocol = response.protocol(),
        .running_steps = {response.running_step().begin(), response.running_step().end()},
        .unknown_sessions = {response.unknown_session().begin(), response.unknown_session().end()},
        .wall_ns = response.wall_clock_ns()};
    if (response.protocol_version() != kProtocolVersion) {
      return FailedPrecondition(status.self.ToString(), " speaks version ",
                                response.protocol_version(), " of the worker protocol, this task ",
                                kProtocolVersion);
    }
    for (int i = 0; i < response.device_size(); ++i) {
      ASSIGN_OR_RETURN(DeviceInfo info, FromProto(response.device(i)));
      if (i < response.device_lanes_size()) {
        info.lanes = std::clamp(response.device_lanes(i), 1, kLanesMax);
      }
      if (i < response.device_rates_size()) {
        const wire::DeviceRates& rates = response.device_rates(i);
        info.rates = {.flops_per_ns = rates.flops_per_ns(),
                      .bytes_per_ns = rates.bytes_per_ns(),
                      .launch_ns = rates.launch_ns()};
        RETURN_IF_ERROR(
            Annotate(CheckRates(info.rates),
                     StrCat(status.self.ToString(), " tells of ", info.name.ToString())));
      }
      status.devices.push_back(std::move(info));
    }
    return status;
  }

  static Status AddStats(const tensorflow::StepStats& proto, StepStatsCollector* stats) {
    ASSIGN_OR_RETURN(std::vector<DeviceStats> devices, FromProto(proto));
    for (DeviceStats& device : devices) {
      for (NodeStats& node : device.nodes) stats->Add(device.device, std::move(node));
    }
    return OkStatus();
  }

  // Connects to the worker, and asks the worker to connect to this task, for the next steps.
  void AskToConnect(wire::RunGraphRequest* request) {
    calls_->Connect({task_, address_, request->incarnation()});
    wire::TaskIncarnation* const self = request->mutable_connect_to();
    self->set_task(calls_->self().name);
    self->set_address(calls_->self().address);
    self->set_incarnation(calls_->self().incarnation);
  }

  const std::string name_;
  const std::string task_;
  // Runs the step over the stream. Opens a stream if there is none, or if the last one was lost.
  void Run(wire::RunGraphRequest request, RunGraphStream::Ended ended) {
    std::shared_ptr<RunGraphStream> opened;
    {
      MutexLock lock(mu_);
      if (steps_ != nullptr && steps_->Run(request, &ended)) return;
      steps_ = opened = std::make_shared<RunGraphStream>(CurrentStub(), loop_, name_);
      CHECK(opened->Run(std::move(request), &ended), "a new stream is lost");
    }
    opened->Open();
  }

  std::shared_ptr<Stub> stub() {
    MutexLock lock(mu_);
    return CurrentStub();
  }
  std::shared_ptr<Stub> CurrentStub() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    auto channel = channels_.To(address_);
    if (channel != channel_) stub_ = wire::Worker::NewStub(channel);
    channel_ = std::move(channel);
    return stub_;
  }

  const std::string address_;
  Channels& channels_;
  Env& env_;
  Scheduler& threads_;
  CompletionLoop& loop_;
  StepCalls* calls_;
  const PieceLimits limits_;
  TaskName worker_;
  Mutex mu_;                                                     // locked before a stream's mutex
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mu_);  // the channel of the stub
  std::shared_ptr<Stub> stub_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<RunGraphStream> steps_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<WorkerClient> NewGrpcWorkerClient(const TaskId& task, Channels& channels, Env& env,
                                                  Scheduler& threads, CompletionLoop& loop,
                                                  StepCalls* calls, const PieceLimits& limits) {
  return std::make_unique<GrpcWorkerClient>(task, channels, env, threads, loop, calls, limits);
}

}  // namespace penstock
