// SPDX-License-Identifier: Apache-2.0
#include "client/examples/all_reduce.h"

#include <CLI/CLI.hpp>

#include <vector>

#include "client/examples/task.h"

namespace penstock::examples {

void AddStrategyFlag(CLI::App& app, AllReduceFlags& flags, const std::string& note) {
  app.add_option("--strategy", flags.strategy,
                 "ps: variables are on parameter servers; allreduce: there is no ps; every worker "
                 "holds all variables, and in each step the workers average their gradients" +
                     note)
      ->capture_default_str()
      ->check(CLI::IsMember({"ps", "allreduce"}));
}

void AddElasticFlags(CLI::App& app, AllReduceFlags& flags) {
  app.add_flag("--elastic", flags.elastic,
               "with --strategy=allreduce: if a worker is lost, the others go on without it; when "
               "it is back, it joins them. All workers need the same --checkpoint_dir");
  app.add_option("--min_workers", flags.min_workers,
                 "with --elastic: the minimum number of workers that train; fewer wait for others. "
                 "0: more than half of all workers. With half of them or fewer, if the network is "
                 "split, both sides may go on and save to the same directory")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

Status CheckAllReduce(const AllReduceFlags& flags, const TaskConfig& task) {
  if (flags.min_workers > 0 && !flags.elastic) {
    return InvalidArgument("--min_workers: needs --elastic");
  }
  if (!flags.all_reduce()) {
    if (!flags.elastic) return OkStatus();
    return InvalidArgument("--elastic: needs --strategy=allreduce");
  }
  if (task.cluster.empty()) {
    return InvalidArgument("--strategy=allreduce: needs workers; say --worker_hosts as well");
  }
  if (NumTasks(task, "ps") > 0) {
    return InvalidArgument(
        "--strategy=allreduce and --ps_hosts: every worker holds the variables; say --ps=0");
  }
  const auto workers = static_cast<int>(Workers(task).size());
  if (flags.min_workers > workers) {
    return InvalidArgument("--min_workers=", flags.min_workers, ": there are only ", workers,
                           " workers");
  }
  return OkStatus();
}

AllReduce::AllReduce(client::Program& program, const AllReduceFlags& flags, const TaskConfig& task,
                     const std::string& target) {
  if (!flags.all_reduce()) return;
  const std::vector<std::string> workers = Workers(task);
  workers_ = static_cast<int>(workers.size());
  worker_ = WorkerIndex(task);
  if (flags.elastic) {
    group_.emplace(program, client::ElasticGroup::Options{.workers = workers,
                                                          .worker = worker_,
                                                          .min_workers = flags.min_workers,
                                                          .target = target});
  }
  replicas_.emplace(program,
                    client::CollectiveReplicas::Options{.workers = workers_,
                                                        .worker = worker_,
                                                        .device = TaskName(task),
                                                        .group = group_ ? &*group_ : nullptr});
}

int64_t AllReduce::BatchNumber(int64_t global_step) const {
  return group_ ? group_->BatchNumber(global_step) : global_step * workers_ + worker_;
}

void AllReduce::SetOptions(client::TrainingOptions* options) {
  options->agree = agree_;
  options->group = group_ ? &*group_ : nullptr;
  // Every worker averages with all others.
  options->session.device_filters.clear();
}

}  // namespace penstock::examples
