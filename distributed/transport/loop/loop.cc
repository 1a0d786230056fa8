// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/loop/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace penstock {
namespace {

constexpr uint64_t kWakeId = 0;
constexpr uint64_t kListenerId = 1;
constexpr int64_t kTickNanos = 1'000'000'000;
constexpr int kTickMillis = 1'000;
constexpr int kEventsMax = 32;
// While the ends have work, the loop polls the sockets only once in this many rounds.
constexpr int kRoundsPerPoll = 16;

bool Watch(int epoll, int fd, uint64_t id) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = id;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

Status TransportLoop::Start(UniqueFd listener, std::function<void(UniqueFd)> accepted) {
  listener_ = std::move(listener);
  accepted_ = std::move(accepted);
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  wake_ = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!Watch(epoll_.get(), wake_.get(), kWakeId) ||
      (listener_.valid() && !Watch(epoll_.get(), listener_.get(), kListenerId))) {
    return FailedPrecondition("epoll: ", std::strerror(errno));
  }
  {
    MutexLock lock(mu_);
    stopped_ = false;
  }
  thread_ = Scheduler::Real().StartThread(name_, [this] { Run(); });
  return OkStatus();
}

bool TransportLoop::Add(std::shared_ptr<End> end) {
  MutexLock lock(mu_);
  if (stopped_) return false;
  added_.push_back(std::move(end));
  has_added_ = true;
  eventfd_write(wake_.get(), 1);
  return true;
}

void TransportLoop::Stop() {
  std::vector<std::shared_ptr<End>> left;
  {
    MutexLock lock(mu_);
    stopped_ = true;
    left.swap(added_);
  }
  stopping_ = true;
  if (thread_ == nullptr) return;
  eventfd_write(wake_.get(), 1);
  thread_.reset();
  TakeTurn();
  for (auto& [id, end] : ends_) left.push_back(std::move(end));
  ends_.clear();
  PassTurn();
  for (const auto& end : left) end->Close();
  listener_.Close();
}

void TransportLoop::TakeTurn() {
  while (turn_.exchange(true, std::memory_order_acquire)) turn_.wait(true);
}

void TransportLoop::PassTurn() {
  turn_.store(false, std::memory_order_release);
  turn_.notify_one();
}

bool TransportLoop::BeginPolling() {
  if (turn_.exchange(true, std::memory_order_acquire)) return false;
  for (const auto& [id, end] : ends_) end->StopWakeUps();
  return true;
}

void TransportLoop::PollOnce() {
  for (const auto& [id, end] : ends_) end->Advance();
}

void TransportLoop::EndPolling() {
  for (const auto& [id, end] : ends_) end->AskForWakeUps();
  const bool more = AnyHasMore();
  PassTurn();
  if (more) eventfd_write(wake_.get(), 1);
}

void TransportLoop::Run() {
  TakeTurn();
  for (int round = 0; !stopping_; ++round) {
    TakeAdded();
    bool worked = false;
    for (const auto& [id, end] : ends_) worked |= end->Advance();
    if (worked || habit_.Until([this] { return AnyHasMore(); }, kSpin)) {
      if (round % kRoundsPerPoll == 0) Poll(0);
    } else {
      Sleep();
    }
    TickAll();
  }
  PassTurn();
}

void TransportLoop::TakeAdded() {
  if (!has_added_) return;
  std::vector<std::shared_ptr<End>> added;
  {
    MutexLock lock(mu_);
    has_added_ = false;
    added.swap(added_);
  }
  for (auto& end : added) {
    const uint64_t id = ++last_id_;
    if (Watch(epoll_.get(), end->fd(), id)) {
      ends_.emplace(id, std::move(end));
    } else {
      end->Close();
    }
  }
}

bool TransportLoop::AnyHasMore() {
  if (stopping_ || has_added_) return true;
  for (const auto& [id, end] : ends_) {
    if (end->HasMore()) return true;
  }
  return false;
}

void TransportLoop::Sleep() {
  for (const auto& [id, end] : ends_) end->AskForWakeUps();
  if (AnyHasMore()) {
    Poll(0);
  } else {
    Poll(kTickMillis, /*passes_turn=*/true);
  }
  for (const auto& [id, end] : ends_) end->StopWakeUps();
}

void TransportLoop::Poll(int timeout_ms, bool passes_turn) {
  epoll_event events[kEventsMax];
  if (passes_turn) PassTurn();
  const int count = epoll_wait(epoll_.get(), events, kEventsMax, timeout_ms);
  if (passes_turn) TakeTurn();
  for (int i = 0; i < count; ++i) {
    const uint64_t id = events[i].data.u64;
    if (id == kWakeId) {
      eventfd_t ignored = 0;
      eventfd_read(wake_.get(), &ignored);
    } else if (id == kListenerId) {
      Accept();
    } else if (const auto end = ends_.find(id); end != ends_.end() && !end->second->Receive()) {
      Remove(id);
    }
  }
}

void TransportLoop::Accept() {
  UniqueFd accepted(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (accepted.valid()) return accepted_(std::move(accepted));
  if (errno != EMFILE && errno != ENFILE) return;
  // No descriptor is free. Connecting peers wait until the next tick, when a descriptor may be
  // free. Until then the listener is removed, because epoll would report it again and again.
  accepting_ = epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr) != 0;
}

void TransportLoop::TickAll() {
  const int64_t now_ns = env_.NowNanos();
  if (now_ns - ticked_ns_ < kTickNanos) return;
  ticked_ns_ = now_ns;
  if (!accepting_) accepting_ = Watch(epoll_.get(), listener_.get(), kListenerId);
  std::vector<uint64_t> ended;
  for (const auto& [id, end] : ends_) {
    if (!end->Tick(now_ns)) ended.push_back(id);
  }
  for (const uint64_t id : ended) Remove(id);
}

void TransportLoop::Remove(uint64_t id) {
  const auto end = std::move(ends_.at(id));
  ends_.erase(id);
  end->Close();
}

}  // namespace penstock
