// SPDX-License-Identifier: Apache-2.0
#include "client/examples/serving_workers.h"

#include <iterator>

#include "core/base/env.h"
#include "distributed/rpc/server.h"

namespace penstock::examples {

std::map<std::string, Status> ShutdownTasks(const std::set<std::string>& addresses,
                                            const ShutdownTimes& times) {
  Env& env = Env::Real();
  const int64_t end_ns = env.NowNanos() + times.retry_ns;
  std::map<std::string, Status> left;
  for (const std::string& address : addresses) {
    Status told = ShutdownTask(address, "training has ended", times.call_ms);
    if (!told.ok()) left.emplace(address, std::move(told));
  }
  while (!left.empty() && env.NowNanos() < end_ns) {
    env.SleepForNanos(times.pause_ns);
    for (auto task = left.begin(); task != left.end() && env.NowNanos() < end_ns;) {
      task->second = ShutdownTask(task->first, "training has ended", times.call_ms);
      task = task->second.ok() ? left.erase(task) : std::next(task);
    }
  }
  return left;
}

}  // namespace penstock::examples
