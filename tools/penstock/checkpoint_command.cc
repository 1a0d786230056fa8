// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/base/match_files.h"
#include "core/checkpoint/base_checkpoints.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoints.h"
#include "core/checkpoint/v1_reader.h"
#include "tools/penstock/checkpoint_diff.h"
#include "tools/penstock/commands.h"

namespace penstock {
namespace {

struct CheckpointOptions {
  std::string path, tensor, diff;
  int elements = 20;
  bool verify = false;
};

// Prints all checkpoints of a folder, with the checkpoint on which each builds. Marks the one that
// a training would restore, and damaged ones.
Status ListFolder(Env& env, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> prefixes, ListCheckpoints(env, folder));
  if (prefixes.empty()) return NotFound("no checkpoints in '", folder, "'");
  ASSIGN_OR_RETURN(const NewestGood newest, FindNewestGood(env, folder));
  for (const std::string& prefix : prefixes) {
    const char* note = prefix == newest.prefix ? "  <- training goes on from here" : "";
    std::string damage;
    for (const NewestGood::Skipped& skipped : newest.skipped) {
      if (skipped.prefix == prefix) damage = StrCat("  damaged: ", skipped.why.message());
    }
    const StatusOr<std::string> base = BaseOf(env, prefix);
    const std::string changes = base.ok() && !base->empty() ? "  changes since " + *base : "";
    std::printf("%s%s%s%s\n", prefix.c_str(), changes.c_str(), note, damage.c_str());
  }
  return OkStatus();
}

// Prints the tensors of a checkpoint in the V1 format, which does not say how many bytes each has.
Status ListV1Tensors(const CheckpointReader& reader) {
  for (const std::string& name : reader.names()) {
    ASSIGN_OR_RETURN(const SavedTensor tensor, reader.Describe(name));
    std::printf("%-48s %-10s %s\n", name.c_str(), Name(tensor.dtype),
                tensor.shape.ToString().c_str());
  }
  std::printf("%zu tensors, in the V1 format\n", reader.names().size());
  return OkStatus();
}

Status VerifyV1(const CheckpointReader& reader) {
  for (const std::string& name : reader.names()) {
    ASSIGN_OR_RETURN(const SavedTensor tensor, reader.Describe(name));
    const TensorSlice whole = TensorSlice::Whole(tensor.shape.rank());
    RETURN_IF_ERROR(reader.ReadSlice(name, whole, CpuAllocator()).status());
  }
  return OkStatus();
}

Status PrintTensor(const CheckpointReader& reader, const CheckpointOptions& options) {
  ASSIGN_OR_RETURN(const SavedTensor saved, reader.Describe(options.tensor));
  ASSIGN_OR_RETURN(
      const Tensor tensor,
      reader.ReadSlice(options.tensor, TensorSlice::Whole(saved.shape.rank()), CpuAllocator()));
  std::printf("%s = %s\n", options.tensor.c_str(), tensor.ToString(options.elements).c_str());
  return OkStatus();
}

void ListTensors(const BundleReader& reader) {
  int64_t total = 0;
  for (const auto& [name, entry] : reader.tensors()) {
    std::string where = StrCat("shard ", entry.shard);
    int64_t bytes = entry.size;
    if (!entry.slices.empty()) {
      where = StrCat(entry.slices.size(), " slices");
      for (const TensorSlice& slice : entry.slices) bytes += reader.Slice(name, slice).size;
    }
    total += bytes;
    std::printf("%-48s %-10s %-18s %12lld bytes  %s\n", name.c_str(), Name(entry.dtype),
                entry.shape.ToString().c_str(), static_cast<long long>(bytes), where.c_str());
  }
  std::printf("%zu tensors, %lld bytes, in %d data files\n", reader.tensors().size(),
              static_cast<long long>(total), reader.num_shards());
}

Status ShowV1(Env& env, const CheckpointOptions& options) {
  ASSIGN_OR_RETURN(const auto reader, V1Reader::Open(env, options.path));
  if (!options.tensor.empty()) return PrintTensor(*reader, options);
  if (!options.verify) return ListV1Tensors(*reader);
  RETURN_IF_ERROR(VerifyV1(*reader));
  std::printf("every byte is as it was written\n");
  return OkStatus();
}

// Returns the checkpoint with this prefix, or the one that a training in this folder would restore.
StatusOr<std::string> FindCheckpoint(Env& env, const std::string& path) {
  if (env.FileExists(path + ".index")) return path;
  ASSIGN_OR_RETURN(const NewestGood newest, FindNewestGood(env, path));
  if (newest.prefix.empty()) return NotFound("no good checkpoint in '", path, "'");
  return newest.prefix;
}

Status Diff(Env& env, const CheckpointOptions& options) {
  ASSIGN_OR_RETURN(const std::string before, FindCheckpoint(env, options.path));
  ASSIGN_OR_RETURN(const std::string after, FindCheckpoint(env, options.diff));
  if (options.verify) {
    RETURN_IF_ERROR(VerifyCheckpoint(env, before));
    RETURN_IF_ERROR(VerifyCheckpoint(env, after));
    std::printf("every byte of both is as it was written\n");
  }
  ASSIGN_OR_RETURN(const bool equal, PrintCheckpointDiff(env, before, after));
  return equal ? OkStatus() : FailedPrecondition(before, " and ", after, " differ");
}

Status RunCheckpointCommand(const CheckpointOptions& options) {
  Env& env = Env::Real();
  if (!options.diff.empty()) return Diff(env, options);
  std::string prefix = options.path;
  if (!env.FileExists(prefix + ".index")) {
    const bool folder = env.ListDirectory(prefix).ok();
    if (!folder && !MatchFiles(env, prefix).empty()) return ShowV1(env, options);
    // For a folder: list its checkpoints, or use the one that a training would restore.
    if (!options.verify && options.tensor.empty()) RETURN_IF_ERROR(ListFolder(env, options.path));
    ASSIGN_OR_RETURN(const NewestGood newest, FindNewestGood(env, options.path));
    if (newest.prefix.empty()) return NotFound("no good checkpoint in '", options.path, "'");
    prefix = newest.prefix;
    std::printf("\n%s\n", prefix.c_str());
  }
  if (options.verify) {
    RETURN_IF_ERROR(VerifyCheckpoint(env, prefix));
    std::printf("every byte is as it was written\n");
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> reader, BundleReader::Open(env, prefix));
  if (options.tensor.empty()) {
    ListTensors(*reader);
    return OkStatus();
  }
  return PrintTensor(*reader, options);
}

}  // namespace

