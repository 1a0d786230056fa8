// SPDX-License-Identifier: Apache-2.0
//
// The transport "skeleton": the starting point for a new transport. It is complete and passes the
// conformance suite, but connects only tasks of one process: each has a mailbox, which is a queue
// and a thread. The thread is a real one, which waits on a CondVar, because in a new transport its
// place is taken by a thread that waits for a network.
//
// To write a transport: copy this folder, rename everything called skeleton, let tests/transport
// link it, and replace the places marked WIRE, one after the other. ../README.md lists the steps.
#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "distributed/transport/transport_factory.h"

namespace penstock {
namespace {

class Mailbox;

// A message between tasks. WIRE: replace by bytes; proto/penstock/exchange.proto is an
// example.
struct Message {
  enum Kind {
    kSubscribe,  // consumer to producer: subscribe to a step
    kTensor,     // producer to consumer, like the following
    kRefusal,    // a step has failed
    // All steps have failed: the producer has gone. WIRE: not needed, the connection breaks.
    kLost,
  };
  Kind kind;
  TaskId producer;  // the producer that the consumer subscribed to
  int64_t step_id = 0;
  std::shared_ptr<Mailbox> consumer;  // for kSubscribe
  Status why;                         // for kRefusal and kLost
  // For kTensor. WIRE: write the header's fields and the key into a message (key_numbers.h sends
  // the text of each key only once); the consumer's end reads the bytes from a stream, from shared
  // memory, or from the producer's memory. A waiting tensor is held by reference, not copied.
  std::string key;
  std::optional<OutgoingTensor> tensor;
  TensorSink::HandedOver handed_over;
};

// One task: handles the messages of other tasks one by one.
class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  Mailbox(const TaskId& self, TaskSteps& steps) : self_(self), steps_(steps) {}

  const TaskId& self() const { return self_; }

  void Open() {
    thread_ = Scheduler::Real().StartThread("skeleton", [this] { Run(); });
  }

  // Adds the message to the queue. If this task has gone, calls Return instead.
  void Post(Message message) {
    {
      MutexLock lock(mu_);
      if (!closed_) {
        queue_.push_back(std::move(message));
        changed_.NotifyOne();
        return;
      }
    }
    Return(message);
  }

  // Drops the producer's tensors of the step that still wait in this mailbox.
  void Drop(const TaskId& producer, int64_t step_id) {
    std::deque<Message> dropped;
    {
      MutexLock lock(mu_);
      const auto kept = std::stable_partition(queue_.begin(), queue_.end(), [&](const Message& m) {
        return m.kind != Message::kTensor || m.producer != producer || m.step_id != step_id;
      });
      dropped.insert(dropped.end(), std::make_move_iterator(kept),
                     std::make_move_iterator(queue_.end()));
      queue_.erase(kept, queue_.end());
    }
    for (Message& m : dropped) std::move(m.handed_over)();
  }

  // Consumer: records that a step waits for a producer.
  void Want(int64_t step_id, const TaskId& producer) {
    MutexLock lock(mu_);
    wanted_[step_id].push_back(producer);
  }
  void Forget(int64_t step_id, const TaskId& producer) {
    MutexLock lock(mu_);
    const auto producers = wanted_.find(step_id);
    if (producers == wanted_.end()) return;
    std::erase(producers->second, producer);
    if (producers->second.empty()) wanted_.erase(producers);
  }

  void Close() {
    std::deque<Message> left;
    {
      MutexLock lock(mu_);
      closed_ = true;
      left.swap(queue_);
      changed_.NotifyOne();
    }
    if (thread_ == nullptr) return;  // the mailbox was closed before
    thread_ = nullptr;               // waits for its end
    for (Message& m : left) Return(m);
    for (const auto& consumer : consumers_) {
      consumer->Post({.kind = Message::kLost, .producer = self_, .why = GoneError()});
    }
    consumers_.clear();
  }

