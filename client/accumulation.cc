// SPDX-License-Identifier: Apache-2.0
#include "client/accumulation.h"

#include <limits>
#include <utility>

#include "client/ops/line_scope.h"

namespace penstock::client {
namespace {

// Returns the largest step number, because an accumulator drops gradients of older steps, but every
// mini-batch that is added here must count.
Output LargestStep(Program& program) {
  return Constant(program, Tensor::Scalar(std::numeric_limits<int64_t>::max()));
}

// Returns the attributes of an accumulator of sums. An accumulator of means would give wrong
// results: a sparse one divides each row only by the number of gradients that have the row.
Attrs SumOf(const Variable& variable) {
  return {{"dtype", variable.dtype()}, {"shape", variable.shape()}, {"reduction_type", "SUM"}};
}

Gradient Dense(const VariableGradient& g, Output newest_step, Output count, Outputs* added) {
  Program& program = g.variable.program();
  const Output sum =
      CallIn(program, "ResourceConditionalAccumulator", {}, SumOf(g.variable), "gradient_sum");
  added->push_back(Call("ResourceAccumulatorApplyGradient", {sum, newest_step, g.gradient.values}));
  return Call("ResourceAccumulatorTakeGradient", {sum, count}, {{"dtype", g.variable.dtype()}});
}

Gradient Sparse(const VariableGradient& g, Output newest_step, Output count, Outputs* added) {
  Program& program = g.variable.program();
  const Output sum =
      CallIn(program, "SparseConditionalAccumulator", {}, SumOf(g.variable), "gradient_sum");
  const Output shape = Cast(g.gradient.dense_shape, DType::kInt64);
  const Output indices = Cast(g.gradient.indices, DType::kInt64);
  added->push_back(Call("SparseAccumulatorApplyGradient",
                        {sum, newest_step, indices, g.gradient.values, shape},
                        {{"has_known_shape", true}}));
  const Outputs taken =
      CallN("SparseAccumulatorTakeGradient", {sum, count}, {{"dtype", g.variable.dtype()}});
  const DType index_type = g.gradient.indices.dtype();
  return {taken[1], Cast(taken[0], index_type), Cast(taken[2], g.gradient.dense_shape.dtype())};
}

}  // namespace

Accumulation AccumulateGradients(Program& program, const std::vector<VariableGradient>& gradients,
                                 int32_t count, SourceLine line) {
  const CallerLine source(program, line);
  if (count < 1) {
    program.Fail(InvalidArgument("gradients of ", count, " mini-batches are to be accumulated"));
  }
  Accumulation made;
  Outputs added;
  for (const VariableGradient& g : gradients) {
    if (g.gradient.none()) {
      made.gradients.push_back(g);
      continue;
    }
    const auto device_scope = program.ColocateWith(g.variable.handle());
    const Output newest_step = LargestStep(program);
    const Output required = Constant(program, Tensor::Scalar(count));
    Gradient mean = g.gradient.sparse() ? Sparse(g, newest_step, required, &added)
                                        : Dense(g, newest_step, required, &added);
    mean.values = mean.values / static_cast<double>(count);
    made.gradients.push_back({mean, g.variable});
  }
  made.accumulate = program.Group(added, "accumulate");
  return made;
}

}  // namespace penstock::client
