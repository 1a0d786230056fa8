// SPDX-License-Identifier: Apache-2.0
//
// SimChooser: decides which fault points fire in one simulated run. The seed chooses a quarter of
// the mishaps, and each of these fires at random times until EndMishaps. A bug fires each time if
// it is named, else never.
#pragma once

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/base/fault_point.h"
#include "core/base/status.h"
#include "tests/sim/sim_world.h"

namespace penstock::simulation {

class SimChooser final : public FaultPoint::Chooser {
 public:
  SimChooser(uint64_t seed, const std::vector<std::string>& bugs, bool mishaps)
      : seed_(seed), random_(seed + 1), bugs_(bugs.begin(), bugs.end()), mishaps_(mishaps) {}

  // Returns InvalidArgument if a name is not that of a bug.
  static Status CheckNames(const std::vector<std::string>& bugs) {
    for (const std::string& name : bugs) {
      bool found = false;
      for (const FaultPoint* point : FaultPoint::All()) {
        found = found || (point->kind() == FaultPoint::kBug && name == point->name());
      }
      if (!found) return InvalidArgument("--bug: there is no bug '", name, "'; see --list_points");
    }
    return OkStatus();
  }

  bool Choose(const FaultPoint& point) override {
    SimRunResult::Reached& reached = reached_[point.name()];
    ++reached.times;
    const bool fires = point.kind() == FaultPoint::kBug ? bugs_.count(point.name()) != 0
                                                        : mishaps_ && Happens(point.name());
    reached.fired += fires ? 1 : 0;
    return fires;
  }
  void EndMishaps() { mishaps_ = false; }
  const std::map<std::string, SimRunResult::Reached>& reached() const { return reached_; }

 private:
  static constexpr int kActiveOneIn = 4, kFiresOneIn = 10;

  bool Happens(const std::string& name) {
    uint64_t hash = seed_ * 0x9e3779b97f4a7c15u + 0xcbf29ce484222325u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return (hash >> 32) % kActiveOneIn == 0 && random_() % kFiresOneIn == 0;
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
  const std::set<std::string> bugs_;
  bool mishaps_;
  std::map<std::string, SimRunResult::Reached> reached_;
};

}  // namespace penstock::simulation
