// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/measured_costs.h"

#include "core/base/mutex.h"

namespace penstock {
namespace {

void RecordNode(const Node& node, const DeviceName& device, const NodeStats& stats,
                CostTable* costs) {
  for (const NodeStats::Out& output : stats.outputs) {
    if (output.index < 0 || output.index >= node.num_outputs()) continue;  // another task says
    costs->RecordOutput(node.name(), output.index, static_cast<double>(output.bytes));
  }
  const OpDef& op = node.op();
  if (op.stateful || op.flow != FlowOp::kNone || device.type != "CPU") return;
  costs->RecordNode(node.name(), device, static_cast<double>(stats.end_ns - stats.start_ns));
}

}  // namespace

void MeasuredCosts::Record(const Graph& graph, const std::vector<DeviceStats>& stats) {
  MutexLock lock(mu_);
  auto costs =
      costs_ == nullptr ? std::make_shared<CostTable>() : std::make_shared<CostTable>(*costs_);
  for (const DeviceStats& device : stats) {
    const StatusOr<DeviceName> name = DeviceName::Parse(device.device);
    if (!name.ok()) continue;
    for (const NodeStats& node : device.nodes) {
      const Node* const known = graph.FindNode(node.node);
      if (known != nullptr) RecordNode(*known, *name, node, costs.get());
    }
  }
  costs_ = std::move(costs);
}

std::shared_ptr<const CostTable> MeasuredCosts::Get() const {
  MutexLock lock(mu_);
  return costs_;
}

}  // namespace penstock
