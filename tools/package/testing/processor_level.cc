// SPDX-License-Identifier: Apache-2.0
#include "tools/package/testing/processor_level.h"

const char* ProcessorLevel() {
#if defined(__AVX512F__)
  return "x86-64-v4";
#elif defined(__AVX2__)
  return "x86-64-v3";
#else
  return "x86-64";
#endif
}
