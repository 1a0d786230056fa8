// SPDX-License-Identifier: Apache-2.0
//
// Trains a model that predicts which films a user will like. All tasks of the cluster run this
// program: a ps serves and holds the tables, a worker serves and trains.
//
// Exit codes: 0 done; 1 a permanent error; 2 a mistake in the flags; 129 a task was lost and did
// not come back in time; 143 a signal ended the training early. After 129 and 143 try again.
#include <CLI/CLI.hpp>
#include <string>

#include "client/examples/all_reduce.h"
#include "client/examples/recommender_training.h"
#include "client/examples/training_flags.h"

namespace penstock::examples {
namespace {

constexpr char kProgram[] = "recommender";
constexpr char kAbout[] =
    "Trains a wide-and-deep model of film ratings: in this process, or as one task of a cluster of "
    "parameter servers (ps) and workers. Start all tasks with the same flags, except --job_name "
    "and --task_index.";

void AddFlags(CLI::App& app, RecommenderFlags& flags) {
  app.add_option("--data_dir", flags.data_dir, "folder of the files of tools/movielens")
      ->required();
  AddCount(app, "--units", flags.units, "length of the vector of a user, film or genre");
  app.add_option("--table", flags.table,
                 "variable: vectors are in partitioned variables, with a row for each known id; "
                 "dynamic: in dynamic tables, which make a row for each id that is trained")
      ->capture_default_str()
      ->check(CLI::IsMember({"variable", "dynamic"}));
  app.add_option("--incremental_saves", flags.incremental_saves,
                 "with dynamic tables: after a checkpoint with all rows, up to this many hold only "
                 "the rows that changed")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--max_rows", flags.max_rows,
                 "with dynamic tables: the maximum rows of a table in memory; 0: no limit")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--spill_directory", flags.spill_directory,
                 "with --max_rows: the folder in which parameter servers keep further rows, "
                 "instead of dropping the least recently trained rows");
  AddCount(app, "--batch_size", flags.batch_size, "ratings per worker and step");
  app.add_option("--learning_rate", flags.learning_rate)
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  AddStrategyFlag(app, flags.training,
                  ". Dynamic tables are on parameter servers: --table=variable only");
  AddElasticFlags(app, flags.training);
  AddPlacementFlag(app, flags.placement);
  AddTrainingFlags(app, flags);
}

Status CheckTogether(const RecommenderFlags& flags) {
  if (flags.training.all_reduce() && flags.table == "dynamic") {
    return InvalidArgument(
        "--strategy=allreduce and --table=dynamic: dynamic tables are on parameter servers, which ",
        "make rows for the ids that they meet; replicas would make different rows. Say ",
        "--table=variable");
  }
  if (flags.training.all_reduce() && flags.placement == "auto") {
    return InvalidArgument("--strategy=allreduce and --placement=auto: every worker computes on ",
                           "its own task; say --placement=client");
  }
  return CheckAllReduce(flags.training, flags.task);
}

int Main(int argc, char** argv) {
  RecommenderFlags flags;
  CLI::App app(kAbout);
  AddFlags(app, flags);
  const auto ended = ParseFlags(kProgram, app, argc, argv, &flags.task);
  if (ended.has_value()) return *ended;
  const Status checked = CheckTogether(flags);
  if (!checked.ok()) return Report(kProgram, checked, kMistake);
  return RunTask(
      {.program = kProgram, .task = flags.task, .chief_drives = flags.placement == "auto"},
      [&](const std::string& target) { return TrainRecommender(flags, target); });
}

}  // namespace
}  // namespace penstock::examples

int main(int argc, char** argv) { return penstock::examples::Main(argc, argv); }
