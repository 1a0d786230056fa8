// SPDX-License-Identifier: Apache-2.0
//
// Transport: moves tensors between tasks. It sees step ids, keys, headers and bytes; no graph.
//
// A consumer subscribes once per step and producer, when its part of the step begins; the producer
// sends each tensor as soon as it has both the tensor and the subscription. So tensors move without
// a question each, and never reach a task that is not running their step: what has to wait, waits
// at the producer, as a reference on a buffer that exists anyway.
//
//   Transport    a task's access to the other tasks; made by TransportFactory
//   TaskSteps    the task's steps, where subscriptions and tensors arrive
//   TensorSink   the producer's end of the way to one consumer
//
// Nothing here blocks or needs threads: a transport may run on one thread with a simulated clock.
// The conformance suite in tests/transport holds the transports that it links to these contracts;
// sim/README.md says what the simulated one leaves out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "core/base/status.h"
#include "core/runtime/rendezvous.h"
#include "core/tensor/tensor.h"
#include "distributed/transport/tensor_encoding.h"

namespace penstock {

// A task of the cluster in one incarnation.
struct TaskId {
  std::string name;          // "/job:ps/replica:0/task:1"
  std::string address;       // "host:port"
  uint64_t incarnation = 0;  // random, never 0 in a task that runs, new at each start

  bool operator==(const TaskId&) const = default;
  // Returns "/job:ps/replica:0/task:1 at host:port", which is how errors name the task.
  std::string ToString() const { return StrCat(name, " at ", address); }
};

// The producer's end of the way to one consumer. Thread-safe; calls never block.
class TensorSink {
 public:
  using HandedOver = absl::AnyInvocable<void() &&>;

  virtual ~TensorSink() = default;
  // Encodes the tensor and sends it; a value that cannot travel refuses its step. `handed_over` is
  // called once, on any thread and possibly before Send returns: when the tensor needs nothing of
  // its step any more, because it is on its way or was dropped.
  void Send(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead,
            HandedOver handed_over);
  // Ends the consumer's part of the step with `why`.
  virtual void Refuse(int64_t step_id, const Status& why) = 0;
  // Drops what has not left yet, which counts as handed over.
  virtual void Drop(int64_t step_id) = 0;

 private:
  // Sends what Send has encoded. Tensors of one size class (TransportCapabilities) leave in the
  // order of the calls.
  virtual void SendEncoded(OutgoingTensor tensor, HandedOver handed_over) = 0;
};

// The steps of one task, as its transport sees them. Thread-safe; calls never block. A transport
// holds no lock while it calls.
class TaskSteps : public Landing {
 public:
  // As a producer: `consumer` (a task's name) asks for what the step has for it. `sink` leads
  // there. A step that has not begun yet may still do so.
  virtual void Subscribe(const std::string& consumer, int64_t step_id,
                         std::shared_ptr<TensorSink> sink) = 0;
  // As a consumer: a tensor has arrived. One that comes late, for a step that has ended, is
  // dropped.
  virtual void Deliver(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead) = 0;
  // As a consumer: a producer, or the way to it, is lost to the step.
  virtual void Fail(int64_t step_id, const Status& why) = 0;

 protected:
  ~TaskSteps() = default;
};

// Abilities of a transport. Landing in host memory is not listed: every transport does that.
struct TransportCapabilities {
  // Tensors of up to so many bytes travel together and may overtake larger ones. 0: all tensors
  // arrive in the order in which they were sent.
  size_t inline_bytes_max = 0;
  // The consumer's tensor shares the producer's memory if that is of the allocator asked for.
  bool zero_copy = false;
  // Tensors are received into memory that the CPU cannot write; else such a tensor fails its step.
  bool lands_in_device_memory = false;
  // Both tasks have to be on one host, which their addresses tell. A transport that finds out in
  // another way fails the step instead.
  bool needs_same_host = false;
};

// Thread-safe; calls do not block, except that Stop and the destructor wait for calls under way.
class Transport {
 public:
  virtual ~Transport() = default;
  // The name by which TransportFactory makes it. All tasks of a cluster name the same.
  virtual string_view protocol() const = 0;
  virtual TransportCapabilities capabilities() const = 0;

  // Begins as the task `self`: takes other tasks' subscriptions, and Subscribe may be called. Once.
  // What arrives goes to `steps`, which is borrowed until Stop has returned and what `host` lends
  // has been stopped, too.
  virtual Status Serve(const TaskId& self, TaskSteps& steps) = 0;
  // As a consumer: finds out whether this transport leads to `producer`, by going there. `reached`
  // is called once, on any thread, possibly before Reach returns. OK; FailedPrecondition if the
  // tasks have no such way between them, and why; anything else if the producer is not there.
  using Reached = absl::AnyInvocable<void(const Status&) &&>;
  virtual void Reach(const TaskId& producer, Reached reached) { std::move(reached)(OkStatus()); }
  // As a consumer: asks `producer` for all that its part of the step sends to this task. If the
  // producer or the way to it is lost before Unsubscribe, the step fails: with Aborted if another
  // incarnation answers in its place, else with Unavailable; the error names the task.
  virtual void Subscribe(const TaskId& producer, int64_t step_id) = 0;
  // Ends the interest in the step: what comes from now on is dropped.
  virtual void Unsubscribe(const TaskId& producer, int64_t step_id) = 0;
  // Ends all ways to and from other tasks, whose steps that are subscribed to this one fail. Only
  // Unsubscribe may follow. Must not be called from within a call of TaskSteps.
  virtual void Stop() = 0;
};

}  // namespace penstock
