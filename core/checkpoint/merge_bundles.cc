// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/merge_bundles.h"

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/publish.h"

namespace penstock {
namespace {

class Merger {
 public:
  // Adds the entries of one source. Its shards follow those of the sources before it.
  Status Add(const BundleReader& source) {
    for (const auto& [name, entry] : source.tensors()) {
      RETURN_IF_ERROR(entry.slices.empty() ? AddEntry(name, entry)
                                           : AddSliced(source, name, entry));
    }
    for (int shard = 0; shard < source.num_shards(); ++shard) {
      from_.push_back(DataPath(source.prefix(), shard, source.num_shards()));
    }
    return OkStatus();
  }

  Status Publish(Env& env, const std::string& destination) const {
    std::vector<std::pair<std::string, std::string>> renames;
    const int num_shards = static_cast<int>(from_.size());
    for (int shard = 0; shard < num_shards; ++shard) {
      renames.emplace_back(from_[shard], DataPath(destination, shard, num_shards));
    }
    return PublishBundle(env, destination, num_shards, entries_, renames);
  }

 private:
  Status AddEntry(const std::string& key, BundleEntry entry) {
    entry.shard += static_cast<int>(from_.size());
    if (entries_.emplace(key, std::move(entry)).second) return OkStatus();
    return InvalidArgument("more than one of the checkpoints to merge holds it");
  }

  Status AddSliced(const BundleReader& source, const std::string& name, const BundleEntry& entry) {
    BundleEntry& merged = entries_[name];
    if (merged.dtype == DType::kInvalid) {
      merged.dtype = entry.dtype;
      merged.shape = entry.shape;
    } else if (merged.slices.empty() || merged.dtype != entry.dtype ||
               merged.shape != entry.shape) {
      return InvalidArgument("one of the checkpoints to merge holds a slice of ", Name(entry.dtype),
                             entry.shape.ToString(), ", another ", Name(merged.dtype),
                             merged.shape.ToString());
    }
    for (const TensorSlice& slice : entry.slices) {
      merged.slices.push_back(slice);
      RETURN_IF_ERROR(AddEntry(SliceKey(name, slice), source.Slice(name, slice)));
    }
    return OkStatus();
  }

  std::vector<std::string> from_;  // the sources' data files, by shard of the result
  std::map<std::string, BundleEntry> entries_;
};

// Removes the indexes of the sources and, if `directories`, their directories if these are empty.
// The merged checkpoint is complete, so a file that cannot be removed is not an error.
void RemoveSources(Env& env, const std::vector<std::string>& sources,
                   const std::string& destination, bool directories) {
  std::set<std::string> parents;
  for (const std::string& source : sources) {
    if (source != destination) env.RemoveFile(IndexPath(source)).IgnoreError();
    parents.insert(DirectoryOf(source));
  }
  parents.erase(DirectoryOf(destination));
  if (!directories) return;
  for (const std::string& parent : parents) env.RemoveDirectory(parent).IgnoreError();
}

}  // namespace

Status MergeBundles(Env& env, const std::vector<std::string>& sources,
                    const std::string& destination, const MergeOptions& options) {
  if (sources.empty()) return InvalidArgument("no checkpoints to merge");
  if (destination.empty() || destination.back() == '/') {
    return InvalidArgument("'", destination, "' is not the prefix of a checkpoint");
  }
  if (std::set<std::string>(sources.begin(), sources.end()).size() != sources.size()) {
    return InvalidArgument("a checkpoint to merge is named twice");
  }
  Merger merger;
  std::vector<std::string> merged;
  for (const std::string& source : sources) {
    if (options.allow_missing && !env.FileExists(IndexPath(source))) continue;
    merged.push_back(source);
    ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(env, source));
    RETURN_IF_ERROR(reader->CheckDataFiles());
    RETURN_IF_ERROR(Annotate(merger.Add(*reader), StrCat("checkpoint '", source, "'")));
  }
  if (merged.empty()) return NotFound("none of the checkpoints to merge exists");
  RETURN_IF_ERROR(CreateDurableDirectories(env, DirectoryOf(destination)));
  RETURN_IF_ERROR(merger.Publish(env, destination));
  RemoveSources(env, merged, destination, options.delete_old_directories);
  return OkStatus();
}

}  // namespace penstock
