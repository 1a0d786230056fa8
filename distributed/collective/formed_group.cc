// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/formed_group.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>

#include "absl/strings/str_join.h"
#include "distributed/collective/algorithms.h"
#include "distributed/collective/fingerprint.h"
#include "distributed/collective/merge.h"

namespace penstock::collective {
namespace {

constexpr size_t kCompletedRemembered = 256;
// An all-reduce of up to this many bytes uses recursive doubling: for few bytes, the
// number of hops matters more than the number of bytes sent.
constexpr int64_t kDoublingBytesMax = 96 << 10;

constexpr size_t kForeseenMax = 1 << 20;
constexpr size_t kRanksNamed = 8;  // maximum number of ranks that an error names

Tensor Flat(const Tensor& tensor) { return tensor.Reshaped(Shape({tensor.num_elements()})); }

// Returns the size in bytes of the chunks in which a large tensor is sent: small enough that
// several are under way at a time, and large enough that the cost of each message does not
// matter.
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

FormedGroup::FormedGroup(Options options)
    : options_(std::move(options)),
      id_(IdOf(options_.ranks)),
      completed_(kCompletedRemembered),
      sent_(kCompletedRemembered) {
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
  for (const auto& [other, part] : execution.parts) {
    if (call.is_source && part.call.is_source) return TwoSources(self_, self_);
  }
  return OkStatus();
}

Status FormedGroup::DisagreementError(const CollectiveCall& call, int sender) const {
  return InvalidArgument("the ranks of instance ", call.instance_key, " of ", key().ToString(),
                         " disagree: ", call.device, " brings an ", Describe(call), ", ",
                         tasks_[sender].ToString(),
                         " a tensor of another type or shape, or another collective");
}

std::string FormedGroup::DescribeRanks() const {
  std::string text;
  for (size_t i = 0; i < ranks().size() && i < kRanksNamed; ++i) {
    StrAppend(&text, i == 0 ? "" : ", ", ranks()[i].device.ToString());
  }
  if (ranks().size() > kRanksNamed) StrAppend(&text, ", ...");
  return text;
}

Status FormedGroup::TwoSources(int one, int other) const {
  return InvalidArgument("a broadcast of ", key().ToString(), " has two sources, ranks of ",
                         tasks_[one].ToString(), " and ", tasks_[other].ToString(),
                         "; expected one CollectiveBcastSend and ", key().size - 1,
                         " CollectiveBcastRecv at its ranks: ", DescribeRanks());
}

Status FormedGroup::NoteSource(Roles* roles, int sender) const {
  if (roles->source >= 0 && roles->source != sender) return TwoSources(roles->source, sender);
  roles->source = sender;
  return OkStatus();
}

Status FormedGroup::CheckForSource(const Execution& execution) const {
  const CollectiveCall& call = execution.parts.begin()->second.call;
  const int others = static_cast<int>(tasks_.size()) - 1;
  if (call.kind != CollectiveKind::kBroadcast || !execution.started) return OkStatus();
  if (execution.roles.source >= 0 || execution.roles.receivers < others) return OkStatus();
  return InvalidArgument("the broadcast of instance ", call.instance_key, " of ", key().ToString(),
                         " has no source: all its ranks receive; expected one CollectiveBcastSend "
                         "at one of its ranks: ",
                         DescribeRanks());
}

Status FormedGroup::AddPart(uint64_t id, int rank, CollectiveCall call,
                            Collectives::Collected* collected, bool* complete) {
  const auto foreseen = foreseen_.extract(id);
  const auto found = executions_.find(id);
  Execution fresh;
  Execution& execution = found == executions_.end() ? fresh : found->second;
  const uint16_t fingerprint = FingerprintOf(call);
  RETURN_IF_ERROR(CheckPart(execution, rank, call));
  if (!foreseen.empty()) {
    if (foreseen.mapped().fingerprint != fingerprint) {
      return DisagreementError(call, foreseen.mapped().sender);
    }
    execution.roles = foreseen.mapped().roles;
  }
  if (call.is_source) RETURN_IF_ERROR(NoteSource(&execution.roles, self_));
  execution.fingerprint = fingerprint;
  execution.parts.emplace(rank, Part{std::move(call), std::move(*collected)});
  const int own = first_rank_[self_ + 1] - first_rank_[self_];
  *complete = execution.started = static_cast<int>(execution.parts.size()) == own;
  // Executions without any part are never stored, and other functions rely on that.
  if (found == executions_.end()) executions_.emplace(id, std::move(fresh));
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
      status = AddPart(id, rank, std::move(call), &collected, &complete);
      misused = !status.ok();
    }
  }
  if (misused) options_.fail(*this, status);
  if (!status.ok()) return std::move(collected)(status);
  if (complete) Start(id);
}

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
    // Task 0 checks whether no task sends. No other task has to wait for the check.
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
  if (!input.ok()) return NoteRan(id, {}, input.status());
  const int64_t size = key().size, elements = first.shape.num_elements();
  int64_t result = elements;
  if (first.kind == CollectiveKind::kAllGather) result = elements * size;
  if (first.kind == CollectiveKind::kReduceScatter) {
    result = elements / size * static_cast<int64_t>(calls.size());
  }
  if (first.kind == CollectiveKind::kBroadcast && input->valid()) {
    return RunAlgorithm(id, calls, *input, *input);  // the source's result is its input
  }
  StatusOr<Tensor> output = Tensor::Make(CpuAllocator(), first.dtype, Shape({result}));
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
    // A success waits until all messages have been sent: HandedOver then ends the execution. A
    // failure need not wait, because no other step uses its messages.
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

