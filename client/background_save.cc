// SPDX-License-Identifier: Apache-2.0
#include "client/background_save.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::client {

BackgroundSave::BackgroundSave(Saver& saver, Session& session, std::string prefix,
                               TakeSnapshot take_snapshot, Env& env, Scheduler& scheduler)
    : saver_(saver),
      session_(session),
      prefix_(std::move(prefix)),
      name_(StrCat("snapshot_", absl::Hex(env.RandomU64()))),
      take_snapshot_(std::move(take_snapshot)),
      scheduler_(scheduler),
      result_(std::string()) {
  if (!saver_.copies_ahead()) {
    TakeSnapshotNow();
    return;
  }
  Start([this]() -> StatusOr<std::string> {
    RETURN_IF_ERROR(saver_.CopyAhead(session_, name_, {.cancellation = &cancellation_}));
    return std::string();
  });
}

BackgroundSave::~BackgroundSave() {
  if (stage_ != Stage::kEnded) cancellation_.Cancel(Cancelled("the save was given up"));
}

void BackgroundSave::Start(std::function<StatusOr<std::string>()> work) {
  done_.store(false);
  thread_ = scheduler_.StartThread("save", [this, work = std::move(work)] {
    result_ = work();
    done_.store(true, std::memory_order_release);
  });
}

void BackgroundSave::TakeSnapshotNow() {
  const StatusOr<int64_t> step = take_snapshot_(name_, {.cancellation = &cancellation_});
  if (!step.ok()) {
    stage_ = Stage::kEnded;
    result_ = step.status();
    return;
  }
  stage_ = Stage::kWriting;
  step_ = *step;
  Start([this] {
    return saver_.SaveSnapshot(session_, name_, prefix_, step_, {.cancellation = &cancellation_});
  });
}

bool BackgroundSave::Advance() {
  if (stage_ != Stage::kEnded && done_.load(std::memory_order_acquire)) {
    thread_ = nullptr;
    if (stage_ == Stage::kCopying && result_.ok()) {
      TakeSnapshotNow();
    } else {
      stage_ = Stage::kEnded;
    }
  }
  return stage_ == Stage::kEnded;
}

StatusOr<std::string> BackgroundSave::Wait() {
  while (!Advance()) thread_ = nullptr;
  return result_;
}

}  // namespace penstock::client
