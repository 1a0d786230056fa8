// SPDX-License-Identifier: Apache-2.0
//
// SaverNodes: the nodes with which a Saver (client/saver.h) saves and restores the variables and
// tables of a program. Each task saves its variables and tables into its own files.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "client/program.h"
#include "client/saver_options.h"

namespace penstock::client {

struct SaverNodes {
  Output path, temporary, snapshot_name;  // placeholders
  Output mark, base_mark, base;           // placeholders; for incremental saves of tables
  // Ops of all tasks together.
  Output save, restore;
  Output restore_first, restore_next, restore_last;  // valid if there are tables
  Output copy_ahead, take_snapshot, save_snapshot;   // valid if SaverOptions::background

  std::set<std::string> checks;            // names of the nodes that fail if a value is not finite
  std::map<std::string, Output> restored;  // the value in the checkpoint, by variable
  // The slices that each variable with interleaved parts has, by its name in checkpoints.
  std::map<std::string, std::set<std::string>> interleaved;
};

// Adds the nodes to the program. `variables`: as for the constructor of Saver. If there are no
// variables, the program fails with InvalidArgument. Errors of the nodes name `line`.
SaverNodes AddSaverNodes(Program& program, std::vector<Variable> variables,
                         const SaverOptions& options, SourceLine line);

}  // namespace penstock::client
