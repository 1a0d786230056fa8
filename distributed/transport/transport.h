// SPDX-License-Identifier: Apache-2.0
//
// Transport: moves tensors between tasks. It handles step ids, keys, headers and bytes, and knows
// nothing about graphs.
//
// A consumer subscribes once per step and producer, when its part of the step begins; the producer
// sends each tensor as soon as it has both the tensor and the subscription. So no tensor needs a
// request of its own, and no tensor reaches a task that is not running the tensor's step. A tensor
// that has to wait does so at the producer, which keeps a reference to its buffer.
//
//   Transport    a task's access to the other tasks; made by TransportFactory
//   TaskSteps    the task's steps, where subscriptions and tensors arrive
//   TensorSink   the producer's end of the connection to one consumer
//
// No function of these interfaces blocks or needs threads, so a transport may run on one thread
// with a simulated clock. The conformance suite in tests/transport checks the transports that it
// links against these contracts; distributed/sim/sim_transport_test.cc has the same cases for the
// simulated one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "core/base/status.h"
#include "core/runtime/poller.h"
#include "core/runtime/rendezvous.h"
#include "core/tensor/tensor.h"
#include "distributed/transport/tensor_encoding.h"

namespace penstock {

// Identifies one incarnation of a task.
struct TaskId {
  std::string name;          // "/job:ps/replica:0/task:1"
  std::string address;       // "host:port"
  uint64_t incarnation = 0;  // random, never 0 in a running task, new at each start

  bool operator==(const TaskId&) const = default;
  // Returns "/job:ps/replica:0/task:1 at host:port", the form in which errors name the
  // task.
  std::string ToString() const { return StrCat(name, " at ", address); }
};

// The producer's end of a connection to one consumer. Thread-safe; calls never block.
class TensorSink {
 public:
  using HandedOver = absl::AnyInvocable<void() &&>;

  virtual ~TensorSink() = default;
  // Encodes the tensor and sends it. If the value cannot be encoded, refuses its step.
  // `handed_over` is called once, on any thread and possibly before Send returns, when the tensor
  // was sent or dropped and no longer uses objects of its step.
  void Send(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead,
            HandedOver handed_over);
  // Ends the consumer's part of the step with `why`.
  virtual void Refuse(int64_t step_id, const Status& why) = 0;
  // Drops the tensors of the step that have not been sent, and calls their `handed_over`.
  virtual void Drop(int64_t step_id) = 0;

 private:
  // Sends an encoded tensor. Tensors of one size class are sent in the order of the calls if the
  // transport keeps an order (TransportCapabilities).
  virtual void SendEncoded(OutgoingTensor tensor, HandedOver handed_over) = 0;
};

// The steps of one task, as its transport sees them. Thread-safe; calls never block. A transport
// holds no lock while it calls these methods.
class TaskSteps : public Landing {
 public:
  // Producer: `consumer` (a task's name) subscribes to the tensors that the step has for it.
  // `sink` sends to that consumer. The step may not have begun yet.
  virtual void Subscribe(const std::string& consumer, int64_t step_id,
                         std::shared_ptr<TensorSink> sink) = 0;
  // Consumer: a tensor has arrived. It is dropped if its step has ended.
  virtual void Deliver(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead) = 0;
  // Consumer: the step has lost a producer, or the connection to it.
  virtual void Fail(int64_t step_id, const Status& why) = 0;

 protected:
  ~TaskSteps() = default;
};

// The abilities of a transport. All transports receive tensors into host memory; none receives them
// into memory that the CPU cannot write to: such a tensor fails its step.
struct TransportCapabilities {
  // True if tensors from one task to another arrive in the order in which they were sent, except
  // that small ones may overtake large ones (inline_bytes_max). Steps must not depend on the order;
  // it only keeps early tensors from waiting for late ones.
  bool in_order = true;
  // Tensors of up to this many bytes are sent in batches and may overtake larger ones. 0: none
  // overtakes another one, if in_order.
  size_t inline_bytes_max = 0;
  // True if the consumer's tensor shares the producer's memory whenever that memory comes from the
  // allocator that the consumer asks for.
  bool zero_copy = false;
  // True if both tasks have to be on one host; the server checks this by their addresses. A
  // transport that checks it itself sets this to false, and fails the step.
  bool needs_same_host = false;
};

// Thread-safe; calls do not block, except that Stop and the destructor wait for running calls.
class Transport {
 public:
  virtual ~Transport() = default;
  // Returns the name by which TransportFactory makes it. All tasks of a cluster use
  // the same name.
  virtual string_view protocol() const = 0;
  virtual TransportCapabilities capabilities() const = 0;
  // Consumer: returns the protocol of the transport by which tensors of the task `producer` come
  // (`auto` chooses it); "" if it is not known yet.
  virtual std::string ProtocolFrom(const std::string& producer) { return std::string(protocol()); }

  // Starts as the task `self`: accepts subscriptions of other tasks. From then on Subscribe may be
  // called. Call this only once. Subscriptions and tensors go to `steps`, which is borrowed until
  // Stop has returned and the services lent by `host` have been stopped, too.
  virtual Status Serve(const TaskId& self, TaskSteps& steps) = 0;
  // Consumer: connects to `producer` to find out whether this transport reaches it. `reached` is
  // called once, on any thread, possibly before Reach returns: with OK; with FailedPrecondition
  // and the reason if this transport cannot connect the two tasks; with any other error if the
  // producer does not answer.
  using Reached = absl::AnyInvocable<void(const Status&) &&>;
  virtual void Reach(const TaskId& producer, Reached reached) { std::move(reached)(OkStatus()); }
  // Consumer: asks `producer` for all tensors that its part of the step sends to this task. If
  // the producer or the connection to it is lost before Unsubscribe, the step fails: with Aborted
  // if another incarnation answers in the producer's place, else with Unavailable. The error
  // names the task.
  virtual void Subscribe(const TaskId& producer, int64_t step_id) = 0;
  // Ends the subscription: tensors of the step that arrive from now on are dropped.
  virtual void Unsubscribe(const TaskId& producer, int64_t step_id) = 0;
  // Returns the Poller with which a thread that waits for tensors may receive them itself; null if
  // there is none. Valid until the destructor.
  virtual Poller* poller() { return nullptr; }
  // Closes all connections to and from other tasks. The other tasks' steps that are subscribed to
  // this task fail. After Stop, only Unsubscribe may be called. Stop must not be called from within
  // a call of TaskSteps.
  virtual void Stop() = 0;
};

}  // namespace penstock
