// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/measured_costs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/op/edge_name.h"
#include "core/op/task_name.h"

namespace penstock {
namespace {

// The time at which each node ended, by device and node, in nanoseconds of the master's wall clock.
using Ends = std::map<std::pair<std::string, std::string>, int64_t>;

int64_t ClockAheadNanos(const std::string& device, const MeasuredCosts::ClocksAhead& clocks_ahead) {
  const StatusOr<TaskName> task = TaskName::OfDevice(device);
  const auto ahead = task.ok() ? clocks_ahead.find(task->ToString()) : clocks_ahead.end();
  return ahead == clocks_ahead.end() ? 0 : ahead->second;
}

Ends EndsOf(const std::vector<DeviceStats>& stats, const MeasuredCosts::ClocksAhead& clocks_ahead) {
  Ends ends;
  for (const DeviceStats& device : stats) {
    const int64_t ahead_ns = ClockAheadNanos(device.device, clocks_ahead);
    for (const NodeStats& node : device.nodes) {
      const auto [end, is_new] =
          ends.try_emplace({device.device, node.node}, node.end_ns - ahead_ns);
      if (!is_new) end->second = std::max(end->second, node.end_ns - ahead_ns);
    }
  }
  return ends;
}

// Adds a transfer to `*costs`. `stats`: a row kTransferStats. `ahead_ns`: by how much the clock of
// the receiving task is ahead.
void RecordTransfer(const NodeStats& stats, const Ends& ends, int64_t ahead_ns, CostTable* costs) {
  // Skips rows that another program has made, and dead values.
  if (!stats.transfer.has_value() || stats.outputs.empty()) return;
  const std::optional<EdgeName> edge = EdgeName::Parse(stats.transfer->edge);
  if (!edge.has_value() || edge->output == EdgeName::kControl) return;
  const auto made = ends.find({stats.transfer->from, edge->node});
  const StatusOr<DeviceName> from = DeviceName::Parse(stats.transfer->from);
  const StatusOr<DeviceName> to = DeviceName::Parse(stats.transfer->to);
  if (made == ends.end() || !from.ok() || !to.ok()) return;
  // A producer sends a value as soon as it has made it. If the consumer began to wait later, the
  // transfer may have ended before that, so its time is not known.
  const int64_t made_ns = made->second;
  if (made_ns < stats.start_ns - ahead_ns) return;
  costs->RecordTransfer(*from, *to, static_cast<double>(stats.outputs[0].bytes),
                        static_cast<double>(stats.end_ns - ahead_ns - made_ns));
}

void RecordOutputs(const Node& node, const NodeStats& stats, CostTable* costs) {
  for (const NodeStats::Out& output : stats.outputs) {
    // The index may come from another task, so it is checked.
    if (output.index < 0 || output.index >= node.num_outputs()) continue;
    costs->RecordOutput(node.name(), output.index, static_cast<double>(output.bytes));
  }
}

bool IsTimed(const Node& node, const DeviceName& device) {
  const OpDef& op = node.op();
  return !op.stateful && op.flow == FlowOp::kNone && device.type == "CPU";
}

}  // namespace

void MeasuredCosts::Record(const Graph& graph, const std::vector<DeviceStats>& stats,
                           const ClocksAhead& clocks_ahead) {
  MutexLock lock(mu_);
  auto costs =
      costs_ == nullptr ? std::make_shared<CostTable>() : std::make_shared<CostTable>(*costs_);
  const Ends ends = EndsOf(stats, clocks_ahead);
  for (const DeviceStats& device : stats) {
    const StatusOr<DeviceName> name = DeviceName::Parse(device.device);
    if (!name.ok()) continue;
    const int64_t ahead_ns = ClockAheadNanos(device.device, clocks_ahead);
    std::vector<CostTable::Execution> timed;
    for (const NodeStats& node : device.nodes) {
      if (node.node == kTransferStats) RecordTransfer(node, ends, ahead_ns, costs.get());
      const Node* const known = graph.FindNode(node.node);
      if (known == nullptr) continue;
      RecordOutputs(*known, node, costs.get());
      if (!IsTimed(*known, *name)) continue;
      timed.push_back({known->name(), static_cast<double>(node.end_ns - node.start_ns)});
    }
    costs->RecordStep(*name, timed);
  }
  costs_ = std::move(costs);
}

std::shared_ptr<const CostTable> MeasuredCosts::Get() const {
  MutexLock lock(mu_);
  return costs_;
}

}  // namespace penstock
