// SPDX-License-Identifier: Apache-2.0
//
// Decides which memory, host or device, holds the values of a node on a device whose memory the
// host cannot read. Private to this folder.
//
// The producer leaves a value on the host if its KernelDef lists the output in `host_args`. The
// consumer wants it on the host if its KernelDef lists the input. Strings and resource handles, and
// so references, are C++ objects and always on the host. If producer and consumer differ, the
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
