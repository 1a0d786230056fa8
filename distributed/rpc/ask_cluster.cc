// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/ask_cluster.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/strip.h"
#include "core/base/error_origin.h"
#include "core/base/scheduler.h"
#include "distributed/calls/channel.h"
#include "distributed/calls/status_proto.h"
#include "distributed/calls/unary_call.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/rpc/value_proto.h"
#include "distributed/security/connection_diagnosis.h"
#include "distributed/security/credentials.h"
#include "proto/penstock/insight.grpc.pb.h"

namespace penstock {
namespace {

// How long to wait for the asked task, in milliseconds: kAskedTaskMs and kTraceMs in addition to
// the caller's timeout, kCostsMs in all.
constexpr int64_t kAskedTaskMs = 1'000, kCostsMs = 60'000, kTraceMs = 10'000;
// The maximum number of silent tasks that are asked directly: each needs a thread.
constexpr size_t kSilentTasksMax = 16;

// A task that this process, which is outside the cluster, calls.
struct AskedTask {
  std::string address;
  std::shared_ptr<const Credentials> credentials;
  std::unique_ptr<wire::Insight::Stub> stub;
};

StatusOr<AskedTask> TaskAt(const std::string& target) {
  AskedTask task{.address = std::string(absl::StripPrefix(target, "grpc://"))};
  const auto parsed = HostPort::Parse(task.address);
  if (!parsed.ok()) {
    return InvalidArgument("'", target, "' is not the address of a task, grpc://HOST:PORT: ",
                           parsed.status().message());
  }
  ASSIGN_OR_RETURN(task.credentials, ProcessCredentials());
  task.stub = std::make_unique<wire::Insight::Stub>(
      NewChannel(task.address, KeepaliveOptions(), *task.credentials));
  return task;
}

// Explains in words why the task has not answered.
Status ExplainNoAnswer(const AskedTask& task, const Status& status) {
  if (absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) {
    const std::string mismatch = DiagnoseConnection(task.address, *task.credentials);
    if (!mismatch.empty()) {
      return Status(StatusCode::kUnauthenticated,
                    StrCat("the task at ", task.address, ": ", mismatch));
    }
    return WithMessage(status,
                       StrCat("the task at ", task.address, " does not answer: it is dead, ",
                              "stopped or cannot be reached; another task of the cluster ",
                              "may tell more (", status.message(), ")"));
  }
  if (absl::IsUnimplemented(status)) {
    return Unimplemented("the server at ", task.address, " is not a Penstock task of this version");
  }
  return WithMessage(status, StrCat("the task at ", task.address, ": ", status.message()));
}

Status AddTrace(const wire::TracedTask& task, ClusterTrace* all) {
  const wire::TaskTrace& trace = task.trace();
  all->masters.push_back({.task = task.name(),
                          .status = task.has_error() ? FromProto(task.error()) : OkStatus(),
                          .sessions = trace.sessions(),
                          .steps_begun = trace.steps_begun(),
                          .cut = trace.cut()});
  for (const wire::RecordedStep& step : trace.step()) {
    ASSIGN_OR_RETURN(std::vector<DeviceStats> devices, FromProto(step.stats()));
    all->steps.push_back({.master = task.name(),
                          .session = step.session(),
                          .fetches = {step.fetch().begin(), step.fetch().end()},
                          .targets = {step.target().begin(), step.target().end()},
                          .start_ns = step.start_ns(),
                          .end_ns = step.end_ns(),
                          .devices = std::move(devices)});
  }
  for (const wire::ClockReading& reading : trace.clock()) {
    all->readings.push_back({task.name(), reading.task(), reading.offset_ns(), reading.error_ns()});
  }
  for (const wire::Road& road : trace.road()) {
    all->protocols[{road.from(), task.name()}] = road.protocol();
  }
  return OkStatus();
}

}  // namespace

StatusOr<wire::ClusterReport> AskCluster(const std::string& target, int64_t timeout_ms) {
  ASSIGN_OR_RETURN(const AskedTask task, TaskAt(target));
  grpc::ClientContext context;
  SetTimeout(timeout_ms + kAskedTaskMs, &context);
  wire::GetClusterRequest request;
  request.set_timeout_ms(timeout_ms);
  wire::ClusterReport report;
  const Status status = FromGrpc(task.stub->GetCluster(&context, request, &report), "");
  if (!status.ok()) return ExplainNoAnswer(task, status);
  return report;
}

void AskSilentTasks(wire::ClusterReport* report, int64_t timeout_ms) {
  std::vector<std::unique_ptr<Thread>> threads;  // their destructors wait
  for (wire::ClusterTask& task : *report->mutable_task()) {
    if (!task.has_error() || threads.size() == kSilentTasksMax) continue;
    threads.push_back(Scheduler::Real().StartThread("ask a silent task", [&task, timeout_ms] {
      const auto asked = TaskAt(task.address());
      if (!asked.ok()) return;
      grpc::ClientContext context;
      SetTimeout(timeout_ms, &context);
      wire::TaskReport answer;
      const grpc::Status status = asked->stub->GetTask(&context, {}, &answer);
      // Ignores the answer of a task of another cluster: from this process, the address may lead to
      // another host.
      if (!status.ok() || answer.self().task() != task.name()) return;
      *task.mutable_report() = std::move(answer);
      task.set_allocated_unreached_by_asked(task.release_error());
    }));
  }
}

StatusOr<wire::CostReport> AskCosts(const std::string& target, int steps_max) {
  ASSIGN_OR_RETURN(const AskedTask task, TaskAt(target));
  grpc::ClientContext context;
  SetTimeout(kCostsMs, &context);
  wire::GetCostsRequest request;
  request.set_steps_max(steps_max);
  wire::CostReport report;
  const Status status = FromGrpc(task.stub->GetCosts(&context, request, &report), "");
  if (absl::IsDeadlineExceeded(status)) {
    return DeadlineExceeded("the task at ", task.address, " takes longer than ", kCostsMs / 1'000,
                            " s to predict the steps of its sessions: ask for fewer steps; or it ",
                            "has stopped: see whether it answers `penstock status`");
  }
  if (!status.ok()) return ExplainNoAnswer(task, status);
  return report;
}

StatusOr<ClusterTrace> AskTrace(const std::string& target, int64_t steps, int64_t timeout_ms,
                                Cancellation* cancellation) {
  ASSIGN_OR_RETURN(const AskedTask task, TaskAt(target));
  grpc::ClientContext context;
  SetTimeout(timeout_ms + kTraceMs, &context);
  Cancellation::Token token = 0;
  const bool registered =
      cancellation != nullptr &&
      cancellation->Register([&](const Status&) { context.TryCancel(); }, &token);
  if (cancellation != nullptr && !registered) return cancellation->status();
  wire::TraceRequest request;
  request.set_steps(steps);
  request.set_timeout_ms(timeout_ms);
  wire::ClusterTrace answer;
  const Status status = FromGrpc(task.stub->TraceCluster(&context, request, &answer), "");
  if (registered) cancellation->Deregister(token);
  if (!status.ok()) return ExplainNoAnswer(task, status);
  ClusterTrace trace{.asked = answer.asked()};
  for (const wire::TracedTask& traced : answer.task()) {
    RETURN_IF_ERROR(Annotate(AddTrace(traced, &trace), StrCat("the trace of ", traced.name())));
  }
  return trace;
}

StatusOr<std::map<std::pair<std::string, std::string>, std::string>> AskRoads(
    const std::string& target, int64_t timeout_ms) {
  ASSIGN_OR_RETURN(const AskedTask task, TaskAt(target));
  grpc::ClientContext context;
  SetTimeout(timeout_ms + kTraceMs, &context);
  wire::TraceRequest request;
  request.set_roads_only(true);
  request.set_timeout_ms(timeout_ms);
  wire::ClusterTrace answer;
  const Status status = FromGrpc(task.stub->TraceCluster(&context, request, &answer), "");
  if (!status.ok()) return ExplainNoAnswer(task, status);
  ClusterTrace trace;
  for (const wire::TracedTask& traced : answer.task()) {
    RETURN_IF_ERROR(AddTrace(traced, &trace));
  }
  return std::move(trace.protocols);
}

}  // namespace penstock
