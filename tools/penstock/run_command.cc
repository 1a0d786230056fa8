// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <memory>

#include "core/base/log.h"
#include "core/base/log_flags.h"
#include "tools/penstock/commands.h"
#include "tools/penstock/load_flag.h"
#include "tools/penstock/local_cluster.h"

namespace penstock {
namespace {

std::atomic<bool> stop_requested{false};
void RequestStop(int) { stop_requested = true; }

}  // namespace

void AddRunCommand(CLI::App& app, int* exit_code) {
  CLI::App* run = app.add_subcommand("run", "Start a cluster of any program on this machine");
  run->footer(
      "Starts the program once per task, with --ps_hosts, --worker_hosts, --job_name and\n"
      "--task_index appended. When the workers have ended, ends the ps.\n\n"
      "  penstock run --ps=1 --workers=2 -- ./train --steps=1000\n\n"
      "Passes the libraries of --load on in PENSTOCK_LOAD: every task's Server loads them. Passes\n"
      "--log_format and --log_level on in PENSTOCK_LOG_FORMAT and PENSTOCK_LOG_LEVEL. With\n"
      "--log_format=json every line of the output is an object: other lines that a task prints\n"
      "become the text of an event \"output\".\n");
  auto options = std::make_shared<LocalClusterOptions>();
  run->add_option("--ps", options->num_ps, "Number of parameter servers")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  run->add_option("--workers", options->num_workers, "Number of workers; worker 0 is the chief")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  run->add_option(
         "--ps_replicas", options->ps_replicas,
         "Number of processes of each ps. With 2, a follower takes over when the primary dies, so "
         "that no update is lost. Give --restarts as well, so that the process that died is "
         "started again")
      ->check(CLI::Range(1, 2))
      ->capture_default_str();
  CLI::Option* const restarts =
      run->add_option("--restarts", options->restarts_max,
                      "How many times to restart killed tasks, in total for all tasks");
  restarts->check(CLI::Range(0, 1000))->capture_default_str();
  run->add_flag("--elastic", options->elastic,
                "If a worker is killed and no restarts are left, go on with the other workers. For "
                "programs that can do so, such as fashion_mnist --strategy=allreduce --elastic");
  run->add_flag("--restart_ended_workers", options->restart_ended_workers,
                "When worker 0 is restarted, also start the workers again that have ended with "
                "code 0. For programs whose worker 0 goes back to a checkpoint and then needs all "
                "workers, such as fashion_mnist --sync --deterministic")
      ->needs(restarts);
  run->add_option("--log_dir", options->log_dir,
                  "Write each task's output to a file in this folder; print only worker 0's");
  run->add_option("--grace_seconds", options->grace_seconds,
                  "How many seconds tasks may take to end after they are asked to")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  run->add_flag("--keep_running", options->keep_running,
                "After the workers have ended, let the ps serve until Ctrl-C");
  run->add_option("--status_port", options->status_port,
                  "Worker 0 serves the cluster's status page at this port. (If you gave the flag "
                  "to the program, all tasks would try to use the same port)")
      ->check(CLI::Range(1, 65535));
  run->add_option("command", options->command, "-- then the program and its arguments")->required();
  AddLoadFlag(*run);
  AddLogFlags(*run);
  run->callback([options, exit_code] {
    PassLoadedLibrariesOn();
    ExportLogOptions();
    SetLogTask("penstock run");
    struct sigaction action = {};
    action.sa_handler = RequestStop;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    LocalCluster cluster(*options);
    const Status started = cluster.Start();
    *exit_code = started.ok() ? cluster.Wait(stop_requested) : ExitCodeOf(started);
  });
}

}  // namespace penstock
