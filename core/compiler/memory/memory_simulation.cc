// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/memory_simulation.h"

#include <algorithm>
#include <utility>

#include "core/op/flops.h"

namespace penstock {
namespace {

using Kind = Sharing::Kind;

// Returns the bytes of a variable by its attributes `dtype` and `shape`; 0 if they are missing or
// the shape is not fully known.
double StateBytes(const Node& state) {
  const EdgeType* const type = state.attr<EdgeType>("dtype");
  const PartialShape* const partial = state.attr<PartialShape>("shape");
  if (type == nullptr || partial == nullptr) return 0;
  return AllocatedBytes(Elements(*partial) * static_cast<double>(SizeOf(type->dtype)));
}

}  // namespace

MemorySimulation::MemorySimulation(const MemoryModel& model, absl::Span<Node* const> order)
    : model_(model),
      order_(order),
      bytes_(model.devices_.size()),
      own_bytes_(model.devices_.size()),
      buffer_of_(model.output_bytes_.size()),
      state_of_(model.output_bytes_.size()) {
  profile_.devices.resize(model.devices_.size());
}

MemoryProfile MemorySimulation::Run() {
  for (auto& device : profile_.devices) device.during.reserve(order_.size());
  for (const Node* node : order_) RunNode(*node);
  for (size_t b = 0; b < uses_.size(); ++b) {
    if (uses_[b].left > 0) profile_.buffers[b].end = position_;
  }
  return std::move(profile_);
}

void MemorySimulation::RunNode(const Node& node) {
  CopyStateThatIsRead(node);
  MakeOutputs(node);
  for (size_t d = 0; d < bytes_.size(); ++d) {
    MemoryProfile::Device& device = profile_.devices[d];
    device.during.push_back(bytes_[d]);
    device.peak_own_bytes = std::max(device.peak_own_bytes, own_bytes_[d]);
    if (bytes_[d] <= device.peak_bytes) continue;
    device.peak_bytes = bytes_[d];
    device.peak_at = position_;
  }
  for (int i = 0; i < node.num_inputs(); ++i) {
    // The tensor has been sent at the latest when its reader runs.
    if (const int sent = SentBuffer(node, i); sent != kNone) Release(sent, 1);
    // A fetched tensor is kept until the step has ended.
    const int buffer = node.op().end == EndOp::kFetch ? kNone : InputBuffer(node, i);
    if (buffer != kNone) Release(buffer, 1);
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    const int buffer = buffer_of_[node.id()][i];
    if (buffer != kNone) Release(buffer, 0);
  }
  ++position_;
}

double MemorySimulation::ChangeInBytes(const Node& node) const {
  double change = 0;
  std::vector<int> freed;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const int b = InputBuffer(node, i);
    const bool seen = std::find(freed.begin(), freed.end(), b) != freed.end();
    if (b == kNone || seen || !uses_[b].counted || uses_[b].left != UsesOf(node, b)) continue;
    if (node.op().end == EndOp::kFetch) continue;
    freed.push_back(b);
    change -= profile_.buffers[b].bytes;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    const Sharing sharing = SharingOf(node, i);
    const bool read = std::any_of(node.out_edges().begin(), node.out_edges().end(),
                                  [i](const OutEdge& edge) { return edge.src_index == i; });
    if (!read || sharing.kind == Kind::kState || sharing.kind == Kind::kOutlivesStep) continue;
    const bool merges = sharing.kind == Kind::kView && sharing.input < 0;
    if (sharing.kind == Kind::kView && !(merges && MergeIsCopy(node))) {
      // A view of the input keeps the input's memory in use.
      const int from = merges ? LargestInput(node) : InputBuffer(node, sharing.input);
      if (std::find(freed.begin(), freed.end(), from) != freed.end()) {
        change += profile_.buffers[from].bytes;
      }
    } else {
      change += model_.Bytes({const_cast<Node*>(&node), i});
    }
  }
  return change;
}

// Returns the buffer that holds a value in the given memory, or kNone.
int MemorySimulation::Find(const Endpoint& value, int memory) const {
  if (memory != MemoryOf(*value.node)) {
    const auto received = received_.find({{value.node->id(), value.index}, memory});
    if (received != received_.end()) return received->second;
  }
  const std::vector<int>& made = buffer_of_[value.node->id()];
  return made.empty() ? kNone : made[value.index];  // empty: the back edge of a loop
}

int MemorySimulation::InputBuffer(const Node& node, int input) const {
  const Endpoint value = node.input(input);
  return value.node == nullptr ? kNone : Find(value, MemoryOf(node));
}

