// SPDX-License-Identifier: Apache-2.0
//
// Window: how a window slides over one dimension of an image, in convolutions and pooling;
// WindowAttrs: the attributes that define windows. The CPU supports only NHWC and NDHWC; for other
// formats, Unimplemented names the format.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"

namespace penstock {

// A window over one dimension. Element k of the window at output o lies over element `o * stride -
// pad_before + k * dilation` of the input.
struct Window {
  int64_t in = 0, size = 0, stride = 1, dilation = 1;
  int64_t pad_before = 0, pad_after = 0, out = 0;
  bool operator==(const Window&) const = default;

  // Calls fn(i) for the input elements under the window at output o, without padding.
  template <class Fn>
  void ForEachInside(int64_t o, const Fn& fn) const {
    const int64_t begin = o * stride - pad_before, end = std::min(in, begin + size * dilation);
    // A window may be far larger than the input, so the loop skips the positions outside.
    const int64_t outside = begin < 0 ? (dilation - 1 - begin) / dilation : 0;
    for (int64_t i = begin + outside * dilation; i < end; i += dilation) fn(i);
  }
};
// The window that stands for the depth of images, a dimension that they do not have.
inline constexpr Window kNoWindow{.in = 1, .size = 1, .out = 1};

struct WindowAttrs {
  std::vector<int64_t> strides;    // per dimension of the image, N[D]HWC
  std::vector<int64_t> dilations;  // dilation per dimension of the image; ones if the op has none
  std::string padding;             // "SAME", "VALID" or "EXPLICIT"
  std::vector<int64_t> explicit_paddings;  // before and after, per dimension

  int rank = 4;  // 4 for images, 5 for volumes

  // Reads the attributes strides, dilations, padding, explicit_paddings and data_format of a node.
  // `format` applies to ops without data_format. `need_strides` is false for ops that take strides
  // as an input. InvalidArgument if an attribute is not valid.
  static StatusOr<WindowAttrs> From(const Attrs& attrs, bool need_strides = true,
                                    std::string format = "NHWC");
  // Returns the window over dimension `dim` of an image (in NHWC 1 is the height, 2 the width).
  // REQUIRES: `in` and `size` are >= 0. InvalidArgument if the window is larger than the padded
  // input.
  StatusOr<Window> MakeWindow(int dim, int64_t in, int64_t size) const;
};

// Checks an attribute called `what`. InvalidArgument unless `values` has `rank` elements, all >= 1;
// Unimplemented unless those of batch and channels are 1.
Status CheckSpatial(const char* what, const std::vector<int64_t>& values, int rank = 4);

// For shape functions: returns the output size; kUnknown if `in` is kUnknown.
StatusOr<int64_t> WindowOutput(const WindowAttrs& attrs, int dim, int64_t in, int64_t size);

}  // namespace penstock
