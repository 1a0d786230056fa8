// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/op/task_name.h"

namespace penstock {

std::string AgeText(int64_t ms) {
  constexpr int64_t kSecond = 1'000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
  if (ms < kSecond) return absl::StrCat(ms, " ms");
  if (ms < 2 * kMinute) return absl::StrCat(ms / kSecond, " s");
  if (ms < 2 * kHour) return absl::StrCat(ms / kMinute, " min");
  if (ms < 48 * kHour) return absl::StrCat(ms / kHour, " h");
  return absl::StrCat(ms / (24 * kHour), " days");
}

std::string ForText(int64_t ms) { return ms < 0 ? "" : absl::StrCat(", for ", AgeText(ms)); }

std::string BytesText(int64_t bytes) {
  const char* const units[] = {"B", "KB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 999.5 && unit < 4) {
    value /= 1000;
    ++unit;
  }
  return absl::StrFormat(unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

std::string TaskOfDevice(const std::string& device) {
  const StatusOr<TaskName> task = TaskName::OfDevice(device);
  return task.ok() ? task->ToString() : device;
}

std::string StepText(uint64_t step_id) {
  return absl::StrCat("step ", static_cast<int64_t>(step_id));
}

}  // namespace penstock
