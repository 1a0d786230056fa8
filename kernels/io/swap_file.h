// SPDX-License-Identifier: Apache-2.0
//
// SwapFile: the tensors of running steps that wait outside of memory: one file of this process, in
// the directory $TMPDIR (else /tmp), which has no name, so that it goes with the process. On a
// directory in memory (tmpfs) nothing is gained: set TMPDIR to one on a disk.
//
// Thread-safe; lives for ever. Reads and writes block, so they run on Scheduler::files().
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
  // Asked between two pieces of a read or a write, which ends with an error that it returns.
  using GoOn = absl::FunctionRef<Status()>;

  static SwapFile& OfProcess();
  // In `directory`. For tests; others use OfProcess.
  explicit SwapFile(std::string directory) : directory_(std::move(directory)) {}
  ~SwapFile();
  SwapFile(const SwapFile&) = delete;
  SwapFile& operator=(const SwapFile&) = delete;

  // Takes a free part of the file. FailedPrecondition names the directory if it does not exist or
  // may not be written to; Unavailable if the file cannot be made for another reason.
  StatusOr<int64_t> Take(int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns a part. When the last one is returned, the file becomes empty.
  void Return(int64_t offset, int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Write to, and read from, a part that was taken. ResourceExhausted if the disk is full, or the
  // file larger than this process may make one; DataLoss if the file has become shorter;
  // Unavailable if the disk fails. Each names the directory.
  Status Write(int64_t offset, const void* data, int64_t bytes, GoOn go_on);
  Status Read(int64_t offset, void* data, int64_t bytes, GoOn go_on);

  int64_t bytes_in_use() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Status Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status Fails(const char* what) const;

  const std::string directory_;
  mutable Mutex mu_;
  int fd_ = -1;  // set under mu_, before the first part is taken
  int64_t end_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t in_use_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<int64_t, int64_t> free_ ABSL_GUARDED_BY(mu_);  // bytes by offset; no two touch
};

}  // namespace penstock
