// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/placement.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/graph/loop_frames.h"

namespace penstock {
namespace {

bool IsPush(const Node& node) {
  return node.op_name() == "StackPush" || node.op_name() == "StackPushV2";
}
bool IsPop(const Node& node) {
  return node.op_name() == "StackPop" || node.op_name() == "StackPopV2";
}
bool LeadsOn(const Node& node) {
  return FlowOpOf(node) != FlowOp::kNone || node.op_name() == "Identity";
}

// The pushes to the stack that `handle` made.
std::vector<const Node*> PushesTo(const Node& handle) {
  std::vector<const Node*> pushes, led = {&handle};
  std::vector<int> seen;
  while (!led.empty()) {
    const Node* const node = led.back();
    led.pop_back();
    for (const OutEdge& edge : node->out_edges()) {
      if (edge.dst_index != 0) continue;
      if (IsPush(*edge.dst)) pushes.push_back(edge.dst);
      if (!LeadsOn(*edge.dst)) continue;
      if (std::find(seen.begin(), seen.end(), edge.dst->id()) != seen.end()) continue;
      seen.push_back(edge.dst->id());
      led.push_back(edge.dst);
    }
  }
  return pushes;
}

// The node that made the handle of the stack that `user` pushes to or pops from. Handles are led
// into loops and branches and, of loops in loops, kept on stacks themselves.
const Node* StackOf(const Node& user) {
  const Node* node = user.input(0).node;
  while (LeadsOn(*node) || IsPop(*node)) {
    if (LeadsOn(*node)) {
      node = node->input(0).node;
      continue;
    }
    const std::vector<const Node*> pushes = PushesTo(*StackOf(*node));
    if (pushes.empty()) break;
    node = pushes[0]->input(1).node;
  }
  return node;
}

// Stacks hand on what they are given, so their elements are kept where the executor leaves them.
bool KeepsElementsOnHost(const Node& node) {
  if (!IsPush(node) && !IsPop(node)) return false;
  const std::vector<const Node*> pushes = PushesTo(*StackOf(node));
  return std::any_of(pushes.begin(), pushes.end(), [](const Node* push) {
    const bool* const swap = push->attr<bool>("swap_memory");
    return swap != nullptr && *swap;
  });
}

bool AlwaysOnHost(const EdgeType& type) { return type.ref || !IsPlain(type.dtype); }

// Which of the tensors that `args` stand for are on the host, by the kernel's own list.
StatusOr<std::vector<bool>> OnHost(const Node& node, const std::vector<ArgDef>& args,
                                   const Registry& registry, const std::string& device_type) {
  ASSIGN_OR_RETURN(const KernelDef* kernel,
                   registry.FindKernel(node.op_name(), device_type, node.attrs()));
  const std::vector<std::string>& host_args = kernel->host_args;
  const bool all = KeepsElementsOnHost(node);
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

StatusOr<Placement> PlaceValues(const Node& node, const Registry& registry,
                                const std::string& device_type) {
  Placement placement;
  ASSIGN_OR_RETURN(placement.outputs_on_host,
                   OnHost(node, node.op().outputs, registry, device_type));
  ASSIGN_OR_RETURN(const std::vector<bool> wanted_on_host,
                   OnHost(node, node.op().inputs, registry, device_type));
  for (uint32_t i = 0; i < wanted_on_host.size(); ++i) {
    const Endpoint source = node.input(i);
    const EdgeType type = source.node->output_type(source.index);
    bool arrives_on_host;
    if (type.ref && !node.input_type(i).ref) {
      // The variable behind the reference has been read: its value is in the device's memory.
      arrives_on_host = AlwaysOnHost({.dtype = type.dtype});
    } else {
      ASSIGN_OR_RETURN(const std::vector<bool> produced_on_host,
                       OnHost(*source.node, source.node->op().outputs, registry, device_type));
      arrives_on_host = produced_on_host[source.index];
    }
    if (arrives_on_host && !wanted_on_host[i]) placement.inputs_to_device.push_back(i);
    if (!arrives_on_host && wanted_on_host[i]) placement.inputs_to_host.push_back(i);
  }
  return placement;
}

}  // namespace penstock
