// SPDX-License-Identifier: Apache-2.0
//
// Step: one task's part of one step of the cluster, while it runs. It holds a local rendezvous, in
// which its executors exchange tensors; an outbox per consumer for tensors to other tasks; the
// step's cancellation; and resources that live as long as the step.
//
// Tensors from other tasks arrive through Deliver and meet their receivers in the local rendezvous.
// Kernels of collectives get their Collectives from the Step, too, although the messages of
// collectives belong to no step. Thread-safe. The StepTable and tensors that are being sent hold
// shared pointers to it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/done.h"
#include "core/base/mutex.h"
#include "core/op/resource.h"
#include "core/op/task_name.h"
#include "core/runtime/collective.h"
#include "core/runtime/rendezvous.h"
#include "distributed/transport/transport.h"

namespace penstock {

namespace collective {
class Exchange;
}

// The tensors that were sent to one task.
struct SentCounts {
  int64_t tensors = 0;  // empty ones and dead values included
  int64_t bytes = 0;    // size of the tensors, without the transport's headers
  void Add(const SentCounts& other) {
    tensors += other.tensors;
    bytes += other.bytes;
  }
};

class Step final : public Rendezvous,
                   public Collectives,
                   public std::enable_shared_from_this<Step> {
 public:
  // `task`: this task; `session`: the step's session; `begun_ns`: when the step began, by the
  // Env's clock. `exchange`: runs this task's collectives; borrowed; null: it has none.
  Step(int64_t id, TaskName task, std::string session, int64_t begun_ns = 0,
       collective::Exchange* exchange = nullptr);
  ~Step() override;

  int64_t id() const { return id_; }
  const std::string& session() const { return session_; }
  int64_t begun_ns() const { return begun_ns_; }
  Cancellation& cancellation() { return cancellation_; }
  ResourceStore& resources() { return resources_; }

  // Implements Rendezvous: a tensor whose key names another task as its destination goes to the
  // outbox for that task.
  Status Send(const HashedKey& key, Tensor value, bool is_dead) override;
  void Recv(const HashedKey& key, Received received) override;
  void Abort(const Status& why) override;

  // Implements Collectives:
  void Collect(CollectiveCall call, Collected collected) override;

  // Cancels all that runs or waits in the step.
  void Cancel(const Status& why);

  // Sends the tensors that wait for `consumer`, and from then on each further tensor as soon as a
  // kernel has sent it. Does nothing if the step has been aborted.
  void Subscribe(const TaskName& consumer, std::shared_ptr<TensorSink> sink);
  // Takes a tensor from another task; drops it if the step has been aborted. A key that comes twice
  // ends the step.
  void Deliver(const HashedKey& key, Tensor value, bool is_dead);

  // Returns "step 7 of /job:worker/replica:0/task:0 waited for 'w:0' from
  // /job:ps/replica:0/task:0", for the error of a step that has lost a task; "step 7 of ... ran"
  // if it waits for no other task.
  std::string Describe() const;

  // Returns the tensors sent so far, by consumer.
  std::map<TaskName, SentCounts> SentTo() const;
  // Returns the consumers that have not subscribed yet although tensors wait for them here,
  // with the number of these tensors.
  std::map<TaskName, size_t> WaitingForSubscription() const;

  // Calls `done` when everything sent so far has been handed over to the transport, or
  // the step is aborted.
  void WhenSent(Done done);

 private:
  struct HeldTensor {
    HashedKey key;
    Tensor value;
    bool is_dead;
  };
  struct Outbox {
    std::vector<HeldTensor> held;  // kept until the consumer subscribes
    SentCounts sent;
    std::shared_ptr<TensorSink> sink;
  };
  TensorSink::HandedOver CountDown();
  void HandedOver();

  const int64_t id_;
  const TaskName task_;
  const std::string session_;
  const int64_t begun_ns_;
  collective::Exchange* const exchange_;
  Cancellation cancellation_;
  ResourceStore resources_;
  const std::unique_ptr<Rendezvous> local_;

  mutable Mutex mu_;
  Status aborted_ ABSL_GUARDED_BY(mu_);
  std::map<TaskName, Outbox> outboxes_ ABSL_GUARDED_BY(mu_);  // by consumer
  int64_t unsent_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<Done> when_sent_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
