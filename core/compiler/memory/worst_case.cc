// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/worst_case.h"

#include <algorithm>
#include <utility>

#include "core/compiler/memory/buffer_ranges.h"
#include "core/compiler/memory/chain_time.h"
#include "core/compiler/memory/node_ancestors.h"

namespace penstock {
namespace {

// Bound the time of ImproveByAncestors to about a second, and its memory to 64 MiB.
constexpr double kPairsMax = 5e7, kBitsMax = 5e8;
// ImproveByAncestors counts buffers smaller than a share of all bytes as if they were always in
// memory: the first of these shares for which it does not exceed its bounds.
constexpr double kSmallShares[] = {0, 1.0 / 65536, 1.0 / 4096};

// Returns whether the buffer is kept until the step has ended, because `user` fetches it. A fetch
// in another memory keeps the copy that is sent there.
bool OutlivesStep(const MemoryModel& model, const BufferRange& range, const Node& user) {
  return user.op().end == EndOp::kFetch && model.ShareMemory(model.DeviceOf(user), range.device);
}

// Adds to `peak` the ranges of its device for which `may_live` returns true.
template <class MayLive>
void AddTensors(const std::vector<BufferRange>& ranges, int device, MayLive may_live,
                WorstPeak* peak) {
  for (const BufferRange& range : ranges) {
    if (range.device != device || !may_live(range)) continue;
    peak->tensors.push_back({range.value, range.bytes, range.received});
  }
}

// Returns whether the buffer may be in memory when the node runs.
bool MayLive(const MemoryModel& model, const NodeAncestors& ancestors, const BufferRange& range,
             const Node& node) {
  if (ancestors.Precedes(node, *range.maker)) return false;
  // A tensor from another task that nothing reads is dropped at once.
  return std::ranges::any_of(range.users, [&](const Node* user) {
    return OutlivesStep(model, range, *user) || !ancestors.Precedes(*user, node);
  });
}

// A node that makes a buffer, and the device on which the buffer is.
struct Maker {
  const Node* node = nullptr;
  int device = 0;
};

std::vector<Maker> MakersOf(const std::vector<BufferRange>& ranges) {
  std::vector<Maker> makers;
  for (const BufferRange& range : ranges) makers.push_back({range.maker, range.device});
  const auto key = [](const Maker& maker) { return std::pair(maker.device, maker.node->id()); };
  std::ranges::sort(makers, {}, key);
  const auto same = [&](const Maker& a, const Maker& b) { return key(a) == key(b); };
  makers.erase(std::unique(makers.begin(), makers.end(), same), makers.end());
  return makers;
}

// Improves `peaks` by the bounds that follow from which nodes wait for which. For each device,
// looks only at nodes that make a buffer there, because its memory grows only when such a node
// begins. Does nothing and returns false if that would take too much time or memory.
bool ImproveByAncestors(const MemoryModel& model, absl::Span<Node* const> order,
                        const BufferRanges& made, std::vector<WorstPeak>* peaks) {
  const auto num_ranges = static_cast<double>(made.size());
  if (num_ranges * num_ranges > kPairsMax) return false;
  NodeAncestors ancestors(order, made.Nodes());
  if (ancestors.num_bits() > kBitsMax) return false;
  ancestors.Find();
  const std::vector<BufferRange> ranges =
      made.Get([&](const Node& a, const Node& b) { return ancestors.Precedes(a, b); });
  std::vector<WorstPeak> found(peaks->size());
  for (size_t d = 0; d < found.size(); ++d) found[d].bytes = made.small_bytes()[d];
  for (const auto& [node, device] : MakersOf(ranges)) {
    double sum = made.small_bytes()[device];
    for (const BufferRange& range : ranges) {
      if (range.device != device) continue;
      if (MayLive(model, ancestors, range, *node)) sum += range.bytes;
    }
    if (sum > found[device].bytes) found[device] = {.bytes = sum, .at = node};
  }
  for (size_t d = 0; d < found.size(); ++d) {
    if (found[d].bytes >= (*peaks)[d].bytes) continue;
    if (found[d].at == nullptr) {  // all buffers are small: the chain's list is the better one
      (*peaks)[d].bytes = found[d].bytes;
      continue;
    }
    (*peaks)[d] = std::move(found[d]);
    const auto may_live = [&](const BufferRange& range) {
      return MayLive(model, ancestors, range, *(*peaks)[d].at);
    };
    AddTensors(ranges, static_cast<int>(d), may_live, &(*peaks)[d]);
  }
  return true;
}

// Returns the phases in which the buffer may be in memory: the first, and the one after the last.
std::pair<int, int> PhasesOf(const MemoryModel& model, const ChainTime& time,
                             const BufferRange& range) {
  const int first = time.FirstPhase(*range.maker);
  int end = first;
  for (const Node* user : range.users) {
    const bool outlives = OutlivesStep(model, range, *user);
    end = std::max(end, outlives ? time.num_phases() : time.LastPhase(*user) + 1);
  }
  return {first, end};
}

// Returns the bound for a device that follows from its longest chain of nodes.
WorstPeak WorstByChain(const MemoryModel& model, absl::Span<Node* const> order,
                       const BufferRanges& made, int device) {
  const ChainTime time(model, order, device);
  const std::vector<BufferRange> ranges =
      made.Get([&](const Node& a, const Node& b) { return time.Precedes(a, b); }, device);
  std::vector<double> change(time.num_phases() + 1);
  for (const BufferRange& range : ranges) {
    const auto [first, end] = PhasesOf(model, time, range);
    change[first] += range.bytes;
    change[end] -= range.bytes;
  }
  WorstPeak peak;
  int peak_phase = 0;
  double bytes = 0;
  for (int phase = 0; phase < time.num_phases(); ++phase) {
    bytes += change[phase];
    if (bytes <= peak.bytes) continue;
    peak.bytes = bytes;
    peak_phase = phase;
  }
  if (peak.bytes == 0) return peak;
  peak.at = time.empty() ? ranges.front().maker : &time.NodeOf(peak_phase);
  const auto may_live = [&](const BufferRange& range) {
    const auto [first, end] = PhasesOf(model, time, range);
    return first <= peak_phase && peak_phase < end;
  };
  AddTensors(ranges, device, may_live, &peak);
  return peak;
}

}  // namespace

std::vector<WorstPeak> WorstPeaks(const MemoryModel& model, absl::Span<Node* const> order) {
  const MemoryProfile profile = model.Profile(order);
  const BufferRanges all(model, profile, /*bytes_min=*/0);
  std::vector<WorstPeak> peaks;
  for (size_t d = 0; d < model.devices().size(); ++d) {
    peaks.push_back(WorstByChain(model, order, all, static_cast<int>(d)));
  }
  double bytes = 0;
  for (const MemoryProfile::Buffer& buffer : profile.buffers) {
    if (buffer.counted) bytes += buffer.bytes;
  }
  for (const double share : kSmallShares) {
    const BufferRanges large(model, profile, bytes * share);
    if (ImproveByAncestors(model, order, large, &peaks)) break;
  }
  return peaks;
}

}  // namespace penstock
