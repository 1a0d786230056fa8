// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/predicted_cluster.h"

#include <algorithm>
#include <utility>

#include "core/compiler/placement/predicted_step.h"

namespace penstock {
namespace {

using Problem = PlacementProblem;

// The number of simulated steps of each worker, and the number of first steps that do not count.
constexpr int kSteps = 8, kWarmUp = 3;

// Copies of one step: kSteps for each worker.
class StepCopies {
 public:
  StepCopies(const PlacedStep& step, int workers)
      : step_(step), base_(step.problem), workers_(workers), ends_(workers) {
    AddDevices();
    AddGroups();
    FindSinks();
    for (int s = 0; s < kSteps; ++s) {
      for (int w = 0; w < workers_; ++w) AddStep(w);
    }
  }

  PredictedCluster Predict() const {
    const PredictedStep run = PredictStep(problem_, device_, UpwardRanks(problem_));
    PredictedCluster cluster;
    for (const std::vector<int>& ends : ends_) {
      cluster.step_ns += run.runs[ends.back()].end_ns - run.runs[ends[kWarmUp - 1]].end_ns;
    }
    cluster.step_ns /= static_cast<double>(workers_) * (kSteps - kWarmUp);
    cluster.steps_per_second = 1e9 * workers_ / cluster.step_ns;
    AddLoads(run, &cluster);
    return cluster;
  }

 private:
  bool Shared(int base_device) const {
    return base_.devices[base_device].task != base_.master_task;
  }

  // The parameter servers keep their task numbers; worker w has the number num_tasks + w.
  void AddDevices() {
    problem_.num_kinds = base_.num_kinds;
    problem_.num_tasks = base_.num_tasks + workers_;
    problem_.master_task = -1;
    devices_.resize(workers_);
    for (int w = 0; w < workers_; ++w) {
      for (size_t d = 0; d < base_.devices.size(); ++d) {
        const bool shared = Shared(static_cast<int>(d));
        if (shared && w > 0) {
          devices_[w].push_back(devices_[0][d]);
          continue;
        }
        devices_[w].push_back(static_cast<int>(problem_.devices.size()));
        problem_.devices.push_back(base_.devices[d]);
        if (!shared) problem_.devices.back().task = base_.num_tasks + w;
      }
    }
  }

  // Adds, for each worker, the groups of the step and one more, for the nodes that begin and end
  // its steps.
  void AddGroups() {
    int own = 0;
    while (Shared(own)) ++own;
    for (int w = 0; w < workers_; ++w) {
      for (const int device : step_.device) device_.push_back(devices_[w][device]);
      device_.push_back(devices_[w][own]);
    }
    for (const int device : device_) problem_.candidates.push_back({device});
  }
  int GroupOf(int worker, int base_group) const {
    return worker * (base_.num_groups() + 1) + base_group;
  }

  void FindSinks() {
    sink_.assign(base_.num_nodes(), true);
    for (const Problem::Input& input : base_.inputs) sink_[input.node] = false;
  }

  // Adds a step of `worker`, which begins when the worker's previous step has ended. Messages from
  // the worker then start the step's nodes on the parameter servers.
  void AddStep(int worker) {
    const std::vector<double> no_time(base_.num_kinds, 0);
    const int marker = GroupOf(worker, base_.num_groups());
    std::vector<Problem::Input> inputs, ends;
    if (!ends_[worker].empty()) inputs.push_back({ends_[worker].back(), -1});
    problem_.AddNode(marker, inputs, no_time);
    const int begin = problem_.num_nodes() - 1;
    const int outputs = static_cast<int>(problem_.output_bytes.size());
    problem_.output_bytes.insert(problem_.output_bytes.end(), base_.output_bytes.begin(),
                                 base_.output_bytes.end());
    for (int n = 0; n < base_.num_nodes(); ++n) {
      inputs.clear();
      for (int i = base_.first_input[n]; i < base_.first_input[n + 1]; ++i) {
        const Problem::Input& in = base_.inputs[i];
        inputs.push_back({begin + 1 + in.node, in.output < 0 ? -1 : outputs + in.output});
      }
      if (inputs.empty()) inputs.push_back({begin, -1});
      problem_.AddNode(GroupOf(worker, base_.group[n]), inputs, NanosOf(n));
      if (sink_[n]) ends.push_back({begin + 1 + n, -1});
    }
    problem_.AddNode(marker, ends, no_time);
    ends_[worker].push_back(problem_.num_nodes() - 1);
  }

  // A node has only one possible device, so its time on that device is entered for all kinds of
  // device.
  std::vector<double> NanosOf(int base_node) const {
    return std::vector<double>(base_.num_kinds,
                               base_.Nanos(base_node, step_.device[base_.group[base_node]]));
  }

  // Returns the time from the first node's start to the last one's end.
  static double SpanOf(const PredictedStep& run) {
    double start = run.end_ns, end = 0;
    for (const PredictedStep::Run& node : run.runs) {
      start = std::min(start, node.start_ns);
      end = std::max(end, node.end_ns);
    }
    return end - start;
  }

  void AddLoads(const PredictedStep& run, PredictedCluster* cluster) const {
    std::vector<PredictedCluster::Load> loads(problem_.num_tasks);
    std::vector<double> bytes(problem_.num_tasks, 0);
    for (const PredictedStep::Run& node : run.runs) {
      const Problem::Device& device = problem_.devices[node.device];
      loads[device.task].compute += (node.end_ns - node.start_ns) / device.lanes;
    }
    for (const PredictedStep::Transfer& sent : run.transfers) {
      const int from = problem_.devices[sent.from].task, to = problem_.devices[sent.to].task;
      if (from == to) continue;
      const double size = problem_.Bytes({sent.node, sent.output});
      const double nanos = size / problem_.Link(sent.from, sent.to).bytes_per_ns;
      loads[from].send += nanos;
      loads[to].receive += nanos;
      bytes[from] += size;
      bytes[to] += size;
    }
    const double nanos = SpanOf(run);
    for (int task = 0; task < problem_.num_tasks; ++task) {
      if (task == base_.master_task) continue;  // the workers replace this task
      const bool is_ps = task < base_.num_tasks;
      PredictedCluster::Load& most = is_ps ? cluster->ps : cluster->worker;
      most.compute = std::max(most.compute, loads[task].compute / nanos);
      most.send = std::max(most.send, loads[task].send / nanos);
      most.receive = std::max(most.receive, loads[task].receive / nanos);
      if (is_ps) cluster->ps_bytes.push_back(bytes[task] / (workers_ * kSteps));
    }
  }

  const PlacedStep& step_;
  const Problem& base_;
  const int workers_;
  Problem problem_;
  std::vector<std::vector<int>> devices_;  // by worker, then by device of the original step
  std::vector<int> device_;                // by group
  std::vector<bool> sink_;                 // by node of the original step: true if no node reads it
  std::vector<std::vector<int>> ends_;     // by worker, then by step: the node that ends it
};

}  // namespace

PredictedCluster PredictCluster(const PlacedStep& step, int workers) {
  return StepCopies(step, workers).Predict();
}

}  // namespace penstock
