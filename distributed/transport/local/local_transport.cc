// SPDX-License-Identifier: Apache-2.0
//
// The transport "local": tasks of one process, without a network and without threads. Send calls
// the consumer's steps directly. Tensors of plain bytes share the producer's memory.
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "distributed/transport/transport_factory.h"

namespace penstock {
namespace {

// A Landing that returns an allocator that the consumer has chosen before.
class FixedLanding final : public Landing {
 public:
  explicit FixedLanding(Allocator& memory) : memory_(memory) {}
  const Allocator& memory() const { return memory_; }
  Allocator& AllocatorFor(int64_t, const HashedKey&, DType, const Shape&) override {
    return memory_;
  }

 private:
  Allocator& memory_;
};

// Shares the producer's memory if it comes from the allocator that the consumer asks for,
// else copies.
StatusOr<Tensor> Receive(const OutgoingTensor& sent, Landing& landing) {
  const TensorHeader header = sent.header();
  const Tensor& body = sent.body();
  const bool plain = body.valid() && !header.is_encoded;
  FixedLanding chosen(
      plain ? landing.AllocatorFor(sent.step_id(), sent.key(), body.dtype(), body.shape())
            : CpuAllocator());
  if (plain && body.buffer()->allocator() == &chosen.memory()) return body;
  ASSIGN_OR_RETURN(IncomingTensor tensor,
                   IncomingTensor::Begin(sent.step_id(), sent.key(), header, chosen));
  if (sent.bytes() > 0) std::memcpy(tensor.Next(sent.bytes()), sent.data(), sent.bytes());
  return std::move(tensor).Finish();
}

class LocalSink;

// The receiving end of one task that serves. The task's transport, and the sinks that send to the
// task, hold shared pointers to the port.
class Port : public std::enable_shared_from_this<Port> {
 public:
  Port(const TaskId& self, TaskSteps& steps, Scheduler& scheduler)
      : self_(self), steps_(steps), no_visits_(scheduler, "the end of calls of a task's steps") {}

  const TaskId& self() const { return self_; }

  // Calls `call` with the task's steps, unless the task has stopped.
  template <class F>
  void Visit(F call) {
    {
      MutexLock lock(mu_);
      if (stopped_) return;
      ++visits_;
    }
    call(steps_);
    MutexLock lock(mu_);
    if (--visits_ == 0) no_visits_.NotifyAll();
  }

  // Producer: adds a subscription. Returns false if the task has stopped.
  bool Subscribe(const std::shared_ptr<Port>& consumer, int64_t step_id);
  void Unsubscribe(const Port* consumer, int64_t step_id);
  // Waits until running calls of the task's steps have ended, and fails the subscribed steps.
  void Stop();

 private:
  using Subscription = std::pair<const Port*, int64_t>;  // consumer, step

  const TaskId self_;
  TaskSteps& steps_;
  Mutex mu_;
  Condition no_visits_;
  int visits_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::map<Subscription, std::shared_ptr<LocalSink>> sinks_ ABSL_GUARDED_BY(mu_);
};

// The sink for one subscription: one step of one consumer.
class LocalSink final : public TensorSink {
 public:
  explicit LocalSink(std::shared_ptr<Port> consumer) : consumer_(std::move(consumer)) {}

  void Refuse(int64_t step_id, const Status& why) override {
    if (closed_) return;
    consumer_->Visit([&](TaskSteps& steps) { steps.Fail(step_id, why); });
  }
  void Drop(int64_t step_id) override {}  // Drop has no effect, because no tensor waits here
  // Called when the consumer unsubscribes.
  void Close() { closed_ = true; }

 private:
  void SendEncoded(OutgoingTensor tensor, HandedOver handed_over) override {
    if (!closed_) consumer_->Visit([&](TaskSteps& steps) { Deliver(tensor, steps); });
    std::move(handed_over)();
  }
  static void Deliver(const OutgoingTensor& tensor, TaskSteps& steps) {
    StatusOr<Tensor> value = Receive(tensor, steps);
    if (value.ok()) {
      return steps.Deliver(tensor.step_id(), tensor.key(), *std::move(value),
                           tensor.header().is_dead);
    }
    const std::string what = StrCat("receiving '", tensor.key().key().tensor, "'");
    steps.Fail(tensor.step_id(), Annotate(value.status(), what));
  }

