// SPDX-License-Identifier: Apache-2.0
//
// Saver: saves a program's variables as checkpoints in TensorFlow's V2 format, and restores them.
//
// Each task writes the variables that it holds, all at the same time, into a part of its own; the
// parts become one checkpoint when all are whole. So the tasks and the client must see one file
// system. A checkpoint is visible only when it is complete; older ones go after that, and the file
// "checkpoint" (which names the newest) is written in between.
//
// The constructor adds nodes to the program, which it borrows: make it when the program has all of
// its variables, before other threads run sessions of it. Saves of one directory must come one
// after the other. Variables change while they are being saved if other clients train: each is
// whole, but they may be some updates apart; unless each update of a task's variables holds one of
// some mutexes there, and savers all of them: then those of one task are of one moment.
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
  int keep = 5;          // the newest ones; 0: all
  Outputs mutexes = {};  // client/mutex.h: held while variables are read, or given their values
  // One checkpoint of every so many hours is kept besides, for good. 0: none.
  double keep_every_hours = 0;
  // After a checkpoint with all rows of dynamic tables, up to this many follow that hold only the
  // rows that changed since the checkpoint before. They can be restored only with the others, which
  // are kept on the disk. 0: each has all rows. The first one after a Restore has all rows.
  int incremental = 0;
  // Adds the nodes for CopyAhead, Cut and SaveCut.
  bool background = false;
  // How much SaveCut writes, per task. 0: no limit.
  int64_t bytes_per_second = 0;
  // A trainable variable or a table that holds NaN or infinity makes a save fail: InvalidArgument
  // names it. The check reads the same values that are written.
  bool finite_only = false;
  Env* env = &Env::Real();
};

class Saver {
 public:
  using Options = SaverOptions;
  // Saves `variables`; if empty, all shared ones. A saver of all shared variables also saves the
  // program's dynamic tables (client/embedding/dynamic_table.h).
  explicit Saver(Program& program, std::vector<Variable> variables = {},
                 const Options& options = {});

  // Writes the checkpoint "prefix-step" and returns its name. After an error the ones before it are
  // what they were, and the state file names them.
  StatusOr<std::string> Save(Session& session, const std::string& prefix, int64_t step);

  // A save that lets updates go on, in three steps; `save` is a name that no other save has.
  // First CopyAhead, which takes the time of copying the variables once in memory: large tables of
  // which updates change some rows are copied then. Cut takes the values of all variables; it is
  // short, and they are of one moment if no update runs meanwhile, or `mutexes` see to that. Then
  // SaveCut, which writes these values, whatever becomes of the variables. While values are kept,
  // the first update of a variable that was not copied ahead copies it. REQUIRES
  // SaverOptions::background.
  Status CopyAhead(Session& session, const std::string& save, const RunOptions& options = {});
  Status Cut(Session& session, const std::string& save, const RunOptions& options = {});
  // Whether there is anything for CopyAhead to do.
  bool copies_ahead() const { return copy_ahead_.valid(); }
  // As Save. FailedPrecondition if the values are gone: another save was begun, or a task lost.
  StatusOr<std::string> SaveCut(Session& session, const std::string& save,
                                const std::string& prefix, int64_t step,
                                const RunOptions& options = {});

  // Whether a save failed because of `finite_only`.
  bool IsNonFinite(const Status& saved) const;

  // The variables' values in the checkpoint, by name. Changes no variable.
  StatusOr<std::map<std::string, Tensor>> Read(Session& session, const std::string& checkpoint,
                                               const RunOptions& options = {});

  // Gives every variable the value it has in the checkpoint, and tables their rows. If the
  // checkpoint holds changes only, the tables first get the rows of those that it builds on; after
  // an error on the way they have these.
  Status Restore(Session& session, const std::string& checkpoint);

  // Restores the newest checkpoint of `directory` whose every byte verifies; says which others it
  // had to pass over and why. No prefix: there are none, and nothing was restored. DataLoss: there
  // are some, all of them damaged.
  StatusOr<NewestGood> RestoreNewestGood(Session& session, const std::string& directory);

 private:
  struct Shard;
  // A restore of tables from several checkpoints, or from one: the only one gives all values, the
  // first one rows, the next ones changes of rows, and the last one these and all other values.
  enum class RestoreStep { kOnly, kFirst, kNext, kLast };
  // A save, what it holds changes since, and its number after the complete one.
  struct SavedChanges {
    std::string mark, base_mark, base;
    std::string directory, name;
    int number = 0;
  };
  Output Checked(Output value, const std::string& owner);
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
  Output path_, temporary_, cut_name_;      // fed
  Output mark_, base_mark_, base_;          // fed, if tables are saved incrementally
  std::set<std::string> checks_;            // nodes that fail if a value is not finite
  std::map<std::string, Output> restored_;  // by variable: the value in the checkpoint
  // The slices that each variable with interleaved parts has, by its name in checkpoints.
  std::map<std::string, std::set<std::string>> interleaved_;
  Output save_, restore_;
  Output restore_first_, restore_next_, restore_last_;  // if there are tables
  Output copy_ahead_, cut_, save_cut_;  // if options_.background
  Mutex mu_;
  SavedChanges last_ ABSL_GUARDED_BY(mu_);         // no mark: the next save has all rows
  SavedChanges cut_changes_ ABSL_GUARDED_BY(mu_);  // those of the newest Cut
};

}  // namespace penstock::client
