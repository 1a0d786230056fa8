// SPDX-License-Identifier: Apache-2.0
//
// Tensors on a simulated network: a message for each subscription and for each tensor, which shares
// the producer's buffer. Either end may be gone when a message arrives.
#include <utility>

#include "absl/strings/str_format.h"
#include "distributed/transport/sim/sim_network.h"

namespace penstock {
namespace {

std::string StepName(int64_t step_id) {
  return absl::StrFormat("step %016x", static_cast<uint64_t>(step_id));
}

class SimSink final : public TensorSink {
 public:
  SimSink(SimNetwork& network, TaskId producer, TaskId consumer)
      : network_(network), producer_(std::move(producer)), consumer_(std::move(consumer)) {}

  void Send(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead,
            HandedOver handed_over) override {
    ToConsumer(StrCat("tensor ", key.key().tensor, " of ", StepName(step_id)),
               [step_id, key, value = std::move(value), is_dead](StepTable& steps) mutable {
                 steps.Deliver(step_id, key, std::move(value), is_dead);
               });
    std::move(handed_over)();
  }
  void Refuse(int64_t step_id, const Status& why) override {
    ToConsumer(StrCat("refusal of ", StepName(step_id)),
               [step_id, why](StepTable& steps) { steps.Fail(step_id, why); });
  }
  // What is on its way arrives, and is dropped there.
  void Drop(int64_t) override {}

 private:
  void ToConsumer(const std::string& what, absl::AnyInvocable<void(StepTable&) &&> then) {
    network_.Send(producer_.name, consumer_.name, what,
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
  SimTransport(SimNetwork& network, TaskId self) : network_(network), self_(std::move(self)) {}

  void Subscribe(const TaskId& producer, int64_t step_id) override {
    network_.Send(self_.name, producer.name, StrCat("subscription to ", StepName(step_id)),
                  [&network = network_, self = self_, producer, step_id] {
                    auto sink = std::make_shared<SimSink>(network, producer, self);
                    Task* const task = network.Find(producer.address, producer.incarnation);
                    if (task == nullptr) {
                      return sink->Refuse(
                          step_id, Unavailable("lost the connection to ", producer.ToString()));
                    }
                    task->worker().steps().Subscribe(self.name, step_id, std::move(sink));
                  });
  }
  void Unsubscribe(const TaskId&, int64_t) override {}

 private:
  SimNetwork& network_;
  const TaskId self_;
};

}  // namespace

std::unique_ptr<Transport> NewSimTransport(SimNetwork& network, const TaskId& self, StepTable&) {
  return std::make_unique<SimTransport>(network, self);
}

}  // namespace penstock
