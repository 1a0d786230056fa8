// SPDX-License-Identifier: Apache-2.0
#include "client/examples/fashion_mnist_flags.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "client/examples/task.h"

namespace penstock::examples {
namespace {

constexpr char kAbout[] =
    "Trains a classifier of the Fashion-MNIST pictures: in this process, or as one task of a "
    "cluster of parameter servers (ps) and workers. Start all tasks with the same flags, except "
    "--job_name and --task_index.";

// Adds the flags of the model and of its steps.
void AddStepFlags(CLI::App& app, Flags& flags) {
  app.add_option("--model", flags.model, "mlp or convnet")->capture_default_str();
  app.add_option("--steps", flags.steps, "number of updates, of all workers together")
      ->capture_default_str();
  app.add_option("--batch_size", flags.batch_size, "pictures per worker and step")
      ->capture_default_str();
  app.add_option("--learning_rate", flags.learning_rate)->capture_default_str();
  app.add_flag("--sync", flags.sync, "workers take each step together (default: each by itself)");
  app.add_option("--strategy", flags.training.strategy,
                 "ps: variables are on parameter servers; replicas: as ps, but the workers take "
                 "each step together, and the step waits only for --replicas_to_aggregate of them; "
                 "allreduce: there is no ps; every worker holds all variables, and in each step "
                 "the workers average their gradients")
      ->capture_default_str();
  app.add_option("--replicas_to_aggregate", flags.replicas_to_aggregate,
                 "with --strategy=replicas: the number of workers whose gradients make an update; "
                 "the others are backups. 0: all")
      ->capture_default_str();
  app.add_option("--staleness_bound", flags.staleness_bound,
                 "the number of steps that an asynchronous worker may be ahead of the slowest one "
                 "before it waits. 0: lockstep. Default: workers do not wait");
  app.add_option("--staleness_timeout", flags.staleness_timeout,
                 "with --staleness_bound: if a worker has not finished a step for this many "
                 "seconds, the others go on until it does; 0: no limit. Default: 60");
  AddElasticFlags(app, flags.training);
  app.add_flag("--bfloat16_transfers", flags.bfloat16_transfers,
               "round weights and gradients to 16 bits while they travel between tasks");
  app.add_option("--memory_limit", flags.memory_limit,
                 "the maximum bytes of a step's tensors on each device (64m, 2g); the compiler "
                 "changes steps to fit, or refuses them. 0: no limit")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  app.add_option("--concurrent_steps", flags.concurrent_steps,
                 "the number of concurrent steps of this task")
      ->capture_default_str();
}

// Adds the flags for traces, summaries and evaluations of a training.
void AddWatchingFlags(CLI::App& app, Flags& flags) {
  app.add_option("--trace_file", flags.trace_file,
                 "the file into which the chief writes a timeline of some of its steps, for "
                 "https://ui.perfetto.dev");
  app.add_option("--summary_dir", flags.summary_dir,
                 "the folder for the chief's event files for TensorBoard: loss, accuracy, speed, "
                 "weights, pictures, the graph");
  app.add_option("--summary_steps", flags.summary_steps, "steps between two summaries")
      ->capture_default_str();
  app.add_option("--eval_steps", flags.eval_steps,
                 "steps between two tests of the chief during the training, whose results go to "
                 "SUMMARY_DIR/eval; 0: test only at the end")
      ->capture_default_str();
  app.add_flag("--evaluate", flags.evaluate,
               "do not train: test each new checkpoint that another training writes to "
               "--checkpoint_dir, up to the one of --steps");
  app.add_flag("--tensorboard", flags.tensorboard,
               "run TensorBoard on --summary_dir while this process trains, if it is installed");
}

void AddCheckpointFlags(CLI::App& app, Flags& flags) {
  app.add_option("--checkpoint_dir", flags.checkpoint_dir, "the folder to save to and resume from");
  app.add_option("--save_every_steps", flags.save_every_steps,
                 "steps between two saves; 0: not by steps")
      ->capture_default_str();
  app.add_option("--save_every_seconds", flags.save_every_seconds,
                 "time between two saves; 0: not by time")
      ->capture_default_str();
  app.add_option("--max_failed_saves", flags.max_failed_saves,
                 "end with an error after this many saves in a row that have failed; 0: go on")
      ->capture_default_str();
  app.add_flag("--deterministic", flags.deterministic,
               "go back to the last checkpoint after every failure, so that the weights are those "
               "of an undisturbed training, bit for bit; on a cluster with --sync. A training with "
               "--input=idx that was saved without this flag cannot be resumed with it");
}

// Adds the flags in the order in which --help lists them.
void AddFlags(CLI::App& app, Flags& flags, ClusterFlags& cluster) {
  AddClusterFlags(app, &cluster);
  app.add_option("--server", flags.server,
                 "grpc://host:port of another process, such as `penstock server`, that serves this "
                 "task; this process is then only its client");
  AddStepFlags(app, flags);
  AddWatchingFlags(app, flags);
  AddCheckpointFlags(app, flags);
  app.add_option("--input", flags.input,
                 "idx: the program reads and feeds the pictures; tfrecord: the workers read the "
                 "files of `penstock convert DATA_DIR` through a Dataset")
      ->capture_default_str();
  app.add_option("--data_dir", flags.data_dir)->capture_default_str();
  app.add_option("--seed", flags.seed, "seed of the initial weights and of the order of pictures")
      ->capture_default_str();
  app.add_option("--wait_seconds", flags.wait_seconds, "how long to wait for lost or missing tasks")
      ->capture_default_str();
}

Status CheckNumbers(const Flags& flags) {
  const struct {
    const char* flag;
    double value, least;
  } bounds[] = {
      {"--steps", static_cast<double>(flags.steps), 1},
      {"--batch_size", static_cast<double>(flags.batch_size), 1},
      {"--concurrent_steps", static_cast<double>(flags.concurrent_steps), 1},
      {"--replicas_to_aggregate", static_cast<double>(flags.replicas_to_aggregate), 0},
      {"--staleness_bound", static_cast<double>(flags.staleness_bound.value_or(0)), 0},
      {"--staleness_timeout", flags.staleness_timeout.value_or(0), 0},
      {"--learning_rate", flags.learning_rate, 0},
      {"--summary_steps", static_cast<double>(flags.summary_steps), 1},
      {"--eval_steps", static_cast<double>(flags.eval_steps), 0},
      {"--save_every_steps", static_cast<double>(flags.save_every_steps), 0},
      {"--save_every_seconds", flags.save_every_seconds, 0},
      {"--max_failed_saves", static_cast<double>(flags.max_failed_saves), 0},
      {"--wait_seconds", flags.wait_seconds, 0},
  };
  for (const auto& bound : bounds) {
    if (!(bound.value >= bound.least)) {
      return InvalidArgument(bound.flag, "=", bound.value, ": must be at least ", bound.least);
    }
  }
  if (flags.model != "mlp" && flags.model != "convnet") {
    return InvalidArgument("--model=", flags.model, ": expected mlp or convnet");
  }
  if (flags.training.strategy != "ps" && !flags.replicas() && !flags.all_reduce()) {
    return InvalidArgument("--strategy=", flags.training.strategy,
                           ": expected ps, replicas or allreduce");
  }
  if (flags.input != "idx" && flags.input != "tfrecord") {
    return InvalidArgument("--input=", flags.input, ": expected idx or tfrecord");
  }
  return OkStatus();
}

struct Mistake {
  bool given;
  const char* flag;
  const char* instead;
};

Status CheckReplicas(const Flags& flags) {
  const int workers = flags.num_tasks("worker") + flags.num_tasks("chief");
  if (!flags.replicas()) {
    if (flags.replicas_to_aggregate == 0) return OkStatus();
    return InvalidArgument("--replicas_to_aggregate: needs --strategy=replicas");
  }
  const Mistake mistakes[] = {
      {flags.num_tasks("ps") == 0, "", "needs parameter servers; say --ps_hosts as well"},
      {flags.replicas_to_aggregate > workers, " and --replicas_to_aggregate",
       "there are not so many workers"},
      {flags.sync, " and --sync", "these steps are taken together anyway; leave --sync out"},
      {flags.concurrent_steps > 1, " and --concurrent_steps", "one step is taken at a time; say 1"},
      {flags.input != "idx", " and --input", "workers are fed the pictures here; say idx"},
  };
  for (const Mistake& mistake : mistakes) {
    if (!mistake.given) continue;
    return InvalidArgument("--strategy=replicas", mistake.flag, ": ", mistake.instead);
  }
  return OkStatus();
}

Status CheckStepsTogether(const Flags& flags) {
  RETURN_IF_ERROR(CheckAllReduce(flags.training, flags.task));
  if (!flags.all_reduce()) return OkStatus();
  const Mistake mistakes[] = {
      {flags.sync, " and --sync", "all-reduced steps are taken together anyway; leave --sync out"},
      {flags.concurrent_steps > 1, " and --concurrent_steps", "one step is taken at a time; say 1"},
      {flags.input != "idx", " and --input", "workers are fed the pictures here; say idx"},
  };
  for (const Mistake& mistake : mistakes) {
    if (!mistake.given) continue;
    return InvalidArgument("--strategy=allreduce", mistake.flag, ": ", mistake.instead);
  }
  return OkStatus();
}

Status CheckStaleness(const Flags& flags) {
  if (!flags.staleness_bound.has_value()) {
    if (!flags.staleness_timeout.has_value()) return OkStatus();
    return InvalidArgument("--staleness_timeout: needs --staleness_bound");
  }
  const Mistake mistakes[] = {
      {!flags.distributed(), "", "needs workers; say --worker_hosts as well"},
      {flags.sync, " and --sync", "these steps are taken together anyway; leave --sync out"},
      {flags.training.strategy != "ps", " and --strategy",
       "only asynchronous workers have a bound; say ps"},
      {flags.num_tasks("ps") == 0, "", "needs parameter servers; say --ps_hosts as well"},
  };
  for (const Mistake& mistake : mistakes) {
    if (!mistake.given) continue;
    return InvalidArgument("--staleness_bound", mistake.flag, ": ", mistake.instead);
  }
  return OkStatus();
}

Status CheckDeterministic(const Flags& flags) {
  if (!flags.deterministic) return OkStatus();
  const Mistake mistakes[] = {
      {flags.evaluate, " and --evaluate", "it does not train; leave --deterministic out"},
      {flags.checkpoint_dir.empty(), "", "goes back to checkpoints; say --checkpoint_dir as well"},
      {flags.training.strategy != "ps", " and --strategy",
       "only steps on parameter servers need it; say ps"},
      {flags.distributed() && !flags.sync, "",
       "workers that train by themselves update in any order; say --sync as well"},
      {flags.concurrent_steps > 1, " and --concurrent_steps", "one step is taken at a time; say 1"},
  };
  for (const Mistake& mistake : mistakes) {
    if (!mistake.given) continue;
    return InvalidArgument("--deterministic", mistake.flag, ": ", mistake.instead);
  }
  return OkStatus();
}

Status CheckSummaries(const Flags& flags) {
  const Mistake mistakes[] = {
      {flags.tensorboard && flags.summary_dir.empty(), "--tensorboard",
       "has nothing to show; say --summary_dir as well"},
      {flags.evaluate && flags.checkpoint_dir.empty(), "--evaluate",
       "needs the checkpoints of a training; say --checkpoint_dir as well"},
      {flags.evaluate && flags.distributed(), "--evaluate",
       "tests in this process, which is no task of the cluster; leave the cluster's flags out"},
      {flags.evaluate && flags.eval_steps > 0, "--eval_steps",
       "--evaluate tests every checkpoint; leave --eval_steps out"},
  };
  for (const Mistake& mistake : mistakes) {
    if (mistake.given) return InvalidArgument(mistake.flag, ": ", mistake.instead);
  }
  return OkStatus();
}

}  // namespace

int Flags::num_tasks(const std::string& job) const { return NumTasks(task, job); }

StatusOr<std::optional<Flags>> ParseFlags(int argc, char** argv) {
  Flags flags;
  ClusterFlags cluster;
  CLI::App app(kAbout);
  AddFlags(app, flags, cluster);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    app.exit(help);
    return std::optional<Flags>();
  } catch (const CLI::ParseError& error) {
    return InvalidArgument(error.what(), "; --help lists the flags");
  }
  RETURN_IF_ERROR(CheckNumbers(flags));
  ASSIGN_OR_RETURN(flags.task, FindTask(app, cluster));
  RETURN_IF_ERROR(CheckReplicas(flags));
  RETURN_IF_ERROR(CheckStepsTogether(flags));
  RETURN_IF_ERROR(CheckStaleness(flags));
  RETURN_IF_ERROR(CheckDeterministic(flags));
  RETURN_IF_ERROR(CheckSummaries(flags));
  for (const auto& [flag, given] :
       {std::pair("--sync", flags.sync), std::pair("--server", !flags.server.empty())}) {
    if (given && !flags.distributed()) {
      return InvalidArgument(flag, ": needs workers; say --worker_hosts as well");
    }
  }
  if (!flags.server.empty() && (flags.sync || flags.task.job == "ps")) {
    return InvalidArgument(
        "--server: a worker of an asynchronous training can be driven from "
        "elsewhere, not ",
        flags.sync ? "--sync" : "--job_name=ps");
  }
  return std::optional<Flags>(std::move(flags));
}

}  // namespace penstock::examples
