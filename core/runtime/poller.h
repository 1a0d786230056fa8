// SPDX-License-Identifier: Apache-2.0
//
// Poller: lets a thread that waits for messages of other tasks receive these messages itself. If
// the thread that usually receives messages had to wake the waiting one, each wake-up would cost 50
// to 100 us on virtual machines.
//
// Thread-safe. PollOnce may run continuations, so the polling thread must hold no lock.
#pragma once

namespace penstock {

class Poller {
 public:
  // Makes this thread the receiver of messages, instead of the usual thread. Returns false if
  // another thread polls already; this thread must then not call the other functions.
  [[nodiscard]] virtual bool BeginPolling() = 0;
  // Handles the messages that have arrived. Never blocks.
  virtual void PollOnce() = 0;
  // Lets the usual thread receive again.
  virtual void EndPolling() = 0;

 protected:
  ~Poller() = default;
};

// Calls BeginPolling in its constructor and EndPolling in its destructor. Does nothing if `poller`
// is null, or if another thread polls already.
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
