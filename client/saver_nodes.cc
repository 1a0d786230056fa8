// SPDX-License-Identifier: Apache-2.0
#include "client/saver_nodes.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "client/device_setter.h"
#include "client/mutex.h"
#include "client/ops/line_scope.h"
#include "client/saved_tables.h"
#include "client/saver_shard.h"
#include "core/checkpoint/tensor_slice.h"
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

// The steps of a restore. kOnly restores all values from one checkpoint that has all rows. A chain
// of incremental checkpoints is restored by kFirst (all rows of tables), kNext (changed rows) and
// kLast (changed rows and all other values).
enum class RestoreStep { kOnly, kFirst, kNext, kLast };

// Adds the nodes of one saver.
class NodeAdder {
 public:
  NodeAdder(Program& program, const SaverOptions& options) : program_(program), options_(options) {}
  SaverNodes Add(std::vector<Variable> variables) &&;

 private:
  // The shards of a saver, by their hosts.
  using Shards = std::map<std::string, SaverShard>;

  Output Placeholder(string_view name);
  Shards Divide(const std::vector<Variable>& variables, std::vector<SavedTable> tables);
  void DivideIterators(Shards* by_host);
  void NoteInterleaved(const Variable& variable);
  Output FailIfNotFinite(Output value, const std::string& owner);
  void CheckValues(const SaverShard& shard, Outputs& values);
  SaverShard AddShard(SaverShard shard, int index, int count);
  void AddTableValues(const SaverShard& shard, const Outputs& locks, Outputs* values);
  void AddPositionValues(const SaverShard& shard, Outputs* values);
  void AddReads(SaverShard& shard);
  Outputs AddImports(const SaverShard& shard, RestoreStep step);
  Outputs AddAssigns(const SaverShard& shard, const Outputs& imported);
  Outputs AddPositionRestores(const SaverShard& shard);
  void AddSnapshot(SaverShard& shard);
  Output AddSave(const SaverShard& shard, Outputs values, bool background);
  Output AddRestores(const std::vector<SaverShard>& shards, RestoreStep step);
  Output AddMerge(const std::vector<SaverShard>& shards, const Outputs& saved);
  void AddWholeSaves(const std::vector<SaverShard>& shards);

  Program& program_;
  const SaverOptions& options_;
  SaverNodes nodes_;
};

Output NodeAdder::Placeholder(string_view name) {
  return CallIn(program_, "Placeholder", {},
                {{"dtype", DType::kString}, {"shape", PartialShape::Scalar()}}, name);
}

void NodeAdder::NoteInterleaved(const Variable& variable) {
  if (!variable.part() || !variable.part()->interleaved) return;
  const auto shape_and_slice = ShapeAndSlice::Parse(variable.saved_slice());
  CHECK_OK(shape_and_slice.status());
  nodes_.interleaved[variable.saved_name()].insert(
      shape_and_slice->slice.Within(shape_and_slice->shape)->ToString());
}

// Divides variables, tables and iterators among the tasks that hold them.
NodeAdder::Shards NodeAdder::Divide(const std::vector<Variable>& variables,
                                    std::vector<SavedTable> tables) {
  Shards by_host;
  std::map<std::string, std::string> hosts_of_tables;  // by the name of the table's ready variable
  for (SavedTable& table : tables) {
    const std::string host = HostOf(program_.NodeOf(table.handle)->requested_device());
    hosts_of_tables[table.ready] = host;
    by_host[host].tables.push_back(std::move(table));
    by_host[host].saves_changes = nodes_.base.valid();
  }
  for (const Variable& variable : variables) {
    const auto table = hosts_of_tables.find(variable.name());
    if (table != hosts_of_tables.end()) {
      by_host[table->second].ready.push_back(variable);
      continue;
    }
    by_host[HostOf(variable.device())].variables.push_back(variable);
    NoteInterleaved(variable);
  }
  DivideIterators(&by_host);
  return by_host;
}

