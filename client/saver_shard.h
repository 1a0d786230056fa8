// SPDX-License-Identifier: Apache-2.0
//
// SaverShard: the variables and tables of one task, and the nodes that save and restore them.
// Private to SaverNodes.
#pragma once

#include <string>
#include <vector>

#include "client/dataset_iterator.h"
#include "client/program.h"
#include "client/saved_tables.h"

namespace penstock::client {

// The files and ops of one task.
struct SaverShard {
  int index = 0;
  std::vector<Variable> variables;
  std::vector<SavedTable> tables;
  std::vector<Variable> ready;  // initialised when the tables are ready
  std::vector<Iterator> iterators;
  Outputs mutexes;  // mutexes on this task
  Output file;      // the prefix of the file names of this task
  Outputs values;   // the values to save
  Output save;      // the op that writes them to the file
  // The ops of a background save.
  Outputs copy_ahead;  // the last op of a chain; none if no variable is large
  Output take_snapshot, save_snapshot;
  // The first outputs of the ops that read the file: the values of variables, the rows of tables,
  // the changed rows in a checkpoint of changes, and the positions of iterators. Each is not valid
  // if the task has no such values.
  Output restored, rows, changes, positions;
  Outputs restored_values;  // the values of `variables`, computed from `restored`

  bool saves_changes = false;  // if true, saves with a base have only the changed rows of tables
  // Return name, slice and type of each saved tensor: first the variables, then the tensors of the
  // tables, then the iterators.
  std::vector<std::string> Names() const;
  std::vector<std::string> Slices() const;
  std::vector<DType> Types() const;
  // Returns the names of the iterators' positions.
  std::vector<std::string> PositionNames() const;
};

}  // namespace penstock::client
