// SPDX-License-Identifier: Apache-2.0
#include "core/graph/infer_shapes.h"

#include <string>

#include "core/base/error_origin.h"
#include "core/op/shape_scope.h"

namespace penstock {

namespace {

// Inference computes values only because they may become shapes, so it ignores values with more
// elements than a shape can have dimensions.
constexpr int64_t kTrackedElementsMax = kMaxRank;
// After this number of rounds without a fixed point, the shapes of loop-carried values count as
// unknown. Two rounds suffice for a loop, and one more for each loop around it.
constexpr int kRoundsMax = 8;

// Returns the integers as a tensor; an invalid tensor if a value does not fit the type.
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

bool ShapeInference::IsReady(Endpoint source, const Node& dst) const {
  return source.node != nullptr && !IsLoopBackEdge(*source.node, dst) &&
         source.index < static_cast<int>(shapes_[source.node->id()].size());
}

const Tensor* ShapeInference::ConstantOf(Endpoint source) const {
  if (source.node->op().is_constant) return source.node->attr<Tensor>("value");
  const auto it = constants_.find(KeyOf(source));
  return it == constants_.end() ? nullptr : &it->second;
}

const ResourceHandle::Element* ShapeInference::ElementOf(Endpoint source) const {
  const auto it = elements_.find(KeyOf(source));
  return it == elements_.end() ? nullptr : &it->second;
}

// Records the output values of a node, if they are known: those of ops with the trait shape_op, and
// of ops that pass an input through.
void ShapeInference::Evaluate(const Node& node) {
  if (node.num_outputs() == 0) return;
  const DType dtype = node.output_type(0).dtype;
  if (dtype != DType::kInt32 && dtype != DType::kInt64) return;
  for (const Endpoint& input : node.inputs()) {
    if (!IsReady(input, node)) return;
  }
  const auto input_shape = [&](int i) -> const PartialShape& {
    return shapes_[node.input(i).node->id()][node.input(i).index];
  };
  const auto set = [&](int output, Tensor value) {
    if (value.valid()) constants_[{node.id(), output}] = std::move(value);
  };
  switch (node.op().shape_op) {
    case ShapeOp::kShape:
      for (int i = 0; i < node.num_outputs(); ++i) set(i, ShapeAsTensor(input_shape(i), dtype));
      break;
    case ShapeOp::kRank:
      if (input_shape(0).known_rank()) set(0, Integers(dtype, {}, {input_shape(0).rank()}));
      break;
    case ShapeOp::kSize: {
      if (!input_shape(0).fully_known()) return;
      const StatusOr<int64_t> size = CheckedProduct(input_shape(0).dims());
      if (size.ok()) set(0, Integers(dtype, {}, {*size}));
      break;
    }
    case ShapeOp::kPack: {
      std::vector<int64_t> values;
      for (const Endpoint& input : node.inputs()) {
        const Tensor* value = ConstantOf(input);
        if (value == nullptr || value->rank() != 0 || value->dtype() != dtype) return;
        values.push_back(IntegerAt(*value, 0));
      }
      if (values.size() > kTrackedElementsMax) return;
      set(0, Integers(dtype, {static_cast<int64_t>(values.size())}, values));
      break;
    }
    case ShapeOp::kNone: {
      if (!node.op().passes_through) return;
      const Tensor* value = ConstantOf(node.input(0));
      if (value != nullptr && value->num_elements() <= kTrackedElementsMax) set(0, *value);
    }
  }
}

Status ShapeInference::Infer(const Node& node) {
  shapes_[node.id()].assign(node.num_outputs(), PartialShape());
  for (int i = 0; i < node.num_outputs(); ++i) {  // remove the results of the previous round
    constants_.erase({node.id(), i});
    elements_.erase({node.id(), i});
  }
  if (node.op().shape) RETURN_IF_ERROR(RunShapeFunction(node));
  const auto known = known_.find(node.id());
  if (known != known_.end() && node.num_outputs() > 0) shapes_[node.id()][0] = known->second;
  Evaluate(node);
  return OkStatus();
}

// Assumes that a loop-carried value has its shape of the previous round or, in the first round, the
// shape of the initial value.
Status ShapeInference::RunShapeFunction(const Node& node) {
  std::vector<ShapeScope::Input> inputs(node.num_inputs());
  const PartialShape* enters = nullptr;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Endpoint source = node.input(i);
    if (!IsReady(source, node)) continue;
    enters = &shapes_[source.node->id()][source.index];
    inputs[i] = {.shape = *enters, .constant = ConstantOf(source), .element = ElementOf(source)};
  }
  for (int i = 0; i < node.num_inputs() && enters != nullptr; ++i) {
    const Node* const source = node.input(i).node;
    if (source == nullptr || !IsLoopBackEdge(*source, node)) continue;
    const std::vector<PartialShape>& before = shapes_[source->id()];
    inputs[i].shape = before.empty() ? *enters : before[0];
  }
  ShapeScope scope(node.op(), node.attrs(), std::move(inputs), node.num_outputs());
  if (const Status status = node.op().shape(scope); !status.ok()) {
    return InNode(status, node.name());
  }
  shapes_[node.id()] = scope.outputs();
  const auto& elements = scope.output_elements();
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].dtype == DType::kInvalid) continue;
    elements_[{node.id(), static_cast<int>(i)}] = elements[i];
  }
  return OkStatus();
}

