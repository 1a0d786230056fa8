// SPDX-License-Identifier: Apache-2.0
//
// GradientSum: adds up gradients of one variable in the order in which they arrive.
//
// Not thread-safe. InvalidArgument if a gradient's shape does not fit; the sum is then unchanged.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// A full gradient, or some of its rows.
struct SummedGradient {
  Tensor values;
  Tensor indices = {};  // int64; rows that `values` holds. Invalid: all rows
  Tensor shape = {};    // int64; shape of the full gradient, if there are indices
};

class GradientSum {
 public:
  virtual ~GradientSum() = default;
  virtual Status Add(SummedGradient gradient) = 0;
  // Returns the sum, or the mean. REQUIRES: a gradient was added. No gradient may be added
  // afterwards.
  virtual StatusOr<SummedGradient> Finish(bool mean) = 0;
};

// Returns a sum of full gradients.
std::unique_ptr<GradientSum> NewDenseSum(const PartialShape& shape);
// Returns a sum of gradients given as rows; a gradient's rows may be in any order and repeat. The
// mean of a row is taken over the gradients that contain it. The result's rows are ascending.
std::unique_ptr<GradientSum> NewSparseSum(const PartialShape& shape);

}  // namespace penstock
