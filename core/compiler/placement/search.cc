// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "core/compiler/placement/busy_lanes.h"
#include "core/compiler/placement/predicted_step.h"

namespace penstock {
namespace {

using Input = PlacementProblem::Input;

// Places one node after another where it would end soonest, and tracks when lanes and links are
// free.
class GreedyPlacement {
 public:
  GreedyPlacement(const PlacementProblem& problem, const std::vector<double>& ranks)
      : problem_(problem),
        ranks_(ranks),
        sends_free_(problem.num_tasks),
        receives_free_(problem.num_tasks),
        ends_(problem.num_nodes()),
        members_(problem.num_groups()) {
    for (size_t d = 0; d < problem.devices.size(); ++d) {
      lanes_.emplace_back(problem.devices[d].lanes, problem.StartNanos(static_cast<int>(d)));
    }
    for (int node = 0; node < problem.num_nodes(); ++node) {
      members_[problem.group[node]].push_back(node);
    }
  }

  std::vector<FoundPlacement::Group> Run() {
    groups_.assign(problem_.num_groups(), {.device = -1});
    // Ranks decrease along edges, and nodes of equal rank are in topological order.
    std::vector<int> order(problem_.num_nodes());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [this](int a, int b) { return ranks_[a] > ranks_[b]; });
    for (const int node : order) {
      FoundPlacement::Group& group = groups_[problem_.group[node]];
      if (group.device < 0) Choose(node, &group);
      Commit(node, group.device);
    }
    return std::move(groups_);
  }

 private:
  void Choose(int node, FoundPlacement::Group* group) {
    const std::vector<int>& candidates = problem_.candidates[problem_.group[node]];
    group->device = candidates.front();
    double soonest = std::numeric_limits<double>::infinity();
    group->candidates.reserve(candidates.size());
    for (const int device : candidates) {
      double end = StartOn(node, device) + problem_.Nanos(node, device);
      for (const int member : members_[problem_.group[node]]) {
        if (member == node) continue;
        end += problem_.Nanos(member, device) / problem_.devices[device].lanes;
      }
      end += problem_.StartNanos(device);
      group->candidates.push_back({device, end});
      if (end >= soonest) continue;
      soonest = end;
      group->device = device;
    }
  }

  double StartOn(int node, int device) const {
    double ready = 0;
    for (int i = problem_.first_input[node]; i < problem_.first_input[node + 1]; ++i) {
      ready = std::max(ready, Arrival(problem_.inputs[i], device));
    }
    return lanes_[device].StartFor(ready, problem_.Nanos(node, device));
  }

  // Returns the time at which an input arrives on a device. Counts a transfer once for each node
  // that needs it, although it is sent once per device. So the greedy search overestimates the cost
  // of transfers a little; a table of transfers would be exact, but slow down the search.
  double Arrival(const Input& input, int device) const {
    const int from = groups_[problem_.group[input.node]].device;
    const double end = ends_[input.node];
    if (from < 0 || from == device) return end;
    const int a = problem_.devices[from].task, b = problem_.devices[device].task;
    const LinkRates link = problem_.Link(from, device);
    const double start = a == b ? end : std::max({end, sends_free_[a], receives_free_[b]});
    return start + link.latency_ns + problem_.Bytes(input) / link.bytes_per_ns;
  }

  void Commit(int node, int device) {
    const double start = StartOn(node, device);
    for (int i = problem_.first_input[node]; i < problem_.first_input[node + 1]; ++i) {
      const Input& input = problem_.inputs[i];
      const int from = groups_[problem_.group[input.node]].device;
      const int a = problem_.devices[from].task, b = problem_.devices[device].task;
      if (a == b) continue;
      const double sent = Arrival(input, device) - problem_.Link(from, device).latency_ns;
      sends_free_[a] = receives_free_[b] = sent;
    }
    ends_[node] = start + problem_.Nanos(node, device);
    lanes_[device].Take(start, problem_.Nanos(node, device));
  }

  const PlacementProblem& problem_;
  const std::vector<double>& ranks_;
  std::vector<BusyLanes> lanes_;                    // by device
  std::vector<double> sends_free_, receives_free_;  // by task
  std::vector<double> ends_;                        // by node
  std::vector<std::vector<int>> members_;           // by group
  std::vector<FoundPlacement::Group> groups_;
};

// Compares complete placements by prediction until the budget is spent.
class PlacementImprover {
 public:
  PlacementImprover(const PlacementProblem& problem, const std::vector<double>& ranks, int budget,
                    std::vector<int> start)
      : problem_(problem), ranks_(ranks), budget_(budget), best_(std::move(start)) {
    best_ns_ = PredictStep(problem_, best_, ranks_).end_ns;
  }

  // For each device, moves all groups that may run on it there; the other groups stay.
  void TryEachDeviceAlone() {
    for (int device = 0; device < static_cast<int>(problem_.devices.size()); ++device) {
      std::vector<int> placement = best_;
      for (int group = 0; group < problem_.num_groups(); ++group) {
        const std::vector<int>& may = problem_.candidates[group];
        if (std::find(may.begin(), may.end(), device) != may.end()) placement[group] = device;
      }
      if (!Try(std::move(placement))) return;
    }
  }

  // Tries every placement of `groups` if the budget is large enough; otherwise does nothing and
  // returns false.
  bool TryAll(const std::vector<int>& groups) {
    double placements = 1;
    for (const int group : groups) {
      placements *= static_cast<double>(problem_.candidates[group].size());
    }
    if (placements * problem_.num_nodes() > budget_) return false;
    std::vector<size_t> choice(groups.size(), 0);
    for (size_t i = 0; i < groups.size();) {
      std::vector<int> placement = best_;
      for (size_t g = 0; g < groups.size(); ++g) {
        placement[groups[g]] = problem_.candidates[groups[g]][choice[g]];
      }
      Try(std::move(placement));
      for (i = 0; i < groups.size(); ++i) {  // the next placement, counting like an odometer
        if (++choice[i] < problem_.candidates[groups[i]].size()) break;
        choice[i] = 0;
      }
    }
    return true;
  }

