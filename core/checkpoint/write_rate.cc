// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/write_rate.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

constexpr int64_t kSleepNanosMax = 50'000'000;

// The minimum size of a piece: smaller writes would cost more time than they save other users of
// the disk.
constexpr int64_t kPieceBytesMin = 4096;

}  // namespace

SteadyEnv::SteadyEnv(Env& base, int64_t bytes_per_second, std::function<Status()> check)
    : ForwardingEnv(base),
      bytes_per_second_(bytes_per_second),
      piece_bytes_(std::max(kPieceBytesMin, bytes_per_second / (1'000'000'000 / kSleepNanosMax))),
      check_(std::move(check)) {}

class SteadyEnv::File final : public WritableFile {
 public:
  File(SteadyEnv& env, std::unique_ptr<WritableFile> file) : env_(env), file_(std::move(file)) {}
  Status Append(string_view data) override {
    while (data.size() > env_.piece_bytes_) {
      RETURN_IF_ERROR(AppendPiece(data.substr(0, env_.piece_bytes_)));
      data.remove_prefix(env_.piece_bytes_);
    }
    return AppendPiece(data);
  }
  Status Sync() override { return file_->Sync(); }
  Status Close() override { return file_->Close(); }

 private:
  Status AppendPiece(string_view data) {
    RETURN_IF_ERROR(env_.Wait(data.size()));
    return file_->Append(data);
  }

  SteadyEnv& env_;
  const std::unique_ptr<WritableFile> file_;
};

StatusOr<std::unique_ptr<WritableFile>> SteadyEnv::NewWritableFile(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, ForwardingEnv::NewWritableFile(path));
  return std::make_unique<File>(*this, std::move(file));
}

// Waits until, at the limited rate, the bytes written before would have been written. Then reserves
// the time for `bytes` more.
Status SteadyEnv::Wait(size_t bytes) {
  for (int64_t now = NowNanos(); now < next_ns_; now = NowNanos()) {
    RETURN_IF_ERROR(check_());
    SleepForNanos(std::min(kSleepNanosMax, next_ns_ - now));
  }
  const double nanos = static_cast<double>(bytes) / static_cast<double>(bytes_per_second_) * 1e9;
  next_ns_ = std::max(next_ns_, NowNanos()) + static_cast<int64_t>(nanos);
  return OkStatus();
}

}  // namespace penstock
