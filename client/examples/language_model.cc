// SPDX-License-Identifier: Apache-2.0
//
// Trains a network to write sayings, like those of the Debian package fortunes, character by
// character. All tasks of the cluster run this program: a ps serves, a worker serves and trains.
//
// Exit codes: 0 done; 1 a permanent error; 2 a mistake in the flags; 129 a task was lost and did
// not come back in time; 143 a signal ended the training early. After 129 and 143 try again.
#include <CLI/CLI.hpp>
#include <string>

#include "client/examples/all_reduce.h"
#include "client/examples/language_model_training.h"
#include "client/examples/training_flags.h"

namespace penstock::examples {
namespace {

constexpr char kProgram[] = "language_model";
constexpr char kAbout[] =
    "Trains a recurrent network that writes sayings: in this process, or as one task of a cluster "
    "of parameter servers (ps) and workers. Start all tasks with the same flags, except --job_name "
    "and --task_index.";

void AddFlags(CLI::App& app, LanguageModelFlags& flags) {
  app.add_option("--cell", flags.size.cell, "lstm or gru")
      ->capture_default_str()
      ->check(CLI::IsMember({"lstm", "gru"}));
  AddCount(app, "--units", flags.size.units, "units of each layer");
  AddCount(app, "--layers", flags.size.layers, "");
  AddCount(app, "--embedding", flags.size.embedding, "length of a character's vector");
  AddCount(app, "--seed", flags.size.seed, "seed of the initial weights and of the order of texts");
  AddCount(app, "--batch_size", flags.batch_size, "texts per worker and step");
  AddCount(app, "--length_max", flags.length_max, "characters of a text; longer texts are cut");
  app.add_flag("--sync", flags.sync, "workers take each step together (default: each by itself)");
  AddStrategyFlag(app, flags.training);
  AddElasticFlags(app, flags.training);
  app.add_option("--learning_rate", flags.learning_rate)
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--clip", flags.clip, "maximum joint norm of all variables' gradients")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--temperature", flags.temperature, "sampling temperature of the texts at the end")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--data_dir", flags.data_dir)->capture_default_str();
  AddTrainingFlags(app, flags);
}

Status CheckTogether(const LanguageModelFlags& flags) {
  if (flags.sync && flags.task.cluster.empty()) {
    return InvalidArgument("--sync: needs workers; say --worker_hosts as well");
  }
  if (flags.sync && flags.training.all_reduce()) {
    return InvalidArgument("--strategy=allreduce and --sync: all-reduced steps are taken together ",
                           "anyway; leave --sync out");
  }
  return CheckAllReduce(flags.training, flags.task);
}

int Main(int argc, char** argv) {
  LanguageModelFlags flags;
  CLI::App app(kAbout);
  AddFlags(app, flags);
  const auto ended = ParseFlags(kProgram, app, argc, argv, &flags.task);
  if (ended.has_value()) return *ended;
  const Status checked = CheckTogether(flags);
  if (!checked.ok()) return Report(kProgram, checked, kMistake);
  return RunTask({.program = kProgram, .task = flags.task, .chief_drives = flags.sync},
                 [&](const std::string& target) { return TrainLanguageModel(flags, target); });
}

}  // namespace
}  // namespace penstock::examples

int main(int argc, char** argv) { return penstock::examples::Main(argc, argv); }
