// SPDX-License-Identifier: Apache-2.0
#include "client/gradients.h"

#include "client/ops/line_scope.h"
#include "client/program.h"
#include "core/gradients/gradients.h"

namespace penstock::client {
namespace {

Output SumOfSquares(Output x) {
  const Output flat = Reshape(x, Constant(*x.sink, Tensor::Vector<int32_t>({-1})));
  return Sum(Square(flat), Constant(*x.sink, Tensor::Scalar<int32_t>(0)));
}

}  // namespace

std::vector<Gradient> Gradients(GraphBuilder& graph, const Outputs& ys, const Outputs& xs,
                                const Outputs& dys, SourceLine line) {
  const CallerLine source(graph, line);
  StatusOr<std::vector<Gradient>> gradients = AddGradients(graph, ys, xs, dys);
  if (gradients.ok()) return *std::move(gradients);
  graph.Fail(gradients.status());
  return std::vector<Gradient>(xs.size());
}

ClippedGradients ClipByGlobalNorm(const std::vector<VariableGradient>& gradients, double norm,
                                  SourceLine line) {
  ClippedGradients clipped{.gradients = gradients};
  if (gradients.empty()) return clipped;
  const CallerLine source(gradients[0].variable.program(), line);
  Outputs squares;
  for (const VariableGradient& g : gradients) {
    // Each sum is computed on the device of its gradient; only scalars are sent to other devices.
    if (g.gradient.none()) continue;
    const auto device_scope = g.variable.program().ColocateWith(g.gradient.values);
    squares.push_back(SumOfSquares(g.gradient.values));
  }
  if (squares.empty()) return clipped;
  clipped.global_norm = Sqrt(AddN(squares));
  const Output limit = ConstantLike(clipped.global_norm, norm);
  // The scale is 1 if the norm is at most `limit`. The difference (norm - norm) is 0, or NaN if the
  // norm is not finite: exploded gradients become NaN instead of small numbers.
  const Output scale =
      limit / Maximum(clipped.global_norm, limit) + (clipped.global_norm - clipped.global_norm);
  for (VariableGradient& g : clipped.gradients) {
    if (g.gradient.none()) continue;
    const auto device_scope = g.variable.program().ColocateWith(g.gradient.values);
    g.gradient.values = g.gradient.values * scale;
  }
  return clipped;
}

}  // namespace penstock::client
