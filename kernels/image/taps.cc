// SPDX-License-Identifier: Apache-2.0
#include "kernels/image/taps.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock {
namespace {

int32_t Inside(int64_t i, const ResizeGrid& grid) {
  return static_cast<int32_t>(std::clamp<int64_t>(i, 0, grid.in - 1));
}

// Return the cubic convolution kernel (Keys 1981) with parameter `a` at distance x: Near for x in
// [0, 1], Far for x in [1, 2].
float Near(float a, float x) { return ((a + 2) * x - (a + 3)) * x * x + 1; }
float Far(float a, float x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }

}  // namespace

int64_t ResizeGrid::Nearest(int64_t o) const {
  const float position = half_pixel_centers ? (static_cast<float>(o) + 0.5f) * Scale()
                                            : static_cast<float>(o) * Scale();
  return Inside(static_cast<int64_t>(align_corners ? std::round(position) : std::floor(position)),
                *this);
}

Taps BilinearTaps(const ResizeGrid& grid) {
  Taps taps{.count = 2};
  for (int64_t o = 0; o < grid.out; ++o) {
    const float position = grid.Position(o), floor = std::floor(position);
    taps.index.push_back(Inside(static_cast<int64_t>(floor), grid));
    taps.index.push_back(Inside(static_cast<int64_t>(std::ceil(position)), grid));
    taps.weight.push_back(1 - (position - floor));
    taps.weight.push_back(position - floor);
  }
  return taps;
}

Taps BicubicTaps(const ResizeGrid& grid) {
  // With half_pixel_centers, taps outside of the image are left out; otherwise they repeat the
  // border pixel. The cubic kernels differ too. Distances are rounded to 1/1024, as in TensorFlow's
  // table of weights.
  const bool keys = grid.half_pixel_centers;
  const float a = keys ? -0.5f : -0.75f;
  constexpr float kSteps = 1024;
  Taps taps{.count = 4};
  for (int64_t o = 0; o < grid.out; ++o) {
    const float position = grid.Position(o), floor = std::floor(position);
    const float x = static_cast<float>(std::lrint((position - floor) * kSteps)) / kSteps;
    float weights[] = {Far(a, 1 + x), Near(a, x), Near(a, 1 - x), Far(a, 2 - x)};
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      const int64_t wanted = static_cast<int64_t>(floor) + k - 1;
      taps.index.push_back(Inside(wanted, grid));
      if (keys && taps.index.back() != wanted) weights[k] = 0;
      sum += weights[k];
    }
    const bool normalize = keys && std::abs(sum) >= 1000 * std::numeric_limits<float>::min();
    for (float weight : weights) taps.weight.push_back(normalize ? weight / sum : weight);
  }
  return taps;
}

Taps AreaTaps(const ResizeGrid& grid) {
  const float scale = grid.Scale();
  Taps taps{.count = static_cast<int64_t>(std::ceil(scale)) + 2};
  for (int64_t o = 0; o < grid.out; ++o) {
    const float begin = static_cast<float>(o) * scale, end = static_cast<float>(o + 1) * scale;
    int64_t i = static_cast<int64_t>(std::floor(begin));
    const auto last = static_cast<int64_t>(std::ceil(end));
    for (int64_t k = 0; k < taps.count; ++k, ++i) {
      const auto left = static_cast<float>(i), right = static_cast<float>(i + 1);
      const float covered = i < last ? std::min(right, end) - std::max(left, begin) : 0;
      taps.index.push_back(Inside(i, grid));
      // `scale` is 0 if corners are aligned and there is one input pixel; each output is then that
      // pixel.
      taps.weight.push_back(scale > 0 ? std::max(covered, 0.f) / scale : k == 0 ? 1 : 0);
    }
  }
  return taps;
}

}  // namespace penstock
