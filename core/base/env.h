// SPDX-License-Identifier: Apache-2.0
//
// Env: the clock, randomness and files. Constructors take an Env, so that the same code runs on the
// real machine and on a simulated one. No other code of Penstock reads a clock, asks the system for
// randomness or opens a file.
//
// NowNanos is monotonic: changes of the system's date do not affect it. WallMicros is for time
// stamps only. Thread-safe. File errors name the path and the system's error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"

namespace penstock {

// Appends to one file. Errors are sticky: after an Append or Sync has failed, Close returns the
// same error.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Status Append(string_view data) = 0;
  virtual Status Sync() = 0;   // writes to the disk, not only to the kernel's cache
  virtual Status Close() = 0;  // must be called; destruction without it discards errors
};

// Reads any range of one file. Thread-safe.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  virtual int64_t size() const = 0;
  // Reads exactly `count` bytes from `offset` into `buffer`. OutOfRange names the file and the
  // offset if the file is too short.
  virtual Status Read(int64_t offset, int64_t count, char* buffer) const = 0;
};

class Env {
 public:
  virtual ~Env() = default;

  // Returns the Env of the real machine. It is never destroyed.
  static Env& Real();

  virtual int64_t NowNanos() = 0;
  virtual int64_t WallMicros() = 0;
  virtual void SleepForNanos(int64_t nanos) = 0;
  virtual uint64_t
  RandomU64() = 0;  // unpredictable numbers, for ids, incarnations and seeds that nobody has set

  virtual StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) = 0;
  virtual StatusOr<std::unique_ptr<RandomAccessFile>> OpenFile(const std::string& path) = 0;
  // Returns the complete contents of the file.
  virtual StatusOr<std::string> ReadFile(const std::string& path) = 0;
  virtual bool FileExists(const std::string& path) = 0;
  virtual StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) = 0;  // names
  virtual Status CreateDirectories(const std::string& path) = 0;
  virtual Status Rename(const std::string& from, const std::string& to) = 0;  // replaces `to`
  virtual Status RemoveFile(const std::string& path) = 0;
  // Fails unless the directory is empty.
  virtual Status RemoveDirectory(const std::string& path) = 0;
  // Makes new names, renames and removals in the directory durable.
  virtual Status SyncDirectory(const std::string& path) = 0;

  // Writes a temporary file in the same directory, syncs it, renames it to `path` and syncs the
  // directory. So a reader sees either the complete old file or the complete new one, even after a
  // crash.
  Status WriteFileAtomically(const std::string& path, string_view contents);
  // As above, but `write` appends the contents. If it fails, `path` stays as it was.
  Status WriteFileAtomically(const std::string& path,
                             absl::FunctionRef<Status(WritableFile&)> write);
};

}  // namespace penstock
