// SPDX-License-Identifier: Apache-2.0
#include "distributed/task/task.h"

#include <utility>

#include "core/base/timeout.h"
#include "core/tensor/memory_limit.h"

namespace penstock {
namespace {

constexpr int64_t kHousekeepingNanos = 5'000'000'000;
// The time between two checks whether steps have ended.
constexpr int64_t kPollNanos = 20'000'000;

// Sets a limit that suits this machine, unless the owner of the account has set one.
void LimitMemory(MemoryAccount& account) {
  if (account.limit() == 0) account.set_limit(DefaultMemoryLimit());
}

}  // namespace

Task::Task(Parts parts)
    : parts_(std::move(parts)),
      made_ns_(parts_.env->NowNanos()),
      worker_({.self = parts_.self,
               .devices = std::move(parts_.devices),
               .threads = parts_.scheduler,
               .env = parts_.env,
               .timer = parts_.timer,
               .memory = parts_.memory,
               .account = parts_.account}),
      changed_(*parts_.scheduler, "a task to be told to end") {
  LimitMemory(*parts_.account);
  worker_.set_transport(parts_.transport);
}

Task::~Task() { Stop(); }

Status Task::Start(const ClusterSpec& cluster) {
  master_.emplace(Master::Options{
      .cluster = cluster,
      .worker = &worker_,
      .connect = parts_.connect,
      .services = {.env = parts_.env, .timer = parts_.timer, .threads = parts_.scheduler},
      .registry = parts_.registry,
      .health = parts_.health,
      .create_timeout_ms = parts_.create_timeout_ms,
      .idle_timeout_ms = parts_.idle_timeout_ms});
  sessions_.emplace(self().address, *master_, *parts_.scheduler);
  RETURN_IF_ERROR(ServeTransport());
  master_->SampleSteps();
  housekeeping_ = parts_.scheduler->StartThread("housekeeping", [this] { RunHousekeeping(); });
  return OkStatus();
}

Status Task::ServeTransport() {
  const Status served = parts_.transport->Serve(self(), worker_.steps());
  if (!absl::IsFailedPrecondition(served) && !absl::IsResourceExhausted(served)) return served;
  return Status(served.code(),
                StrCat("--protocol=", parts_.transport->protocol(), ": ", served.message(),
                       "; or choose --protocol=auto or grpc in all tasks"));
}

void Task::RunHousekeeping() {
  MutexLock lock(mu_);
  const auto next_ns = [this] { return parts_.env->NowNanos() + kHousekeepingNanos; };
  const auto stopped = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopped_; };
  while (!changed_.WaitUntil(mu_, next_ns(), stopped)) {
    lock.Unlock();
    worker_.DeleteExpiredSessions();
    master_->SampleSteps();
    if (master_->closes_idle_sessions()) master_->CloseIdleSessions(parts_.connected_clients());
    const bool dropped = parts_.drop_unused && parts_.drop_unused();
    const bool closed = master_->ClosedSinceLastCall(), deleted = worker_.DeletedSinceLastCall();
    if ((closed || deleted || dropped) && parts_.return_memory) {
      parts_.return_memory(/*tensors=*/!worker_.has_sessions());
    }
    lock.Lock();
  }
}

void Task::Join() {
  MutexLock lock(mu_);
  changed_.Wait(
      mu_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return shutdown_requested_ || stopped_; });
}

void Task::RequestShutdown(const std::string& reason) {
  MutexLock lock(mu_);
  if (std::exchange(shutdown_requested_, true)) return;
  shutdown_reason_ = reason;
  changed_.NotifyAll();
}

std::string Task::shutdown_reason() const {
  MutexLock lock(mu_);
  return shutdown_reason_;
}

void Task::Drain(int64_t grace_ms) {
  worker_.RefuseSessions();
  const int64_t latest_ns = parts_.env->NowNanos() + TimeoutNanos(grace_ms);
  while (in_use() && parts_.env->NowNanos() < latest_ns) {
    MutexLock lock(mu_);
    const auto stopped = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopped_; };
    if (changed_.WaitUntil(mu_, parts_.env->NowNanos() + kPollNanos, stopped)) return;
  }
}

void Task::Stop() {
  {
    MutexLock lock(mu_);
    if (std::exchange(stopped_, true)) return;
    changed_.NotifyAll();
  }
  housekeeping_ = nullptr;
  if (sessions_.has_value()) sessions_->Refuse();
  if (master_.has_value()) master_->Stop();
  worker_.steps().AbortAll(ShuttingDown());
}

void Task::WaitForSteps() {
  worker_.steps().AbortAll(ShuttingDown());
  while (worker_.steps().counts().running > 0) {
    parts_.scheduler->SleepUntil(parts_.env->NowNanos() + kPollNanos, "the end of a task's steps");
  }
}

Status Task::ShuttingDown() const { return Unavailable(self().ToString(), " is shutting down"); }

}  // namespace penstock
