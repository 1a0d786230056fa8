// SPDX-License-Identifier: Apache-2.0
#include "client/saver.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "client/device_setter.h"
#include "client/mutex.h"
#include "client/ops/line_scope.h"
#include "client/saved_tables.h"
#include "core/base/error_origin.h"
#include "core/checkpoint/base_checkpoints.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/write_rate.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

// Returns whether the variable has less than 1 MiB. CopyAhead does not copy such variables.
bool IsSmall(const Variable& variable) {
  constexpr int64_t kBytes = 1 << 20;
  if (!variable.shape().fully_known()) return false;
  const int64_t elements = variable.shape().ToShape().num_elements();
  return elements * static_cast<int64_t>(SizeOf(variable.dtype())) < kBytes;
}

// Returns whether `variables` contains all of `wanted`.
bool HasAll(const std::vector<Variable>& variables, const std::vector<Variable>& wanted) {
  std::set<std::string> names;
  for (const Variable& variable : variables) names.insert(variable.name());
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const Variable& each) { return names.contains(each.name()); });
}

Output Strings(GraphSink& sink, const std::vector<std::string>& values) {
  return Constant(sink, Tensor::Vector<std::string>(values));
}

}  // namespace

// The files and ops of one task.
struct Saver::Shard {
  int index = 0;
  std::vector<Variable> variables;
  std::vector<SavedTable> tables;
  std::vector<Variable> ready;  // initialised when the tables are ready
  Outputs mutexes;              // mutexes on this task
  Output file;                  // the prefix of the file names of this task
  Outputs values;               // the values to save
  Output save;                  // op
  // The ops of a background save.
  Outputs copy_ahead;  // the last op of a chain; none if no variable is large
  Output take_snapshot, save_snapshot;
  // The first outputs of the ops that read the file: the values of variables, the rows of tables,
  // and the changed rows in a checkpoint of changes. Not valid if there are none.
  Output restored, rows, changes;

  bool saves_changes = false;  // saves contain only the changed rows of tables, if possible
  // Return name, slice and type of each saved tensor: first the variables, then the tensors of the
  // tables.
  std::vector<std::string> Names() const;
  std::vector<std::string> Slices() const;
  std::vector<DType> Types() const;
};

