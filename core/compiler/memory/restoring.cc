// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/restoring.h"

#include <algorithm>

#include "core/compiler/memory/buffer_sharing.h"
#include "core/op/device_name.h"

namespace penstock {
namespace {

// The assumed rate of a file system. Reading a swapped tensor begins early enough for this rate.
constexpr double kFileBytesPerNano = 0.5;
// A node may run a second time if it takes at most this long per byte saved. A node with one
// operation per element always may.
constexpr double kCheapNanosPerByte = 1;

bool IsPlainValue(const EdgeType& type) { return !type.ref && IsPlain(type.dtype); }

}  // namespace

Restoring::Restoring(MemoryPlan* plan, int buffer, int position, MemoryPlan::Method means)
    : plan_(*plan),
      graph_(plan->graph_),
      buffer_(plan->profile_.buffers[buffer]),
      index_(buffer),
      position_(position),
      method_(means),
      first_id_(graph_.max_id()),
      order_before_(plan->order_),
      position_of_(graph_.max_id()) {
  for (size_t i = 0; i < order_before_.size(); ++i) {
    position_of_[order_before_[i]->id()] = static_cast<int>(i);
  }
  for (size_t b = 0; b < plan->profile_.buffers.size(); ++b) {
    const auto& its = plan->profile_.buffers[b];
    if (its.received) continue;
    for (const Endpoint& value : its.values) {
      buffers_[{value.node->id(), value.index}] = static_cast<int>(b);
    }
  }
}

StatusOr<bool> Restoring::Apply() {
  if (!FindReaders()) return false;
  for (const Reader& reader : readers_) {
    Endpoint restored;
    ASSIGN_OR_RETURN(const bool done, Restore(reader.value, 0, &restored));
    if (!done) return false;
    RETURN_IF_ERROR(graph_.SetInput(reader.node, reader.input, restored));
  }
  std::vector<Node*> order;
  for (int at = 0; at < static_cast<int>(order_before_.size()); ++at) {
    for (const auto& [before, node] : added_) {
      if (before == at) order.push_back(node);
    }
    order.push_back(order_before_[at]);
  }
  plan_.order_ = std::move(order);
  num_added_ = static_cast<int>(added_.size());
  return true;
}

void Restoring::Undo() {
  for (const Reader& reader : readers_) {
    CHECK_OK(graph_.SetInput(reader.node, reader.input, reader.value));
  }
  graph_.RemoveNodesFrom(first_id_);
  plan_.order_ = order_before_;
}

// Finds the inputs that read the buffer after `position_`. Returns false if there are none, or if
// one of them cannot be changed.
bool Restoring::FindReaders() {
  const int device = buffer_.device;
  for (const Endpoint& value : buffer_.values) {
    const int made_at = position_of_[value.node->id()];
    // A value made after `position_` is a view, or is computed in place: its node is one of the
    // late readers.
    if (made_at > position_) continue;
    if (plan_.model_.DeviceOf(*value.node) != device || made_at == position_) return false;
    last_early_ = std::max(last_early_, made_at);
    for (const OutEdge& edge : value.node->out_edges()) {
      if (edge.src_index != value.index) continue;
      const int at = position_of_[edge.dst->id()];
      const bool same_device = plan_.model_.DeviceOf(*edge.dst) == device;
      if (at < position_) {
        last_early_ = std::max(last_early_, same_device ? at : 0);
        continue;
      }
      if (!same_device) continue;  // the other device got a copy as soon as the value was computed
      const bool plain = IsPlainValue(edge.dst->input_type(edge.dst_index));
      if (at == position_ || !plain || plan_.conditional_[edge.dst->id()]) return false;
      readers_.push_back({edge.dst, edge.dst_index, value});
    }
  }
  if (readers_.empty()) return false;
  std::sort(readers_.begin(), readers_.end(), [&](const Reader& a, const Reader& b) {
    return std::pair(position_of_[a.node->id()], a.input) <
           std::pair(position_of_[b.node->id()], b.input);
  });
  first_late_ = position_of_[readers_.front().node->id()];
  return true;
}

int Restoring::BufferOf(const Endpoint& value) const {
  const auto found = buffers_.find({value.node->id(), value.index});
  return found == buffers_.end() ? -1 : found->second;
}

// Returns whether a value is in memory anyway when the first late reader runs.
bool Restoring::IsInMemory(const Endpoint& value) const {
  const int b = BufferOf(value);
  if (b < 0) return true;  // the value is from another task, or takes no memory
  const MemoryProfile::Buffer& its = plan_.profile_.buffers[b];
  if (!its.counted || (b != index_ && its.bytes <= buffer_.bytes / 8)) return true;
  if (b == index_ || its.end < first_late_) return false;
  // A later node may have written another value into the same memory.
  const auto at = std::find(its.values.begin(), its.values.end(), value);
  return std::none_of(at + 1, its.values.end(), [&](const Endpoint& later) {
    return SharingOf(*later.node, later.index).kind == Sharing::Kind::kReuses &&
           position_of_[later.node->id()] <= first_late_;
  });
}

bool Restoring::IsCheap(const Node& node) const {
  const OpDef& op = node.op();
  if (op.stateful || op.acts_outside || op.flops != nullptr || op.flow != FlowOp::kNone ||
      op.end != EndOp::kNone || op.is_placeholder || plan_.conditional_[node.id()]) {
    return false;
  }
  for (const EdgeType& type : node.output_types()) {
    if (!IsPlainValue(type)) return false;
  }
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Endpoint in = node.input(i);
    // The value of a variable that is read through a reference may have changed.
    if (in.node == nullptr || !IsPlainValue(in.node->output_type(in.index))) return false;
  }
  if (!plan_.costs_.IsMeasured(node)) return true;
  const StatusOr<DeviceName> device = DeviceName::Parse(node.assigned_device());
  return device.ok() &&
         plan_.costs_.NodeNanos(node, {.name = *device}) <= kCheapNanosPerByte * buffer_.bytes;
}

