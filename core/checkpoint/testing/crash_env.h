// SPDX-License-Identifier: Apache-2.0
//
// CrashEnv: files in memory that behave like a disk of a machine that loses power, for tests.
//
// A crash may lose everything that was not synced: contents written without Sync, and new names
// without SyncDirectory. From the operation that CrashAt names, every operation fails, as if the
// process were gone; Restart then produces a state of the disk that a new process may find. Not
// thread-safe.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/base/env.h"

namespace penstock {

class CrashEnv final : public Env {
 public:
  // How many of the unsynced changes survive.
  enum class Unsynced { kLost, kKept, kRandom };

  // Makes the operation with this number (from 0) and all after it fail. -1: none.
  void CrashAt(int operation) { crash_at_ = operation; }
  // Makes the operation with this number fail, and no other. -1: none.
  void FailOnceAt(int operation) { fail_at_ = operation; }
  // Returns the number of operations so far that change something.
  int operations() const { return operations_; }
  // Makes the disk as a new process may find it after a crash. Ends CrashAt and FailOnceAt.
  void Restart(Unsynced unsynced, uint64_t seed = 0);
  // Returns the paths of all files that exist now, whether they are durable or not.
  std::vector<std::string> Paths() const;

  int64_t NowNanos() override { return 0; }
  int64_t WallMicros() override { return 0; }
  void SleepForNanos(int64_t) override {}
  uint64_t RandomU64() override { return random_(); }
  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override;
  StatusOr<std::unique_ptr<RandomAccessFile>> OpenFile(const std::string& path) override;
  StatusOr<std::string> ReadFile(const std::string& path) override;
  bool FileExists(const std::string& path) override;
  StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override;
  Status CreateDirectories(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status RemoveFile(const std::string& path) override;
  Status RemoveDirectory(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;

 private:
  friend class CrashFile;
  // A file, or a directory: a file without contents.
  struct File {
    bool directory = false;
    std::string now, synced;
  };
  using FilePtr = std::shared_ptr<File>;
  using Names = std::map<std::string, FilePtr>;
  // Adds a name for `file`, removes a name (`file` is null), or, for a rename, does both at once.
  struct Change {
    std::string removed;  // or empty
    std::string added;    // or empty
    FilePtr file;
    bool In(const std::string& directory) const;
    void ApplyTo(Names& names) const;
  };

  Status Count(const std::string& what);
  void Apply(Change change);
  StatusOr<FilePtr> Find(const std::string& path) const;

  std::mt19937_64 random_{1};
  int operations_ = 0, crash_at_ = -1, fail_at_ = -1;
  Names now_, synced_;
  std::vector<Change> pending_;  // the changes from synced_ to now_
};

}  // namespace penstock
