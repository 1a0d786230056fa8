// SPDX-License-Identifier: Apache-2.0
//
// The calls of MasterService that create, extend, close and reset sessions. The calls that
// run steps are in step_service.cc.
#include "distributed/rpc/master_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/base/error_origin.h"
#include "core/base/log.h"
#include "core/base/timeout.h"
#include "distributed/rpc/import_graph.h"
#include "distributed/rpc/options_without_effect.h"
#include "distributed/rpc/protocol.h"
#include "distributed/rpc/session_config.h"
#include "distributed/rpc/value_proto.h"
#include "proto/tensorflow/config.pb.h"
#include "proto/tensorflow/master_service.pb.h"

namespace penstock {
namespace {

// The server's reflection needs the generated file that describes the service. No other code
// refers to that file, which has no messages, so the linker would drop it.
[[gnu::used]] const auto* const kServiceDescription =
    &descriptor_table_proto_2ftensorflow_2fmaster_5fservice_2eproto;

Status CheckCluster(const tensorflow::ClusterDef& def, const ClusterSpec& cluster) {
  if (def.job().empty()) return OkStatus();
  const StatusOr<ClusterSpec> wanted = FromProto(def);
  RETURN_IF_ERROR(Annotate(wanted.status(), "config.cluster_def"));
  if (*wanted == cluster) return OkStatus();
  return Unimplemented("config.cluster_def: a session uses the cluster of its server (",
                       cluster.ToString(), ")");
}

StatusOr<SessionOptions> OptionsOf(const tensorflow::ConfigProto& config,
                                   const ClusterSpec& cluster) {
  if (config.use_per_session_threads() || config.session_inter_op_thread_pool_size() > 0) {
    return InvalidArgument("Distributed session does not support session thread pool options.");
  }
  RETURN_IF_ERROR(CheckCluster(config.cluster_def(), cluster));
  RETURN_IF_ERROR(CheckParameters(config));
  return FromProto(config);
}

}  // namespace

Status RecentRequests::Add(int64_t id, string_view what) {
  if (id == 0) return OkStatus();
  MutexLock lock(mu_);
  if (!ids_.insert(id).second) {
    return Aborted("The same ", what, " (Master) request was received twice.");
  }
  order_.push_back(id);
  if (order_.size() > kRemembered) {
    ids_.erase(order_.front());
    order_.pop_front();
  }
  return OkStatus();
}

Status MasterService::SetDefaultConfig(const std::string& text) {
  ASSIGN_OR_RETURN(default_config_, ParseSessionConfig(text));
  return OkStatus();
}

void MasterService::Listen(Master& master, GraphUploads& uploads, Scheduler& threads,
                           CompletionLoop& loop, grpc::ServerCompletionQueue& queue) {
  master_ = &master;
  uploads_ = &uploads;
  threads_ = &threads;
  tensorflow::ConfigProto default_config = default_config_;
  // If both are set, NumThreadsOf takes the server's number of threads from them: then the log must
  // not call them ignored.
  if (default_config.intra_op_parallelism_threads() != 0 &&
      default_config.inter_op_parallelism_threads() != 0) {
    default_config.clear_intra_op_parallelism_threads();
    default_config.clear_inter_op_parallelism_threads();
  }
  LogIgnoredOptions("the server's default_session_config sets",
                    OptionsWithoutEffect(default_config));
  AcceptCalls(loop, queue);
}

void MasterService::AcceptCalls(CompletionLoop& loop, grpc::ServerCompletionQueue& queue) {
  using AS = AsyncService;
  const CallListener<AS> listen(service_, loop, queue);
  // Runs calls that may block, each on its own thread.
  const auto on_thread = [this](auto handle) {
    return [this, handle](auto call) {
      const Status started = call_threads_.Run([call, handle] { call->Finish(handle(*call)); });
      if (!started.ok()) call->Finish(started);
    };
  };
  listen(&AS::RequestCreateSession, [this](auto call) { CreateSession(std::move(call)); });
  listen(&AS::RequestExtendSession, on_thread([this](auto& call) { return ExtendSession(&call); }));
  listen(&AS::RequestCloseSession, on_thread([this](auto& call) {
    const Status closed = master_->CloseSession(call.request().session_handle());
    uploads_->Drop(call.request().session_handle());
    return closed;
  }));
  listen(&AS::RequestReset, on_thread([this](auto& call) { return Reset(call.request()); }));
  listen(&AS::RequestMakeCallable, on_thread([this](auto& call) {
    return MakeCallable(call.request(), call.context(), &call.response());
  }));
  listen(&AS::RequestReleaseCallable, [this](auto call) {
    threads_->Schedule(
        [this, call] { call->Finish(ReleaseCallable(call->request(), call->context())); });
  });
  listen(&AS::RequestListDevices, [this](auto call) {
    call->Finish(ListDevices(call->request(), call->context(), &call->response()));
  });
  listen(&AS::RequestPartialRunSetup, [this](auto call) { SetUpPartialRun(std::move(call)); });
  listen(&AS::RequestRunStep, [this](auto call) { RunStep(std::move(call)); });
  listen(&AS::RequestRunCallable, [this](auto call) { RunCallable(std::move(call)); });
}

struct MasterService::NewSession {
  std::shared_ptr<GraphCall> call;
  SessionOptions options;
  Graph graph;
  ClientLimits::Permit permit;

