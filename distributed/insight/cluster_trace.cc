// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/cluster_trace.h"

#include <set>

#include "distributed/insight/words.h"

namespace penstock {
namespace {

struct Edge {
  std::string to;
  int64_t offset_ns, error_ns;
};

// Returns an edge in each direction for every reading: if one clock is ahead, the other one is
// behind.
std::map<std::string, std::vector<Edge>> EdgesOf(const ClusterTrace& trace) {
  std::map<std::string, std::vector<Edge>> edges;
  for (const ClusterTrace::ClockReading& reading : trace.readings) {
    edges[reading.reader].push_back({reading.task, reading.offset_ns, reading.error_ns});
    edges[reading.task].push_back({reading.reader, -reading.offset_ns, reading.error_ns});
  }
  return edges;
}

}  // namespace

// Uses Dijkstra's algorithm, with the errors as the lengths of edges.
std::map<std::string, TaskClock> CompareClocks(const ClusterTrace& trace) {
  std::map<std::string, TaskClock> clocks;
  for (const ClusterTrace::Master& master : trace.masters) clocks[master.task];
  for (const ClusterTrace::Step& step : trace.steps) {
    clocks[step.master];
    for (const DeviceStats& device : step.devices) clocks[TaskOfDevice(device.device)];
  }
  const auto edges = EdgesOf(trace);
  struct ReachedTask {
    int64_t error_ns, offset_ns;
    std::string task;
    auto operator<=>(const ReachedTask&) const = default;
  };
  std::set<ReachedTask> next = {{0, 0, trace.asked}};
  std::set<std::string> done;
  while (!next.empty()) {
    const ReachedTask nearest = *next.begin();
    next.erase(next.begin());
    if (!done.insert(nearest.task).second) continue;
    clocks[nearest.task] = {nearest.offset_ns, nearest.error_ns};
    const auto found = edges.find(nearest.task);
    if (found == edges.end()) continue;
    for (const Edge& edge : found->second) {
      next.insert({nearest.error_ns + edge.error_ns, nearest.offset_ns + edge.offset_ns, edge.to});
    }
  }
  return clocks;
}

void AlignTimes(const std::map<std::string, TaskClock>& clocks, ClusterTrace* trace) {
  const auto offset_of = [&](const std::string& task) {
    const auto found = clocks.find(task);
    return found == clocks.end() ? 0 : found->second.offset_ns;
  };
  for (ClusterTrace::Step& step : trace->steps) {
    const int64_t master_ns = offset_of(step.master);
    step.start_ns -= master_ns;
    step.end_ns -= master_ns;
    for (DeviceStats& device : step.devices) {
      const int64_t device_ns = offset_of(TaskOfDevice(device.device));
      for (NodeStats& node : device.nodes) {
        node.scheduled_ns -= device_ns;
        node.start_ns -= device_ns;
        node.end_ns -= device_ns;
      }
    }
  }
}

}  // namespace penstock
