// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/insight_service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/join.h"
#include "distributed/insight/cost_report.h"
#include "distributed/insight/task_report.h"
#include "distributed/rpc/calls/status_proto.h"
#include "distributed/rpc/calls/unary_call.h"
#include "distributed/rpc/protocol.h"
#include "distributed/rpc/value_proto.h"

namespace penstock {
namespace {

// Callers ask for as much as they like; their calls are held no longer.
constexpr int64_t kTimeoutMsMax = 60'000;
constexpr int32_t kCostStepsDefault = 5, kCostStepsMax = 100;

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
          call->response() = ReportCosts(*options_.task, static_cast<size_t>(steps));
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
}

wire::TaskReport InsightService::Report() const {
  wire::TaskReport report = ReportTask(*options_.task, *options_.env);
  report.set_protocol_version(kProtocolVersion);
  report.set_protocol(std::string(options_.task->worker().protocol()));
  ToProto(options_.task->master().cluster(), report.mutable_cluster());
  report.set_clock_us(options_.env->WallMicros());
  return report;
}

void InsightService::AskCluster(int64_t timeout_ms, ClusterAnswer answer) {
  const TaskId& self = options_.task->self();
  const auto report = std::make_shared<wire::ClusterReport>();
  report->set_asked(self.name);
  for (const auto& [job, tasks] : options_.task->master().cluster().jobs()) {
    for (const auto& [index, address] : tasks) {
      wire::ClusterTask* const task = report->add_task();
      task->set_name(StrCat("/job:", job, "/replica:0/task:", index));
      task->set_address(address);
    }
  }
  // When the last part has ended.
  const auto join =
      std::make_shared<Join>(Done([report, answer = std::move(answer)](const Status&) mutable {
        std::move(answer)(std::move(*report));
      }));
  for (wire::ClusterTask& task : *report->mutable_task()) {
    Done part = Join::Part(join);
    if (task.name() == self.name) {
      *task.mutable_report() = Report();
      std::move(part)(OkStatus());
      continue;
    }
    const auto stub = std::make_shared<wire::Insight::Stub>(options_.channels->To(task.address()));
    ClientCall<wire::TaskReport>::Start(
        *options_.loop, "", timeout_ms,
        [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
          return stub->PrepareAsyncGetTask(context, {}, queue);
        },
        [stub, report, &task, part = std::move(part)](const Status& status,
                                                      wire::TaskReport& answered) mutable {
          if (!status.ok()) {
            ToProto(status, task.mutable_error());
          } else if (answered.self().task() != task.name()) {
            ToProto(FailedPrecondition("it says that it is ", answered.self().task(),
                                       ": the tasks' clusters differ"),
                    task.mutable_error());
          } else {
            *task.mutable_report() = std::move(answered);
          }
          std::move(part)(OkStatus());
        });
  }
}

}  // namespace penstock
