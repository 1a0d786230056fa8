// SPDX-License-Identifier: Apache-2.0
#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace penstock {

void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  fprintf(stderr, "%s:%d: CHECK failed: %s%s%s\n", file, line, condition,
          message.empty() ? "" : ": ", message.c_str());
  fflush(stderr);
  abort();
}

}  // namespace penstock
