// SPDX-License-Identifier: Apache-2.0
#include "core/op/device_name.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace penstock {

namespace {

bool IsIdentifier(string_view text) {
  if (text.empty() || !absl::ascii_isalpha(text[0])) return false;
  for (char c : text) {
    if (!absl::ascii_isalnum(c) && c != '_') return false;
  }
  return true;
}

// Parses a device name, one component after another.
class Parser {
 public:
  explicit Parser(string_view text) : text_(text) {}

  StatusOr<DeviceName> Parse() {
    for (string_view part : absl::StrSplit(text_, '/', absl::SkipEmpty())) {
      RETURN_IF_ERROR(ParsePart(part));
    }
    return name_;
  }

 private:
  Status ParsePart(string_view part) {
    const std::vector<string_view> words = absl::StrSplit(part, ':');
    const string_view key = words[0];
    if (key == "job" && words.size() == 2) return SetText(part, words[1], &name_.job);
    if (key == "replica" && words.size() == 2) return SetNumber(part, words[1], &name_.replica);
    if (key == "task" && words.size() == 2) return SetNumber(part, words[1], &name_.task);
    if (key == "device" && (words.size() == 2 || words.size() == 3)) {
      return ParseDevice(part, words[1], words.size() == 3 ? words[2] : "*");
    }
    const std::string type = absl::AsciiStrToUpper(key);
    if (words.size() <= 2 && (type == "CPU" || type == "GPU")) {
      return ParseDevice(part, type, words.size() == 2 ? words[1] : "*");
    }
    return Error(part, "expected job:NAME, replica:N, task:N or device:TYPE:N");
  }

  Status ParseDevice(string_view part, string_view type, string_view index) {
    if (name_.type || name_.index) return Error(part, "a device is given twice");
    RETURN_IF_ERROR(SetText(part, absl::AsciiStrToUpper(type), &name_.type));
    return SetNumber(part, index, &name_.index);
  }

  Status SetText(string_view part, string_view value, std::optional<std::string>* to) {
    if (*to) return Error(part, "given twice");
    if (value == "*") return OkStatus();
    if (!IsIdentifier(value)) {
      return Error(part, "a name has letters, digits and '_' and begins with a letter");
    }
    *to = std::string(value);
    return OkStatus();
  }

  Status SetNumber(string_view part, string_view value, std::optional<int>* to) {
    if (*to) return Error(part, "given twice");
    if (value == "*") return OkStatus();
    int number = 0;
    const bool digits = !value.empty() && absl::ascii_isdigit(value[0]);
    if (!digits || !absl::SimpleAtoi(value, &number)) return Error(part, "expected a number or *");
    *to = number;
    return OkStatus();
  }

  Status Error(string_view part, string_view what) const {
    return InvalidArgument("device '", text_, "': in '", part, "': ", what);
  }

  string_view text_;
  DeviceName name_;
};

// Combines `a` and `b`; returns false if they contradict each other.
template <class T>
bool MergeComponent(const std::optional<T>& a, const std::optional<T>& b, std::optional<T>* both) {
  *both = a ? a : b;
  return !a || !b || *a == *b;
}

template <class T>
bool ComponentMatches(const std::optional<T>& part, const std::optional<T>& full) {
  return !part || part == full;
}

}  // namespace

StatusOr<DeviceName> DeviceName::Parse(string_view text) { return Parser(text).Parse(); }

std::string DeviceName::ToString() const {
  std::string text;
  if (job) StrAppend(&text, "/job:", *job);
  if (replica) StrAppend(&text, "/replica:", *replica);
  if (task) StrAppend(&text, "/task:", *task);
  if (!type && !index) return text;
  StrAppend(&text, "/device:", type ? *type : "*", ":");
  if (index) {
    StrAppend(&text, *index);
  } else {
    StrAppend(&text, "*");
  }
  return text;
}

bool DeviceName::Matches(const DeviceName& full_name) const {
  return ComponentMatches(job, full_name.job) && ComponentMatches(replica, full_name.replica) &&
         ComponentMatches(task, full_name.task) && ComponentMatches(type, full_name.type) &&
         ComponentMatches(index, full_name.index);
}

StatusOr<DeviceName> DeviceName::Merge(const DeviceName& other, bool soft) const {
  DeviceName both;
  const bool same_task = MergeComponent(job, other.job, &both.job) &&
                         MergeComponent(replica, other.replica, &both.replica) &&
                         MergeComponent(task, other.task, &both.task);
  const bool same_type = MergeComponent(type, other.type, &both.type);
  const bool same_index = MergeComponent(index, other.index, &both.index);
  if (!same_task || (!soft && !(same_type && same_index))) {
    return InvalidArgument("device '", ToString(), "' contradicts device '", other.ToString(), "'");
  }
  if (!same_type) both.type.reset();
  if (!same_type || !same_index) both.index.reset();
  return both;
}

DeviceName DeviceName::Task() const { return {.job = job, .replica = replica, .task = task}; }

bool DeviceName::SameTask(const DeviceName& other) const {
  return job == other.job && replica == other.replica && task == other.task;
}

DeviceRates DefaultRates(string_view type) {
  if (type != "GPU") return {};
  return {.flops_per_ns = 5000, .bytes_per_ns = 1000, .launch_ns = 5000};
}

}  // namespace penstock
