// SPDX-License-Identifier: Apache-2.0
#include "core/base/cancellation.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.h"

namespace penstock {

Status Cancellation::status() const {
  if (!cancelled()) return OkStatus();
  MutexLock lock(mu_);
  return status_;
}

void Cancellation::Cancel(const Status& why) {
  CHECK(!why.ok(), "cancelled with an OK status");
  MutexLock lock(mu_);
  if (cancelled()) return;
  status_ = why;
  cancelled_.store(true, std::memory_order_release);

  // Callbacks run in the order of registration, so that a simulated run is repeatable.
  std::vector<Token> tokens;
  tokens.reserve(callbacks_.size());
  for (const auto& [token, callback] : callbacks_) tokens.push_back(token);
  std::sort(tokens.begin(), tokens.end());

  for (Token token : tokens) {
    const auto it = callbacks_.find(token);
    if (it == callbacks_.end()) continue;  // deregistered meanwhile
    Callback callback = std::move(it->second);
    callbacks_.erase(it);
    running_ = token;
    lock.Unlock();
    callback(why);
    callback = nullptr;  // destroy the captures before Deregister may return
    lock.Lock();
    running_ = 0;
    callback_done_.NotifyAll();
  }
}

bool Cancellation::Register(Callback callback, Token* token) {
  MutexLock lock(mu_);
  if (cancelled()) return false;
  *token = next_token_++;
  callbacks_.emplace(*token, std::move(callback));
  return true;
}

void Cancellation::Deregister(Token token) {
  Callback removed;  // destroyed after the lock is released
  MutexLock lock(mu_);
  const auto it = callbacks_.find(token);
  if (it != callbacks_.end()) {
    removed = std::move(it->second);
    callbacks_.erase(it);
    lock.Unlock();
    return;
  }
  while (running_ == token) callback_done_.Wait(mu_);
}

void Cancellation::Reset() {
  MutexLock lock(mu_);
  CHECK(callbacks_.empty() && running_ == 0, "reset while callbacks are registered");
  status_ = OkStatus();
  cancelled_.store(false, std::memory_order_release);
}

}  // namespace penstock
