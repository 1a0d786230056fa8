// SPDX-License-Identifier: Apache-2.0
//
// Flags that all training examples have, and a parser for them and for the flags of the cluster.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "client/examples/task.h"

namespace penstock::examples {

// Adds a flag for a number of at least 1.
void AddCount(CLI::App& app, const char* name, int64_t& value, const char* about);

// Adds --placement: "auto" or "client" (SessionOptions::placement).
void AddPlacementFlag(CLI::App& app, std::string& placement);

// Adds the flags that say how long to train and where to save. `flags` has a field for each of
// them.
template <class Flags>
void AddTrainingFlags(CLI::App& app, Flags& flags) {
  AddCount(app, "--steps", flags.steps, "number of updates, of all workers together");
  app.add_option("--checkpoint_dir", flags.checkpoint_dir, "folder to save to and resume from");
  app.add_option("--save_every_seconds", flags.save_every_seconds,
                 "time between two saves; 0: not by time")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--max_failed_saves", flags.max_failed_saves,
                 "end with an error after this many saves in a row that have failed; 0: go on")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--wait_seconds", flags.wait_seconds, "how long to wait for lost or missing tasks")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

// Adds the flags of a cluster to those of `app`, parses the command line, and determines this
// process's task. Returns an exit code if the program has to end: after --help, or after a mistake,
// which it has printed.
std::optional<int> ParseFlags(const char* program, CLI::App& app, int argc, char** argv,
                              TaskConfig* task);

}  // namespace penstock::examples
