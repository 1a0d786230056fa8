// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/process_identity.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace penstock {
namespace {

constexpr char kFirstWord[] = "process";

StatusOr<std::string> ReadLine(Env& env, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, env.ReadFile(path));
  return std::string(absl::StripAsciiWhitespace(text));
}

// Returns host and boot of the machine, or container, of this process.
StatusOr<ProcessIdentity> ThisBoot(Env& env) {
  ProcessIdentity identity;
  ASSIGN_OR_RETURN(identity.host, ReadLine(env, "/proc/sys/kernel/hostname"));
  ASSIGN_OR_RETURN(identity.boot, ReadLine(env, "/proc/sys/kernel/random/boot_id"));
  return identity;
}

// Reads pid and start from /proc/PID/stat; `process` is a pid or "self".
Status ReadStat(Env& env, const std::string& process, ProcessIdentity* identity) {
  constexpr size_t kStart = 19;  // fields between the process's name and its start
  ASSIGN_OR_RETURN(const std::string text, env.ReadFile(StrCat("/proc/", process, "/stat")));
  // The name of the program, in parentheses, may contain spaces and parentheses.
  const size_t name_end = text.rfind(')');
  const std::vector<std::string> before = absl::StrSplit(text, ' ');
  const std::vector<std::string> after =
      name_end == std::string::npos
          ? std::vector<std::string>()
          : absl::StrSplit(text.substr(name_end + 1), ' ', absl::SkipEmpty());
  if (after.size() <= kStart || !absl::SimpleAtoi(before[0], &identity->pid) ||
      !absl::SimpleAtoi(after[kStart], &identity->start)) {
    return Unimplemented("/proc/", process, "/stat has an unknown form");
  }
  return OkStatus();
}

}  // namespace

StatusOr<ProcessIdentity> ProcessIdentity::OfThisProcess(Env& env) {
  ASSIGN_OR_RETURN(ProcessIdentity identity, ThisBoot(env));
  RETURN_IF_ERROR(ReadStat(env, "self", &identity));
  return identity;
}

std::optional<ProcessIdentity> ProcessIdentity::Parse(string_view text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  ProcessIdentity identity;
  if (words.size() != 5 || words[0] != kFirstWord || !absl::SimpleAtoi(words[1], &identity.pid) ||
      !absl::SimpleAtoi(words[2], &identity.start)) {
    return std::nullopt;
  }
  identity.host = words[3];
  identity.boot = words[4];
  return identity;
}

std::string ProcessIdentity::ToString() const {
  return StrCat(kFirstWord, " ", pid, " ", start, " ", host, " ", boot);
}

bool ProcessIdentity::IsOfThisBoot(Env& env) const {
  const StatusOr<ProcessIdentity> here = ThisBoot(env);
  return here.ok() && here->host == host && here->boot == boot;
}

ProcessIdentity::Life ProcessIdentity::LifeNow(Env& env) const {
  const StatusOr<ProcessIdentity> here = ThisBoot(env);
  if (!here.ok() || here->host != host) return Life::kUnknown;
  if (here->boot != boot) return Life::kEnded;
  ProcessIdentity found;
  const Status read = ReadStat(env, StrCat(pid), &found);
  if (absl::IsNotFound(read)) return Life::kEnded;
  if (!read.ok()) return Life::kUnknown;
  return found.start == start ? Life::kRuns : Life::kEnded;
}

}  // namespace penstock
