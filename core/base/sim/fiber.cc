// SPDX-License-Identifier: Apache-2.0
#include "core/base/sim/fiber.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "core/base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
// --config=tsan undefines __SANITIZE_THREAD__ (.bazelrc) and defines this.
#if defined(_GLIBCXX_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace penstock {
namespace {

// Below the stack: an access to it means that the stack has overflowed.
constexpr size_t kGuardBytes = 4096;

// LeaveStack and EnterStack tell AddressSanitizer that the thread changes its stack: LeaveStack is
// called on the old stack just before the switch, EnterStack on the new stack just after it.
void LeaveStack([[maybe_unused]] void** fake, [[maybe_unused]] const void* stack,
                [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(fake, stack, bytes);
#endif
}

void EnterStack([[maybe_unused]] void* fake, [[maybe_unused]] const void** stack,
                [[maybe_unused]] size_t* bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, stack, bytes);
#endif
}

// Tells ThreadSanitizer that the thread is about to run the stack of `fiber`. Must be inlined: the
// sanitizer would record the call on one stack and the return on the other.
[[gnu::always_inline]] inline void SwitchTsanFiber([[maybe_unused]] void* fiber) {
#if defined(_GLIBCXX_TSAN)
  __tsan_switch_to_fiber(fiber, 0);
#endif
}

void* CurrentTsanFiber() {
#if defined(_GLIBCXX_TSAN)
  return __tsan_get_current_fiber();
#else
  return nullptr;
#endif
}

void* MakeTsanFiber() {
#if defined(_GLIBCXX_TSAN)
  return __tsan_create_fiber(0);
#else
  return nullptr;
#endif
}

void DestroyTsanFiber([[maybe_unused]] void* fiber) {
#if defined(_GLIBCXX_TSAN)
  if (fiber != nullptr) __tsan_destroy_fiber(fiber);
#endif
}

}  // namespace

Fiber::Fiber() {
  void* const memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED, "no memory for the stack of a fiber: errno ", errno);
  CHECK(mprotect(memory, kGuardBytes, PROT_NONE) == 0, "mprotect: errno ", errno);
  stack_ = static_cast<char*>(memory) + kGuardBytes;
}

Fiber::~Fiber() {
  DestroyTsanFiber(tsan_inside_);
  munmap(stack_ - kGuardBytes, kGuardBytes + kStackBytes);
}

void Fiber::Start(absl::AnyInvocable<void() &&> body) {
  CHECK(ended_, "a fiber was started that has not ended");
  body_ = std::move(body);
  ended_ = false;
  CHECK(getcontext(&inside_) == 0);
  inside_.uc_stack.ss_sp = stack_;
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = nullptr;
  // The previous body never returned from Enter, so ThreadSanitizer's record of its call stack is
  // not empty. Start with a new record.
  DestroyTsanFiber(std::exchange(tsan_inside_, MakeTsanFiber()));
  // makecontext passes only ints, so the pointer is passed in two halves.
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::Enter), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

void Fiber::Resume() {
  CHECK(!ended_, "a fiber was resumed after its end");
  tsan_outside_ = CurrentTsanFiber();
  LeaveStack(&fake_outside_, stack_, kStackBytes);
  SwitchTsanFiber(tsan_inside_);
  CHECK(swapcontext(&outside_, &inside_) == 0);
  EnterStack(fake_outside_, nullptr, nullptr);
}

void Fiber::Suspend() {
  LeaveStack(&fake_inside_, outside_stack_, outside_bytes_);
  SwitchTsanFiber(tsan_outside_);
  CHECK(swapcontext(&inside_, &outside_) == 0);
  EnterStack(fake_inside_, &outside_stack_, &outside_bytes_);
}

void Fiber::Enter(unsigned high, unsigned low) {
  reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | uintptr_t{low})->Run();
}

void Fiber::Run() {
  EnterStack(nullptr, &outside_stack_, &outside_bytes_);
  std::move(body_)();
  body_ = nullptr;
  ended_ = true;
  LeaveStack(nullptr, outside_stack_, outside_bytes_);
  SwitchTsanFiber(tsan_outside_);
  CHECK(setcontext(&outside_) == 0);
}

}  // namespace penstock