  const std::shared_ptr<Port> consumer_;
  std::atomic<bool> closed_ = false;
};

bool Port::Subscribe(const std::shared_ptr<Port>& consumer, int64_t step_id) {
  const auto sink = std::make_shared<LocalSink>(consumer);
  {
    MutexLock lock(mu_);
    if (stopped_) return false;
    sinks_[{consumer.get(), step_id}] = sink;
  }
  Visit([&](TaskSteps& steps) { steps.Subscribe(consumer->self().name, step_id, sink); });
  return true;
}

void Port::Unsubscribe(const Port* consumer, int64_t step_id) {
  MutexLock lock(mu_);
  const auto sink = sinks_.find({consumer, step_id});
  if (sink == sinks_.end()) return;
  sink->second->Close();
  sinks_.erase(sink);
}

void Port::Stop() {
  std::map<Subscription, std::shared_ptr<LocalSink>> lost;
  {
    MutexLock lock(mu_);
    stopped_ = true;
    lost.swap(sinks_);
    no_visits_.Wait(mu_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return visits_ == 0; });
  }
  const Status why = Unavailable("lost the connection to ", self_.ToString(), ": it has stopped");
  for (const auto& [subscription, sink] : lost) sink->Refuse(subscription.second, why);
}

// The tasks of this process that serve, by address.
struct Network {
  Mutex mu;
  std::map<std::string, std::shared_ptr<Port>> ports ABSL_GUARDED_BY(mu);

  std::shared_ptr<Port> Find(const std::string& address) {
    MutexLock lock(mu);
    const auto port = ports.find(address);
    return port == ports.end() ? nullptr : port->second;
  }
  static Network& Get() {
    static Network& network = *new Network;
    return network;
  }
};

class LocalTransport final : public Transport {
 public:
  explicit LocalTransport(Scheduler& scheduler) : scheduler_(scheduler) {}
  ~LocalTransport() override { Stop(); }

  string_view protocol() const override { return "local"; }
  TransportCapabilities capabilities() const override {
    return {.zero_copy = true, .needs_same_host = true};
  }

  Status Serve(const TaskId& self, TaskSteps& steps) override {
    Network& network = Network::Get();
    MutexLock lock(network.mu);
    const auto [port, is_new] = network.ports.emplace(self.address, nullptr);
    if (!is_new) return AlreadyExists(port->second->self().ToString(), " serves already");
    own_ = port->second = std::make_shared<Port>(self, steps, scheduler_);
    return OkStatus();
  }

  void Subscribe(const TaskId& producer, int64_t step_id) override {
    const auto port = Network::Get().Find(producer.address);
    Status lost;
    if (port != nullptr && port->self().incarnation != producer.incarnation) {
      lost = Aborted(producer.ToString(), " has restarted");
    } else if (port == nullptr || !port->Subscribe(own_, step_id)) {
      lost = Unavailable("lost the connection to ", producer.ToString(),
                         ": no task serves there in this process");
    }
    if (!lost.ok()) own_->Visit([&](TaskSteps& steps) { steps.Fail(step_id, lost); });
  }

  void Unsubscribe(const TaskId& producer, int64_t step_id) override {
    const auto port = Network::Get().Find(producer.address);
    if (port != nullptr) port->Unsubscribe(own_.get(), step_id);
  }

  void Stop() override {
    if (own_ == nullptr) return;  // the task has never served
    {
      Network& network = Network::Get();
      MutexLock lock(network.mu);
      const auto port = network.ports.find(own_->self().address);
      if (port != network.ports.end() && port->second == own_) network.ports.erase(port);
    }
    own_->Stop();
  }

 private:
  Scheduler& scheduler_;
  std::shared_ptr<Port> own_;  // set by Serve
};

StatusOr<std::unique_ptr<Transport>> Make(const TransportHost& host) {
  return std::make_unique<LocalTransport>(*host.scheduler);
}

const bool added [[maybe_unused]] = TransportFactory::Global().Add("local", Make);

}  // namespace
}  // namespace penstock
