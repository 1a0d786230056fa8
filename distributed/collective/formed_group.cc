// SPDX-License-Identifier: Apache-2.0
//
// FormedGroup: its ranks, and the executions and messages that it knows. The execution of a
// collective is in formed_group_run.cc, the checks of calls and messages in formed_group_checks.cc.
#include "distributed/collective/formed_group.h"

#include <algorithm>
#include <optional>

#include "distributed/collective/algorithms.h"
#include "distributed/collective/fingerprint.h"

namespace penstock::collective {
namespace {

constexpr size_t kCompletedRemembered = 256;

}  // namespace

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
  // Only executions with a part are stored: other functions use the first part.
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
      // This execution has ended and needs no more messages. But if this task was the source of a
      // broadcast, the message may be the announcement of a second source, which is an error.
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
