// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/buffer_ranges.h"

#include <algorithm>

#include "core/compiler/memory/buffer_sharing.h"

namespace penstock {
namespace {

using Buffer = MemoryProfile::Buffer;
using Kind = Sharing::Kind;

// How many updates FindUsersOfCopies compares with a later one, at most.
constexpr size_t kFirstMax = 8;

// Returns true for variables, constants and feeds, which do not count.
bool IsKept(const Buffer& buffer) {
  if (buffer.received) return false;
  return buffer.is_state() ||
         SharingOf(*buffer.value.node, buffer.value.index).kind == Kind::kOutlivesStep;
}

bool Reuses(const Endpoint& value) {
  return SharingOf(*value.node, value.index).kind == Kind::kReuses;
}

double NumWriters(const Buffer& buffer) {
  double writers = 0;
  for (const Endpoint& value : buffer.values) writers += value == buffer.value || Reuses(value);
  return writers;
}

// Returns what `of` has for an input whose memory the value's node passes on or reuses; `none` if
// there is no such input.
template <class T>
T OfSharedInput(const Endpoint& value, const std::map<std::pair<int, int>, T>& of, T none) {
  const Sharing sharing = SharingOf(*value.node, value.index);
  for (int i = 0; i < value.node->num_inputs(); ++i) {
    const Endpoint in = value.node->input(i);
    if (in.node == nullptr || (sharing.input >= 0 && i != sharing.input)) continue;
    const auto found = of.find({in.node->id(), in.index});
    if (found != of.end()) return found->second;
  }
  return none;
}

}  // namespace

BufferRanges::BufferRanges(const MemoryModel& model, const MemoryProfile& profile, double bytes_min)
    : model_(model), bytes_min_(bytes_min), small_(model.devices().size()) {
  for (const Buffer& buffer : profile.buffers) {
    if (!IsKept(buffer)) AddRanges(buffer);
    if (buffer.is_state()) variables_[buffer.value.node->id()].buffers.push_back(&buffer);
  }
  for (const MemoryProfile::Update& update : profile.updates) AddCopy(update);
}

// Calls `add` for each node that has to read the value before the buffer is freed. A reader on
// another task counts as well, because the buffer is needed until the value has been sent.
template <class Add>
void BufferRanges::ForReaders(const Buffer& buffer, const Endpoint& value, Add add) const {
  const bool sends = model_.ShareMemory(model_.DeviceOf(*value.node), buffer.device);
  for (const OutEdge& edge : value.node->out_edges()) {
    if (edge.src_index != value.index) continue;
    if (sends || model_.ShareMemory(model_.DeviceOf(*edge.dst), buffer.device)) add(edge.dst);
  }
}

// Adds a range for each node that writes to the buffer.
void BufferRanges::AddRanges(const Buffer& buffer) {
  if (buffer.bytes < bytes_min_) {
    small_[buffer.device] += buffer.bytes * NumWriters(buffer);
    return;
  }
  std::map<Value, int> range_of;
  for (const Endpoint& value : buffer.values) {
    const bool first = value == buffer.value;
    int range = first ? -1 : OfSharedInput(value, range_of, -1);
    if (range < 0 || Reuses(value)) {
      const int from = range;
      range = static_cast<int>(ranges_.size());
      ranges_.push_back(
          {value, buffer.device, buffer.bytes, buffer.received, /*maker=*/value.node});
      if (from >= 0) reuses_.push_back({from, range, value.node});
    }
    range_of[{value.node->id(), value.index}] = range;
    std::vector<const Node*>& users = ranges_[range].users;
    if (!(first && buffer.received)) users.push_back(value.node);
    ForReaders(buffer, value, [&](const Node* reader) { users.push_back(reader); });
  }
}

// Adds the copy that an update makes of a variable whose old value may still be read.
void BufferRanges::AddCopy(const MemoryProfile::Update& update) {
  Variable& variable = variables_[update.state->id()];
  if (variable.copies.empty()) FindReaders(&variable);
  variable.copies.push_back({update.by});
  const bool read = std::ranges::any_of(
      variable.readers, [&](const SnapshotReader& reader) { return reader.reader != update.by; });
  if (!read) return;
  const int device = model_.DeviceOf(*update.by);
  const double bytes = variable.buffers.back()->bytes;
  if (bytes < bytes_min_) {
    small_[device] += bytes;
    return;
  }
  variable.copies.back().range = static_cast<int>(ranges_.size());
  ranges_.push_back({.value = {const_cast<Node*>(update.state), 0},
                     .device = device,
                     .bytes = bytes,
                     .maker = update.by});
}

// Finds the readers of the variable's values. A reader of a view needs the value that the variable
// had when the snapshot was taken, not when the node of the view ran.
void BufferRanges::FindReaders(Variable* variable) const {
  for (const Buffer* buffer : variable->buffers) {
    std::map<Value, const Node*> taken_by;
    for (const Endpoint& value : buffer->values) {
      const Node* const taken = OfSharedInput<const Node*>(value, taken_by, value.node);
      taken_by[{value.node->id(), value.index}] = taken;
      ForReaders(*buffer, value, [&](const Node* reader) {
        variable->readers.push_back({taken, reader});
      });
    }
  }
  std::ranges::stable_sort(variable->readers, {},
                           [](const SnapshotReader& reader) { return reader.taken->id(); });
}

// Returns whether the ranges of the device have a copy of the variable.
bool BufferRanges::HasCopy(const Variable& variable, int device) const {
  return std::ranges::any_of(variable.copies, [&](const Copy& copy) {
    return copy.range >= 0 && IsWanted(copy.range, device);
  });
}

std::vector<const Node*> BufferRanges::Nodes() const {
  std::vector<const Node*> nodes;
  for (const BufferRange& range : ranges_) {
    nodes.push_back(range.maker);
    nodes.insert(nodes.end(), range.users.begin(), range.users.end());
  }
  for (const auto& [state, variable] : variables_) {
    if (!HasCopy(variable, kAnyDevice)) continue;
    for (const Copy& copy : variable.copies) nodes.push_back(copy.update);
    for (const SnapshotReader& reader : variable.readers) {
      nodes.push_back(reader.taken);
      nodes.push_back(reader.reader);
    }
  }
  return nodes;
}

// Finds, for each update of the variable, the nodes that may still read the value that the update
// replaces. Copies that no node may need take no memory.
void BufferRanges::FindUsersOfCopies(Precedes precedes, const Variable& variable, int device,
                                     std::vector<BufferRange>* ranges) const {
  if (!HasCopy(variable, device)) return;
  const std::vector<SnapshotReader>& readers = variable.readers;
  for (size_t begin = 0, end = 0; begin < readers.size(); begin = end) {
    const Node& taken = *readers[begin].taken;
    while (end < readers.size() && readers[end].taken == &taken) ++end;
    std::vector<const Node*> first;  // updates that copy what the snapshot holds
    for (const auto& [update, range] : variable.copies) {
      if (precedes(taken, *update)) {
        const auto is_earlier = [&, update = update](const Node* earlier) {
          return precedes(*earlier, *update);
        };
        if (std::ranges::any_of(first, is_earlier)) continue;  // that update has copied it
        if (first.size() < kFirstMax) first.push_back(update);
      }
      if (range < 0 || !IsWanted(range, device) || precedes(*update, taken)) continue;
      for (size_t r = begin; r < end; ++r) {
        const Node* const reader = readers[r].reader;
        if (reader == update || precedes(*reader, *update)) continue;
        (*ranges)[range].users.push_back(reader);
      }
    }
  }
  for (const Copy& copy : variable.copies) {
    if (copy.range >= 0 && (*ranges)[copy.range].users.empty()) (*ranges)[copy.range].bytes = 0;
  }
}

std::vector<BufferRange> BufferRanges::Get(Precedes precedes, int device) const {
  std::vector<BufferRange> ranges(ranges_.size());  // those of other devices stay empty
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (IsWanted(static_cast<int>(i), device)) ranges[i] = ranges_[i];
  }
  for (const auto& [state, variable] : variables_) {
    FindUsersOfCopies(precedes, variable, device, &ranges);
  }
  std::vector<int> memory_of(ranges.size());  // by range: the range that has its memory
  for (size_t i = 0; i < ranges.size(); ++i) memory_of[i] = static_cast<int>(i);
  for (const Reuse& reuse : reuses_) {
    if (!IsWanted(reuse.to, device)) continue;
    BufferRange &from = ranges[memory_of[reuse.from]], &to = ranges[reuse.to];
    const bool sure = std::ranges::all_of(from.users, [&](const Node* user) {
      return user == reuse.node || precedes(*user, *reuse.node);
    });
    if (!sure) continue;
    // The new users contain `reuse.node`, which ends after all users so far. So lists stay short if
    // many nodes in a row write to one buffer.
    from.users = std::move(to.users);
    to.bytes = 0;
    memory_of[reuse.to] = memory_of[reuse.from];
  }
  std::erase_if(ranges, [](const BufferRange& range) { return range.bytes <= 0; });
  return ranges;
}

}  // namespace penstock
