// SPDX-License-Identifier: Apache-2.0
//
// The algorithms of collectives, over any PeerLink. Arriving messages drive them. They block no
// thread: they run on the threads that deliver messages, or on the scheduler if a chunk is large
// enough.
//
// All peers call the same function with matching arguments. `done` is called once, when this peer
// has its result and needs no more messages; others may not have got its last ones yet. Tensors
// are flat, in the host's memory; outputs share no memory with inputs. Errors: those of
// the link; InvalidArgument if a peer has sent a tensor of another type or size.
//
// The order of additions depends on nothing but the number of peers and elements:
//   ring       segment j is ((x[j+1] + x[j+2]) + ...) + x[j], ranks modulo size; each byte is sent
//              2(N-1)/N times per peer, in 2(N-1) hops
//   doubling   the sum of two neighbours, then of two such sums, ...; the lower ranks are the left
//              operand; log2(N) hops, each with all bytes
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/done.h"
#include "core/base/scheduler.h"
#include "core/runtime/collective.h"
#include "core/tensor/tensor.h"
#include "distributed/collective/peer_link.h"

namespace penstock::collective {

// The link and the threads of an algorithm; borrowed until `done`.
struct Services {
  PeerLink* link = nullptr;
  Scheduler* threads = nullptr;
};

struct Reduction {
  MergeOp merge = MergeOp::kAdd;
  int64_t divisor = 1;  // the result is divided by it
};

// Runs an all-reduce by recursive doubling, for tensors of few bytes.
void RunDoubling(const Services& services, const Reduction& reduction, Tensor input, Tensor output,
                 Done done);

struct RingArgs {
  // Peer i owns segment i, the elements [offsets[i], offsets[i + 1]). Has size + 1 entries.
  std::vector<int64_t> offsets;
  // If both are true, this is an all-reduce; with only `reduce`, a reduce-scatter, whose output is
  // the peer's segment; with only `gather`, an all-gather, whose input is the peer's segment.
  bool reduce = true, gather = true;
  Reduction reduction = {};
  Tensor input, output;
  int64_t chunk_bytes = 1 << 20;  // sent on as one message
};
// Runs an all-reduce, a reduce-scatter or an all-gather along a ring.
void RunRing(const Services& services, RingArgs args, Done done);

// The tags of the two messages of a broadcast that are received from kAnyPeer. kAnnouncement: the
// source announces itself to all other peers. kReceiver: a task tells peer 0 that it only receives;
// the FormedGroup sends this message, not the algorithm.
inline constexpr Tag kAnnouncement{.phase = Tag::kFromAny};
inline constexpr Tag kReceiver{.phase = Tag::kFromAny, .chunk = 1};

// The arguments of RunBroadcast, which sends a tensor from one peer, the source, to all others
// along a binomial tree. The others need not know which peer is the source.
struct BroadcastArgs {
  bool is_source = false;
  Tensor input;   // the source's tensor; unused by the others
  Tensor output;  // written by the others; unused by the source
  int64_t chunk_bytes = 1 << 20;
};
void RunBroadcast(const Services& services, BroadcastArgs args, Done done);

// Returns the offsets of `parts` segments of nearly equal length.
std::vector<int64_t> EvenOffsets(int64_t elements, int parts);

// Returns OK if `received` has this type and this many elements, else InvalidArgument, which names
// `peer`.
Status CheckReceived(const Tensor& received, DType dtype, int64_t elements, int peer);

// Runs `work`, which reads or writes `bytes` bytes: on the scheduler if that takes too long for a
// thread that delivers messages, else on the calling thread.
void RunHeavy(Scheduler& threads, int64_t bytes, Scheduler::Closure work);

}  // namespace penstock::collective
