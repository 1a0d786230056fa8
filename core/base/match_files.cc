// SPDX-License-Identifier: Apache-2.0
#include "core/base/match_files.h"

#include <fnmatch.h>

#include <algorithm>

#include "absl/strings/str_split.h"
#include "core/base/rooted_env.h"

namespace penstock {
namespace {

bool IsPattern(const std::string& name) { return name.find_first_of("*?[\\") != std::string::npos; }

}  // namespace

// Matches one component of the pattern after another against the existing directories.
std::vector<std::string> MatchFiles(Env& env, const std::string& pattern) {
  const bool absolute = !pattern.empty() && pattern[0] == '/';
  std::vector<std::string> found = {absolute ? "/" : ""};
  const std::vector<std::string> components = absl::StrSplit(pattern, '/', absl::SkipEmpty());
  if (components.empty()) return {};
  for (const std::string& component : components) {
    std::vector<std::string> next;
    for (const std::string& directory : found) {
      const std::string base =
          directory.empty() || directory.back() == '/' ? directory : directory + "/";
      if (!IsPattern(component)) {
        if (env.FileExists(base + component)) next.push_back(base + component);
        continue;
      }
      const auto names = env.ListDirectory(base.empty() ? "." : base);
      if (!names.ok()) continue;
      for (const std::string& name : *names) {
        if (fnmatch(component.c_str(), name.c_str(), 0) == 0) next.push_back(base + name);
      }
    }
    found = std::move(next);
  }
  std::sort(found.begin(), found.end());
  return found;
}

Status CheckPattern(Env& env, const std::string& pattern) {
  const std::string fixed = pattern.substr(0, pattern.find_first_of("*?[\\"));
  const size_t slash = fixed.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : fixed.substr(0, slash + 1);
  const Status listed = env.ListDirectory(folder).status();
  return IsOutsideFileRoot(listed) ? Annotate(listed, StrCat("'", pattern, "'")) : OkStatus();
}

}  // namespace penstock
