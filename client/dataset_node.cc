// SPDX-License-Identifier: Apache-2.0
#include "client/dataset_node.h"

#include <optional>
#include <utility>

namespace penstock::client {

void DatasetNode::AtLeast(const char* name, int64_t value, int64_t min) {
  if (value < min) Fail(name, " must be at least ", min, ", is ", value);
}

Output DatasetNode::Value(Tensor value) {
  const auto line = graph_.SourceLineScope(line_);
  return Constant(graph_, std::move(value));
}

GraphFunction DatasetNode::Function(const TensorSpecs& elements, const GraphFunction::Body& body,
                                    bool parallel) {
  // Even if the function is called in parallel, only one thread at a time reads the input. So
  // random ops of the input stay repeatable, but random ops of datasets that `body` makes do not.
  std::string of_input = std::exchange(random_, "");
  GraphFunction function = GraphFunction::Build(graph_, "function", elements, body, line_);
  if (!function.unseeded.empty()) NotRepeatable(StrCat(function.unseeded, " has no seed"));
  if (!function.random.empty()) random_ = function.random;
  if (parallel && !random_.empty()) {
    NotRepeatable(StrCat(random_, " is in a function that is called in parallel"));
  }
  if (random_.empty()) random_ = std::move(of_input);
  return function;
}

void DatasetNode::InheritRepeatable(const Dataset& input) {
  if (repeatable_.ok()) repeatable_ = input.repeatable_;
  if (random_.empty()) random_ = input.random_;
}

void DatasetNode::NotRepeatable(const std::string& why) {
  if (repeatable_.ok()) repeatable_ = InvalidArgument(why);
}

Attrs DatasetNode::Spec(const TensorSpecs& elements, Attrs more) {
  more["output_types"] = elements.types;
  more["output_shapes"] = elements.shapes;
  return more;
}

Dataset DatasetNode::Make(string_view op, const std::vector<NodeInput>& inputs, Attrs attrs,
                          TensorSpecs elements) {
  std::optional<GraphBuilder::Scope> beside;
  if (input_.valid()) {
    if (!Exists(graph_, input_)) Fail(kNotInGraphText);
    beside.emplace(graph_.ColocateWith(input_));
  }
  const auto line = graph_.SourceLineScope(line_);
  Dataset made(graph_, CallIn(graph_, op, inputs, std::move(attrs)), std::move(elements));
  made.repeatable_ = repeatable_;
  made.random_ = random_;
  return made;
}

Dataset DatasetNode::MakeLike(const Dataset& input, string_view op, std::vector<NodeInput> more,
                              Attrs attrs) {
  more.insert(more.begin(), input.variant());
  return Make(op, more, Spec(input.elements(), std::move(attrs)), input.elements());
}

}  // namespace penstock::client
