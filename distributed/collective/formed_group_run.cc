// SPDX-License-Identifier: Apache-2.0
//
// FormedGroup: executes a collective when all ranks of this task have begun it: merges their
// inputs, runs the algorithm between the tasks, and gives each rank its part of the result.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "distributed/collective/algorithms.h"
#include "distributed/collective/fingerprint.h"
#include "distributed/collective/formed_group.h"
#include "distributed/collective/own_ranks.h"

namespace penstock::collective {
namespace {

// An all-reduce of up to this many bytes uses recursive doubling: for few bytes, the
// number of hops matters more than the number of bytes sent.
constexpr int64_t kDoublingBytesMax = 96 << 10;

// Returns the size in bytes of the chunks in which a large tensor is sent: small enough that
// several are under way at a time, and large enough that the cost of each message does not
// matter.
int64_t ChunkBytes(int64_t bytes, int peers) {
  constexpr int64_t kMin = 256 << 10, kMax = 2 << 20;
  return std::clamp(bytes / peers / 8, kMin, kMax);
}

}  // namespace

// The PeerLink of one execution: sends and receives its messages.
class FormedGroup::TaskLink final : public PeerLink {
 public:
  TaskLink(std::shared_ptr<FormedGroup> group, uint64_t execution, uint16_t fingerprint)
      : group_(std::move(group)), execution_(execution), fingerprint_(fingerprint) {}

  int rank() const override { return group_->self_; }
  int size() const override { return static_cast<int>(group_->tasks_.size()); }
  void Send(int peer, Tag tag, Tensor value) override {
    group_->Send(execution_, fingerprint_, peer, tag, std::move(value));
  }
  void Recv(int peer, Tag tag, Received received) override {
    group_->Recv(execution_, peer, tag, std::move(received));
  }

