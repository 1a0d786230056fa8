// SPDX-License-Identifier: Apache-2.0
#include "client/step_trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/op/task_name.h"
#include "core/runtime/timeline_label.h"
#include "core/runtime/trace_events.h"

namespace penstock::client {
namespace {

using nlohmann::json;

struct Interval {
  int64_t start_ns, end_ns;
};

// Returns the length of the union of the intervals.
int64_t Covered(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.start_ns < b.start_ns; });
  int64_t sum = 0, until = INT64_MIN;
  for (const Interval& each : intervals) {
    sum += std::max<int64_t>(0, each.end_ns - std::max(each.start_ns, until));
    until = std::max(until, each.end_ns);
  }
  return sum;
}

struct TracedNode {
  int64_t step;
  const NodeStats* node;
};

// Returns each device's nodes, ordered by their start.
std::map<std::string, std::vector<TracedNode>> NodesByDevice(const std::vector<TracedStep>& steps) {
  std::map<std::string, std::vector<TracedNode>> devices;
  for (const TracedStep& step : steps) {
    for (const DeviceStats& device : step.devices) {
      for (const NodeStats& node : device.nodes) {
        devices[device.device].push_back({step.step, &node});
      }
    }
  }
  for (auto& [name, nodes] : devices) {
    std::stable_sort(nodes.begin(), nodes.end(), [](const TracedNode& a, const TracedNode& b) {
      return a.node->start_ns < b.node->start_ns;
    });
  }
  return devices;
}

int64_t Start(const std::vector<TracedStep>& steps) {
  int64_t start = INT64_MAX;
  for (const TracedStep& step : steps) start = std::min(start, step.start_ns);
  return start;
}

// Returns the edges over which the nodes of one device receive tensors from other tasks.
std::set<std::string> EdgesFromOtherTasks(const std::vector<TracedNode>& nodes) {
  std::set<std::string> edges;
  for (const auto& [step, node] : nodes) {
    if (node->node == kTransferStats && node->transfer) edges.insert(node->transfer->edge);
  }
  return edges;
}

std::string TaskOf(const std::string& device) {
  const StatusOr<TaskName> task = TaskName::OfDevice(device);
  return task.ok() ? task->ToString() : "";
}

// Returns the transport that moved the tensor of `node`; "" if it is not known, or if `node` is not
// a transfer.
std::string RoadOf(const NodeStats& node, const std::set<std::string>& from_other_tasks,
                   const StepTrace::Roads& roads) {
  if (!node.transfer) return "";
  if (node.node != kTransferStats) {
    return node.op == "_Recv" && !from_other_tasks.contains(node.transfer->edge) ? "local" : "";
  }
  const auto road = roads.find({TaskOf(node.transfer->from), TaskOf(node.transfer->to)});
  return road == roads.end() ? "" : road->second;
}

}  // namespace

void StepTrace::SetRoads(Roads roads) {
  MutexLock lock(mu_);
  roads_ = std::move(roads);
}

bool StepTrace::has_roads() const {
  MutexLock lock(mu_);
  return roads_.has_value();
}

bool StepTrace::Take(int64_t step) {
  MutexLock lock(mu_);
  if (step < options_.first_step || taken_ >= options_.steps) return false;
  ++taken_;
  return true;
}

void StepTrace::Add(TracedStep step) {
  MutexLock lock(mu_);
  steps_.push_back(std::move(step));
}

StepTrace::Use StepTrace::use() const {
  MutexLock lock(mu_);
  Use use;
  if (steps_.empty()) return use;
  int64_t end_ns = INT64_MIN, sum_ns = 0;
  for (const TracedStep& step : steps_) {
    end_ns = std::max(end_ns, step.end_ns);
    sum_ns += step.end_ns - step.start_ns;
  }
  const auto all_ns = static_cast<double>(std::max<int64_t>(1, end_ns - Start(steps_)));
  use.steps = static_cast<int64_t>(steps_.size());
  use.seconds = all_ns * 1e-9;
  use.steps_under_way = static_cast<double>(sum_ns) / all_ns;
  for (const auto& [device, nodes] : NodesByDevice(steps_)) {
    std::vector<Interval> ran;
    for (const auto& [step, node] : nodes) {
      if (!WaitsForOthers(*node)) ran.push_back({node->start_ns, node->end_ns});
    }
    use.busy[device] = static_cast<double>(Covered(std::move(ran))) / all_ns;
  }
  return use;
}

std::string StepTrace::Describe() const {
  const Use all = use();
  std::string text = absl::StrFormat("%d steps in %.2f s, %.1f at a time; busy:", all.steps,
                                     all.seconds, all.steps_under_way);
  string_view separator = " ";
  for (const auto& [device, share] : all.busy) {
    StrAppend(&text, separator, device, absl::StrFormat(" %.0f %%", 100 * share));
    separator = ", ";
  }
  return text;
}

Status StepTrace::WriteJson(Env& env, const std::string& path) const {
  MutexLock lock(mu_);
  const int64_t origin_ns = steps_.empty() ? 0 : Start(steps_);
  TraceEvents events(origin_ns);
  int process = events.AddProcess("steps");
  std::vector<const TracedStep*> in_order;
  for (const TracedStep& step : steps_) in_order.push_back(&step);
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const auto* a, const auto* b) { return a->start_ns < b->start_ns; });
  for (const TracedStep* step : in_order) {
    events.Add(process, "steps", {StrCat("step ", step->step), step->start_ns, step->end_ns});
  }
  for (const auto& [device, nodes] : NodesByDevice(steps_)) {
    process = events.AddProcess(device);
    const std::set<std::string> from_other_tasks = EdgesFromOtherTasks(nodes);
    for (const auto& [step, node] : nodes) {
      json args = {{"node", TimelineLabel(*node)},
                   {"step", step},
                   {"ready_us", (node->scheduled_ns - origin_ns) * 1e-3}};
      if (node->node == kTransferStats && !node->outputs.empty()) {
        args["bytes"] = node->outputs[0].bytes;
      }
      const std::string road = RoadOf(*node, from_other_tasks, roads_.value_or(Roads()));
      if (!road.empty()) args["road"] = road;
      events.Add(process, StrCat("thread ", node->thread),
                 {node->title(), node->start_ns, node->end_ns, std::move(args)});
    }
  }
  return env.WriteFileAtomically(path, events.Json());
}

}  // namespace penstock::client
