// SPDX-License-Identifier: Apache-2.0
//
// ChannelSplit: a view of a tensor as [outer, channels, inner], in any format; and two loops over
// it: sums per channel, and a value for each element.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace penstock {

struct ChannelSplit {
  int64_t outer = 1, channels = 0, inner = 1;
  int64_t row() const { return channels * inner; }
  int64_t per_channel() const { return outer * inner; }  // elements of one channel
};

// Returns the dimension that holds the channels: 1 in NCHW and NCDHW, else the last.
inline int ChannelAxis(const std::string& format, int rank) {
  return format.rfind("NC", 0) == 0 ? 1 : rank - 1;
}

inline ChannelSplit SplitAt(const Shape& shape, int axis) {
  ChannelSplit c{.channels = shape.dim(axis)};
  for (int i = 0; i < axis; ++i) c.outer *= shape.dim(i);
  for (int i = axis + 1; i < shape.rank(); ++i) c.inner *= shape.dim(i);
  return c;
}

inline StatusOr<ChannelSplit> SplitAtChannels(const Shape& shape, const std::string& format) {
  if (shape.rank() < 2) {
    return InvalidArgument("input must have at least 2 dimensions, has shape ", shape.ToString());
  }
  return SplitAt(shape, ChannelAxis(format, shape.rank()));
}

// Returns the number of rows that are summed in F before the sums are added up in double. So the
// rounding error depends on this number and not on the length of the sum.
template <class F>
int64_t RowsPerPiece(const ChannelSplit& v) {
  return std::clamp<int64_t>(16384 / std::max<int64_t>(v.row(), 1), 1, 512);
}

// Calls sum(begin, end, piece) for each piece, which is the rows [begin, end), on several threads.
template <class F, class Sum>
void ForEachPiece(const ChannelSplit& v, double element_ns, Scheduler& threads, const Sum& sum) {
  const int64_t rows = RowsPerPiece<F>(v), pieces = (v.outer + rows - 1) / rows;
  const double piece_ns = element_ns * static_cast<double>(rows * v.row());
  threads.ParallelFor(pieces, piece_ns, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) sum(p * rows, std::min(v.outer, (p + 1) * rows), p);
  });
}

// Computes sums[c] += value(i, c) for every element i of channel c in rows [begin, end).
template <class F, class Value>
void AddRows(const ChannelSplit& v, int64_t begin, int64_t end, F* sums, const Value& value) {
  constexpr int kLanes = 16;
  for (int64_t r = begin; r < end; ++r) {
    int64_t i = r * v.row();
    if (v.inner == 1) {
#pragma GCC ivdep
      for (int64_t c = 0; c < v.channels; ++c) sums[c] += value(i + c, c);
      continue;
    }
    for (int64_t c = 0; c < v.channels; ++c) {
      F lanes[kLanes] = {};
      const int64_t stop = i + v.inner;
      for (; i + kLanes <= stop; i += kLanes) {
        for (int k = 0; k < kLanes; ++k) lanes[k] += value(i + k, c);
      }
      for (; i < stop; ++i) lanes[0] += value(i, c);
      for (F lane : lanes) sums[c] += lane;
    }
  }
}

// Returns, for each channel, the sum of value(i, c).
template <class F, class Value>
std::vector<double> SumPerChannel(const ChannelSplit& v, Scheduler& threads, const Value& value) {
  const int64_t rows = RowsPerPiece<F>(v), pieces = (v.outer + rows - 1) / rows;
  std::vector<F> parts(pieces * v.channels);
  ForEachPiece<F>(v, 0.5, threads, [&](int64_t begin, int64_t end, int64_t piece) {
    AddRows(v, begin, end, parts.data() + piece * v.channels, value);
  });
  std::vector<double> sums(v.channels);
  for (int64_t p = 0; p < pieces; ++p) {
    for (int64_t c = 0; c < v.channels; ++c) sums[c] += parts[p * v.channels + c];
  }
  return sums;
}

// Computes y[i] = value(i, c) for every element i of every channel c.
template <class F, class Value>
void MapPerChannel(const ChannelSplit& v, Scheduler& threads, F* y, const Value& value) {
  ForEachPiece<F>(v, 0.5, threads, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t i = r * v.row();
      if (v.inner == 1) {
#pragma GCC ivdep
        for (int64_t c = 0; c < v.channels; ++c) y[i + c] = value(i + c, c);
        continue;
      }
      for (int64_t c = 0; c < v.channels; ++c) {
        const int64_t stop = i + v.inner;
#pragma GCC ivdep
        for (; i < stop; ++i) y[i] = value(i, c);
      }
    }
  });
}

}  // namespace penstock
