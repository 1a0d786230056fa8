// SPDX-License-Identifier: Apache-2.0
//
// Gradients of products and extrema of segments, for sorted and unsorted ids alike: `fold` folds a
// tensor under the ids of the node, `rows` gives each row of the data what stands for its segment.
#pragma once

#include "core/op/gradient.h"
#include "kernels/math/forms.h"

namespace penstock {

// The gradient goes to the elements that equal the extremum, in equal parts.
template <class Fold, class Rows>
Output SegmentExtremumGradient(const GradientScope& g, Fold sum, Rows rows) {
  const Output selected = Cast(Equal(g.x(), rows(g.y())), g.dtype());
  return selected * rows(g.dy() / Maximum(sum(selected), OnesLike(g.y())));
}

// y / x, but where x is zero the product of the others; nothing where two are zero.
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