 private:
  // WIRE: replace by a polling loop, or by callbacks of a library. Nothing here may block.
  void Run() {
    while (true) {
      MutexLock lock(mu_);
      while (!closed_ && queue_.empty()) changed_.Wait(mu_);
      if (closed_) return;
      Message message = std::move(queue_.front());
      queue_.pop_front();
      lock.Unlock();
      Handle(message);
    }
  }

  Status GoneError() const {
    return Unavailable("lost the connection to ", self_.ToString(), ": it has stopped");
  }

  // Ends a message that this task will not handle any more: calls its handed_over, and refuses a
  // subscription.
  void Return(Message& message) {
    if (message.handed_over) std::move(message.handed_over)();
    if (message.kind == Message::kSubscribe) Refuse(message, GoneError());
  }

  static void Refuse(const Message& subscription, const Status& why) {
    subscription.consumer->Post({.kind = Message::kRefusal,
                                 .producer = subscription.producer,
                                 .step_id = subscription.step_id,
                                 .why = why});
  }

  void Handle(Message& message) {
    switch (message.kind) {
      case Message::kSubscribe:
        return HandleSubscribe(message);
      case Message::kTensor:
        if (Wants(message)) HandleTensor(*message.tensor, message.key);
        return std::move(message.handed_over)();
      case Message::kRefusal:
        if (Wants(message)) steps_.Fail(message.step_id, message.why);
        return;
      case Message::kLost:
        for (const int64_t step_id : StepsOf(message.producer)) steps_.Fail(step_id, message.why);
    }
  }

  void HandleSubscribe(const Message& message);

  // Allocates memory of the consumer's choice, and copies the bytes into it. WIRE: copy the bytes
  // as they arrive, in any number of pieces.
  void HandleTensor(const OutgoingTensor& sent, const std::string& key_text) {
    const auto received = [&]() -> Status {
      ASSIGN_OR_RETURN(RendezvousKey parsed, RendezvousKey::Parse(key_text));
      const HashedKey key(std::move(parsed));
      ASSIGN_OR_RETURN(IncomingTensor tensor,
                       IncomingTensor::Begin(sent.step_id(), key, sent.header(), steps_));
      if (sent.bytes() > 0) std::memcpy(tensor.Next(sent.bytes()), sent.data(), sent.bytes());
      const bool is_dead = tensor.is_dead();
      ASSIGN_OR_RETURN(Tensor value, std::move(tensor).Finish());
      steps_.Deliver(sent.step_id(), key, std::move(value), is_dead);
      return OkStatus();
    };
    const Status status = received();
    if (status.ok()) return;
    steps_.Fail(sent.step_id(), Annotate(status, StrCat("receiving '", key_text, "'")));
  }

  bool Wants(const Message& message) {
    MutexLock lock(mu_);
    const auto producers = wanted_.find(message.step_id);
    return producers != wanted_.end() &&
           std::find(producers->second.begin(), producers->second.end(), message.producer) !=
               producers->second.end();
  }
  std::vector<int64_t> StepsOf(const TaskId& producer) {
    MutexLock lock(mu_);
    std::vector<int64_t> steps;
    for (const auto& [step_id, producers] : wanted_) {
      if (std::find(producers.begin(), producers.end(), producer) != producers.end()) {
        steps.push_back(step_id);
      }
    }
    return steps;
  }

  const TaskId self_;
  TaskSteps& steps_;
  std::unique_ptr<Thread> thread_;
  std::vector<std::shared_ptr<Mailbox>> consumers_;  // used by the thread only, until it has ended

  Mutex mu_;
  CondVar changed_;
  std::deque<Message> queue_ ABSL_GUARDED_BY(mu_);
  std::map<int64_t, std::vector<TaskId>> wanted_ ABSL_GUARDED_BY(mu_);  // by step
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

// The producer's end of the connection to one consumer. Running steps hold shared pointers to it.
class SkeletonSink final : public TensorSink {
 public:
  SkeletonSink(const TaskId& producer, std::shared_ptr<Mailbox> consumer)
      : producer_(producer), consumer_(std::move(consumer)) {}

