// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/iterator_resource.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace penstock {
namespace {

// An operation that waits to run.
struct Request {
  Request(IteratorResource& resource, const IteratorContext& ctx,
          IteratorResource::Operation operation, Done done)
      : resource(resource), ctx(ctx), operation(std::move(operation)), done(std::move(done)) {}
  IteratorResource& resource;  // alive until `done` is called
  const IteratorContext ctx;
  IteratorResource::Operation operation;
  std::optional<Done> done;  // the operation; empty once it was moved out to be called
  Cancellation::Token token = 0;
  Status cancelled;  // guarded by the mutex of the queue

  void End(const Status& status) {
    Done taken = *std::move(done);
    done.reset();
    std::move(taken)(status);
  }
};
using RequestPtr = std::shared_ptr<Request>;

std::vector<Tensor> NoValues() { return {}; }

IteratorContext WithCalls(const IteratorContext& ctx, const IteratorResource::Content& content) {
  IteratorContext copy = ctx;
  copy.calls = content.calls.get();
  return copy;
}

}  // namespace

// The state that the resource shares with its thread, which may outlive the resource.
struct IteratorResource::State {
  explicit State(Scheduler& threads) : changed(threads, "the next operation on an iterator") {}

  // The main function of the thread.
  void Serve() {
    while (RequestPtr request = Next()) {
      // Next has removed the request from the queue, so Cancel cannot end the request any more.
      request->ctx.cancellation->Deregister(request->token);
      const Status status = request->ctx.cancellation->cancelled()
                                ? request->ctx.cancellation->status()
                                : request->resource.Perform(request->ctx, request->operation);
      Release(/*on_thread=*/true);
      request->End(status);
      request = nullptr;
      MutexLock lock(mu);
      ending = false;
    }
  }

  RequestPtr Next() {
    MutexLock lock(mu);
    changed.Wait(mu, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
      return stopped || (!busy && !queue.empty());
    });
    if (stopped) return nullptr;
    RequestPtr next = std::move(queue.front());
    queue.pop_front();
    busy = true;
    return next;
  }

  // Called when the running operation has ended. `on_thread`: the resource's thread ran the
  // operation, and will call its Done next.
  void Release(bool on_thread) {
    Content dropped;
    MutexLock lock(mu);
    busy = false;
    if (on_thread) ending = true;
    if (stopped) std::swap(dropped, content);
    lock.Unlock();
    changed.NotifyAll();
  }

  // Queues a request. If this returns an error, the request will not run, and the caller must call
  // its Done.
  Status Queue(const RequestPtr& request) {
    MutexLock lock(mu);
    if (stopped) return Cancelled("the iterator was deleted");
    if (!request->cancelled.ok()) return request->cancelled;
    queue.push_back(request);
    lock.Unlock();
    changed.NotifyAll();
    return OkStatus();
  }

  // Called when a request's step is cancelled. Ends the request unless its operation is running; a
  // running operation notices the cancellation itself.
  void Cancel(const RequestPtr& request, const Status& why) {
    {
      MutexLock lock(mu);
      request->cancelled = why;
      const auto found = std::find(queue.begin(), queue.end(), request);
      if (found == queue.end()) return;
      queue.erase(found);
    }
    request->End(why);
  }

  Mutex mu;
  Condition changed;
  bool stopped ABSL_GUARDED_BY(mu) = false;
  bool busy ABSL_GUARDED_BY(mu) = false;  // an operation runs and owns `content`
  // The thread is calling the Done of an operation. Meanwhile other operations may run on their
  // callers' threads.
  bool ending ABSL_GUARDED_BY(mu) = false;
  std::deque<RequestPtr> queue ABSL_GUARDED_BY(mu);
  std::unique_ptr<Thread> thread ABSL_GUARDED_BY(mu);
  Content content;
};

IteratorResource::IteratorResource(ElementSpec spec, Scheduler& threads)
    : spec_(std::move(spec)), threads_(threads), state_(std::make_shared<State>(threads)) {}

