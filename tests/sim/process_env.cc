// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/match.h"
#include "core/base/fault_point.h"
#include "tests/sim/sim_process.h"

namespace penstock::simulation {
namespace {

// Planted bugs in the order of a checkpoint's writes. They are in this Env, which writes the files,
// because core/checkpoint should not depend on simulations.
const FaultPoint kDataUnsynced(FaultPoint::kBug, "checkpoint/data-not-synced",
                               "the data of a checkpoint are not synced");
const FaultPoint kIndexUnsynced(FaultPoint::kBug, "checkpoint/index-not-synced",
                                "the index of a checkpoint is not synced");
const FaultPoint kNamesUnsynced(FaultPoint::kBug, "checkpoint/directory-not-synced",
                                "the names of a checkpoint's files are not synced");
const FaultPoint kIndexFirst(FaultPoint::kBug, "checkpoint/index-before-data",
                             "the index of a checkpoint appears before its data");
const FaultPoint kStateNotWritten(FaultPoint::kBug, "checkpoint/state-not-written",
                                  "the state file does not name the newest checkpoint");

bool Has(const std::string& path, const char* part) { return absl::StrContains(path, part); }

}  // namespace

class ProcessEnv::File final : public WritableFile {
 public:
  File(std::shared_ptr<const bool> alive, std::string path, std::unique_ptr<WritableFile> file)
      : alive_(std::move(alive)), path_(std::move(path)), file_(std::move(file)) {}

  Status Append(string_view data) override {
    return Do([&] { return file_->Append(data); });
  }
  Status Sync() override {
    if (Has(path_, ".data-") && kDataUnsynced.Fires()) return OkStatus();
    if (Has(path_, ".index") && kIndexUnsynced.Fires()) return OkStatus();
    return Do([&] { return file_->Sync(); });
  }
  Status Close() override {
    return Do([&] { return file_->Close(); });
  }

 private:
  template <class Operation>
  Status Do(Operation operation) {
    if (!*alive_) return Unavailable("the process that writes '", path_, "' is dead");
    return operation();
  }

  const std::shared_ptr<const bool> alive_;
  const std::string path_;
  const std::unique_ptr<WritableFile> file_;
};

Status ProcessEnv::Check() const {
  return alive() ? OkStatus() : Unavailable("the process that uses files is dead");
}

StatusOr<std::unique_ptr<WritableFile>> ProcessEnv::NewWritableFile(const std::string& path) {
  RETURN_IF_ERROR(Check());
  ASSIGN_OR_RETURN(auto file, files_.NewWritableFile(path));
  return std::make_unique<File>(alive_, path, std::move(file));
}

StatusOr<std::unique_ptr<RandomAccessFile>> ProcessEnv::OpenFile(const std::string& path) {
  RETURN_IF_ERROR(Check());
  return files_.OpenFile(path);
}

StatusOr<std::string> ProcessEnv::ReadFile(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, OpenFile(path));
  std::string data(static_cast<size_t>(file->size()), '\0');
  RETURN_IF_ERROR(file->Read(0, file->size(), data.data()));
  return data;
}

bool ProcessEnv::FileExists(const std::string& path) { return alive() && files_.FileExists(path); }

StatusOr<std::vector<std::string>> ProcessEnv::ListDirectory(const std::string& path) {
  RETURN_IF_ERROR(Check());
  return files_.ListDirectory(path);
}

Status ProcessEnv::CreateDirectories(const std::string& path) {
  RETURN_IF_ERROR(Check());
  return files_.CreateDirectories(path);
}

Status ProcessEnv::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Check());
  if (absl::EndsWith(to, "/checkpoint") && kStateNotWritten.Fires()) return RemoveFile(from);
  if (!Has(from, "_temp_") && !Has(from, ".tempstate")) return files_.Rename(from, to);
  if (Has(to, ".data-") && !Has(to, "_temp_") && kIndexFirst.Fires()) {
    late_renames_.emplace_back(from, to);
    return OkStatus();
  }
  return RenameIndexFirst(from, to);
}

Status ProcessEnv::RenameIndexFirst(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(files_.Rename(from, to));
  if (!absl::EndsWith(to, ".index")) return OkStatus();
  for (const auto& [late_from, late_to] : std::exchange(late_renames_, {})) {
    SleepForNanos(5'000'000);
    RETURN_IF_ERROR(Check());
    RETURN_IF_ERROR(files_.Rename(late_from, late_to));
  }
  return OkStatus();
}

Status ProcessEnv::RemoveFile(const std::string& path) {
  RETURN_IF_ERROR(Check());
  return files_.RemoveFile(path);
}

Status ProcessEnv::RemoveDirectory(const std::string& path) {
  RETURN_IF_ERROR(Check());
  return files_.RemoveDirectory(path);
}

Status ProcessEnv::SyncDirectory(const std::string& path) {
  RETURN_IF_ERROR(Check());
  if (kNamesUnsynced.Fires()) return OkStatus();
  return files_.SyncDirectory(path);
}

}  // namespace penstock::simulation
