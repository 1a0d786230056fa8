// SPDX-License-Identifier: Apache-2.0
//
// RecordMixer: yields the records of TFRecord files in a random order, epoch after epoch.
//
// Each epoch reads the files in a new random order, several files in turn. Records pass through a
// window of half the buffer, from which they are taken at random; the other half is read ahead.
// Every epoch returns each record once. The order depends only on the options and the contents of
// the files.
//
// Thread-safe. Calls read files, one call at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/record/record_reader.h"
#include "kernels/random/philox.h"

namespace penstock {

class RecordMixer {
 public:
  struct Options {
    std::string pattern;  // pattern of the paths, as for MatchFiles
    uint64_t seed = 0;    // seed of the orders of files and of records
    // The share, from 0 to 1, of an epoch's shuffled files that are read last instead of first.
    double shift_ratio = 0;
    int64_t buffer_max = 1;   // records in the buffer
    int64_t readers_max = 1;  // files that are read in turn
    Compression compression = Compression::kNone;
  };

  // Borrows `files`.
  RecordMixer(Options options, Env& files)
      : options_(std::move(options)), files_(files), random_(Philox::FromSeeds(options_.seed, 0)) {}

  // Moves the next `count` records to the array `records`. NotFound if no file matches the pattern,
  // InvalidArgument if the files have no records, or the error of a file. After an error, every
  // call returns it. `check` is called from time to time; if it returns an error, Take returns
  // that.
  using Check = absl::FunctionRef<Status()>;
  Status Take(int64_t count, std::string* records, Check check) ABSL_LOCKS_EXCLUDED(mu_);
  // Reads ahead until the buffer is full, the epoch's files end, a file has an error, or a Take
  // waits. A later Take returns the error.
  void Fill() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Status BeginEpoch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reads the epoch's next record; returns false at the end of the epoch, or the error of a file.
  StatusOr<bool> Read(std::string* record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Fills the window with records, until it is full or the epoch ends. Returns the first error of a
  // file or of `check`.
  Status Refill(Check check) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status TakeOne(std::string* record, Check check) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  int64_t window_max() const { return (options_.buffer_max + 1) / 2; }

  const Options options_;
  Env& files_;
  std::atomic<int> waiting_{0};  // calls of Take that wait or run
  Mutex mu_;
  Philox random_ ABSL_GUARDED_BY(mu_);
  int64_t epoch_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::string> files_left_ ABSL_GUARDED_BY(mu_);  // files of the epoch, last one first
  std::vector<RecordReader> readers_ ABSL_GUARDED_BY(mu_);  // readers of files that have not ended
  size_t next_reader_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::string> window_ ABSL_GUARDED_BY(mu_);
  std::deque<std::string> records_ahead_ ABSL_GUARDED_BY(mu_);  // in the order of reading
  Status error_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
