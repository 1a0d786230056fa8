// SPDX-License-Identifier: Apache-2.0
#include "kernels/engine/float16_blocks.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "core/base/check.h"

namespace penstock {
namespace {

void HalfToFloat(const half* from, float* to, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
#endif
  for (; i < n; ++i) to[i] = from[i];
}

void FloatToHalf(const float* from, half* to, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  for (; i < n; ++i) to[i] = half(from[i]);
}

void Bfloat16ToFloat(const bfloat16* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

void FloatToBfloat16(const float* from, bfloat16* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = bfloat16(from[i]);
}

}  // namespace

void Float16ToFloat(DType dtype, const void* from, float* to, int64_t n) {
  CHECK(IsFloat16(dtype));
  if (dtype == DType::kHalf) {
    HalfToFloat(static_cast<const half*>(from), to, n);
  } else {
    Bfloat16ToFloat(static_cast<const bfloat16*>(from), to, n);
  }
}

void FloatToFloat16(DType dtype, const float* from, void* to, int64_t n) {
  CHECK(IsFloat16(dtype));
  if (dtype == DType::kHalf) {
    FloatToHalf(from, static_cast<half*>(to), n);
  } else {
    FloatToBfloat16(from, static_cast<bfloat16*>(to), n);
  }
}

}  // namespace penstock
