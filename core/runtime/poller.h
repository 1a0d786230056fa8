// SPDX-License-Identifier: Apache-2.0
//
// Poller: lets a thread that waits for messages of other tasks receive them itself. Otherwise the
// thread that usually receives messages would have to wake it. On virtual machines each such
// wake-up costs 50 to 100 us.
//
// Thread-safe. A message may run continuations on the polling thread, so this thread must hold no
// lock.
#pragma once

namespace penstock {

class Poller {
 public:
  // Begins to poll in place of the usual thread. Returns false if another thread polls already;
  // then the other functions must not be called.
  [[nodiscard]] virtual bool BeginPolling() = 0;
  // Handles the messages that have arrived. Never blocks.
  virtual void PollOnce() = 0;
  // Lets the usual thread receive again.
  virtual void EndPolling() = 0;

 protected:
  ~Poller() = default;
};

// Polls as long as it lives. Does nothing without a poller, or if another thread polls already.
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
