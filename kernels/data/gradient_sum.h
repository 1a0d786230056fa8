// SPDX-License-Identifier: Apache-2.0
//
// GradientSum: gradients of one variable added up, in the order in which they come.
//
// Not thread-safe. InvalidArgument if a gradient's shape does not fit, before anything changes.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// A whole one, or some rows of one.
struct SummedGradient {
  Tensor values;
  Tensor indices = {};  // int64; of the rows that `values` holds. Invalid: all of them
  Tensor shape = {};    // int64; of the whole, if there are indices
};

class GradientSum {
 public:
  virtual ~GradientSum() = default;
  virtual Status Add(SummedGradient gradient) = 0;
  // The sum, or the mean. REQUIRES that something was added; nothing more is.
  virtual StatusOr<SummedGradient> Finish(bool mean) = 0;
};

// Makes a sum of gradients that are given whole.
std::unique_ptr<GradientSum> NewDenseSum(const PartialShape& shape);
// Makes a sum of gradients given by rows, which may come in any order and repeatedly. Each row's
// mean is that over the gradients that had it. Rows come out in the order of their indices.
std::unique_ptr<GradientSum> NewSparseSum(const PartialShape& shape);

}  // namespace penstock