  void Finish(const Status& status) { call->Finish(ShowNode(status)); }
};

void MasterService::CreateSession(std::shared_ptr<GraphCall> call) {
  const auto wanted =
      std::make_shared<NewSession>(NewSession{.call = call, .graph = master_->NewGraph()});
  const Status started = call_threads_.Run([this, wanted] {
    const Status read = ReadNewSession(wanted.get());
    if (!read.ok()) return wanted->Finish(read);
    const auto wait = master_->AwaitTasks(wanted->options,
                                          [this, wanted](StatusOr<std::vector<SessionTask>> tasks) {
                                            if (!tasks.ok()) return wanted->Finish(tasks.status());
                                            MakeSession(wanted, *std::move(tasks));
                                          });
    if (wait == nullptr) return;
    wanted->call->OnCancel([weak = std::weak_ptr(wait)] {
      const auto wait = weak.lock();
      if (wait) wait->Cancel(Cancelled("the client does not wait for the session any more"));
    });
  });
  if (!started.ok()) call->Finish(started);
}

Status MasterService::ReadNewSession(NewSession* wanted) {
  DropUnusedPermits();
  ASSIGN_OR_RETURN(wanted->permit, limits_->AddSession(ClientOf(wanted->call->context())));
  tensorflow::CreateSessionRequest request;
  RETURN_IF_ERROR(Parse(&wanted->call->request(), &request));
  tensorflow::ConfigProto config = default_config_;
  config.MergeFrom(request.config());
  ASSIGN_OR_RETURN(wanted->options, OptionsOf(config, master_->cluster()));
  LogIgnoredOptions("a client's ConfigProto sets", OptionsWithoutEffect(request.config()));
  return ImportForTask(request.graph_def(), master_->self().name, &wanted->graph);
}

void MasterService::LogIgnoredOptions(const std::string& where,
                                      const std::vector<std::string>& options) const {
  if (options.empty()) return;
  const std::string names = absl::StrJoin(options, ", ");
  Log({.level = LogLevel::kWarning,
       .task = master_->self().name,
       .event = "option_without_effect",
       .text = StrCat(where, " what has no effect here (docs/session_options.md): ", names),
       .fields = {{"options", names}},
       .limited = true});
}

void MasterService::LogIgnoredOptionsOnce(const std::string& where,
                                          std::vector<std::string> options) {
  if (options.empty()) return;
  {
    MutexLock lock(logged_mu_);
    std::erase_if(options,
                  [&](const std::string& option) ABSL_EXCLUSIVE_LOCKS_REQUIRED(logged_mu_) {
                    return !logged_.insert(StrCat(where, " ", option)).second;
                  });
  }
  LogIgnoredOptions(where, options);
}

void MasterService::KeepPermit(const std::shared_ptr<MasterSession>& session,
                               ClientLimits::Permit permit) {
  if (permit == nullptr) return;
  MutexLock lock(permits_mu_);
  permits_.push_back({session, std::move(permit)});
}

void MasterService::DropUnusedPermits() {
  MutexLock lock(permits_mu_);
  std::erase_if(permits_, [](const HeldPermit& taken) { return taken.session.expired(); });
}

void MasterService::MakeSession(std::shared_ptr<NewSession> wanted,
                                std::vector<SessionTask> tasks) {
  const Status started = call_threads_.Run([this, wanted, tasks = std::move(tasks)]() mutable {
    GraphCall& call = *wanted->call;
    const auto session = master_->CreateSession(wanted->options, std::move(wanted->graph),
                                                std::move(tasks), call.context().peer());
    if (!session.ok()) return wanted->Finish(session.status());
    KeepPermit(*session, std::move(wanted->permit));
    if (call.given_up()) {  // the client does not know the session, so it would never be closed
      (void)master_->CloseSession((*session)->handle());
      return wanted->Finish(Cancelled("the client does not wait for the session any more"));
    }
    tensorflow::CreateSessionResponse response;
    response.set_session_handle((*session)->handle());
    response.set_graph_version((*session)->version());
    call.context().AddTrailingMetadata(kMasterTaskMetadata, master_->self().name);
    call.response() = BytesOf(response);
    wanted->Finish(OkStatus());
  });
  if (!started.ok()) wanted->Finish(started);
}

StatusOr<std::shared_ptr<MasterSession>> MasterService::FindSession(
    const std::string& handle, const grpc::ServerContext& context) {
  ASSIGN_OR_RETURN(auto session, master_->FindSession(handle));
  session->NoteClientCall(context.peer());
  return session;
}

StatusOr<std::unique_ptr<ConstantPieces>> MasterService::AddPart(
    const MasterSession& session, tensorflow::ExtendSessionRequest* request) {
  // Checks the version with each part, because the upload of a graph may take minutes.
  const int64_t version = session.version(), expected = request->current_graph_version();
  if (expected >= 0 && expected != version) {
    return Aborted("Current version is ", version, " but caller expected ", expected, ".");
  }
  auto constants = uploads_->Add({.session = session.handle()}, request->mutable_graph_def());
  const Status known = master_->FindSession(session.handle()).status();
  if (known.ok()) return constants;
  uploads_->Drop(session.handle());  // the session was closed meanwhile
  return known;
}

Status MasterService::ExtendGraph(tensorflow::ExtendSessionRequest* request,
                                  const grpc::ServerContext& context,
                                  tensorflow::ExtendSessionResponse* response) {
  ASSIGN_OR_RETURN(const auto session, FindSession(request->session_handle(), context));
  tensorflow::GraphDef* const def = request->mutable_graph_def();
  std::unique_ptr<ConstantPieces> constants;
  if (GraphUploads::IsPart(*def)) {
    ASSIGN_OR_RETURN(constants, AddPart(*session, request));
    if (constants == nullptr) {  // the nodes come with a later call
      response->set_new_graph_version(session->version());
      return OkStatus();
    }
  }
  ASSIGN_OR_RETURN(const int64_t version,
                   session->Extend(request->current_graph_version(), [&](Graph* graph) {
                     return ImportForTask(def, constants.get(), master_->self().name, graph);
                   }));
  uploads_->Drop(session->handle());  // a graph that still arrives is for the old version
  response->set_new_graph_version(version);
  return OkStatus();
}

Status MasterService::ExtendSession(GraphCall* call) {
  tensorflow::ExtendSessionRequest request;
  tensorflow::ExtendSessionResponse response;
  RETURN_IF_ERROR(Parse(&call->request(), &request));
  RETURN_IF_ERROR(ShowNode(ExtendGraph(&request, call->context(), &response)));
  call->response() = BytesOf(response);
  return OkStatus();
}

Status MasterService::Reset(const tensorflow::ResetRequest& request) {
  const auto& containers = request.container();
  const auto& filters = request.device_filters();
  return master_->Reset({containers.begin(), containers.end()}, {filters.begin(), filters.end()});
}

Status MasterService::ListDevices(const tensorflow::ListDevicesRequest& request,
                                  const grpc::ServerContext& context,
                                  tensorflow::ListDevicesResponse* response) {
  const auto session = FindSession(request.session_handle(), context);
  if (!session.ok()) return InvalidArgument(session.status().message());
  const std::vector<SessionTask>& tasks = (*session)->tasks();
  for (size_t i = 0; i < tasks.size(); ++i) {
    for (const DeviceInfo& device : tasks[i].devices) {
      ToProto(device, i == 0 ? response->add_local_device() : response->add_remote_device());
    }
  }
  return OkStatus();
}

}  // namespace penstock
