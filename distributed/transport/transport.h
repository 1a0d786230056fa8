// SPDX-License-Identifier: Apache-2.0
//
// Transport: moves tensors between tasks. It sees step ids, keys and tensors; no graph.
//
// A consumer subscribes once per step and producer, when its part of the step begins; the producer
// sends each tensor as soon as it has both the tensor and the subscription. So tensors move without
// a question each, and never reach a task that is not running their step: what has to wait, waits
// at the producer, as a reference on a buffer that exists anyway.
//
// Both ends meet the step through its StepTable (distributed/step_table.h): a transport calls
// StepTable::Subscribe for subscriptions that arrive, with the TensorSink that leads back to the
// consumer, and StepTable::Deliver or Fail for what the producer sends.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/any_invocable.h"
#include "core/base/status.h"
#include "core/runtime/rendezvous.h"
#include "core/tensor/tensor.h"

namespace penstock {

// A task of the cluster in one of its lives.
struct TaskId {
  std::string name;          // "/job:ps/replica:0/task:1"
  std::string address;       // "host:port"
  uint64_t incarnation = 0;  // random, never 0 in a live task, new at each start

  bool operator==(const TaskId&) const = default;
  // "/job:ps/replica:0/task:1 at host:port": how errors name it.
  std::string ToString() const { return StrCat(name, " at ", address); }
};

// The producer's end of the way to one consumer. Thread-safe; calls never block.
class TensorSink {
 public:
  using HandedOver = absl::AnyInvocable<void() &&>;

  virtual ~TensorSink() = default;
  // `handed_over` is called once, on any thread and possibly before Send returns: when the tensor
  // needs nothing of its step any more, because it is on its way or was dropped.
  virtual void Send(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead,
                    HandedOver handed_over) = 0;
  // Ends the consumer's part of the step with `why`.
  virtual void Refuse(int64_t step_id, const Status& why) = 0;
  // Drops what has not left yet.
  virtual void Drop(int64_t step_id) = 0;
};

// The consumer's end. Thread-safe; calls never block.
class Transport {
 public:
  virtual ~Transport() = default;
  // Asks `producer` for all that its part of the step sends to this task. If the producer or the
  // way to it is lost before Unsubscribe, the step fails.
  virtual void Subscribe(const TaskId& producer, int64_t step_id) = 0;
  virtual void Unsubscribe(const TaskId& producer, int64_t step_id) = 0;
};

}  // namespace penstock
