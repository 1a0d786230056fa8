// SPDX-License-Identifier: Apache-2.0
#include "distributed/session/cost_graph.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace penstock {
namespace {

using Addresses = std::vector<uint64_t>;  // addresses of the buffers of a node's outputs; 0: none

void AddExecution(const NodeStats& stats, CostNode* node, Addresses* addresses) {
  node->nanos = std::max(node->nanos, stats.end_ns - stats.start_ns);
  node->persistent_bytes = std::max(node->persistent_bytes, stats.persistent_bytes);
  int64_t temporary = 0;
  for (const NodeStats::Memory& memory : stats.memory) {
    temporary += memory.peak_bytes - memory.live_bytes;
  }
  node->temporary_bytes = std::max(node->temporary_bytes, temporary);
  for (const NodeStats::Out& out : stats.outputs) {
    const auto index = static_cast<size_t>(out.index);
    // The index may come from another task, so it is checked.
    if (out.index < 0 || index >= node->outputs.size()) continue;
    CostNode::Output& output = node->outputs[index];
    output.bytes = std::max(output.bytes, out.bytes);
    output.dtype = out.dtype;
    output.shape = out.shape;
    (*addresses)[index] = out.address;
  }
}

// Finds outputs that share a buffer with an input. Sets the size of outputs that existed before the
// step to 0, because they need no memory of the step.
void MarkAliases(const std::vector<Addresses>& addresses, CostNode* node) {
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    const uint64_t address = addresses[node->id][i];
    if (address == 0) continue;
    for (size_t in = 0; in < node->inputs.size(); ++in) {
      const auto& [source, output] = node->inputs[in];
      if (addresses[source][output] != address) continue;
      node->outputs[i].alias_input = static_cast<int>(in);
      break;
    }
    if (node->outputs[i].alias_input < 0 && node->persistent_bytes > 0) node->outputs[i].bytes = 0;
  }
}

void AddPartition(const std::string& device, const Graph& graph, const DeviceStats* stats,
                  std::vector<CostNode>* nodes) {
  const int first = static_cast<int>(nodes->size());
  std::vector<int> ids(graph.max_id(), -1);
  absl::flat_hash_map<string_view, int> by_name;
  for (const Node* node : graph.nodes()) {
    ids[node->id()] = static_cast<int>(nodes->size());
    by_name.emplace(node->name(), ids[node->id()]);
    nodes->push_back({.name = node->name(),
                      .device = device,
                      .id = ids[node->id()],
                      .outputs = std::vector<CostNode::Output>(node->num_outputs()),
                      .is_send = node->op().end == EndOp::kSend});
    for (int i = 0; i < node->num_outputs(); ++i) {
      nodes->back().outputs[i].dtype = node->output_type(i).dtype;
    }
  }
  for (const Node* node : graph.nodes()) {
    CostNode& row = (*nodes)[ids[node->id()]];
    for (const Endpoint& in : node->inputs()) row.inputs.push_back({ids[in.node->id()], in.index});
    for (const Node* control : node->control_inputs()) {
      row.control_inputs.push_back(ids[control->id()]);
    }
  }
  std::vector<Addresses> addresses(nodes->size());
  for (size_t id = first; id < nodes->size(); ++id) {
    addresses[id].resize((*nodes)[id].outputs.size());
  }
  for (const NodeStats& node : stats == nullptr ? std::vector<NodeStats>() : stats->nodes) {
    const auto found = by_name.find(node.node);
    if (found == by_name.end()) continue;
    AddExecution(node, &(*nodes)[found->second], &addresses[found->second]);
  }
  for (size_t id = first; id < nodes->size(); ++id) MarkAliases(addresses, &(*nodes)[id]);
}

}  // namespace

std::vector<CostNode> CostGraphOf(const std::vector<std::pair<std::string, Graph>>& partitions,
                                  const std::vector<DeviceStats>& stats) {
  std::vector<CostNode> nodes;
  for (const auto& [device, graph] : partitions) {
    const auto found = std::find_if(stats.begin(), stats.end(), [&device = device](const auto& d) {
      return d.device == device;
    });
    AddPartition(device, graph, found == stats.end() ? nullptr : &*found, &nodes);
  }
  return nodes;
}

}  // namespace penstock
