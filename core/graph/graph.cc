// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/error_origin.h"

namespace penstock {

namespace {

// Returns "input 1 ('b')": the number of the input, and the name of the declared argument to which
// it belongs, if there is one.
std::string DescribeInput(const Node& node, int index) {
  int end = 0;
  for (const ArgDef& arg : node.op().inputs) {
    std::vector<EdgeType> types;
    if (!AppendArgTypes(arg, node.attrs(), &types).ok()) break;
    end += static_cast<int>(types.size());
    if (index < end) return StrCat("input ", index, " ('", arg.name, "')");
  }
  return StrCat("input ", index);
}

template <class T>
void ReplaceByLast(std::vector<T>& items, int slot) {
  items[slot] = items.back();
  items.pop_back();
}

}  // namespace

const AttrValue* Node::FindAttr(string_view name) const {
  const auto it = attrs_.find(name);
  return it == attrs_.end() ? nullptr : &it->second;
}

Graph Graph::Clone() const {
  Graph copy(*registry_);
  copy.nodes_.resize(nodes_.size());
  for (const auto& node : nodes_) {
    if (node != nullptr) copy.nodes_[node->id_] = std::make_unique<Node>(*node);
  }
  const auto twin = [&copy](Node* node) {
    return node == nullptr ? nullptr : copy.nodes_[node->id_].get();
  };
  copy.by_name_.reserve(by_name_.size());
  for (const auto& node : copy.nodes_) {
    if (node == nullptr) continue;
    for (Endpoint& input : node->inputs_) input.node = twin(input.node);
    for (OutEdge& edge : node->out_edges_) edge.dst = twin(edge.dst);
    for (Node*& other : node->control_inputs_) other = twin(other);
    for (Node*& other : node->control_outputs_) other = twin(other);
    copy.by_name_.emplace(node->name_, node.get());
  }
  copy.control_edges_ = control_edges_;
  copy.suffixes_ = suffixes_;
  copy.num_nodes_ = num_nodes_;
  return copy;
}

Node* Graph::FindNode(string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

std::vector<Node*> Graph::nodes() const {
  std::vector<Node*> live;
  live.reserve(num_nodes_);
  for (const auto& node : nodes_) {
    if (node != nullptr) live.push_back(node.get());
  }
  return live;
}

StatusOr<Node*> Graph::AddNode(NodeSpec spec) {
  if (!IsValidNodeName(spec.name)) {
    return InvalidArgument("'", spec.name, "' is not a valid node name (op ", spec.op, ")");
  }
  const auto at_node = [&spec](const Status& status) { return InNode(status, spec.name); };
  if (FindNode(spec.name) != nullptr) {
    return at_node(InvalidArgument("the graph already has a node of this name"));
  }
  const OpDef* op = registry_->FindOp(spec.op);
  if (op == nullptr) return at_node(registry_->GetOp(spec.op).status());
  RETURN_IF_ERROR(at_node(CompleteAttrs(*op, &spec.attrs)));

  auto node = std::make_unique<Node>();
  for (const ArgDef& arg : op->inputs) {
    RETURN_IF_ERROR(at_node(AppendArgTypes(arg, spec.attrs, &node->input_types_)));
  }
  for (const ArgDef& arg : op->outputs) {
    RETURN_IF_ERROR(at_node(AppendArgTypes(arg, spec.attrs, &node->output_types_)));
  }
  if (spec.inputs.size() != node->input_types_.size()) {
    return at_node(InvalidArgument("op ", spec.op, " takes ", node->input_types_.size(),
                                   " inputs here, ", spec.inputs.size(), " given"));
  }
  node->id_ = max_id();
  node->name_ = std::move(spec.name);
  node->op_ = op;
  node->attrs_ = std::move(spec.attrs);
  node->attrs_checked_ = true;
  node->requested_device_ = std::move(spec.device);
  for (int i = 0; i < static_cast<int>(spec.inputs.size()); ++i) {
    RETURN_IF_ERROR(CheckInput(*node, i, spec.inputs[i]));
  }

  Node* added = node.get();
  nodes_.push_back(std::move(node));
  by_name_.emplace(added->name_, added);
  ++num_nodes_;
  added->inputs_.resize(spec.inputs.size());
  added->out_slots_.resize(spec.inputs.size());
  for (int i = 0; i < static_cast<int>(spec.inputs.size()); ++i) Connect(added, i, spec.inputs[i]);
  for (Node* before : spec.control_inputs) AddControlEdge(before, added);
  return added;
}

Status Graph::CheckInput(const Node& node, int index, Endpoint source) const {
  if (source.node == nullptr) return OkStatus();
  const Node& from = *source.node;
  CHECK(from.id_ < max_id() && nodes_[from.id_].get() == &from, "input of another graph");
  if (source.index < 0 || source.index >= from.num_outputs()) {
    return InNode(InvalidArgument(DescribeInput(node, index), " is output ", source.index, " of '",
                                  from.name_, "', which has ", from.num_outputs()),
                  node.name_);
  }
  const EdgeType wanted = node.input_types_[index];
  const EdgeType found = from.output_types_[source.index];
  // An input that takes values also accepts a reference, but an input that takes references does
  // not accept a value.
  if (found.dtype == wanted.dtype && (found.ref || !wanted.ref)) return OkStatus();
  return InNode(InvalidArgument(DescribeInput(node, index), " must be ", Name(wanted), ", '",
                                from.name_, ":", source.index, "' is ", Name(found)),
                node.name_);
}

void Graph::Connect(Node* node, int index, Endpoint source) {
  node->inputs_[index] = source;
  if (source.node == nullptr) return;
  node->out_slots_[index] = static_cast<int>(source.node->out_edges_.size());
  source.node->out_edges_.push_back({node, source.index, index});
}

void Graph::Disconnect(Node* node, int index) {
  Node* source = std::exchange(node->inputs_[index], Endpoint{}).node;
  if (source == nullptr) return;
  const int slot = node->out_slots_[index];
  const OutEdge& last = source->out_edges_.back();
  last.dst->out_slots_[last.dst_index] = slot;
  ReplaceByLast(source->out_edges_, slot);
}

Status Graph::SetInput(Node* node, int index, Endpoint source) {
  if (index < 0 || index >= node->num_inputs()) {
    return WithNode(InvalidArgument("node '", node->name_, "' has ", node->num_inputs(),
                                    " inputs, there is no input ", index),
                    node->name_);
  }
  RETURN_IF_ERROR(CheckInput(*node, index, source));
  Disconnect(node, index);
  Connect(node, index, source);
  return OkStatus();
}

void Graph::AddControlEdge(Node* src, Node* dst) {
  const ControlSlots slots{.at_src = static_cast<int>(src->control_outputs_.size()),
                           .at_dst = static_cast<int>(dst->control_inputs_.size())};
  if (!control_edges_.emplace(ControlEdge{src->id_, dst->id_}, slots).second) return;
  src->control_outputs_.push_back(dst);
  dst->control_inputs_.push_back(src);
}

void Graph::RemoveControlEdge(Node* src, Node* dst) {
  const auto it = control_edges_.find(ControlEdge{src->id_, dst->id_});
  if (it == control_edges_.end()) return;
  const ControlSlots slots = it->second;
  control_edges_[{src->id_, src->control_outputs_.back()->id_}].at_src = slots.at_src;
  control_edges_[{dst->control_inputs_.back()->id_, dst->id_}].at_dst = slots.at_dst;
  ReplaceByLast(src->control_outputs_, slots.at_src);
  ReplaceByLast(dst->control_inputs_, slots.at_dst);
  control_edges_.erase(ControlEdge{src->id_, dst->id_});
}

Status Graph::ReplaceUses(Endpoint from, Endpoint to) {
  std::vector<OutEdge> uses;
  for (const OutEdge& edge : from.node->out_edges_) {
    if (edge.src_index != from.index) continue;
    RETURN_IF_ERROR(CheckInput(*edge.dst, edge.dst_index, to));
    uses.push_back(edge);
  }
  for (const OutEdge& edge : uses) {
    Disconnect(edge.dst, edge.dst_index);
    Connect(edge.dst, edge.dst_index, to);
  }
  return OkStatus();
}

void Graph::RemoveNode(Node* node) {
  for (int i = 0; i < node->num_inputs(); ++i) Disconnect(node, i);
  CHECK(node->out_edges_.empty(), "node '", node->name_, "' is still used");
  while (!node->control_inputs_.empty()) RemoveControlEdge(node->control_inputs_.back(), node);
  while (!node->control_outputs_.empty()) RemoveControlEdge(node, node->control_outputs_.back());
  by_name_.erase(node->name_);
  --num_nodes_;
  nodes_[node->id_].reset();
}

void Graph::RemoveNodesFrom(int first_id) {
  for (int id = first_id; id < max_id(); ++id) {
    if (Node* n = node(id)) {
      for (int i = 0; i < n->num_inputs(); ++i) Disconnect(n, i);
    }
  }
  for (int id = max_id() - 1; id >= first_id; --id) {
    if (Node* n = node(id)) RemoveNode(n);
  }
  nodes_.resize(first_id);
}

std::string Graph::UniqueName(string_view base) {
  std::string name(base);
  if (FindNode(name) == nullptr) return name;
  int& suffix = suffixes_[name];
  do {
    name = StrCat(base, "_", ++suffix);
  } while (FindNode(name) != nullptr);
  return name;
}

}  // namespace penstock
