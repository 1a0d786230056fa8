// SPDX-License-Identifier: Apache-2.0
//
// The regions over which FractionalMaxPool and FractionalAvgPool pool, and the functions that draw
// them at random. The pooling ratio need not be an integer. B. Graham: Fractional Max-Pooling.
// arXiv 1412.6071.
//
// Region i of a dimension begins at element i of a sequence. It ends before element i + 1, or, if
// regions overlap, includes it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/tensor/shape.h"
#include "kernels/random/philox.h"

namespace penstock {

// Elements [begin, end) of the input.
struct Region {
  int64_t begin, end;
};

struct FractionalGeometry {
  int64_t batch, height, width, channels;  // sizes of the input
  std::vector<Region> rows, columns;       // regions of the output's rows and columns

  Shape input() const { return {batch, height, width, channels}; }
  Shape output() const {
    return {batch, static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns.size()),
            channels};
  }
};

// Both functions draw a sequence of `out` regions that cover `in` elements, 1 <= out <= in.
// PseudoRandomSequence rounds up multiples of in / out, plus a random offset; it uses one block of
// the stream.
std::vector<int64_t> PseudoRandomSequence(int64_t in, int64_t out, Philox stream);
// ShuffledSequence shuffles regions of two sizes; it uses one number of the stream per region.
std::vector<int64_t> ShuffledSequence(int64_t in, int64_t out, Philox stream);

// Returns the regions of a sequence. REQUIRES: the sequence ascends, its numbers are in [0, size],
// and its regions begin below `size`.
std::vector<Region> Regions(absl::Span<const int64_t> sequence, int64_t size, bool overlapping);

// Returns the approximate cost of one image.
inline double ImageNanos(const FractionalGeometry& g) {
  return 1.0 * static_cast<double>(g.height * g.width * g.channels) + 100;
}

// For each output pixel of image b: calls begin(y, pixels), then visit(y, x) for each input pixel
// in its region, row by row. y and x are offsets of channel 0.
template <class Begin, class Visit>
void ForEachRegion(const FractionalGeometry& g, int64_t b, const Begin& begin, const Visit& visit) {
  int64_t y = b * static_cast<int64_t>(g.rows.size() * g.columns.size()) * g.channels;
  for (const Region& row : g.rows) {
    for (const Region& column : g.columns) {
      begin(y, (row.end - row.begin) * (column.end - column.begin));
      for (int64_t h = row.begin; h < row.end; ++h) {
        for (int64_t w = column.begin; w < column.end; ++w) {
          visit(y, ((b * g.height + h) * g.width + w) * g.channels);
        }
      }
      y += g.channels;
    }
  }
}

}  // namespace penstock
