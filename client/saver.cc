// SPDX-License-Identifier: Apache-2.0
#include "client/saver.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/error_origin.h"
#include "core/checkpoint/base_checkpoints.h"
#include "core/checkpoint/bundle_reader.h"

namespace penstock::client {

Saver::Saver(Program& program, std::vector<Variable> variables, const Options& options,
             SourceLine line)
    : options_(options),
      kept_(*options.env, options.keep, options.keep_every_hours),
      nodes_(AddSaverNodes(program, std::move(variables), options, line)) {}

// Returns a new save with the mark `mark`, and the earlier save on which it builds, or none if the
// new save must have all rows. `directory`: the directory of the new save; "" if it is not known
// yet.
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
  if (!nodes_.base.valid()) return {};
  return {{nodes_.mark, Tensor::Scalar(changes.mark)},
          {nodes_.base_mark, Tensor::Scalar(changes.base_mark)},
          {nodes_.base, Tensor::Scalar(changes.base)}};
}

StatusOr<std::string> Saver::Save(Session& session, const std::string& prefix, int64_t step) {
  const std::string mark = StrCat(prefix, "-", step, "/", absl::Hex(options_.env->RandomU64()));
  const SavedChanges changes = BeginChanges(mark, SplitPath(prefix).first);
  return RunSave(session, nodes_.save, prefix, step, changes, FeedsOf(changes), {});
}

Status Saver::CopyAhead(Session& session, const std::string& save, const RunOptions& options) {
  if (!nodes_.copy_ahead.valid()) return OkStatus();
  return session
      .Run({{nodes_.snapshot_name, Tensor::Scalar(save)}}, {}, {nodes_.copy_ahead}, options)
      .status();
}

Status Saver::TakeSnapshot(Session& session, const std::string& save, const RunOptions& options) {
  if (!nodes_.take_snapshot.valid())
    return FailedPrecondition("the saver was made without `background`");
  const SavedChanges changes = BeginChanges(save, "");
  std::vector<Feed> feeds = FeedsOf(changes);
  feeds.push_back({nodes_.snapshot_name, Tensor::Scalar(save)});
  RETURN_IF_ERROR(session.Run(feeds, {}, {nodes_.take_snapshot}, options).status());
  MutexLock lock(mu_);
  snapshot_changes_ = changes;
  return OkStatus();
}

StatusOr<std::string> Saver::SaveSnapshot(Session& session, const std::string& save,
                                          const std::string& prefix, int64_t step,
                                          const RunOptions& options) {
  if (!nodes_.save_snapshot.valid())
    return FailedPrecondition("the saver was made without `background`");
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
  return RunSave(session, nodes_.save_snapshot, prefix, step, changes,
                 {{nodes_.snapshot_name, Tensor::Scalar(save)}}, options);
}

StatusOr<std::string> Saver::RunSave(Session& session, Output save_op, const std::string& prefix,
                                     int64_t step, SavedChanges changes, std::vector<Feed> feeds,
                                     const RunOptions& options) {
  const std::string checkpoint = StrCat(prefix, "-", step);
  // A unique name, so that the files of a crashed save, or of another client's save, are not mixed
  // into this checkpoint.
  const std::string temporary = StrCat(checkpoint, KeptCheckpoints::kTemporary,
                                       absl::Hex(options_.env->RandomU64()), "/part");
  feeds.push_back({nodes_.path, Tensor::Scalar(checkpoint)});
  feeds.push_back({nodes_.temporary, Tensor::Scalar(temporary)});
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
  return absl::IsInvalidArgument(saved) && nodes_.checks.contains(FailedNode(saved));
}

// InvalidArgument if an interleaved variable was saved with another number of parts than it has
// now.
Status Saver::CheckParts(const std::string& checkpoint) const {
  if (nodes_.interleaved.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(*options_.env, checkpoint));
  for (const auto& [name, slices] : nodes_.interleaved) {
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
  for (const auto& [name, value] : nodes_.restored) fetches.emplace_back(value);
  ASSIGN_OR_RETURN(std::vector<Tensor> tensors,
                   session.Run({{nodes_.path, Tensor::Scalar(checkpoint)}}, fetches, {}, options));
  std::map<std::string, Tensor> values;
  size_t next = 0;
  for (const auto& [name, value] : nodes_.restored)
    values.emplace(name, std::move(tensors[next++]));
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
    return Annotate(session.Execute(restore, {{nodes_.path, Tensor::Scalar(from)}}), from);
  };
  std::vector<std::string> chain = {checkpoint};
  if (nodes_.restore_first.valid()) {
    ASSIGN_OR_RETURN(chain, ChainOf(*options_.env, checkpoint));
  }
  if (chain.size() == 1)
    return session.Execute(nodes_.restore, {{nodes_.path, Tensor::Scalar(checkpoint)}});
  RETURN_IF_ERROR(run(nodes_.restore_first, chain[0]));
  for (size_t i = 1; i + 1 < chain.size(); ++i) RETURN_IF_ERROR(run(nodes_.restore_next, chain[i]));
  return run(nodes_.restore_last, checkpoint);
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
