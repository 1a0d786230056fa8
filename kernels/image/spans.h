// SPDX-License-Identifier: Apache-2.0
//
// Spans: the input elements, and their weights, of each output element when a filter resizes one
// dimension of an image. Unlike in Taps, the number of input elements may differ between output
// elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/op/kernel.h"

namespace penstock {

// A resampling filter. It is zero at distances beyond its radius.
struct Filter {
  const char* name;
  float radius;
  float (*at)(float distance);
};

// Returns the filter called `name` (lanczos3, ...); InvalidArgument if there is none.
StatusOr<const Filter*> FindFilter(const std::string& name);

// The input elements of each output element: output o is the sum, over k < count[o], of weight[o *
// most + k] times input element begin[o] + k. `most` is the largest count.
struct Spans {
  int64_t most = 0;
  std::vector<int64_t> begin, count;
  Tensor weight;
  const float* weights(int64_t o) const { return weight.data<float>() + o * most; }
};

// The sizes, the scale and the translation of one dimension.
struct Scaling {
  int64_t in, out;
  float scale, translation;
};

// Makes the spans of one dimension. With `antialias`, the filter is wider if the dimension shrinks.
// REQUIRES: a positive scale and a finite translation.
StatusOr<Spans> MakeSpans(KernelContext& ctx, const Filter& filter, bool antialias,
                          const Scaling& s);

}  // namespace penstock
