// SPDX-License-Identifier: Apache-2.0
//
// DiagonalBand: neighbouring diagonals of matrices, what MatrixDiag, MatrixDiagPart and
// MatrixSetDiag move. Diagonal d starts in column d of the first row, or, if d is negative, in
// row -d of the first column. One diagonal is packed as a vector, several as the rows of a matrix,
// the uppermost first; in a row that is longer than its diagonal, the diagonal lies at the left or
// at the right end.
//
// The ops have three versions: the first knows the main diagonal only, the second any band, the
// third also at which end short diagonals lie.
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
  bool right_above = false, right_below = false;  // where short diagonals lie

  // From the input k: one number, or lower and upper.
  static StatusOr<DiagonalBand> Of(const Tensor& k);

  int64_t count() const { return upper - lower + 1; }
  // Returns the length of the longest diagonal; -1 if a size is.
  int64_t LongestIn(int64_t rows, int64_t cols) const;
  // InvalidArgument if the band leaves a matrix of these sizes, as far as they are known.
  Status CheckInside(int64_t rows, int64_t cols) const;
  // [..., rows, cols] -> [..., count, longest], or [..., longest] for one diagonal.
  StatusOr<PartialShape> Packed(const PartialShape& matrices) const;
};

// Between matrices of shape `shape`, of rank 2 or more, and the band packed.
enum class BandMove { kPack, kUnpack };
void MoveBand(const DiagonalBand& band, BandMove move, const Shape& shape, DType dtype,
              const void* from, void* to, Scheduler& threads);

class DiagonalKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override;

 protected:
  // Input k, or the main diagonal in the first version, which has no such input.
  StatusOr<DiagonalBand> BandOf(const KernelContext& ctx, int k) const;

 private:
  DiagonalBand align_;
};

// The padding's scalar, input i; zero in the first version, which has no such input.
StatusOr<Tensor> PaddingOf(const KernelContext& ctx, int i, DType dtype);

// The same for shape functions: empty if k is not known yet.
StatusOr<std::optional<DiagonalBand>> BandOf(const ShapeScope& s, int k);

// The attribute that the third version has.
std::vector<AttrDef> AlignAttr(int version);

// The ops on the same band as the differentiated node, whose input k it is.
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
