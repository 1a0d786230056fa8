// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "client/device_setter.h"
#include "core/base/env.h"
#include "core/compiler/compile.h"
#include "core/compiler/placement/predicted_cluster.h"
#include "core/graph/graph_proto.h"
#include "core/op/private_attrs.h"
#include "core/op/task_name.h"
#include "distributed/insight/cost_report.h"
#include "tools/penstock/commands.h"
#include "tools/penstock/compile_flags.h"
#include "tools/penstock/load_flag.h"

namespace penstock {
namespace {

struct WhatIfFlags {
  std::string path, costs, net = "8g";
  CompileFlags compile;
  int ps = 1, workers = 1, lanes = 1;
  double latency_us = 100;
};

// Parses "25g" or "25" (gigabits per second) or "100m" (megabits). Returns bytes per nanosecond.
StatusOr<double> Bandwidth(const std::string& text) {
  string_view number = text;
  double gigabits = 1;
  if (absl::ConsumeSuffix(&number, "m")) {
    gigabits = 1e-3;
  } else {
    absl::ConsumeSuffix(&number, "g");
  }
  double value = 0;
  if (!absl::SimpleAtod(number, &value) || !(value > 0 && value <= 1e6)) {
    return InvalidArgument("--net: '", text,
                           "' is no bandwidth, expected 25g or 100m (bits per second)");
  }
  return value * gigabits / 8;
}

std::string CpuOf(const char* job, int task) {
  return TaskName{.job = job, .task = task}.Device("CPU", 0).ToString();
}

// Returns whether the node must share a device with another node. (In TensorFlow's graphs a
// variable's colocation attribute names the variable itself.)
bool IsBesideAnother(const Node& node) {
  const auto* const classes = node.attr<std::vector<std::string>>(kColocationAttr);
  return classes != nullptr && absl::c_any_of(*classes, [&](const std::string& name) {
           return name.starts_with(kColocatedWith) && name != kColocatedWith + node.name();
         });
}

// Assigns variables to the parameter servers in turn, as programs do (client/device_setter.h), and
// all other nodes to the worker. Ignores the devices that the graph requests, which belong to
// another cluster. Colocated nodes go to the device of their group.
void SpreadVariables(int ps, Graph* graph) {
  const auto setter =
      client::ReplicaDeviceSetter({.ps_tasks = ps, .worker_device = CpuOf("worker", 0)});
  for (Node* node : graph->nodes()) {
    const Graph::NodeSpec spec = {.name = node->name(),
                                  .op = node->op_name(),
                                  .inputs = node->inputs(),
                                  .attrs = node->attrs()};
    graph->set_requested_device(node, IsBesideAnother(*node) ? "" : setter(spec));
  }
}

void Print(const PredictedCluster& cluster, const WhatIfFlags& flags, double measured) {
  std::printf("%d worker%s, %d parameter server%s, %s, %g us a message\n", flags.workers,
              flags.workers == 1 ? "" : "s", flags.ps, flags.ps == 1 ? "" : "s", flags.net.c_str(),
              flags.latency_us);
  std::printf("step of a worker: %.1f us\nall workers: %.1f steps/s\n", cluster.step_ns / 1e3,
              cluster.steps_per_second);
  struct Part {
    const char* name;
    double load;
  };
  const std::vector<Part> parts = {{"the workers' computing", cluster.worker.compute},
                                   {"the workers' receiving", cluster.worker.receive},
                                   {"the workers' sending", cluster.worker.send},
                                   {"the parameter servers' computing", cluster.ps.compute},
                                   {"the parameter servers' receiving", cluster.ps.receive},
                                   {"the parameter servers' sending", cluster.ps.send}};
  const Part* most = &parts[0];
  for (const Part& part : parts) {
    std::printf("  %-34s %3.0f %% of the time\n", part.name, 100 * part.load);
    if (part.load > most->load) most = &part;
  }
  constexpr double kBusy = 0.6;
  std::printf("bottleneck: %s\n", most->load > kBusy
                                      ? most->name
                                      : "none is busy: steps wait for messages, one after another");
  for (size_t p = 0; p < cluster.ps_bytes.size(); ++p) {
    std::printf("ps %zu: %.0f bytes in a step of a worker\n", p, cluster.ps_bytes[p]);
  }
  std::printf("%.0f %% of the nodes' time was measured, the rest is estimated\n", 100 * measured);
}

// Returns the fraction of the nodes' time that was measured; the rest was estimated.
double MeasuredPart(const CompileReport& report) {
  double measured = 0, all = 0;
  for (const PlacementReport::Run& run : report.placement.runs) {
    all += run.end_ns - run.start_ns;
    if (run.measured) measured += run.end_ns - run.start_ns;
  }
  return all > 0 ? measured / all : 0;
}

Status RunWhatIf(const WhatIfFlags& flags) {
  ASSIGN_OR_RETURN(Graph graph, ReadGraphFile(Env::Real(), flags.path, Registry::Global()));
  SpreadVariables(flags.ps, &graph);
  ASSIGN_OR_RETURN(const double bytes_per_ns, Bandwidth(flags.net));
  CompileFlags compile = flags.compile;
  compile.devices = {CpuOf("worker", 0)};
  for (int p = 0; p < flags.ps; ++p) compile.devices.push_back(CpuOf("ps", p));
  ASSIGN_OR_RETURN(std::vector<DeviceInfo> devices, compile.Devices());
  for (DeviceInfo& device : devices) {
    device.lanes = flags.lanes;
    device.link_to_tasks = {.bytes_per_ns = bytes_per_ns, .latency_ns = flags.latency_us * 1e3};
  }
  ASSIGN_OR_RETURN(CompileOptions options, compile.Options(devices));
  SavedCosts costs;
  if (!flags.costs.empty()) {
    ASSIGN_OR_RETURN(costs, ReadCostFile(Env::Real(), flags.costs));
    UseRates(costs, &devices);
  }
  options.costs = &costs.table;
  options.predict = true;
  PlacedStep step;
  options.describe = &step;
  CompileReport report;
  RETURN_IF_ERROR(Compile(graph, devices, options, &report).status());
  Print(PredictCluster(step, flags.workers), flags, MeasuredPart(report));
  return compile.PrintCpuRates(flags.costs);
}

}  // namespace

void AddWhatIfCommand(CLI::App& app, int* exit_code) {
  CLI::App* whatif =
      app.add_subcommand("whatif", "Predict training on a hypothetical cluster");
  whatif->footer(
      "Takes the graph of one worker, spreads its variables over --ps parameter servers in turn,\n"
      "and simulates --workers workers that train asynchronously. Times of nodes come from\n"
      "--costs (measured by `penstock cost --save` on an existing cluster) or are estimated.\n"
      "Each task can send, and can receive, with the bandwidth --net. The prediction does not\n"
      "include the CPU time of sending messages, which matters if messages are many or large.\n\n"
      "  penstock cost grpc://127.0.0.1:2222 --save=costs.json\n"
      "  penstock whatif model.pb --target=train --costs=costs.json --ps=4 --workers=16 "
      "--net=25g\n");
  auto flags = std::make_shared<WhatIfFlags>();
  whatif->add_option("file", flags->path, "A GraphDef, binary or text")->required();
  flags->compile.AddStepTo(*whatif);
  whatif->add_option("--ps", flags->ps, "Number of parameter servers")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  whatif->add_option("--workers", flags->workers, "Number of workers")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  whatif->add_option("--net", flags->net, "Bandwidth of a task, in bits per second: 25g, 100m")
      ->capture_default_str();
  whatif->add_option("--latency_us", flags->latency_us, "Latency of a message, in microseconds")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e9));
  whatif->add_option("--lanes", flags->lanes, "Number of nodes that a CPU runs at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  whatif->add_option("--costs", flags->costs,
                     "Read measured costs, a file of `penstock cost --save`");
  AddLoadFlag(*whatif);
  whatif->callback([flags, exit_code] { *exit_code = ExitCodeOf(RunWhatIf(*flags)); });
}

}  // namespace penstock
