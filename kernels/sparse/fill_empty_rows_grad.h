// SPDX-License-Identifier: Apache-2.0
//
// The gradient of the ops that give empty rows a default value, for sparse and ragged tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "core/op/kernel.h"
#include "core/op/op_def.h"
#include "core/op/shape_scope.h"
#include "kernels/engine/functor.h"
#include "kernels/math/add.h"

namespace penstock {

// Inputs: reverse_index_map, the new index of each value; grad_values, the gradients of the new
// values. Outputs: the gradients of the values; the sum of the other gradients, for the default
// value.
template <class T>
class FillEmptyRowsGradKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &where = ctx.input(0), &grads = ctx.input(1);
    if (where.rank() != 1 || grads.rank() != 1) {
      return InvalidArgument("reverse_index_map and grad_values must be vectors: shapes ",
                             where.shape().ToString(), " and ", grads.shape().ToString());
    }
    const int64_t n = grads.dim(0);
    for (const int64_t at : where.flat<int64_t>()) {
      if (at < 0 || at >= n) {
        return InvalidArgument("Elements in reverse index must be in [0, ", n, ") but got ", at);
      }
    }
    Tensor *values, *filler;
    RETURN_IF_ERROR(ctx.Allocate(0, where.shape(), &values));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape(), &filler));
    std::vector<bool> taken(n);
    for (int64_t i = 0; i < where.dim(0); ++i) {
      const int64_t at = where.data<int64_t>()[i];
      values->mutable_data<T>()[i] = grads.data<T>()[at];
      taken[at] = true;
    }
    using L = LoopType<T>;
    L sum(0);
    for (int64_t at = 0; at < n; ++at) {
      if (!taken[at]) sum = AddFn()(sum, static_cast<L>(grads.data<T>()[at]));
    }
    filler->mutable_data<T>()[0] = static_cast<T>(sum);
    return OkStatus();
  }
};

inline Status FillEmptyRowsGradShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape where, s.WithRank(0, 1));
  s.set_output(0, where.known_rank() ? where : PartialShape{-1});
  s.set_output(1, PartialShape::Scalar());
  return OkStatus();
}

// Returns the definition of such an op.
inline OpDef FillEmptyRowsGradOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"reverse_index_map", "int64"}, {"grad_values", "T"}},
      .outputs = {{"d_values", "T"}, {"d_default_value", "T"}},
      .types = {{"T", kNumber}},
      .shape = FillEmptyRowsGradShape,
      .examples = {{.inputs = {{{{2}, {0, 2}}}, {{{4}}}}}},
  };
}

}  // namespace penstock