// Compares a message with what this task knows about its execution, and notes what the message says
// about a broadcast.
Status FormedGroup::CheckMessage(int sender, const Address& address) {
  const auto execution = executions_.find(address.execution);
  const bool begun = execution != executions_.end();
  if (!begun && foreseen_.size() >= kForeseenMax && !foreseen_.contains(address.execution)) {
    return ResourceExhausted(key().ToString(), ": ", tasks_[sender].ToString(), " is ahead by ",
                             foreseen_.size(), " executions, the most that it may be");
  }
  if (begun && execution->second.fingerprint != address.fingerprint) {
    return DisagreementError(execution->second.parts.begin()->second.call, sender);
  }
  Roles* const roles = begun ? &execution->second.roles : &Foresee(sender, address);
  if (address.tag == kAnnouncement.Number()) return NoteSource(roles, sender);
  if (address.tag != kReceiver.Number()) return OkStatus();
  ++roles->receivers;
  return begun ? CheckForSource(execution->second) : OkStatus();
}

FormedGroup::Roles& FormedGroup::Foresee(int sender, const Address& address) {
  const bool receives = address.tag == kReceiver.Number();
  const auto [found, is_new] =
      foreseen_.try_emplace(address.execution, Foreseen{address.fingerprint, sender});
  Foreseen& foreseen = found->second;
  foreseen.only_receivers = receives && (is_new || foreseen.only_receivers);
  if (!is_new || !receives) return foreseen.roles;
  receivers_.push_back(address.execution);
  if (receivers_.size() > kReceiversMax) {
    const auto oldest = foreseen_.find(receivers_.front());
    receivers_.pop_front();
    const bool is_other = oldest != foreseen_.end() && oldest != found;
    if (is_other && oldest->second.only_receivers) foreseen_.erase(oldest);
  }
  return foreseen.roles;
}

size_t FormedGroup::foreseen() const {
  MutexLock lock(mu_);
  return foreseen_.size();
}

void FormedGroup::Receive(const TaskName& from, const Address& address, Tensor value) {
  const int sender = PeerOf(from);
  if (sender < 0) return;
  const bool from_any = address.tag >> 30 == Tag::kFromAny;
  const Mailbox::Slot slot{from_any ? PeerLink::kAnyPeer : sender, address.execution, address.tag};
  std::optional<PeerLink::Received> waits;
  Status wrong;
  {
    MutexLock lock(mu_);
    if (!ended_.ok() && !may_succeed_.contains(address.execution)) return;
    if (completed_.contains(address.execution)) {
      // This execution has received all messages that it needs. But a second source may
      // announce itself to the first one.
      const bool announces = address.tag == kAnnouncement.Number();
      if (!announces || !sent_.contains(address.execution)) return;
      wrong = TwoSources(self_, sender);
    }
    if (wrong.ok()) wrong = CheckMessage(sender, address);
    if (wrong.ok() && address.tag == kReceiver.Number()) return;
    if (wrong.ok()) wrong = CheckRoomFor(slot, from, value);
    bool twice = false;
    if (wrong.ok()) waits = mailbox_.Put(slot, value, &twice);
    if (twice) {
      wrong = InvalidArgument("a message of ", key().ToString(), " has come from ", from.ToString(),
                              " twice");
    }
  }
  if (!wrong.ok()) return options_.fail(*this, wrong);
  if (waits.has_value()) (*std::move(waits))(std::move(value));
}

Status FormedGroup::CheckRoomFor(const Mailbox::Slot& slot, const TaskName& from,
                                 const Tensor& value) const {
  const auto bytes = static_cast<int64_t>(value.bytes());
  if (mailbox_.bytes() + bytes <= options_.unclaimed_bytes_max || mailbox_.IsAwaited(slot)) {
    return OkStatus();
  }
  return ResourceExhausted(key().ToString(), ": ", mailbox_.bytes(), " bytes wait for ",
                           tasks_[self_].ToString(), " to take part, and ", from.ToString(),
                           " sends ", bytes, " more; at most ", options_.unclaimed_bytes_max,
                           " may wait");
}

std::string FormedGroup::Missing(int64_t instance) const {
  std::set<std::string> names;
  MutexLock lock(mu_);
  for (const auto& [id, execution] : executions_) {
    if (execution.parts.begin()->second.call.instance_key != instance) continue;
    for (int rank = first_rank_[self_]; rank < first_rank_[self_ + 1]; ++rank) {
      if (!execution.parts.contains(rank)) names.insert(ranks()[rank].device.ToString());
    }
    for (const int peer : mailbox_.PeersAwaitedBy(id)) {
      names.insert(peer < 0 ? "the broadcast's source" : tasks_[peer].ToString());
    }
  }
  if (names.empty()) return "its messages have not left yet";
  return StrCat("it waits for ", absl::StrJoin(names, ", "));
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
      const bool before = ended_.ok() || may_succeed_.contains(it->first);
      if (before && it->second.started && named.contains(it->first)) {
        go_on.insert((it++)->first);
      } else {
        parts.push_back(std::move(it->second.parts));
        it = executions_.erase(it);
      }
    }
    waiting = mailbox_.DropAllBut(go_on);
    may_succeed_ = std::move(go_on);
    foreseen_.clear();
    if (ended_.ok()) ended_ = why;
  }
  for (auto& each : parts) Finish(std::move(each), why);
  for (auto& received : waiting) std::move(received)(why);
}

void FormedGroup::NoteLeft(const TaskName& task, const Status& why,
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
  return {completed_.in_order().begin(), completed_.in_order().end()};
}

}  // namespace penstock::collective
