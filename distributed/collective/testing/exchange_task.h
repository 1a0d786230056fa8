// SPDX-License-Identifier: Apache-2.0
//
// ExchangeTask: for tests, a task that consists only of a transport and an Exchange.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "core/runtime/deadline_timer.h"
#include "distributed/collective/exchange.h"
#include "distributed/collective/reserved_steps.h"
#include "distributed/calls/testing/test_host.h"
#include "distributed/transport/transport_factory.h"

namespace penstock::collective {

class ExchangeTask {
 public:
  using TasksOf = std::function<StatusOr<std::vector<TaskId>>(const std::string& session)>;

  // Serves as /job:worker/task:NUMBER on a free port.
  ExchangeTask(const std::string& protocol, int number, TasksOf tasks_of)
      : exchange_({.self = {.job = "worker", .task = number},
                   .threads = &Scheduler::Real(),
                   .env = &Env::Real(),
                   .timer = &DeadlineTimer::Real(),
                   .tasks_of = std::move(tasks_of)}),
        steps_(exchange_.steps()),
        host_("127.0.0.1:0") {
    auto made = TransportFactory::Global().Make(protocol, {.grpc = &host_.host()});
    CHECK_OK(made.status());
    transport_ = *std::move(made);
    host_.Start();
    id_ = {.name = StrCat("/job:worker/replica:0/task:", number),
           .address = host_.address(),
           .incarnation = Env::Real().RandomU64() | 1};
    exchange_.set_transport(transport_.get());
    CHECK_OK(transport_->Serve(id_, steps_));
  }
  ~ExchangeTask() { Stop(); }
  void Stop() {
    transport_->Stop();
    host_.Stop();
  }

  const TaskId& id() const { return id_; }
  Exchange& exchange() { return exchange_; }
  static std::string Device(int task, int rank) {
    return StrCat("/job:worker/replica:0/task:", task, "/device:CPU:", rank);
  }

 private:
  // Refuses all step ids except the reserved ones.
  class ReservedSteps final : public TaskSteps {
   public:
    explicit ReservedSteps(TaskSteps& steps) : steps_(steps) {}
    void Subscribe(const std::string& consumer, int64_t step_id,
                   std::shared_ptr<TensorSink> sink) override {
      CHECK(IsReservedStep(step_id));
      steps_.Subscribe(consumer, step_id, std::move(sink));
    }
    void Deliver(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead) override {
      steps_.Deliver(step_id, key, std::move(value), is_dead);
    }
    void Fail(int64_t step_id, const Status& why) override { steps_.Fail(step_id, why); }

   private:
    TaskSteps& steps_;
  };

  TaskId id_;
  Exchange exchange_;
  ReservedSteps steps_;
  std::unique_ptr<Transport> transport_;  // outlives the server, which may refer to its service
  TestHost host_;
};

}  // namespace penstock::collective
