// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/insight_service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/join.h"
#include "core/op/task_name.h"
#include "distributed/calls/status_proto.h"
#include "distributed/calls/unary_call.h"
#include "distributed/insight/cost_report.h"
#include "distributed/insight/task_report.h"
#include "distributed/rpc/protocol.h"
#include "distributed/rpc/trace_calls.h"
#include "distributed/rpc/value_proto.h"

namespace penstock {
namespace {

// The maximum timeout; a longer one in a request is reduced to this.
constexpr int64_t kTimeoutMsMax = 60'000;
constexpr int32_t kCostStepsDefault = 5, kCostStepsMax = 100;

wire::ReplicaReport ReportOf(const Replica::State& state, int64_t now_ns) {
  wire::ReplicaReport report;
  report.set_index(state.index);
  report.set_epoch(state.epoch);
  report.set_whole(state.whole);
  if (state.role == wire::REPLICA_FOLLOWER) report.set_role(wire::ReplicaReport::FOLLOWER);
  if (state.role != wire::REPLICA_PRIMARY) return report;
  report.set_role(wire::ReplicaReport::PRIMARY);
  report.set_whole(state.log.whole);
  report.set_feeding(state.log.feeding);
  if (!state.log.feeding) report.set_cannot_copy(state.cannot_copy);
  report.set_behind(state.log.behind);
  const int64_t since_ns = state.log.acknowledged_ns;
  report.set_acknowledged_ms(since_ns == 0 ? -1 : (now_ns - since_ns) / 1'000'000);
  report.set_waiting_steps(state.log.waiting_steps);
  return report;
}

// For a parameter server with two replicas, moves the one that serves to the task's main entry.
void PutPrimaryFirst(wire::ClusterTask* task) {
  if (!task->has_other_replica()) return;
  const auto serves = [](const wire::ClusterTask& process) {
    return process.report().replica().role() == wire::ReplicaReport::PRIMARY;
  };
  // For a moment after the network has cut off one replica, both may claim to be the primary; the
  // one with the higher epoch is right.
  const wire::ClusterTask& other = task->other_replica();
  const uint64_t epoch = serves(*task) ? task->report().replica().epoch() : 0;
  if (!serves(other) || other.report().replica().epoch() <= epoch) return;
  std::unique_ptr<wire::ClusterTask> primary(task->release_other_replica());
  primary->Swap(task);
  task->set_allocated_other_replica(primary.release());
}

}  // namespace

void InsightService::Listen(const Options& options, grpc::ServerCompletionQueue& queue) {
  options_ = options;
  using Service = wire::Insight::AsyncService;
  using TaskCall = UnaryCall<Service, wire::GetTaskRequest, wire::TaskReport>;
  using ClusterCall = UnaryCall<Service, wire::GetClusterRequest, wire::ClusterReport>;
  TaskCall::Listen(std::make_shared<const TaskCall::Endpoint>(TaskCall::Endpoint{
      &service_, &Service::RequestGetTask, options.loop, &queue, [this](auto call) {
        const Status begun = call_threads_.Run([this, call] {
          call->response() = Report();
          call->Finish(OkStatus());
        });
        if (!begun.ok()) call->Finish(begun);
      }}));
  using CostsCall = UnaryCall<Service, wire::GetCostsRequest, wire::CostReport>;
  CostsCall::Listen(std::make_shared<const CostsCall::Endpoint>(CostsCall::Endpoint{
      &service_, &Service::RequestGetCosts, options.loop, &queue, [this](auto call) {
        const Status begun = call_threads_.Run([this, call] {
          const int32_t asked = call->request().steps_max();
          const int32_t steps = asked > 0 ? std::min(asked, kCostStepsMax) : kCostStepsDefault;
          // Stops if the caller has gone, its deadline has passed or the server shuts down.
          call->response() = ReportCosts(*options_.task, static_cast<size_t>(steps),
                                         [&] { return !call->given_up(); });
          call->Finish(OkStatus());
        });
        if (!begun.ok()) call->Finish(begun);
      }}));
  ClusterCall::Listen(std::make_shared<const ClusterCall::Endpoint>(ClusterCall::Endpoint{
      &service_, &Service::RequestGetCluster, options.loop, &queue, [this](auto call) {
        const Status begun = call_threads_.Run([this, call] {
          const int64_t timeout_ms = call->request().timeout_ms();
          const int64_t limit_ms =
              timeout_ms > 0 ? std::min(timeout_ms, kTimeoutMsMax) : kTimeoutMs;
          AskCluster(limit_ms, [call](wire::ClusterReport report) {
            call->response() = std::move(report);
            call->Finish(OkStatus());
          });
        });
        if (!begun.ok()) call->Finish(begun);
      }}));
  ListenForTraces(queue);
}

void InsightService::ListenForTraces(grpc::ServerCompletionQueue& queue) {
  using Service = wire::Insight::AsyncService;
  const TraceServices services{.task = options_.task,
                               .env = options_.env,
                               .threads = options_.threads,
                               .channels = options_.channels,
                               .loop = options_.loop};
  // Runs `trace` on a thread of its own, until `trace` has ended or the caller has given up.
  const auto answer = [this](auto call, auto trace) {
    const Status begun = call_threads_.Run([call, trace] {
      const auto cancellation = std::make_shared<Cancellation>();
      call->OnCancel([cancellation] {
        cancellation->Cancel(Cancelled("the caller of the trace has given up"));
      });
      auto traced = trace(call->request(), cancellation.get());
      if (traced.ok()) call->response() = *std::move(traced);
      call->Finish(traced.status());
    });
    if (!begun.ok()) call->Finish(begun);
  };
  using TaskCall = UnaryCall<Service, wire::TraceRequest, wire::TaskTrace>;
  TaskCall::Listen(std::make_shared<const TaskCall::Endpoint>(TaskCall::Endpoint{
      &service_, &Service::RequestTraceTask, options_.loop, &queue, [=](auto call) {
        answer(call, [services](const auto& request, Cancellation* cancellation) {
          return TraceTask(services, request, cancellation);
        });
      }}));
  using ClusterCall = UnaryCall<Service, wire::TraceRequest, wire::ClusterTrace>;
  ClusterCall::Listen(std::make_shared<const ClusterCall::Endpoint>(ClusterCall::Endpoint{
      &service_, &Service::RequestTraceCluster, options_.loop, &queue, [=](auto call) {
        answer(call, [services](const auto& request, Cancellation* cancellation) {
          return TraceCluster(services, request, cancellation);
        });
      }}));
}

wire::TaskReport InsightService::Report() const {
  wire::TaskReport report = ReportTask(*options_.task, *options_.env);
  report.set_protocol_version(kProtocolVersion);
  report.set_protocol(std::string(options_.task->worker().protocol()));
  ToProto(options_.task->master().cluster(), report.mutable_cluster());
  report.set_clock_us(options_.env->WallMicros());
  if (options_.replica != nullptr) {
    *report.mutable_replica() = ReportOf(options_.replica->state(), options_.env->NowNanos());
  }
  return report;
}

// The report that an AskCluster call collects, and the timeout for each process.
struct InsightService::Question {
  wire::ClusterReport report;
  int64_t timeout_ms = 0;
};

void InsightService::AskCluster(int64_t timeout_ms, ClusterAnswer answer) {
  const ClusterSpec& cluster = options_.task->master().cluster();
  const auto question = std::make_shared<Question>();
  question->timeout_ms = timeout_ms;
  question->report.set_asked(options_.task->self().name);
  for (const auto& [job, tasks] : cluster.jobs()) {
    for (const auto& [index, address] : tasks) {
      wire::ClusterTask* const task = question->report.add_task();
      task->set_name(TaskName{.job = job, .task = index}.ToString());
      task->set_address(address);
      const std::string other = cluster.ReplicaAddress(job, index);
      if (other.empty()) continue;
      task->mutable_other_replica()->set_name(task->name());
      task->mutable_other_replica()->set_address(other);
    }
  }
  // Answers when each process has sent its report or failed.
  const auto join =
      std::make_shared<Join>(Done([question, answer = std::move(answer)](const Status&) mutable {
        for (auto& task : *question->report.mutable_task()) PutPrimaryFirst(&task);
        std::move(answer)(std::move(question->report));
      }));
  for (wire::ClusterTask& task : *question->report.mutable_task()) {
    AskProcess(question, &task, Join::Part(join));
    if (!task.has_other_replica()) continue;
    AskProcess(question, task.mutable_other_replica(), Join::Part(join));
  }
}

// Asks a process, and fills in its report or the error. `process` belongs to `question`.
void InsightService::AskProcess(const std::shared_ptr<Question>& question,
                                wire::ClusterTask* process, Done part) {
  const TaskId& self = options_.task->self();
  // If the task has one process, does not compare addresses: with port 0 in the cluster's
  // specification, the system has chosen the port when the task started.
  const bool own = process->name() == self.name &&
                   (options_.replica == nullptr || process->address() == self.address);
  if (own) {
    *process->mutable_report() = Report();
    return std::move(part)(OkStatus());
  }
  const auto stub =
      std::make_shared<wire::Insight::Stub>(options_.channels->To(process->address()));
  ClientCall<wire::TaskReport>::Start(
      *options_.loop, "", question->timeout_ms,
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return stub->PrepareAsyncGetTask(context, {}, queue);
      },
      [stub, question, process, part = std::move(part)](const Status& status,
                                                        wire::TaskReport& answered) mutable {
        if (!status.ok()) {
          ToProto(status, process->mutable_error());
        } else if (answered.self().task() != process->name()) {
          ToProto(FailedPrecondition("it says that it is ", answered.self().task(),
                                     ": the tasks' clusters differ"),
                  process->mutable_error());
        } else {
          *process->mutable_report() = std::move(answered);
        }
        std::move(part)(OkStatus());
      });
}

}  // namespace penstock
