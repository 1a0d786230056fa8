// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/formed_group.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>

#include "core/base/error_origin.h"
#include "distributed/collective/algorithms.h"
#include "distributed/collective/merge.h"

namespace penstock::collective {
namespace {

constexpr size_t kCompletedRemembered = 256;
// AllReduce of up to so many bytes doubles: fewer hops count for more than fewer bytes.
constexpr int64_t kDoublingBytesMax = 96 << 10;

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash += 0x9e3779b97f4a7c15u + value;
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
  return hash ^ hash >> 31;
}

uint64_t MixText(uint64_t hash, const std::string& text) {
  for (const char c : text) hash = Mix(hash, static_cast<unsigned char>(c));
  return Mix(hash, text.size());
}

// Returns a hash of the fields that all ranks of an execution have to agree on. The shape is one of
// them for a broadcast, too: ranks that receive know it from their node.
uint16_t FingerprintOf(const CollectiveCall& call) {
  uint64_t hash = Mix(static_cast<uint64_t>(call.kind), static_cast<uint64_t>(call.dtype));
  hash = Mix(hash, static_cast<uint64_t>(call.merge) * 2 + (call.divide ? 1 : 0));
  for (const int64_t dim : call.shape.dims()) hash = Mix(hash, static_cast<uint64_t>(dim));
  return static_cast<uint16_t>(Mix(hash, 0));
}

const char* NameOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all-reduce";
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kAllGather:
      return "all-gather";
    case CollectiveKind::kBroadcast:
      return "broadcast";
  }
  return "?";
}

std::string Describe(const CollectiveCall& call) {
  return StrCat(NameOf(call.kind), " of ", Name(call.dtype), call.shape.ToString());
}

Tensor Flat(const Tensor& tensor) { return tensor.Reshaped(Shape({tensor.num_elements()})); }

// Returns the size of the chunks, in bytes, that a large tensor is sent in: small enough that
// several are under way at a time, large enough to be worth a hand-over.
int64_t ChunkBytes(int64_t bytes, int peers) {
  constexpr int64_t kMin = 256 << 10, kMax = 2 << 20;
  return std::clamp(bytes / peers / 8, kMin, kMax);
}

}  // namespace

HashedKey KeyBetween(const TaskName& from, const TaskName& to, const char* tensor) {
  return HashedKey({.src_device = from.ToString() + "/device:CPU:0",
                    .dst_device = to.ToString() + "/device:CPU:0",
                    .tensor = tensor});
}

// One execution's way to the other tasks.
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

FormedGroup::FormedGroup(Options options)
    : options_(std::move(options)), id_(IdOf(options_.ranks)) {
  const std::vector<Rank>& ranks = options_.ranks;
  for (size_t i = 0; i < ranks.size(); ++i) {
    one_session_ &= ranks[i].session == ranks[0].session;
    if (!tasks_.empty() && tasks_.back() == ranks[i].task) continue;
    if (ranks[i].task == options_.self) self_ = static_cast<int>(tasks_.size());
    tasks_.push_back(ranks[i].task);
    first_rank_.push_back(static_cast<int>(i));
    keys_.push_back(KeyBetween(options_.self, ranks[i].task, kDataKey));
  }
  first_rank_.push_back(static_cast<int>(ranks.size()));
  CHECK(tasks_[self_] == options_.self, options_.self.ToString(), " has no rank in its group");
}

void FormedGroup::SortRanks(std::vector<Rank>* ranks) {
  std::sort(ranks->begin(), ranks->end(),
            [](const Rank& a, const Rank& b) { return a.device < b.device; });
}

uint32_t FormedGroup::IdOf(const std::vector<Rank>& ranks) {
  uint64_t hash = 0;
  for (const Rank& rank : ranks) hash = Mix(MixText(hash, rank.device.ToString()), rank.nonce);
  return static_cast<uint32_t>(hash) | 1;
}

int FormedGroup::PeerOf(const TaskName& task) const {
  const auto found = std::find(tasks_.begin(), tasks_.end(), task);
  return found == tasks_.end() ? -1 : static_cast<int>(found - tasks_.begin());
}

int FormedGroup::RankOf(const DeviceName& device) const {
  for (size_t i = 0; i < ranks().size(); ++i) {
    if (ranks()[i].device == device) return static_cast<int>(i);
  }
  return -1;
}

