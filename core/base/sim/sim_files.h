// SPDX-License-Identifier: Apache-2.0
//
// SimFiles: a disk in memory that can lose its power. Unsynced changes are then lost or kept in
// part, as the seed decides:
//   - each file keeps the bytes written before its last Sync, and a random number of those written
//     after it; the latter may be replaced by zeros;
//   - of the renames, removals and new names since the last SyncDirectory, the first few are kept,
//     a random number.
// Directories themselves are never lost.
//
// Operations take a little simulated time, so that faults can occur between them. FailUntil makes
// operations fail. All calls are made in SimScheduler::Run, on one thread; callers hold no mutex.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/sim/sim_scheduler.h"

namespace penstock {

class SimFiles {
 public:
  // Part of the message of each injected error.
  static constexpr char kInjected[] = "injected fault";

  explicit SimFiles(SimScheduler& scheduler) : scheduler_(scheduler) {}

  // Until the clock reaches `until_ns`, makes on average one in `one_in` of the operations that
  // change files fail. A write that fails may write a part of its data.
  void FailUntil(int64_t until_ns, int one_in) { fail_until_ns_ = until_ns, fail_one_in_ = one_in; }
  int64_t injected_errors() const { return injected_errors_; }
  // Simulates a loss of power: drops or keeps unsynced changes, as the class comment says. Files
  // that are open cannot be used afterwards. Ends the failures of FailUntil.
  void LosePower();
  // Flips a random bit in a random file whose name contains `part`. Returns the file's name, or ""
  // if there is no such file.
  std::string FlipBit(const std::string& part);

  // The operations of Env.
  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path);
  StatusOr<std::unique_ptr<RandomAccessFile>> OpenFile(const std::string& path);
  bool FileExists(const std::string& path) const;
  StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);
  Status CreateDirectories(const std::string& path);
  Status Rename(const std::string& from, const std::string& to);
  Status RemoveFile(const std::string& path);
  Status RemoveDirectory(const std::string& path);
  Status SyncDirectory(const std::string& path);

 private:
  struct Node {
    std::string data;
    size_t synced = 0;  // bytes that have been synced
    bool lost = false;  // the power was lost while the file was open
  };
  // A change of names that may not be durable yet. It makes `path` name `node`, or removes the name
  // `path` if `node` is null, and removes the name `from` if it is not empty.
  struct Change {
    std::string path, from;
    std::shared_ptr<Node> node;
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;
  class File;
  class Reader;

  static void Apply(const Change& change, Names* names);
  void RecordChange(Change change);
  void PassTime();
  Status PassTimeOrFail(const char* what, const std::string& path, bool* torn = nullptr);
  uint64_t RandomBelow(uint64_t n) { return n == 0 ? 0 : scheduler_.Random() % n; }

  SimScheduler& scheduler_;
  Names names_, durable_;
  std::vector<Change> changes_;  // the changes that lead from durable_ to names_
  std::set<std::string> directories_ = {"/"};
  int64_t fail_until_ns_ = 0, injected_errors_ = 0;
  int fail_one_in_ = 1;
};

}  // namespace penstock
