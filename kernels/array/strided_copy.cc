// SPDX-License-Identifier: Apache-2.0
#include "kernels/array/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/tensor/resource_handle.h"
#include "core/tensor/variant.h"
#include "kernels/array/block_transpose.h"

namespace penstock {
namespace {

using Dim = StridedCopy::Dim;
using Loops = absl::InlinedVector<Dim, 8>;  // outermost first

// A block of bytes with alignment 1 that stands for any plain element, or run of elements, of its
// size.
template <int kBytes>
struct Bytes {
  unsigned char bytes[kBytes];
};

// Walks the positions of a loop nest in order, starting anywhere.
class Odometer {
 public:
  Odometer(const Loops& loops, int64_t position) : loops_(loops), index_(loops.size()) {
    for (int i = static_cast<int>(loops.size()) - 1; i >= 0; --i) {
      index_[i] = position % loops[i].count;
      position /= loops[i].count;
      from_ += index_[i] * loops[i].from;
      to_ += index_[i] * loops[i].to;
    }
  }
  int64_t from() const { return from_; }
  int64_t to() const { return to_; }
  void Next() {
    for (int i = static_cast<int>(loops_.size()) - 1; i >= 0; --i) {
      from_ += loops_[i].from;
      to_ += loops_[i].to;
      if (++index_[i] < loops_[i].count) return;
      index_[i] = 0;
      from_ -= loops_[i].count * loops_[i].from;
      to_ -= loops_[i].count * loops_[i].to;
    }
  }