  void Refuse(int64_t step_id, const Status& why) override {
    consumer_->Post(
        {.kind = Message::kRefusal, .producer = producer_, .step_id = step_id, .why = why});
  }
  void Drop(int64_t step_id) override { consumer_->Drop(producer_, step_id); }

 private:
  void SendEncoded(OutgoingTensor tensor, HandedOver handed_over) override {
    Message message{.kind = Message::kTensor,
                    .producer = producer_,
                    .step_id = tensor.step_id(),
                    .key = tensor.key().ToString(),
                    .handed_over = std::move(handed_over)};
    message.tensor.emplace(std::move(tensor));
    consumer_->Post(std::move(message));
  }

  const TaskId producer_;
  const std::shared_ptr<Mailbox> consumer_;
};

void Mailbox::HandleSubscribe(const Message& message) {
  if (message.producer.incarnation != self_.incarnation) {
    return Refuse(message, Aborted(message.producer.ToString(), " has restarted"));
  }
  if (std::find(consumers_.begin(), consumers_.end(), message.consumer) == consumers_.end()) {
    consumers_.push_back(message.consumer);
  }
  steps_.Subscribe(message.consumer->self().name, message.step_id,
                   std::make_shared<SkeletonSink>(self_, message.consumer));
}

// WIRE: replace by addresses of other processes. A transport that needs its own connections may set
// them up over the task's gRPC server (TransportHost).
struct Mailboxes {
  Mutex mu;
  std::map<std::string, std::shared_ptr<Mailbox>> by_address ABSL_GUARDED_BY(mu);

  std::shared_ptr<Mailbox> Find(const std::string& address) {
    MutexLock lock(mu);
    const auto mailbox = by_address.find(address);
    return mailbox == by_address.end() ? nullptr : mailbox->second;
  }
  static Mailboxes& Get() {
    static Mailboxes& mailboxes = *new Mailboxes;
    return mailboxes;
  }
};

class SkeletonTransport final : public Transport {
 public:
  ~SkeletonTransport() override { Stop(); }

  string_view protocol() const override { return "skeleton"; }
  // The conformance suite checks each claimed ability.
  TransportCapabilities capabilities() const override { return {.needs_same_host = true}; }

  Status Serve(const TaskId& self, TaskSteps& steps) override {
    Mailboxes& all = Mailboxes::Get();
    MutexLock lock(all.mu);
    const auto [mailbox, is_new] = all.by_address.emplace(self.address, nullptr);
    if (!is_new) return AlreadyExists(mailbox->second->self().ToString(), " serves already");
    own_ = mailbox->second = std::make_shared<Mailbox>(self, steps);
    own_->Open();
    return OkStatus();
  }

  void Subscribe(const TaskId& producer, int64_t step_id) override {
    own_->Want(step_id, producer);
    if (const auto mailbox = Mailboxes::Get().Find(producer.address)) {
      return mailbox->Post({.kind = Message::kSubscribe,
                            .producer = producer,
                            .step_id = step_id,
                            .consumer = own_});
    }
    const Status why = Unavailable("lost the connection to ", producer.ToString(),
                                   ": no task serves there in this process");
    own_->Post({.kind = Message::kRefusal, .producer = producer, .step_id = step_id, .why = why});
  }

  void Unsubscribe(const TaskId& producer, int64_t step_id) override {
    own_->Forget(step_id, producer);
  }

  void Stop() override {
    if (own_ == nullptr) return;  // the task has never served
    {
      Mailboxes& all = Mailboxes::Get();
      MutexLock lock(all.mu);
      const auto mailbox = all.by_address.find(own_->self().address);
      if (mailbox != all.by_address.end() && mailbox->second == own_) all.by_address.erase(mailbox);
    }
    own_->Close();
  }

 private:
  std::shared_ptr<Mailbox> own_;  // set by Serve
};

StatusOr<std::unique_ptr<Transport>> Make(const TransportHost&) {
  return std::make_unique<SkeletonTransport>();
}

const bool added [[maybe_unused]] = TransportFactory::Global().Add("skeleton", Make);

}  // namespace
}  // namespace penstock
