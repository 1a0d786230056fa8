// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/memory_plan.h"

#include <algorithm>
#include <utility>

#include "core/compiler/memory/execution_order.h"
#include "core/compiler/memory/order_chain.h"
#include "core/compiler/memory/restoring.h"

namespace penstock {
namespace {

// Limits the search to about a second.
constexpr int64_t kVisitsMax = 5'000'000;

// Return whether the node is one that the plan added to read a tensor from a file (swap in), or to
// write it (swap out).
bool IsSwapIn(const Node& node) { return node.op_name() == "_SwapIn"; }
bool IsSwapOut(const Node& node) { return node.op_name() == "_SwapOut"; }

}  // namespace

MemoryPlan::MemoryPlan(Graph* graph, const CostTable& costs, std::vector<Node*> order, double limit)
    : graph_(*graph),
      costs_(costs),
      limit_(limit),
      model_(*graph, costs),
      order_(std::move(order)),
      profile_(model_.Profile(order_)),
      visits_left_(kVisitsMax) {
  near_limit_.resize(profile_.devices.size());
  FindNearLimit();
  FindConditional();
}

void MemoryPlan::FindNearLimit() {
  if (limit_ <= 0) return;  // there is no limit: the plan only predicts
  const std::vector<WorstPeak>& worst = AtWorst();
  for (size_t d = 0; d < near_limit_.size(); ++d) {
    const bool near =
        profile_.devices[d].peak_bytes > kNearLimitShare * limit_ || worst[d].bytes > limit_;
    near_limit_[d] = near_limit_[d] || near;
  }
}

bool MemoryPlan::IsNearLimit() const { return std::ranges::count(near_limit_, true) > 0; }

void MemoryPlan::FindConditional() {
  conditional_.assign(graph_.max_id(), false);
  for (const Node* node : order_) {
    bool found = node->op().flow == FlowOp::kSwitch;
    for (const Endpoint& in : node->inputs()) {
      found = found || in.node == nullptr || conditional_[in.node->id()];
    }
    for (const Node* before : node->control_inputs()) {
      found = found || conditional_[before->id()];
    }
    conditional_[node->id()] = found;
  }
}

bool MemoryPlan::IsLargeSum(const Node& node) const {
  if (!node.op().aggregate || node.num_inputs() < 3) return false;
  const DType dtype = node.output_type(0).dtype;
  const bool exact = IsPlain(dtype) && dtype != DType::kHalf && dtype != DType::kBfloat16;
  return exact && near_limit_[model_.DeviceOf(node)] && !conditional_[node.id()] &&
         node.num_inputs() * model_.Bytes({const_cast<Node*>(&node), 0}) > limit_ / 4;
}

// Returns the nodes that take the place of `sum`, in order.
StatusOr<std::vector<Node*>> MemoryPlan::Split(Node* sum) {
  std::vector<Node*> chain;
  Endpoint total = sum->input(0);
  for (int i = 1; i < sum->num_inputs(); ++i) {
    Attrs attrs = sum->attrs();
    attrs["N"] = int64_t{2};
    ASSIGN_OR_RETURN(Node * node,
                     graph_.AddNode({.name = graph_.UniqueName(StrCat("_sum_", sum->name())),
                                     .op = sum->op_name(),
                                     .inputs = {total, sum->input(i)},
                                     .control_inputs = sum->control_inputs(),
                                     .attrs = std::move(attrs),
                                     .device = sum->requested_device()}));
    graph_.set_assigned_device(node, sum->assigned_device());
    model_.AddCopy(*node, *sum);
    chain.push_back(node);
    total = {node, 0};
  }
  RETURN_IF_ERROR(graph_.ReplaceUses({sum, 0}, total));
  for (Node* after : std::vector<Node*>(sum->control_outputs())) {
    graph_.AddControlEdge(total.node, after);
  }
  graph_.RemoveNode(sum);
  return chain;
}

Status MemoryPlan::SplitSums() {
  worst_.reset();
  std::vector<Node*> order;
  for (Node* node : order_) {
    if (!IsLargeSum(*node)) {
      order.push_back(node);
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<Node*> chain, Split(node));
    order.insert(order.end(), chain.begin(), chain.end());
  }
  order_ = std::move(order);
  conditional_.resize(graph_.max_id());
  profile_ = model_.Profile(order_);
  return OkStatus();
}

void MemoryPlan::LowerByOrder() {
  worst_.reset();
  order_ = LowPeakOrder(model_, graph_, order_, near_limit_, limit_);
  profile_ = model_.Profile(order_);
}

Status MemoryPlan::LowerBy(Method means) {
  while (!Fits() && visits_left_ > 0) {
    ASSIGN_OR_RETURN(const bool lowered, LowerOnce(means));
    if (!lowered) break;
  }
  return OkStatus();
}

// Returns the device's buffers of MinBufferBytes() or more, without tensors from other tasks, that
// were made before `position` and are next used after it. Those with the largest product of bytes
// and lifetime come first.
std::vector<int> MemoryPlan::CandidatesAt(int device, int position) const {
  std::vector<std::pair<double, int>> found;
  for (size_t b = 0; b < profile_.buffers.size(); ++b) {
    const Buffer& buffer = profile_.buffers[b];
    if (!buffer.counted || buffer.received || buffer.device != device ||
        buffer.bytes < MinBufferBytes() || buffer.begin >= position || buffer.end <= position) {
      continue;
    }
    found.emplace_back(-buffer.bytes * (buffer.end - buffer.begin), static_cast<int>(b));
  }
  std::sort(found.begin(), found.end());
  std::vector<int> candidates;
  for (const auto& [weight, buffer] : found) candidates.push_back(buffer);
  return candidates;
}

StatusOr<bool> MemoryPlan::LowerOnce(Method means) {
  worst_.reset();
  const auto device =
      std::max_element(profile_.devices.begin(), profile_.devices.end(),
                       [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; });
  const int index = static_cast<int>(device - profile_.devices.begin());
  const double excess = profile_.Excess(limit_);
  for (const int buffer : CandidatesAt(index, device->peak_at)) {
    Restoring attempt(this, buffer, device->peak_at, means);
    StatusOr<bool> applied = attempt.Apply();
    if (applied.ok() && *applied) {
      visits_left_ -= static_cast<int64_t>(order_.size());
      MemoryProfile profile = model_.Profile(order_);
      if (profile.Excess(limit_) < excess) {
        profile_ = std::move(profile);
        (means == Method::kSwap ? num_swapped_ : num_recomputed_) +=
            means == Method::kSwap ? 1 : attempt.num_added();
        return true;
      }
    }
    attempt.Undo();
    RETURN_IF_ERROR(applied.status());
    if (visits_left_ <= 0) break;
  }
  return false;
}

const std::vector<WorstPeak>& MemoryPlan::AtWorst() const {
  if (!worst_) worst_ = WorstPeaks(model_, order_);
  return *worst_;
}

bool MemoryPlan::AlwaysFits() const {
  return std::ranges::all_of(AtWorst(), [&](const WorstPeak& p) { return p.bytes <= limit_; });
}

std::vector<bool> MemoryPlan::NodesToOrder(double bytes_min) const {
  std::vector<bool> to_order(graph_.max_id()), updated(graph_.max_id());
  for (const MemoryProfile::Update& update : profile_.updates) updated[update.state->id()] = true;
  for (const Buffer& buffer : profile_.buffers) {
    // Variables that the step updates count, too: an update may need a copy.
    const bool counted = buffer.counted || updated[buffer.value.node->id()];
    if (!counted || buffer.bytes < bytes_min) continue;
    for (const Endpoint& value : buffer.values) {
      if (!buffer.received) to_order[value.node->id()] = true;
      for (const OutEdge& edge : value.node->out_edges()) {
        const bool same_device = model_.DeviceOf(*edge.dst) == buffer.device;
        if (edge.src_index == value.index && same_device) to_order[edge.dst->id()] = true;
      }
    }
  }
  // Nodes that update variables count, too: a small update of a large variable reads no large
  // buffer.
  for (const MemoryProfile::Update& update : profile_.updates) to_order[update.by->id()] = true;
  return to_order;
}

void MemoryPlan::KeepOrder() {
  FindNearLimit();
  Chain(NodesToOrder(MinBufferBytes()));
  const std::vector<bool> all(graph_.max_id(), true);
  if (!AlwaysFits()) Chain(all);
  for (const double bytes_min : {MinBufferBytes(), 0.0}) {
    if (!AlwaysFits()) Chain(all, WaitsBetweenDevices(bytes_min));
  }
}

// Returns whether a chain of all nodes contains the node. Constants are in no chain: they do not
// count, and the partitioner copies only constants without control inputs to the devices of their
// readers.
bool MemoryPlan::IsChained(const Node& node) const {
  return near_limit_[model_.DeviceOf(node)] && !conditional_[node.id()] && !node.op().is_constant;
}

// Makes devices near the limit keep the planned order of what they send and receive: the node that
// comes after the reader of a sent tensor waits for that reader, and another device makes a tensor
// for this one only after the node that comes before. Looks at buffers of at least `bytes_min`
// bytes.
MemoryPlan::Waits MemoryPlan::WaitsBetweenDevices(double bytes_min) const {
  std::vector<int> position_of(graph_.max_id());
  std::vector<std::vector<Node*>> chains(near_limit_.size());  // by device
  std::vector<bool> updated(graph_.max_id());
  for (size_t i = 0; i < order_.size(); ++i) {
    Node* const node = order_[i];
    position_of[node->id()] = static_cast<int>(i);
    if (!IsChained(*node) || IsSwapIn(*node) || IsSwapOut(*node)) continue;
    chains[model_.DeviceOf(*node)].push_back(node);
  }
  for (const MemoryProfile::Update& update : profile_.updates) updated[update.state->id()] = true;
  // Returns the first node of the device's chain after the given one.
  const auto next = [&](int device, const Node& node) {
    return std::ranges::upper_bound(chains[device], position_of[node.id()], {},
                                    [&](const Node* other) { return position_of[other->id()]; });
  };
  Waits waits(graph_.max_id());
  for (const Buffer& buffer : profile_.buffers) {
    const int device = buffer.device;
    const Node& maker = *buffer.value.node;
    if (!near_limit_[device] || buffer.bytes < bytes_min) continue;
    if (buffer.received) {
      const auto after = next(device, maker);
      if (after == chains[device].begin() || conditional_[maker.id()]) continue;
      waits[maker.id()].push_back(*std::prev(after));
      continue;
    }
    if (!buffer.counted && !updated[maker.id()]) continue;
    for (const Endpoint& value : buffer.values) {
      for (const OutEdge& edge : value.node->out_edges()) {
        const bool sent = !model_.ShareMemory(model_.DeviceOf(*edge.dst), device);
        if (edge.src_index != value.index || !sent || conditional_[edge.dst->id()]) continue;
        const auto after = next(device, *edge.dst);
        if (after != chains[device].end()) waits[(*after)->id()].push_back(edge.dst);
      }
    }
  }
  return waits;
}

// Adds control edges between the wanted nodes of each device that is near the limit, and from the
// nodes in `waits`.
void MemoryPlan::Chain(const std::vector<bool>& wanted, const Waits& waits) {
  worst_.reset();
  OrderChain chain(&graph_, order_);
  std::vector<OrderChain::Ends> ends(model_.devices().size());  // by device
  for (Node* node : order_) {
    chain.Visit(*node);
    if (!waits.empty()) {
      for (Node* before : waits[node->id()]) chain.WaitForNode(before, node);
    }
    const int device = model_.DeviceOf(*node);
    if (!wanted[node->id()] || !IsChained(*node)) continue;
    if (IsSwapOut(*node)) {
      chain.AddEnd(node, &ends[device]);
    } else if (IsSwapIn(*node)) {
      chain.WaitFor(ends[device], node);
    } else {
      chain.Append(node, &ends[device]);
    }
  }
}

}  // namespace penstock