 private:
  const Loops& loops_;
  absl::InlinedVector<int64_t, 8> index_;
  int64_t from_ = 0, to_ = 0;
};

int64_t Positions(const Loops& loops) {
  int64_t product = 1;
  for (const Dim& loop : loops) product *= loop.count;
  return product;
}

// Calls body(from, to, piece) for every position of `outer` and every piece < pieces, on several
// threads if that is worthwhile. from and to are offsets in the unit of the strides.
template <class Body>
void ForEachPiece(const Loops& outer, int64_t pieces, double piece_cost_ns, Scheduler& threads,
                  const Body& body) {
  threads.ParallelFor(Positions(outer) * pieces, piece_cost_ns, [&](int64_t begin, int64_t end) {
    Odometer position(outer, begin / pieces);
    int64_t piece = begin % pieces;
    for (int64_t i = begin; i < end; ++i) {
      body(position.from(), position.to(), piece);
      if (++piece == pieces) {
        piece = 0;
        position.Next();
      }
    }
  });
}

// The approximate speed of one thread.
constexpr double kBytesPerNano = 16;

// Copies rows of `row` bytes each.
void CopyRows(int64_t row, const Loops& outer, const char* from, char* to, Scheduler& threads) {
  constexpr int64_t kPiece = 128 << 10;
  const int64_t pieces = (row + kPiece - 1) / kPiece;
  const double cost = 3 + std::min(row, kPiece) / kBytesPerNano;
  ForEachPiece(outer, pieces, cost, threads, [&](int64_t f, int64_t t, int64_t piece) {
    const int64_t begin = piece * kPiece;
    memcpy(to + t + begin, from + f + begin, std::min(kPiece, row - begin));
  });
}

// At each position of the loops `outer`, copies the elements of the loop `inner` one by one.
template <class Element>
void CopyInner(const Dim& inner, const Loops& outer, const char* from, char* to,
               Scheduler& threads) {
  constexpr int64_t kPiece = 4096;
  const int64_t pieces = (inner.count + kPiece - 1) / kPiece;
  const double cost = 3 + 0.7 * std::min(inner.count, kPiece);
  ForEachPiece(outer, pieces, cost, threads, [&](int64_t f, int64_t t, int64_t piece) {
    const int64_t begin = piece * kPiece;
    const int64_t count = std::min(kPiece, inner.count - begin);
    const char* source = from + f + begin * inner.from;
    char* target = to + t + begin * inner.to;
    if (inner.from == 0 && inner.to == static_cast<int64_t>(sizeof(Element))) {
      std::fill_n(reinterpret_cast<Element*>(target), count,
                  *reinterpret_cast<const Element*>(source));
      return;
    }
    for (int64_t i = 0; i < count; ++i, source += inner.from, target += inner.to) {
      *reinterpret_cast<Element*>(target) = *reinterpret_cast<const Element*>(source);
    }
  });
}

// Transposes a matrix: the source is contiguous along `columns`, the destination along `rows`. A
// block is one cache line wide in the source and 256 rows long, so it covers about as many pages as
// a TLB has entries.
template <class U>
void CopyTransposed(const Dim& rows, const Dim& columns, const Loops& outer, const char* from,
                    char* to, Scheduler& threads) {
  constexpr int64_t kColumns = kCacheLine / sizeof(U), kRows = 256;
  const int64_t across = (columns.count + kColumns - 1) / kColumns;
  const int64_t down = (rows.count + kRows - 1) / kRows;
  const int64_t bytes = std::min(kColumns, columns.count) * std::min(kRows, rows.count) * sizeof(U);
  const double cost = 5 + bytes / kBytesPerNano;
  ForEachPiece(outer, across * down, cost, threads, [&](int64_t f, int64_t t, int64_t piece) {
    const int64_t r = piece / across * kRows, c = piece % across * kColumns;
    const TransposedBlock block = {.rows = std::min(kRows, rows.count - r),
                                   .columns = std::min(kColumns, columns.count - c),
                                   .from_stride = rows.from,
                                   .to_stride = columns.to};
    TransposeBlock<U>(block, from + f + r * rows.from + c * columns.from,
                      to + t + r * rows.to + c * columns.to);
  });
}

// Removes and returns the last loop.
Dim PopInnermost(Loops& loops) {
  const Dim inner = loops.back();
  loops.pop_back();
  return inner;
}

// Copies by transposition and returns true if the destination is contiguous along the last loop and
// the source along another one; otherwise returns false.
template <class U>
bool TryTranspose(const Loops& loops, const char* from, char* to, Scheduler& threads) {
  if (loops.back().to != sizeof(U)) return false;
  const auto columns = std::find_if(loops.begin(), loops.end(), [](const Dim& loop) {
    return loop.from == static_cast<int64_t>(sizeof(U));
  });
  if (columns == loops.end()) return false;
  Loops outer = loops;
  outer.erase(outer.begin() + (columns - loops.begin()));
  const Dim rows = PopInnermost(outer);
  CopyTransposed<U>(rows, *columns, outer, from, to, threads);
  return true;
}

template <int kBytes>
void CopyPlain(Loops loops, const char* from, char* to, Scheduler& threads) {
  if constexpr (kBytes == 1) {
    if (TryTranspose<uint8_t>(loops, from, to, threads)) return;
  } else if constexpr (kBytes == 2) {
    if (TryTranspose<uint16_t>(loops, from, to, threads)) return;
  } else if constexpr (kBytes == 4) {
    if (TryTranspose<uint32_t>(loops, from, to, threads)) return;
  } else if constexpr (kBytes == 8) {
    if (TryTranspose<uint64_t>(loops, from, to, threads)) return;
  }
  // Make the longer of the last two loops the inner one if the last is very short: its overhead
  // would cost more than writing memory in order saves.
  const size_t n = loops.size();
  if (n >= 2 && loops[n - 1].count < 8 && loops[n - 2].count > loops[n - 1].count) {
    std::swap(loops[n - 1], loops[n - 2]);
  }
  const Dim inner = PopInnermost(loops);
  CopyInner<Bytes<kBytes>>(inner, loops, from, to, threads);
}

// Drops loops of one element, sorts the others so that the innermost has the smallest stride in the
// destination, and joins neighbours that continue each other. If the destination walks a dimension
// backwards, reverses it and moves `from` and `to` to its other end.
Loops Simplify(const StridedCopy& copy, int64_t* from, int64_t* to) {
  Loops loops;
  for (Dim dim : copy.dims) {
    if (dim.count == 1) continue;
    if (dim.to < 0) {
      *from += (dim.count - 1) * dim.from;
      *to += (dim.count - 1) * dim.to;
      dim.from = -dim.from;
      dim.to = -dim.to;
    }
    loops.push_back(dim);
  }
  std::stable_sort(loops.begin(), loops.end(),
                   [](const Dim& a, const Dim& b) { return a.to > b.to; });
  size_t kept = 0;
  for (size_t i = 1; i < loops.size(); ++i) {
    Dim& outer = loops[kept];
    const Dim& inner = loops[i];
    if (outer.from == inner.from * inner.count && outer.to == inner.to * inner.count) {
      outer = {outer.count * inner.count, inner.from, inner.to};
    } else {
      loops[++kept] = inner;
    }
  }
  if (!loops.empty()) loops.resize(kept + 1);
  return loops;
}

template <class Object>
void CopyObjects(const Loops& loops, const Object* from, Object* to, Scheduler& threads) {
  ForEachPiece(loops, 1, 20, threads, [&](int64_t f, int64_t t, int64_t) { to[t] = from[f]; });
}

}  // namespace

void CopyStrided(DType dtype, const StridedCopy& copy, const void* from, void* to,
                 Scheduler& threads) {
  for (const Dim& dim : copy.dims) {
    if (dim.count == 0) return;
  }
  int64_t from_start = 0, to_start = 0;
  Loops loops = Simplify(copy, &from_start, &to_start);
  if (dtype == DType::kString) {
    return CopyObjects(loops, static_cast<const std::string*>(from) + from_start,
                       static_cast<std::string*>(to) + to_start, threads);
  }
  if (dtype == DType::kResource) {
    return CopyObjects(loops, static_cast<const ResourceHandle*>(from) + from_start,
                       static_cast<ResourceHandle*>(to) + to_start, threads);
  }
  if (dtype == DType::kVariant) {
    return CopyObjects(loops, static_cast<const Variant*>(from) + from_start,
                       static_cast<Variant*>(to) + to_start, threads);
  }
  CHECK(IsPlain(dtype), Name(dtype));
  const int64_t size = SizeOf(dtype);
  const char* source = static_cast<const char*>(from) + from_start * size;
  char* target = static_cast<char*>(to) + to_start * size;
  // A run that is contiguous in source and destination is copied as one element.
  int64_t run = size;
  if (!loops.empty() && loops.back().from == 1 && loops.back().to == 1) {
    run *= PopInnermost(loops).count;
  }
  for (Dim& loop : loops) {
    loop.from *= size;
    loop.to *= size;
  }
  if (loops.empty()) return CopyRows(run, loops, source, target, threads);
  switch (run) {
    case 1:
      return CopyPlain<1>(loops, source, target, threads);
    case 2:
      return CopyPlain<2>(loops, source, target, threads);
    case 3:
      return CopyPlain<3>(loops, source, target, threads);
    case 4:
      return CopyPlain<4>(loops, source, target, threads);
    case 8:
      return CopyPlain<8>(loops, source, target, threads);
    case 12:
      return CopyPlain<12>(loops, source, target, threads);
    case 16:
      return CopyPlain<16>(loops, source, target, threads);
    case 32:
      return CopyPlain<32>(loops, source, target, threads);
    default:
      return CopyRows(run, loops, source, target, threads);
  }
}

Dims DenseStrides(absl::Span<const int64_t> dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

}  // namespace penstock
