// SPDX-License-Identifier: Apache-2.0
#include "tools/benchmark/rounds.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/env.h"

namespace penstock::benchmark {

StatusOr<double> MedianSeconds(const std::function<Status()>& step) {
  Env& env = Env::Real();
  for (int i = 0; i < 3; ++i) RETURN_IF_ERROR(step());
  std::vector<int64_t> times;
  const int64_t end = env.NowNanos() + static_cast<int64_t>(kRoundSeconds * 1e9);
  for (int64_t now = env.NowNanos(); times.empty() || now < end;) {
    RETURN_IF_ERROR(step());
    const int64_t after = env.NowNanos();
    times.push_back(after - now);
    now = after;
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return static_cast<double>(times[times.size() / 2]) / 1e9;
}

StatusOr<double> MeanSeconds(const std::function<Status()>& step) {
  Env& env = Env::Real();
  for (int i = 0; i < 3; ++i) RETURN_IF_ERROR(step());
  const int64_t begin = env.NowNanos(), end = begin + static_cast<int64_t>(kRoundSeconds * 1e9);
  int64_t now = begin, steps = 0;
  for (; steps == 0 || now < end; ++steps) {
    RETURN_IF_ERROR(step());
    now = env.NowNanos();
  }
  return static_cast<double>(now - begin) / 1e9 / static_cast<double>(steps);
}

}  // namespace penstock::benchmark
