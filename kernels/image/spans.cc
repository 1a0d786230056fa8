// SPDX-License-Identifier: Apache-2.0
#include "kernels/image/spans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace penstock {
namespace {

template <int kRadius>
float Lanczos(float x) {
  if (x > kRadius) return 0;
  if (x <= 1e-3f) return 1;
  constexpr auto kPi = std::numbers::pi_v<float>;
  return kRadius * std::sin(kPi * x) * std::sin(kPi * x / kRadius) / (kPi * kPi * x * x);
}
float Gaussian(float x) {
  constexpr float kRadius = 1.5f, kDeviation = kRadius / 3;
  return x >= kRadius ? 0 : std::exp(-x * x / (2 * kDeviation * kDeviation));
}
float Box(float x) { return x < 0.5f ? 1.f : x == 0.5f ? 0.5f : 0.f; }
float Triangle(float x) { return x < 1 ? 1 - x : 0; }
// Returns the kernel of R. Keys: Cubic Convolution Interpolation for Digital Image Processing. IEEE
// TASSP 29 (1981). REQUIRES: x >= 0.
float KeysCubic(float x) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : (1.5f * x - 2.5f) * x * x + 1;
}
// Returns the kernel of D. Mitchell, A. Netravali: Reconstruction Filters in Computer Graphics.
// SIGGRAPH 1988. REQUIRES: x >= 0.
float MitchellCubic(float x) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-7.f / 18 * x + 2) * x - 10.f / 3) * x + 16.f / 9
                : (7.f / 6 * x - 2) * x * x + 8.f / 9;
}

constexpr Filter kFilters[] = {
    {"lanczos1", 1, Lanczos<1>},
    {"lanczos3", 3, Lanczos<3>},
    {"lanczos5", 5, Lanczos<5>},
    {"gaussian", 1.5f, Gaussian},
    {"box", 1, Box},
    {"triangle", 1, Triangle},
    {"keyscubic", 2, KeysCubic},
    {"mitchellcubic", 2, MitchellCubic},
};

}  // namespace

StatusOr<const Filter*> FindFilter(const std::string& name) {
  for (const Filter& filter : kFilters) {
    if (name == filter.name) return &filter;
  }
  return InvalidArgument("Unrecognized kernel type: ", name);
}

StatusOr<Spans> MakeSpans(KernelContext& ctx, const Filter& filter, bool antialias,
                          const Scaling& s) {
  const float inverse = 1 / s.scale, shift = -inverse * s.translation;
  const float widened = antialias ? std::max(inverse, 1.f) : 1.f;  // if the image shrinks
  const auto last = static_cast<float>(s.in - 1), reach = filter.radius * widened;
  Spans spans;
  spans.most = static_cast<int64_t>(std::min(2 * std::ceil(reach) + 1, static_cast<float>(s.in)));
  spans.begin.resize(s.out);
  spans.count.resize(s.out);
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{s.out, spans.most}));
  ASSIGN_OR_RETURN(spans.weight, ctx.Temporary(DType::kFloat, shape));
  for (int64_t o = 0; o < s.out; ++o) {
    const float centre = (static_cast<float>(o) + 0.5f) * inverse + shift;
    if (!(centre >= 0 && centre <= static_cast<float>(s.in))) continue;
    const auto begin =
        static_cast<int64_t>(std::clamp(std::ceil(centre - reach - 0.5f), 0.f, last));
    const auto end =
        static_cast<int64_t>(std::clamp(std::floor(centre + reach - 0.5f), 0.f, last)) + 1;
    const int64_t count = std::min(end - begin, spans.most);
    float* weight = spans.weight.mutable_data<float>() + o * spans.most;
    float sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      const float distance = static_cast<float>(begin + k) + 0.5f - centre;
      weight[k] = filter.at(std::abs(distance * (1 / widened)));
      sum += weight[k];
    }
    spans.begin[o] = begin;
    if (std::abs(sum) < 1000 * std::numeric_limits<float>::min()) continue;
    for (int64_t k = 0; k < count; ++k) weight[k] *= 1 / sum;
    spans.count[o] = count;
  }
  return spans;
}

}  // namespace penstock
