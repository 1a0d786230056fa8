// SPDX-License-Identifier: Apache-2.0
#include "core/op/gradient.h"

#include <utility>

namespace penstock {
namespace {

// Rows that are named twice add up.
Output Densify(GraphSink& sink, const Gradient& sparse) {
  const Output rows = Gather(sparse.dense_shape, Constant(sink, Tensor::Scalar<int32_t>(0)),
                             Constant(sink, Tensor::Scalar<int32_t>(0)));
  return Call("UnsortedSegmentSum", {sparse.values, sparse.indices, rows});
}

}  // namespace

GradientScope::GradientScope(GraphSink& sink, const OpDef& op, const Attrs& attrs,
                             std::string node_name, Outputs inputs, Outputs outputs,
                             std::vector<Gradient> output_gradients)
    : sink_(sink),
      op_(op),
      attrs_(attrs),
      node_name_(std::move(node_name)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      output_gradients_(std::move(output_gradients)) {
  CHECK(outputs_.size() == output_gradients_.size(), op_.name, " '", node_name_, "' has ",
        outputs_.size(), " outputs and ", output_gradients_.size(), " gradients of them");
}

Output GradientScope::dy(int i) const {
  const Gradient& gradient = output_gradients_[i];
  if (gradient.none()) return ZerosLike(outputs_[i]);
  return gradient.sparse() ? Densify(sink_, gradient) : gradient.values;
}

std::vector<Gradient> NoGradient(const GradientScope& g) {
  return std::vector<Gradient>(g.num_inputs());
}

}  // namespace penstock