uint64_t FormedGroup::ExecutionOf(int rank, int64_t step_id, const CollectiveCall& call) {
  uint64_t hash = Mix(0, static_cast<uint64_t>(call.instance_key));
  if (one_session_) {
    hash = Mix(hash, static_cast<uint64_t>(step_id));
    hash = Mix(hash, static_cast<uint64_t>(call.iteration));
  } else {
    hash = Mix(hash, static_cast<uint64_t>(counts_[{rank, call.instance_key}]++));
  }
  return hash & Address::kExecutionMask;
}

Status FormedGroup::CheckPart(const Execution& execution, int rank,
                              const CollectiveCall& call) const {
  if (execution.parts.contains(rank)) {
    return InvalidArgument("instance ", call.instance_key, " of ", key().ToString(),
                           " is executed by ", call.device,
                           " twice at a time; give each node its own instance_key");
  }
  if (!execution.parts.empty() && execution.fingerprint != FingerprintOf(call)) {
    const CollectiveCall& other = execution.parts.begin()->second.call;
    return InvalidArgument("the ranks of instance ", call.instance_key, " of ", key().ToString(),
                           " disagree: ", call.device, " brings an ", Describe(call), ", ",
                           other.device, " an ", Describe(other));
  }
  return OkStatus();
}

void FormedGroup::Begin(int rank, int64_t step_id, CollectiveCall call,
                        Collectives::Collected collected) {
  Status status;
  bool misused = false, complete = false;
  uint64_t id = 0;
  {
    MutexLock lock(mu_);
    status = ended_;
    if (status.ok()) {
      id = ExecutionOf(rank, step_id, call);
      Execution& execution = executions_[id];
      const uint16_t fingerprint = FingerprintOf(call);
      status = CheckPart(execution, rank, call);
      const auto foreseen = foreseen_.find(id);
      if (status.ok() && foreseen != foreseen_.end() && foreseen->second.first != fingerprint) {
        status = InvalidArgument("the ranks of instance ", call.instance_key, " of ",
                                 key().ToString(), " disagree: ", call.device, " brings an ",
                                 Describe(call), ", ", tasks_[foreseen->second.second].ToString(),
                                 " a tensor of another type or shape, or another collective");
      }
      foreseen_.erase(id);
      misused = !status.ok();
      if (misused) {
        // An execution has a part at least: Receive names it.
        if (execution.parts.empty()) executions_.erase(id);
      } else {
        execution.fingerprint = fingerprint;
        execution.parts.emplace(rank, Part{std::move(call), std::move(collected)});
        const int own = first_rank_[self_ + 1] - first_rank_[self_];
        complete = static_cast<int>(execution.parts.size()) == own;
        execution.started = complete;
      }
    }
  }
  if (misused) options_.fail(*this, status);
  if (!status.ok()) return std::move(collected)(status);
  if (complete) Start(id);
}

void FormedGroup::Start(uint64_t id) {
  std::vector<CollectiveCall> calls;
  int64_t bytes = 0;
  {
    MutexLock lock(mu_);
    const auto found = executions_.find(id);
    if (found == executions_.end()) return;  // has failed meanwhile
    for (const auto& [rank, part] : found->second.parts) {
      calls.push_back(part.call);
      bytes += static_cast<int64_t>(part.call.input.bytes());
    }
  }
  if (calls.size() == 1) return Run(id, calls);
  RunHeavy(*options_.threads, bytes,
           [self = shared_from_this(), id, calls = std::move(calls)] { self->Run(id, calls); });
}

// Merges the inputs of this task's ranks into one flat tensor. It is not valid if all of them only
// receive a broadcast.
StatusOr<Tensor> FormedGroup::MergeOwn(const std::vector<CollectiveCall>& calls) const {
  const CollectiveCall& first = calls[0];
  if (first.kind == CollectiveKind::kBroadcast) {
    for (const CollectiveCall& call : calls) {
      if (call.is_source) return Flat(call.input);
    }
    return Tensor();
  }
  if (calls.size() == 1) return Flat(first.input);
  const int64_t elements = first.input.num_elements(), count = static_cast<int64_t>(calls.size());
  const bool gathers = first.kind == CollectiveKind::kAllGather;
  ASSIGN_OR_RETURN(Tensor merged, Tensor::Make(CpuAllocator(), first.dtype,
                                               Shape({gathers ? elements * count : elements})));
  if (!gathers) RETURN_IF_ERROR(CheckMergeable(first.dtype));
  char* const to = static_cast<char*>(merged.mutable_raw_data());
  for (int64_t i = 0; i < count && elements > 0; ++i) {
    const void* const own = calls[i].input.raw_data();
    if (gathers || i == 0) {
      const size_t bytes = first.input.bytes();
      std::memcpy(to + (gathers ? i * bytes : 0), own, bytes);
    } else {
      Merge(first.merge, first.dtype, elements, to, own, to);
    }
  }
  return merged;
}

