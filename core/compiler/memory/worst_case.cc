// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/worst_case.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "core/compiler/memory/buffer_sharing.h"
#include "core/compiler/memory/node_ancestors.h"

namespace penstock {
namespace {

// Limits of the analysis: with them it takes about a second, and 64 MiB of memory.
constexpr double kPairsMax = 5e7, kBitsMax = 5e8;
// Buffers smaller than this share of all bytes count as if they were always in memory.
constexpr double kSmallPart = 1.0 / 4096;

class WorstCase {
 public:
  WorstCase(const MemoryModel& model, absl::Span<Node* const> order)
      : model_(model),
        order_(order),
        profile_(model.Profile(order)),
        small_(model.devices().size()) {
    double all = 0;
    for (const Buffer& buffer : profile_.buffers) all += IsKept(buffer) ? 0 : buffer.bytes;
    least_ = all * kSmallPart;
  }

  std::vector<double> Run() {
    for (const Buffer& buffer : profile_.buffers) {
      if (!IsKept(buffer)) AddRanges(buffer);
      if (!IsOutputOfMaker(buffer)) state_buffers_[buffer.value.node->id()].push_back(&buffer);
    }
    for (const MemoryProfile::Update& update : profile_.updates) {
      AddCopy(update);
      updates_[update.state->id()].push_back(update.by);
    }
    const double pairs = static_cast<double>(ranges_.size()) * static_cast<double>(ranges_.size());
    NodeAncestors ancestors(order_, Columns());
    if (pairs > kPairsMax || ancestors.num_bits() > kBitsMax) return SumOfAll();
    ancestors.Find();
    for (Range& range : ranges_) FindUsersOfCopy(ancestors, &range);
    for (const Reuse& reuse : reuses_) MergeIfSure(ancestors, reuse);
    return MaxBytes(ancestors);
  }

 private:
  using Buffer = MemoryProfile::Buffer;
  using Value = std::pair<int, int>;  // node id, output

  // The part of the step in which a buffer is in memory: from the start of the node that makes the
  // buffer until all nodes that read or write its values have ended.
  struct Range {
    int device = 0;
    double bytes = 0;
    const Node* maker = nullptr;
    std::vector<const Node*> users = {};
    // If not null, the range is a copy of this variable, and its maker is the update. `readers` are
    // pairs: a node that took a snapshot of the variable, and a node that reads this snapshot.
    const Node* copy_of = nullptr;
    std::vector<std::pair<const Node*, const Node*>> readers = {};
  };
  // A node writes the buffer of range `to` into the memory of range `from`, if no other node still
  // needs `from`.
  struct Reuse {
    int from = 0, to = 0;
    const Node* node = nullptr;
  };

  // Returns true for variables, constants and feeds, which do not count.
  static bool IsKept(const Buffer& buffer) {
    const Sharing sharing = SharingOf(*buffer.value.node, buffer.value.index);
    return !buffer.received &&
           (sharing.kind == Sharing::Kind::kOutlivesStep || !IsOutputOfMaker(buffer));
  }
  // Returns whether the buffer's first value is the output for which it was allocated. For a
  // variable's buffer it is not: Buffer::value is then the output of the node that made the handle.
  static bool IsOutputOfMaker(const Buffer& buffer) {
    return !buffer.values.empty() && buffer.values.front() == buffer.value;
  }

  template <class Add>
  void ForReaders(const Buffer& buffer, const Endpoint& value, Add add) const {
    for (const OutEdge& edge : value.node->out_edges()) {
      const bool same_memory = model_.ShareMemory(model_.DeviceOf(*edge.dst), buffer.device);
      if (edge.src_index == value.index && same_memory) add(edge.dst);
    }
  }

  // Adds a range for each node that writes to the buffer. MergeIfSure later merges ranges that
  // share memory in every order of nodes.
  void AddRanges(const Buffer& buffer) {
    if (buffer.bytes < least_) {
      small_[buffer.device] += buffer.bytes * NumWriters(buffer);
      return;
    }
    std::map<Value, int> range_of;
    for (const Endpoint& value : buffer.values) {
      const bool first = value == buffer.value;
      const Sharing sharing = SharingOf(*value.node, value.index);
      int range = first ? -1 : RangeOfInput(*value.node, sharing, range_of);
      if (range < 0 || sharing.kind == Sharing::Kind::kReuses) {
        const int from = range;
        range = static_cast<int>(ranges_.size());
        ranges_.push_back({buffer.device, buffer.bytes, value.node});
        if (from >= 0) reuses_.push_back({from, range, value.node});
      }
      range_of[{value.node->id(), value.index}] = range;
      std::vector<const Node*>& users = ranges_[range].users;
      if (!(first && buffer.received)) users.push_back(value.node);
      ForReaders(buffer, value, [&](const Node* reader) { users.push_back(reader); });
    }
  }

  static double NumWriters(const Buffer& buffer) {
    double writers = 0;
    for (const Endpoint& value : buffer.values) {
      const bool writes = SharingOf(*value.node, value.index).kind == Sharing::Kind::kReuses;
      writers += value == buffer.value || writes;
    }
    return writers;
  }

