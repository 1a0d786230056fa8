// SPDX-License-Identifier: Apache-2.0
//
// Step: one task's part of one step of the cluster, while it runs: where its executors meet each
// other (a local rendezvous), what they send to other tasks (an outbox per consumer), how it is
// cancelled, and the resources that live no longer than it.
//
// Tensors from other tasks arrive through Deliver and meet their receivers in the local rendezvous.
// Kernels of collectives find their Collectives here, too; what these exchange belongs to no step.
// Thread-safe. Held by shared pointers: the StepTable's, and those of tensors on their way out.
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

// Counts the tensors that were sent to one task.
struct Sent {
  int64_t tensors = 0;  // empty ones and dead values included
  int64_t bytes = 0;    // of tensors, without what the transport adds
  void Add(const Sent& other) {
    tensors += other.tensors;
    bytes += other.bytes;
  }
};

class Step final : public Rendezvous,
                   public Collectives,
                   public std::enable_shared_from_this<Step> {
 public:
  // `task`: the task that this is; `session`: whose step it is; `begun_ns`: when, by the Env's
  // clock. `exchange`: the task's part in collectives, borrowed; null: it has none.
  Step(int64_t id, TaskName task, std::string session, int64_t begun_ns = 0,
       collective::Exchange* exchange = nullptr);
  ~Step() override;

  int64_t id() const { return id_; }
  const std::string& session() const { return session_; }
  int64_t begun_ns() const { return begun_ns_; }
  Cancellation& cancellation() { return cancellation_; }
  ResourceStore& resources() { return resources_; }

  // Rendezvous. A key whose destination is another task goes to the outbox of that task.
  Status Send(const HashedKey& key, Tensor value, bool is_dead) override;
  void Recv(const HashedKey& key, Received received) override;
  void Abort(const Status& why) override;

  // Collectives.
  void Collect(CollectiveCall call, Collected collected) override;

  // Cancels whatever runs or waits in the step.
  void Cancel(const Status& why);

  // A consumer asks for its tensors: those that are there and those to come.
  void Subscribe(const TaskName& consumer, std::shared_ptr<TensorSink> sink);
  // A tensor from another task. Late and repeated ones are dropped.
  void Deliver(const HashedKey& key, Tensor value, bool is_dead);

  // "step 7 of /job:worker/replica:0/task:0 waited for 'w:0' from /job:ps/replica:0/task:0", for
  // the error of a step that has lost a task; "step 7 of ... ran" if it waits for no other task.
  std::string Describe() const;

  // By consumer.
  std::map<TaskName, Sent> SentTo() const;
  // The tasks that have not asked yet for tensors that wait here for them, with their number.
  std::map<TaskName, size_t> Unasked() const;

  // Ends when everything sent so far has left for its consumer, or the step is aborted.
  void WhenSent(Done done);

 private:
  struct Held {
    HashedKey key;
    Tensor value;
    bool is_dead;
  };
  struct Outbox {
    std::vector<Held> held;  // until the consumer subscribes
    Sent sent;
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
