// SPDX-License-Identifier: Apache-2.0
//
// ShmLoop: the thread of a shared memory transport. It serves the ends of all connections of a
// task: looks into their rings, receives their messages, and notices when a process has gone.
//
// After work it spins for kSpin at most, where that has been worth it lately (core/base/spin.h).
// Then it sleeps until a peer rings the bell, which is a message of one byte on the connection's
// socket, and peers ring only if they find it asleep.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/base/spin.h"
#include "distributed/transport/shm/segment.h"

namespace penstock {

class ShmLoop {
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

  explicit ShmLoop(Env& env) : env_(env) {}
  ~ShmLoop() { Stop(); }

  // `accepted` takes each connection to `listener`, on the loop's thread. Once.
  Status Start(UniqueFd listener, std::function<void(UniqueFd)> accepted);
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