  // Returns the range that a value shares with an input of its node; -1 if there is none.
  static int RangeOfInput(const Node& node, const Sharing& sharing,
                          const std::map<Value, int>& range_of) {
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Endpoint in = node.input(i);
      if (in.node == nullptr || (sharing.input >= 0 && i != sharing.input)) continue;
      const auto found = range_of.find({in.node->id(), in.index});
      if (found != range_of.end()) return found->second;
    }
    return -1;
  }

  // Adds the copy that an update makes of a variable whose old value may still be read.
  void AddCopy(const MemoryProfile::Update& update) {
    Range copy = {
        .device = model_.DeviceOf(*update.by), .maker = update.by, .copy_of = update.state};
    for (const Buffer* buffer : state_buffers_[update.state->id()]) {
      copy.bytes = buffer->bytes;
      for (const Endpoint& value : buffer->values) {
        ForReaders(*buffer, value, [&](const Node* reader) {
          if (reader != update.by) copy.readers.emplace_back(value.node, reader);
        });
      }
    }
    if (copy.readers.empty()) return;
    if (copy.bytes < least_) {
      small_[copy.device] += copy.bytes;
    } else {
      ranges_.push_back(std::move(copy));
    }
  }

  std::vector<const Node*> Columns() const {
    std::vector<const Node*> columns;
    for (const Range& range : ranges_) {
      columns.push_back(range.maker);
      columns.insert(columns.end(), range.users.begin(), range.users.end());
      for (const auto& [taken, reader] : range.readers) {
        columns.push_back(taken);
        columns.push_back(reader);
      }
    }
    for (const MemoryProfile::Update& update : profile_.updates) columns.push_back(update.by);
    return columns;
  }

  std::vector<double> SumOfAll() const {
    std::vector<double> sum = small_;
    for (const Range& range : ranges_) sum[range.device] += range.bytes;
    return sum;
  }

  // Finds the nodes that may still read the value that the update replaces.
  void FindUsersOfCopy(const NodeAncestors& ancestors, Range* range) const {
    if (range->copy_of == nullptr) return;
    const Node& update = *range->maker;
    const std::vector<const Node*>& updates = updates_.at(range->copy_of->id());
    for (const auto& [taken, reader] : range->readers) {
      if (ancestors.Precedes(update, *taken) || ancestors.Precedes(*reader, update)) continue;
      // Another update between the snapshot and this one has already copied the snapshot's value.
      const bool copied = std::ranges::any_of(updates, [&, taken = taken](const Node* earlier) {
        return ancestors.Precedes(*taken, *earlier) && ancestors.Precedes(*earlier, update);
      });
      if (!copied) range->users.push_back(reader);
    }
    if (range->users.empty()) range->bytes = 0;
  }

  void MergeIfSure(const NodeAncestors& ancestors, const Reuse& reuse) {
    Range &from = ranges_[Merged(reuse.from)], &to = ranges_[reuse.to];
    const bool always_reuses = std::ranges::all_of(from.users, [&](const Node* user) {
      return user == reuse.node || ancestors.Precedes(*user, *reuse.node);
    });
    if (!always_reuses) return;
    from.users.insert(from.users.end(), to.users.begin(), to.users.end());
    to.bytes = 0;
    merged_[reuse.to] = Merged(reuse.from);
  }
  int Merged(int range) const {
    const auto found = merged_.find(range);
    return found == merged_.end() ? range : found->second;
  }

  // Returns the maximum of bytes, by device. Looks only at nodes that make a buffer, because memory
  // grows only when such a node begins.
  std::vector<double> MaxBytes(const NodeAncestors& ancestors) const {
    std::vector<double> largest = small_;
    std::vector<const Node*> makers;
    for (const Range& range : ranges_) makers.push_back(range.maker);
    std::ranges::sort(makers);
    makers.erase(std::unique(makers.begin(), makers.end()), makers.end());
    for (const Node* node : makers) {
      std::vector<double> sum = small_;
      for (const Range& range : ranges_) {
        if (range.bytes > 0 && MayLive(ancestors, range, *node)) sum[range.device] += range.bytes;
      }
      for (size_t d = 0; d < sum.size(); ++d) largest[d] = std::max(largest[d], sum[d]);
    }
    return largest;
  }

  // Returns whether the buffer may be in memory when the node runs.
  static bool MayLive(const NodeAncestors& ancestors, const Range& range, const Node& node) {
    if (ancestors.Precedes(node, *range.maker)) return false;
    const auto may_run = [&](const Node* user) {
      return user->op().end == EndOp::kFetch || !ancestors.Precedes(*user, node);
    };
    // A tensor from another task that nothing reads is dropped at once.
    return std::ranges::any_of(range.users, may_run);
  }

  const MemoryModel& model_;
  const absl::Span<Node* const> order_;
  const MemoryProfile profile_;
  double least_ = 0;           // smaller buffers are only added up, in small_
  std::vector<double> small_;  // by device
  std::map<int, std::vector<const Buffer*>> state_buffers_;  // by id of the handle's node
  std::map<int, std::vector<const Node*>> updates_;          // by id of the handle's node
  std::vector<Range> ranges_;
  std::vector<Reuse> reuses_;  // in the order of the nodes
  std::map<int, int> merged_;  // by range: the range whose memory it reuses
};

}  // namespace

std::vector<double> WorstPeaks(const MemoryModel& model, absl::Span<Node* const> order) {
  return WorstCase(model, order).Run();
}

}  // namespace penstock
