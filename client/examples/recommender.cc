// SPDX-License-Identifier: Apache-2.0
//
// Trains a model that says which films a user will like, on a cluster of which every task is this
// program: a ps serves and holds the tables, a worker serves and trains.
//
// Exit codes: 0 done, 1 an error that stays, 2 a mistake in the flags; try again: 129 a task was
// lost and did not come back in time, 143 a signal has ended the training early.
#include <CLI/CLI.hpp>
#include <string>

#include "client/examples/recommender_training.h"
#include "client/examples/task.h"

namespace penstock::examples {
namespace {

constexpr char kProgram[] = "recommender";
constexpr char kAbout[] =
    "Trains a wide-and-deep model of film ratings: in this process, or as one task of a cluster of "
    "parameter servers (ps) and workers. All tasks are started with the same flags but for "
    "--job_name and --task_index.";

void AddFlags(CLI::App& app, RecommenderFlags& flags) {
  const auto number = [&](const char* name, int64_t& value, const char* about) {
    app.add_option(name, value, about)
        ->capture_default_str()
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  };
  app.add_option("--data_dir", flags.data_dir, "with the files that tools/movielens writes")
      ->required();
  number("--units", flags.units, "numbers in the vector of a user, film or genre");
  number("--steps", flags.steps, "updates, of all workers together");
  number("--batch_size", flags.batch_size, "ratings per worker and step");
  app.add_option("--learning_rate", flags.learning_rate)
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--checkpoint_dir", flags.checkpoint_dir, "where to save, and to go on from");
  app.add_option("--save_every_seconds", flags.save_every_seconds, "0: not by time")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--wait_seconds", flags.wait_seconds, "for tasks that are lost or not there yet")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

int Main(int argc, char** argv) {
  RecommenderFlags flags;
  ClusterFlags cluster;
  CLI::App app(kAbout);
  AddClusterFlags(app, &cluster);
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return Report(kProgram, InvalidArgument(error.what(), "; --help lists the flags"), kMistake);
  }
  StatusOr<TaskConfig> task = FindTask(app, cluster);
  if (!task.ok()) return Report(kProgram, task.status(), kMistake);
  flags.task = *std::move(task);
  return RunTask({.program = kProgram, .task = flags.task},
                 [&](const std::string& target) { return TrainRecommender(flags, target); });
}

}  // namespace
}  // namespace penstock::examples

int main(int argc, char** argv) { return penstock::examples::Main(argc, argv); }
