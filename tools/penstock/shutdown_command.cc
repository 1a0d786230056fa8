// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/rpc/ask_cluster.h"
#include "distributed/rpc/server.h"
#include "distributed/rpc/task_probe.h"
#include "distributed/security/security_flags.h"
#include "tools/penstock/commands.h"

namespace penstock {
namespace {

constexpr int64_t kCallMs = 5'000;
constexpr int64_t kProbeMs = 1'000;
constexpr int64_t kLookNanos = 200'000'000;

struct Options {
  std::string target;
  std::string reason = "`penstock shutdown`";
  bool one_task = false;
  double wait_seconds = 30;
};

struct TaskAtAddress {
  std::string name, address;
};

StatusOr<std::vector<TaskAtAddress>> TasksToEnd(const Options& options) {
  ASSIGN_OR_RETURN(const wire::ClusterReport report, AskCluster(options.target));
  std::vector<TaskAtAddress> tasks;
  for (const wire::ClusterTask& task : report.task()) {
    if (options.one_task && task.name() != report.asked()) continue;
    tasks.push_back({task.name(), task.address()});
    if (!task.has_other_replica()) continue;
    const wire::ClusterTask& other = task.other_replica();
    // Leaves out tasks that do not answer, such as those that have ended already.
    if (!other.has_error()) tasks.push_back({other.name(), other.address()});
  }
  return tasks;
}

// Asks the tasks to end. Returns those that were reached; prints a line for each of the others.
std::vector<TaskAtAddress> AskToEnd(const std::vector<TaskAtAddress>& tasks,
                                    const std::string& reason) {
  std::vector<TaskAtAddress> told;
  for (const TaskAtAddress& task : tasks) {
    const Status status = ShutdownTask(task.address, reason, kCallMs);
    if (status.ok()) {
      told.push_back(task);
    } else {
      std::fprintf(stderr, "penstock: %s at %s was not told to end: %s\n", task.name.c_str(),
                   task.address.c_str(), std::string(status.message()).c_str());
    }
  }
  return told;
}

// Waits until the tasks have ended. Returns those that still listen after `seconds`.
std::vector<TaskAtAddress> AwaitEnd(std::vector<TaskAtAddress> tasks, double seconds) {
  Env& env = Env::Real();
  const int64_t latest_ns = env.NowNanos() + static_cast<int64_t>(seconds * 1e9);
  while (true) {
    std::vector<std::string> addresses;
    for (const TaskAtAddress& task : tasks) addresses.push_back(task.address);
    const std::vector<TaskProbe> probes = ProbeTasks(addresses, kProbeMs);
    std::vector<TaskAtAddress> left;
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (probes[i].outcome == TaskProbe::Outcome::kRefused) {
        std::printf("%s at %s has ended\n", tasks[i].name.c_str(), tasks[i].address.c_str());
      } else {
        left.push_back(tasks[i]);
      }
    }
    std::fflush(stdout);
    tasks = std::move(left);
    if (tasks.empty() || env.NowNanos() >= latest_ns) return tasks;
    env.SleepForNanos(kLookNanos);
  }
}

int Shutdown(const Options& options) {
  const auto tasks = TasksToEnd(options);
  if (!tasks.ok()) {
    const int code = ExitCodeOf(tasks.status());
    return tasks.status().code() == StatusCode::kInvalidArgument ? 2 : code;
  }
  const std::vector<TaskAtAddress> told = AskToEnd(*tasks, options.reason);
  const std::vector<TaskAtAddress> left = AwaitEnd(told, options.wait_seconds);
  for (const TaskAtAddress& task : left) {
    std::fprintf(stderr, "penstock: %s at %s was told to end and still serves after %g s\n",
                 task.name.c_str(), task.address.c_str(), options.wait_seconds);
  }
  return told.size() == tasks->size() && left.empty() ? 0 : 1;
}

}  // namespace

void AddShutdownCommand(CLI::App& app, int* exit_code) {
  CLI::App* shutdown = app.add_subcommand("shutdown", "End the tasks of a cluster in good order");
  shutdown->footer(
      "Asks every task of the cluster to end, as SIGTERM does: tasks refuse new sessions, workers\n"
      "that train finish their step and save, and servers wait until the sessions that use them\n"
      "are closed, at most for their --grace_seconds. Then waits until no process listens at the\n"
      "addresses. Exit code 1 if a task was not reached or still serves.\n\n"
      "  penstock shutdown grpc://127.0.0.1:2222\n"
      "  penstock shutdown grpc://127.0.0.1:2222 --one_task --reason='host goes into repair'\n");
  const auto options = std::make_shared<Options>();
  shutdown->add_option("target", options->target, "grpc://HOST:PORT of any task of the cluster")
      ->required();
  shutdown->add_flag("--one_task", options->one_task, "End only the task at the address");
  shutdown->add_option("--reason", options->reason, "What the tasks print when they end")
      ->capture_default_str();
  shutdown
      ->add_option("--wait_seconds", options->wait_seconds, "How long to wait for the tasks to end")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 86'400.0));
  AddClientSecurityFlags(*shutdown);
  shutdown->callback([options, exit_code] { *exit_code = Shutdown(*options); });
}

}  // namespace penstock
