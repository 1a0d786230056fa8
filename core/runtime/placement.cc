// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/placement.h"

#include <algorithm>
#include <string>
#include <utility>

namespace penstock {
namespace {

bool AlwaysOnHost(const EdgeType& type) { return type.ref || !IsPlain(type.dtype); }

// Returns, for each tensor of `args`, whether the kernel has it in host memory.
StatusOr<std::vector<bool>> OnHost(const Node& node, const std::vector<ArgDef>& args,
                                   const SwappedStacks& swapped, const Registry& registry,
                                   const std::string& device_type) {
  ASSIGN_OR_RETURN(const KernelDef* kernel,
                   registry.FindKernel(node.op_name(), device_type, node.attrs()));
  const std::vector<std::string>& host_args = kernel->host_args;
  // Stack ops pass their values on, so elements of a swapped stack stay in host memory.
  const bool all = swapped.IsUsedBy(node);
  std::vector<EdgeType> types;
  std::vector<bool> on_host;
  for (const ArgDef& arg : args) {
    const bool listed =
        all || std::find(host_args.begin(), host_args.end(), arg.name) != host_args.end();
    RETURN_IF_ERROR(AppendArgTypes(arg, node.attrs(), &types));
    while (on_host.size() < types.size()) {
      on_host.push_back(listed || AlwaysOnHost(types[on_host.size()]));
    }
  }
  return on_host;
}

}  // namespace

StatusOr<Placement> PlaceValues(const Node& node, const SwappedStacks& swapped,
                                const Registry& registry, const std::string& device_type) {
  Placement placement;
  ASSIGN_OR_RETURN(placement.outputs_on_host,
                   OnHost(node, node.op().outputs, swapped, registry, device_type));
  ASSIGN_OR_RETURN(const std::vector<bool> wanted_on_host,
                   OnHost(node, node.op().inputs, swapped, registry, device_type));
  for (uint32_t i = 0; i < wanted_on_host.size(); ++i) {
    const Endpoint source = node.input(i);
    const EdgeType type = source.node->output_type(source.index);
    bool arrives_on_host;
    if (type.ref && !node.input_type(i).ref) {
      // The executor has read the variable behind the reference: its value is in the device's
      // memory.
      arrives_on_host = AlwaysOnHost({.dtype = type.dtype});
    } else {
      ASSIGN_OR_RETURN(
          const std::vector<bool> produced_on_host,
          OnHost(*source.node, source.node->op().outputs, swapped, registry, device_type));
      arrives_on_host = produced_on_host[source.index];
    }
    if (arrives_on_host && !wanted_on_host[i]) placement.inputs_to_device.push_back(i);
    if (!arrives_on_host && wanted_on_host[i]) placement.inputs_to_host.push_back(i);
  }
  return placement;
}

}  // namespace penstock
