// SPDX-License-Identifier: Apache-2.0
//
// Held: the threads, descriptors, mappings of shared tensors and memory that a process holds, as
// Linux reports them in /proc.
#pragma once

#include <dirent.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "core/base/check.h"
#include "core/base/status.h"

namespace penstock {

struct Held {
  int64_t threads = 0, descriptors = 0, mappings = 0, bytes = 0;

  static Held By(pid_t process) {
    const std::string folder = StrCat("/proc/", process);
    Held held{.threads = Entries(folder + "/task"), .descriptors = Entries(folder + "/fd")};
    std::ifstream maps(folder + "/maps");
    for (std::string line; std::getline(maps, line);) {
      held.mappings += line.find("penstock-tensors") != std::string::npos;
    }
    std::ifstream statm(folder + "/statm");
    int64_t size = 0, resident = 0, shared = 0;
    statm >> size >> resident >> shared;
    // Pages of shared memory and of files are no heap; `mappings` counts the former.
    held.bytes = (resident - shared) * sysconf(_SC_PAGESIZE);
    return held;
  }

  // Returns whether this is more than `before` by more than `slack`.
  bool Exceeds(const Held& before, const Held& slack) const {
    return threads > before.threads + slack.threads ||
           descriptors > before.descriptors + slack.descriptors ||
           mappings > before.mappings + slack.mappings || bytes > before.bytes + slack.bytes;
  }
  std::string ToString() const {
    return StrCat(threads, " threads, ", descriptors, " descriptors, ", mappings, " mappings, ",
                  bytes >> 20, " MB");
  }

 private:
  static int64_t Entries(const std::string& path) {
    DIR* const folder = opendir(path.c_str());
    CHECK(folder != nullptr, path);
    int64_t count = 0;
    while (readdir(folder) != nullptr) ++count;
    closedir(folder);
    return count;
  }
};

}  // namespace penstock
