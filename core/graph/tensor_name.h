// SPDX-License-Identifier: Apache-2.0
//
// TensorNameView: a TensorName that borrows its text. An import parses hundreds of thousands of
// names and so does not copy them.
#pragma once

#include "core/base/status.h"

namespace penstock {

struct TensorNameView {
  string_view node;
  int index = 0;
  bool control = false;
  static StatusOr<TensorNameView> Parse(string_view text);
};

}  // namespace penstock
