// SPDX-License-Identifier: Apache-2.0
#include "tools/benchmark/calibration.h"

#include <immintrin.h>

#include <cstring>
#include <memory>
#include <vector>

namespace penstock::benchmark {
namespace {

constexpr int64_t kCopyBytes = 64 << 20;
constexpr int64_t kFmaRepeats = 100'000;
// Number of independent sums: two FMA units with a latency of four cycles need eight; two more are
// a reserve.
constexpr int kChains = 10;

// Makes the compiler treat `value` as used.
void Keep(__m256& value) { asm volatile("" : "+x"(value)); }

void MultiplyAndAdd() {
  __m256 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 factor = _mm256_set1_ps(0.5f), term = _mm256_set1_ps(1.0f);
  for (int64_t r = 0; r < kFmaRepeats; ++r) {
#pragma GCC unroll 10
    for (int i = 0; i < kChains; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
#pragma GCC unroll 10
    for (int i = 0; i < kChains; ++i) Keep(sums[i]);
  }
}

StatusOr<double> Fma() {
  ASSIGN_OR_RETURN(const double seconds, MedianSeconds([] {
                     MultiplyAndAdd();
                     return OkStatus();
                   }));
  return 2.0 * 8 * kChains * kFmaRepeats / seconds / 1e9;
}

StatusOr<double> Copy(const std::vector<char>& from, std::vector<char>& to) {
  ASSIGN_OR_RETURN(const double seconds, MedianSeconds([&] {
                     std::memcpy(to.data(), from.data(), kCopyBytes);
                     return OkStatus();
                   }));
  return kCopyBytes / seconds / 1e9;
}

}  // namespace

StatusOr<Round> PrepareCalibration(const std::string& what) {
  if (what == "fma") return Round(Fma);
  if (what != "memcpy") return InvalidArgument("no calibration '", what, "'");
  const auto from = std::make_shared<std::vector<char>>(kCopyBytes, 1);
  const auto to = std::make_shared<std::vector<char>>(kCopyBytes, 2);
  return Round([from, to] { return Copy(*from, *to); });
}

}  // namespace penstock::benchmark
