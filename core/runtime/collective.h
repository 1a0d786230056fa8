// SPDX-License-Identifier: Apache-2.0
//
// Collectives: the interface through which kernels of collective ops exchange tensors with the
// other ranks of their group. A rank is a device; the ranks of a group may be on several tasks, and
// belong to one session or to several.
//
// In tasks that take part in collectives, the class of the step's Rendezvous also implements
// Collectives, and kernels get this interface by dynamic_cast. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/any_invocable.h"
#include "core/base/cancellation.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

enum class CollectiveKind { kAllReduce, kReduceScatter, kAllGather, kBroadcast };
enum class MergeOp { kAdd, kMul, kMin, kMax };

// The arguments that one rank passes to one execution of a collective.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // Ranks with the same group key form a group. Calls of a group with the same instance key belong
  // to the same collective. Each rank runs the executions of one collective one after the other.
  int64_t group_key = 0;
  int64_t group_size = 0;  // number of ranks, at least 1
  int64_t instance_key = 0;
  std::string device;     // the rank: a device's full name
  int64_t iteration = 0;  // distinguishes executions of one node in one step
  MergeOp merge = MergeOp::kAdd;
  bool divide = false;     // if true, the result is divided by the number of ranks
  bool is_source = false;  // for a broadcast: true if this rank sends
  Tensor input;            // not valid at the receivers of a broadcast
  DType dtype = DType::kInvalid;
  Shape shape;  // type and shape of the input; for a broadcast, of the result
  // The time limit in seconds, after which the error is DeadlineExceeded. 0: all ranks of the group
  // must begin within ten minutes, and after that there is no limit.
  double timeout_seconds = 0;
  // Cancellation of the step; borrowed until `collected` is called.
  Cancellation* cancellation = nullptr;
};

class Collectives {
 public:
  using Collected = absl::AnyInvocable<void(StatusOr<Tensor>) &&>;

  virtual ~Collectives() = default;
  // Passes the result to `collected`, which is called once, on any thread, possibly before Collect
  // returns. All ranks get bitwise equal results, and equal inputs give bitwise equal results in
  // every execution. Errors: if a rank is lost or has failed in the collective, all others get its
  // error with the name of its task; OutOfRange if another rank has closed its session without an
  // error and so has left the group; InvalidArgument if ranks disagree about type or size, or a
  // broadcast does not have exactly one source; DeadlineExceeded if the collective has not ended in
  // time; ResourceExhausted if more data than a task may hold waits for a rank that has not begun.
  virtual void Collect(CollectiveCall call, Collected collected) = 0;
};

}  // namespace penstock
