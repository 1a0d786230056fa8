// SPDX-License-Identifier: Apache-2.0
//
// From random words to random numbers. Each distribution makes a group of kGroup numbers from one
// or more blocks of a Philox that it alone draws from; kBlocks says how far apart the groups of one
// tensor start.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/tensor/float16.h"
#include "kernels/random/generator.h"
#include "kernels/random/philox.h"

namespace penstock {

// Uniform in [0, 1): random bits as the mantissa of a number in [1, 2), minus one.
inline float UniformFloat(uint32_t word) {
  const uint32_t bits = (word & 0x7fffffu) | 0x3f800000u;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f - 1.0f;
}
inline double UniformDouble(uint32_t high, uint32_t low) {
  const uint64_t bits = uint64_t{high & 0xfffffu} << 32 | low | uint64_t{0x3ff} << 52;
  double d;
  std::memcpy(&d, &bits, sizeof d);
  return d - 1.0;
}
inline half UniformHalf(uint32_t word) {
  const uint16_t bits = static_cast<uint16_t>((word & 0x3ffu) | 0x3c00u);
  return half(static_cast<float>(half::FromBits(bits)) - 1.0f);
}
inline bfloat16 UniformBfloat16(uint32_t word) {
  const uint16_t bits = static_cast<uint16_t>((word & 0x7fu) | 0x3f80u);
  return bfloat16(static_cast<float>(bfloat16::FromBits(bits)) - 1.0f);
}

// Two normal numbers from two uniform ones (Box and Muller 1958).
template <class F>
void BoxMuller(F u, F v, F* a, F* b) {
  const F radius = std::sqrt(F(-2) * std::log(std::max(u, F(1e-7))));
  const F angle = F(2 * M_PI) * v;
  *a = std::sin(angle) * radius;
  *b = std::cos(angle) * radius;
}

template <class T>
struct Uniform {
  static constexpr int kGroup = std::is_same_v<T, double> ? 2 : 4;
  static constexpr uint64_t kBlocks = 1;
  void operator()(Philox philox, T* out) const {
    const Philox::Words w = philox.Next();
    if constexpr (std::is_same_v<T, double>) {
      out[0] = UniformDouble(w[0], w[1]);
      out[1] = UniformDouble(w[2], w[3]);
    } else {
      for (int i = 0; i < kGroup; ++i) {
        if constexpr (std::is_same_v<T, half>) {
          out[i] = UniformHalf(w[i]);
        } else if constexpr (std::is_same_v<T, bfloat16>) {
          out[i] = UniformBfloat16(w[i]);
        } else {
          out[i] = UniformFloat(w[i]);
        }
      }
    }
  }
};

template <class T>
struct Normal {
  static constexpr int kGroup = std::is_same_v<T, double> ? 2 : 4;
  static constexpr uint64_t kBlocks = 1;
  void operator()(Philox philox, T* out) const {
    const Philox::Words w = philox.Next();
    if constexpr (std::is_same_v<T, double>) {
      BoxMuller(UniformDouble(w[0], w[1]), UniformDouble(w[2], w[3]), &out[0], &out[1]);
    } else {
      for (int i = 0; i < 4; i += 2) {
        float a, b;
        BoxMuller(UniformFloat(w[i]), UniformFloat(w[i + 1]), &a, &b);
        out[i] = T(a);
        out[i + 1] = T(b);
      }
    }
  }
};

// Normal numbers of at most two standard deviations: others are drawn again.
template <class T>
struct TruncatedNormal {
  static constexpr int kGroup = std::is_same_v<T, double> ? 2 : 4;
  static constexpr uint64_t kBlocks = kGroup * Generator::kWordsPerSample / 4;
  void operator()(const Philox& philox, T* out) const {
    using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
    WordStream words(philox);
    for (int n = 0; n < kGroup;) {
      F pair[2];
      if constexpr (std::is_same_v<T, double>) {
        const uint32_t w[] = {words.Next(), words.Next(), words.Next(), words.Next()};
        BoxMuller(UniformDouble(w[0], w[1]), UniformDouble(w[2], w[3]), &pair[0], &pair[1]);
      } else {
        const uint32_t w[] = {words.Next(), words.Next()};
        BoxMuller(UniformFloat(w[0]), UniformFloat(w[1]), &pair[0], &pair[1]);
      }
      for (F number : pair) {
        if (std::abs(number) < F(2) && n < kGroup) out[n++] = T(number);
      }
    }
  }
};

// Integers in [low, low + range); the bias of the remainder is range / 2^32 (2^64 for int64).
template <class T>
struct UniformInteger {
  using Unsigned = std::make_unsigned_t<T>;
  static constexpr int kGroup = sizeof(T) == 8 ? 2 : 4;
  static constexpr uint64_t kBlocks = 1;
  T low;
  Unsigned range;
  void operator()(Philox philox, T* out) const {
    const Philox::Words w = philox.Next();
    for (int i = 0; i < kGroup; ++i) {
      Unsigned bits;
      if constexpr (sizeof(T) == 8) {
        bits = w[2 * i] | uint64_t{w[2 * i + 1]} << 32;
      } else {
        bits = w[i];
      }
      out[i] = static_cast<T>(static_cast<Unsigned>(low) + bits % range);
    }
  }
};

}  // namespace penstock
