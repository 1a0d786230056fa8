// SPDX-License-Identifier: Apache-2.0
//
// Taps: the input elements, and their weights, from which each output element is computed when one
// dimension of an image is resized. Every resizing method has one such table for the rows and one
// for the columns.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock {

struct Taps {
  // Output o has the taps [o * count, (o + 1) * count).
  int64_t count = 0;
  std::vector<int32_t> index;
  std::vector<float> weight;
};

// Maps output positions of one dimension to input positions.
struct ResizeGrid {
  int64_t in = 0, out = 0;
  bool align_corners = false;       // the corner pixels keep their centres
  bool half_pixel_centers = false;  // pixel i covers [i, i + 1)

  float Scale() const {
    return align_corners && out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                                    : static_cast<float>(in) / static_cast<float>(out);
  }
  float Position(int64_t o) const {
    return half_pixel_centers ? (static_cast<float>(o) + 0.5f) * Scale() - 0.5f
                              : static_cast<float>(o) * Scale();
  }
  // Returns the input element that output o copies, for resizing by copying single elements.
  int64_t Nearest(int64_t o) const;
};

// Returns two taps per output: the neighbours, weighted by their distance.
Taps BilinearTaps(const ResizeGrid& grid);
// Returns four taps per output, weighted by a cubic kernel.
Taps BicubicTaps(const ResizeGrid& grid);
// Returns the input pixels that the output pixel covers, each weighted by the fraction covered.
Taps AreaTaps(const ResizeGrid& grid);

}  // namespace penstock
