// SPDX-License-Identifier: Apache-2.0
//
// How a step begins, fails and ends.
#include "core/runtime/execution.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/error_origin.h"

namespace penstock {
namespace {

// In the first steps, and then in one of so many, nodes are timed, to learn which are expensive:
// two clock readings per node, 50 ns, come to 2 ns per node and step.
constexpr uint64_t kFirstSamples = 3;
constexpr uint64_t kSamplePeriod = 32;
constexpr size_t kWaitsShownMax = 5;

}  // namespace

Execution::Execution(const Program& program, const ExecutorOptions& options)
    : program_(program),
      options_(options),
      device_(*options.device),
      timer_(*options.timer),
      runners_max_(std::max(1, options.threads->num_threads())),
      caller_wakes_(*options.threads, "the other threads of a step") {
  InitIteration(program.loops()[0], &root_);
  pools_.resize(program.loops().size());
  InitRunner(&first_runner_);
}

void Execution::Begin(const StepArgs& args) {
  AssertAlone();
  args_ = args;
  cancellation_ = args.cancellation != nullptr ? args.cancellation : &own_cancellation_;
  step_ = {
      .step_id = args.step_id,
      .incarnation = device_.info().incarnation,
      .resources = args.resources != nullptr ? args.resources : &device_.resources(),
      .step_resources = args.step_resources != nullptr ? args.step_resources : &own_step_resources_,
      .rendezvous = args.rendezvous,
      .cancellation = cancellation_,
      .threads = options_.threads,
      .env = options_.env,
      .deadline_ns = args.deadline_ns,
      .feeds = args.feeds,
      .num_feeds = args.num_feeds,
      .fetches = args.fetches,
      .num_fetches = args.num_fetches};
  shared_ = false;
  stopped_.store(false, std::memory_order_relaxed);
  committed_.store(false, std::memory_order_relaxed);
  active_.store(1, std::memory_order_relaxed);
  num_running_ = 1;
  caller_idle_ = false;

  ResetCounts(&root_, /*first=*/true);
  Ready& ready = first_runner_.ready;
  for (auto root = program_.roots().rbegin(); root != program_.roots().rend(); ++root) {
    const bool expensive = (program_.pending(*root) & Program::kExpensive) != 0;
    (expensive ? ready.expensive : ready.cheap).push_back(*root);
  }

  observed_ = args.stats != nullptr || steps_ < kFirstSamples || steps_ % kSamplePeriod == 0;
  ++steps_;
  if (args.stats == nullptr) return;
  const int64_t now = options_.env->NowNanos();
  wall_offset_ns_ = options_.env->WallMicros() * 1000 - now;
  root_.ready_ns = std::make_unique<int64_t[]>(root_.loop->num_items);
  for (const uint32_t root : program_.roots()) root_.ready_ns[root] = now;
}

Status Execution::Run(const StepArgs& args) {
  Begin(args);
  runs_async_ = false;
  RunLoop(first_runner_);
  if (shared_) WaitForOthers();
  return End();
}

void Execution::RunAsync(const StepArgs& args, Ended ended) {
  Begin(args);
  runs_async_ = true;
  ended_ = std::move(ended);
  shared_ = true;
  if (args_.deadline_ns != 0) {
    // No thread waits for the step, so only a timer can end it when all its nodes wait.
    armed_ = timer_.Arm(args_.deadline_ns, [this] { CheckDeadline(); });
  }
  options_.threads->Schedule([this] {
    RunLoop(first_runner_);
    Leave(/*from_runner=*/true);
  });
}

Status Execution::End() {
  if (armed_.has_value()) timer_.Disarm(*std::exchange(armed_, std::nullopt));
  AssertAlone();
  if (abort_registered_.load(std::memory_order_relaxed)) {
    cancellation_->Deregister(abort_token_);
    abort_registered_.store(false, std::memory_order_relaxed);
  }
  if (device_.asynchronous()) {
    // What was launched has to end, and its errors belong to this step.
    const Status launched = device_.Synchronize();
    if (!launched.ok()) Stop(launched);
  }
  if (frames_running_ > 0 && !stopped_.load(std::memory_order_relaxed)) [[unlikely]] {
    Stop(InvalidArgument("nothing is left to run", DescribeLoops(),
                         ", which never ends: some of its Enters have not been reached"));
  }
  Status status;
  if (stopped_.load(std::memory_order_relaxed)) [[unlikely]] {
    status = cancellation_->status();
    // Where the cancellation came from outside, nothing here has aborted the rendezvous yet.
    if (args_.rendezvous != nullptr) args_.rendezvous->Abort(status);
    Clear();
  }
  if (own_cancellation_.cancelled()) own_cancellation_.Reset();
  if (args_.step_resources == nullptr) own_step_resources_.ClearAll();
  root_.ready_ns = nullptr;
  return status;
}

// A failed step leaves no value behind.
void Execution::Clear() {
  AssertAlone();
  const Program::Loop& outside = *root_.loop;
  for (uint32_t i = 0; i < outside.num_slots; ++i) root_.inputs[i] = Tensor();
  for (size_t i = 0; i < outside.waits.size(); ++i) root_.waits[i].copied = false;
  shared_tasks_.clear();
  ClearLoops();
}

void Execution::Fail(const Item& item, const Status& status) {
  Stop(AtNode(status, item.node->name()));
}

// The first failure counts, be it here or in whatever else shares the cancellation: those that
// follow from it find the step cancelled already.
void Execution::Stop(const Status& why) {
  cancellation_->Cancel(why);
  stopped_.store(true, std::memory_order_relaxed);
  if (args_.rendezvous != nullptr) args_.rendezvous->Abort(cancellation_->status());
}

void Execution::CheckDeadline() {
  if (options_.env->NowNanos() < args_.deadline_ns || cancellation_->cancelled()) return;
  Stop(DeadlineExceeded("step ", args_.step_id, " did not end before its deadline", DescribeWaits(),
                        DescribeLoops()));
}

std::string Execution::DescribeWaits() {
  const FlowLock lock(*this);
  std::vector<std::string> names;
  size_t waiting = 0;
  const auto describe = [&](const Iteration& it) {
    for (size_t i = 0; i < it.loop->waits.size(); ++i) {
      const Wait& wait = it.waits[i];
      if (!wait.in_flight.load(std::memory_order_relaxed)) continue;
      if (++waiting > kWaitsShownMax) continue;
      const Node& node = *wait.item->node;
      names.push_back(StrCat("'", node.name(), "' (", node.op_name(), ")"));
    }
  };
  describe(root_);
  for (const LoopPool& pool : pools_) {
    for (const auto& it : pool.iterations) describe(*it);
  }
  if (waiting == 0) return "";
  if (waiting > kWaitsShownMax) names.push_back(StrCat(waiting - kWaitsShownMax, " more"));
  return StrCat("; it waited for ", absl::StrJoin(names, ", "));
}

// Once per step, before its first node that waits: the end of the step, wherever it comes from,
// reaches what waits at the rendezvous. False when the step has been cancelled already.
bool Execution::RegisterAbort() {
  Rendezvous* const rendezvous = args_.rendezvous;
  if (rendezvous == nullptr || abort_registered_.load(std::memory_order_acquire)) return true;
  MutexLock lock(mu_);
  if (abort_registered_.load(std::memory_order_relaxed)) return true;
  if (!cancellation_->Register([rendezvous](const Status& why) { rendezvous->Abort(why); },
                               &abort_token_)) {
    return false;
  }
  abort_registered_.store(true, std::memory_order_release);
  return true;
}

}  // namespace penstock
