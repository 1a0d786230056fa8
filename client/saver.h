// SPDX-License-Identifier: Apache-2.0
//
// Saver: saves a program's variables as checkpoints in TensorFlow's V2 format, and restores them.
//
// All tasks write at the same time: each writes the variables that it holds into a data file of its
// own. When all files are complete, they become one checkpoint. So the tasks and the client must
// share a file system. A checkpoint is visible only when it is complete. Then the file
// "checkpoint", which names the newest one, is written, and after that old checkpoints are removed.
//
// The constructor adds nodes to the program, which it borrows: make the Saver when the program has
// all of its variables, before other threads run sessions of the program. Do not run two saves into
// one directory at the same time. Errors of the nodes name the line of the constructor's call. If
// other clients train during a save, the saved value of each variable is consistent, but different
// variables may be some updates apart. With SaverOptions::mutexes, the saved values of one task's
// variables are those of one moment, if each update of them holds one of the mutexes on that task.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/kept_checkpoints.h"
#include "client/program.h"
#include "client/saver_nodes.h"
#include "client/saver_options.h"
#include "client/session.h"
#include "core/base/mutex.h"
#include "core/checkpoint/checkpoints.h"

namespace penstock::client {

class Saver {
 public:
  using Options = SaverOptions;
  // Makes a saver of `variables`; if empty, of all shared variables. A saver of all shared
  // variables also saves the program's dynamic tables (client/embedding/dynamic_table.h).
  explicit Saver(Program& program, std::vector<Variable> variables = {},
                 const Options& options = {},
                 SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  // Writes the checkpoint "prefix-step" and returns its name. After an error all earlier
  // checkpoints are unchanged, and the file "checkpoint" still names them.
  StatusOr<std::string> Save(Session& session, const std::string& prefix, int64_t step);

  // A background save, during which updates go on, takes three calls. `save` is a name that no
  // other save has. First, CopyAhead copies large variables in memory. Then TakeSnapshot takes a
  // snapshot of all variables, in a short time. The snapshot shows one moment if no update runs
  // during TakeSnapshot, or if the updates hold `mutexes`. Then SaveSnapshot writes the snapshot,
  // even if the variables have changed since. While there is a snapshot, the first update of a
  // variable that was not copied ahead copies the variable. REQUIRES SaverOptions::background.
  Status CopyAhead(Session& session, const std::string& save, const RunOptions& options = {});
  Status TakeSnapshot(Session& session, const std::string& save, const RunOptions& options = {});
  // Returns whether there are variables that CopyAhead would copy.
  bool copies_ahead() const { return nodes_.copy_ahead.valid(); }
  // Writes the snapshot as Save does. FailedPrecondition if there is no snapshot any more, because
  // another save was begun or a task was lost.
  StatusOr<std::string> SaveSnapshot(Session& session, const std::string& save,
                                     const std::string& prefix, int64_t step,
                                     const RunOptions& options = {});

  // Returns whether a save failed because of `finite_only`.
  bool IsNonFinite(const Status& saved) const;

  // Returns the values of the variables in the checkpoint, by name. Changes no variable.
  StatusOr<std::map<std::string, Tensor>> Read(Session& session, const std::string& checkpoint,
                                               const RunOptions& options = {});

  // Restores all variables, and the rows of tables, from the checkpoint. If the checkpoint holds
  // only changes, first restores the tables from the checkpoints on which it builds; an error may
  // leave the tables in the state of one of these.
  Status Restore(Session& session, const std::string& checkpoint);

  // Restores the newest checkpoint of `directory` whose checksums are all correct. The result also
  // names the damaged ones. If there is no checkpoint, restores nothing, and the result's prefix is
  // "". DataLoss if all checkpoints are damaged.
  StatusOr<NewestGood> RestoreNewestGood(Session& session, const std::string& directory);

 private:
  // A save with the changes of tables: its mark, the mark and name of the save on which it builds,
  // and the number of saves since the last one with all rows.
  struct SavedChanges {
    std::string mark, base_mark, base;
    std::string directory, name;
    int number = 0;
  };
  SavedChanges BeginChanges(const std::string& mark, const std::string& directory)
      ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<Feed> FeedsOf(const SavedChanges& changes) const;
  StatusOr<std::string> RunSave(Session& session, Output save_op, const std::string& prefix,
                                int64_t step, SavedChanges changes, std::vector<Feed> feeds,
                                const RunOptions& options) ABSL_LOCKS_EXCLUDED(mu_);
  Status RestoreChain(Session& session, const std::string& checkpoint) ABSL_LOCKS_EXCLUDED(mu_);
  Status CheckParts(const std::string& checkpoint) const;

  const SaverOptions options_;
  KeptCheckpoints kept_;
  const SaverNodes nodes_;
  Mutex mu_;
  SavedChanges last_ ABSL_GUARDED_BY(mu_);  // the last save; no mark: the next save has all rows
  SavedChanges snapshot_changes_ ABSL_GUARDED_BY(mu_);  // the changes of the newest TakeSnapshot
};

}  // namespace penstock::client
