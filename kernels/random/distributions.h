// SPDX-License-Identifier: Apache-2.0
//
// Distributions: turn blocks of four random words into numbers of a type. Each makes kGroup numbers
// from one group of blocks, bit by bit as TensorFlow does.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "core/tensor/float16.h"
#include "kernels/random/philox.h"

namespace penstock {

// Returns a number in [0, 1) from the bits of a mantissa: 1.mantissa - 1.
inline float UnitFloat(uint32_t x) {
  return std::bit_cast<float>(0x3f800000u | (x & 0x7fffffu)) - 1;
}
inline double UnitDouble(uint32_t high, uint32_t low) {
  const uint64_t mantissa = uint64_t{high & 0xfffffu} << 32 | low;
  return std::bit_cast<double>(uint64_t{1023} << 52 | mantissa) - 1;
}
inline half UnitHalf(uint32_t x) {
  return half(float(half::FromBits(static_cast<uint16_t>(0x3c00u | (x & 0x3ffu)))) - 1);
}
inline bfloat16 UnitBfloat16(uint32_t x) {
  return bfloat16(float(bfloat16::FromBits(static_cast<uint16_t>(0x3f80u | (x & 0x7fu)))) - 1);
}

// The Box-Muller transform: makes two normal numbers from two uniform ones. The bound keeps the
// argument of log away from zero.
inline std::array<float, 2> BoxMuller(uint32_t x0, uint32_t x1) {
  const float u = std::max(UnitFloat(x0), 1.0e-7f);
  const auto angle = static_cast<float>(2.0 * std::numbers::pi * UnitFloat(x1));
  const float radius = std::sqrt(-2.0f * std::log(u));
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}
inline std::array<double, 2> BoxMuller(uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3) {
  const double u = std::max(UnitDouble(x0, x1), 1.0e-7);
  const double angle = 2.0 * std::numbers::pi * UnitDouble(x2, x3);
  const double radius = std::sqrt(-2.0 * std::log(u));
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}

// The number of T's that are made from one block.
template <class T>
inline constexpr int kPerBlock = sizeof(T) == 8 ? 2 : 4;
template <class T>
using Group = std::array<T, kPerBlock<T>>;

template <class T>
struct Uniform {
  using Result = T;
  static constexpr uint64_t kBlocksPerGroup = 1;
  static constexpr double kCostNanos = 1;

  Group<T> operator()(Philox& stream) const {
    const Philox::Block x = stream();
    if constexpr (std::is_same_v<T, double>) {
      return {UnitDouble(x[0], x[1]), UnitDouble(x[2], x[3])};
    } else if constexpr (std::is_same_v<T, float>) {
      return {UnitFloat(x[0]), UnitFloat(x[1]), UnitFloat(x[2]), UnitFloat(x[3])};
    } else if constexpr (std::is_same_v<T, half>) {
      return {UnitHalf(x[0]), UnitHalf(x[1]), UnitHalf(x[2]), UnitHalf(x[3])};
    } else {
      return {UnitBfloat16(x[0]), UnitBfloat16(x[1]), UnitBfloat16(x[2]), UnitBfloat16(x[3])};
    }
  }
};

// Integers in [low, high), by remainder. REQUIRES: low < high.
template <class T>
struct UniformInt {
  using Result = T;
  using Unsigned = std::make_unsigned_t<T>;
  static constexpr uint64_t kBlocksPerGroup = 1;
  static constexpr double kCostNanos = 3;
  Unsigned low, range;

  UniformInt(T from, T to)
      : low(static_cast<Unsigned>(from)), range(static_cast<Unsigned>(to) - low) {}
  Group<T> operator()(Philox& stream) const {
    const Philox::Block x = stream();
    const auto in_range = [this](Unsigned bits) { return static_cast<T>(low + bits % range); };
    if constexpr (sizeof(T) == 8) {
      return {in_range(x[0] | uint64_t{x[1]} << 32), in_range(x[2] | uint64_t{x[3]} << 32)};
    } else {
      return {in_range(x[0]), in_range(x[1]), in_range(x[2]), in_range(x[3])};
    }
  }
};

// Integers uniform over all values of T.
template <class T>
struct UniformBits {
  using Result = T;
  static constexpr uint64_t kBlocksPerGroup = 1;
  static constexpr double kCostNanos = 1;

  Group<T> operator()(Philox& stream) const {
    const Philox::Block x = stream();
    return std::bit_cast<Group<T>>(x);
  }
};

template <class T>
struct Normal {
  using Result = T;
  static constexpr uint64_t kBlocksPerGroup = 1;
  static constexpr double kCostNanos = 10;

  Group<T> operator()(Philox& stream) const {
    const Philox::Block x = stream();
    if constexpr (std::is_same_v<T, double>) {
      return BoxMuller(x[0], x[1], x[2], x[3]);
    } else {
      const auto a = BoxMuller(x[0], x[1]), b = BoxMuller(x[2], x[3]);
      return {T(a[0]), T(a[1]), T(b[0]), T(b[1])};
    }
  }
};

// Normal numbers; those beyond two standard deviations are drawn again. Each group reserves enough
// blocks for all attempts, so the number of attempts in one group does not shift the other groups.
template <class T>
struct TruncatedNormal {
  using Result = T;
  static constexpr uint64_t kBlocksPerGroup = 64 * kPerBlock<T>;
  static constexpr double kCostNanos = 12;

  Group<T> operator()(Philox& stream) const {
    Group<T> group;
    size_t filled = 0;
    const auto keep = [&](auto pair) {
      for (const auto value : pair) {
        if (std::abs(value) < 2 && filled < group.size()) group[filled++] = T(value);
      }
    };
    while (filled < group.size()) {
      const Philox::Block x = stream();
      if constexpr (std::is_same_v<T, double>) {
        keep(BoxMuller(x[0], x[1], x[2], x[3]));
      } else {
        keep(BoxMuller(x[0], x[1]));
        keep(BoxMuller(x[2], x[3]));
      }
    }
    return group;
  }
};

}  // namespace penstock