void AddCheckpointCommand(CLI::App& app, int* exit_code) {
  CLI::App* checkpoint = app.add_subcommand("checkpoint", "List, print or verify checkpoints");
  checkpoint->footer(
      "  penstock checkpoint /tmp/run                      the checkpoints there, and the newest's "
      "tensors\n"
      "  penstock checkpoint /tmp/run/model.ckpt-500       the tensors of one\n"
      "  penstock checkpoint /tmp/run --tensor=global_step its value\n"
      "  penstock checkpoint /tmp/run --verify             reads every byte\n"
      "  penstock checkpoint /tmp/a --diff=/tmp/b          which tensors differ, and by how "
      "much\n");
  auto options = std::make_shared<CheckpointOptions>();
  checkpoint
      ->add_option("path", options->path,
                   "A folder, the prefix of one checkpoint, or a V1 file or a pattern of V1 files")
      ->required();
  CLI::Option* const tensor =
      checkpoint->add_option("--tensor", options->tensor, "Print this tensor");
  checkpoint->add_option("--elements", options->elements, "The maximum number of elements to print")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  checkpoint
      ->add_option("--diff", options->diff,
                   "Compare with the checkpoint of this folder or prefix; exit code 1 if they "
                   "differ")
      ->excludes(tensor);
  checkpoint
      ->add_flag("--verify", options->verify,
                 "Verify the checksums of all data; with --diff, of both checkpoints")
      ->excludes(tensor);
  checkpoint->callback(
      [options, exit_code] { *exit_code = ExitCodeOf(RunCheckpointCommand(*options)); });
}

}  // namespace penstock
