// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/predicted_step.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace penstock {
namespace {

using Input = PlacementProblem::Input;

// An event of the simulation: a node ends, or an input of a node arrives.
struct Event {
  double at_ns;
  int sequence;  // events at the same time are handled in the order of their creation
  int node;
  bool ended;
  bool operator>(const Event& other) const {
    return std::pair(at_ns, sequence) > std::pair(other.at_ns, other.sequence);
  }
};

struct ByRank {
  absl::Span<const double> ranks;
  bool operator()(int a, int b) const { return ranks[a] != ranks[b] ? ranks[a] < ranks[b] : a > b; }
};

using ReadyNodes = std::priority_queue<int, std::vector<int>, ByRank>;

class Simulation {
 public:
  Simulation(const PlacementProblem& problem, absl::Span<const int> device,
             absl::Span<const double> ranks)
      : problem_(problem),
        device_(device),
        waits_for_(problem.num_nodes()),
        first_reader_(problem.num_nodes() + 1),
        sends_free_(problem.num_tasks),
        receives_free_(problem.num_tasks),
        copies_free_(problem.num_tasks),
        ready_(problem.devices.size(), ReadyNodes(ByRank{ranks})),
        idle_lanes_(problem.devices.size()) {
    step_.runs.resize(problem.num_nodes());
    for (size_t d = 0; d < idle_lanes_.size(); ++d) {
      for (int lane = problem.devices[d].lanes - 1; lane >= 0; --lane) {
        idle_lanes_[d].push_back(lane);
      }
    }
    ListReaders();
  }

  PredictedStep Run() {
    for (int node = 0; node < problem_.num_nodes(); ++node) {
      if (waits_for_[node] == 0) Schedule(problem_.StartNanos(DeviceOf(node)), node, false);
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      event.ended ? End(event.node, event.at_ns) : Ready(event.node);
      // First handle all events of this time, so that lanes choose among all nodes ready then.
      if (!events_.empty() && events_.top().at_ns == event.at_ns) continue;
      for (const int device : changed_) StartNodes(device, event.at_ns);
      changed_.clear();
    }
    return std::move(step_);
  }

 private:
  struct Reader {
    int node, output;
  };

  int DeviceOf(int node) const { return device_[problem_.group[node]]; }

  void Schedule(double at_ns, int node, bool ended) {
    events_.push({at_ns, num_events_++, node, ended});
  }

  void ListReaders() {
    for (const Input& input : problem_.inputs) ++first_reader_[input.node + 1];
    for (int n = 0; n < problem_.num_nodes(); ++n) first_reader_[n + 1] += first_reader_[n];
    readers_.resize(problem_.inputs.size());
    std::vector<int> next(first_reader_.begin(), first_reader_.end() - 1);
    for (int node = 0; node < problem_.num_nodes(); ++node) {
      for (int i = problem_.first_input[node]; i < problem_.first_input[node + 1]; ++i) {
        const Input& input = problem_.inputs[i];
        readers_[next[input.node]++] = {node, input.output};
        ++waits_for_[node];
      }
    }
  }

  void Ready(int node) {
    if (waits_for_[node] > 0 && --waits_for_[node] > 0) return;
    const int device = DeviceOf(node);
    ready_[device].push(node);
    changed_.push_back(device);
  }

  void StartNodes(int device, double now) {
    while (!ready_[device].empty() && !idle_lanes_[device].empty()) {
      const int node = ready_[device].top();
      ready_[device].pop();
      const double start = std::max(now, problem_.StartNanos(device));
      const double end = start + problem_.Nanos(node, device);
      step_.runs[node] = {device, idle_lanes_[device].back(), start, end};
      idle_lanes_[device].pop_back();
      Schedule(end, node, true);
    }
  }

  void End(int node, double now) {
    const int device = DeviceOf(node);
    idle_lanes_[device].push_back(step_.runs[node].lane);
    step_.end_ns = std::max(step_.end_ns, now + problem_.StartNanos(device));
    for (int r = first_reader_[node]; r < first_reader_[node + 1]; ++r) {
      Schedule(Arrival(node, readers_[r].output, device, DeviceOf(readers_[r].node), now),
               readers_[r].node, false);
    }
    changed_.push_back(device);
  }

  // Returns when an output that is ready now arrives on device `to`. Adds its transfer, unless it
  // is sent there already.
  double Arrival(int node, int output, int from, int to, double now) {
    if (from == to) return now;
    for (const PredictedStep::Transfer* sent = step_.transfers.data() + step_.transfers.size();
         sent != step_.transfers.data() && (sent - 1)->node == node; --sent) {
      if ((sent - 1)->output == output && (sent - 1)->to == to) return (sent - 1)->end_ns;
    }
    const int a = problem_.devices[from].task, b = problem_.devices[to].task;
    double& sends = a == b ? copies_free_[a] : sends_free_[a];
    double& receives = a == b ? copies_free_[a] : receives_free_[b];
    const LinkRates link = problem_.Link(from, to);
    const double start = std::max({now, sends, receives});
    const double bytes = problem_.Bytes({node, output});
    sends = receives = start + bytes / link.bytes_per_ns;
    const double end = sends + link.latency_ns;
    step_.transfers.push_back({node, output, from, to, start, end});
    return end;
  }

  const PlacementProblem& problem_;
  const absl::Span<const int> device_;
  std::vector<int> waits_for_;     // by node: inputs that have not arrived
  std::vector<int> first_reader_;  // by node: index in readers_
  std::vector<Reader> readers_;
  std::vector<double> sends_free_, receives_free_, copies_free_;  // by task
  std::vector<ReadyNodes> ready_;                                 // by device
  std::vector<std::vector<int>> idle_lanes_;                      // by device
  std::vector<int> changed_;  // devices with new ready nodes or idle lanes
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  int num_events_ = 0;
  PredictedStep step_;
};

}  // namespace

PredictedStep PredictStep(const PlacementProblem& problem, absl::Span<const int> device,
                          absl::Span<const double> ranks) {
  return Simulation(problem, device, ranks).Run();
}

}  // namespace penstock
