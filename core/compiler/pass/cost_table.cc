// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/pass/cost_table.h"

#include <algorithm>
#include <map>

#include "core/op/flops.h"

namespace penstock {
namespace {

const PartialShape& ShapeOf(const ShapeMap& shapes, const Node& node, int output) {
  static const PartialShape kUnknown;
  const auto id = static_cast<size_t>(node.id());
  return id < shapes.size() && output < static_cast<int>(shapes[id].size()) ? shapes[id][output]
                                                                            : kUnknown;
}

// Returns whether nodes of the op only pass on tensors that exist already: they neither compute nor
// copy, whatever the size. Stateful views, such as CheckNumerics, look at the elements.
bool OnlyPassesOn(const OpDef& op) {
  return (op.is_view && !op.stateful) || op.passes_through || op.reads_variable || op.is_constant ||
         op.flow != FlowOp::kNone || op.end != EndOp::kNone;
}

// Returns the number of operations by the op's definition. If the definition does not give it: one
// operation for each element of output 0; a reference has no elements.
double FlopsOf(const Node& node, const ShapeMap& shapes) {
  if (node.num_outputs() == 0 || OnlyPassesOn(node.op())) return 0;
  if (node.op().flops == nullptr) {
    return node.output_type(0).ref ? 0 : Elements(ShapeOf(shapes, node, 0));
  }
  std::vector<PartialShape> inputs, outputs;
  for (const Endpoint& in : node.inputs()) inputs.push_back(ShapeOf(shapes, *in.node, in.index));
  for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(ShapeOf(shapes, node, i));
  return node.op().flops({.attrs = node.attrs(), .inputs = inputs, .outputs = outputs});
}

constexpr double kLatencyBytesMax = 4 << 10, kRateBytesMin = 64 << 10;
// At least this share of a transfer's time counts as the time for its bytes, even if the measured
// latency is longer than the rest.
constexpr double kBytesShareMin = 0.25;

// Moves `*known` towards a new value: quickly if the new value is better, else slowly.
void MoveTowards(double value, bool better, double* known) {
  if (*known < 0) *known = value;
  *known += (value - *known) / (better ? 2 : 16);
}

}  // namespace

void CostTable::Estimate(const Graph& graph, const ShapeMap& shapes,
                         const std::vector<DeviceInfo>& devices) {
  const std::vector<Node*> nodes = graph.nodes();
  work_.assign(graph.max_id(), {});
  output_bytes_.clear();
  for (const Node* node : nodes) {
    work_[node->id()] = {.flops = FlopsOf(*node, shapes), .first_output = output_bytes_.size()};
    for (int i = 0; i < node->num_outputs(); ++i) {
      output_bytes_.push_back(Elements(ShapeOf(shapes, *node, i)) *
                              static_cast<double>(SizeOf(node->output_type(i).dtype)));
    }
  }
  for (const Node* node : nodes) {
    if (OnlyPassesOn(node->op())) continue;
    double& bytes = work_[node->id()].bytes;
    for (const Endpoint& in : node->inputs()) bytes += OutputBytes(*in.node, in.index);
    for (int i = 0; i < node->num_outputs(); ++i) {
      if (!node->output_type(i).ref) bytes += OutputBytes(*node, i);
    }
  }
  Learn(graph, devices);
}

void CostTable::Learn(const Graph& graph, const std::vector<DeviceInfo>& devices) {
  learned_ = LearnedRates();
  if (measured_.empty()) return;
  std::map<DeviceName, const DeviceInfo*> by_name;
  for (const DeviceInfo& device : devices) by_name.emplace(device.name, &device);
  for (const Node* node : graph.nodes()) {
    const MeasuredNode* const measured = FindMeasured(*node);
    for (const Time& time : measured == nullptr ? std::vector<Time>() : measured->times) {
      const auto device = by_name.find(time.device);
      if (device == by_name.end()) continue;
      learned_.Add(node->op_name(), time.device, time.nanos,
                   EstimatedNanos(*node, device->second->rates));
    }
  }
  learned_.Finish();
}

void CostTable::RecordNode(string_view node, const DeviceName& device, double nanos) {
  std::vector<Time>& times = measured_[std::string(node)].times;
  const auto known = std::find_if(times.begin(), times.end(),
                                  [&](const Time& time) { return time.device == device; });
  if (known == times.end()) {
    times.push_back({device, nanos});
    return;
  }
  nanos = std::min(nanos, 4 * known->nanos);
  known->nanos += (nanos - known->nanos) / (nanos < known->nanos ? 2 : 4);
}

const CostTable::Time* CostTable::FindTime(string_view node, const DeviceName& device) const {
  const auto measured = measured_.find(node);
  if (measured == measured_.end()) return nullptr;
  for (const Time& time : measured->second.times) {
    if (time.device == device) return &time;
  }
  return nullptr;
}

void CostTable::RecordStep(const DeviceName& device, absl::Span<const Execution> executions) {
  std::vector<string_view> known;
  double measured_ns = 0, before_ns = 0, after_ns = 0;
  for (const Execution& execution : executions) {
    const Time* const time = FindTime(execution.node, device);
    if (time == nullptr) continue;
    known.push_back(execution.node);
    measured_ns += execution.nanos;
    before_ns += time->nanos;
  }
  slowness_.Add(device, measured_ns, before_ns);
  for (const Execution& execution : executions) RecordNode(execution.node, device, execution.nanos);
  for (const string_view node : known) after_ns += FindTime(node, device)->nanos;
  if (before_ns > 0) slowness_.Rescale(device, after_ns / before_ns);
}

void CostTable::RecordOutput(string_view node, int output, double bytes) {
  if (output < 0) return;
  std::vector<double>& measured = measured_[std::string(node)].output_bytes;
  const auto index = static_cast<size_t>(output);
  if (measured.size() <= index) measured.resize(index + 1, -1);
  measured[index] = bytes;
}

void CostTable::RecordTransfer(const DeviceName& from, const DeviceName& to, double bytes,
                               double nanos) {
  const bool tells_latency = bytes <= kLatencyBytesMax, tells_rate = bytes >= kRateBytesMin;
  if (nanos <= 0 || (!tells_latency && !tells_rate)) return;
  auto link = std::find_if(links_.begin(), links_.end(), [&](const Link& known) {
    return known.from.SameTask(from) && known.to.SameTask(to);
  });
  if (link == links_.end()) {
    link = links_.insert(links_.end(), {.from = from.Task(), .to = to.Task()});
  }
  ++link->transfers;
  if (tells_latency) return MoveTowards(nanos, nanos < link->latency_ns, &link->latency_ns);
  const double for_bytes =
      std::max(nanos - std::max(link->latency_ns, 0.0), kBytesShareMin * nanos);
  const double rate = bytes / for_bytes;
  MoveTowards(rate, rate > link->bytes_per_ns, &link->bytes_per_ns);
}

LinkRates CostTable::LinkBetween(const DeviceInfo& from, const DeviceInfo& to) const {
  const LinkRates &a = from.link_to_tasks, &b = to.link_to_tasks;
  LinkRates rates = {.bytes_per_ns = std::min(a.bytes_per_ns, b.bytes_per_ns),
                     .latency_ns = std::max(a.latency_ns, b.latency_ns)};
  for (const Link& link : links_) {
    if (!link.from.SameTask(from.name) || !link.to.SameTask(to.name)) continue;
    if (link.latency_ns >= 0) rates.latency_ns = link.latency_ns;
    if (link.bytes_per_ns > 0) rates.bytes_per_ns = link.bytes_per_ns;
  }
  return rates;
}

std::vector<CostTable::Record> CostTable::Records() const {
  std::vector<Record> records;
  for (const auto& [node, measured] : measured_) {
    Record record{.node = node, .times = {}, .output_bytes = measured.output_bytes};
    for (const Time& time : measured.times) record.times.emplace_back(time.device, time.nanos);
    records.push_back(std::move(record));
  }
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.node < b.node; });
  return records;
}

