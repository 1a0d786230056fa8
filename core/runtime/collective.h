// SPDX-License-Identifier: Apache-2.0
//
// Collectives: where the kernels of collective ops reach the other ranks of their group. A rank is
// a device; the ranks of a group may be on several tasks, and belong to one session or to several.
//
// A step's rendezvous is a Collectives as well if its task takes part in collectives; a kernel asks
// for it with dynamic_cast. Thread-safe.
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

// The arguments that one rank brings to one execution of a collective.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // Ranks that name the same group meet; the same instance of it is the same collective. Executions
  // of one instance by one rank come one after the other.
  int64_t group_key = 0;
  int64_t group_size = 0;  // in ranks, at least 1
  int64_t instance_key = 0;
  std::string device;     // the rank: a full name
  int64_t iteration = 0;  // tells executions of one node in one step apart
  MergeOp merge = MergeOp::kAdd;
  bool divide = false;     // the result is divided by the number of ranks
  bool is_source = false;  // of a broadcast
  Tensor input;            // not valid at those that receive a broadcast
  DType dtype = DType::kInvalid;
  Shape shape;  // of the input; of the result of a broadcast
  // The call's limit, DeadlineExceeded; 0: ten minutes until all ranks of the group have come, and
  // none from then on.
  double timeout_seconds = 0;
  Cancellation* cancellation = nullptr;  // of the step; borrowed until the end
};

class Collectives {
 public:
  using Collected = absl::AnyInvocable<void(StatusOr<Tensor>) &&>;

  virtual ~Collectives() = default;
  // Gives the result to `collected`, which is called once, on any thread, possibly before Collect
  // returns. All ranks get the same bits, and get them again whenever the same ranks bring the same
  // tensors. Errors: of a rank that is lost, or has failed in the collective, at all others, and
  // name its task; OutOfRange if another rank has ended its session in good order, and so takes
  // part no longer; InvalidArgument if ranks disagree about type or size, or a broadcast has not
  // one source; DeadlineExceeded if it has not ended in time; ResourceExhausted if more waits for
  // a rank that has not begun than a task may hold.
  virtual void Collect(CollectiveCall call, Collected collected) = 0;
};

}  // namespace penstock
