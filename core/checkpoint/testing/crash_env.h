// SPDX-License-Identifier: Apache-2.0
//
// CrashEnv: files in memory that behave as a disk does when the machine loses power, for tests.
//
// A crash may lose whatever was not synced: contents written without Sync, and names given without
// SyncDirectory. After the operation that CrashAt names, every further one fails, as if the process
// were gone; Restart then makes what a new process may find. Single-threaded.
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
  // How much survives of what was not synced.
  enum class Unsynced { kLost, kKept, kRandom };

  // The operation with this number (from 0) and all after it fail. -1: none.
  void CrashAt(int operation) { crash_at_ = operation; }
  // The operation with this number fails, and nothing else. -1: none.
  void FailOnceAt(int operation) { fail_at_ = operation; }
  // Operations that change something, so far.
  int operations() const { return operations_; }
  void Restart(Unsynced unsynced, uint64_t seed = 0);
  // Every file that a process sees now.
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
  // Directories are files without contents.
  struct File {
    bool directory = false;
    std::string now, synced;
  };
  using FilePtr = std::shared_ptr<File>;
  using Names = std::map<std::string, FilePtr>;
  // A name given (`file`) or taken away (null); a rename does both at once.
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
  std::vector<Change> pending_;  // since now_ was synced_
};

}  // namespace penstock
