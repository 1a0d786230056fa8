// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/measured_costs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/base/mutex.h"
#include "core/op/block_kernel.h"
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

void RecordOutputs(const NodeStats& stats, int num_outputs, CostTable* costs) {
  for (const NodeStats::Out& output : stats.outputs) {
    // The index may come from another task, so it is checked.
    if (output.index < 0 || output.index >= num_outputs) continue;
    costs->RecordOutput(stats.node, output.index, static_cast<double>(output.bytes));
  }
}

// Returns whether the node neither reads nor makes handles, as an op of random numbers.
bool HasPlainValuesOnly(const Node& node) {
  const auto is_plain = [](const EdgeType& type) { return !type.ref && IsPlain(type.dtype); };
  return node.num_outputs() > 0 && absl::c_all_of(node.input_types(), is_plain) &&
         absl::c_all_of(node.output_types(), is_plain);
}

// Returns whether the time of the node on a CPU is the time of its work. Other ops with state may
// wait, such as an iterator for a file.
bool ComputesOnly(const Node& node) {
  const OpDef& op = node.op();
  if (op.flow != FlowOp::kNone || op.may_wait) return false;
  if (!op.stateful) return true;
  return !op.acts_outside &&
         (!op.update_rule.empty() || op.reads_variable || HasPlainValuesOnly(node));
}

// Returns whether the row describes a node of the pass "fuse". The client's graph does not have it,
// but later compilations of the step add it under the same name.
bool IsFused(const NodeStats& stats) { return stats.op.starts_with(kFusedOp); }

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
      if (known == nullptr && !IsFused(node)) continue;
      RecordOutputs(node, known == nullptr ? 1 : known->num_outputs(), costs.get());
      if (name->type != "CPU" || (known != nullptr && !ComputesOnly(*known))) continue;
      timed.push_back({node.node, static_cast<double>(node.end_ns - node.start_ns)});
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
