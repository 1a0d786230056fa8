// SPDX-License-Identifier: Apache-2.0
//
// The transport of a simulated network: sends one message for each subscription and for each
// tensor. Either end may be gone when a message arrives.
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "distributed/sim/sim_network.h"

namespace penstock {
namespace {

std::string StepName(int64_t step_id) {
  return absl::StrFormat("step %016x", static_cast<uint64_t>(step_id));
}

class SimSink final : public TensorSink {
 public:
  SimSink(SimNetwork& network, TaskId producer, TaskId consumer)
      : network_(network), producer_(std::move(producer)), consumer_(std::move(consumer)) {}

  void Refuse(int64_t step_id, const Status& why) override {
    ToConsumer(StrCat("refusal of ", StepName(step_id)),
               [step_id, why](TaskSteps& steps) { steps.Fail(step_id, why); });
  }
  // Tensors that are under way still arrive, and the consumer drops them.
  void Drop(int64_t) override {}

 private:
  void SendEncoded(OutgoingTensor tensor, HandedOver handed_over) override {
    const std::string what =
        StrCat("tensor ", tensor.key().key().tensor, " of ", StepName(tensor.step_id()));
    ToConsumer(what, [sent = std::move(tensor)](TaskSteps& steps) { Deliver(sent, steps); });
    std::move(handed_over)();
  }
  static void Deliver(const OutgoingTensor& sent, TaskSteps& steps) {
    const auto received = [&]() -> Status {
      ASSIGN_OR_RETURN(IncomingTensor tensor,
                       IncomingTensor::Begin(sent.step_id(), sent.key(), sent.header(), steps));
      if (sent.bytes() > 0) std::memcpy(tensor.Next(sent.bytes()), sent.data(), sent.bytes());
      const bool is_dead = tensor.is_dead();
      ASSIGN_OR_RETURN(Tensor value, std::move(tensor).Finish());
      steps.Deliver(sent.step_id(), sent.key(), std::move(value), is_dead);
      return OkStatus();
    };
    const Status status = received();
    if (!status.ok()) steps.Fail(sent.step_id(), status);
  }
  void ToConsumer(const std::string& what, absl::AnyInvocable<void(TaskSteps&) &&> then) {
    network_.Send(SimEnd::Of(producer_), SimEnd::Of(consumer_), what,
                  [&network = network_, to = consumer_, then = std::move(then)]() mutable {
                    Task* const task = network.Find(to.address, to.incarnation);
                    if (task != nullptr) std::move(then)(task->worker().steps());
                  });
  }

  SimNetwork& network_;
  const TaskId producer_, consumer_;
};

class SimTransport final : public Transport {
 public:
  explicit SimTransport(SimNetwork& network) : network_(network) {}

  string_view protocol() const override { return "sim"; }
  TransportCapabilities capabilities() const override { return {.needs_same_host = true}; }
  // Tasks find each other by SimNetwork::Add.
  Status Serve(const TaskId& self, TaskSteps& steps) override {
    self_ = self;
    *steps_ = &steps;
    return OkStatus();
  }
  void Subscribe(const TaskId& producer, int64_t step_id) override {
    const auto fail = [steps = steps_, step_id](const Status& why) {
      if (*steps != nullptr) (*steps)->Fail(step_id, why);
    };
    watches_[{producer.name, step_id}] = network_.Watch(
        SimEnd::Of(self_), SimEnd::Of(producer), [fail, producer](const std::string& why) {
          fail(Unavailable("lost the connection to ", producer.ToString(), ": ", why));
        });
    network_.Send(
        SimEnd::Of(self_), SimEnd::Of(producer), StrCat("subscription to ", StepName(step_id)),
        [&network = network_, self = self_, producer, step_id, fail] {
          Task* const task = network.Find(producer.address, producer.incarnation);
          if (task != nullptr) {
            return task->worker().steps().Subscribe(
                self.name, step_id, std::make_shared<SimSink>(network, producer, self));
          }
          const bool restarted = network.Find(producer.address, 0) != nullptr;
          const Status why = restarted
                                 ? Aborted(producer.ToString(), " has restarted")
                                 : Unavailable("lost the connection to ", producer.ToString());
          network.Send({SimEnd::Of(producer).host}, SimEnd::Of(self),
                       StrCat("refusal of ", StepName(step_id)), [fail, why] { fail(why); });
        });
  }
  void Unsubscribe(const TaskId& producer, int64_t step_id) override {
    const auto watch = watches_.find({producer.name, step_id});
    if (watch == watches_.end()) return;
    network_.Unwatch(watch->second);
    watches_.erase(watch);
  }
  // Messages to a task that is no longer there are dropped.
  void Stop() override { *steps_ = nullptr; }

 private:
  SimNetwork& network_;
  TaskId self_;  // set by Serve
  // Null before Serve, and after Stop. Shared with messages under way.
  const std::shared_ptr<TaskSteps*> steps_ = std::make_shared<TaskSteps*>(nullptr);
  std::map<std::pair<std::string, int64_t>, uint64_t> watches_;  // by producer and step
};

}  // namespace

std::unique_ptr<Transport> NewSimTransport(SimNetwork& network) {
  return std::make_unique<SimTransport>(network);
}

}  // namespace penstock
