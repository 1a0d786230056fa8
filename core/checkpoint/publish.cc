// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/publish.h"

#include "absl/strings/numbers.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/table.h"

namespace penstock {
namespace {

Status WriteSynced(Env& env, const std::string& path, string_view contents) {
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, env.NewWritableFile(path));
  Status status = file->Append(contents);
  if (status.ok()) status = file->Sync();
  const Status closed = file->Close();
  return status.ok() ? closed : status;
}

// Removes the old index, then renames the data files and the temporary index to their final names.
Status MoveIntoPlace(Env& env, const std::string& temporary_index, const std::string& index,
                     const std::vector<std::pair<std::string, std::string>>& renames) {
  const std::string directory = DirectoryOf(index);
  // Remove the old index first: it must not describe new data.
  if (env.FileExists(index)) {
    RETURN_IF_ERROR(env.RemoveFile(index));
    RETURN_IF_ERROR(env.SyncDirectory(directory));
  }
  for (const auto& [from, to] : renames) {
    if (from != to) RETURN_IF_ERROR(env.Rename(from, to));
  }
  RETURN_IF_ERROR(env.SyncDirectory(directory));
  RETURN_IF_ERROR(env.Rename(temporary_index, index));
  return env.SyncDirectory(directory);
}

}  // namespace

std::string TemporaryPath(Env& env, const std::string& path) {
  return StrCat(path, ".tempstate", absl::Hex(env.RandomU64()));
}

Status CreateDurableDirectories(Env& env, const std::string& directory) {
  if (env.FileExists(directory)) return OkStatus();
  const std::string parent = DirectoryOf(directory);
  RETURN_IF_ERROR(CreateDurableDirectories(env, parent));
  RETURN_IF_ERROR(env.CreateDirectories(directory));
  return env.SyncDirectory(parent);
}

Status PublishBundle(Env& env, const std::string& prefix, int num_shards,
                     const std::map<std::string, BundleEntry>& entries,
                     const std::vector<std::pair<std::string, std::string>>& renames) {
  std::map<std::string, std::string> table = {{"", SerializeBundleHeader(num_shards)}};
  for (const auto& [key, entry] : entries) table.emplace(key, SerializeBundleEntry(entry));
  ASSIGN_OR_RETURN(const std::string contents, BuildTable(table));
  // Before any file changes, reject checkpoints that could not be read: names that are too long,
  // slices that overlap, and so on.
  if (const Status readable = BundleReader::CheckIndex(env, contents); !readable.ok()) {
    return InvalidArgument("cannot be saved as checkpoint '", prefix, "': ", readable.message());
  }

  const std::string index = IndexPath(prefix);
  const std::string temporary = TemporaryPath(env, index);
  Status status = WriteSynced(env, temporary, contents);
  if (status.ok()) status = MoveIntoPlace(env, temporary, index, renames);
  // An error here is ignored: the first error is reported.
  if (!status.ok()) env.RemoveFile(temporary).IgnoreError();
  return status;
}

}  // namespace penstock
