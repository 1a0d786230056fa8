// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/buffer_ranges.h"

#include <algorithm>

#include "core/compiler/memory/buffer_sharing.h"

namespace penstock {
namespace {

using Buffer = MemoryProfile::Buffer;
using Kind = Sharing::Kind;

// Returns whether the buffer's first value is the output for which it was allocated. For a
// variable's buffer it is not: Buffer::value is then the output of the node that made the handle.
bool IsOutputOfMaker(const Buffer& buffer) {
  return !buffer.values.empty() && buffer.values.front() == buffer.value;
}

// Returns true for variables, constants and feeds, which do not count.
bool IsKept(const Buffer& buffer) {
  if (buffer.received) return false;
  return !IsOutputOfMaker(buffer) ||
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
    : model_(model), profile_(profile), bytes_min_(bytes_min), small_(model.devices().size()) {
  for (const Buffer& buffer : profile.buffers) {
    if (!IsKept(buffer)) AddRanges(buffer);
    if (!IsOutputOfMaker(buffer)) state_buffers_[buffer.value.node->id()].push_back(&buffer);
  }
  for (const MemoryProfile::Update& update : profile.updates) {
    AddCopy(update);
    updates_[update.state->id()].push_back(update.by);
  }
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
      ranges_.push_back({.range = {value, buffer.device, buffer.bytes, buffer.received,
                                   /*maker=*/value.node}});
      if (from >= 0) reuses_.push_back({from, range, value.node});
    }
    range_of[{value.node->id(), value.index}] = range;
    std::vector<const Node*>& users = ranges_[range].range.users;
    if (!(first && buffer.received)) users.push_back(value.node);
    ForReaders(buffer, value, [&](const Node* reader) { users.push_back(reader); });
  }
}

// Adds the copy that an update makes of a variable whose old value may still be read.
void BufferRanges::AddCopy(const MemoryProfile::Update& update) {
  Range copy = {.range = {.value = {const_cast<Node*>(update.state), 0},
                          .device = model_.DeviceOf(*update.by),
                          .maker = update.by},
                .copy_of = update.state};
  for (const Buffer* buffer : state_buffers_[update.state->id()]) {
    copy.range.bytes = buffer->bytes;
    AddSnapshotReaders(*buffer, *update.by, &copy);
  }
  if (copy.readers.empty()) return;
  if (copy.range.bytes < bytes_min_) {
    small_[copy.range.device] += copy.range.bytes;
  } else {
    ranges_.push_back(std::move(copy));
  }
}

// Adds the readers of the variable's value in `buffer`. A reader of a view needs the value that the
// variable had when the snapshot was taken, not when the node of the view ran.
void BufferRanges::AddSnapshotReaders(const Buffer& buffer, const Node& update, Range* copy) const {
  std::map<Value, const Node*> taken_by;
  for (const Endpoint& value : buffer.values) {
    const Node* const taken = OfSharedInput<const Node*>(value, taken_by, value.node);
    taken_by[{value.node->id(), value.index}] = taken;
    ForReaders(buffer, value, [&](const Node* reader) {
      if (reader != &update) copy->readers.push_back({taken, reader});
    });
  }
}

std::vector<const Node*> BufferRanges::Nodes() const {
  std::vector<const Node*> nodes;
  for (const Range& range : ranges_) {
    nodes.push_back(range.range.maker);
    nodes.insert(nodes.end(), range.range.users.begin(), range.range.users.end());
    for (const auto& [taken, reader] : range.readers) {
      nodes.push_back(taken);
      nodes.push_back(reader);
    }
  }
  for (const MemoryProfile::Update& update : profile_.updates) nodes.push_back(update.by);
  return nodes;
}

// Finds the nodes that may still read the value that the update replaces.
void BufferRanges::FindUsersOfCopy(Precedes precedes, Range* copy) const {
  const Node& update = *copy->range.maker;
  const std::vector<const Node*>& updates = updates_.at(copy->copy_of->id());
  for (const auto& [taken, reader] : copy->readers) {
    if (precedes(update, *taken) || precedes(*reader, update)) continue;
    // An earlier update has already copied what the snapshot holds.
    const bool copied = std::ranges::any_of(updates, [&, taken = taken](const Node* earlier) {
      return precedes(*taken, *earlier) && precedes(*earlier, update);
    });
    if (!copied) copy->range.users.push_back(reader);
  }
  if (copy->range.users.empty()) copy->range.bytes = 0;
}

std::vector<BufferRange> BufferRanges::Get(Precedes precedes, int device) const {
  const auto wanted = [&](int range) {
    return device == kAnyDevice || ranges_[range].range.device == device;
  };
  std::vector<Range> ranges(ranges_.size());  // those of other devices stay empty
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!wanted(static_cast<int>(i))) continue;
    ranges[i] = ranges_[i];
    if (ranges[i].copy_of != nullptr) FindUsersOfCopy(precedes, &ranges[i]);
  }
  std::vector<int> memory_of(ranges.size());  // by range: the range that has its memory
  for (size_t i = 0; i < ranges.size(); ++i) memory_of[i] = static_cast<int>(i);
  for (const Reuse& reuse : reuses_) {
    if (!wanted(reuse.to)) continue;
    BufferRange &from = ranges[memory_of[reuse.from]].range, &to = ranges[reuse.to].range;
    const bool sure = std::ranges::all_of(from.users, [&](const Node* user) {
      return user == reuse.node || precedes(*user, *reuse.node);
    });
    if (!sure) continue;
    from.users.insert(from.users.end(), to.users.begin(), to.users.end());
    to.bytes = 0;
    memory_of[reuse.to] = memory_of[reuse.from];
  }
  std::vector<BufferRange> taken;
  for (Range& range : ranges) {
    if (range.range.bytes > 0) taken.push_back(std::move(range.range));
  }
  return taken;
}

}  // namespace penstock
