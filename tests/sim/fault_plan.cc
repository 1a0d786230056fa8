// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/fault_plan.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_join.h"

namespace penstock::simulation {
namespace {

constexpr int kFaultsMin = 2, kFaultsMax = 8;

// Frequent kinds of faults are listed several times.
constexpr Fault::Kind kOften[] = {Fault::kKill, Fault::kKill, Fault::kKill, Fault::kPowerLoss};
constexpr Fault::Kind kWithReplicas[] = {
    Fault::kKill,      Fault::kKill,   Fault::kHostDown, Fault::kFreeze,    Fault::kCut,
    Fault::kCutOneWay, Fault::kRepeat, Fault::kSlow,     Fault::kClockJump, Fault::kSlowKill};

bool Listed(const std::vector<int>& only, int index) {
  return only.empty() || std::find(only.begin(), only.end(), index) != only.end();
}

StatusOr<std::vector<Fault::Kind>> KindsOf(const FaultPlanOptions& options) {
  std::vector<Fault::Kind> kinds;
  const std::vector<std::string>& names = FaultNames();
  if (options.replicas) {
    kinds.assign(std::begin(kWithReplicas), std::end(kWithReplicas));
  } else {
    for (int i = 0; i <= Fault::kClockJump; ++i) kinds.push_back(static_cast<Fault::Kind>(i));
    kinds.insert(kinds.end(), std::begin(kOften), std::end(kOften));
  }
  if (options.kinds.empty()) return kinds;
  for (const std::string& name : options.kinds) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return InvalidArgument("--faults: '", name, "' is none of ", absl::StrJoin(names, ", "));
    }
  }
  std::vector<Fault::Kind> wanted;
  for (const Fault::Kind kind : kinds) {
    const auto& all = options.kinds;
    if (std::find(all.begin(), all.end(), names[kind]) != all.end()) wanted.push_back(kind);
  }
  if (wanted.empty()) return InvalidArgument("--faults: none of them can come with --replicas");
  return wanted;
}

}  // namespace

const std::vector<std::string>& FaultNames() {
  static const auto* const names = new std::vector<std::string>{
      "kill", "host-down", "freeze",     "cut",      "cut-one-way", "loss",     "repeat",
      "slow", "disk",      "power-loss", "bit-flip", "clock-jump",  "slow-kill"};
  return *names;
}

std::string Fault::ToString() const {
  std::string text = FaultNames()[kind];
  if (!host.empty()) text += " " + host;
  if (!other.empty()) text += (kind == kCutOneWay ? " -> " : " - ") + other;
  if (lasts_ms > 0) text += " for " + std::to_string(lasts_ms) + " ms";
  return text;
}

StatusOr<std::vector<Fault>> MakeFaultPlan(const FaultPlanOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<Fault::Kind> kinds, KindsOf(options));
  std::mt19937_64 random(options.seed * 0x9e3779b97f4a7c15u + 1);
  const auto below = [&](uint64_t n) { return random() % n; };
  const auto count = static_cast<int>(kFaultsMin + below(kFaultsMax - kFaultsMin + 1));
  std::vector<Fault> plan;
  int64_t waited_ms = 0;
  for (int i = 0; i < count; ++i) {
    Fault fault{.kind = kinds[below(kinds.size())], .choice = random()};
    // Faults often come soon after the previous one, while the cluster recovers from it.
    fault.after_ms = static_cast<int64_t>(below(below(3) == 0 ? 200 : 2'000));
    fault.lasts_ms = static_cast<int64_t>(below(below(2) == 0 ? 300 : 8'000)) + 1;
    const size_t host = below(options.hosts.size());
    const size_t other = (host + 1 + below(options.hosts.size() - 1)) % options.hosts.size();
    const bool of_host = fault.kind <= Fault::kCutOneWay || fault.kind == Fault::kSlowKill;
    if (of_host) fault.host = options.hosts[host];
    const bool cut = fault.kind == Fault::kCut || fault.kind == Fault::kCutOneWay;
    if (cut) fault.other = options.hosts[other];
    if (fault.kind == Fault::kBitFlip || fault.kind == Fault::kClockJump) fault.lasts_ms = 0;
    waited_ms += fault.after_ms;
    if (!Listed(options.only, i)) continue;
    fault.after_ms = std::exchange(waited_ms, 0);
    plan.push_back(std::move(fault));
  }
  return plan;
}

}  // namespace penstock::simulation
