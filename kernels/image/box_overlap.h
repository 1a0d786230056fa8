// SPDX-License-Identifier: Apache-2.0
//
// BoxOverlap: computes the overlap of two boxes of an image.
#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock {

// Computes the intersection over union of two boxes. A box is [y1, x1, y2, x2]: any two opposite
// corners.
struct BoxOverlap {
  const float* boxes;
  int64_t stride = 4;  // numbers from one box to the next
  struct Box {
    float y1, x1, y2, x2;
    float area() const { return (y2 - y1) * (x2 - x1); }
  };
  Box At(int32_t i) const {
    const float* b = boxes + stride * int64_t{i};
    return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
  }
  float operator()(int32_t i, int32_t j) const {
    const Box a = At(i), b = At(j);
    if (a.area() <= 0 || b.area() <= 0) return 0;
    const float height = std::max(std::min(a.y2, b.y2) - std::max(a.y1, b.y1), 0.f);
    const float width = std::max(std::min(a.x2, b.x2) - std::max(a.x1, b.x1), 0.f);
    const float both = height * width;
    return both / (a.area() + b.area() - both);
  }
};

}  // namespace penstock
