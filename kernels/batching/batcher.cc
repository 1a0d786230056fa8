// SPDX-License-Identifier: Apache-2.0
#include "kernels/batching/batcher.h"

#include <algorithm>
#include <set>
#include <utility>

#include "kernels/batching/batch_rows.h"

namespace penstock {
namespace {

bool SameRowTypeAndShape(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape().dims().subspan(1) == b.shape().dims().subspan(1);
}

bool CanShareBatch(const Batcher::Request& a, const Batcher::Request& b) {
  return a.work->CanShareBatch(*b.work) &&
         std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(),
                    SameRowTypeAndShape);
}

}  // namespace

StatusOr<std::shared_ptr<Batcher>> Batcher::Make(std::string name, BatchOptions options,
                                                 Scheduler& threads, Env& env) {
  std::shared_ptr<Batcher> made(new Batcher(std::move(name), std::move(options), threads, env));
  ASSIGN_OR_RETURN(made->alarm_, Alarm::Make(threads, env, [weak = std::weak_ptr<Batcher>(made)] {
                     if (const std::shared_ptr<Batcher> batcher = weak.lock()) batcher->OnAlarm();
                   }));
  return made;
}

std::string Batcher::DebugString() const {
  MutexLock lock(mu_);
  size_t batches = 0;
  int64_t rows = 0;
  for (const auto& [name, queue] : queues_) {
    batches += queue.size();
    for (const BatchPtr& batch : queue) rows += batch->rows;
  }
  return StrCat("Batcher '", name_, "': ", rows, " rows in ", batches, " batches wait, ",
                running_.size(), " batches run");
}

void Batcher::Add(std::shared_ptr<Request> request) {
  Outcome outcome;
  Status status;
  {
    MutexLock lock(mu_);
    status = Enqueue(request);
    if (status.ok()) StartReady(&outcome);
  }
  if (!status.ok()) return std::move(request->deliver)(std::move(status), {});
  Finish(std::move(outcome));
}

int64_t Batcher::RowsThatFit(const Request& request, const Queue& queue) const {
  if (queue.empty()) return -1;
  const Batch& open = *queue.back();
  const int64_t room = options_.rows_max - open.rows;
  if (!CanShareBatch(*open.parts.back().request, request)) return -1;
  if (options_.split) return room > 0 ? std::min(room, request.rows) : -1;
  return request.rows <= room ? request.rows : -1;
}

Status Batcher::Enqueue(const RequestPtr& request) {
  if (stopped_) return Cancelled("batcher '", name_, "' was dropped");
  if (request->rows > options_.request_rows_max) {
    return InvalidArgument("Task size ", request->rows, " is larger than maximum input batch size ",
                           options_.request_rows_max);
  }
  const auto found = queues_.find(request->queue);
  static const Queue& none = *new Queue;
  const Queue& queue = found == queues_.end() ? none : found->second;
  const int64_t room = RowsThatFit(*request, queue);
  const int64_t left = request->rows - std::max<int64_t>(room, 0);
  const int64_t added =
      room < 0 && left == 0 ? 1 : (left + options_.rows_max - 1) / options_.rows_max;
  const auto waiting = static_cast<int64_t>(queue.size());
  if (added > 0 && waiting + added > options_.waiting_max) {
    return Unavailable("The batch scheduling queue to which this task was submitted is full; ",
                       "currently ", waiting, " batches enqueued and max_enqueued_batches is ",
                       options_.waiting_max);
  }
  request->registered = request->cancellation->Register(
      [self = shared_from_this(), request](const Status& why) { self->Cancel(request, why); },
      &request->token);
  if (!request->registered) return request->cancellation->status();
  Place(request, &queues_[request->queue]);
  Changed(request->origin, "add", [] { return std::vector<Tensor>(); });
  return OkStatus();
}

void Batcher::Place(const RequestPtr& request, Queue* queue) {
  int64_t begin = 0;
  do {
    int64_t rows = request->rows - begin;
    const int64_t room = RowsThatFit(*request, *queue);
    if (room < 0) {
      queue->push_back(std::make_shared<Batch>());
      queue->back()->opened_ns = env_.NowNanos();
      rows = std::min(rows, options_.rows_max);
    } else {
      rows = std::min(rows, room);
    }
    Batch& batch = *queue->back();
    batch.parts.push_back({request, static_cast<int>(request->parts_left++), begin, rows});
    batch.rows += rows;
    request->batches.push_back(queue->back());
    begin += rows;
  } while (begin < request->rows);
  request->results.resize(request->parts_left);
}

bool Batcher::IsReady(const Queue& queue, int64_t now_ns) const {
  const Batch& front = *queue.front();
  return queue.size() > 1 || front.rows >= options_.rows_max ||
         now_ns - front.opened_ns >= options_.timeout_ns;
}

void Batcher::StartReady(Outcome* outcome) {
  const int64_t now_ns = env_.NowNanos();
  const int64_t parallel_max =
      options_.parallel_max > 0 ? options_.parallel_max : threads_.num_threads();
  while (static_cast<int64_t>(running_.size()) < parallel_max) {
    auto oldest = queues_.end();
    for (auto it = queues_.begin(); it != queues_.end(); ++it) {
      if (!IsReady(it->second, now_ns)) continue;
      if (oldest != queues_.end() &&
          oldest->second.front()->opened_ns <= it->second.front()->opened_ns) {
        continue;
      }
      oldest = it;
    }
    if (oldest == queues_.end()) break;
    outcome->started.push_back(TakeFront(&oldest->second));
    if (oldest->second.empty()) queues_.erase(oldest);
  }
  for (const auto& [name, queue] : queues_) {
    if (!IsReady(queue, now_ns)) alarm_->Set(queue.front()->opened_ns + options_.timeout_ns);
  }
}

