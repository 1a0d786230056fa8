// SPDX-License-Identifier: Apache-2.0
//
// A library for LD_PRELOAD that sets the process's wall clock an hour ahead.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += 3600;
  return static_cast<int>(result);
}