void CostTable::Add(const Record& record) {
  for (const auto& [device, nanos] : record.times) RecordNode(record.node, device, nanos);
  for (size_t i = 0; i < record.output_bytes.size(); ++i) {
    if (record.output_bytes[i] < 0) continue;
    RecordOutput(record.node, static_cast<int>(i), record.output_bytes[i]);
  }
}

const CostTable::MeasuredNode* CostTable::FindMeasured(const Node& node) const {
  if (measured_.empty()) return nullptr;
  const auto found = measured_.find(node.name());
  return found == measured_.end() ? nullptr : &found->second;
}

bool CostTable::IsMeasured(const Node& node) const {
  const MeasuredNode* const measured = FindMeasured(node);
  return measured != nullptr && !measured->times.empty();
}

double CostTable::NodeNanos(const Node& node, const DeviceInfo& device) const {
  const double slowness = Slowness(device.name);
  if (const MeasuredNode* const measured = FindMeasured(node); measured != nullptr) {
    const Time* alike = nullptr;
    for (const Time& time : measured->times) {
      if (time.device == device.name) return slowness * time.nanos;
      if (time.device.type == device.name.type) alike = &time;
    }
    if (alike != nullptr) {
      return slowness * alike->nanos * learned_.Slowness(alike->device, device.name);
    }
  }
  return slowness * EstimatedNanos(node, device.rates) *
         learned_.Factor(node.op_name(), device.name);
}

double CostTable::Flops(const Node& node) const {
  const auto id = static_cast<size_t>(node.id());
  return id < work_.size() ? work_[id].flops : 0;
}

double CostTable::EstimatedNanos(const Node& node, const DeviceRates& rates) const {
  const auto id = static_cast<size_t>(node.id());
  const NodeWork work = id < work_.size() ? work_[id] : NodeWork();
  return rates.launch_ns +
         std::max(work.flops / rates.flops_per_ns, work.bytes / rates.bytes_per_ns);
}

double CostTable::OutputBytes(const Node& node, int output) const {
  const auto index = static_cast<size_t>(output);
  const MeasuredNode* const measured = FindMeasured(node);
  if (measured != nullptr && index < measured->output_bytes.size() &&
      measured->output_bytes[index] >= 0) {
    return measured->output_bytes[index];
  }
  const auto id = static_cast<size_t>(node.id());
  return id < work_.size() ? output_bytes_[work_[id].first_output + index] : 0;
}

}  // namespace penstock
