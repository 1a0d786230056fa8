// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/compiler/compile.h"
#include "core/compiler/placement/placer.h"
#include "core/graph/graph_proto.h"
#include "distributed/insight/cost_report.h"
#include "tools/penstock/commands.h"
#include "tools/penstock/compile_flags.h"
#include "tools/penstock/load_flag.h"
#include "tools/penstock/timeline.h"

namespace penstock {
namespace {

struct PlaceFlags {
  std::string path, svg, costs;
  CompileFlags compile;
  bool any_task = false, explain = false;
  int lanes = 1;
  double net_gbit = 8, latency_us = 100;
};

void PrintSummary(const PlacementReport& report) {
  std::map<int, std::pair<int, double>> by_device;  // number of nodes and busy time, by device
  double sent = 0;
  for (const PlacementReport::Run& run : report.runs) {
    auto& [nodes, busy] = by_device[run.device];
    ++nodes;
    busy += run.end_ns - run.start_ns;
  }
  for (const PlacementReport::Transfer& transfer : report.transfers) sent += transfer.bytes;
  for (const auto& [device, load] : by_device) {
    std::printf("%-48s %6d nodes, busy %.1f us\n", report.devices[device].c_str(), load.first,
                load.second / 1e3);
  }
  std::printf("%zu transfers, %.0f bytes\n", report.transfers.size(), sent);
  std::printf("predicted step: %.1f us, at least %.1f us wherever nodes run\n",
              report.step_ns / 1e3, report.least_ns / 1e3);
}

Status RunPlaceCommand(const PlaceFlags& flags) {
  ASSIGN_OR_RETURN(const Graph graph, ReadGraphFile(Env::Real(), flags.path, Registry::Global()));
  ASSIGN_OR_RETURN(std::vector<DeviceInfo> devices, flags.compile.Devices());
  ASSIGN_OR_RETURN(CompileOptions options, flags.compile.Options(devices));
  for (DeviceInfo& device : devices) {
    if (device.name.type == "CPU") device.lanes = flags.lanes;
    device.link_to_tasks = {.bytes_per_ns = flags.net_gbit / 8,
                            .latency_ns = flags.latency_us * 1e3};
  }
  SavedCosts costs;
  if (!flags.costs.empty()) {
    ASSIGN_OR_RETURN(costs, ReadCostFile(Env::Real(), flags.costs));
    UseRates(costs, &devices);
    options.costs = &costs.table;
  }
  options.predict = true;
  options.any_task = flags.any_task;
  DeviceByNode state;
  if (flags.any_task) {
    ASSIGN_OR_RETURN(state, PlaceState(graph, devices, options));
    options.state_devices = &state;
  }
  CompileReport report;
  RETURN_IF_ERROR(Compile(graph, devices, options, &report).status());
  if (flags.explain) std::fputs(ToString(report).c_str(), stdout);
  PrintSummary(report.placement);
  RETURN_IF_ERROR(flags.compile.PrintCpuRates(flags.costs));
  if (flags.svg.empty()) return OkStatus();
  return Env::Real().WriteFileAtomically(flags.svg, TimelineSvg(report.placement));
}

}  // namespace

void AddPlaceCommand(CLI::App& app, int* exit_code) {
  CLI::App* place =
      app.add_subcommand("place", "Predict where the nodes of a graph run, why, and how long");
  place->footer(
      "Simulates a step with estimated times, or those of --costs. --devices names the devices of\n"
      "the cluster; the client is on the first one.\n\n"
      "  penstock place model.pb --fetch=loss:0 --any_task --svg=step.svg \\\n"
      "    --devices=/job:worker/replica:0/task:0/device:CPU:0,"
      "/job:worker/replica:0/task:1/device:CPU:0\n"
      "  penstock place model.pb --target=train --explain\n"
      "                                    for each group of nodes: where, why, and what the\n"
      "                                    alternatives would have cost\n");
  auto flags = std::make_shared<PlaceFlags>();
  place->add_option("file", flags->path, "A GraphDef, binary or text")->required();
  flags->compile.AddTo(*place);
  place->add_flag("--any_task", flags->any_task,
                  "Nodes that name no job may run on any task, as with placement \"auto\"");
  place->add_flag("--explain", flags->explain, "Print the reason for each group of nodes");
  place->add_option("--costs", flags->costs,
                    "Read measured costs, a file of `penstock cost --save`");
  place->add_option("--svg", flags->svg, "Draw the predicted step into this file");
  place->add_option("--lanes", flags->lanes, "Number of nodes that a CPU runs at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  place->add_option("--net_gbit", flags->net_gbit, "Gigabits per second between two tasks")
      ->capture_default_str()
      ->check(CLI::Range(1e-6, 1e6));
  place->add_option("--latency_us", flags->latency_us, "Latency of a message, in microseconds")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e9));
  AddLoadFlag(*place);
  place->callback([flags, exit_code] { *exit_code = ExitCodeOf(RunPlaceCommand(*flags)); });
}

}  // namespace penstock
