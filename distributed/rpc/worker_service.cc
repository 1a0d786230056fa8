// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/worker_service.h"

#include <algorithm>
#include <utility>

#include "core/base/timeout.h"
#include "distributed/calls/unary_call.h"
#include "distributed/rpc/import_graph.h"
#include "distributed/rpc/protocol.h"
#include "distributed/rpc/value_proto.h"

namespace penstock {
namespace {

bool HasDevice(const Worker& worker, const std::string& name) {
  for (const DeviceInfo& device : worker.devices()) {
    if (device.name.ToString() == name) return true;
  }
  return false;
}

}  // namespace

void WorkerService::Use(Options options) {
  options_ = std::move(options);
  if (options_.calls == nullptr) return;
  options_.calls->Serve(
      [this](const auto& request, auto answer) { RunGraph(request, std::move(answer)); },
      [this](int64_t step_id) { Abort(step_id); });
}

void WorkerService::Listen(CompletionLoop& loop, grpc::ServerCompletionQueue& queue) {
  using AS = WorkerGrpcService;
  const CallListener<AS> listen(service_, loop, queue);
  // Answers on the polling thread: for calls that take little time.
  const auto here = [this](auto handle) {
    return [this, handle](auto call) { call->Finish((this->*handle)(call->request())); };
  };
  const auto on_pool = [this, here](auto handle) {
    return [this, answer = here(handle)](auto call) {
      options_.threads->Schedule([answer, call] { answer(call); });
    };
  };
  listen(&AS::RequestGetStatus,
         [this](auto call) { call->Finish(GetStatus(call->request(), &call->response())); });
  listen(&AS::RequestCreateSession, here(&WorkerService::CreateSession));
  listen(&AS::RequestDeleteSession, on_pool(&WorkerService::DeleteSession));
  listen(&AS::RequestRegisterGraph, [this](auto call) {
    options_.threads->Schedule([this, call] {
      call->response() = BytesOf(wire::RegisterGraphResponse());
      call->Finish(RegisterGraph(&call->request()));
    });
  });
  listen(&AS::RequestDeregisterGraph, on_pool(&WorkerService::DeregisterGraph));
  listen(&AS::RequestAbortStep, here(&WorkerService::AbortStep));
  listen(&AS::RequestReset, on_pool(&WorkerService::Reset));
  listen(&AS::RequestShutdown, [this](auto call) {
    // Answers first, so that the shutdown cannot cancel the call.
    const Status status = CheckShutdown(call->request());
    const std::string reason = call->request().reason();
    call->Finish(status);
    if (status.ok()) options_.shutdown(reason);
  });
  RunGraphSink::Listen(std::make_shared<const RunGraphSink::Endpoint>(
      RunGraphSink::Endpoint{.service = &service_,
                             .loop = &loop,
                             .queue = &queue,
                             .run =
                                 [this](const auto& request, auto answer) {
                                   ConnectToMaster(request);
                                   RunGraph(request, std::move(answer));
                                 },
                             .abort = [this](int64_t step_id) { Abort(step_id); }}));
}

Status WorkerService::CheckIncarnation(uint64_t incarnation) const {
  const TaskId& self = options_.worker->self();
  if (incarnation == self.incarnation) return OkStatus();
  if (incarnation == 0) return InvalidArgument("the call does not name an incarnation");
  return Aborted(self.ToString(), " has restarted");
}

Status WorkerService::CheckSession(const std::string& handle) const {
  if (options_.worker->RenewLeases({handle}).empty()) return OkStatus();
  return Aborted("session ", handle, " is not known to ", options_.worker->self().ToString(),
                 "; it may have been restarted");
}

Status WorkerService::GetStatus(const wire::GetStatusRequest& request,
                                wire::GetStatusResponse* response) {
  if (request.incarnation() != 0) RETURN_IF_ERROR(CheckIncarnation(request.incarnation()));
  const TaskId& self = options_.worker->self();
  response->mutable_self()->set_task(self.name);
  response->mutable_self()->set_incarnation(self.incarnation);
  response->mutable_self()->set_address(self.address);
  response->set_serving(options_.worker->serving());
  response->set_protocol_version(kProtocolVersion);
  response->set_protocol(std::string(options_.worker->protocol()));
  response->set_wall_clock_ns(options_.worker->WallNanos());
  for (const int64_t id : options_.worker->steps().running()) {
    response->add_running_step(static_cast<uint64_t>(id));
  }
  if (request.want_devices()) {
    for (const DeviceInfo& device : options_.worker->devices()) {
      ToProto(device, response->add_device());
      response->add_device_lanes(device.lanes);
      wire::DeviceRates* const rates = response->add_device_rates();
      rates->set_flops_per_ns(device.rates.flops_per_ns);
      rates->set_bytes_per_ns(device.rates.bytes_per_ns);
      rates->set_launch_ns(device.rates.launch_ns);
    }
  }
  const auto& handles = request.session_handle();
  for (const std::string& unknown :
       options_.worker->RenewLeases({handles.begin(), handles.end()})) {
    response->add_unknown_session(unknown);
  }
  return OkStatus();
}

Status WorkerService::CreateSession(const wire::CreateSessionRequest& request) {
  RETURN_IF_ERROR(CheckIncarnation(request.incarnation()));
  if (request.session_handle().empty()) return InvalidArgument("a session without a handle");
  WorkerSessionOptions options{.handle = request.session_handle(),
                               .isolate_state = request.isolate(),
                               .lease_ms = std::max<int64_t>(0, request.lease_ms())};
  for (const wire::TaskIncarnation& task : request.task()) {
    options.tasks.push_back({task.task(), task.address(), task.incarnation()});
  }
  return options_.worker->CreateSession(options);
}

Status WorkerService::DeleteSession(const wire::DeleteSessionRequest& request) {
  RETURN_IF_ERROR(CheckIncarnation(request.incarnation()));
  options_.worker->DeleteSession(request.session_handle());
  options_.uploads->Drop(request.session_handle());
  return OkStatus();
}

StatusOr<std::unique_ptr<ConstantPieces>> WorkerService::AddPart(
    const wire::RegisterGraphRequest& request, wire::Partition* partition) {
  const std::string& session = request.session_handle();
  RETURN_IF_ERROR(CheckSession(session));
  if (ConstantPieces::IsPiece(partition->graph()) && request.partition_size() != 1) {
    return InvalidArgument("a part of a graph with ", request.partition_size() - 1,
                           " other partitions");
  }
  // The device becomes a part of the upload's name, which takes memory.
  if (!HasDevice(*options_.worker, partition->device())) {
    return InvalidArgument("a partition for ", partition->device(), ", which ",
                           options_.worker->self().name, " does not have");
  }
  auto constants = options_.uploads->Add({session, request.graph_handle(), partition->device()},
                                         partition->mutable_graph());
  const Status known = CheckSession(session);  // the session may have ended meanwhile
  if (known.ok()) return constants;
  options_.uploads->Drop(session);
  return known;
}

Status WorkerService::RegisterGraph(grpc::ByteBuffer* bytes) {
  wire::RegisterGraphRequest request;
  RETURN_IF_ERROR(Parse(bytes, &request));
  RETURN_IF_ERROR(CheckIncarnation(request.incarnation()));
  const std::string& session = request.session_handle();
  std::vector<Partition> partitions;
  for (wire::Partition& partition : *request.mutable_partition()) {
    std::unique_ptr<ConstantPieces> constants;
    if (GraphUploads::IsPart(partition.graph())) {
      ASSIGN_OR_RETURN(constants, AddPart(request, &partition));
      if (constants == nullptr) return OkStatus();  // the nodes come with a later call
    }
    Graph graph(*options_.registry);
    RETURN_IF_ERROR(ImportForTask(partition.mutable_graph(), constants.get(),
                                  options_.worker->self().name, &graph));
    partitions.push_back({partition.device(), std::move(graph)});
  }
  return options_.worker->RegisterGraph(session, request.graph_handle(), std::move(partitions),
                                        FromProto(request.program()));
}

Status WorkerService::DeregisterGraph(const wire::DeregisterGraphRequest& request) {
  RETURN_IF_ERROR(CheckIncarnation(request.incarnation()));
  options_.worker->DeregisterGraph(request.session_handle(), request.graph_handle());
  // If registering the graph has failed, only some of its parts have come.
  options_.uploads->Drop(request.session_handle(), request.graph_handle());
  return OkStatus();
}

Status WorkerService::AbortStep(const wire::AbortStepRequest& request) {
  RETURN_IF_ERROR(CheckIncarnation(request.incarnation()));
  Status cause = FromProto(request.cause());
  if (cause.ok()) cause = Cancelled("the step was aborted by its master");
  options_.worker->AbortStep(static_cast<int64_t>(request.step_id()), cause);
  return OkStatus();
}

Status WorkerService::Reset(const wire::ResetRequest& request) {
  RETURN_IF_ERROR(CheckIncarnation(request.incarnation()));
  const auto& containers = request.container();
  options_.worker->Reset({containers.begin(), containers.end()});
  return OkStatus();
}

// A request without an incarnation is for any incarnation, because tools do not know the number.
Status WorkerService::CheckShutdown(const wire::ShutdownRequest& request) const {
  return request.incarnation() == 0 ? OkStatus() : CheckIncarnation(request.incarnation());
}

void WorkerService::Abort(int64_t step_id) {
  options_.worker->AbortStep(step_id, Cancelled("the master does not wait for the step any more"));
}

void WorkerService::ConnectToMaster(const wire::RunGraphRequest& request) {
  if (options_.calls == nullptr || !request.has_connect_to()) return;
  const wire::TaskIncarnation& master = request.connect_to();
  options_.calls->Connect({master.task(), master.address(), master.incarnation()});
}

void WorkerService::RunGraph(const wire::RunGraphRequest& request, RunGraphSink::Answer answer) {
  const Status status = CheckIncarnation(request.incarnation());
  if (!status.ok()) {
    wire::RunGraphResponse refused;
    ToProto(status, refused.mutable_error());
    return answer(std::move(refused));
  }
  const auto stats = request.want_step_stats() ? std::make_shared<StepStatsCollector>() : nullptr;
  RunGraphArgs args{.session = request.session_handle(),
                    .graph = request.graph_handle(),
                    .step_id = static_cast<int64_t>(request.step_id()),
                    .stats = stats.get(),
                    .may_start_here = true};
  if (request.deadline_ms() > 0) {
    args.deadline_ns = options_.env->NowNanos() + TimeoutNanos(request.deadline_ms());
  }
  options_.worker->RunGraph(args, Done([stats, answer = std::move(answer)](const Status& ended) {
                              wire::RunGraphResponse response;
                              if (!ended.ok()) {
                                ToProto(ended, response.mutable_error());
                              } else if (stats != nullptr) {
                                ToProto(stats->Take(), response.mutable_step_stats());
                              }
                              answer(std::move(response));
                            }));
}

}  // namespace penstock
