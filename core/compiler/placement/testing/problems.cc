// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/testing/problems.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "core/compiler/placement/predicted_step.h"

namespace penstock {
namespace {

double Nanos(const PlacementProblem& problem, const std::vector<int>& placement) {
  return PredictStep(problem, placement, UpwardRanks(problem)).end_ns;
}

// HEFT as published, extended by groups: a device's time is a list of busy spans, and a node takes
// the first gap in which it fits. Links are never busy.
class Heft {
 public:
  explicit Heft(const PlacementProblem& problem)
      : problem_(problem),
        busy_(problem.devices.size()),
        ends_(problem.num_nodes()),
        placement_(problem.num_groups(), -1) {}

  std::vector<int> Run() {
    const std::vector<double> ranks = UpwardRanks(problem_);
    std::vector<int> order(problem_.num_nodes());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return ranks[a] > ranks[b]; });
    for (const int node : order) Place(node);
    return placement_;
  }

 private:
  using Span = std::pair<double, double>;

  void Place(int node) {
    int& chosen = placement_[problem_.group[node]];
    double best = std::numeric_limits<double>::infinity();
    int device = -1;
    for (const int d : problem_.candidates[problem_.group[node]]) {
      if (chosen >= 0 && d != chosen) continue;
      const double end = FirstGap(node, d) + problem_.Nanos(node, d);
      if (end >= best) continue;
      best = end;
      device = d;
    }
    chosen = device;
    ends_[node] = best;
    std::vector<Span>& spans = busy_[device];
    spans.insert(std::upper_bound(spans.begin(), spans.end(), Span(best, 0)),
                 {best - problem_.Nanos(node, device), best});
  }

  double FirstGap(int node, int device) const {
    double start = problem_.StartNanos(device);
    for (int i = problem_.first_input[node]; i < problem_.first_input[node + 1]; ++i) {
      const PlacementProblem::Input& input = problem_.inputs[i];
      const int from = placement_[problem_.group[input.node]];
      double arrival = ends_[input.node];
      if (from != device) {
        const LinkRates link = problem_.Link(from, device);
        arrival += link.latency_ns + problem_.Bytes(input) / link.bytes_per_ns;
      }
      start = std::max(start, arrival);
    }
    for (const auto& [from, to] : busy_[device]) {
      if (start + problem_.Nanos(node, device) <= from) break;
      start = std::max(start, to);
    }
    return start;
  }

  const PlacementProblem& problem_;
  std::vector<std::vector<Span>> busy_;  // by device
  std::vector<double> ends_;
  std::vector<int> placement_;
};

}  // namespace

PlacementProblem EqualDevices(int devices, double latency_ns, double bytes_per_ns) {
  const LinkRates link = {.bytes_per_ns = bytes_per_ns, .latency_ns = latency_ns};
  PlacementProblem problem;
  problem.num_tasks = devices;
  problem.num_kinds = 1;
  for (int d = 0; d < devices; ++d) {
    problem.devices.push_back({.task = d, .link_in_task = link, .link_to_tasks = link});
  }
  return problem;
}

PlacementProblem RandomProblem(uint64_t seed, const ProblemOptions& options) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit(0, 1);
  PlacementProblem problem = EqualDevices(options.devices, options.latency_ns, 1);
  problem.num_kinds = options.devices;
  std::vector<double> slowness;
  for (int d = 0; d < options.devices; ++d) {
    problem.devices[d].kind = d;
    slowness.push_back(1 + (d == 0 ? 0 : 2 * unit(random)));
  }
  std::vector<int> anywhere(options.devices);
  std::iota(anywhere.begin(), anywhere.end(), 0);
  for (int node = 0; node < options.nodes; ++node) {
    std::vector<PlacementProblem::Input> inputs;
    const int wanted = static_cast<int>(unit(random) * (options.most_inputs + 1));
    for (int i = 0; i < wanted && node > 0; ++i) {
      const int from = std::max(0, node - 1 - static_cast<int>(unit(random) * 8));
      inputs.push_back({from, from});
    }
    std::vector<double> nanos;
    const double mean = 2 * unit(random) * options.node_ns;
    for (const double slow : slowness) nanos.push_back(mean * slow * (0.75 + 0.5 * unit(random)));
    problem.candidates.push_back(anywhere);
    problem.AddNode(node, inputs, nanos);
    problem.output_bytes.push_back(2 * unit(random) * options.transfer_ns);
  }
  return problem;
}

double BestOfAllNanos(const PlacementProblem& problem) {
  std::vector<size_t> choice(problem.num_groups(), 0);
  double best = std::numeric_limits<double>::infinity();
  for (size_t position = 0; position < choice.size();) {
    std::vector<int> placement;
    for (size_t g = 0; g < choice.size(); ++g) {
      placement.push_back(problem.candidates[g][choice[g]]);
    }
    best = std::min(best, Nanos(problem, placement));
    for (position = 0; position < choice.size(); ++position) {
      if (++choice[position] < problem.candidates[position].size()) break;
      choice[position] = 0;
    }
  }
  return best;
}

double HeftNanos(const PlacementProblem& problem) { return Nanos(problem, Heft(problem).Run()); }

double BestSingleDeviceNanos(const PlacementProblem& problem) {
  double best = std::numeric_limits<double>::infinity();
  for (int device = 0; device < static_cast<int>(problem.devices.size()); ++device) {
    std::vector<int> placement;
    for (const std::vector<int>& may : problem.candidates) {
      placement.push_back(std::count(may.begin(), may.end(), device) > 0 ? device : may.front());
    }
    best = std::min(best, Nanos(problem, placement));
  }
  return best;
}

double RandomPlacementNanos(const PlacementProblem& problem, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int> placement;
  for (const std::vector<int>& may : problem.candidates) {
    placement.push_back(may[random() % may.size()]);
  }
  return Nanos(problem, placement);
}

}  // namespace penstock
