// SPDX-License-Identifier: Apache-2.0
#include "core/graph/gradients.h"

#include <deque>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/base/check.h"

namespace penstock {

namespace {

// Through what a gradient may flow. A resource stands for the value that it holds.
bool CarriesGradient(DType dtype) {
  return IsFloating(dtype) || IsComplex(dtype) || dtype == DType::kResource;
}

// One backward walk. A node's gradient function is called once all of its consumers on paths
// between xs and ys have said what they contribute.
class BackwardWalk {
 public:
  BackwardWalk(GraphBuilder& builder, const Outputs& ys, const Outputs& xs)
      : builder_(builder), ys_(ys), xs_(xs) {}

  StatusOr<std::vector<Gradient>> Run(const Outputs& dys);

 private:
  using Key = std::pair<int, int>;  // node, output

  Status CheckArguments(const Outputs& dys) const;
  void MarkForward();
  Status MarkBackward();
  Status Seed(const Outputs& dys);
  Status Process(const Node& node);
  StatusOr<std::vector<Gradient>> InputGradients(const Node& node, std::vector<Gradient> dys);
  Status CheckShape(const Node& node, int input, const Gradient& gradient) const;
  void Finish(const Node& node);  // its consumers have contributed: sums what they said
  bool FlowsInto(const Node& node, int input) const;

  GraphBuilder& builder_;
  const Outputs& ys_;
  const Outputs& xs_;
  std::vector<bool> below_xs_;  // by node id: depends on an x
  std::vector<bool> between_;   // and a y depends on it
  std::vector<int> pending_;    // consumers in between_ that have not contributed yet
  std::deque<const Node*> ready_;
  absl::flat_hash_map<Key, std::vector<Gradient>> parts_;
  absl::flat_hash_map<Key, Gradient> sums_;
};

Status BackwardWalk::CheckArguments(const Outputs& dys) const {
  if (!dys.empty() && dys.size() != ys_.size()) {
    return InvalidArgument("gradients: ", ys_.size(), " ys but ", dys.size(), " dys");
  }
  for (const Outputs* list : {&ys_, &xs_, &dys}) {
    for (const Output& output : *list) {
      if (list == &dys && !output.valid()) continue;
      if (!output.valid()) return InvalidArgument("gradients: not a tensor");
      if (output.sink != &builder_) return InvalidArgument("gradients: tensor of another graph");
    }
  }
  for (size_t i = 0; i < ys_.size(); ++i) {
    if (!CarriesGradient(ys_[i].dtype()) || ys_[i].dtype() == DType::kResource) {
      return InvalidArgument("gradients: y '", ys_[i].name(), "' is ", Name(ys_[i].dtype()),
                             ", must be of a floating point or complex type");
    }
    if (i < dys.size() && dys[i].valid() && dys[i].dtype() != ys_[i].dtype()) {
      return InvalidArgument("gradients: dy '", dys[i].name(), "' is ", Name(dys[i].dtype()),
                             ", y '", ys_[i].name(), "' is ", Name(ys_[i].dtype()));
    }
  }
  return OkStatus();
}

bool BackwardWalk::FlowsInto(const Node& node, int input) const {
  const Endpoint source = node.input(input);
  return source.node != nullptr && between_[source.node->id()] &&
         CarriesGradient(source.node->output_type(source.index).dtype);
}

void BackwardWalk::MarkForward() {
  std::vector<const Node*> queue;
  const auto reach = [&](const Node* node) {
    if (below_xs_[node->id()]) return;
    below_xs_[node->id()] = true;
    queue.push_back(node);
  };
  for (const Output& x : xs_) reach(builder_.NodeOf(x));
  while (!queue.empty()) {
    const Node* node = queue.back();
    queue.pop_back();
    for (const OutEdge& edge : node->out_edges()) {
      if (CarriesGradient(node->output_type(edge.src_index).dtype)) reach(edge.dst);
    }
  }
}

Status BackwardWalk::MarkBackward() {
  std::vector<const Node*> queue;
  const auto reach = [&](const Node* node) {
    if (!below_xs_[node->id()] || between_[node->id()]) return;
    between_[node->id()] = true;
    queue.push_back(node);
  };
  for (const Output& y : ys_) reach(builder_.NodeOf(y));
  while (!queue.empty()) {
    const Node* node = queue.back();
    queue.pop_back();
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Endpoint source = node->input(i);
      if (source.node == nullptr) continue;
      if (IsLoopBackEdge(*source.node, *node)) {
        return Unimplemented("gradients: '", node->name(), "' closes a loop; gradients through ",
                             "loops are not supported");
      }
      if (!CarriesGradient(source.node->output_type(source.index).dtype)) continue;
      reach(source.node);
      ++pending_[source.node->id()];
    }
  }
  return OkStatus();
}

Status BackwardWalk::Seed(const Outputs& dys) {
  for (size_t i = 0; i < ys_.size(); ++i) {
    const Output dy = i < dys.size() && dys[i].valid() ? dys[i] : OnesLike(ys_[i]);
    parts_[{ys_[i].node, ys_[i].index}].push_back(dy);
  }
  for (const Output& y : ys_) {
    const Node* node = builder_.NodeOf(y);
    // pending_ of a queued node is set below zero so that a second y of it does not queue it again.
    if (between_[y.node] && pending_[y.node] == 0) {
      pending_[y.node] = -1;
      ready_.push_back(node);
    }
  }
  return builder_.status();
}

void BackwardWalk::Finish(const Node& node) {
  for (int i = 0; i < node.num_outputs(); ++i) {
    const auto it = parts_.find(Key{node.id(), i});
    if (it == parts_.end()) continue;
    sums_[it->first] = SumGradients(it->second);
    parts_.erase(it);
  }
}

StatusOr<std::vector<Gradient>> BackwardWalk::InputGradients(const Node& node,
                                                             std::vector<Gradient> dys) {
  if (!node.op().gradient) {
    return Unimplemented("gradients: node '", node.name(), "': op ", node.op_name(),
                         " has no gradient");
  }
  Outputs inputs, outputs;
  for (const Endpoint& input : node.inputs()) {
    inputs.push_back(builder_.OutputOf(input.node, input.index));
  }
  for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(builder_.OutputOf(&node, i));
  const auto scope = builder_.NameScope(StrCat(node.name(), "_grad"));
  std::vector<Gradient> result = node.op().gradient(
      GradientScope(builder_, node.op(), node.attrs(), node.name(), inputs, outputs, dys));
  RETURN_IF_ERROR(Annotate(builder_.status(), StrCat("gradient of node '", node.name(), "'")));
  if (static_cast<int>(result.size()) != node.num_inputs()) {
    return Internal("gradient of op ", node.op_name(), " gave ", result.size(), " values for ",
                    node.num_inputs(), " inputs");
  }
  return result;
}

Status BackwardWalk::CheckShape(const Node& node, int input, const Gradient& gradient) const {
  const Endpoint source = node.input(input);
  if (gradient.sparse() || node.input_type(input).dtype == DType::kResource) return OkStatus();
  const PartialShape wanted = builder_.output_shape(source.node->id(), source.index);
  const PartialShape found = gradient.values.shape();
  if (found.Compatible(wanted)) return OkStatus();
  return Internal("gradient of node '", node.name(), "' (op ", node.op_name(), ") for input ",
                  input, " has shape ", found.ToString(), ", the input has ", wanted.ToString());
}

Status BackwardWalk::Process(const Node& node) {
  Finish(node);
  std::vector<Gradient> dys(node.num_outputs());
  bool any = false;
  for (int i = 0; i < node.num_outputs(); ++i) {
    const auto it = sums_.find(Key{node.id(), i});
    if (it == sums_.end()) continue;
    dys[i] = it->second;
    any = true;
  }
  bool wanted = false;
  for (int i = 0; i < node.num_inputs(); ++i) wanted |= FlowsInto(node, i);
  std::vector<Gradient> dxs(node.num_inputs());
  if (any && wanted) {
    ASSIGN_OR_RETURN(dxs, InputGradients(node, std::move(dys)));
  }
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!FlowsInto(node, i)) continue;
    const Node* source = node.input(i).node;
    if (!dxs[i].none()) {
      RETURN_IF_ERROR(CheckShape(node, i, dxs[i]));
      parts_[{source->id(), node.input(i).index}].push_back(dxs[i]);
    }
    if (--pending_[source->id()] == 0) ready_.push_back(source);
  }
  return OkStatus();
}

