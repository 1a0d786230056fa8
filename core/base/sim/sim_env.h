// SPDX-License-Identifier: Apache-2.0
//
// SimEnv: the Env that belongs to a SimScheduler: its clock, and random numbers that follow from
// its seed. Files are those of another Env.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/sim/sim_scheduler.h"

namespace penstock {

class SimEnv final : public Env {
 public:
  // Both are borrowed.
  SimEnv(SimScheduler& scheduler, Env& files) : scheduler_(scheduler), files_(files) {}

  int64_t NowNanos() override { return scheduler_.now_ns(); }
  // From 2020-01-01 on.
  int64_t WallMicros() override { return kWallStartMicros + scheduler_.now_ns() / 1'000; }
  void SleepForNanos(int64_t nanos) override { scheduler_.SleepUntil(scheduler_.now_ns() + nanos); }
  uint64_t RandomU64() override { return scheduler_.Random(); }

  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override {
    return files_.NewWritableFile(path);
  }
  StatusOr<std::unique_ptr<RandomAccessFile>> OpenFile(const std::string& path) override {
    return files_.OpenFile(path);
  }
  StatusOr<std::string> ReadFile(const std::string& path) override { return files_.ReadFile(path); }
  bool FileExists(const std::string& path) override { return files_.FileExists(path); }
  StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override {
    return files_.ListDirectory(path);
  }
  Status CreateDirectories(const std::string& path) override {
    return files_.CreateDirectories(path);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return files_.Rename(from, to);
  }
  Status RemoveFile(const std::string& path) override { return files_.RemoveFile(path); }
  Status RemoveDirectory(const std::string& path) override { return files_.RemoveDirectory(path); }
  Status SyncDirectory(const std::string& path) override { return files_.SyncDirectory(path); }

 private:
  static constexpr int64_t kWallStartMicros = int64_t{1'577'836'800} * 1'000'000;

  SimScheduler& scheduler_;
  Env& files_;
};

}  // namespace penstock
