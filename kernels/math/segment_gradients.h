// SPDX-License-Identifier: Apache-2.0
//
// Gradients of products and extrema of segments, for sorted and unsorted ids. Callers pass
// functions: `sum` and `product` reduce a tensor by the segment ids of the node; `rows` maps a
// tensor with one row for each segment to a tensor with one row for each row of the data.
#pragma once

#include "core/op/gradient.h"
#include "kernels/math/forms.h"

namespace penstock {

// Splits the gradient equally among the elements that equal the extremum.
template <class Fold, class Rows>
Output SegmentExtremumGradient(const GradientScope& g, Fold sum, Rows rows) {
  const Output selected = Cast(Equal(g.x(), rows(g.y())), g.dtype());
  return selected * rows(g.dy() / Maximum(sum(selected), OnesLike(g.y())));
}

// Returns the gradient of products of segments: dy times y / x. If x is zero, y / x stands for the
// product of the other elements of the segment, which is zero if another of them is zero.
template <class Product, class Sum, class Rows>
Output SegmentProductGradient(const GradientScope& g, Product product, Sum sum, Rows rows) {
  const Output x = g.x(), is_zero = Equal(x, ZerosLike(x));
  const Output zeros = rows(sum(Cast(is_zero, DType::kInt32)));
  const Output others = Select(is_zero, OnesLike(x), x);
  const Output partial = Select(is_zero, rows(product(others)), rows(g.y()) / others);
  const Output dx = rows(g.dy()) * partial;
  return Select(Greater(zeros, OnesLike(zeros)), ZerosLike(dx), dx);
}

}  // namespace penstock