  // Moves single groups, in the order of `groups`, until no move improves the placement or the
  // budget is spent.
  void TryMoves(const std::vector<int>& groups) {
    for (bool better = true; better;) {
      const double before = best_ns_;
      for (const int group : groups) {
        for (const int device : problem_.candidates[group]) {
          if (device == best_[group]) continue;
          std::vector<int> moved = best_;
          moved[group] = device;
          if (!Try(std::move(moved))) return;
        }
      }
      better = best_ns_ < before;
    }
  }

  // Leaves a local optimum: puts three random groups on random devices and improves from there.
  // Repeats this until many attempts in a row have failed or the budget is spent. The random
  // numbers are the same in each search.
  void TryJumps(const std::vector<int>& groups) {
    std::minstd_rand random;
    std::vector<int> known_best = best_;
    double known_best_ns = best_ns_;
    const int failures_max = 16 * static_cast<int>(groups.size());
    for (int failures = 0; failures < failures_max && budget_ > 0; ++failures) {
      best_ = known_best;
      for (int i = 0; i < 3; ++i) {
        const int group = groups[random() % groups.size()];
        const std::vector<int>& may = problem_.candidates[group];
        best_[group] = may[random() % may.size()];
      }
      best_ns_ = PredictStep(problem_, best_, ranks_).end_ns;
      TryMoves(groups);
      if (best_ns_ >= known_best_ns) continue;
      known_best = best_;
      known_best_ns = best_ns_;
      failures = 0;
    }
    best_ = std::move(known_best);
    best_ns_ = known_best_ns;
  }

  const std::vector<int>& best() const { return best_; }
  double best_ns() const { return best_ns_; }

 private:
  // Predicts the step of `placement`, and keeps the placement if it is the best so far. Does
  // nothing and returns false if the budget is spent.
  bool Try(std::vector<int> placement) {
    budget_ -= problem_.num_nodes();
    if (budget_ < 0) return false;
    const double end = PredictStep(problem_, placement, ranks_).end_ns;
    if (end < best_ns_) {
      best_ns_ = end;
      best_ = std::move(placement);
    }
    return true;
  }

  const PlacementProblem& problem_;
  const std::vector<double>& ranks_;
  int budget_;
  std::vector<int> best_;
  double best_ns_ = 0;
};

// Returns the groups that have a choice, in order of their largest rank.
std::vector<int> FreeGroups(const PlacementProblem& problem, const std::vector<double>& ranks) {
  std::vector<double> rank(problem.num_groups(), 0);
  std::vector<int> groups;
  for (int node = 0; node < problem.num_nodes(); ++node) {
    double& of_group = rank[problem.group[node]];
    of_group = std::max(of_group, ranks[node]);
  }
  for (int group = 0; group < problem.num_groups(); ++group) {
    if (problem.candidates[group].size() > 1) groups.push_back(group);
  }
  std::stable_sort(groups.begin(), groups.end(), [&](int a, int b) { return rank[a] > rank[b]; });
  return groups;
}

// The factor by which a new placement must be faster to replace an earlier one.
constexpr double kMoveFactorMin = 1.1;

bool IsPlacement(const PlacementProblem& problem, const std::vector<int>& devices) {
  if (devices.size() != problem.candidates.size()) return false;
  for (size_t group = 0; group < devices.size(); ++group) {
    const std::vector<int>& may = problem.candidates[group];
    if (std::find(may.begin(), may.end(), devices[group]) == may.end()) return false;
  }
  return true;
}

std::vector<int> DevicesOf(const std::vector<FoundPlacement::Group>& groups) {
  std::vector<int> devices;
  for (const FoundPlacement::Group& group : groups) devices.push_back(group.device);
  return devices;
}

void Search(const PlacementProblem& problem, const std::vector<double>& ranks,
            const std::vector<int>& free, int budget, FoundPlacement* found) {
  found->groups = GreedyPlacement(problem, ranks).Run();
  const std::vector<int> greedy = DevicesOf(found->groups);
  PlacementImprover improvement(problem, ranks, budget, greedy);
  if (!improvement.TryAll(free)) {
    improvement.TryEachDeviceAlone();
    improvement.TryMoves(free);
    improvement.TryJumps(free);
  }
  for (int group = 0; group < problem.num_groups(); ++group) {
    found->groups[group].device = improvement.best()[group];
    found->groups[group].moved = improvement.best()[group] != greedy[group];
  }
  found->step_ns = improvement.best_ns();
}

}  // namespace

FoundPlacement FindPlacement(const PlacementProblem& problem, const std::vector<int>& before,
                             int budget) {
  const std::vector<double> ranks = UpwardRanks(problem);
  const std::vector<int> free = FreeGroups(problem, ranks);
  FoundPlacement found;
  if (free.empty()) {
    for (const std::vector<int>& may : problem.candidates) {
      found.groups.push_back({.device = may.front(), .candidates = {}});
    }
    found.kept = IsPlacement(problem, before);
    return found;
  }
  Search(problem, ranks, free, budget, &found);
  if (!IsPlacement(problem, before)) return found;
  const double before_ns = PredictStep(problem, before, ranks).end_ns;
  if (found.step_ns * kMoveFactorMin < before_ns) return found;
  for (size_t group = 0; group < before.size(); ++group) found.groups[group].device = before[group];
  found.step_ns = before_ns;
  found.kept = true;
  return found;
}

}  // namespace penstock
