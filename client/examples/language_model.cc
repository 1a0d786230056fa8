// SPDX-License-Identifier: Apache-2.0
//
// Trains a network to write sayings, character by character (those of the Debian package fortunes),
// on a cluster of which every task is this program: a ps serves, a worker serves and trains.
//
// Exit codes: 0 done, 1 an error that stays, 2 a mistake in the flags; try again: 129 a task was
// lost and did not come back in time, 143 a signal has ended the training early.
#include <CLI/CLI.hpp>
#include <string>

#include "client/examples/language_model_training.h"
#include "client/examples/task.h"

namespace penstock::examples {
namespace {

constexpr char kProgram[] = "language_model";
constexpr char kAbout[] =
    "Trains a recurrent network that writes sayings: in this process, or as one task of a cluster "
    "of parameter servers (ps) and workers. All tasks are started with the same flags but for "
    "--job_name and --task_index.";

void AddFlags(CLI::App& app, LanguageModelFlags& flags) {
  const CLI::Range positive(int64_t{1}, int64_t{1} << 30);
  const auto number = [&](const char* name, int64_t& value, const char* about) {
    app.add_option(name, value, about)->capture_default_str()->check(positive);
  };
  app.add_option("--cell", flags.size.cell, "lstm or gru")
      ->capture_default_str()
      ->check(CLI::IsMember({"lstm", "gru"}));
  number("--units", flags.size.units, "of each layer");
  number("--layers", flags.size.layers, "");
  number("--embedding", flags.size.embedding, "numbers that stand for a character");
  number("--seed", flags.size.seed, "of initial weights and of the order of texts");
  number("--steps", flags.steps, "updates, of all workers together");
  number("--batch_size", flags.batch_size, "texts per worker and step");
  number("--length_max", flags.length_max, "characters; longer texts are cut");
  app.add_flag("--sync", flags.sync, "workers take each step together (default: each by itself)");
  app.add_option("--learning_rate", flags.learning_rate)
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--clip", flags.clip, "longest gradient, of all variables together")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--temperature", flags.temperature, "how much the texts made up at the end dare")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--data_dir", flags.data_dir)->capture_default_str();
  app.add_option("--checkpoint_dir", flags.checkpoint_dir, "where to save, and to go on from");
  app.add_option("--save_every_seconds", flags.save_every_seconds, "0: not by time")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--wait_seconds", flags.wait_seconds, "for tasks that are lost or not there yet")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

int Main(int argc, char** argv) {
  LanguageModelFlags flags;
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
  if (flags.sync && flags.task.cluster.empty()) {
    const Status mistake = InvalidArgument("--sync: needs workers; say --worker_hosts as well");
    return Report(kProgram, mistake, kMistake);
  }
  return RunTask({.program = kProgram, .task = flags.task, .chief_drives = flags.sync},
                 [&](const std::string& target) { return TrainLanguageModel(flags, target); });
}

}  // namespace
}  // namespace penstock::examples

int main(int argc, char** argv) { return penstock::examples::Main(argc, argv); }
