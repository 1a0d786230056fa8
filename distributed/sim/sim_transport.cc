// SPDX-License-Identifier: Apache-2.0
//
// The transport of a simulated network: sends one message for each subscription and for each
// tensor. Messages may overtake each other. The receiver of a message may have ended before the
// message arrives.
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

// Whether the consumer still wants the tensors of a step. Shared with messages under way.
using Wanted = std::shared_ptr<bool>;

class SimSink final : public TensorSink {
 public:
  SimSink(SimNetwork& network, TaskId producer, TaskId consumer, Wanted wanted)
      : network_(network),
        producer_(std::move(producer)),
        consumer_(std::move(consumer)),
        wanted_(std::move(wanted)) {}

  void Refuse(int64_t step_id, const Status& why) override {
    ToConsumer(StrCat("refusal of ", StepName(step_id)),
               [step_id, why](TaskSteps& steps) { steps.Fail(step_id, why); });
  }
  // Does nothing: tensors that were sent still arrive, and the consumer drops them.
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
    if (status.ok()) return;
    const std::string what = StrCat("receiving '", sent.key().key().tensor, "'");
    steps.Fail(sent.step_id(), Annotate(status, what));
  }
  void ToConsumer(const std::string& what, absl::AnyInvocable<void(TaskSteps&) &&> then) {
    network_.Send(
        SimEnd::Of(producer_), SimEnd::Of(consumer_), what,
        [&network = network_, to = consumer_, wanted = wanted_, then = std::move(then)]() mutable {
          TaskSteps* const steps = network.FindSteps(to.address, to.incarnation);
          if (steps != nullptr && *wanted) std::move(then)(*steps);
        });
  }

  SimNetwork& network_;
  const TaskId producer_, consumer_;
  const Wanted wanted_;
};

class SimTransport final : public Transport {
 public:
  explicit SimTransport(SimNetwork& network) : network_(network) {}

  string_view protocol() const override { return "sim"; }
  TransportCapabilities capabilities() const override { return {.in_order = false}; }
  Status Serve(const TaskId& self, TaskSteps& steps) override {
    self_ = self;
    *steps_ = &steps;
    network_.ServeSteps(self, steps);
    return OkStatus();
  }
  void Subscribe(const TaskId& producer, int64_t step_id) override {
    const auto wanted = std::make_shared<bool>(true);
    const auto fail = [steps = steps_, step_id, wanted](const Status& why) {
      if (*steps != nullptr && *wanted) (*steps)->Fail(step_id, why);
    };
    const uint64_t watch = network_.Watch(
        SimEnd::Of(self_), SimEnd::Of(producer), [fail, producer](const std::string& why) {
          fail(Unavailable("lost the connection to ", producer.ToString(), ": ", why));
        });
    subscriptions_[{producer.name, step_id}] = {watch, wanted};
    network_.Send(
        SimEnd::Of(self_), SimEnd::Of(producer), StrCat("subscription to ", StepName(step_id)),
        [&network = network_, self = self_, producer, step_id, wanted, fail] {
          TaskSteps* const steps = network.FindSteps(producer.address, producer.incarnation);
          if (steps != nullptr) {
            return steps->Subscribe(self.name, step_id,
                                    std::make_shared<SimSink>(network, producer, self, wanted));
          }
          const bool restarted = network.FindSteps(producer.address, 0) != nullptr;
          const Status why = restarted
                                 ? Aborted(producer.ToString(), " has restarted")
                                 : Unavailable("lost the connection to ", producer.ToString());
          network.Send({SimEnd::Of(producer).host}, SimEnd::Of(self),
                       StrCat("refusal of ", StepName(step_id)), [fail, why] { fail(why); });
        });
  }
  void Unsubscribe(const TaskId& producer, int64_t step_id) override {
    const auto it = subscriptions_.find({producer.name, step_id});
    if (it == subscriptions_.end()) return;
    network_.Unwatch(it->second.watch);
    *it->second.wanted = false;
    subscriptions_.erase(it);
  }
  // Messages to a task that is no longer there are dropped.
  void Stop() override {
    if (std::exchange(*steps_, nullptr) != nullptr) network_.EndServing(self_);
  }

 private:
  struct Subscription {
    uint64_t watch = 0;
    Wanted wanted;
  };

  SimNetwork& network_;
  TaskId self_;  // set by Serve
  // Null before Serve, and after Stop. Shared with messages under way.
  const std::shared_ptr<TaskSteps*> steps_ = std::make_shared<TaskSteps*>(nullptr);
  std::map<std::pair<std::string, int64_t>, Subscription> subscriptions_;  // by producer and step
};

}  // namespace

std::unique_ptr<Transport> NewSimTransport(SimNetwork& network) {
  return std::make_unique<SimTransport>(network);
}

}  // namespace penstock
