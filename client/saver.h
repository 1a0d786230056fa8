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
// all of its variables, before other threads run sessions of it. Do not run two saves into one
// directory at the same time. Errors of the nodes name the line of the constructor's call. If other
// clients train during a save, the saved value of each variable is consistent, but different
// variables may be some updates apart. With `mutexes`, the variables of one task are saved at one
// moment, if each update of them holds one of the mutexes on that task.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "client/kept_checkpoints.h"
#include "client/program.h"
#include "client/session.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/checkpoint/checkpoints.h"

namespace penstock::client {

struct SaverOptions {
  int keep = 5;          // number of newest checkpoints to keep; 0: all
  Outputs mutexes = {};  // held while variables are saved or restored: client/mutex.h
  // In addition, one checkpoint per this many hours is never deleted. 0: none.
  double keep_every_hours = 0;
  // After a checkpoint with all rows of dynamic tables, up to this many checkpoints hold only the
  // rows that changed since the checkpoint before them. Restoring such a checkpoint needs the ones
  // on which it builds, which are kept on the disk. 0: each checkpoint has all rows. The first
  // checkpoint after a Restore has all rows, too.
  int incremental = 0;
  // Whether to add the nodes for CopyAhead, TakeSnapshot and SaveSnapshot.
  bool background = false;
  // The maximum rate at which SaveSnapshot writes on each task. 0: no limit.
  int64_t bytes_per_second = 0;
  // Whether a save fails if a trainable variable or a table contains NaN or infinity:
  // InvalidArgument names it. The check reads the same values that are written.
  bool finite_only = false;
  Env* env = &Env::Real();
};

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
  bool copies_ahead() const { return copy_ahead_.valid(); }
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

  // Restores the newest checkpoint of `directory` that is not damaged: all its checksums are
  // verified. The result also names the damaged ones. Its prefix is "" if there is no checkpoint;
  // then nothing was restored. DataLoss if all checkpoints are damaged.
  StatusOr<NewestGood> RestoreNewestGood(Session& session, const std::string& directory);

 private:
  struct Shard;
  // The steps of a restore. kOnly: one complete checkpoint, which gives all values. Else several
  // checkpoints: kFirst gives the rows of tables, kNext changes of rows, and kLast changes of rows
  // and all other values.
  enum class RestoreStep { kOnly, kFirst, kNext, kLast };
  // A save with the changes of tables: its mark, the save on which it builds, and the number of
  // saves since the complete one.
  struct SavedChanges {
    std::string mark, base_mark, base;
    std::string directory, name;
    int number = 0;
  };
  Output FailIfNotFinite(Output value, const std::string& owner);
  void CheckValues(const Shard& shard, Outputs& values);
  Shard AddShard(Shard shard, int index, int count);
  void AddTableValues(const Shard& shard, const Outputs& locks, Outputs* values);
  void AddReads(Shard& shard);
  Outputs AddImports(const Shard& shard, RestoreStep step);
  Outputs AddAssigns(const Shard& shard, const Outputs& imported);
  void AddSnapshot(Shard& shard);
  Output AddSave(const Shard& shard, Outputs values, bool background);
  Output AddRestores(const std::vector<Shard>& shards, RestoreStep step);
  SavedChanges BeginChanges(const std::string& mark, const std::string& directory)
      ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<Feed> FeedsOf(const SavedChanges& changes) const;
  StatusOr<std::string> RunSave(Session& session, Output save_op, const std::string& prefix,
                                int64_t step, SavedChanges changes, std::vector<Feed> feeds,
                                const RunOptions& options) ABSL_LOCKS_EXCLUDED(mu_);
  Status RestoreChain(Session& session, const std::string& checkpoint) ABSL_LOCKS_EXCLUDED(mu_);
  Status CheckParts(const std::string& checkpoint) const;

  Program& program_;
  const Options options_;
  KeptCheckpoints kept_;
  Output path_, temporary_, snapshot_name_;  // placeholders
  Output mark_, base_mark_, base_;           // placeholders; for incremental saves of tables
  std::set<std::string> checks_;            // names of the nodes that fail if a value is not finite
  std::map<std::string, Output> restored_;  // the value in the checkpoint, by variable
  // The slices that each variable with interleaved parts has, by its name in checkpoints.
  std::map<std::string, std::set<std::string>> interleaved_;
  Output save_, restore_;
  Output restore_first_, restore_next_, restore_last_;  // valid if there are tables
  Output copy_ahead_, take_snapshot_, save_snapshot_;   // valid if options_.background
  Mutex mu_;
  SavedChanges last_ ABSL_GUARDED_BY(mu_);  // if it has no mark, the next save has all rows
  SavedChanges snapshot_changes_ ABSL_GUARDED_BY(mu_);  // the changes of the newest TakeSnapshot
};

}  // namespace penstock::client
