// SPDX-License-Identifier: Apache-2.0
//
// SaverOptions: how a Saver (client/saver.h) saves and restores.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/dataset_iterator.h"
#include "client/program.h"
#include "core/base/env.h"

namespace penstock::client {

struct SaverOptions {
  int keep = 5;          // number of newest checkpoints to keep; 0: all
  Outputs mutexes = {};  // held while variables are saved or restored: client/mutex.h
  // By the variable's name: adds nodes that compute the variable's value from the complete tensor
  // that the checkpoint has under Variable::saved_name. Any other variable is restored from its own
  // rows.
  std::map<std::string, std::function<Output(Output)>> from_whole = {};
  // Iterators whose positions are saved with the variables, by the names of their nodes. Generated
  // names may change when iterators are added to the program; then they fit no older checkpoint. A
  // save fails with FailedPrecondition if an iterator was not initialised. A restore makes a new
  // iterator of iterator.dataset(), which goes on after the last element that was returned before
  // the save. The restore returns NotFound if the checkpoint has no position for an iterator, and
  // InvalidArgument if the pipeline differs from the saved one. Elements that the dataset has read
  // ahead, such as those of a shuffle, are in the checkpoint. Save between two steps: otherwise a
  // step may have taken an element whose update is not in the checkpoint. Random ops in the
  // datasets' functions begin anew.
  std::vector<Iterator> iterators = {};
  // In addition, one checkpoint per this many hours is never deleted. 0: none.
  double keep_every_hours = 0;
  // After a checkpoint with all rows of dynamic tables, up to this many checkpoints hold only the
  // rows that changed since the checkpoint before them. Restoring such a checkpoint needs the
  // earlier ones on which it builds, which therefore stay on the disk. 0: each checkpoint has all
  // rows. The first checkpoint after a Restore has all rows, too.
  int incremental = 0;
  // Whether to add the nodes for CopyAhead, TakeSnapshot and SaveSnapshot.
  bool background = false;
  // The maximum rate at which SaveSnapshot writes on each task. 0: no limit.
  int64_t bytes_per_second = 0;
  // If true, a save fails if a trainable variable or a table contains NaN or infinity;
  // InvalidArgument names the variable or table. The save checks the same values that it writes.
  bool finite_only = false;
  Env* env = &Env::Real();
};

}  // namespace penstock::client