Batcher::BatchPtr Batcher::TakeFront(Queue* queue) {
  BatchPtr batch = queue->front();
  queue->pop_front();
  if (options_.batch_down) BatchDown(batch, queue);
  batch->running = true;
  batch->alive = batch->parts.size();
  running_.push_back(batch);
  return batch;
}

// If the first parts of the batch have together the largest allowed size below the number of its
// rows, returns the other parts to the front of the queue.
void Batcher::BatchDown(const BatchPtr& batch, Queue* queue) {
  const auto above =
      std::upper_bound(options_.allowed.begin(), options_.allowed.end(), batch->rows);
  if (above == options_.allowed.begin() || *(above - 1) == batch->rows) return;
  const int64_t wanted = *(above - 1);
  int64_t rows = 0;
  auto part = batch->parts.begin();
  while (part != batch->parts.end() && rows + part->rows <= wanted) rows += part++->rows;
  if (rows != wanted || part == batch->parts.begin()) return;
  const auto rest = std::make_shared<Batch>();
  rest->opened_ns = batch->opened_ns;
  rest->rows = batch->rows - rows;
  rest->parts.assign(part, batch->parts.end());
  for (const Part& moved : rest->parts) {
    std::replace(moved.request->batches.begin(), moved.request->batches.end(), batch, rest);
  }
  batch->parts.erase(part, batch->parts.end());
  batch->rows = rows;
  queue->push_front(rest);
}

void Batcher::Fail(const RequestPtr& request, const Status& why, Outcome* outcome) {
  if (request->ended || !request->status.ok()) return;
  request->status = why;
  outcome->why = why;
  std::erase_if(request->batches, [&](const BatchPtr& batch) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (batch->running) {
      if (--batch->alive == 0) outcome->cancelled.push_back(batch);
      return false;
    }
    std::erase_if(batch->parts, [&](const Part& part) {
      if (part.request != request) return false;
      batch->rows -= part.rows;
      return true;
    });
    if (!batch->parts.empty()) return true;
    const auto queue = queues_.find(request->queue);
    std::erase(queue->second, batch);
    if (queue->second.empty()) queues_.erase(queue);
    return true;
  });
  EndIfUnused(request, outcome);
}

// Ends a failed request, unless it is the last one of a running batch.
void Batcher::EndIfUnused(const RequestPtr& request, Outcome* outcome) {
  for (const BatchPtr& batch : request->batches) {
    if (batch->alive == 0) return;
  }
  request->ended = true;
  outcome->ended.push_back(request);
}

void Batcher::End(const std::shared_ptr<Batch>& batch, const Status& status,
                  std::vector<std::vector<Tensor>> results) {
  Outcome outcome;
  {
    MutexLock lock(mu_);
    std::erase(running_, batch);
    for (size_t i = 0; i < batch->parts.size(); ++i) {
      const RequestPtr& request = batch->parts[i].request;
      std::erase(request->batches, batch);
      if (request->ended) continue;
      if (!request->status.ok()) {
        EndIfUnused(request, &outcome);
      } else if (!status.ok()) {
        Fail(request, status, &outcome);
      } else {
        request->results[batch->parts[i].index] = std::move(results[i]);
        if (--request->parts_left > 0) continue;
        request->ended = true;
        outcome.ended.push_back(request);
      }
    }
    StartReady(&outcome);
  }
  Finish(std::move(outcome));
}

void Batcher::Cancel(const RequestPtr& request, const Status& why) {
  Outcome outcome;
  {
    MutexLock lock(mu_);
    if (request->ended) return;
    request->registered = false;  // the cancellation calls this only once
    Fail(request, why, &outcome);
  }
  Finish(std::move(outcome));
}

void Batcher::OnAlarm() {
  Outcome outcome;
  {
    MutexLock lock(mu_);
    StartReady(&outcome);
  }
  Finish(std::move(outcome));
}

void Batcher::Shutdown() {
  Outcome outcome;
  {
    MutexLock lock(mu_);
    stopped_ = true;
    std::set<RequestPtr> requests;
    for (const auto& [name, queue] : queues_) {
      for (const BatchPtr& batch : queue) {
        for (const Part& part : batch->parts) requests.insert(part.request);
      }
    }
    for (const BatchPtr& batch : running_) {
      for (const Part& part : batch->parts) requests.insert(part.request);
    }
    const Status why = Cancelled("batcher '", name_, "' was dropped");
    for (const RequestPtr& request : requests) Fail(request, why, &outcome);
  }
  Finish(std::move(outcome));
}

void Batcher::Finish(Outcome outcome) {
  for (const BatchPtr& batch : outcome.started) {
    threads_.Schedule([self = shared_from_this(), batch] {
      batch->parts.back().request->work->Run(self, batch);
    });
  }
  for (const BatchPtr& batch : outcome.cancelled) batch->cancellation.Cancel(outcome.why);
  for (size_t i = 0; i < outcome.ended.size(); ++i) {
    auto end = [request = outcome.ended[i]] {
      if (request->registered) request->cancellation->Deregister(request->token);
      std::vector<Tensor> results;
      Status status = request->status;
      if (status.ok()) status = JoinParts(std::move(request->results), &results);
      std::move(request->deliver)(std::move(status), std::move(results));
    };
    // A step may continue on the thread that delivers its request, so the other requests are
    // delivered on other threads.
    if (i + 1 < outcome.ended.size()) {
      threads_.Schedule(std::move(end));
    } else {
      end();
    }
  }
}

}  // namespace penstock
