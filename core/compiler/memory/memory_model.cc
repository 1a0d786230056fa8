// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/memory_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/compiler/memory/memory_simulation.h"
#include "core/op/device_name.h"

namespace penstock {
namespace {

constexpr double kSmallBytesMax = 32 << 10, kPage = 4096;

// Returns a name for the memory of a device. The CPUs of one task share tensors, so they have the
// same memory; every other device has its own.
std::string MemoryOf(const std::string& device) {
  const StatusOr<DeviceName> name = DeviceName::Parse(device);
  if (!name.ok() || !name->full() || name->type != "CPU") return device;
  return StrCat(name->Task().ToString(), *name->type);
}

}  // namespace

double AllocatedBytes(double bytes) {
  return bytes <= kSmallBytesMax ? bytes : std::ceil(bytes / kPage) * kPage;
}

double MemoryProfile::Excess(double limit) const {
  double excess = 0;
  for (const Device& device : devices) {
    for (const double bytes : device.during) excess += std::max(0.0, bytes - limit);
  }
  return excess;
}

MemoryModel::MemoryModel(const Graph& graph, const CostTable& costs) : graph_(graph) {
  const std::vector<Node*> nodes = graph.nodes();
  for (const Node* node : nodes) devices_.push_back(node->assigned_device());
  std::sort(devices_.begin(), devices_.end());
  devices_.erase(std::unique(devices_.begin(), devices_.end()), devices_.end());
  std::map<std::string, int> memories;
  for (const std::string& device : devices_) {
    const int next = static_cast<int>(memories.size());
    memory_of_.push_back(memories.emplace(MemoryOf(device), next).first->second);
  }
  for (const Node* node : nodes) {
    std::vector<double> bytes;
    for (int i = 0; i < node->num_outputs(); ++i) {
      bytes.push_back(AllocatedBytes(costs.OutputBytes(*node, i)));
    }
    SetNode(*node, std::move(bytes));
  }
}

void MemoryModel::SetNode(const Node& node, std::vector<double> bytes) {
  const auto id = static_cast<size_t>(node.id());
  if (id >= output_bytes_.size()) {
    output_bytes_.resize(id + 1);
    device_of_.resize(id + 1, -1);
  }
  output_bytes_[id] = std::move(bytes);
  const auto device = std::lower_bound(devices_.begin(), devices_.end(), node.assigned_device());
  device_of_[id] = static_cast<int>(device - devices_.begin());
}

void MemoryModel::AddCopy(const Node& copy, const Node& node) {
  SetNode(copy, output_bytes_[node.id()]);
}

void MemoryModel::AddNode(const Node& node, double bytes) { SetNode(node, {bytes}); }

double MemoryModel::Bytes(const Endpoint& value) const {
  return output_bytes_[value.node->id()][value.index];
}

MemoryProfile MemoryModel::Profile(absl::Span<Node* const> order) const {
  return MemorySimulation(*this, order).Run();
}

}  // namespace penstock
