// SPDX-License-Identifier: Apache-2.0
#include "kernels/nn/fractional_regions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/random/distributions.h"

namespace penstock {

std::vector<int64_t> PseudoRandomSequence(int64_t in, int64_t out, Philox stream) {
  const double alpha = static_cast<double>(in) / static_cast<double>(out);
  const int64_t whole = in / out;
  // A larger offset would make the first or the last region too large or empty.
  const double offset_max = std::min((whole + 2) / alpha - 1, (in + 1 - whole) / alpha - (out - 1));
  const double offset = Uniform<double>()(stream)[0] * offset_max;
  std::vector<int64_t> sequence = {0};
  for (int64_t i = 1; i < out; ++i) {
    sequence.push_back(static_cast<int64_t>(std::ceil(alpha * (i + offset))) - 1);
  }
  sequence.push_back(in);
  return sequence;
}

std::vector<int64_t> ShuffledSequence(int64_t in, int64_t out, Philox stream) {
  std::vector<int64_t> sizes(out, in / out);
  for (int64_t i = 0; i < in % out; ++i) ++sizes[i];
  PhiloxNumbers numbers(stream);
  for (int64_t i = 0; i + 1 < out; ++i) {
    std::swap(sizes[i], sizes[i + numbers() % static_cast<uint32_t>(out - i)]);
  }
  std::vector<int64_t> sequence = {0};
  for (const int64_t size : sizes) sequence.push_back(sequence.back() + size);
  return sequence;
}

std::vector<Region> Regions(absl::Span<const int64_t> sequence, int64_t size, bool overlapping) {
  std::vector<Region> regions;
  for (size_t i = 0; i + 1 < sequence.size(); ++i) {
    regions.push_back({sequence[i], std::min(sequence[i + 1] + (overlapping ? 1 : 0), size)});
  }
  return regions;
}

}  // namespace penstock
