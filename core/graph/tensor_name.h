// SPDX-License-Identifier: Apache-2.0
//
// TensorNameView: a TensorName that borrows its text, because imports parse hundreds of thousands
// of them.
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
