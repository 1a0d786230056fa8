// SPDX-License-Identifier: Apache-2.0
//
// TransportLoop: the thread of a transport that polls. It serves the ends of all connections of a
// task: has them look for work, receives what their descriptors announce, and notices when a peer
// has gone.
//
// After work it spins for kSpin at most, where that has been worth it lately (core/base/spin.h).
// Then the ends say that they sleep, and it sleeps until the descriptor of one of them is readable.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/base/spin.h"
#include "distributed/transport/loop/unique_fd.h"

namespace penstock {

class TransportLoop {
 public:
  static constexpr auto kSpin = std::chrono::microseconds(50);

  // One end of a connection. The loop's thread alone makes these calls, without locks.
  class End {
   public:
    virtual ~End() = default;
    virtual int fd() const = 0;
    // Does some of what there is to do. Returns whether there was anything.
    virtual bool Advance() = 0;
    virtual bool HasMore() = 0;
    // The end has said that it sleeps: raises its flag. Then HasMore is asked once more.
    virtual void FallAsleep() = 0;
    virtual void WakeUp() = 0;
    // There are messages, or the other end has gone, or this one has shut the socket down. False if
    // the connection has ended: Close follows.
    virtual bool Receive() = 0;
    // Once a second or more often. False if the connection has ended.
    virtual bool Tick(int64_t now_ns) = 0;
    // The transport stops.
    virtual void Close() = 0;
  };

  // `name`: of the thread, as debuggers show it.
  TransportLoop(Env& env, std::string name) : env_(env), name_(std::move(name)) {}
  ~TransportLoop() { Stop(); }

  // Starts the thread. `accepted` takes each connection to `listener`, on the loop's thread; an
  // invalid listener accepts none. Once.
  Status Start(UniqueFd listener = {}, std::function<void(UniqueFd)> accepted = nullptr);
  // False, and nothing has happened, once the loop is being stopped.
  [[nodiscard]] bool Add(std::shared_ptr<End> end);
  // Ends the thread, then closes all ends.
  void Stop();

 private:
  void Run();
  void TakeAdded();
  bool AnyHasMore();
  void Sleep();
  void Poll(int timeout_ms);
  void Accept();
  void TickAll();
  void Remove(uint64_t id);

  Env& env_;
  const std::string name_;
  UniqueFd listener_;
  UniqueFd epoll_;
  UniqueFd wake_;
  std::function<void(UniqueFd)> accepted_;
  std::atomic<bool> has_added_ = false;
  std::atomic<bool> stopping_ = false;
  Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = true;  // until Start, and from Stop on
  std::vector<std::shared_ptr<End>> added_ ABSL_GUARDED_BY(mu_);

  // Used by the thread only.
  SpinHabit habit_;
  std::map<uint64_t, std::shared_ptr<End>> ends_;  // by a number that is never used again
  uint64_t last_id_ = 1;
  bool accepting_ = true;
  int64_t ticked_ns_ = 0;

  std::unique_ptr<Thread> thread_;
};

}  // namespace penstock