// Infers the sources of `node` that are not visited yet, then `node`. Visits depth first with an
// explicit stack, because graphs can be deeper than a thread's stack. Returns the first error.
Status ShapeInference::InferWithSources(const Node& node) {
  std::vector<std::pair<const Node*, int>> stack = {{&node, 0}};  // a node and its next input
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
  const auto infer_all = [&] {
    visited_.resize(begin);
    visited_.resize(graph_.max_id());
    Status first_error;
    for (int id = begin; id < graph_.max_id(); ++id) {
      const Node* node = graph_.node(id);
      if (node == nullptr || visited_[id]) continue;
      const Status status = InferWithSources(*node);
      if (first_error.ok()) first_error = status;
    }
    return first_error;
  };
  Status status = infer_all();

  // By NextIteration: the shape of the loop-carried value that the last round assumed.
  std::vector<std::pair<int, PartialShape>> carried;
  for (int id = begin; id < graph_.max_id(); ++id) {
    const Node* const merge = graph_.node(id);
    if (merge == nullptr || merge->num_inputs() < 2) continue;
    for (const Endpoint& input : merge->inputs()) {
      if (input.node == nullptr || !IsLoopBackEdge(*input.node, *merge)) continue;
      carried.emplace_back(input.node->id(), shapes_[merge->id()][0]);
    }
  }
  for (int round = 0; !carried.empty(); ++round) {
    bool is_fixed_point = status.ok();
    for (auto& [id, assumed] : carried) {
      is_fixed_point = is_fixed_point && shapes_[id][0] == assumed;
      assumed = shapes_[id][0];
    }
    if (is_fixed_point) break;
    // The shapes of this round are assumptions, so the error may come from shapes that never occur
    // when the step runs.
    const bool give_up = round == kRoundsMax || !status.ok();
    for (const auto& [id, assumed] : carried) {
      if (give_up) shapes_[id][0] = PartialShape();
    }
    status = infer_all();
    if (give_up) break;
  }
  return status;
}

StatusOr<ShapeMap> InferShapes(const Graph& graph) { return InferShapesWith(graph, {}); }

StatusOr<ShapeMap> InferShapesWith(const Graph& graph, KnownShapes known) {
  ShapeInference inference(graph, std::move(known));
  RETURN_IF_ERROR(inference.Update());
  return inference.TakeShapes();
}

}  // namespace penstock
