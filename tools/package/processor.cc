// SPDX-License-Identifier: Apache-2.0
//
// If the processor lacks instructions that the library is compiled for (x86-64-v3), prints an error
// and ends the process, which would otherwise die of SIGILL in a static initialiser.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace penstock {
namespace {

void Print(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) std::abort();
}

// Priority 101 runs before all initialisers of the library that have no priority.
__attribute__((constructor(101))) void CheckProcessor() {
  __builtin_cpu_init();
  const char* missing = !__builtin_cpu_supports("avx2")   ? "AVX2"
                        : !__builtin_cpu_supports("fma")  ? "FMA"
                        : !__builtin_cpu_supports("bmi2") ? "BMI2"
                                                          : nullptr;
  if (missing == nullptr) return;
  Print("penstock: this processor has no ");
  Print(missing);
  Print(", which libpenstock.so needs (x86-64-v3: Intel Haswell, AMD Excavator and later)\n");
  _exit(1);
}

}  // namespace
}  // namespace penstock
