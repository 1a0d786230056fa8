// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/process_identity.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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

// Returns the name of this process's PID namespace, such as "pid:[4026531836]".
StatusOr<std::string> PidNamespace() {
  constexpr char kPath[] = "/proc/self/ns/pid";
  char name[64];
  const ssize_t length = readlink(kPath, name, sizeof name);
  if (length < 0) return Unimplemented(kPath, ": ", std::strerror(errno));
  return std::string(name, length);
}

// A process as /proc/PID/stat shows it.
struct ProcessStat {
  int64_t pid = 0, start = 0, threads = 0;
  std::string state;
  // Returns whether the process has ended, and waits only until its parent notes that. A process
  // also has the state "Z" if its first thread has ended but others run.
  bool has_ended() const { return (state == "Z" || state == "X") && threads <= 1; }
};

// Reads /proc/PID/stat; `process` is a pid or "self".
StatusOr<ProcessStat> ReadStat(Env& env, const std::string& process) {
  // Indices of fields after the process's name.
  constexpr size_t kState = 0, kThreads = 17, kStart = 19;
  ASSIGN_OR_RETURN(const std::string text, env.ReadFile(StrCat("/proc/", process, "/stat")));
  // The name of the program, in parentheses, may contain spaces and parentheses.
  const size_t name_end = text.rfind(')');
  const std::vector<std::string> before = absl::StrSplit(text, ' ');
  const std::vector<std::string> after =
      name_end == std::string::npos
          ? std::vector<std::string>()
          : absl::StrSplit(text.substr(name_end + 1), ' ', absl::SkipEmpty());
  ProcessStat stat;
  if (after.size() <= kStart || !absl::SimpleAtoi(before[0], &stat.pid) ||
      !absl::SimpleAtoi(after[kThreads], &stat.threads) ||
      !absl::SimpleAtoi(after[kStart], &stat.start)) {
    return Unimplemented("/proc/", process, "/stat has an unknown form");
  }
  stat.state = after[kState];
  return stat;
}

// Returns whether no process has this pid. In /proc, the processes of other users may be missing.
bool IsUnused(int64_t pid) { return kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH; }

}  // namespace

StatusOr<ProcessIdentity> ProcessIdentity::OfThisProcess(Env& env) {
  ProcessIdentity identity;
  ASSIGN_OR_RETURN(identity.host, ReadLine(env, "/proc/sys/kernel/hostname"));
  ASSIGN_OR_RETURN(identity.boot, ReadLine(env, "/proc/sys/kernel/random/boot_id"));
  ASSIGN_OR_RETURN(identity.pid_namespace, PidNamespace());
  ASSIGN_OR_RETURN(const ProcessStat stat, ReadStat(env, "self"));
  if (stat.pid != getpid()) return Unimplemented("/proc shows another PID namespace");
  identity.pid = stat.pid;
  identity.start = stat.start;
  return identity;
}

std::optional<ProcessIdentity> ProcessIdentity::Parse(string_view text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  ProcessIdentity identity;
  if (words.size() != 6 || words[0] != kFirstWord || !absl::SimpleAtoi(words[1], &identity.pid) ||
      !absl::SimpleAtoi(words[2], &identity.start)) {
    return std::nullopt;
  }
  identity.host = words[3];
  identity.boot = words[4];
  identity.pid_namespace = words[5];
  return identity;
}

std::string ProcessIdentity::ToString() const {
  return StrCat(kFirstWord, " ", pid, " ", start, " ", host, " ", boot, " ", pid_namespace);
}

bool ProcessIdentity::IsOfThisBoot(Env& env) const {
  const StatusOr<ProcessIdentity> here = OfThisProcess(env);
  return here.ok() && here->host == host && here->boot == boot;
}

ProcessIdentity::Life ProcessIdentity::LifeNow(Env& env) const {
  const StatusOr<ProcessIdentity> here = OfThisProcess(env);
  if (!here.ok() || here->host != host) return Life::kUnknown;
  if (here->boot != boot) return Life::kEnded;
  if (here->pid_namespace != pid_namespace) return Life::kUnknown;
  const StatusOr<ProcessStat> found = ReadStat(env, StrCat(pid));
  if (absl::IsNotFound(found.status()) && IsUnused(pid)) return Life::kEnded;
  if (!found.ok()) return Life::kUnknown;
  return found->start == start && !found->has_ended() ? Life::kRuns : Life::kEnded;
}

}  // namespace penstock
