// SPDX-License-Identifier: Apache-2.0
//
// Periodic: calls a function at a fixed interval, on a thread of its own, until it is destroyed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"

namespace penstock::client {

class Periodic {
 public:
  // The first call comes after `seconds`, each later one `seconds` after the end of the one before.
  // `scheduler` must use the clock of `env`.
  Periodic(const std::string& name, double seconds, std::function<void()> call, Env& env,
           Scheduler& scheduler);
  // Waits for the end of a call that is under way.
  ~Periodic();
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

 private:
  void CallUntilEnd(double seconds);

  const std::function<void()> call_;
  Env& env_;
  Mutex mu_;
  Condition ended_;
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<Thread> thread_;
};

}  // namespace penstock::client
