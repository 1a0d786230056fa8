// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/replica_check.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/op/private_attrs.h"

namespace penstock::simulation {
namespace {

ResourceStore& StoreOf(SimProcess& process) {
  return *process.task().worker().stores()[0].resources;
}

std::map<std::string, std::shared_ptr<Resource>> VariablesOf(SimProcess& process) {
  std::map<std::string, std::shared_ptr<Resource>> variables;
  ResourceStore& store = StoreOf(process);
  for (const auto& [container, name] : store.List()) {
    if (absl::StartsWith(container, kPrivateContainerPrefix)) continue;
    auto found = store.Lookup(container, name);
    if (!found.ok() || dynamic_cast<const Variable*>(found->get()) == nullptr) continue;
    variables[StrCat(container, "/", name)] = *std::move(found);
  }
  return variables;
}

// Returns the value's shape and bytes; "" if there is no value.
std::string BytesOf(const Resource& resource) {
  std::string bytes;
  const auto copy = [&](const Tensor& value) {
    bytes = value.shape().ToString();
    bytes.append(static_cast<const char*>(value.raw_data()), value.bytes());
    return OkStatus();
  };
  (void)dynamic_cast<const Variable&>(resource).Inspect(copy);
  return bytes;
}

bool Leads(SimProcess& process) {
  const Replica::State state = process.replica()->state();
  return state.role == wire::REPLICA_PRIMARY && state.log.feeding && state.log.whole;
}

// Returns what is wrong if both processes are primaries.
std::string CheckEpochs(SimProcess& one, SimProcess& other) {
  const Replica::State a = one.replica()->state(), b = other.replica()->state();
  if (a.role != wire::REPLICA_PRIMARY || b.role != wire::REPLICA_PRIMARY) return "";
  if (a.epoch == b.epoch) return StrCat("both are the primary of epoch ", a.epoch);
  const Replica::State& older = a.epoch < b.epoch ? a : b;
  if (older.log.feeding && older.log.whole) return "";  // the primary waits for its follower
  return StrCat("the primary of epoch ", older.epoch, " goes on alone, although there is epoch ",
                std::max(a.epoch, b.epoch));
}

std::map<std::string, int64_t> VersionsOf(SimProcess& process) {
  std::map<std::string, int64_t> versions;
  for (const auto& [name, variable] : VariablesOf(process)) versions[name] = variable->version();
  return versions;
}

}  // namespace

// Checks a process whose other process is dead: if it is a follower that takes over, it must have
// the same versions of all variables as before. Returns what is wrong, as Check does.
std::string ReplicaCheck::CheckOrphan(SimProcess& process) {
  if (process.replica()->state().whole) {
    orphan_ = VersionsOf(process);
    orphan_of_ = &process;
    return "";
  }
  const bool took_over = std::exchange(orphan_of_, nullptr) == &process &&
                         process.replica()->role() == wire::REPLICA_PRIMARY &&
                         process.step_counts().begun == 0;
  if (!took_over) return "";
  const auto now = VersionsOf(process);
  for (const auto& [name, version] : now) {
    const auto before = orphan_.find(name);
    if (before != orphan_.end() && before->second == version) continue;
    return StrCat("variable ", name, " changed when the follower took over");
  }
  return now.size() == orphan_.size() ? "" : "a variable was lost when the follower took over";
}

std::string ReplicaCheck::CheckStep(SimProcess* one, SimProcess* other, int64_t step) {
  if (one == nullptr || other == nullptr) return "";
  const bool first = Leads(*one) && other->replica()->state().whole;
  const bool second = Leads(*other) && one->replica()->state().whole;
  if (!first && !second) return "";
  const auto variables = VariablesOf(first ? *other : *one);
  const auto found = variables.find(StrCat(kDefaultContainer, "/global_step"));
  if (found == variables.end()) return "";
  const auto value = dynamic_cast<Variable&>(*found->second).Read();
  if (value.ok() && value->scalar<int64_t>() >= step) return "";
  return StrCat("step ", step, " was acknowledged before the follower had it");
}

std::string ReplicaCheck::Check(SimProcess* one, SimProcess* other) {
  if (one == nullptr && other == nullptr) return "";
  if (one == nullptr || other == nullptr) return CheckOrphan(one == nullptr ? *other : *one);
  orphan_of_ = nullptr;
  const std::string wrong = CheckEpochs(*one, *other);
  if (!wrong.empty()) return wrong;
  if (Leads(*one) && other->replica()->state().whole) return LookAt(*one, *other);
  if (Leads(*other) && one->replica()->state().whole) return LookAt(*other, *one);
  return "";
}

std::string ReplicaCheck::LookAt(SimProcess& primary, SimProcess& follower) {
  const bool quiet = primary.task().worker().steps().counts().running == 0;
  if (!quiet) return CompareDuringStep(primary, follower);
  const ReplicaLog::Counts counts = primary.replica()->state().log;
  if (counts.behind != 0) return "";
  steps_ended_ = primary.step_counts().ended;
  forced_cuts_ = counts.forced_cuts;
  return Compare(primary, follower);
}

// Compares the follower with its state at the last comparison, if no step has ended since.
std::string ReplicaCheck::CompareDuringStep(SimProcess& primary, SimProcess& follower) {
  if (primary.step_counts().ended != steps_ended_) return "";
  if (primary.replica()->state().log.forced_cuts != forced_cuts_) return "";
  const auto now = VariablesOf(follower);
  for (const auto& [name, seen] : seen_) {
    const auto found = now.find(name);
    if (found == now.end() || seen.follower.lock() != found->second) continue;
    if (found->second->version() == seen.follower_version) continue;
    return StrCat("the follower has changed variable ", name, " amid a step");
  }
  return "";
}

std::string ReplicaCheck::Compare(SimProcess& primary, SimProcess& follower) {
  const auto there = VariablesOf(follower);
  std::map<std::string, Seen> before = std::exchange(seen_, {});
  for (const auto& [name, variable] : VariablesOf(primary)) {
    const auto found = there.find(name);
    if (found == there.end()) return StrCat("the follower lacks variable ", name);
    const std::shared_ptr<Resource>& copy = found->second;
    if (BytesOf(*variable) != BytesOf(*copy)) {
      return StrCat("variable ", name, " differs in the follower");
    }
    const Seen seen{variable, copy, variable->version(), copy->version()};
    const auto old = before.find(name);
    const bool same = old != before.end() && old->second.primary.lock() == variable &&
                      old->second.follower.lock() == copy;
    if (same) {
      const int64_t changes = seen.primary_version - old->second.primary_version;
      const int64_t replayed = seen.follower_version - old->second.follower_version;
      if (changes != replayed) {
        return StrCat("variable ", name, " has changed ", changes, " times, and in the follower ",
                      replayed, " times");
      }
    }
    seen_[name] = seen;
  }
  return "";
}

}  // namespace penstock::simulation
