// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/problem.h"

#include <algorithm>

namespace penstock {
namespace {

// The shortest and the average time of a node over the devices of its group.
struct Times {
  double least = 0, mean = 0;
};

Times TimesOf(const PlacementProblem& problem, int node) {
  const std::vector<int>& devices = problem.candidates[problem.group[node]];
  Times times = {.least = problem.Nanos(node, devices.front())};
  double sum = 0;
  for (const int device : devices) {
    const double nanos = problem.Nanos(node, device);
    times.least = std::min(times.least, nanos);
    sum += nanos;
  }
  times.mean = sum / static_cast<double>(devices.size());
  return times;
}

// Returns the mean time of a transfer between two groups; 0 if both must share a device.
double MeanTransfer(const PlacementProblem& problem, const PlacementProblem::Input& input,
                    int reader) {
  const int from = problem.group[input.node], to = problem.group[reader];
  if (from == to) return 0;
  const std::vector<int>& a = problem.candidates[from];
  const std::vector<int>& b = problem.candidates[to];
  const double share_apart = a.size() == 1 && b.size() == 1
                                 ? (a[0] == b[0] ? 0.0 : 1.0)
                                 : 1 - 1 / static_cast<double>(std::max(a.size(), b.size()));
  if (share_apart == 0) return 0;
  const int other = b.back() != a.front() ? b.back() : b.front();
  if (other == a.front()) return 0;
  const LinkRates link = problem.Link(a.front(), other);
  return share_apart * (link.latency_ns + problem.Bytes(input) / link.bytes_per_ns);
}

}  // namespace

void PlacementProblem::AddNode(int group_of_node, const std::vector<Input>& its_inputs,
                               const std::vector<double>& nanos_by_kind,
                               const std::vector<DeviceTime>& its_device_times) {
  group.push_back(group_of_node);
  inputs.insert(inputs.end(), its_inputs.begin(), its_inputs.end());
  first_input.push_back(static_cast<int>(inputs.size()));
  nanos.insert(nanos.end(), nanos_by_kind.begin(), nanos_by_kind.end());
  device_times.insert(device_times.end(), its_device_times.begin(), its_device_times.end());
  first_device_time.push_back(static_cast<int>(device_times.size()));
}

double PlacementProblem::Nanos(int node, int device) const {
  for (int i = first_device_time[node]; i < first_device_time[node + 1]; ++i) {
    if (device_times[i].device == device) return device_times[i].nanos;
  }
  return nanos[static_cast<size_t>(node) * num_kinds + devices[device].kind];
}

LinkRates PlacementProblem::Link(int from, int to) const {
  const bool same_task = devices[from].task == devices[to].task;
  if (!same_task && !links.empty()) {
    return links[static_cast<size_t>(devices[from].task) * num_tasks + devices[to].task];
  }
  const LinkRates& a = same_task ? devices[from].link_in_task : devices[from].link_to_tasks;
  const LinkRates& b = same_task ? devices[to].link_in_task : devices[to].link_to_tasks;
  return {.bytes_per_ns = std::min(a.bytes_per_ns, b.bytes_per_ns),
          .latency_ns = std::max(a.latency_ns, b.latency_ns)};
}

std::vector<double> UpwardRanks(const PlacementProblem& problem) {
  std::vector<double> ranks(problem.num_nodes(), 0);
  for (int node = problem.num_nodes() - 1; node >= 0; --node) {
    ranks[node] += TimesOf(problem, node).mean;
    for (int i = problem.first_input[node]; i < problem.first_input[node + 1]; ++i) {
      const PlacementProblem::Input& input = problem.inputs[i];
      double& before = ranks[input.node];  // the longest path from the node's end, so far
      before = std::max(before, ranks[node] + MeanTransfer(problem, input, node));
    }
  }
  return ranks;
}

double LowerBoundNanos(const PlacementProblem& problem) {
  std::vector<double> ends(problem.num_nodes(), 0);
  double longest = 0, work = 0;
  int lanes = 0;
  for (const PlacementProblem::Device& device : problem.devices) lanes += device.lanes;
  for (int node = 0; node < problem.num_nodes(); ++node) {
    double start = 0;
    for (int i = problem.first_input[node]; i < problem.first_input[node + 1]; ++i) {
      start = std::max(start, ends[problem.inputs[i].node]);
    }
    const double least = TimesOf(problem, node).least;
    ends[node] = start + least;
    work += least;
    longest = std::max(longest, ends[node]);
  }
  return std::max(longest, work / std::max(lanes, 1));
}

}  // namespace penstock
