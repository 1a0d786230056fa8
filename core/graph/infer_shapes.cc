// SPDX-License-Identifier: Apache-2.0
#include "core/graph/infer_shapes.h"

#include <string>

#include "core/op/shape_scope.h"

namespace penstock {

namespace {

// Values are followed for shapes, so longer ones than any shape are of no use.
constexpr int64_t kFollowedElementsMax = kMaxRank;

// The integers as a tensor; invalid where one does not fit the type.
Tensor Integers(DType dtype, const Shape& shape, absl::Span<const int64_t> values) {
  Tensor result(dtype, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kInt64) {
      result.mutable_data<int64_t>()[i] = values[i];
    } else if (values[i] == static_cast<int32_t>(values[i])) {
      result.mutable_data<int32_t>()[i] = static_cast<int32_t>(values[i]);
    } else {
      return Tensor();
    }
  }
  return result;
}

Tensor ShapeAsTensor(const PartialShape& shape, DType dtype) {
  if (!shape.fully_known()) return Tensor();
  return Integers(dtype, {static_cast<int64_t>(shape.rank())}, shape.dims());
}

int64_t IntegerAt(const Tensor& t, int64_t i) {
  return t.dtype() == DType::kInt64 ? t.data<int64_t>()[i] : t.data<int32_t>()[i];
}

}  // namespace

bool ShapeInference::Ready(Endpoint source, const Node& dst) const {
  return source.node != nullptr && !IsLoopBackEdge(*source.node, dst) &&
         source.index < static_cast<int>(shapes_[source.node->id()].size());
}

const Tensor* ShapeInference::ConstantOf(Endpoint source) const {
  if (source.node->op_name() == "Const") return source.node->attr<Tensor>("value");
  const auto it = constants_.find(KeyOf(source));
  return it == constants_.end() ? nullptr : &it->second;
}

const ResourceHandle::Element* ShapeInference::ElementOf(Endpoint source) const {
  const auto it = elements_.find(KeyOf(source));
  return it == elements_.end() ? nullptr : &it->second;
}

// Follows the few ops that sizes are computed with.
void ShapeInference::Evaluate(const Node& node) {
  if (node.num_outputs() == 0) return;
  const DType dtype = node.output_type(0).dtype;
  if (dtype != DType::kInt32 && dtype != DType::kInt64) return;
  const std::string& op = node.op_name();
  for (const Endpoint& input : node.inputs()) {
    if (!Ready(input, node)) return;
  }
  const auto input_shape = [&](int i) -> const PartialShape& {
    return shapes_[node.input(i).node->id()][node.input(i).index];
  };
  const auto set = [&](int output, Tensor value) {
    if (value.valid()) constants_[{node.id(), output}] = std::move(value);
  };
  if (op == "Shape" || op == "ShapeN") {
    for (int i = 0; i < node.num_outputs(); ++i) set(i, ShapeAsTensor(input_shape(i), dtype));
  } else if (op == "Rank") {
    if (input_shape(0).known_rank()) set(0, Integers(dtype, {}, {input_shape(0).rank()}));
  } else if (op == "Size") {
    if (!input_shape(0).fully_known()) return;
    const StatusOr<int64_t> size = CheckedProduct(input_shape(0).dims());
    if (size.ok()) set(0, Integers(dtype, {}, {*size}));
  } else if (op == "Identity" || op == "StopGradient") {
    const Tensor* value = ConstantOf(node.input(0));
    if (value != nullptr && value->num_elements() <= kFollowedElementsMax) set(0, *value);
  } else if (op == "Pack") {
    std::vector<int64_t> values;
    for (const Endpoint& input : node.inputs()) {
      const Tensor* value = ConstantOf(input);
      if (value == nullptr || value->rank() != 0 || value->dtype() != dtype) return;
      values.push_back(IntegerAt(*value, 0));
    }
    if (values.size() > kFollowedElementsMax) return;
    set(0, Integers(dtype, {static_cast<int64_t>(values.size())}, values));
  }
}

Status ShapeInference::Infer(const Node& node) {
  shapes_[node.id()].resize(node.num_outputs());
  if (node.op().shape) RETURN_IF_ERROR(RunShapeFunction(node));
  Evaluate(node);
  return OkStatus();
}

Status ShapeInference::RunShapeFunction(const Node& node) {
  std::vector<ShapeScope::Input> inputs(node.num_inputs());
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Endpoint source = node.input(i);
    if (!Ready(source, node)) continue;
    inputs[i] = {.shape = shapes_[source.node->id()][source.index],
                 .constant = ConstantOf(source),
                 .element = ElementOf(source)};
  }
  ShapeScope scope(node.op(), node.attrs(), std::move(inputs), node.num_outputs());
  if (const Status status = node.op().shape(scope); !status.ok()) {
    return Annotate(status, StrCat("node '", node.name(), "'"));
  }
  shapes_[node.id()] = scope.outputs();
  const auto& elements = scope.output_elements();
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].dtype == DType::kInvalid) continue;
    elements_[{node.id(), static_cast<int>(i)}] = elements[i];
  }
  return OkStatus();
}

// Depth first with a stack of its own: graphs are deeper than threads' stacks.
Status ShapeInference::InferWithSources(const Node& node) {
  std::vector<std::pair<const Node*, int>> stack = {{&node, 0}};  // and its next input
  visited_[node.id()] = true;
  Status first_error;
  while (!stack.empty()) {
    auto& [top, next] = stack.back();
    if (next < top->num_inputs()) {
      const Node* source = top->input(next++).node;
      if (source == nullptr || visited_[source->id()] || IsLoopBackEdge(*source, *top)) continue;
      visited_[source->id()] = true;
      stack.push_back({source, 0});
      continue;
    }
    const Status status = Infer(*top);
    if (first_error.ok()) first_error = status;
    stack.pop_back();
  }
  return first_error;
}

Status ShapeInference::Update() {
  const int begin = num_seen();
  shapes_.resize(graph_.max_id());
  visited_.resize(graph_.max_id());
  Status first_error;
  for (int id = begin; id < graph_.max_id(); ++id) {
    const Node* node = graph_.node(id);
    if (node == nullptr || visited_[id]) continue;
    const Status status = InferWithSources(*node);
    if (first_error.ok()) first_error = status;
  }
  return first_error;
}

StatusOr<ShapeMap> InferShapes(const Graph& graph) {
  ShapeInference inference(graph);
  RETURN_IF_ERROR(inference.Update());
  return inference.TakeShapes();
}

}  // namespace penstock