void NodeAdder::DivideIterators(Shards* by_host) {
  std::set<std::string> names;
  for (const Iterator& iterator : options_.iterators) {
    if (iterator.handle().sink != &program_) {
      program_.Fail(InvalidArgument("saver: an iterator belongs to another program"));
      continue;
    }
    const Node* const node = program_.NodeOf(iterator.handle());
    if (node == nullptr) continue;  // the program has an error
    if (!names.insert(node->name()).second) {
      program_.Fail(InvalidArgument("saver: the iterator '", node->name(), "' is given twice"));
      continue;
    }
    (*by_host)[HostOf(node->requested_device())].iterators.push_back(iterator);
  }
}

// Adds the op that merges the files of all shards into one checkpoint.
Output NodeAdder::AddMerge(const std::vector<SaverShard>& shards, const Outputs& saved) {
  Outputs files;
  for (const SaverShard& shard : shards) files.push_back(shard.file);
  const auto after = program_.ControlDependencies(saved);
  return CallIn(program_, "MergeV2Checkpoints", {Pack(files), nodes_.path},
                {{"delete_old_dirs", true}});
}

// Adds the ops that save, or take a snapshot of, all shards together.
void NodeAdder::AddWholeSaves(const std::vector<SaverShard>& shards) {
  Outputs saves, copies, snapshots, snapshot_saves;
  for (const SaverShard& shard : shards) {
    saves.push_back(shard.save);
    copies.insert(copies.end(), shard.copy_ahead.begin(), shard.copy_ahead.end());
    snapshots.push_back(shard.take_snapshot);
    snapshot_saves.push_back(shard.save_snapshot);
  }
  nodes_.save = AddMerge(shards, saves);
  if (!options_.background) return;
  if (!copies.empty()) nodes_.copy_ahead = program_.Group(copies, "copy_ahead");
  nodes_.take_snapshot = program_.Group(snapshots, "take_snapshot");
  nodes_.save_snapshot = AddMerge(shards, snapshot_saves);
}

SaverNodes NodeAdder::Add(std::vector<Variable> variables) && {
  if (variables.empty()) variables = program_.globals();
  const bool whole = HasAll(variables, program_.globals());
  const auto unordered = program_.ClearControlDependencies();
  const auto names = program_.NameScope("save");
  nodes_.path = Placeholder("Const");  // as TensorFlow's savers call it
  nodes_.temporary = Placeholder("temporary");
  if (options_.background) nodes_.snapshot_name = Placeholder("snapshot_name");
  std::vector<SavedTable> tables;
  if (whole) tables = SavedTablesOf(program_);
  const bool has_tables = !tables.empty();
  if (options_.incremental > 0 && has_tables) {
    nodes_.mark = Placeholder("mark");
    nodes_.base_mark = Placeholder("base_mark");
    nodes_.base = Placeholder("base");
  }
  Shards by_host = Divide(variables, std::move(tables));
  if (variables.empty()) {
    program_.Fail(InvalidArgument("saver: the program has no variables to save"));
    return std::move(nodes_);
  }
  std::map<std::string, Outputs> mutexes = MutexesByHost(program_, options_.mutexes);
  std::vector<SaverShard> shards;
  for (auto& [host, own] : by_host) {
    const auto on = program_.DeviceScope(host);
    const auto index = static_cast<int>(shards.size());
    own.index = index;
    own.mutexes = mutexes[host];
    shards.push_back(AddShard(std::move(own), index, static_cast<int>(by_host.size())));
    if (options_.background) AddSnapshot(shards.back());
  }
  nodes_.restore = AddRestores(shards, RestoreStep::kOnly);
  if (has_tables) {
    nodes_.restore_first = AddRestores(shards, RestoreStep::kFirst);
    nodes_.restore_next = AddRestores(shards, RestoreStep::kNext);
    nodes_.restore_last = AddRestores(shards, RestoreStep::kLast);
  }
  const auto on = program_.DeviceScope(by_host.begin()->first);
  AddWholeSaves(shards);
  return std::move(nodes_);
}

// Adds a node that outputs `value`, or fails if it is not finite; the error names `owner`.
Output NodeAdder::FailIfNotFinite(Output value, const std::string& owner) {
  const Output checked =
      Call("CheckNumerics", {value}, {{"message", owner + " is not finite and is not saved"}});
  if (checked.valid()) nodes_.checks.insert(program_.NodeOf(checked)->name());
  return checked;
}

