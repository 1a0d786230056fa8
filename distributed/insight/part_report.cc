// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/part_report.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/op/edge_name.h"
#include "core/op/private_attrs.h"
#include "core/op/resource.h"

namespace penstock {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;
// The maximum number of nodes between the use of a handle and the node that makes it.
constexpr int kHandleHopsMax = 100;

wire::UseReport::Kind KindOf(const OpDef& op) {
  switch (op.resource_use) {
    case ResourceUse::kPuts:
      return wire::UseReport::PUT;
    case ResourceUse::kTakes:
      return wire::UseReport::TAKE;
    case ResourceUse::kLocks:
      return wire::UseReport::LOCK;
    case ResourceUse::kOther:
      break;
  }
  return wire::UseReport::OTHER;
}

// Returns whether the node passes its first input on unchanged.
bool PassesOn(const Node& node) {
  return node.op().passes_through || node.op().flow != FlowOp::kNone;
}

// Returns the nodes that are downstream of a waiting node, each with that waiting node.
absl::flat_hash_map<const Node*, const Node*> NodesBehindWaits(const StepActivity& activity) {
  absl::flat_hash_map<const Node*, const Node*> behind;
  std::vector<std::pair<const Node*, const Node*>> reached;
  for (const StepActivity::Wait& wait : activity.waits) reached.push_back({wait.node, wait.node});
  while (!reached.empty()) {
    const auto [node, waits] = reached.back();
    reached.pop_back();
    const auto reach = [&, waits = waits](const Node* next) {
      if (behind.emplace(next, waits).second) reached.push_back({next, waits});
    };
    for (const OutEdge& edge : node->out_edges()) reach(edge.dst);
    for (const Node* const next : node->control_outputs()) reach(next);
  }
  return behind;
}

void AddWait(const StepActivity::Wait& wait, const std::string& device, int64_t now_ns,
             wire::WaitReport* report) {
  const Node& node = *wait.node;
  report->set_node(node.name());
  report->set_op(node.op_name());
  report->set_device(device);
  report->set_age_ms(wait.since_ns == 0 ? -1 : (now_ns - wait.since_ns) / kNanosPerMilli);
  report->set_iteration(wait.iteration);
  report->set_kind(KindOf(node.op()));
  if (node.op().end == EndOp::kRecv) {
    const std::string* const source = node.attr<std::string>("send_device");
    const std::string* const edge = node.attr<std::string>("tensor_name");
    const bool* const fed = node.attr<bool>("client_terminated");
    if (source != nullptr && (fed == nullptr || !*fed)) report->set_from_device(*source);
    if (edge != nullptr) report->set_tensor(TensorOf(*edge));
    return;
  }
  if (auto resource = ResourceOf(node, device)) *report->mutable_resource() = *std::move(resource);
}

}  // namespace

std::optional<wire::ResourceName> ResourceOf(const Node& node, const std::string& device) {
  const Node* maker = &node;
  int input = node.op().used_input;
  for (int hop = 0; maker->attr<std::string>("shared_name") == nullptr; ++hop, input = 0) {
    if (hop == kHandleHopsMax || maker->num_inputs() <= input) return std::nullopt;
    if (hop > 0 && !PassesOn(*maker)) return std::nullopt;
    const EdgeType type = maker->input_type(input);
    if (hop == 0 && !type.ref && type.dtype != DType::kResource) return std::nullopt;
    maker = maker->input(input).node;
    if (maker == nullptr) return std::nullopt;
  }
  wire::ResourceName name;
  name.set_device(device);
  name.set_name(*maker->attr<std::string>("shared_name"));
  const std::string* container = maker->attr<std::string>("container");
  if (name.name().empty()) {
    name.set_name(maker->name());
    const std::string* const own = maker->attr<std::string>(kPrivateContainerAttr);
    if (own != nullptr) container = own;
  }
  name.set_container(container == nullptr || container->empty() ? kDefaultContainer : *container);
  return name;
}

void AddActivity(const Graph& graph, const std::string& device, const StepActivity& activity,
                 int64_t now_ns, wire::PartReport* part) {
  part->set_computing(part->computing() || activity.computing);
  absl::flat_hash_map<const Node*, bool> waits;
  for (const StepActivity::Wait& wait : activity.waits) {
    AddWait(wait, device, now_ns, part->add_wait());
    waits[wait.node] = true;
  }
  for (const StepActivity::Loop& loop : activity.loops) {
    wire::LoopReport* const report = part->add_loop();
    report->set_name(loop.name);
    report->set_iteration(loop.iteration);
  }
  const auto held_up = NodesBehindWaits(activity);
  for (const Node* const node : graph.nodes()) {
    const wire::UseReport::Kind kind = KindOf(node->op());
    if (kind == wire::UseReport::OTHER) continue;
    auto resource = ResourceOf(*node, device);
    if (!resource.has_value()) continue;
    wire::UseReport* const use = part->add_use();
    use->set_node(node->name());
    use->set_op(node->op_name());
    *use->mutable_resource() = *std::move(resource);
    use->set_kind(kind);
    const auto behind = held_up.find(node);
    if (waits.contains(node)) {
      use->set_state(wire::UseReport::WAITS);
    } else if (behind != held_up.end()) {
      use->set_state(wire::UseReport::HELD_UP);
      use->set_behind(behind->second->name());
    }
  }
}

}  // namespace penstock