void FormedGroup::Run(uint64_t id, const std::vector<CollectiveCall>& calls) {
  const CollectiveCall& first = calls[0];
  StatusOr<Tensor> input = MergeOwn(calls);
  if (!input.ok()) return Ran(id, {}, input.status());
  const int64_t size = key().size, elements = first.shape.num_elements();
  int64_t result = elements;
  if (first.kind == CollectiveKind::kAllGather) result = elements * size;
  if (first.kind == CollectiveKind::kReduceScatter) {
    result = elements / size * static_cast<int64_t>(calls.size());
  }
  if (first.kind == CollectiveKind::kBroadcast && input->valid()) {
    return RunAlgorithm(id, calls, *input, *input);  // the source's result is what it sends
  }
  StatusOr<Tensor> output = Tensor::Make(CpuAllocator(), first.dtype, Shape({result}));
  if (!output.ok()) return Ran(id, {}, output.status());
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
    self->Ran(id, output, status);
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

void FormedGroup::Ran(uint64_t id, Tensor result, const Status& status) {
  std::map<int, Part> parts;
  {
    MutexLock lock(mu_);
    const auto found = executions_.find(id);
    if (found == executions_.end()) return;  // has failed meanwhile
    Execution& execution = found->second;
    execution.ran = true;
    execution.result = result;
    // A success waits until all messages have left: HandedOver then ends the execution. A failure
    // need not wait, because no other step uses its messages.
    if (status.ok() && execution.unsent > 0) return;
    parts = std::move(execution.parts);
    executions_.erase(found);
    if (status.ok()) RememberCompleted(id);
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
    parts = std::move(execution.parts);
    result = std::move(execution.result);
    executions_.erase(found);
    RememberCompleted(id);
  }
  Finish(std::move(parts), std::move(result));
}

void FormedGroup::RememberCompleted(uint64_t id) {
  completed_.push_back(id);
  if (completed_.size() > kCompletedRemembered) completed_.pop_front();
}

void FormedGroup::Finish(std::map<int, Part> parts, const StatusOr<Tensor>& result) {
  for (auto& [rank, part] : parts) {
    if (result.ok()) {
      std::move(part.collected)(ResultOf(rank, part.call, *result));
    } else {
      std::move(part.collected)(result.status());
    }
  }
}

Tensor FormedGroup::ResultOf(int rank, const CollectiveCall& call, const Tensor& result) const {
  Dims dims(call.shape.dims().begin(), call.shape.dims().end());
  if (call.kind == CollectiveKind::kAllGather) dims[0] *= key().size;
  if (call.kind != CollectiveKind::kReduceScatter) return result.Reshaped(Shape(dims));
  dims[0] /= key().size;
  const Shape shape(dims);
  const int64_t at = (rank - first_rank_[self_]) * shape.num_elements();
  return result.Slice(at, at + shape.num_elements()).Reshaped(shape);
}

void FormedGroup::Send(uint64_t execution, uint16_t fingerprint, int peer, Tag tag, Tensor value) {
  {
    MutexLock lock(mu_);
    const auto found = executions_.find(execution);
    if (found == executions_.end()) return;  // has failed meanwhile
    ++found->second.unsent;
  }
  const Address address{
      .group = id_, .execution = execution, .fingerprint = fingerprint, .tag = tag.Number()};
  options_.send(tasks_[peer], keys_[peer].In(address.frame(), address.iteration()),
                std::move(value),
                [self = shared_from_this(), execution] { self->HandedOver(execution); });
}

void FormedGroup::Recv(uint64_t execution, int peer, Tag tag, PeerLink::Received received) {
  StatusOr<Tensor> value = Tensor();
  {
    MutexLock lock(mu_);
    const auto found = mailbox_.find({peer, execution, tag.Number()});
    if (found != mailbox_.end()) {
      Tensor* const arrived = std::get_if<Tensor>(&found->second);
      CHECK(arrived != nullptr, "a collective waits for a message twice");
      value = std::move(*arrived);
      mailbox_.erase(found);
    } else if (!ended_.ok() && !go_on_.contains(execution)) {
      value = ended_;
    } else {
      mailbox_.emplace(Slot{peer, execution, tag.Number()}, std::move(received));
      return;
    }
  }
  std::move(received)(std::move(value));
}

void FormedGroup::Receive(const TaskName& from, const Address& address, Tensor value) {
  int peer = PeerOf(from);
  if (peer < 0) return;
  const int sender = peer;
  if (address.tag >> 30 == Tag::kFromAny) peer = PeerLink::kAnyPeer;
  std::optional<PeerLink::Received> waits;
  Status wrong;
  {
    MutexLock lock(mu_);
    if (!ended_.ok() && !go_on_.contains(address.execution)) return;
    const auto execution = executions_.find(address.execution);
    if (execution == executions_.end()) {
      foreseen_.emplace(address.execution, std::pair(address.fingerprint, sender));
    } else if (execution->second.fingerprint != address.fingerprint) {
      const CollectiveCall& call = execution->second.parts.begin()->second.call;
      wrong = InvalidArgument("the ranks of instance ", call.instance_key, " of ", key().ToString(),
                              " disagree: ", call.device, " brings an ", Describe(call), ", ",
                              from.ToString(),
                              " a tensor of another type or shape, or another collective");
    }
    const auto [slot, is_new] =
        mailbox_.try_emplace(Slot{peer, address.execution, address.tag}, value);
    if (wrong.ok() && !is_new) {
      if (auto* const received = std::get_if<PeerLink::Received>(&slot->second)) {
        waits = std::move(*received);
        mailbox_.erase(slot);
      } else {
        wrong = InvalidArgument("a message of ", key().ToString(), " has come from ",
                                from.ToString(), " twice; has a broadcast two sources?");
      }
    }
  }
  if (!wrong.ok()) return options_.fail(*this, wrong);
  if (waits.has_value()) (*std::move(waits))(std::move(value));
}

void FormedGroup::End(const Status& why, const std::vector<uint64_t>& completed) {
  CHECK(!why.ok());
  std::vector<std::map<int, Part>> parts;
  std::vector<PeerLink::Received> waiting;
  {
    MutexLock lock(mu_);
    const std::set<uint64_t> named(completed.begin(), completed.end());
    std::set<uint64_t> go_on;
    for (auto it = executions_.begin(); it != executions_.end();) {
      const bool before = ended_.ok() || go_on_.contains(it->first);
      if (before && it->second.started && named.contains(it->first)) {
        go_on.insert((it++)->first);
      } else {
        parts.push_back(std::move(it->second.parts));
        it = executions_.erase(it);
      }
    }
    for (auto it = mailbox_.begin(); it != mailbox_.end();) {
      if (go_on.contains(it->first.execution)) {
        ++it;
        continue;
      }
      if (auto* const received = std::get_if<PeerLink::Received>(&it->second)) {
        waiting.push_back(std::move(*received));
      }
      it = mailbox_.erase(it);
    }
    go_on_ = std::move(go_on);
    foreseen_.clear();
    if (ended_.ok()) ended_ = why;
  }
  for (auto& each : parts) Finish(std::move(each), why);
  for (auto& received : waiting) std::move(received)(why);
}

void FormedGroup::Left(const TaskName& task, const Status& why,
                       const std::vector<uint64_t>& completed) {
  {
    MutexLock lock(mu_);
    left_.insert(task);
  }
  End(why, completed);
}

bool FormedGroup::HasLeft(const TaskName& task) const {
  MutexLock lock(mu_);
  return left_.contains(task);
}

bool FormedGroup::ended() const {
  MutexLock lock(mu_);
  return !ended_.ok();
}

bool FormedGroup::running() const {
  MutexLock lock(mu_);
  return !executions_.empty();
}

std::vector<uint64_t> FormedGroup::completed() const {
  MutexLock lock(mu_);
  return {completed_.begin(), completed_.end()};
}

}  // namespace penstock::collective
