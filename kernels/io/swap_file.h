// SPDX-License-Identifier: Apache-2.0
//
// SwapFile: one file of this process that holds tensors of running steps for which there is no
// memory. It is in the directory $TMPDIR, or /tmp if that is not set, and has no name, so it
// disappears when the process ends. If the directory is in memory (tmpfs), swapping does not save
// memory: set TMPDIR to a directory on a disk.
//
// Thread-safe; lives until the process ends. Reads and writes block, so they run on
// Scheduler::files().
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace penstock {

class SwapFile {
 public:
  // Called before each piece of a read or a write. If it returns an error, the read or write ends
  // with that error.
  using PieceCheck = absl::FunctionRef<Status()>;

  static SwapFile& OfProcess();
  // Makes a file in `directory`. For tests; other callers use OfProcess.
  explicit SwapFile(std::string directory) : directory_(std::move(directory)) {}
  ~SwapFile();
  SwapFile(const SwapFile&) = delete;
  SwapFile& operator=(const SwapFile&) = delete;

  // Reserves a free part of the file, and returns its offset. FailedPrecondition, which names the
  // directory, if the directory does not exist or is not writable. Unavailable if the file cannot
  // be made for another reason.
  StatusOr<int64_t> Take(int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Frees a part. When the last part is freed, the file becomes empty.
  void Return(int64_t offset, int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Write to, and read from, a part that was taken. ResourceExhausted if the disk is full, or if
  // the file would exceed this process's limit; DataLoss if the file is shorter than expected;
  // Unavailable if the disk fails. Each error names the directory.
  Status Write(int64_t offset, const void* data, int64_t bytes, PieceCheck check);
  Status Read(int64_t offset, void* data, int64_t bytes, PieceCheck check);

  int64_t bytes_in_use() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Status Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status FileError(const char* what) const;

  const std::string directory_;
  mutable Mutex mu_;
  int fd_ = -1;  // set under mu_, before the first part is taken
  int64_t end_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t in_use_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<int64_t, int64_t> free_ ABSL_GUARDED_BY(mu_);  // bytes by offset; neighbours are merged
};

}  // namespace penstock