void IteratorResource::Shutdown() {
  std::deque<RequestPtr> dropped;
  Content content;
  {
    MutexLock lock(state_->mu);
    state_->stopped = true;
    dropped.swap(state_->queue);
    if (!state_->busy) std::swap(content, state_->content);
  }
  state_->changed.NotifyAll();
  for (const RequestPtr& request : dropped) {
    request->ctx.cancellation->Deregister(request->token);
    request->End(Cancelled("the iterator was deleted"));
  }
}

IteratorResource::~IteratorResource() {
  Shutdown();
  std::unique_ptr<Thread> thread;
  bool own = false;
  {
    MutexLock lock(state_->mu);
    thread = std::move(state_->thread);
    own = state_->ending;
  }
  // A Done may drop the last reference to the resource on the resource's own thread. That thread
  // cannot join itself, so the pool joins it.
  if (own && thread != nullptr) threads_.Schedule([thread = std::move(thread)] {});
}

void IteratorResource::Delete(const UpdateOrigin& origin) {
  {
    MutexLock lock(state_->mu);
    Changed(origin, "delete", NoValues);
  }
  Shutdown();
}

Status IteratorResource::Perform(const IteratorContext& ctx, const Operation& operation) {
  const Status status = operation(WithCalls(ctx, state_->content), state_->content);
  MutexLock lock(state_->mu);
  Changed(ctx.origin, "run", NoValues);
  return status;
}

void IteratorResource::Run(const IteratorContext& ctx, Operation operation, Done done) {
  Status status;
  if (TryRunHere(ctx, operation, &status)) return std::move(done)(status);
  auto request = std::make_shared<Request>(*this, ctx, std::move(operation), std::move(done));
  const std::shared_ptr<State> state = state_;
  StartThread();
  const bool registered = ctx.cancellation->Register(
      [state, request](const Status& why) { state->Cancel(request, why); }, &request->token);
  if (!registered) return request->End(ctx.cancellation->status());
  const Status queued = state->Queue(request);
  if (queued.ok()) return;
  ctx.cancellation->Deregister(request->token);
  request->End(queued);
}

void IteratorResource::StartThread() {
  MutexLock lock(state_->mu);
  if (state_->stopped || state_->thread != nullptr) return;
  state_->thread = threads_.StartThread("penstock_iter", [state = state_] { state->Serve(); });
}

bool IteratorResource::TryRunHere(const IteratorContext& ctx, const Operation& operation,
                                  Status* status) {
  State& state = *state_;
  {
    MutexLock lock(state.mu);
    if (state.stopped || state.busy || !state.queue.empty()) return false;
    if (state.content.iterator == nullptr || !state.content.iterator->ReadyNow()) return false;
    state.busy = true;
  }
  *status = Perform(ctx, operation);
  state.Release(/*on_thread=*/false);
  return true;
}

Status IteratorResource::SetDataset(const IteratorContext& ctx, DatasetPtr dataset,
                                    Content& content) const {
  if (!spec_.types.empty()) {
    RETURN_IF_ERROR(CheckTypes(spec_, dataset->spec()));
    RETURN_IF_ERROR(CheckShapes(spec_, dataset->spec()));
  }
  // Destroy the old iterator first, so that its threads end before the new one starts its own.
  content.iterator = nullptr;
  content.dataset = nullptr;
  content.calls->Clear();  // new state, so that random ops in functions restart their streams
  ASSIGN_OR_RETURN(content.iterator, dataset->NewIterator(ctx));
  content.dataset = std::move(dataset);
  return OkStatus();
}

Status IteratorResource::Prepare(const IteratorContext& ctx, Content& content) const {
  if (content.iterator != nullptr) return OkStatus();
  if (!factory_) {
    return FailedPrecondition(
        "GetNext() failed because the iterator has not been initialized. Ensure that you have run ",
        "the initializer operation for this iterator before getting the next element.");
  }
  ASSIGN_OR_RETURN(const ElementCall call, ElementCall::New(ctx, *factory_));
  ASSIGN_OR_RETURN(DatasetPtr dataset, call.NewDataset(ctx, {}));
  return SetDataset(ctx, std::move(dataset), content);
}

}  // namespace penstock
