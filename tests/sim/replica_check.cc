// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/replica_check.h"

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
    variables[absl::StrCat(container, "/", name)] = *std::move(found);
  }
  return variables;
}

// Returns the value's bytes; "" if there is no value.
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

}  // namespace

std::string ReplicaCheck::Look(SimProcess* one, SimProcess* other) {
  if (one == nullptr || other == nullptr) return "";
  if (Leads(*one) && other->replica()->state().whole) return LookAt(*one, *other);
  if (Leads(*other) && one->replica()->state().whole) return LookAt(*other, *one);
  return "";
}

std::string ReplicaCheck::LookAt(SimProcess& primary, SimProcess& follower) {
  const bool quiet = primary.task().worker().steps().counts().running == 0;
  return quiet && primary.replica()->state().log.behind == 0 ? Compare(primary, follower) : "";
}

std::string ReplicaCheck::Compare(SimProcess& primary, SimProcess& follower) {
  const auto there = VariablesOf(follower);
  std::map<std::string, Seen> before = std::exchange(seen_, {});
  for (const auto& [name, variable] : VariablesOf(primary)) {
    const auto found = there.find(name);
    if (found == there.end()) return absl::StrCat("the follower lacks variable ", name);
    const std::shared_ptr<Resource>& copy = found->second;
    if (BytesOf(*variable) != BytesOf(*copy)) {
      return absl::StrCat("variable ", name, " differs in the follower");
    }
    const Seen seen{variable, copy, variable->version(), copy->version()};
    const auto old = before.find(name);
    const bool same = old != before.end() && old->second.primary.lock() == variable &&
                      old->second.follower.lock() == copy;
    if (same) {
      const int64_t changes = seen.primary_version - old->second.primary_version;
      const int64_t replayed = seen.follower_version - old->second.follower_version;
      if (changes != replayed) {
        return absl::StrCat("variable ", name, " has changed ", changes,
                            " times, and in the follower ", replayed, " times");
      }
    }
    seen_[name] = seen;
  }
  return "";
}

}  // namespace penstock::simulation
