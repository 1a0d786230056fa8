// SPDX-License-Identifier: Apache-2.0
//
// Compares the placer with brute force on thousands of small random graphs. The brute force derives
// the devices that a node may use from the definition alone, and tries every placement.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/compiler/placement/placer.h"
#include "core/compiler/placement/testing/problems.h"
#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr char kGpu[] = "/job:worker/replica:0/task:0/device:GPU:0";

// Up to six stateless nodes with device constraints and colocation, on three tasks, one of which
// has a GPU.
struct SmallGraph : TestProgram {
  explicit SmallGraph(uint32_t seed) : random(seed) {
    devices.push_back({.name = *DeviceName::Parse(kGpu), .incarnation = 22});
    for (DeviceInfo& device : devices) {
      device.link_to_tasks = {.bytes_per_ns = 1, .latency_ns = 1000};
      device.link_in_task = {.bytes_per_ns = 10, .latency_ns = 100};
    }
    const int count = 3 + static_cast<int>(random() % 4);
    for (int i = 0; i < count; ++i) AddRandom(StrCat("n", i));
    for (const Node* node : graph.nodes()) {
      costs.RecordOutput(node->name(), 0, static_cast<double>(random() % 50'000));
      for (const DeviceInfo& device : devices) {
        costs.RecordNode(node->name(), device.name,
                         1000.0 + static_cast<double>(random() % 50'000));
      }
    }
    costs.Estimate(graph, {}, devices);
    options.any_task = random() % 2 == 0;
    options.predict = true;
  }

  void AddRandom(const std::string& name) {
    static constexpr const char* kDevices[] = {
        "", "", "", "/job:worker", "/job:ps", "/task:1", "/device:CPU:0", "/device:GPU:0"};
    const std::vector<Node*> before = graph.nodes();
    NodeOptions more{.device = kDevices[random() % 8]};
    if (!before.empty() && random() % 4 == 0) {
      const std::string& beside = before[random() % before.size()]->name();
      more.attrs["_class"] = std::vector<std::string>{StrCat("loc:@", beside)};
      together.emplace_back(name, beside);
    }
    std::vector<Endpoint> inputs;
    const auto any = [&] { return Endpoint{before[random() % before.size()], 0}; };
    std::string op = "Input";
    if (!before.empty() && random() % 4 != 0) {
      const int kind = static_cast<int>(random() % 6);
      op = kind == 0 ? "OnGpu" : kind < 4 ? "Heavy" : "Product";
      inputs.push_back(any());
      if (op == "Product") inputs.push_back(any());
    }
    Add(name, op, std::move(inputs), more);
  }

  // Returns whether a node may run on a device: the device matches the requested one and has a
  // kernel of the node's op; and it is in the client's task, unless the node's group names a job or
  // options.any_task is set.
  bool MayRun(const Node& node, const DeviceInfo& device, bool group_names_job) const {
    const DeviceName wanted = *DeviceName::Parse(node.requested_device());
    const bool on_client = device.name.SameTask(options.client_device);
    const bool task = options.any_task || group_names_job || on_client;
    const bool gpu = device.name.type == "GPU";
    const bool kernel =
        gpu ? node.op_name() == "Heavy" || node.op_name() == "OnGpu" : node.op_name() != "OnGpu";
    return task && kernel && wanted.Matches(device.name);
  }

  bool Together(const std::vector<Node*>& nodes, const std::vector<int>& device) const {
    const auto at = [&](const std::string& name) {
      return device[std::ranges::find(nodes, graph.FindNode(name)) - nodes.begin()];
    };
    return std::ranges::all_of(together,
                               [&](const auto& pair) { return at(pair.first) == at(pair.second); });
  }

  // Returns, by node, whether any node that must share its device names a job.
  std::vector<bool> GroupNamesJob(const std::vector<Node*>& nodes) const {
    std::vector<bool> names;
    for (const Node* node : nodes) {
      names.push_back(DeviceName::Parse(node->requested_device())->job.has_value());
    }
    for (size_t round = 0; round < nodes.size(); ++round) {
      for (const auto& [a, b] : together) {
        const size_t i = std::ranges::find(nodes, graph.FindNode(a)) - nodes.begin();
        const size_t j = std::ranges::find(nodes, graph.FindNode(b)) - nodes.begin();
        names[i] = names[j] = names[i] || names[j];
      }
    }
    return names;
  }

  std::mt19937 random;
  CostTable costs;
  std::vector<std::pair<std::string, std::string>> together;
};

// Calls attempt(device by node) for every placement that the definition allows.
template <class F>
void ForEachPlacement(const SmallGraph& w, const std::vector<Node*>& nodes, F attempt) {
  const std::vector<bool> names_job = w.GroupNamesJob(nodes);
  std::vector<std::vector<int>> may(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (size_t d = 0; d < w.devices.size(); ++d) {
      if (w.MayRun(*nodes[i], w.devices[d], names_job[i])) may[i].push_back(static_cast<int>(d));
    }
    if (may[i].empty()) return;
  }
  std::vector<size_t> choice(nodes.size());
  for (size_t i = 0; i < nodes.size();) {
    std::vector<int> device;
    for (size_t n = 0; n < nodes.size(); ++n) device.push_back(may[n][choice[n]]);
    if (w.Together(nodes, device)) attempt(device);
    for (i = 0; i < nodes.size(); ++i) {
      if (++choice[i] < may[i].size()) break;
      choice[i] = 0;
    }
  }
}

TEST(BruteForceTest, ThousandsOfSmallGraphs) {
  int refused = 0, chosen = 0;
  for (uint32_t seed = 1; seed <= 4000; ++seed) {
    SCOPED_TRACE(seed);
    SmallGraph w(seed);
    PlacedStep step;
    w.options.describe = &step;
    const std::vector<Node*> nodes = w.graph.nodes();
    const auto placed = Place(w.devices, w.costs, w.options, &w.graph);
    std::vector<int> found;
    for (const Node* node : nodes) {
      const auto is_its = [&](const DeviceInfo& device) {
        return device.name.ToString() == node->assigned_device();
      };
      found.push_back(
          static_cast<int>(std::ranges::find_if(w.devices, is_its) - w.devices.begin()));
    }
    int64_t allowed = 0;
    bool is_allowed = false;
    ForEachPlacement(w, nodes, [&](const std::vector<int>& device) {
      ++allowed;
      is_allowed = is_allowed || device == found;
    });
    ASSERT_EQ(placed.ok(), allowed > 0) << placed.status();
    if (!placed.ok()) {
      ++refused;
      continue;
    }
    chosen += allowed > 1;
    EXPECT_TRUE(is_allowed) << "a device that the node may not use";
    int64_t considered = 1;
    for (const auto& devices : step.problem.candidates) {
      considered *= static_cast<int64_t>(devices.size());
    }
    EXPECT_EQ(considered, allowed);
    EXPECT_NEAR(placed->step_ns / BestOfAllNanos(step.problem), 1, 1e-9);
  }
  std::printf("%d graphs with a choice, %d that cannot be placed\n", chosen, refused);
  EXPECT_GT(chosen, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace penstock
