// SPDX-License-Identifier: Apache-2.0
//
// ForwardingEnv: passes every call on to another Env. A class that replaces only the clock or a few
// other calls derives from this class.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/env.h"

namespace penstock {

class ForwardingEnv : public Env {
 public:
  explicit ForwardingEnv(Env& base) : base_(base) {}  // borrowed

  int64_t NowNanos() override { return base_.NowNanos(); }
  int64_t WallMicros() override { return base_.WallMicros(); }
  void SleepForNanos(int64_t nanos) override { base_.SleepForNanos(nanos); }
  uint64_t RandomU64() override { return base_.RandomU64(); }
  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override {
    return base_.NewWritableFile(path);
  }
  StatusOr<std::unique_ptr<RandomAccessFile>> OpenFile(const std::string& path) override {
    return base_.OpenFile(path);
  }
  StatusOr<std::string> ReadFile(const std::string& path) override { return base_.ReadFile(path); }
  bool FileExists(const std::string& path) override { return base_.FileExists(path); }
  StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override {
    return base_.ListDirectory(path);
  }
  Status CreateDirectories(const std::string& path) override {
    return base_.CreateDirectories(path);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return base_.Rename(from, to);
  }
  Status RemoveFile(const std::string& path) override { return base_.RemoveFile(path); }
  Status RemoveDirectory(const std::string& path) override { return base_.RemoveDirectory(path); }
  Status SyncDirectory(const std::string& path) override { return base_.SyncDirectory(path); }

 private:
  Env& base_;
};

}  // namespace penstock