int MemorySimulation::SentBuffer(const Node& node, int input) const {
  const Endpoint value = node.input(input);
  if (value.node == nullptr || value.node->op().is_constant) return kNone;
  const int memory = MemoryOf(*value.node);
  return memory == MemoryOf(node) ? kNone : Find(value, memory);
}

int MemorySimulation::NewBuffer(const Endpoint& value, int device, double bytes, bool counted) {
  profile_.buffers.push_back(
      {value, device, bytes, position_, position_, /*received=*/false, counted});
  uses_.push_back({0, counted});
  if (counted) Count(device, profile_.buffers.back(), 1);
  return static_cast<int>(profile_.buffers.size()) - 1;
}

void MemorySimulation::Count(int device, const Buffer& buffer, double sign) {
  bytes_[device] += sign * buffer.bytes;
  if (!buffer.received) own_bytes_[device] += sign * buffer.bytes;
}

// Returns the node that made the handle. Follows the handle back through all nodes that pass it on.
const Node* MemorySimulation::StateOf(const Node& node, int input) const {
  const Node* const source = node.input(input).node;
  return source == nullptr ? nullptr : state_of_[source->id()];
}

int MemorySimulation::StateBuffer(const Node& node, int input, int device) {
  const Node* const state = StateOf(node, input);
  if (state == nullptr) return kNone;
  const auto [found, added] = state_buffer_.try_emplace(state->id(), kNone);
  if (added) {
    const double bytes = StateBytes(*state);
    profile_.devices[device].state_bytes += bytes;
    found->second = NewBuffer({const_cast<Node*>(state), 0}, device, bytes, false);
  }
  return found->second;
}

void MemorySimulation::MakeOutputs(const Node& node) {
  const int device = model_.DeviceOf(node);
  std::vector<int>& made = buffer_of_[node.id()];
  made.assign(node.num_outputs(), kNone);
  for (int i = 0; i < node.num_outputs(); ++i) {
    const Sharing sharing = SharingOf(node, i);
    const Endpoint value = {const_cast<Node*>(&node), i};
    const double bytes = model_.Bytes(value);
    const EdgeType type = node.output_type(i);
    switch (sharing.kind) {
      case Kind::kState: {
        if (state_of_[node.id()] == nullptr) state_of_[node.id()] = StateOf(node, sharing.input);
        made[i] = StateBuffer(node, sharing.input, device);
        if (type.refers_to_state()) made[i] = kNone;
        break;
      }
      case Kind::kOutlivesStep:
        if (type.refers_to_state()) {
          state_of_[node.id()] = &node;
          break;
        }
        made[i] = NewBuffer(value, device, bytes, false);
        if (node.op().end == EndOp::kFeed) profile_.devices[device].fed_bytes += bytes;
        break;
      case Kind::kView:
        made[i] =
            sharing.input < 0 ? MergedBuffer(node, value) : InputBuffer(node, sharing.input);
        break;
      case Kind::kReuses:
        made[i] = ReusedBuffer(node, i, sharing);
        [[fallthrough]];
      case Kind::kNew:
        if (made[i] == kNone) made[i] = NewBuffer(value, device, bytes, true);
        break;
    }
    if (made[i] == kNone) continue;
    profile_.buffers[made[i]].values.push_back(value);
    CountUses(node, i, made[i]);
  }
}

// Returns the largest buffer that counts among those of the node's inputs; if none counts, any one;
// kNone if the inputs take no memory.
int MemorySimulation::LargestInput(const Node& node) const {
  const auto counted_bytes = [this](int b) {
    return uses_[b].counted ? profile_.buffers[b].bytes : -1.0;
  };
  int largest = kNone;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const int b = InputBuffer(node, i);
    if (b == kNone) continue;
    if (largest == kNone || counted_bytes(b) > counted_bytes(largest)) largest = b;
  }
  return largest;
}

// Returns whether a Merge counts as if it copied its input. Its inputs have different buffers, and
// the largest one may be in use although the Merge forwards another: it is the value of a variable,
// or other nodes read it.
bool MemorySimulation::MergeIsCopy(const Node& node) const {
  int first = kNone;
  bool state = false, differ = false;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const int b = InputBuffer(node, i);
    if (b == kNone) continue;
    if (first == kNone) first = b;
    differ = differ || b != first;
    state = state || profile_.buffers[b].is_state();
  }
  if (!differ || state) return differ;
  return !OnlyMergeReads(profile_.buffers[LargestInput(node)].value, node);
}

