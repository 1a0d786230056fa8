// SPDX-License-Identifier: Apache-2.0
//
// Poller: what a thread can do while it waits for other tasks: it takes what they send itself,
// instead of being woken by the thread that would take it. On virtual machines each wake-up costs
// 50 to 100 us.
//
// Thread-safe. What arrives may run continuations on the polling thread, so it must hold no lock.
#pragma once

namespace penstock {

class Poller {
 public:
  // Begins to poll in place of the usual thread. Returns false if another thread polls: then
  // there is nothing to do, and the other functions must not be called.
  [[nodiscard]] virtual bool BeginPolling() = 0;
  // Takes what has arrived. Never blocks.
  virtual void PollOnce() = 0;
  // Gives the work back to the usual thread.
  virtual void EndPolling() = 0;

 protected:
  ~Poller() = default;
};

// Begins and ends polling; does nothing without a poller.
class Polling {
 public:
  explicit Polling(Poller* poller)
      : poller_(poller != nullptr && poller->BeginPolling() ? poller : nullptr) {}
  Polling(const Polling&) = delete;
  Polling& operator=(const Polling&) = delete;
  ~Polling() {
    if (poller_ != nullptr) poller_->EndPolling();
  }
  void Once() {
    if (poller_ != nullptr) poller_->PollOnce();
  }

 private:
  Poller* const poller_;
};

}  // namespace penstock
