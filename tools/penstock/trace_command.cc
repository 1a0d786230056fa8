// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "core/base/env.h"
#include "distributed/insight/trace_summary.h"
#include "distributed/insight/trace_timeline.h"
#include "distributed/rpc/ask_cluster.h"
#include "distributed/security/security_flags.h"
#include "tools/penstock/commands.h"

namespace penstock {
namespace {

struct TraceFlags {
  std::string target, out;
  int64_t steps = 20;
  double timeout_seconds = 30;
};

Status Trace(const TraceFlags& flags) {
  ASSIGN_OR_RETURN(
      ClusterTrace trace,
      AskTrace(flags.target, flags.steps, static_cast<int64_t>(flags.timeout_seconds * 1'000)));
  const std::map<std::string, TaskClock> clocks = CompareClocks(trace);
  AlignTimes(clocks, &trace);
  std::fputs(TraceText(trace, clocks).c_str(), stdout);
  if (trace.steps.empty()) {
    return NotFound("no step was recorded: the cluster's sessions run none, or each takes longer ",
                    "than --timeout; `penstock status` shows what they do");
  }
  if (flags.out.empty()) return OkStatus();
  RETURN_IF_ERROR(
      Annotate(Env::Real().WriteFileAtomically(flags.out, TraceTimeline(trace, clocks)), "--out"));
  std::printf("\nWrote %s: open it at https://ui.perfetto.dev\n", flags.out.c_str());
  return OkStatus();
}

}  // namespace

void AddTraceCommand(CLI::App& app, int* exit_code) {
  CLI::App* trace =
      app.add_subcommand("trace", "What the next steps of a running cluster spend their time on");
  trace->footer(
      "Attaches to the cluster of the task at the address: each task that is a master traces the\n"
      "next --steps steps of its sessions, from any client. A traced step takes some microseconds\n"
      "per node longer; other steps run as usual. Prints the ten most expensive nodes and\n"
      "transfers, and the critical path of the median step. --out writes all steps as one\n"
      "timeline, for https://ui.perfetto.dev. Heartbeats align the tasks' clocks; prints the\n"
      "error bound. Partial runs are not traced. A trace ends early when no step runs for 3 s.\n\n"
      "  penstock trace grpc://127.0.0.1:2222 --steps=20 --out=/tmp/steps.json\n");
  auto flags = std::make_shared<TraceFlags>();
  trace->add_option("target", flags->target, "grpc://HOST:PORT of any task of the cluster")
      ->required();
  trace->add_option("--steps", flags->steps, "Number of steps of each master")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000));
  trace
      ->add_option("--timeout", flags->timeout_seconds,
                   "Seconds to wait for the steps; then show the steps that have ended")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 3'600.0));
  trace->add_option("--out", flags->out, "Write the timeline into this file");
  AddClientSecurityFlags(*trace);
  trace->callback([flags, exit_code] { *exit_code = ExitCodeOf(Trace(*flags)); });
}

}  // namespace penstock
