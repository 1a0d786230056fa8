// SPDX-License-Identifier: Apache-2.0
//
// How a window slides over one dimension of an image, for convolutions and pooling, and the
// attributes that say so. Only NHWC runs on the CPU; the other formats are refused by name.
#pragma once

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
};

struct WindowAttrs {
  std::vector<int64_t> strides;            // per dimension of the image, NHWC
  std::vector<int64_t> dilations;          // likewise; {1,1,1,1} where the op has none
  std::string padding;                     // "SAME", "VALID" or "EXPLICIT"
  std::vector<int64_t> explicit_paddings;  // before and after, per dimension

  // From a node's attributes strides, dilations, padding, explicit_paddings, data_format.
  // `need_strides` is false for ops that take them as an input.
  static StatusOr<WindowAttrs> From(const Attrs& attrs, bool need_strides = true);
  // The window over dimension `dim` (1: height, 2: width) of an image. `in` and `size` >= 0.
  // InvalidArgument where the window is larger than the padded input.
  StatusOr<Window> Over(int dim, int64_t in, int64_t size) const;
};

// Checks that there are four of them, each >= 1, and none over batch or channels.
Status CheckSpatial(const char* what, const std::vector<int64_t>& values);

// Output size for shape functions: kUnknown in, kUnknown out.
StatusOr<int64_t> WindowOutput(const WindowAttrs& attrs, int dim, int64_t in, int64_t size);

}  // namespace penstock
