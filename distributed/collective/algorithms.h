// SPDX-License-Identifier: Apache-2.0
//
// The algorithms of collectives, over any PeerLink. All are driven by what arrives: they block no
// thread, and run on those that deliver, or on the scheduler where a piece is worth it.
//
// Each peer calls the same function with arguments that agree. `done` is called once, when this
// peer has its result and needs nothing more from others; what it has sent may still be on its
// way. Tensors are flat, in the host's memory; outputs share no memory with inputs.
// Errors: the link's; InvalidArgument if a peer has sent a tensor of another type or size.
//
// The order of additions depends on nothing but the number of peers and elements:
//   ring       segment j is ((x[j+1] + x[j+2]) + ...) + x[j], ranks modulo size; each byte is sent
//              2(N-1)/N times per peer, in 2(N-1) hops
//   doubling   the neighbours' sums, then the sums of pairs, ...: the lower rank is on the left;
//              log2(N) hops, each with all bytes
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/done.h"
#include "core/base/scheduler.h"
#include "core/runtime/collective.h"
#include "core/tensor/tensor.h"
#include "distributed/collective/peer_link.h"

namespace penstock::collective {

// Borrowed until `done`.
struct Services {
  PeerLink* link = nullptr;
  Scheduler* threads = nullptr;
};

struct Reduction {
  MergeOp merge = MergeOp::kAdd;
  int64_t divisor = 1;  // of the result
};

// AllReduce of few bytes.
void RunDoubling(const Services& services, const Reduction& reduction, Tensor input, Tensor output,
                 Done done);

struct RingArgs {
  // Segment i is [offsets[i], offsets[i + 1]), in elements: that of peer i. size + 1 of them.
  std::vector<int64_t> offsets;
  // Both: AllReduce. Only `reduce`: ReduceScatter, the output is the peer's segment. Only `gather`:
  // AllGather, the input is the peer's segment.
  bool reduce = true, gather = true;
  Reduction reduction = {};
  Tensor input, output;
  int64_t chunk_bytes = 1 << 20;  // what is passed on at a time
};
void RunRing(const Services& services, RingArgs args, Done done);

// The messages of a broadcast that may come from any peer: the source's to all others; and that of
// a task which only receives to peer 0, which the group sends, not the algorithm.
inline constexpr Tag kAnnouncement{.phase = Tag::kFromAny};
inline constexpr Tag kReceiver{.phase = Tag::kFromAny, .chunk = 1};

// From one peer, the source, to all, along a binomial tree. The others need not know which one it
// is.
struct BroadcastArgs {
  bool is_source = false;
  Tensor input;   // at the source
  Tensor output;  // at the others
  int64_t chunk_bytes = 1 << 20;
};
void RunBroadcast(const Services& services, BroadcastArgs args, Done done);

// Offsets of `parts` segments of nearly equal length.
std::vector<int64_t> EvenOffsets(int64_t elements, int parts);

// OK if `received` has this type and so many elements.
Status CheckReceived(const Tensor& received, DType dtype, int64_t elements, int peer);

// Runs `work` on the scheduler if it touches so many bytes that the thread that delivers should not
// do it.
void RunHeavy(Scheduler& threads, int64_t bytes, Scheduler::Closure work);

}  // namespace penstock::collective
