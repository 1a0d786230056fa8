// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/op/task_name.h"
#include "distributed/doctor/examine_cluster.h"
#include "distributed/doctor/examine_host.h"
#include "distributed/security/security_flags.h"
#include "tools/penstock/commands.h"
#include "tools/penstock/shared_directory.h"

namespace penstock {
namespace {

using Level = Finding::Level;
using Outcome = TaskProbe::Outcome;

struct DoctorFlags {
  ClusterFlags cluster;
  std::string checkpoint_dir;
  int timeout_seconds = 6;
  bool json = false;
};

std::string Variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

// Returns the cluster from the flags, which may lack the task's name, or from TF_CONFIG.
StatusOr<TaskConfig> FindCluster(const DoctorFlags& flags) {
  const ClusterFlags& given = flags.cluster;
  if (!given.job_name.empty()) return TaskConfigFromFlags(given);
  ASSIGN_OR_RETURN(ClusterSpec cluster, ClusterSpecFromFlags(given));
  if (!cluster.empty()) {
    TaskConfig config{.cluster = std::move(cluster), .job = "", .protocol = given.protocol};
    RETURN_IF_ERROR(AddReplicas(given, &config));
    return config;
  }
  if (Variable("TF_CONFIG").empty()) {
    return InvalidArgument("--ps_hosts, --worker_hosts: give the cluster that is to be looked at, ",
                           "or TF_CONFIG");
  }
  ASSIGN_OR_RETURN(TaskConfig task, TaskConfigFromJson(Variable("TF_CONFIG")));
  task.listen_address = given.listen_address;
  task.protocol = given.protocol;
  RETURN_IF_ERROR(AddReplicas(given, &task));
  return task;
}

// Examines the checkpoint directory on this machine; and, if all tasks answer under their own
// names, whether each of them sees the same directory. Returns no findings without
// --checkpoint_dir.
Findings CheckDirectory(const DoctorFlags& flags, const TaskConfig& config,
                        const std::vector<ProbedTask>& tasks) {
  if (flags.checkpoint_dir.empty()) return {};
  Findings findings = ExamineCheckpoints(flags.checkpoint_dir, config.cluster, Env::Real());
  std::vector<std::string> names;
  size_t num_tasks = 0;
  for (const ProbedTask& task : tasks) {
    if (task.second_replica) continue;
    ++num_tasks;
    const std::string name = TaskName{.job = task.job, .task = task.index}.ToString();
    if (task.probe.outcome == Outcome::kServes && task.probe.name == name) names.push_back(name);
  }
  if (names.empty() || names.size() < num_tasks) return findings;  // a session needs all tasks
  for (Finding& finding :
       CheckSharedDirectory(flags.checkpoint_dir, StrCat("grpc://", tasks.front().address), names,
                            flags.timeout_seconds * 1000)) {
    findings.push_back(std::move(finding));
  }
  return findings;
}

Findings Examine(const DoctorFlags& flags, const TaskConfig& config) {
  std::vector<ProbedTask> tasks = TasksOf(config.cluster);
  std::vector<std::string> addresses;
  for (const ProbedTask& task : tasks) addresses.push_back(task.address);
  std::vector<TaskProbe> probes = ProbeTasks(addresses, flags.timeout_seconds * 1000);
  bool own_runs = false;
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].probe = std::move(probes[i]);
    own_runs |= tasks[i].probe.outcome == Outcome::kServes && tasks[i].probe.name == config.name();
  }
  Findings all;
  for (Findings some : {ExamineVariables(config, Variable), ExamineListening(config, own_runs),
                        ExamineFileLimit(config.cluster, FileLimit()),
                        ExamineCluster(config, tasks), CheckDirectory(flags, config, tasks)}) {
    for (Finding& finding : some) all.push_back(std::move(finding));
  }
  return all;
}

const char* Text(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "";
}

int Count(const Findings& findings, Level level) {
  int count = 0;
  for (const Finding& finding : findings) count += finding.level == level;
  return count;
}

void PrintJson(const Findings& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"level", Text(finding.level)},
                    {"subject", finding.subject},
                    {"what", finding.what},
                    {"advice", finding.advice}});
  }
  std::printf("%s\n", list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void Print(const Findings& findings) {
  for (const Finding& finding : findings) {
    std::printf("%-8s %s: %s\n", Text(finding.level), finding.subject.c_str(),
                finding.what.c_str());
    if (!finding.advice.empty()) std::printf("         %s\n", finding.advice.c_str());
  }
  std::printf("%d errors, %d warnings\n", Count(findings, Level::kError),
              Count(findings, Level::kWarning));
}

int RunDoctorCommand(const DoctorFlags& flags) {
  const StatusOr<TaskConfig> config = FindCluster(flags);
  if (!config.ok()) {
    (void)ExitCodeOf(config.status());
    return 2;
  }
  const Findings findings = Examine(flags, *config);
  flags.json ? PrintJson(findings) : Print(findings);
  return Count(findings, Level::kError) > 0 ? 1 : 0;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, int* exit_code) {
  CLI::App* doctor =
      app.add_subcommand("doctor", "Find mistakes in the setup of a cluster, running or not");
  doctor->footer(
      "Takes the flags that the tasks are started with, or TF_CONFIG. Asks each address which\n"
      "task listens there, and checks this host's environment; with --job_name, also the port\n"
      "of that task; with --checkpoint_dir, whether the directory can be written, and whether all\n"
      "running tasks see the same directory. Starts nothing. Exit codes: 0 no errors, 1 errors, 2\n"
      "a mistake in the flags.\n\n"
      "  penstock doctor --ps_hosts=a:2222 --worker_hosts=b:2222,c:2222\n"
      "  penstock doctor --ps_hosts=a:2222 --worker_hosts=b:2222,c:2222 \\\n"
      "      --job_name=worker --task_index=1 --checkpoint_dir=/shared/run   before starting it\n");
  auto flags = std::make_shared<DoctorFlags>();
  doctor->add_option("--ps_hosts", flags->cluster.ps_hosts,
                     "host:port,... of the parameter servers");
  doctor->add_option("--worker_hosts", flags->cluster.worker_hosts, "host:port,... of the workers");
  CLI::Option* const job =
      doctor->add_option("--job_name", flags->cluster.job_name,
                         "The job, ps or worker, of the task to be started on this host");
  doctor
      ->add_option("--task_index", flags->cluster.task_index,
                   "The task's index in its job, from 0")
      ->needs(job);
  doctor->add_option("--ps_replica_hosts", flags->cluster.ps_replica_hosts,
                     "host:port,... of the second process of each parameter server");
  doctor
      ->add_option("--replica_index", flags->cluster.replica_index,
                   "For a ps with --ps_replica_hosts: which of its two processes to start, 0 or 1")
      ->needs(job);
  doctor->add_option("--listen_address", flags->cluster.listen_address,
                     "The value of this flag with which the task will be started");
  doctor
      ->add_option("--protocol", flags->cluster.protocol,
                   "The value of this flag with which the tasks are started")
      ->capture_default_str();
  doctor->add_option("--checkpoint_dir", flags->checkpoint_dir,
                     "The directory of the training's checkpoints; created if it is missing");
  doctor
      ->add_option("--timeout_seconds", flags->timeout_seconds, "How long to wait for answers")
      ->check(CLI::Range(1, 600))
      ->capture_default_str();
  doctor->add_flag("--json", flags->json, "Print a list of {level, subject, what, advice}");
  AddClientSecurityFlags(*doctor);
  doctor->callback([flags, exit_code] { *exit_code = RunDoctorCommand(*flags); });
}

}  // namespace penstock
