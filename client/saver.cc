// SPDX-License-Identifier: Apache-2.0
#include "client/saver.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "client/device_setter.h"
#include "client/mutex.h"
#include "core/base/error_origin.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_state.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

constexpr char kTemporary[] = "_temp_";

// "dir/name" in parts; the directory is "." if none is given.
std::pair<std::string, std::string> SplitPath(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Output Strings(GraphSink& sink, const std::vector<std::string>& values) {
  return Constant(sink, Tensor::Vector<std::string>(values));
}

}  // namespace

// The files and ops of one task.
struct Saver::Shard {
  std::vector<Variable> variables;
  Outputs mutexes;  // that are there
  Output file;      // the prefix of its part
  Outputs values;   // to be saved
  Output save;      // op
  Output restored;  // the first value that was read from the file
};

Saver::Saver(Program& program, std::vector<Variable> variables, const Options& options)
    : program_(program), options_(options) {
  if (variables.empty()) variables = program.globals();
  const auto unordered = program.ClearControlDependencies();
  const auto names = program.NameScope("save");
  const auto placeholder = [&](string_view name) {
    return CallIn(program, "Placeholder", {},
                  {{"dtype", DType::kString}, {"shape", PartialShape::Scalar()}}, name);
  };
  path_ = placeholder("Const");  // as TensorFlow's savers call it
  temporary_ = placeholder("temporary");

  std::map<std::string, std::vector<Variable>> by_host;
  for (const Variable& variable : variables) {
    by_host[HostOf(variable.device())].push_back(variable);
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
    if (!mutex.valid()) continue;  // of a program that has failed
    mutexes[HostOf(program.NodeOf(mutex)->requested_device())].push_back(mutex);
  }
  Outputs files, saves;
  std::vector<Shard> shards;
  for (const auto& [host, members] : by_host) {
    const auto on = program.DeviceScope(host);
    shards.push_back(AddShard({.variables = members, .mutexes = mutexes[host]},
                              static_cast<int>(shards.size()), static_cast<int>(by_host.size())));
    files.push_back(shards.back().file);
    saves.push_back(shards.back().save);
  }
  restore_ = AddRestores(shards);
  const auto on = program.DeviceScope(by_host.begin()->first);
  const auto after = program.ControlDependencies(saves);
  save_ = CallIn(program, "MergeV2Checkpoints", {Pack(files), path_}, {{"delete_old_dirs", true}});
}

// Returns `value`; as a node, an error if it is not finite.
Output Saver::Checked(const Variable& variable, Output value) {
  if (!variable.trainable() || !IsFloating(variable.dtype())) return value;
  const Output checked = Call(
      "CheckNumerics", {value},
      {{"message", StrCat("variable '", variable.name(), "' is not finite and is not saved")}});
  if (checked.valid()) checks_.insert(program_.NodeOf(checked)->name());
  return checked;
}

Saver::Shard Saver::AddShard(Shard shard, int index, int count) {
  std::vector<std::string> names, slices;
  std::vector<DType> dtypes;
  const Outputs locks = Lock(program_, shard.mutexes, {});
  for (const Variable& variable : shard.variables) {
    names.push_back(variable.saved_name());
    slices.push_back(variable.saved_slice());
    dtypes.push_back(variable.dtype());
    const auto locked = program_.ControlDependencies(locks);
    shard.values.push_back(variable.Read());
  }
  const Output name_list = Strings(program_, names);
  const Output slice_list = Strings(program_, slices);
  shard.file = Call("ShardedFilename", {temporary_, Constant(program_, Tensor::Scalar(index)),
                                        Constant(program_, Tensor::Scalar(count))});
  {
    Outputs unlocked;
    if (!locks.empty()) unlocked.push_back(Unlock(program_, locks, shard.values));
    const auto after = program_.ControlDependencies(unlocked);
    Outputs saved = shard.values;
    for (size_t i = 0; options_.finite_only && i < saved.size(); ++i) {
      saved[i] = Checked(shard.variables[i], saved[i]);
    }
    shard.save = Call("SaveV2", {shard.file, name_list, slice_list, saved});
  }
  shard.restored = Call("RestoreV2", {path_, name_list, slice_list}, {{"dtypes", dtypes}});
  return shard;
}

Output Saver::AddRestores(const std::vector<Shard>& shards) {
  Outputs restored;
  for (const Shard& shard : shards) {
    Outputs turn, assigned;
    const Outputs locks = Lock(program_, shard.mutexes, {shard.restored});
    if (!locks.empty()) turn = {Commit(program_, locks[0], locks)};
    for (size_t i = 0; i < shard.variables.size(); ++i) {
      const auto after = program_.ControlDependencies(turn);
      const Output value = shard.restored.Sibling(static_cast<int>(i));
      restored_.emplace(shard.variables[i].name(), value);
      assigned.push_back(shard.variables[i].Assign(value));
    }
    if (!locks.empty()) assigned.push_back(Unlock(program_, locks, assigned));
    restored.insert(restored.end(), assigned.begin(), assigned.end());
  }
  return program_.Group(restored, "restore_all");
}

