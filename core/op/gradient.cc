// SPDX-License-Identifier: Apache-2.0
#include "core/op/gradient.h"

#include <utility>

namespace penstock {
Output Dense(const Gradient& gradient) {
  if (!gradient.sparse()) return gradient.values;
  const Output zero = Constant(*gradient.values.sink, Tensor::Scalar<int32_t>(0));
  const Output rows = Gather(gradient.dense_shape, zero, zero);
  return Call("UnsortedSegmentSum", {gradient.values, gradient.indices, rows});
}

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
  return gradient.none() ? ZerosLike(outputs_[i]) : Dense(gradient);
}

std::vector<Gradient> NoGradient(const GradientScope& g) {
  return std::vector<Gradient>(g.num_inputs());
}

}  // namespace penstock
