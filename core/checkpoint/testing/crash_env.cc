// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/testing/crash_env.h"

#include <cstring>

#include "core/checkpoint/bundle_entry.h"

namespace penstock {

class CrashFile final : public WritableFile {
 public:
  CrashFile(CrashEnv& env, CrashEnv::FilePtr file) : env_(env), file_(std::move(file)) {}
  Status Append(string_view data) override {
    RETURN_IF_ERROR(env_.Count("append"));
    file_->now.append(data.data(), data.size());
    return OkStatus();
  }
  Status Sync() override {
    RETURN_IF_ERROR(env_.Count("sync"));
    file_->synced = file_->now;
    return OkStatus();
  }
  Status Close() override { return OkStatus(); }

 private:
  CrashEnv& env_;
  CrashEnv::FilePtr file_;
};

namespace {

class StringFile final : public RandomAccessFile {
 public:
  explicit StringFile(std::string contents) : contents_(std::move(contents)) {}
  int64_t size() const override { return static_cast<int64_t>(contents_.size()); }
  Status Read(int64_t offset, int64_t count, char* buffer) const override {
    if (offset < 0 || count < 0 || offset > size() || count > size() - offset) {
      return OutOfRange("read past the end");
    }
    std::memcpy(buffer, contents_.data() + offset, count);
    return OkStatus();
  }

 private:
  const std::string contents_;
};

}  // namespace

bool CrashEnv::Change::In(const std::string& directory) const {
  return DirectoryOf(removed) == directory || DirectoryOf(added) == directory;
}

void CrashEnv::Change::ApplyTo(Names& names) const {
  if (!removed.empty()) names.erase(removed);
  if (!added.empty()) names[added] = file;
}

Status CrashEnv::Count(const std::string& what) {
  const int number = operations_++;
  if (crash_at_ >= 0 && number >= crash_at_) return Unavailable("crashed: ", what);
  if (number == fail_at_) return ResourceExhausted("no space left: ", what);
  return OkStatus();
}

void CrashEnv::Apply(Change change) {
  change.ApplyTo(now_);
  pending_.push_back(std::move(change));
}

void CrashEnv::Restart(Unsynced unsynced, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto survives = [&] {
    return unsynced == Unsynced::kKept || (unsynced == Unsynced::kRandom && random() % 2 == 0);
  };
  for (const Change& change : pending_) {
    if (survives()) change.ApplyTo(synced_);
  }
  pending_.clear();
  now_ = synced_;
  for (auto& [path, file] : now_) {
    if (!survives()) {
      // Some of the unsynced bytes may have been written.
      const bool torn = unsynced == Unsynced::kRandom && file->now.size() > file->synced.size();
      const size_t kept = torn ? random() % file->now.size() : 0;
      file->now = kept > file->synced.size() ? file->now.substr(0, kept) : file->synced;
    }
    file->synced = file->now;
  }
  // A file is lost if its directory is lost.
  for (auto it = now_.begin(); it != now_.end();) {
    const std::string parent = DirectoryOf(it->first);
    const bool lost = parent != "/" && parent != "." && !now_.contains(parent);
    it = lost ? now_.erase(it) : std::next(it);
  }
  synced_ = now_;
  crash_at_ = fail_at_ = -1;
}

std::vector<std::string> CrashEnv::Paths() const {
  std::vector<std::string> paths;
  for (const auto& [path, file] : now_) {
    if (!file->directory) paths.push_back(path);
  }
  return paths;
}

StatusOr<CrashEnv::FilePtr> CrashEnv::Find(const std::string& path) const {
  const auto found = now_.find(path);
  if (found == now_.end()) return NotFound("no file '", path, "'");
  return found->second;
}

StatusOr<std::unique_ptr<WritableFile>> CrashEnv::NewWritableFile(const std::string& path) {
  RETURN_IF_ERROR(Count("create " + path));
  auto file = std::make_shared<File>();
  Apply({.added = path, .file = file});
  return std::make_unique<CrashFile>(*this, file);
}

StatusOr<std::unique_ptr<RandomAccessFile>> CrashEnv::OpenFile(const std::string& path) {
  ASSIGN_OR_RETURN(const FilePtr file, Find(path));
  return std::make_unique<StringFile>(file->now);
}

StatusOr<std::string> CrashEnv::ReadFile(const std::string& path) {
  ASSIGN_OR_RETURN(const FilePtr file, Find(path));
  return file->now;
}

bool CrashEnv::FileExists(const std::string& path) {
  return path == "/" || path == "." || now_.contains(path);
}

StatusOr<std::vector<std::string>> CrashEnv::ListDirectory(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& [name, file] : now_) {
    if (DirectoryOf(name) == path) names.push_back(name.substr(name.rfind('/') + 1));
  }
  return names;
}

Status CrashEnv::CreateDirectories(const std::string& path) {
  if (FileExists(path)) return OkStatus();
  RETURN_IF_ERROR(CreateDirectories(DirectoryOf(path)));
  RETURN_IF_ERROR(Count("make directory " + path));
  Apply({.added = path, .file = std::make_shared<File>(File{.directory = true})});
  return OkStatus();
}

Status CrashEnv::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Count("rename " + from + " to " + to));
  ASSIGN_OR_RETURN(const FilePtr file, Find(from));
  Apply({.removed = from, .added = to, .file = file});
  return OkStatus();
}

Status CrashEnv::RemoveFile(const std::string& path) {
  RETURN_IF_ERROR(Count("remove " + path));
  RETURN_IF_ERROR(Find(path).status());
  Apply({.removed = path});
  return OkStatus();
}

Status CrashEnv::RemoveDirectory(const std::string& path) {
  ASSIGN_OR_RETURN(const auto names, ListDirectory(path));
  if (!names.empty()) return FailedPrecondition("directory '", path, "' is not empty");
  return RemoveFile(path);
}

Status CrashEnv::SyncDirectory(const std::string& path) {
  RETURN_IF_ERROR(Count("sync directory " + path));
  std::vector<Change> others;
  for (Change& change : pending_) {
    if (change.In(path)) {
      change.ApplyTo(synced_);
    } else {
      others.push_back(std::move(change));
    }
  }
  pending_ = std::move(others);
  return OkStatus();
}

}  // namespace penstock
