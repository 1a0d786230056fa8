// SPDX-License-Identifier: Apache-2.0
//
// Fiber: a function that runs on a stack of its own, and can be suspended and resumed.
//
//   Fiber fiber;
//   fiber.Start([&] { ...; fiber.Suspend(); ...; });
//   fiber.Resume();  // returns at Suspend
//   fiber.Resume();  // returns at the end
//
// Only one thread may use a fiber. A fiber may be started again after its end. Destroying a fiber
// that has not ended frees its stack without destroying the objects on it.
#pragma once

#include <ucontext.h>

#include <cstddef>

#include "absl/functional/any_invocable.h"

namespace penstock {

class Fiber {
 public:
  // The reserved address space of a stack; the system provides memory only as the stack grows.
  static constexpr size_t kStackBytes = 1 << 20;

  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Sets the function that the next Resume starts. `body` must not throw.
  void Start(absl::AnyInvocable<void() &&> body);
  // Runs the fiber until it suspends itself or ends. Called from outside the fiber.
  void Resume();
  // Returns control to the caller of Resume, until the next Resume. Called inside the fiber.
  void Suspend();
  bool ended() const { return ended_; }

 private:
  static void Enter(unsigned high, unsigned low);
  void Run();

  char* stack_ = nullptr;
  absl::AnyInvocable<void() &&> body_;
  bool ended_ = true;
  ucontext_t inside_, outside_;
  // Arguments of AddressSanitizer's functions, which the code calls at every switch of stacks.
  void* fake_inside_ = nullptr;
  void* fake_outside_ = nullptr;
  const void* outside_stack_ = nullptr;
  size_t outside_bytes_ = 0;
  // ThreadSanitizer's names of the two stacks; null in builds without it.
  void* tsan_inside_ = nullptr;
  void* tsan_outside_ = nullptr;
};

}  // namespace penstock
