// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/record_mixer.h"

#include <algorithm>
#include <utility>

#include "core/base/match_files.h"

namespace penstock {
namespace {

// Returns a random number below `n`.
size_t Below(size_t n, Philox& random) {
  const Philox::Block block = random();
  return (uint64_t{block[0]} << 32 | block[1]) % n;
}

}  // namespace

Status RecordMixer::Take(int64_t count, std::string* records, Check check) {
  ++waiting_;
  MutexLock lock(mu_);
  --waiting_;
  for (int64_t i = 0; i < count && error_.ok(); ++i) {
    const Status status = TakeOne(&records[i], check);
    RETURN_IF_ERROR(check());
    error_ = status;
  }
  return error_;
}

void RecordMixer::Fill() {
  std::string record;
  while (waiting_ == 0) {
    MutexLock lock(mu_);
    if (!error_.ok() || std::ssize(records_ahead_) >= options_.buffer_max - window_max()) return;
    const auto found = Read(&record);
    if (!found.ok() || !*found) return;
    records_ahead_.push_back(std::move(record));
  }
}

Status RecordMixer::TakeOne(std::string* record, Check check) {
  RETURN_IF_ERROR(Refill(check));
  if (window_.empty()) {
    RETURN_IF_ERROR(BeginEpoch());
    RETURN_IF_ERROR(Refill(check));
  }
  if (window_.empty()) {
    return InvalidArgument("the files of file_pattern '", options_.pattern, "' have no records");
  }
  std::swap(window_[Below(window_.size(), random_)], window_.back());
  *record = std::move(window_.back());
  window_.pop_back();
  return OkStatus();
}

// Lists and shuffles the files of the next epoch. Lists them anew, because some may have been added
// since the last epoch. NotFound if there is none.
Status RecordMixer::BeginEpoch() {
  files_left_ = MatchFiles(files_, options_.pattern);
  if (files_left_.empty()) {
    RETURN_IF_ERROR(CheckPattern(files_, options_.pattern));
    return NotFound("no file matches file_pattern '", options_.pattern, "'");
  }
  Philox order = Philox::FromSeeds(options_.seed, static_cast<uint64_t>(++epoch_));
  // Does not use std::shuffle, because its result depends on the library.
  for (size_t i = files_left_.size() - 1; i > 0; --i)
    std::swap(files_left_[i], files_left_[Below(i + 1, order)]);
  const auto shift =
      static_cast<int64_t>(options_.shift_ratio * static_cast<double>(files_left_.size()));
  std::rotate(files_left_.begin(), files_left_.begin() + shift, files_left_.end());
  std::reverse(files_left_.begin(), files_left_.end());
  return OkStatus();
}

Status RecordMixer::Refill(Check check) {
  while (std::ssize(window_) < window_max()) {
    RETURN_IF_ERROR(check());
    std::string record;
    if (!records_ahead_.empty()) {
      record = std::move(records_ahead_.front());
      records_ahead_.pop_front();
    } else {
      ASSIGN_OR_RETURN(const bool found, Read(&record));
      if (!found) return OkStatus();
    }
    window_.push_back(std::move(record));
  }
  return OkStatus();
}

StatusOr<bool> RecordMixer::Read(std::string* record) {
  for (;;) {
    while (std::ssize(readers_) < options_.readers_max && !files_left_.empty()) {
      ASSIGN_OR_RETURN(RecordReader reader,
                       RecordReader::Open(files_, files_left_.back(), options_.compression));
      readers_.push_back(std::move(reader));
      files_left_.pop_back();
    }
    if (readers_.empty()) return false;
    next_reader_ %= readers_.size();
    ASSIGN_OR_RETURN(const bool found, readers_[next_reader_].Read(record));
    if (found) {
      ++next_reader_;
      return true;
    }
    readers_.erase(readers_.begin() + static_cast<int64_t>(next_reader_));
  }
}

}  // namespace penstock
