// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/running_step.h"

#include <limits>

#include "core/base/error_origin.h"

namespace penstock {
namespace {

// To learn which nodes are expensive, the executor times the nodes of the first kFirstSamples
// steps, and then of one step in kSamplePeriod. Reading the clock twice takes 50 ns per node, which
// is 2 ns on average over all steps.
constexpr uint64_t kFirstSamples = 3;
constexpr uint64_t kSamplePeriod = 32;

// Returns the wall clock's time minus that of NowNanos. A thread may lose its core between the two
// readings, so the best of several pairs of readings counts.
int64_t WallOffset(Env& env) {
  constexpr int kTries = 4;
  constexpr int64_t kTogetherNanos = 1'000;
  int64_t offset_ns = 0, least_ns = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kTries && least_ns > kTogetherNanos; ++i) {
    const int64_t before_ns = env.NowNanos();
    const int64_t wall_ns = env.WallMicros() * 1'000;
    const int64_t apart_ns = env.NowNanos() - before_ns;
    if (apart_ns >= least_ns) continue;
    least_ns = apart_ns;
    offset_ns = wall_ns - before_ns - apart_ns / 2;
  }
  return offset_ns;
}

}  // namespace

RunningStep::RunningStep(const ExecutorOptions& options)
    : options_(options),
      device_(*options.device),
      device_asynchronous_(device_.asynchronous()),
      context_{.incarnation = device_.info().incarnation,
               .threads = options.threads,
               .env = options.env} {}

void RunningStep::Begin(const StepArgs& args) {
  cancellation_ = args.cancellation != nullptr ? args.cancellation : &own_cancellation_;
  context_.step_id = args.step_id;
  context_.resources = args.resources != nullptr ? args.resources : &device_.resources();
  context_.step_resources =
      args.step_resources != nullptr ? args.step_resources : &own_step_resources_;
  context_.rendezvous = args.rendezvous;
  context_.cancellation = cancellation_;
  context_.deadline_ns = args.deadline_ns;
  context_.feeds = args.feeds;
  context_.num_feeds = args.num_feeds;
  context_.fetches = args.fetches;
  context_.num_fetches = args.num_fetches;
  stats_ = args.stats;
  memory_ = args.memory;
  poller_ = args.poller;
  shared_ = false;
  stopped_.store(false, std::memory_order_relaxed);
  committed_.store(false, std::memory_order_relaxed);
  observed_ = traced() || steps_ < kFirstSamples || steps_ % kSamplePeriod == 0;
  ++steps_;
  if (traced()) wall_offset_ns_ = WallOffset(*options_.env);
  running_id_.store(args.step_id, std::memory_order_relaxed);
}

void RunningStep::BecomeShared() {
  MutexLock lock(watch_mu_);
  shared_ = true;
  watchable_ = true;
}

bool RunningStep::Watch(absl::FunctionRef<void(int64_t step_id)> look) {
  MutexLock lock(watch_mu_);
  if (watchable_) look(context_.step_id);
  return watchable_;
}

void RunningStep::DeregisterAndSynchronize() {
  AssertAlone();
  if (shared_) {
    MutexLock lock(watch_mu_);
    watchable_ = false;
  }
  if (abort_registered_.load(std::memory_order_relaxed)) {
    cancellation_->Deregister(abort_token_);
    abort_registered_.store(false, std::memory_order_relaxed);
  }
  if (!device_asynchronous_) return;
  // Wait for the work that kernels have launched, because its errors belong to this step.
  const Status launched = device_.Synchronize();
  if (!launched.ok()) Stop(launched);
}

Status RunningStep::End() {
  Status status;
  if (stopped()) [[unlikely]] {
    status = cancellation_->status();
    // If the cancellation came from outside, the rendezvous has not been aborted yet.
    if (context_.rendezvous != nullptr) context_.rendezvous->Abort(status);
  }
  if (own_cancellation_.cancelled()) own_cancellation_.Reset();
  if (context_.step_resources == &own_step_resources_) own_step_resources_.ClearAll();
  return status;
}

KernelContext::Params RunningStep::KernelParams() {
  return {.step = &context_,
          .device_name = &device_.name(),
          .allocator = &device_.allocator(),
          .host_allocator = &CpuAllocator(),
          .stream = device_.stream(),
          .device_handles = device_.kernel_handles()};
}

void RunningStep::Fail(const Node& node, const Status& status) {
  Stop(AtNode(status, node.name()));
}

// Only the first failure sets the step's status: Cancel ignores later ones, and also this one if
// other code has cancelled the step before.
void RunningStep::Stop(const Status& why) {
  cancellation_->Cancel(why);
  stopped_.store(true, std::memory_order_relaxed);
  if (context_.rendezvous != nullptr) context_.rendezvous->Abort(cancellation_->status());
}

Status RunningStep::CheckContinues() const {
  if (committed()) return OkStatus();
  if (cancelled()) return cancellation_->status();
  if (!has_deadline() || NowNanos() < deadline_ns()) return OkStatus();
  return DeadlineExceeded("step ", step_id(), " did not end before its deadline");
}

bool RunningStep::RegisterAbort() {
  Rendezvous* const rendezvous = context_.rendezvous;
  if (rendezvous == nullptr || abort_registered_.load(std::memory_order_acquire)) return true;
  MutexLock lock(abort_mu_);
  if (abort_registered_.load(std::memory_order_relaxed)) return true;
  if (!cancellation_->Register([rendezvous](const Status& why) { rendezvous->Abort(why); },
                               &abort_token_)) {
    return false;
  }
  abort_registered_.store(true, std::memory_order_release);
  return true;
}

}  // namespace penstock
