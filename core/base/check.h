// SPDX-License-Identifier: Apache-2.0
//
// CHECK: tests an invariant of our own code. A CHECK that fails prints file, line, condition and
// message to stderr and aborts the process. Never CHECK input from outside (graph, request, file,
// flag): return a Status instead.
//
//   CHECK(pending >= 0, "node ", node.name());
#pragma once

#include <string>

#include "absl/strings/str_cat.h"

namespace penstock {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message);
}  // namespace penstock

#define CHECK(condition, ...)                                                 \
  do {                                                                        \
    if (!(condition)) [[unlikely]]                                            \
      ::penstock::CheckFailed(__FILE__, __LINE__, #condition,                 \
                              ::absl::StrCat("" __VA_OPT__(, ) __VA_ARGS__)); \
  } while (false)
#define CHECK_OK(...)                                                                        \
  do {                                                                                       \
    const ::absl::Status penstock_check_ = (__VA_ARGS__);                                    \
    if (!penstock_check_.ok()) [[unlikely]]                                                  \
      ::penstock::CheckFailed(__FILE__, __LINE__, #__VA_ARGS__, penstock_check_.ToString()); \
  } while (false)
#ifdef NDEBUG
#define DCHECK(condition, ...) \
  do {                         \
  } while (false && (condition))
#else
#define DCHECK(...) CHECK(__VA_ARGS__)
#endif
