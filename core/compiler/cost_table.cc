// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/cost_table.h"

#include <algorithm>

#include "core/op/flops.h"

namespace penstock {
namespace {

const PartialShape& ShapeOf(const ShapeMap& shapes, const Node& node, int output) {
  static const PartialShape kUnknown;
  const auto id = static_cast<size_t>(node.id());
  return id < shapes.size() && output < static_cast<int>(shapes[id].size()) ? shapes[id][output]
                                                                            : kUnknown;
}

// One operation for each element, unless the op says more.
double FlopsOf(const Node& node, const ShapeMap& shapes) {
  if (node.num_outputs() == 0) return 0;
  if (node.op().flops == nullptr) return Elements(ShapeOf(shapes, node, 0));
  std::vector<PartialShape> inputs, outputs;
  for (const Endpoint& in : node.inputs()) inputs.push_back(ShapeOf(shapes, *in.node, in.index));
  for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(ShapeOf(shapes, node, i));
  return node.op().flops({.attrs = node.attrs(), .inputs = inputs, .outputs = outputs});
}

}  // namespace

CostTable::Output& CostTable::OutputOf(Entry& entry, int output) {
  const auto index = static_cast<size_t>(output);
  if (entry.outputs.size() <= index) entry.outputs.resize(index + 1);
  return entry.outputs[index];
}

void CostTable::Estimate(const Graph& graph, const ShapeMap& shapes) {
  const std::vector<Node*> nodes = graph.nodes();
  nodes_.reserve(nodes_.size() + nodes.size());
  for (const Node* node : nodes) {
    Entry& entry = nodes_[node->name()];
    entry.flops = FlopsOf(*node, shapes);
    if (node->num_outputs() > 0) OutputOf(entry, node->num_outputs() - 1);
    for (int i = 0; i < node->num_outputs(); ++i) {
      Output& output = entry.outputs[i];
      if (output.measured) continue;
      output.bytes = Elements(ShapeOf(shapes, *node, i)) *
                     static_cast<double>(SizeOf(node->output_type(i).dtype));
    }
  }
  for (const Node* node : nodes) {
    double bytes = 0;
    for (const Endpoint& in : node->inputs()) bytes += OutputBytes(*in.node, in.index);
    for (int i = 0; i < node->num_outputs(); ++i) bytes += OutputBytes(*node, i);
    nodes_[node->name()].bytes = bytes;
  }
}

void CostTable::RecordNode(string_view node, const DeviceName& device, double nanos) {
  std::vector<Time>& measured = nodes_[std::string(node)].measured;
  const auto known = std::find_if(measured.begin(), measured.end(),
                                  [&](const Time& time) { return time.device == device; });
  if (known == measured.end()) {
    measured.push_back({device, nanos});
    return;
  }
  known->nanos += (nanos - known->nanos) / (nanos < known->nanos ? 2 : 4);
}

void CostTable::RecordOutput(string_view node, int output, double bytes) {
  OutputOf(nodes_[std::string(node)], output) = {.bytes = bytes, .measured = true};
}

double CostTable::NodeNanos(const Node& node, const DeviceInfo& device) const {
  const auto found = nodes_.find(node.name());
  if (found == nodes_.end()) return device.rates.launch_ns;
  const Entry& entry = found->second;
  const Time* alike = nullptr;
  for (const Time& time : entry.measured) {
    if (time.device == device.name) return time.nanos;
    if (time.device.type == device.name.type) alike = &time;
  }
  if (alike != nullptr) return alike->nanos;
  return device.rates.launch_ns +
         std::max(entry.flops / device.rates.flops_per_ns, entry.bytes / device.rates.bytes_per_ns);
}

double CostTable::TransferNanos(const Node& src, int output, const DeviceInfo& from,
                                const DeviceInfo& to) const {
  if (from.name == to.name) return 0;
  const bool same_task = from.name.SameTask(to.name);
  const LinkRates& a = same_task ? from.link_in_task : from.link_to_tasks;
  const LinkRates& b = same_task ? to.link_in_task : to.link_to_tasks;
  return std::max(a.latency_ns, b.latency_ns) +
         OutputBytes(src, output) / std::min(a.bytes_per_ns, b.bytes_per_ns);
}

double CostTable::OutputBytes(const Node& node, int output) const {
  const auto found = nodes_.find(node.name());
  if (found == nodes_.end()) return 0;
  const std::vector<Output>& outputs = found->second.outputs;
  return output < static_cast<int>(outputs.size()) ? outputs[output].bytes : 0;
}

}  // namespace penstock
