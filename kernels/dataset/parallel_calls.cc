// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/parallel_calls.h"

#include "kernels/dataset/cancellable_wait.h"
#include "kernels/dataset/parallelism.h"

namespace penstock {
namespace {

// The approximate time that it takes to pass a call to another thread and to wait for its result.
constexpr int64_t kQuickNanos = 20'000;
// The first kSamples calls run on the caller's thread, to measure how long a call takes. The
// measurement ends earlier if the estimate reaches kSampleNanosMax.
constexpr int64_t kSamples = 8;
constexpr int64_t kSampleNanosMax = 1'000'000;

}  // namespace

ParallelCalls::ParallelCalls(const IteratorContext& ctx, ElementCall function)
    : background_(ctx.With(&stop_)),
      function_(std::move(function)),
      ended_(*ctx.threads, "parallel calls of a dataset's function") {}

ParallelCalls::~ParallelCalls() {
  stop_.Cancel(Cancelled("the iterator was deleted"));
  MutexLock lock(mu_);
  ended_.Wait(mu_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return running_ == 0; });
}

bool ParallelCalls::IsQuick() const {
  if (function_.waits()) return false;
  return nanos_ < (samples_ < kSamples ? kSampleNanosMax : kQuickNanos);
}

void ParallelCalls::Begin(const IteratorContext& ctx, Element args) {
  auto call = std::make_shared<Call>();
  calls_.push_back(call);
  if (IsQuick()) return RunHere(ctx, std::move(args), call.get());
  {
    MutexLock lock(mu_);
    ++running_;
  }
  function_.RunAsync(background_, std::move(args),
                     [this, call = std::move(call)](Status status, Element results) {
                       call->status = std::move(status);
                       call->results = std::move(results);
                       call->ended.store(true, std::memory_order_release);
                       // Notified under the lock, because the destructor may free the condition as
                       // soon as the lock is released.
                       MutexLock lock(mu_);
                       --running_;
                       ended_.NotifyAll();
                     });
}

void ParallelCalls::RunHere(const IteratorContext& ctx, Element args, Call* call) {
  const int64_t begin = ctx.env->NowNanos();
  call->status = function_.Run(ctx, std::move(args), &call->results);
  const int64_t nanos = ctx.env->NowNanos() - begin;
  // The first call is slower than later ones, so a faster call lowers the estimate at once, and a
  // slower call raises it gradually.
  nanos_ = samples_++ == 0 || nanos < nanos_ ? nanos : (7 * nanos_ + nanos) / 8;
  call->ended.store(true, std::memory_order_release);
}

Status ParallelCalls::WaitFor(const IteratorContext& ctx, const Call& call) {
  if (call.ended.load(std::memory_order_acquire)) return OkStatus();
  return CancellableWait(ctx, mu_, ended_,
                         [&call] { return call.ended.load(std::memory_order_acquire); });
}

Status ParallelCalls::WaitForFirst(const IteratorContext& ctx) {
  return WaitFor(ctx, *calls_.front());
}

Status ParallelCalls::TakeFirst(Element* results) {
  const std::shared_ptr<Call> call = std::move(calls_.front());
  calls_.pop_front();
  *results = std::move(call->results);
  return call->status;
}

Status ParallelCalls::Save(const IteratorContext& ctx, StateWriter* writer) {
  writer->Int(size());
  for (const std::shared_ptr<Call>& call : calls_) {
    RETURN_IF_ERROR(WaitFor(ctx, *call));
    writer->Error(call->status);
    writer->Values(call->results);
  }
  return OkStatus();
}

Status ParallelCalls::Restore(const ElementSpec& spec, StateReader* reader) {
  ASSIGN_OR_RETURN(const int64_t count, reader->Int(0, kParallelMax));
  for (int64_t i = 0; i < count; ++i) {
    auto call = std::make_shared<Call>();
    RETURN_IF_ERROR(reader->Result(spec, &call->status, &call->results));
    call->ended = true;
    calls_.push_back(std::move(call));
  }
  return OkStatus();
}

}  // namespace penstock
