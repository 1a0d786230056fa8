// SPDX-License-Identifier: Apache-2.0
//
// Decides whether host or device memory holds the values of a node, for devices whose memory the
// host cannot read. Private to this folder.
//
// A value is produced in host memory if the producer's KernelDef lists the output in `host_args`,
// and wanted there if the consumer's KernelDef lists the input. Strings and resource handles, and
// so references, are C++ objects and always in host memory. If producer and consumer differ, the
// executor copies the value when it prepares the consumer's inputs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"
#include "core/runtime/swapped_stacks.h"

namespace penstock {

struct Placement {
  std::vector<bool> outputs_on_host;
  std::vector<uint32_t> inputs_to_host;    // produced on the device, wanted on the host
  std::vector<uint32_t> inputs_to_device;  // produced on the host, wanted on the device
};
// Returns the placement of the node's values. NotFound if the node, or a node whose output it
// takes, has no kernel for `device_type`.
StatusOr<Placement> PlaceValues(const Node& node, const SwappedStacks& swapped,
                                const Registry& registry, const std::string& device_type);

}  // namespace penstock
