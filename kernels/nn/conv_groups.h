// SPDX-License-Identifier: Apache-2.0
//
// Grouped convolutions: channels are divided into groups of equal size, and each group of output
// channels is computed from one group of input channels. ForEachGroup copies each group out of the
// tensors, convolves it separately and copies the result back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/nn/conv_geometry.h"

namespace penstock {

// The size of a tensor, seen as a matrix whose rows have the channels of all groups.
struct ConvRows {
  int64_t rows, channels;
};

// Copies the channels of group `k` out of a tensor.
template <class T>
std::vector<T> TakeGroup(const T* from, ConvRows size, int64_t groups, int64_t k) {
  const int64_t channels = size.channels / groups;
  std::vector<T> to(size.rows * channels);
  for (int64_t row = 0; row < size.rows; ++row) {
    std::copy_n(from + row * size.channels + k * channels, channels, to.data() + row * channels);
  }
  return to;
}

// Calls run(geometry of one group, a, b, c), where c is the result, for each group.
template <class T, class Run>
void ForEachGroup(const ConvGeometry& g, const T* a, ConvRows a_size, const T* b, ConvRows b_size,
                  T* c, ConvRows c_size, const Run& run) {
  if (g.groups == 1) return run(g, a, b, c);
  const int64_t channels = c_size.channels / g.groups;
  std::vector<T> result(c_size.rows * channels);
  for (int64_t k = 0; k < g.groups; ++k) {
    run(g.OneGroup(), TakeGroup(a, a_size, g.groups, k).data(),
        TakeGroup(b, b_size, g.groups, k).data(), result.data());
    for (int64_t row = 0; row < c_size.rows; ++row) {
      std::copy_n(result.data() + row * channels, channels,
                  c + row * c_size.channels + k * channels);
    }
  }
}

inline ConvRows ImageRows(const ConvGeometry& g) {
  return {g.batch * g.in_pixels(), g.in_channels};
}
inline ConvRows FilterRows(const ConvGeometry& g) { return {g.patch(), g.out_channels}; }
inline ConvRows OutputRows(const ConvGeometry& g) {
  return {g.batch * g.out_pixels(), g.out_channels};
}

}  // namespace penstock