StatusOr<std::vector<Gradient>> BackwardWalk::Run(const Outputs& dys) {
  RETURN_IF_ERROR(builder_.status());
  RETURN_IF_ERROR(CheckArguments(dys));
  const int num_nodes = builder_.graph().max_id();
  below_xs_.resize(num_nodes);
  between_.resize(num_nodes);
  pending_.resize(num_nodes);
  MarkForward();
  RETURN_IF_ERROR(MarkBackward());

  const auto scope = builder_.NameScope("gradients");
  RETURN_IF_ERROR(Seed(dys));
  while (!ready_.empty()) {
    const Node* node = ready_.front();
    ready_.pop_front();
    RETURN_IF_ERROR(Process(*node));
  }
  RETURN_IF_ERROR(builder_.status());

  std::vector<Gradient> result;
  for (const Output& x : xs_) {
    const auto it = sums_.find(Key{x.node, x.index});
    result.push_back(it == sums_.end() ? Gradient() : it->second);
  }
  return result;
}

}  // namespace

StatusOr<std::vector<Gradient>> AddGradients(GraphBuilder& builder, const Outputs& ys,
                                             const Outputs& xs, const Outputs& dys) {
  return BackwardWalk(builder, ys, xs).Run(dys);
}

Gradient SumGradients(const std::vector<Gradient>& parts) {
  if (parts.size() == 1) return parts[0];
  bool all_sparse = true;
  for (const Gradient& part : parts) all_sparse &= part.sparse();
  Outputs values, indices;
  for (const Gradient& part : parts) {
    values.push_back(all_sparse ? part.values : Dense(part));
    if (all_sparse) indices.push_back(part.indices);
  }
  if (!all_sparse) return AddN(values);
  const Output axis = Constant(*values[0].sink, Tensor::Scalar<int32_t>(0));
  return Gradient(ConcatV2(values, axis), ConcatV2(indices, axis), parts[0].dense_shape);
}

}  // namespace penstock