// Replaces the values of trainable variables, and the rows of tables, by nodes that fail if the
// value is not finite (FailIfNotFinite).
void NodeAdder::CheckValues(const SaverShard& shard, Outputs& values) {
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

SaverShard NodeAdder::AddShard(SaverShard shard, int index, int count) {
  const Outputs locks = Lock(program_, shard.mutexes, {});
  for (const Variable& variable : shard.variables) {
    const auto locked = program_.ControlDependencies(locks);
    shard.values.push_back(variable.Read());
  }
  AddTableValues(shard, locks, &shard.values);
  shard.file = Call("ShardedFilename", {nodes_.temporary, Constant(program_, Tensor::Scalar(index)),
                                        Constant(program_, Tensor::Scalar(count))});
  {
    Outputs unlocked;
    if (!locks.empty()) unlocked.push_back(Unlock(program_, locks, shard.values));
    AddPositionValues(shard, &shard.values);
    const auto after = program_.ControlDependencies(unlocked);
    shard.save = AddSave(shard, shard.values, /*background=*/false);
  }
  AddReads(shard);
  return shard;
}

// Adds the ops that read the shard's values from a checkpoint.
void NodeAdder::AddReads(SaverShard& shard) {
  const auto read = [&](const std::vector<std::string>& names,
                        const std::vector<std::string>& slices, const std::vector<DType>& types) {
    if (names.empty()) return Output();
    return Call("RestoreV2", {nodes_.path, Strings(program_, names), Strings(program_, slices)},
                {{"dtypes", types}});
  };
  std::vector<std::string> names, slices;
  std::vector<DType> types;
  for (const Variable& variable : shard.variables) {
    names.push_back(variable.saved_name());
    slices.push_back(options_.from_whole.contains(variable.name()) ? "" : variable.saved_slice());
    types.push_back(variable.dtype());
  }
  shard.restored = read(names, slices, types);
  for (const Variable& variable : shard.variables) {
    const Output value = shard.restored.Sibling(static_cast<int>(shard.restored_values.size()));
    const auto from_whole = options_.from_whole.find(variable.name());
    shard.restored_values.push_back(
        from_whole == options_.from_whole.end() ? value : from_whole->second(value));
  }
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
  names = shard.PositionNames();
  shard.positions = read(names, std::vector<std::string>(names.size()),
                         std::vector<DType>(names.size(), DType::kVariant));
}

// Appends the positions of the shard's iterators to `*values`. They are read without locks, because
// an iterator answers only after a GetNext that waits for its input.
void NodeAdder::AddPositionValues(const SaverShard& shard, Outputs* values) {
  for (const Iterator& iterator : shard.iterators) {
    const auto device_scope = program_.ColocateWith(iterator.handle());
    values->push_back(Call("SerializeIterator", {iterator.handle()}));
  }
}

// Appends the rows of the shard's tables, read with `locks` held, to `*values`.
void NodeAdder::AddTableValues(const SaverShard& shard, const Outputs& locks, Outputs* values) {
  const auto locked = program_.ControlDependencies(locks);
  for (const SavedTable& table : shard.tables) {
    const Outputs rows = nodes_.base.valid()
                             ? table.ExportChanges(nodes_.mark, nodes_.base_mark, nodes_.base)
                             : table.Export();
    values->insert(values->end(), rows.begin(), rows.end());
  }
}

// Adds the op that saves `values`, one for each of the shard's names. A background save observes
// `bytes_per_second`.
Output NodeAdder::AddSave(const SaverShard& shard, Outputs values, bool background) {
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
void NodeAdder::AddSnapshot(SaverShard& shard) {
  if (!nodes_.snapshot_name.valid()) return;  // the program has an error
  const std::string snapshot =
      StrCat(program_.NodeOf(nodes_.snapshot_name)->name(), "/", shard.index);
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
    const auto device_scope = program_.ColocateWith(variable.handle());
    values.push_back(Call("SnapshotCut", {nodes_.snapshot_name, Outputs{variable.handle()}},
                          {{"shared_name", StrCat(snapshot, "/", variable.name())},
                           {"dtypes", std::vector<DType>{variable.dtype()}}}));
  }
  AddTableValues(shard, locks, &values);
  // Copies one variable after the other, so that the training keeps most of the cores. A second
  // pass copies again the data that have changed during the first one.
  for (int pass = 0; pass < 2; ++pass) {
    for (const Variable& variable : large) {
      const auto after = program_.ControlDependencies(shard.copy_ahead);
      const auto device_scope = program_.ColocateWith(variable.handle());
      shard.copy_ahead = {Call("SnapshotCopyAhead",
                               {nodes_.snapshot_name, Outputs{variable.handle()}},
                               {{"shared_name", StrCat(snapshot, "/", variable.name())}})};
    }
  }
  Outputs ends;
  if (!locks.empty()) ends.push_back(Unlock(program_, locks, values));
  AddPositionValues(shard, &values);
  ends.insert(ends.begin(),
              Call("SnapshotKeep", {nodes_.snapshot_name, values}, {{"shared_name", snapshot}}));
  shard.take_snapshot = program_.Group(ends, "take_snapshot_part", ends[0]);
  const Outputs taken = CallN("SnapshotTake", {nodes_.snapshot_name},
                              {{"shared_name", snapshot}, {"dtypes", shard.Types()}});
  shard.save_snapshot = AddSave(shard, taken, /*background=*/true);
}

// Adds the ops that restore the rows of the shard's tables.
Outputs NodeAdder::AddImports(const SaverShard& shard, RestoreStep step) {
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
Outputs NodeAdder::AddAssigns(const SaverShard& shard, const Outputs& imported) {
  Outputs assigned;
  for (size_t i = 0; i < shard.variables.size(); ++i) {
    const Output value = shard.restored_values[i];
    nodes_.restored.emplace(shard.variables[i].name(), value);
    assigned.push_back(shard.variables[i].Assign(value));
  }
  const auto after = program_.ControlDependencies(imported);
  for (const Variable& ready : shard.ready) {
    const auto device_scope = program_.ColocateWith(ready.handle());
    assigned.push_back(ready.Assign(Constant(program_, Tensor::Scalar(true))));
  }
  return assigned;
}

// Adds the ops that initialise the shard's iterators and move them to their saved positions.
Outputs NodeAdder::AddPositionRestores(const SaverShard& shard) {
  const auto unordered = program_.ClearControlDependencies();
  Outputs restored;
  for (size_t i = 0; i < shard.iterators.size(); ++i) {
    const Iterator& iterator = shard.iterators[i];
    const auto device_scope = program_.ColocateWith(iterator.handle());
    const Output position = shard.positions.Sibling(static_cast<int>(i));
    const auto read = program_.ControlDependencies({position});
    const Output made = Call("MakeIterator", {iterator.dataset().variant(), iterator.handle()});
    const auto after = program_.ControlDependencies({made});
    restored.push_back(Call("DeserializeIterator", {iterator.handle(), position}));
  }
  return restored;
}

Output NodeAdder::AddRestores(const std::vector<SaverShard>& shards, RestoreStep step) {
  const bool ends = step == RestoreStep::kOnly || step == RestoreStep::kLast;
  Outputs restored;
  for (const SaverShard& shard : shards) {
    const bool merges = step == RestoreStep::kNext || step == RestoreStep::kLast;
    Outputs reads, turn;
    if (shard.restored.valid() && ends) reads = shard.restored_values;
    if (!shard.tables.empty()) reads.push_back(merges ? shard.changes : shard.rows);
    if (ends) {
      const Outputs positions = AddPositionRestores(shard);
      restored.insert(restored.end(), positions.begin(), positions.end());
    }
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

}  // namespace

SaverNodes AddSaverNodes(Program& program, std::vector<Variable> variables,
                         const SaverOptions& options, SourceLine line) {
  const CallerLine source(program, line);
  return NodeAdder(program, options).Add(std::move(variables));
}

}  // namespace penstock::client
