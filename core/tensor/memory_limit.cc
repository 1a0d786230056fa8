// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/tensor/huge_pages.h"

namespace penstock {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// Returns the number in a file of one line; kNone for "max", or if there is no such file.
int64_t LimitIn(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  int64_t limit = 0;
  if (!std::getline(file, line) || !absl::SimpleAtoi(line, &limit) || limit <= 0) return kNone;
  return limit;
}

// Returns the lowest limit of the group `path` ("/a/b") and the groups above it. In a container,
// `path` may be the path on the host, of which the container sees only the last group, at the top
// of `mount`; so this function always reads the limit there, too.
int64_t LimitOfGroups(const std::string& mount, std::string path, const std::string& file) {
  int64_t limit = LimitIn(absl::StrCat(mount, "/", file));
  for (; path.size() > 1; path.resize(path.rfind('/'))) {
    limit = std::min(limit, LimitIn(absl::StrCat(mount, path, "/", file)));
  }
  return limit;
}

// Returns the lowest limit of the process's control groups. Lines of /proc/self/cgroup are
// "4:memory:/path" for version 1, "0::/path" for version 2.
int64_t ControlGroupLimit(const std::string& root) {
  std::ifstream groups(absl::StrCat(root, "/proc/self/cgroup"));
  int64_t limit = kNone;
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3 || parts[2].empty() || parts[2][0] != '/') continue;
    const std::vector<std::string> kinds = absl::StrSplit(parts[1], ',');
    if (parts[1].empty()) {
      const std::string mount = absl::StrCat(root, "/sys/fs/cgroup");
      limit = std::min(limit, LimitOfGroups(mount, parts[2], "memory.max"));
    } else if (std::find(kinds.begin(), kinds.end(), "memory") != kinds.end()) {
      const std::string mount = absl::StrCat(root, "/sys/fs/cgroup/memory");
      limit = std::min(limit, LimitOfGroups(mount, parts[2], "memory.limit_in_bytes"));
    }
  }
  return limit;
}

int64_t ResourceLimit(int resource) {
  rlimit limit;
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return kNone;
  return limit.rlim_cur >= static_cast<rlim_t>(kNone) ? kNone
                                                      : static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

int64_t AvailableMemoryBytes(const std::string& root) {
  const int64_t machine = static_cast<int64_t>(MachineMemoryBytes());
  return std::min(
      {machine, ControlGroupLimit(root), ResourceLimit(RLIMIT_AS), ResourceLimit(RLIMIT_DATA)});
}

int64_t DefaultMemoryLimitOf(int64_t available_bytes) {
  const int64_t reserve = std::clamp(available_bytes / 8, int64_t{64} << 20, int64_t{2} << 30);
  return std::max(available_bytes - reserve, available_bytes / 2);
}

int64_t DefaultMemoryLimit() { return DefaultMemoryLimitOf(AvailableMemoryBytes()); }

}  // namespace penstock