std::vector<std::string> Saver::Shard::Names() const {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.saved_name());
  for (const SavedTable& table : tables) {
    for (std::string& name : table.TensorNames(saves_changes)) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> Saver::Shard::Slices() const {
  std::vector<std::string> slices;
  for (const Variable& variable : variables) slices.push_back(variable.saved_slice());
  slices.resize(Types().size());  // tables are saved as whole tensors
  return slices;
}

std::vector<DType> Saver::Shard::Types() const {
  std::vector<DType> types;
  for (const Variable& variable : variables) types.push_back(variable.dtype());
  for (const SavedTable& table : tables) {
    const std::vector<DType> own = table.TensorTypes(saves_changes);
    types.insert(types.end(), own.begin(), own.end());
  }
  return types;
}

Saver::Saver(Program& program, std::vector<Variable> variables, const Options& options,
             SourceLine line)
    : program_(program),
      options_(options),
      kept_(*options.env, options.keep, options.keep_every_hours) {
  const CallerLine source(program, line);
  if (variables.empty()) variables = program.globals();
  const bool whole = HasAll(variables, program.globals());
  const auto unordered = program.ClearControlDependencies();
  const auto names = program.NameScope("save");
  const auto placeholder = [&](string_view name) {
    return CallIn(program, "Placeholder", {},
                  {{"dtype", DType::kString}, {"shape", PartialShape::Scalar()}}, name);
  };
  path_ = placeholder("Const");  // as TensorFlow's savers call it
  temporary_ = placeholder("temporary");
  if (options.background) snapshot_name_ = placeholder("snapshot_name");

  std::vector<SavedTable> tables;
  if (whole) tables = SavedTablesOf(program);
  if (options.incremental > 0 && !tables.empty()) {
    mark_ = placeholder("mark");
    base_mark_ = placeholder("base_mark");
    base_ = placeholder("base");
  }
  std::map<std::string, Shard> by_host;
  std::map<std::string, std::string> hosts_of_tables;  // by the name of the table's ready variable
  for (SavedTable& table : tables) {
    const std::string host = HostOf(program.NodeOf(table.handle)->requested_device());
    hosts_of_tables[table.ready] = host;
    by_host[host].tables.push_back(std::move(table));
    by_host[host].saves_changes = base_.valid();
  }
  for (const Variable& variable : variables) {
    const auto table = hosts_of_tables.find(variable.name());
    if (table != hosts_of_tables.end()) {
      by_host[table->second].ready.push_back(variable);
      continue;
    }
    by_host[HostOf(variable.device())].variables.push_back(variable);
    if (!variable.part() || !variable.part()->interleaved) continue;
    const auto box = ShapeAndSlice::Parse(variable.saved_slice());
    CHECK_OK(box.status());
    interleaved_[variable.saved_name()].insert(box->slice.Within(box->shape)->ToString());
  }
  if (variables.empty()) {
    program.Fail(InvalidArgument("saver: the program has no variables to save"));
    return;
  }
  std::map<std::string, Outputs> mutexes;
  for (const Output& mutex : options.mutexes) {
    if (!mutex.valid()) continue;  // the program has an error
    mutexes[HostOf(program.NodeOf(mutex)->requested_device())].push_back(mutex);
  }
  Outputs files, saves, copies, snapshots, snapshot_saves;
  std::vector<Shard> shards;
  for (auto& [host, own] : by_host) {
    const auto on = program.DeviceScope(host);
    const auto index = static_cast<int>(shards.size());
    own.index = index;
    own.mutexes = mutexes[host];
    Shard& shard =
        shards.emplace_back(AddShard(std::move(own), index, static_cast<int>(by_host.size())));
    files.push_back(shard.file);
    saves.push_back(shard.save);
    if (!options.background) continue;
    AddSnapshot(shard);
    copies.insert(copies.end(), shard.copy_ahead.begin(), shard.copy_ahead.end());
    snapshots.push_back(shard.take_snapshot);
    snapshot_saves.push_back(shard.save_snapshot);
  }
  restore_ = AddRestores(shards, RestoreStep::kOnly);
  if (!tables.empty()) {
    restore_first_ = AddRestores(shards, RestoreStep::kFirst);
    restore_next_ = AddRestores(shards, RestoreStep::kNext);
    restore_last_ = AddRestores(shards, RestoreStep::kLast);
  }
  const auto on = program.DeviceScope(by_host.begin()->first);
  const auto merge = [&](const Outputs& parts) {
    const auto after = program.ControlDependencies(parts);
    return CallIn(program, "MergeV2Checkpoints", {Pack(files), path_}, {{"delete_old_dirs", true}});
  };
  save_ = merge(saves);
  if (!options.background) return;
  if (!copies.empty()) copy_ahead_ = program.Group(copies, "copy_ahead");
  take_snapshot_ = program.Group(snapshots, "take_snapshot");
  save_snapshot_ = merge(snapshot_saves);
}

// Returns `value`, which belongs to `owner`, as a node that fails if it is not finite.
Output Saver::FailIfNotFinite(Output value, const std::string& owner) {
  const Output checked =
      Call("CheckNumerics", {value}, {{"message", owner + " is not finite and is not saved"}});
  if (checked.valid()) checks_.insert(program_.NodeOf(checked)->name());
  return checked;
}

// Replaces the values of trainable variables, and the rows of tables, by nodes that fail if the
// value is not finite (FailIfNotFinite).
void Saver::CheckValues(const Shard& shard, Outputs& values) {
  size_t next = 0;
  for (const Variable& variable : shard.variables) {
    Output& value = values[next++];
    if (!variable.trainable() || !IsFloating(variable.dtype())) continue;
    value = FailIfNotFinite(value, StrCat("variable '", variable.name(), "'"));
  }
  for (const SavedTable& table : shard.tables) {
    const std::string owner = StrCat("a row of table '", table.name, "'");
    for (const DType dtype : table.TensorTypes(shard.saves_changes)) {
      Output& value = values[next++];
      if (IsFloating(dtype)) value = FailIfNotFinite(value, owner);
    }
  }
}

Saver::Shard Saver::AddShard(Shard shard, int index, int count) {
  const Outputs locks = Lock(program_, shard.mutexes, {});
  for (const Variable& variable : shard.variables) {
    const auto locked = program_.ControlDependencies(locks);
    shard.values.push_back(variable.Read());
  }
  AddTableValues(shard, locks, &shard.values);
  shard.file = Call("ShardedFilename", {temporary_, Constant(program_, Tensor::Scalar(index)),
                                        Constant(program_, Tensor::Scalar(count))});
  {
    Outputs unlocked;
    if (!locks.empty()) unlocked.push_back(Unlock(program_, locks, shard.values));
    const auto after = program_.ControlDependencies(unlocked);
    shard.save = AddSave(shard, shard.values, /*background=*/false);
  }
  AddReads(shard);
  return shard;
}

// Adds the ops that read the shard's values from a checkpoint.
void Saver::AddReads(Shard& shard) {
  const auto read = [&](const std::vector<std::string>& names,
                        const std::vector<std::string>& slices, const std::vector<DType>& types) {
    if (names.empty()) return Output();
    return Call("RestoreV2", {path_, Strings(program_, names), Strings(program_, slices)},
                {{"dtypes", types}});
  };
  std::vector<std::string> names, slices;
  std::vector<DType> types;
  for (const Variable& variable : shard.variables) {
    names.push_back(variable.saved_name());
    slices.push_back(variable.saved_slice());
    types.push_back(variable.dtype());
  }
  shard.restored = read(names, slices, types);
  for (const bool changes : {false, true}) {
    names.clear(), types.clear();
    for (const SavedTable& table : shard.tables) {
      const std::vector<std::string> own = table.TensorNames(changes);
      const std::vector<DType> own_types = table.TensorTypes(changes);
      names.insert(names.end(), own.begin(), own.end());
      types.insert(types.end(), own_types.begin(), own_types.end());
    }
    (changes ? shard.changes : shard.rows) =
        read(names, std::vector<std::string>(names.size()), types);
  }
}

// Appends the rows of the shard's tables, read with `locks` held, to `*values`.
void Saver::AddTableValues(const Shard& shard, const Outputs& locks, Outputs* values) {
  const auto locked = program_.ControlDependencies(locks);
  for (const SavedTable& table : shard.tables) {
    const Outputs rows =
        base_.valid() ? table.ExportChanges(mark_, base_mark_, base_) : table.Export();
    values->insert(values->end(), rows.begin(), rows.end());
  }
}

// Adds the op that saves `values`, one for each of the shard's names. A background save observes
// `bytes_per_second`.
Output Saver::AddSave(const Shard& shard, Outputs values, bool background) {
  if (options_.finite_only) CheckValues(shard, values);
  Attrs attrs;
  if (background && options_.bytes_per_second > 0) {
    attrs = {{kBytesPerSecondAttr, options_.bytes_per_second}};
  }
  return Call(
      "SaveV2",
      {shard.file, Strings(program_, shard.Names()), Strings(program_, shard.Slices()), values},
      std::move(attrs));
}

// Adds the ops of a background save. Large resource variables, and those of unknown size, are
// copied ahead.
void Saver::AddSnapshot(Shard& shard) {
  if (!snapshot_name_.valid()) return;  // the program has an error
  const std::string snapshot = StrCat(program_.NodeOf(snapshot_name_)->name(), "/", shard.index);
  const Outputs locks = Lock(program_, shard.mutexes, {});
  Outputs values;
  std::vector<Variable> large;
  for (const Variable& variable : shard.variables) {
    const auto locked = program_.ControlDependencies(locks);
    if (variable.ref() || IsSmall(variable)) {
      values.push_back(variable.Read());
      continue;
    }
    large.push_back(variable);
    // The copy is made on the device of the variable.
    const auto here = program_.ColocateWith(variable.handle());
    values.push_back(Call("SnapshotCut", {snapshot_name_, Outputs{variable.handle()}},
                          {{"shared_name", StrCat(snapshot, "/", variable.name())},
                           {"dtypes", std::vector<DType>{variable.dtype()}}}));
  }
  AddTableValues(shard, locks, &values);
  // Copies one variable after the other, so that the training keeps most of the cores. A second
  // pass copies again what was changed during the first one.
  for (int pass = 0; pass < 2; ++pass) {
    for (const Variable& variable : large) {
      const auto after = program_.ControlDependencies(shard.copy_ahead);
      const auto here = program_.ColocateWith(variable.handle());
      shard.copy_ahead = {Call("SnapshotCopyAhead", {snapshot_name_, Outputs{variable.handle()}},
                               {{"shared_name", StrCat(snapshot, "/", variable.name())}})};
    }
  }
  Outputs ends = {Call("SnapshotKeep", {snapshot_name_, values}, {{"shared_name", snapshot}})};
  if (!locks.empty()) ends.push_back(Unlock(program_, locks, values));
  shard.take_snapshot = program_.Group(ends, "take_snapshot_part", ends[0]);
  const Outputs taken = CallN("SnapshotTake", {snapshot_name_},
                              {{"shared_name", snapshot}, {"dtypes", shard.Types()}});
  shard.save_snapshot = AddSave(shard, taken, /*background=*/true);
}

// Adds the ops that restore the rows of the shard's tables.
Outputs Saver::AddImports(const Shard& shard, RestoreStep step) {
  const bool merges = step == RestoreStep::kNext || step == RestoreStep::kLast;
  const Output first = merges ? shard.changes : shard.rows;
  Outputs imported;
  int next = 0;
  for (const SavedTable& table : shard.tables) {
    Outputs tensors;
    for (size_t i = table.TensorNames(merges).size(); i > 0; --i) {
      tensors.push_back(first.Sibling(next++));
    }
    imported.push_back(merges ? table.Merge(tensors) : table.Import(tensors));
  }
  return imported;
}

// Adds the ops that restore the shard's variables, and those that mark its tables as ready.
Outputs Saver::AddAssigns(const Shard& shard, const Outputs& imported) {
  Outputs assigned;
  for (size_t i = 0; i < shard.variables.size(); ++i) {
    const Output value = shard.restored.Sibling(static_cast<int>(i));
    restored_.emplace(shard.variables[i].name(), value);
    assigned.push_back(shard.variables[i].Assign(value));
  }
  const auto after = program_.ControlDependencies(imported);
  for (const Variable& ready : shard.ready) {
    const auto here = program_.ColocateWith(ready.handle());
    assigned.push_back(ready.Assign(Constant(program_, Tensor::Scalar(true))));
  }
  return assigned;
}

Output Saver::AddRestores(const std::vector<Shard>& shards, RestoreStep step) {
  const bool ends = step == RestoreStep::kOnly || step == RestoreStep::kLast;
  Outputs restored;
  for (const Shard& shard : shards) {
    const bool merges = step == RestoreStep::kNext || step == RestoreStep::kLast;
    Outputs reads, turn;
    if (shard.restored.valid() && ends) reads.push_back(shard.restored);
    if (!shard.tables.empty()) reads.push_back(merges ? shard.changes : shard.rows);
    if (reads.empty()) continue;
    const Outputs locks = Lock(program_, shard.mutexes, reads);
    if (!locks.empty()) turn = {Commit(program_, locks[0], locks)};
    const auto after = program_.ControlDependencies(turn);
    Outputs assigned = AddImports(shard, step);
    if (ends) {
      const Outputs values = AddAssigns(shard, assigned);
      assigned.insert(assigned.end(), values.begin(), values.end());
    }
    if (!locks.empty()) assigned.push_back(Unlock(program_, locks, assigned));
    restored.insert(restored.end(), assigned.begin(), assigned.end());
  }
  return program_.Group(restored, "restore_all");
}

// Describes a new save with the mark `mark`: the earlier save on which it builds, or none if it
// must be complete. `directory`: the directory of the save; "" if it is not known yet.
Saver::SavedChanges Saver::BeginChanges(const std::string& mark, const std::string& directory) {
  MutexLock lock(mu_);
  const bool complete = last_.mark.empty() || last_.number >= options_.incremental ||
                        (!directory.empty() && directory != last_.directory);
  SavedChanges next{.mark = mark};
  if (complete) return next;
  next.base_mark = last_.mark;
  next.base = last_.name;
  next.directory = last_.directory;
  next.number = last_.number + 1;
  return next;
}

std::vector<Feed> Saver::FeedsOf(const SavedChanges& changes) const {
  if (!base_.valid()) return {};
  return {{mark_, Tensor::Scalar(changes.mark)},
          {base_mark_, Tensor::Scalar(changes.base_mark)},
          {base_, Tensor::Scalar(changes.base)}};
}

StatusOr<std::string> Saver::Save(Session& session, const std::string& prefix, int64_t step) {
  const std::string mark = StrCat(prefix, "-", step, "/", absl::Hex(options_.env->RandomU64()));
  const SavedChanges changes = BeginChanges(mark, SplitPath(prefix).first);
  return RunSave(session, save_, prefix, step, changes, FeedsOf(changes), {});
}

Status Saver::CopyAhead(Session& session, const std::string& save, const RunOptions& options) {
  if (!copy_ahead_.valid()) return OkStatus();
  return session.Run({{snapshot_name_, Tensor::Scalar(save)}}, {}, {copy_ahead_}, options).status();
}

Status Saver::TakeSnapshot(Session& session, const std::string& save, const RunOptions& options) {
  if (!take_snapshot_.valid()) return FailedPrecondition("the saver was made without `background`");
  const SavedChanges changes = BeginChanges(save, "");
  std::vector<Feed> feeds = FeedsOf(changes);
  feeds.push_back({snapshot_name_, Tensor::Scalar(save)});
  RETURN_IF_ERROR(session.Run(feeds, {}, {take_snapshot_}, options).status());
  MutexLock lock(mu_);
  snapshot_changes_ = changes;
  return OkStatus();
}

StatusOr<std::string> Saver::SaveSnapshot(Session& session, const std::string& save,
                                          const std::string& prefix, int64_t step,
                                          const RunOptions& options) {
  if (!save_snapshot_.valid()) return FailedPrecondition("the saver was made without `background`");
  SavedChanges changes;
  {
    MutexLock lock(mu_);
    if (snapshot_changes_.mark == save) changes = snapshot_changes_;
  }
  const std::string directory = SplitPath(prefix).first;
  if (!changes.base.empty() && changes.directory != directory) {
    return FailedPrecondition("saving ", prefix, "-", step, ": it would hold the changes since ",
                              changes.directory, "/", changes.base,
                              ", which is in another directory");
  }
  return RunSave(session, save_snapshot_, prefix, step, changes,
                 {{snapshot_name_, Tensor::Scalar(save)}}, options);
}

StatusOr<std::string> Saver::RunSave(Session& session, Output save_op, const std::string& prefix,
                                     int64_t step, SavedChanges changes, std::vector<Feed> feeds,
                                     const RunOptions& options) {
  const std::string checkpoint = StrCat(prefix, "-", step);
  // A unique name, so that the files of a crashed save, or of another client's save, are not mixed
  // into this checkpoint.
  const std::string temporary = StrCat(checkpoint, KeptCheckpoints::kTemporary,
                                       absl::Hex(options_.env->RandomU64()), "/part");
  feeds.push_back({path_, Tensor::Scalar(checkpoint)});
  feeds.push_back({temporary_, Tensor::Scalar(temporary)});
  const Status saved = session.Run(feeds, {}, {save_op}, options).status();
  kept_.RemoveTemporaries(prefix);
  RETURN_IF_ERROR(Annotate(saved, StrCat("saving ", checkpoint)));
  RETURN_IF_ERROR(kept_.Add(checkpoint));
  std::tie(changes.directory, changes.name) = SplitPath(checkpoint);
  MutexLock lock(mu_);
  last_ = std::move(changes);
  return checkpoint;
}

bool Saver::IsNonFinite(const Status& saved) const {
  return absl::IsInvalidArgument(saved) && checks_.contains(FailedNode(saved));
}

// InvalidArgument if an interleaved variable was saved with another number of parts than it has
// now.
Status Saver::CheckParts(const std::string& checkpoint) const {
  if (interleaved_.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(*options_.env, checkpoint));
  for (const auto& [name, slices] : interleaved_) {
    ASSIGN_OR_RETURN(const BundleEntry* const entry, reader->Find(name));
    std::set<std::string> saved;
    for (const TensorSlice& slice : entry->slices) {
      ASSIGN_OR_RETURN(const TensorSlice box, slice.Within(entry->shape));
      saved.insert(box.ToString());
    }
    if (saved == slices) continue;
    return InvalidArgument("variable '", name, "' is partitioned by mod into ", slices.size(),
                           " parts, and was saved from ", std::max<size_t>(1, saved.size()),
                           ": its rows would change their ids. Restore it to the parts that it was "
                           "saved from, or partition by div");
  }
  return OkStatus();
}

StatusOr<std::map<std::string, Tensor>> Saver::Read(Session& session, const std::string& checkpoint,
                                                    const RunOptions& options) {
  RETURN_IF_ERROR(CheckParts(checkpoint));
  std::vector<TensorRef> fetches;
  for (const auto& [name, value] : restored_) fetches.emplace_back(value);
  ASSIGN_OR_RETURN(std::vector<Tensor> tensors,
                   session.Run({{path_, Tensor::Scalar(checkpoint)}}, fetches, {}, options));
  std::map<std::string, Tensor> values;
  size_t next = 0;
  for (const auto& [name, value] : restored_) values.emplace(name, std::move(tensors[next++]));
  return values;
}

Status Saver::Restore(Session& session, const std::string& checkpoint) {
  return Annotate(RestoreChain(session, checkpoint), StrCat("restoring ", checkpoint));
}

// Restores a checkpoint that may hold only changes: gives the tables the rows of the complete
// checkpoint at its base, and then all changes up to this checkpoint.
Status Saver::RestoreChain(Session& session, const std::string& checkpoint) {
  RETURN_IF_ERROR(CheckParts(checkpoint));
  {
    MutexLock lock(mu_);
    // The tables no longer have the rows of the last save, so the next save must be complete.
    last_ = {};
  }
  const auto run = [&](Output restore, const std::string& from) {
    return Annotate(session.Execute(restore, {{path_, Tensor::Scalar(from)}}), from);
  };
  std::vector<std::string> chain = {checkpoint};
  if (restore_first_.valid()) {
    ASSIGN_OR_RETURN(chain, ChainOf(*options_.env, checkpoint));
  }
  if (chain.size() == 1) return session.Execute(restore_, {{path_, Tensor::Scalar(checkpoint)}});
  RETURN_IF_ERROR(run(restore_first_, chain[0]));
  for (size_t i = 1; i + 1 < chain.size(); ++i) RETURN_IF_ERROR(run(restore_next_, chain[i]));
  return run(restore_last_, checkpoint);
}

StatusOr<NewestGood> Saver::RestoreNewestGood(Session& session, const std::string& directory) {
  StatusOr<NewestGood> found = FindNewestGood(*options_.env, directory);
  if (absl::IsNotFound(found.status())) return NewestGood();  // the directory does not exist yet
  RETURN_IF_ERROR(found.status());
  if (!found->prefix.empty()) {
    RETURN_IF_ERROR(Restore(session, found->prefix));
  } else if (!found->skipped.empty()) {
    return DataLoss("no checkpoint in ", directory, " can be read; the newest, ",
                    found->skipped[0].prefix, ": ", found->skipped[0].why.message());
  }
  return found;
}

}  // namespace penstock::client
