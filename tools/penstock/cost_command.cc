// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/compiler/compile.h"
#include "core/graph/graph_proto.h"
#include "distributed/insight/cost_report.h"
#include "distributed/insight/cost_tables.h"
#include "distributed/rpc/ask_cluster.h"
#include "distributed/security/security_flags.h"
#include "tools/penstock/commands.h"
#include "tools/penstock/compile_flags.h"
#include "tools/penstock/load_flag.h"

namespace penstock {
namespace {

struct CostFlags {
  std::string target, session, save, costs;
  CompileFlags compile;
  bool csv = false, loads = false;
  int steps = 5, rows = 20;
};

void Print(const wire::StepCosts& step, const CostFlags& flags) {
  const std::string text = flags.csv ? CostCsv(step) : CostText(step, flags.rows);
  std::printf("%s\n", text.c_str());
}

// Prints the costs of one compiled step of a graph, estimated or read from a file of costs.
Status CostOfFile(const CostFlags& flags) {
  if (!flags.save.empty() || !flags.session.empty()) {
    return InvalidArgument(
        "--save and --session are for the sessions of a cluster, grpc://HOST:PORT");
  }
  ASSIGN_OR_RETURN(const Graph graph, ReadGraphFile(Env::Real(), flags.target, Registry::Global()));
  ASSIGN_OR_RETURN(std::vector<DeviceInfo> devices, flags.compile.Devices());
  ASSIGN_OR_RETURN(CompileOptions options, flags.compile.Options(devices));
  options.predict = true;
  SavedCosts costs;
  if (!flags.costs.empty()) {
    ASSIGN_OR_RETURN(costs, ReadCostFile(Env::Real(), flags.costs));
    UseRates(costs, &devices);
    options.costs = &costs.table;
  }
  CompileReport report;
  RETURN_IF_ERROR(Compile(graph, devices, options, &report).status());
  wire::StepCosts step;
  for (const std::string& fetch : flags.compile.fetches) step.add_fetch(fetch);
  for (const std::string& target : flags.compile.targets) step.add_target(target);
  AddPrediction(report.placement, &step);
  AddPrediction(report.memory, &step);
  Print(step, flags);
  return OkStatus();
}

// Prints the costs of the steps of a task's sessions, as measured by that task. With --save, writes
// the measured costs to a file, too.
Status CostOfTask(const CostFlags& flags) {
  if (!flags.costs.empty()) {
    return InvalidArgument(
        "--costs is for a graph in a file: sessions use what they have measured");
  }
  if (flags.loads) {
    return InvalidArgument("--load is for a graph in a file: tasks load libraries themselves");
  }
  ASSIGN_OR_RETURN(const wire::CostReport report, AskCosts(flags.target, flags.steps));
  wire::CostFile measured;
  bool found = false;
  for (const wire::SessionCosts& session : report.session()) {
    if (!flags.session.empty() && session.handle() != flags.session) continue;
    found = true;
    if (!flags.csv) {
      std::printf("session %s\n%s", session.handle().c_str(), RatesText(session).c_str());
    }
    for (const wire::StepCosts& step : session.step()) Print(step, flags);
    measured.mutable_node()->MergeFrom(session.measured());
    measured.mutable_device()->MergeFrom(session.device());
  }
  if (!found) {
    return NotFound(report.task(), " is the master of no session",
                    flags.session.empty() ? "" : StrCat(" '", flags.session, "'"),
                    ": ask the task that the client addresses");
  }
  if (flags.save.empty()) return OkStatus();
  return Annotate(WriteCostFile(Env::Real(), flags.save, std::move(measured)), "--save");
}

}  // namespace

void AddCostCommand(CLI::App& app, int* exit_code) {
  CLI::App* cost = app.add_subcommand("cost", "What the nodes of a step cost: time, memory, flops");
  cost->footer(
      "With an address: asks this task, which must be the one that clients address, for the steps\n"
      "of its sessions that have taken the most time. Prints the measured time of each step, and\n"
      "the time predicted from the measured times of its nodes. Nodes are measured in traced\n"
      "steps, in sessions with placement \"auto\", and as graph_options.build_cost_model says.\n"
      "Also prints the predicted memory of the step's tensors on each device, with the largest\n"
      "tensors at the peak; and for each session the rates of its devices and measured links.\n"
      "With a file: compiles the graph for --devices; times are estimates, or those of --costs.\n\n"
      "  penstock cost grpc://127.0.0.1:2222\n"
      "  penstock cost grpc://127.0.0.1:2222 --save=costs.json\n"
      "  penstock cost model.pb --target=train --costs=costs.json\n"
      "  penstock cost model.pb --fetch=loss:0 --csv > costs.csv\n");
  auto flags = std::make_shared<CostFlags>();
  cost->add_option("target", flags->target, "grpc://HOST:PORT of a task, or a GraphDef file")
      ->required();
  flags->compile.AddTo(*cost);
  cost->add_option("--session", flags->session,
                   "Only the session of this handle (penstock status)");
  cost->add_option("--save", flags->save, "Write the measured costs into this file");
  cost->add_option("--costs", flags->costs, "Read measured costs, a file of --save");
  cost->add_flag("--csv", flags->csv, "Print a line for each node: comma-separated values");
  cost->add_option("--steps", flags->steps, "The maximum number of steps of each session")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  cost->add_option("--rows", flags->rows, "The maximum number of nodes of each step")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  AddLoadFlag(*cost);
  AddClientSecurityFlags(*cost);
  cost->callback([cost, flags, exit_code] {
    flags->loads = cost->count("--load") > 0;
    const bool task = flags->target.starts_with("grpc://");
    *exit_code = ExitCodeOf(task ? CostOfTask(*flags) : CostOfFile(*flags));
  });
}

}  // namespace penstock
