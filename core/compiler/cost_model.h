// SPDX-License-Identifier: Apache-2.0
//
// CostModel: how long a node takes on a device, and a tensor on its way between two: what the
// placer asks. The static one estimates from op, types and shapes; a measured one (statistics of
// earlier steps) implements the same questions. Thread-safe once built.
#pragma once

#include <memory>

#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual double NodeNanos(const Node& node, const DeviceInfo& device) const = 0;
  virtual double TransferNanos(const Node& src, int output, const DeviceInfo& from,
                               const DeviceInfo& to) const = 0;
  // Of one output; an estimate where the shape is not fully known.
  virtual double OutputBytes(const Node& node, int output) const = 0;
};

// Estimates by op family from floating-point operations and bytes moved.
std::unique_ptr<CostModel> NewStaticCostModel(ShapeMap shapes);

}  // namespace penstock