 private:
  const std::shared_ptr<FormedGroup> group_;
  const uint64_t execution_;
  const uint16_t fingerprint_;
};

void FormedGroup::Start(uint64_t id) {
  std::vector<CollectiveCall> calls;
  int64_t bytes = 0;
  Status wrong;
  bool only_receives = false;
  {
    MutexLock lock(mu_);
    const auto found = executions_.find(id);
    if (found == executions_.end()) return;  // the execution has failed in the meantime
    const Execution& execution = found->second;
    for (const auto& [rank, part] : execution.parts) {
      calls.push_back(part.call);
      bytes += static_cast<int64_t>(part.call.input.bytes());
    }
    // All tasks that only receive the broadcast tell task 0, so it finds out if there is no source.
    if (self_ == 0) wrong = CheckForSource(execution);
    only_receives = calls[0].kind == CollectiveKind::kBroadcast && execution.roles.source < 0;
  }
  if (!wrong.ok()) return options_.fail(*this, wrong);
  if (only_receives && self_ != 0) {
    Send(id, FingerprintOf(calls[0]), 0, kReceiver, Tensor::Scalar<int32_t>(self_));
  }
  if (calls.size() == 1) return Run(id, calls);
  RunHeavy(*options_.threads, bytes,
           [self = shared_from_this(), id, calls = std::move(calls)] { self->Run(id, calls); });
}

void FormedGroup::Run(uint64_t id, const std::vector<CollectiveCall>& calls) {
  const CollectiveCall& first = calls[0];
  StatusOr<Tensor> input = MergeInputs(calls);
  if (!input.ok()) return NoteRan(id, {}, input.status());
  if (first.kind == CollectiveKind::kBroadcast && input->valid()) {
    return RunAlgorithm(id, calls, *input, *input);  // the source's result is its input
  }
  StatusOr<Tensor> output =
      Tensor::Make(CpuAllocator(), first.dtype, Shape({ResultElements(calls, key().size)}));
  if (!output.ok()) return NoteRan(id, {}, output.status());
  RunAlgorithm(id, calls, *std::move(input), *std::move(output));
}

void FormedGroup::RunAlgorithm(uint64_t id, const std::vector<CollectiveCall>& calls, Tensor input,
                               Tensor output) {
  const CollectiveCall& first = calls[0];
  const int peers = static_cast<int>(tasks_.size());
  auto link = std::make_shared<TaskLink>(shared_from_this(), id, FingerprintOf(first));
  const Services services{.link = link.get(), .threads = options_.threads};
  const Reduction reduction{.merge = first.merge, .divisor = first.divide ? key().size : 1};
  const int64_t bytes = static_cast<int64_t>(std::max(input.bytes(), output.bytes()));
  Done done([self = shared_from_this(), id, link, output](const Status& status) {
    self->NoteRan(id, output, status);
  });
  if (first.kind == CollectiveKind::kBroadcast) {
    const bool is_source = input.valid();
    BroadcastArgs args{.is_source = is_source,
                       .input = std::move(input),
                       .output = std::move(output),
                       .chunk_bytes = ChunkBytes(bytes, 1)};
    return RunBroadcast(services, std::move(args), std::move(done));
  }
  if (first.kind == CollectiveKind::kAllReduce && bytes <= kDoublingBytesMax) {
    return RunDoubling(services, reduction, std::move(input), std::move(output), std::move(done));
  }
  RingArgs args{.reduce = first.kind != CollectiveKind::kAllGather,
                .gather = first.kind != CollectiveKind::kReduceScatter,
                .reduction = reduction,
                .input = std::move(input),
                .output = std::move(output),
                .chunk_bytes = ChunkBytes(bytes, peers)};
  if (first.kind == CollectiveKind::kAllReduce) {
    args.offsets = EvenOffsets(args.input.num_elements(), peers);
  } else {
    const int64_t elements = first.shape.num_elements();
    const int64_t each = args.reduce ? elements / key().size : elements;
    for (const int rank : first_rank_) args.offsets.push_back(rank * each);
  }
  RunRing(services, std::move(args), std::move(done));
}

void FormedGroup::NoteRan(uint64_t id, Tensor result, const Status& status) {
  std::map<int, Part> parts;
  {
    MutexLock lock(mu_);
    const auto found = executions_.find(id);
    if (found == executions_.end()) return;  // the execution has failed in the meantime
    Execution& execution = found->second;
    execution.ran = true;
    execution.result = result;
    // A successful execution ends only when all its messages have been sent (HandedOver ends it). A
    // failed one ends at once, because no task needs its messages.
    if (status.ok() && execution.unsent > 0) return;
    if (status.ok()) RememberCompleted(id, execution);
    parts = std::move(execution.parts);
    executions_.erase(found);
  }
  if (!status.ok()) {
    options_.fail(*this, status);
    return Finish(std::move(parts), status);
  }
  Finish(std::move(parts), std::move(result));
}

void FormedGroup::HandedOver(uint64_t id) {
  std::map<int, Part> parts;
  Tensor result;
  {
    MutexLock lock(mu_);
    const auto found = executions_.find(id);
    if (found == executions_.end()) return;
    Execution& execution = found->second;
    if (--execution.unsent > 0 || !execution.ran) return;
    RememberCompleted(id, execution);
    parts = std::move(execution.parts);
    result = std::move(execution.result);
    executions_.erase(found);
  }
  Finish(std::move(parts), std::move(result));
}

void FormedGroup::RememberCompleted(uint64_t id, const Execution& execution) {
  completed_.Add(id);
  if (execution.roles.source == self_) sent_.Add(id);
}

void FormedGroup::Finish(std::map<int, Part> parts, const StatusOr<Tensor>& result) {
  for (auto& [rank, part] : parts) {
    if (result.ok()) {
      std::move(part.collected)(
          ResultOf(part.call, rank - first_rank_[self_], key().size, *result));
    } else {
      std::move(part.collected)(result.status());
    }
  }
}

void FormedGroup::Send(uint64_t execution, uint16_t fingerprint, int peer, Tag tag, Tensor value) {
  {
    MutexLock lock(mu_);
    const auto found = executions_.find(execution);
    if (found == executions_.end()) return;  // the execution has failed in the meantime
    ++found->second.unsent;
  }
  const Address address{
      .group = id_, .execution = execution, .fingerprint = fingerprint, .tag = tag.Number()};
  options_.send(tasks_[peer], keys_[peer].In(address.frame(), address.iteration()),
                std::move(value),
                [self = shared_from_this(), execution] { self->HandedOver(execution); });
}

void FormedGroup::Recv(uint64_t execution, int peer, Tag tag, PeerLink::Received received) {
  const Mailbox::Slot slot{peer, execution, tag.Number()};
  StatusOr<Tensor> value = Tensor();
  {
    MutexLock lock(mu_);
    if (std::optional<Tensor> arrived = mailbox_.Take(slot)) {
      value = *std::move(arrived);
    } else if (!ended_.ok() && !may_succeed_.contains(execution)) {
      value = ended_;
    } else {
      return mailbox_.Await(slot, std::move(received));
    }
  }
  std::move(received)(std::move(value));
}

}  // namespace penstock::collective
