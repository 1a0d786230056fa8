// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "core/base/env.h"
#include "distributed/insight/explain.h"
#include "distributed/rpc/ask_cluster.h"
#include "distributed/security/security_flags.h"
#include "tools/penstock/commands.h"

namespace penstock {

void AddWhyCommand(CLI::App& app, int* exit_code) {
  CLI::App* why = app.add_subcommand("why", "Why a cluster is stuck: what waits for what");
  why->footer(
      "Asks the task at the address, and through it every task of its cluster, which nodes of\n"
      "running steps wait, for which queue, tensor or lock, since when, and which task or client\n"
      "could end the wait. Lists the causes first: tasks that do not answer or cannot reach each\n"
      "other, variables that no client initialises, queues that no step fills, steps that wait\n"
      "for each other, loops without an end, checkpoints that cannot be written. Then lists the\n"
      "consequences. Changes nothing in the cluster. Describes steps that have run for 1 s.\n\n"
      "  penstock why grpc://127.0.0.1:2222\n");
  struct Options {
    std::string target;
    int64_t patience_ms = 1'000;
    int64_t timeout_ms = 1'500;
    size_t steps = 20;
  };
  auto options = std::make_shared<Options>();
  why->add_option("target", options->target, "grpc://HOST:PORT of any task of the cluster")
      ->required();
  why->add_option("--patience_ms", options->patience_ms,
                  "Leave out waits and steps that are younger than this")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{60'000}));
  why->add_option("--timeout_ms", options->timeout_ms,
                  "Report a task as silent if it does not answer for this long")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{600'000}));
  why->add_option("--steps", options->steps, "The maximum number of steps to describe")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  AddClientSecurityFlags(*why);
  why->callback([options, exit_code] {
    StatusOr<wire::ClusterReport> report = AskCluster(options->target, options->timeout_ms);
    if (report.ok() && AgesAreMissing(*report)) {
      const wire::ClusterReport before = *std::move(report);
      Env::Real().SleepForNanos(options->patience_ms * 1'000'000);
      report = AskCluster(options->target, options->timeout_ms);
      if (report.ok()) LearnAges(before, options->patience_ms, &*report);
    }
    *exit_code = ExitCodeOf(report.status());
    if (report.status().code() == StatusCode::kInvalidArgument) *exit_code = 2;
    if (!report.ok()) return;
    AskSilentTasks(&*report);
    const Explanation explanation = Explain(*report, options->patience_ms, options->steps);
    std::fputs(explanation.ToString().c_str(), stdout);
  });
}

}  // namespace penstock