// Returns whether the value's node makes it as a view of an input in the same buffer.
bool Restoring::IsViewOfInput(const Endpoint& value) const {
  const Sharing sharing = SharingOf(*value.node, value.index);
  if (sharing.kind != Sharing::Kind::kView) return false;
  for (int i = 0; i < value.node->num_inputs(); ++i) {
    const Endpoint in = value.node->input(i);
    const bool shared = sharing.input < 0 || sharing.input == i;
    if (shared && in.node != nullptr && BufferOf(in) == index_) return true;
  }
  return false;
}

StatusOr<bool> Restoring::Restore(const Endpoint& value, int depth, Endpoint* restored) {
  const Value key = {value.node->id(), value.index};
  if (const auto known = restored_.find(key); known != restored_.end()) {
    *restored = known->second;
    return true;
  }
  const bool swap = method_ == MemoryPlan::Method::kSwap && !IsViewOfInput(value);
  ASSIGN_OR_RETURN(const bool done,
                   swap ? SwapThroughFile(value, restored) : CopyNode(value, depth, restored));
  if (done) restored_[key] = *restored;
  return done;
}

StatusOr<bool> Restoring::CopyNode(const Endpoint& value, int depth, Endpoint* restored) {
  const Node& node = *value.node;
  if (depth == kDepthMax || !IsCheap(node)) return false;
  std::vector<Endpoint> inputs = node.inputs();
  for (Endpoint& input : inputs) {
    const bool swapped_in = method_ == MemoryPlan::Method::kSwap && BufferOf(input) != index_;
    if (swapped_in || IsInMemory(input)) continue;
    Endpoint copy;
    ASSIGN_OR_RETURN(const bool done, Restore(input, depth + 1, &copy));
    if (!done) return false;
    input = copy;
  }
  ASSIGN_OR_RETURN(Node * copy, Add({.name = StrCat("_again_", node.name()),
                                     .op = node.op_name(),
                                     .inputs = std::move(inputs),
                                     .attrs = node.attrs(),
                                     .device = node.requested_device()},
                                    node.assigned_device(), first_late_));
  plan_.model_.AddCopy(*copy, node);
  // The copy computes all outputs of the node.
  for (int i = 0; i < node.num_outputs(); ++i) restored_[{node.id(), i}] = {copy, i};
  *restored = {copy, value.index};
  return true;
}

StatusOr<bool> Restoring::SwapThroughFile(const Endpoint& value, Endpoint* restored) {
  const EdgeType type = value.node->output_type(value.index);
  const std::string& device = value.node->assigned_device();
  const StatusOr<DeviceName> name = DeviceName::Parse(device);
  const bool cpu = name.ok() && name->type == "CPU";
  if (!cpu || !IsPlainValue(type) || plan_.conditional_[value.node->id()]) return false;
  const std::string& of = value.node->name();
  ASSIGN_OR_RETURN(Node * out, Add({.name = StrCat("_swap_out_", of),
                                    .op = "_SwapOut",
                                    .inputs = {value},
                                    .attrs = {{"T", type}}},
                                   device, SwapOutPosition(*value.node)));
  plan_.model_.AddNode(*out, sizeof(void*));
  ASSIGN_OR_RETURN(Node * in, Add({.name = StrCat("_swap_in_", of),
                                   .op = "_SwapIn",
                                   .inputs = {{out, 0}},
                                   .attrs = {{"T", type}}},
                                  device, SwapInPosition()));
  plan_.model_.AddNode(*in, plan_.model_.Bytes(value));
  *restored = {in, 0};
  return true;
}

StatusOr<Node*> Restoring::Add(Graph::NodeSpec spec, const std::string& device, int position) {
  spec.name = graph_.UniqueName(spec.name);
  ASSIGN_OR_RETURN(Node * node, graph_.AddNode(std::move(spec)));
  graph_.set_assigned_device(node, device);
  if (static_cast<size_t>(node->id()) >= plan_.conditional_.size()) {
    plan_.conditional_.resize(node->id() + 1);
  }
  plan_.conditional_[node->id()] = false;
  added_.emplace_back(position, node);
  return node;
}

// Returns the position before which the file must be written: as late as the memory allows.
int Restoring::SwapOutPosition(const Node& maker) const {
  const std::vector<double>& during = plan_.profile_.devices[buffer_.device].during;
  int at = std::max(last_early_, position_of_[maker.id()]) + 1;
  while (at < position_ && during[at] <= plan_.limit_) ++at;
  return at;
}

// Returns the position at which reading begins: early enough for the file system's rate, but not
// before the memory allows.
int Restoring::SwapInPosition() const {
  const std::vector<double>& during = plan_.profile_.devices[buffer_.device].during;
  double nanos = buffer_.bytes / kFileBytesPerNano;
  int at = first_late_;
  while (at - 1 > position_ && during[at - 1] <= plan_.limit_ && nanos > 0) {
    const Node& node = *order_before_[--at];
    const StatusOr<DeviceName> name = DeviceName::Parse(node.assigned_device());
    if (name.ok()) nanos -= plan_.costs_.NodeNanos(node, {.name = *name});
  }
  return at;
}

}  // namespace penstock
