// SPDX-License-Identifier: Apache-2.0
//
// Spans: the input elements, and their weights, of each output element when a filter resizes one
// dimension of an image. Unlike Taps, each output element may have another number of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/op/kernel.h"

namespace penstock {

// A filter is zero at distances beyond its radius.
struct Filter {
  const char* name;
  float radius;
  float (*at)(float distance);
};

// Returns the filter called `name` (lanczos3, ...); InvalidArgument if there is none.
StatusOr<const Filter*> FindFilter(const std::string& name);

// The input elements of each output element: output o is the sum of input begin[o] + k times
// weight[o * most + k], k < count[o].
struct Spans {
  int64_t most = 0;
  std::vector<int64_t> begin, count;
  Tensor weight;
  const float* weights(int64_t o) const { return weight.data<float>() + o * most; }
};

// How one dimension is scaled.
struct Scaling {
  int64_t in, out;
  float scale, translation;
};

// With `antialias`, the filter covers more elements if the dimension shrinks. REQUIRES: a positive
// scale and a finite translation.
StatusOr<Spans> MakeSpans(KernelContext& ctx, const Filter& filter, bool antialias,
                          const Scaling& s);

}  // namespace penstock
