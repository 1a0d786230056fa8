// SPDX-License-Identifier: Apache-2.0
//
// DiagonalBand: neighbouring diagonals of matrices, which MatrixDiag, MatrixDiagPart and
// MatrixSetDiag read or write. Diagonal d starts in column d of the first row if d >= 0, else in
// row -d of the first column. One diagonal is packed as a vector. Several diagonals are packed as
// the rows of a matrix, the uppermost first. If such a row is longer than its diagonal, the
// diagonal is aligned to its left or its right end.
//
// The ops have three versions. The first handles only the main diagonal, the second any band; the
// third also takes an attribute that says how short diagonals are aligned.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"

namespace penstock {

struct DiagonalBand {
  int64_t lower = 0, upper = 0;
  // True if diagonals that are shorter than the longest one are aligned right: right_above for
  // diagonals above the main diagonal, right_below for diagonals below it.
  bool right_above = false, right_below = false;

  // Reads the input k: one diagonal, or the lower and the upper one. InvalidArgument if k has
  // another form, or if the lower one is above the upper one.
  static StatusOr<DiagonalBand> Of(const Tensor& k);

  int64_t count() const { return upper - lower + 1; }
  // Returns the length of the longest diagonal, or -1 if `rows` or `cols` is -1 (unknown).
  int64_t LongestIn(int64_t rows, int64_t cols) const;
  // InvalidArgument if a diagonal lies outside a matrix of this size. Unknown sizes (-1) are not
  // checked.
  Status CheckInside(int64_t rows, int64_t cols) const;
  // Returns the shape of the packed diagonals: [..., count, longest], or [..., longest] for one
  // diagonal. Errors as in CheckInside. REQUIRES: a known rank.
  StatusOr<PartialShape> Packed(const PartialShape& matrices) const;
};

enum class BandMove { kPack, kUnpack };
// Copies the band of matrices of shape `shape` (rank >= 2) to its packed form, or back. Leaves all
// other elements of the destination as they are: the padding of the packed form, or the elements
// outside of the band.
void MoveBand(const DiagonalBand& band, BandMove move, const Shape& shape, DType dtype,
              const void* from, void* to, Scheduler& threads);

class DiagonalKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override;

 protected:
  // Reads the band from input k. Ops of the first version have no such input: returns the main
  // diagonal.
  StatusOr<DiagonalBand> BandOf(const KernelContext& ctx, int k) const;

 private:
  DiagonalBand align_;
};

// Returns the padding value, input i. InvalidArgument unless it is a scalar. Ops of the first
// version have no such input: returns zero.
StatusOr<Tensor> PaddingOf(const KernelContext& ctx, int i, DType dtype);

// Like DiagonalKernel::BandOf, for shape functions, but does not set the alignment. Returns nullopt
// if input k is not constant.
StatusOr<std::optional<DiagonalBand>> BandOf(const ShapeScope& s, int k);

// Returns the attribute "align" for version 3, none for other versions.
std::vector<AttrDef> AlignAttr(int version);

// For gradients: adds nodes MatrixDiagPart (Part) and MatrixSetDiag (Set) whose band is input k of
// the differentiated node.
struct BandCalls {
  const GradientScope& g;
  int version, k;

  Output Part(Output matrices) const;
  Output Set(Output matrices, Output diagonals) const;

 private:
  Output CallOp(const char* op, std::vector<NodeInput> inputs) const;
};

// Returns the sum of all elements of `x`.
Output Total(Output x);

}  // namespace penstock
