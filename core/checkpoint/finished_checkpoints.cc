// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/finished_checkpoints.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"

namespace penstock {
namespace {

constexpr size_t kPathsMax = 8;
constexpr char kTemporary[] = "_temp_";

struct FinishedList {
  Mutex mu;
  std::vector<FinishedCheckpoint> list ABSL_GUARDED_BY(mu);  // newest first
};
FinishedList& GlobalFinishedList() {
  static FinishedList& noted = *new FinishedList;
  return noted;
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

}  // namespace

void NoteFinishedCheckpoint(const std::string& path, Env& env) {
  if (path.find(kTemporary) != std::string::npos) return;
  FinishedCheckpoint finished{.path = path, .finished_ns = env.NowNanos()};
  const std::string name = WithoutStep(path, &finished.step);
  FinishedList& noted = GlobalFinishedList();
  MutexLock lock(noted.mu);
  std::erase_if(noted.list, [&](const FinishedCheckpoint& before) {
    int64_t step = 0;
    return WithoutStep(before.path, &step) == name;
  });
  noted.list.insert(noted.list.begin(), std::move(finished));
  if (noted.list.size() > kPathsMax) noted.list.pop_back();
}

std::vector<FinishedCheckpoint> LastCheckpoints() {
  FinishedList& noted = GlobalFinishedList();
  MutexLock lock(noted.mu);
  return noted.list;
}

}  // namespace penstock
