// SPDX-License-Identifier: Apache-2.0
#include "client/optimizers/shaping.h"

#include "client/ops/line_scope.h"
#include "client/optimizer.h"

namespace penstock::client {
namespace {

Output SumOfAll(Output x) {
  const Output flat = Reshape(x, Constant(*x.sink, Tensor::Vector<int32_t>({-1})));
  return Sum(flat, Constant(*x.sink, Tensor::Scalar<int32_t>(0)));
}

// Applies `change` to every gradient's values, on the device of the values, after repeated rows of
// sparse gradients have been summed. Sets the program's error if `bound` is not greater than 0.
template <class Change>
std::vector<VariableGradient> TransformValues(Program& program, const char* name, double bound,
                                              const std::vector<VariableGradient>& gradients,
                                              const Change& change) {
  if (!(bound > 0)) program.Fail(InvalidArgument(name, ": ", bound, ", expected more than 0"));
  const auto scope = program.NameScope(name);
  std::vector<VariableGradient> transformed = gradients;
  for (VariableGradient& g : transformed) {
    if (g.gradient.none()) continue;
    const auto device_scope = program.ColocateWith(g.gradient.values);
    if (g.gradient.sparse()) g.gradient = DistinctRows(program, g.gradient);
    g.gradient.values = change(g.gradient.values);
  }
  return transformed;
}

template <class Element>
Output Penalty(const LocatedOutputs& located, const char* name, double scale,
               const Element& element) {
  const Outputs& tensors = located.outputs();
  const CallerLine source(tensors[0], located.line());
  Outputs sums;
  for (const Output& x : tensors) sums.push_back(SumOfAll(element(x)));
  return Call("Mul", {AddN(sums), ConstantLike(tensors[0], scale)}, {}, name);
}

}  // namespace

std::vector<VariableGradient> ClipByNorm(Program& program,
                                         const std::vector<VariableGradient>& gradients,
                                         double norm, SourceLine line) {
  const CallerLine source(program, line);
  return TransformValues(program, "clip_by_norm", norm, gradients, [&](Output values) {
    const Output limit = ConstantLike(values, norm);
    return values * (limit / Maximum(Sqrt(SumOfAll(Square(values))), limit));
  });
}

std::vector<VariableGradient> ClipByValue(Program& program,
                                          const std::vector<VariableGradient>& gradients,
                                          double limit, SourceLine line) {
  const CallerLine source(program, line);
  return TransformValues(program, "clip_by_value", limit, gradients, [&](Output values) {
    return Call("ClipByValue", {values, ConstantLike(values, -limit), ConstantLike(values, limit)});
  });
}

Output L1Penalty(const LocatedOutputs& tensors, double scale) {
  return Penalty(tensors, "l1_penalty", scale, [](Output x) { return Abs(x); });
}

Output L2Penalty(const LocatedOutputs& tensors, double scale) {
  return Penalty(tensors, "l2_penalty", scale / 2, [](Output x) { return Square(x); });
}

}  // namespace penstock::client
