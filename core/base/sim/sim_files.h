// SPDX-License-Identifier: Apache-2.0
//
// SimFiles: a disk in memory that can lose its power. What was not synced is lost then, or kept in
// part, as the seed decides:
//   - of each file the bytes up to its last Sync are kept, and as many of those behind them as the
//     seed says, the last ones perhaps as zeros;
//   - renames, removals and new names that no SyncDirectory covers are kept up to one of them.
// Directories themselves are never lost.
//
// Operations take a little simulated time, so that faults come between them, and may be made to
// fail. One thread uses it, in SimScheduler::Run; the callers hold no mutex.
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
  // Appears in the message of each error that was injected.
  static constexpr char kInjected[] = "injected fault";

  explicit SimFiles(SimScheduler& scheduler) : scheduler_(scheduler) {}

  // Lets one operation in `one_in` fail, of those that change something, until the clock has come
  // to `until_ns`: writes may be torn.
  void FailUntil(int64_t until_ns, int one_in) { fail_until_ns_ = until_ns, fail_one_in_ = one_in; }
  int64_t injected_errors() const { return injected_errors_; }
  // Files that are open are of no use from then on.
  void LosePower();
  // Flips a bit of a file that the seed chooses among those whose name contains `part`. Returns the
  // file's name, "" if there is none.
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
    size_t synced = 0;  // bytes
    bool lost = false;  // with the power
  };
  // A change of names that is not known to be durable: `path` names `node` from then on, or
  // nothing; `from`, if it is not empty, names nothing any more.
  struct Change {
    std::string path, from;
    std::shared_ptr<Node> node;
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;
  class File;
  class Reader;

  static void Apply(const Change& change, Names* names);
  void Note(Change change);
  void PassTime();
  Status TakeTime(const char* what, const std::string& path, bool* torn = nullptr);
  uint64_t Below(uint64_t n) { return n == 0 ? 0 : scheduler_.Random() % n; }

  SimScheduler& scheduler_;
  Names names_, durable_;
  std::vector<Change> changes_;  // from durable_ to names_
  std::set<std::string> directories_ = {"/"};
  int64_t fail_until_ns_ = 0, injected_errors_ = 0;
  int fail_one_in_ = 1;
};

}  // namespace penstock