StatusOr<std::string> Saver::Save(Session& session, const std::string& prefix, int64_t step) {
  const std::string checkpoint = StrCat(prefix, "-", step);
  // Unique: what a crash has left, or another client is writing, is not mixed into this one.
  const std::string temporary =
      StrCat(checkpoint, kTemporary, absl::Hex(options_.env->RandomU64()), "/part");
  const Status saved = session.Execute(
      save_, {{path_, Tensor::Scalar(checkpoint)}, {temporary_, Tensor::Scalar(temporary)}});
  RemoveTemporaries(prefix);
  RETURN_IF_ERROR(Annotate(saved, StrCat("saving ", checkpoint)));
  RETURN_IF_ERROR(Record(checkpoint));
  return checkpoint;
}

// Enters a checkpoint that is complete, and drops those that are too many.
Status Saver::Record(const std::string& checkpoint) {
  const auto [directory, name] = SplitPath(checkpoint);
  StatusOr<CheckpointState> state = ReadCheckpointState(*options_.env, directory);
  if (absl::IsNotFound(state.status()) || absl::IsDataLoss(state.status())) {
    state = CheckpointState();  // a damaged one is replaced; what it named stays where it is
  }
  RETURN_IF_ERROR(state.status());
  const bool timed = state->timestamps.size() == state->all.size();
  CheckpointState next{.latest = name, .last_preserved_timestamp = state->last_preserved_timestamp};
  for (size_t i = 0; i < state->all.size(); ++i) {
    if (SplitPath(state->all[i]).second == name) continue;
    next.all.push_back(state->all[i]);
    next.timestamps.push_back(timed ? state->timestamps[i] : 0);
  }
  next.all.push_back(name);
  next.timestamps.push_back(options_.env->WallMicros() * 1e-6);
  std::vector<std::string> old;
  if (options_.keep > 0 && static_cast<int>(next.all.size()) > options_.keep) {
    const auto surplus = static_cast<int64_t>(next.all.size()) - options_.keep;
    old.assign(next.all.begin(), next.all.begin() + surplus);
    next.all.erase(next.all.begin(), next.all.begin() + surplus);
    next.timestamps.erase(next.timestamps.begin(), next.timestamps.begin() + surplus);
  }
  RETURN_IF_ERROR(WriteCheckpointState(*options_.env, directory, next));
  for (const std::string& each : old) {
    Remove(absl::StartsWith(each, "/") ? each : StrCat(directory, "/", each));
  }
  return OkStatus();
}

// Files that cannot be removed cost space, nothing else: the state file names them no more.
void Saver::Remove(const std::string& checkpoint) {
  Env& env = *options_.env;
  const auto [directory, name] = SplitPath(checkpoint);
  // The index first: an index without its data would look like a damaged checkpoint.
  env.RemoveFile(checkpoint + ".index").IgnoreError();
  const auto files = env.ListDirectory(directory);
  if (!files.ok()) return;
  for (const std::string& file : *files) {
    if (absl::StartsWith(file, name + ".data-") || file == name + ".meta") {
      env.RemoveFile(StrCat(directory, "/", file)).IgnoreError();
    }
  }
}

void Saver::RemoveTemporaries(const std::string& prefix) {
  Env& env = *options_.env;
  const auto [directory, name] = SplitPath(prefix);
  const auto entries = env.ListDirectory(directory);
  if (!entries.ok()) return;
  for (const std::string& entry : *entries) {
    if (!absl::StartsWith(entry, name + "-") || !absl::StrContains(entry, kTemporary)) continue;
    const std::string path = StrCat(directory, "/", entry);
    const auto files = env.ListDirectory(path);
    if (!files.ok()) continue;
    for (const std::string& file : *files) env.RemoveFile(StrCat(path, "/", file)).IgnoreError();
    env.RemoveDirectory(path).IgnoreError();
  }
}

bool Saver::IsNonFinite(const Status& saved) const {
  return absl::IsInvalidArgument(saved) && checks_.contains(FailedNode(saved));
}

// InvalidArgument if an interleaved variable was saved from other parts than it has.
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
  RETURN_IF_ERROR(Annotate(CheckParts(checkpoint), StrCat("restoring ", checkpoint)));
  return Annotate(session.Execute(restore_, {{path_, Tensor::Scalar(checkpoint)}}),
                  StrCat("restoring ", checkpoint));
}

StatusOr<NewestGood> Saver::RestoreNewestGood(Session& session, const std::string& directory) {
  StatusOr<NewestGood> found = FindNewestGood(*options_.env, directory);
  if (absl::IsNotFound(found.status())) return NewestGood();  // no such directory yet
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
