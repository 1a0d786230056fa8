// SPDX-License-Identifier: Apache-2.0
//
// Batcher: collects the inputs of nodes that run in several steps of one task, and forms batches of
// them.
//
//   request ─► queue: [closed batch] [closed batch] [open batch]
//                          │ full, or its time is over, and fewer than parallel_max batches run
//                          ▼
//                     BatchWork::Run ─► Batcher::End: the results of each request ─► deliver
//
// A waiting request holds no thread. It ends at once when its step is cancelled. One exception: the
// last request of a running batch waits until the work, which is then cancelled, has ended, because
// the work may use objects of the steps. Thread-safe. Actions in a StateLog: "add".
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "core/base/cancellation.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/op/resource.h"
#include "core/tensor/tensor.h"
#include "kernels/batching/alarm.h"
#include "kernels/batching/batch_options.h"

namespace penstock {

class BatchWork;

class Batcher final : public Resource, public std::enable_shared_from_this<Batcher> {
 public:
  static constexpr char kType[] = "Batcher";
  struct Batch;

  // One execution of a node. The first group of members is set by the caller of Add.
  struct Request {
    std::string queue;           // the attribute batching_queue
    std::vector<Tensor> inputs;  // the tensors, of rank >= 1, all with `rows` rows
    int64_t rows = 0;
    int64_t id = 0;
    std::shared_ptr<const BatchWork> work;
    Cancellation* cancellation = nullptr;  // borrowed until `deliver` is called
    UpdateOrigin origin;                   // borrowed like `cancellation`
    // Called once, without a lock, on any thread. `results` are empty unless the status is OK.
    absl::AnyInvocable<void(Status, std::vector<Tensor> results) &&> deliver;

   private:
    friend class Batcher;
    // Guarded by the Batcher's mutex.
    Cancellation::Token token = 0;
    bool registered = false, ended = false;
    Status status;  // not OK if the request has failed
    // The batches that hold parts of this request and have not ended.
    std::vector<std::shared_ptr<Batch>> batches;
    std::vector<std::vector<Tensor>> results;  // the results of each part
    size_t parts_left = 0;
  };

  // Rows [begin, begin + rows) of a request.
  struct Part {
    std::shared_ptr<Request> request;
    int index = 0;  // index of this part in its request
    int64_t begin = 0, rows = 0;
    Tensor Rows(int input) const { return request->inputs[input].Slice(begin, begin + rows); }
  };
  struct Batch {
    std::vector<Part> parts;  // not empty; constant once the batch runs
    int64_t rows = 0;
    Cancellation cancellation;  // cancels the work

   private:
    friend class Batcher;
    int64_t opened_ns = 0;
    bool running = false;
    size_t alive = 0;  // while the batch runs: the number of parts whose requests have not failed
  };

  // `threads` and `env` must outlive all requests and the Batcher. ResourceExhausted as from
  // Alarm::Make.
  static StatusOr<std::shared_ptr<Batcher>> Make(std::string name, BatchOptions options,
                                                 Scheduler& threads, Env& env);

  // Puts a request into its queue. `deliver` gets InvalidArgument if the request has too many rows,
  // Unavailable if max_enqueued_batches batches wait already, Cancelled if the Batcher was dropped,
  // the cancellation's status, or the error of the work.
  void Add(std::shared_ptr<Request> request) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends a batch; the BatchWork calls it. If the status is OK, results[p] has the results of part
  // p.
  void End(const std::shared_ptr<Batch>& batch, const Status& status,
           std::vector<std::vector<Tensor>> results) ABSL_LOCKS_EXCLUDED(mu_);

  const BatchOptions& options() const { return options_; }
  const char* TypeName() const override { return kType; }
  std::string DebugString() const override;
  const char* OpaqueReason() const override { return "its batches belong to running steps"; }
  void Shutdown() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using RequestPtr = std::shared_ptr<Request>;
  using BatchPtr = std::shared_ptr<Batch>;
  using Queue = std::deque<BatchPtr>;  // the last one is open for more rows
  // The requests and batches that a change has ended or started. The caller delivers, runs and
  // cancels them after it has released the lock.
  struct Outcome {
    std::vector<RequestPtr> ended;
    std::vector<BatchPtr> started, cancelled;
    Status why;  // the status with which the batches in `cancelled` end
  };

  Batcher(std::string name, BatchOptions options, Scheduler& threads, Env& env)
      : name_(std::move(name)), options_(std::move(options)), threads_(threads), env_(env) {}

  Status Enqueue(const RequestPtr& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Place(const RequestPtr& request, Queue* queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns how many rows of `request` fit into the open batch of `queue`; -1 if there is no open
  // batch, or if it is full.
  int64_t RowsThatFit(const Request& request, const Queue& queue) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsReady(const Queue& queue, int64_t now_ns) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Starts the batches that are ready, the oldest first, and sets the alarm for the next one.
  void StartReady(Outcome* outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  BatchPtr TakeFront(Queue* queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void BatchDown(const BatchPtr& batch, Queue* queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fail(const RequestPtr& request, const Status& why, Outcome* outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndIfUnused(const RequestPtr& request, Outcome* outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Cancel(const RequestPtr& request, const Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  void OnAlarm() ABSL_LOCKS_EXCLUDED(mu_);
  void Finish(Outcome outcome) ABSL_LOCKS_EXCLUDED(mu_);

  const std::string name_;
  const BatchOptions options_;
  Scheduler& threads_;
  Env& env_;
  std::unique_ptr<Alarm> alarm_;
  mutable Mutex mu_;  // locked before the mutex of a Cancellation
  std::map<std::string, Queue> queues_ ABSL_GUARDED_BY(mu_);  // has no empty queues
  std::vector<BatchPtr> running_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
};

// The processing of batches.
class BatchWork {
 public:
  virtual ~BatchWork() = default;
  // Returns whether requests with this work and requests with the work `other` may share a batch.
  // The work of the last request of a batch processes the whole batch.
  virtual bool CanShareBatch(const BatchWork& other) const = 0;
  // Starts the work, on the pool. It must end with one call of batcher->End(batch, ...), on any
  // thread, and soon after batch->cancellation is cancelled.
  virtual void Run(std::shared_ptr<Batcher> batcher,
                   std::shared_ptr<Batcher::Batch> batch) const = 0;
};

}  // namespace penstock