// Returns whether `merge` is the only reader of the value's buffer, through views and Switches.
bool MemorySimulation::OnlyMergeReads(const Endpoint& value, const Node& merge) const {
  std::vector<Endpoint> open = {value};
  while (!open.empty()) {
    const Endpoint read = open.back();
    open.pop_back();
    for (const OutEdge& edge : read.node->out_edges()) {
      if (edge.src_index != read.index || edge.dst == &merge) continue;
      bool passed_on = false;
      for (int i = 0; i < edge.dst->num_outputs(); ++i) {
        const Sharing sharing = SharingOf(*edge.dst, i);
        if (sharing.kind != Kind::kView || sharing.input != edge.dst_index) continue;
        open.push_back({edge.dst, i});
        passed_on = true;
      }
      if (!passed_on) return false;
    }
  }
  return true;
}

// Returns the buffer of the output of a Merge, which forwards any one of its inputs. If no other
// node reads the largest one, it bounds the memory whichever branch is taken.
int MemorySimulation::MergedBuffer(const Node& node, const Endpoint& value) {
  if (!MergeIsCopy(node)) return LargestInput(node);
  double bytes = model_.Bytes(value);
  for (int i = 0; i < node.num_inputs(); ++i) {
    const int b = InputBuffer(node, i);
    if (b != kNone) bytes = std::max(bytes, profile_.buffers[b].bytes);
  }
  return NewBuffer(value, model_.DeviceOf(node), bytes, true);
}

// Returns the buffer of an input that the output takes over, by the rules of
// KernelContext::ForwardOrAllocate; kNone if there is none. Never an old value of a variable: it
// is free to be reused only if an update has copied it before, which not every order does.
int MemorySimulation::ReusedBuffer(const Node& node, int output, const Sharing& sharing) const {
  const double bytes = model_.Bytes({const_cast<Node*>(&node), output});
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (sharing.input >= 0 && i != sharing.input) continue;
    const int b = InputBuffer(node, i);
    if (b == kNone || !uses_[b].counted || uses_[b].left != 1) continue;
    if (profile_.buffers[b].is_state()) continue;
    const bool same_type = node.input_type(i).dtype == node.output_type(output).dtype;
    if (same_type && profile_.buffers[b].bytes == bytes) return b;
  }
  return kNone;
}

int MemorySimulation::UsesOf(const Node& node, int buffer) const {
  int uses = 0;
  for (int i = 0; i < node.num_inputs(); ++i) uses += InputBuffer(node, i) == buffer;
  return uses;
}

// Counts the inputs that read the output, or to which it is sent. Makes a buffer for the received
// copy if an input is in another memory.
void MemorySimulation::CountUses(const Node& node, int output, int buffer) {
  const int memory = MemoryOf(node);
  for (const OutEdge& edge : node.out_edges()) {
    if (edge.src_index != output) continue;
    const int reader_memory = MemoryOf(*edge.dst);
    ++uses_[buffer].left;
    if (reader_memory == memory || node.op().is_constant) continue;
    const auto [found, added] = received_.try_emplace({{node.id(), output}, reader_memory}, kNone);
    if (added) {
      const int device = model_.DeviceOf(*edge.dst);
      const double bytes = model_.Bytes({const_cast<Node*>(&node), output});
      Buffer copy = {{const_cast<Node*>(&node), output}, device, bytes, position_, position_, true};
      copy.values.push_back(copy.value);
      found->second = static_cast<int>(profile_.buffers.size());
      Count(device, copy, 1);
      profile_.buffers.push_back(std::move(copy));
      uses_.push_back({0, true});
    }
    ++uses_[found->second].left;
  }
}

// Records the updates that the node makes. If other nodes have still to read snapshots of a
// variable, adds a buffer for the copy into which the update writes.
void MemorySimulation::CopyStateThatIsRead(const Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!Updates(node, i)) continue;
    const Node* const state = StateOf(node, i);
    if (state != nullptr) profile_.updates.push_back({state, &node});
    const auto known = state == nullptr ? state_buffer_.end() : state_buffer_.find(state->id());
    if (known == state_buffer_.end()) continue;
    const int old = known->second;
    if (uses_[old].left <= UsesOf(node, old)) continue;
    const int device = model_.DeviceOf(node);
    profile_.buffers[old].begin = position_;
    uses_[old].counted = profile_.buffers[old].counted = true;
    Count(profile_.buffers[old].device, profile_.buffers[old], 1);
    known->second = NewBuffer({const_cast<Node*>(state), 0}, device, profile_.buffers[old].bytes,
                              /*counted=*/false);
  }
}

void MemorySimulation::Release(int buffer, int uses) {
  Buffer& released = profile_.buffers[buffer];
  uses_[buffer].left -= uses;
  released.end = position_;
  if (uses_[buffer].left > 0 || !uses_[buffer].counted) return;
  uses_[buffer].counted = false;
  Count(released.device, released, -1);
}

}  // namespace penstock
