// SPDX-License-Identifier: Apache-2.0
//
// TransportLoop: the polling thread of a transport. It serves the ends of all connections of a
// task: it makes the ends look for work, receives from readable descriptors, and notices when a
// peer has gone.
//
// After work the thread spins for at most kSpin, if spinning has recently found work
// (core/base/spin.h). Then it makes the ends ask for wake-ups, and sleeps until the descriptor
// of one of them is readable.
//
// While it sleeps, another thread that waits for a tensor may poll in its place (Poller); no thread
// then has to be woken when the tensor comes. Only one thread has the turn at any time, and only
// the thread that has the turn uses the ends.
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
#include "core/runtime/poller.h"
#include "distributed/transport/loop/unique_fd.h"

namespace penstock {

class TransportLoop final : public Poller {
 public:
  static constexpr auto kSpin = std::chrono::microseconds(50);

  // One end of a connection. One thread at a time calls these methods, without locks: the loop's
  // thread, or a thread that polls in its place, which calls only Advance, HasMore, AskForWakeUps
  // and StopWakeUps.
  class End {
   public:
    virtual ~End() = default;
    virtual int fd() const = 0;
    // Does some of the pending work. Returns whether there was any.
    virtual bool Advance() = 0;
    // Returns whether there is pending work.
    virtual bool HasMore() = 0;
    // From now on the other end, or the network device, must make fd() readable when there is work.
    // The loop calls HasMore once more afterwards, before it waits for fd().
    virtual void AskForWakeUps() = 0;
    // Takes back what AskForWakeUps asked for, because a thread polls this end again.
    virtual void StopWakeUps() = 0;
    // Called when there are messages, when the other end has gone, or when this end has shut down
    // the socket. Returns false if the connection has ended: Close follows.
    virtual bool Receive() = 0;
    // Called about once a second. Returns false if the connection has ended.
    virtual bool Tick(int64_t now_ns) = 0;
    // Called when the transport stops, or the connection has ended.
    virtual void Close() = 0;
  };

  // `name`: the name of the thread in debuggers.
  TransportLoop(Env& env, std::string name) : env_(env), name_(std::move(name)) {}
  ~TransportLoop() { Stop(); }

  // Starts the thread. Call this only once. The loop's thread calls `accepted` for each connection
  // to `listener`; an invalid listener accepts none.
  Status Start(UniqueFd listener = {}, std::function<void(UniqueFd)> accepted = nullptr);
  // Adds an end. Returns false, and does nothing, once the loop is being stopped.
  [[nodiscard]] bool Add(std::shared_ptr<End> end);
  // Ends the thread, then closes all ends.
  void Stop();

  // Implements Poller:
  [[nodiscard]] bool BeginPolling() override;
  void PollOnce() override;
  void EndPolling() override;

 private:
  void Run();
  void TakeAdded();
  bool AnyHasMore();
  void TakeTurn();
  void PassTurn();
  void Sleep();
  void Poll(int timeout_ms, bool passes_turn = false);
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
  std::atomic<bool> turn_ = false;  // true while a thread has the turn
  Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = true;  // true before Start and after Stop
  std::vector<std::shared_ptr<End>> added_ ABSL_GUARDED_BY(mu_);

  // The ends, by a number that is never reused. Accessed only by the thread that has the turn.
  std::map<uint64_t, std::shared_ptr<End>> ends_;
  // Used only by the loop's own thread.
  SpinHabit habit_;
  uint64_t last_id_ = 1;
  bool accepting_ = true;
  int64_t ticked_ns_ = 0;

  std::unique_ptr<Thread> thread_;
};

}  // namespace penstock
