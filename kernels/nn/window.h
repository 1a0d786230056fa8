// SPDX-License-Identifier: Apache-2.0
//
// How a window slides over one dimension of an image, for convolutions and pooling, and the
// attributes that say so. Only NHWC and NDHWC run on the CPU; the others are refused by name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"

namespace penstock {

// One dimension. Element `o * stride - pad_before + k * dilation` of the input meets element k of
// the window at output o.
struct Window {
  int64_t in = 0, size = 0, stride = 1, dilation = 1;
  int64_t pad_before = 0, pad_after = 0, out = 0;
  bool operator==(const Window&) const = default;

  // Calls fn(i) for the elements of the input under the window at output o, padding left out.
  template <class Fn>
  void ForEachInside(int64_t o, const Fn& fn) const {
    const int64_t begin = o * stride - pad_before, end = std::min(in, begin + size * dilation);
    // A window may be far larger than the input: nothing is done for what is outside.
    const int64_t outside = begin < 0 ? (dilation - 1 - begin) / dilation : 0;
    for (int64_t i = begin + outside * dilation; i < end; i += dilation) fn(i);
  }
};
// Over a dimension that images do not have.
inline constexpr Window kNoWindow{.in = 1, .size = 1, .out = 1};

struct WindowAttrs {
  std::vector<int64_t> strides;            // per dimension of the image, N[D]HWC
  std::vector<int64_t> dilations;          // likewise; ones where the op has none
  std::string padding;                     // "SAME", "VALID" or "EXPLICIT"
  std::vector<int64_t> explicit_paddings;  // before and after, per dimension

  int rank = 4;  // of the image: 5 for volumes

  // From a node's attributes strides, dilations, padding, explicit_paddings, data_format (`format`
  // where the op has none). `need_strides` is false for ops that take them as an input.
  static StatusOr<WindowAttrs> From(const Attrs& attrs, bool need_strides = true,
                                    std::string format = "NHWC");
  // The window over dimension `dim` of an image (of NHWC 1 is the height, 2 the width). `in` and
  // `size` >= 0. InvalidArgument where the window is larger than the padded input.
  StatusOr<Window> Over(int dim, int64_t in, int64_t size) const;
};

// Checks that there are `rank` of them, each >= 1, and none over batch or channels.
Status CheckSpatial(const char* what, const std::vector<int64_t>& values, int rank = 4);

// Output size for shape functions: kUnknown in, kUnknown out.
StatusOr<int64_t> WindowOutput(const WindowAttrs& attrs, int dim, int64_t in, int64_t size);

}  // namespace penstock
