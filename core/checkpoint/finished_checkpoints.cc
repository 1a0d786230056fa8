// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/finished_checkpoints.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"

namespace penstock {
namespace {

constexpr size_t kPathsMax = 8;
constexpr char kTemporary[] = "_temp_";

struct SaveRecords {
  Mutex mu;
  std::vector<FinishedCheckpoint> finished ABSL_GUARDED_BY(mu);  // newest first
  std::vector<FailedSave> failed ABSL_GUARDED_BY(mu);            // newest first
};
SaveRecords& GlobalSaveRecords() {
  static SaveRecords& records = *new SaveRecords;
  return records;
}

// Returns "run/model.ckpt" for "run/model.ckpt-120" and sets `*step` to 120. Returns the complete
// path if it has no number.
std::string WithoutStep(const std::string& path, int64_t* step) {
  const size_t dash = path.rfind('-');
  uint64_t number = 0;
  *step = -1;
  if (dash == std::string::npos || !absl::SimpleAtoi(path.substr(dash + 1), &number) ||
      number > INT64_MAX) {
    return path;
  }
  *step = static_cast<int64_t>(number);
  return path.substr(0, dash);
}

// Returns the checkpoint that a file in a folder "..._temp_..." is a part of; else the path.
std::string WholeCheckpoint(const std::string& path) {
  return path.substr(0, path.find(kTemporary));
}

// Removes and returns the record of failed saves to the same path; an empty record if there is
// none.
FailedSave TakeFailed(const std::string& path, SaveRecords& records)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(records.mu) {
  int64_t step = 0;
  const std::string name = WithoutStep(WholeCheckpoint(path), &step);
  for (auto it = records.failed.begin(); it != records.failed.end(); ++it) {
    if (WithoutStep(it->path, &step) != name) continue;
    FailedSave found = std::move(*it);
    records.failed.erase(it);
    return found;
  }
  return {};
}

}  // namespace

void NoteFailedSave(const std::string& path, const std::string& node, const Status& status,
                    Env& env) {
  if (absl::IsCancelled(status)) return;
  const int64_t now_ns = env.NowNanos();
  SaveRecords& records = GlobalSaveRecords();
  MutexLock lock(records.mu);
  FailedSave failed = TakeFailed(path, records);
  if (failed.times == 0) failed.first_failed_ns = now_ns;
  failed.path = WholeCheckpoint(path);
  (void)WithoutStep(failed.path, &failed.step);
  failed.node = node;
  failed.status = status;
  failed.failed_ns = now_ns;
  ++failed.times;
  records.failed.insert(records.failed.begin(), std::move(failed));
  if (records.failed.size() > kPathsMax) records.failed.pop_back();
}

std::vector<FailedSave> FailedSaves() {
  SaveRecords& records = GlobalSaveRecords();
  MutexLock lock(records.mu);
  return records.failed;
}

void NoteFinishedCheckpoint(const std::string& path, Env& env) {
  {
    SaveRecords& records = GlobalSaveRecords();
    MutexLock lock(records.mu);
    (void)TakeFailed(path, records);
  }
  if (path.find(kTemporary) != std::string::npos) return;
  FinishedCheckpoint finished{.path = path, .finished_ns = env.NowNanos()};
  const std::string name = WithoutStep(path, &finished.step);
  SaveRecords& records = GlobalSaveRecords();
  MutexLock lock(records.mu);
  std::erase_if(records.finished, [&](const FinishedCheckpoint& before) {
    int64_t step = 0;
    return WithoutStep(before.path, &step) == name;
  });
  records.finished.insert(records.finished.begin(), std::move(finished));
  if (records.finished.size() > kPathsMax) records.finished.pop_back();
}

std::vector<FinishedCheckpoint> LastCheckpoints() {
  SaveRecords& records = GlobalSaveRecords();
  MutexLock lock(records.mu);
  return records.finished;
}

}  // namespace penstock
