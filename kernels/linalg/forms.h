// SPDX-License-Identifier: Apache-2.0
//
// Shared by the definitions of the linear algebra ops: types, shape functions, and matrix algebra
// for gradients.
#pragma once

#include <vector>

#include "core/op/gradient.h"
#include "core/op/op_def.h"
#include "core/op/registry.h"

namespace penstock {

using Gradients = std::vector<Gradient>;

// The types that the decompositions support. The old BatchMatrix ops allow only the real types.
extern const DTypes kMatrixTypes;
extern const DTypes kRealMatrixTypes;
#define REAL_MATRIX_TYPES float, double
#define MATRIX_TYPES float, double, std::complex<float>, std::complex<double>

// Holds the shape of input `i`, of rank 2 or more, and the dimensions of its matrices (-1:
// unknown).
struct MatrixShape {
  PartialShape batch;  // its rank is unknown if the input's rank is unknown
  int64_t rows = -1, cols = -1;
  static StatusOr<MatrixShape> Of(const ShapeScope& s, int i);
  // Returns the batch dimensions followed by `dims`.
  PartialShape With(std::initializer_list<int64_t> dims) const;
  // Returns the side of a square matrix. InvalidArgument if the matrix is not square.
  StatusOr<int64_t> Side() const;
};
Status SquareShape(ShapeScope& s);  // output 0 has the shape of input 0: square matrices

// Returns the product a b; each matrix is first replaced by its adjoint if its flag is set. Batches
// broadcast.
Output Product(Output a, Output b, bool adjoint_a = false, bool adjoint_b = false);
Output Adjoint(Output x);
// Sets x to zero except on `below` diagonals below and `above` diagonals above the main diagonal;
// -1 means all diagonals.
Output Band(Output x, int64_t below, int64_t above);
Output DiagonalOf(Output x);
Output DiagonalMatrix(Output x);
Output WithDiagonal(Output x, Output diagonal);
// Returns the lower triangle of x, with its diagonal divided by two.
Output LowerHalf(Output x);
// Appends two dimensions of size one, so that numbers (one per matrix) broadcast over matrices.
Output PerMatrix(Output numbers);
// Returns 1 / x, or 0 if x is 0.
Output SafeReciprocal(Output x);
Output RowVectors(Output x);     // [..., n] -> [..., 1, n]
Output ColumnVectors(Output x);  // [..., n] -> [..., n, 1]

}  // namespace penstock
