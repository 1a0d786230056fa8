// SPDX-License-Identifier: Apache-2.0
#include "client/mutex.h"

#include "client/device_setter.h"
#include "client/ops/line_scope.h"
#include "core/op/private_attrs.h"

namespace penstock::client {

Output NewMutex(Program& program, const std::string& name, Output beside, SourceLine line) {
  const CallerLine source(program, line);
  const auto unordered = program.ClearControlDependencies();
  const auto device_scope = program.ColocateWith(beside);
  return CallIn(program, "MutexV2", {}, {{"shared_name", name}}, name);
}

std::map<std::string, Outputs> MutexesByHost(const Program& program, const Outputs& mutexes) {
  std::map<std::string, Outputs> by_host;
  for (const Output& mutex : mutexes) {
    if (!mutex.valid()) continue;
    by_host[HostOf(program.NodeOf(mutex)->requested_device())].push_back(mutex);
  }
  return by_host;
}

Outputs Lock(Program& program, const Outputs& mutexes, const Outputs& ready, SourceLine line) {
  const CallerLine source(program, line);
  Outputs locks;
  for (const Output& mutex : mutexes) {
    const auto device_scope = program.ColocateWith(mutex);
    const auto after = program.ControlDependencies(locks.empty() ? ready : Outputs{locks.back()});
    locks.push_back(CallIn(program, "MutexLock", {mutex}));
  }
  return locks;
}

Output Unlock(Program& program, const Outputs& locks, const Outputs& after, SourceLine line) {
  const CallerLine source(program, line);
  const auto last = program.ControlDependencies({program.Group(after, "done", locks[0])});
  Outputs unlocked;
  for (const Output& lock : locks) {
    const auto device_scope = program.ColocateWith(lock);
    unlocked.push_back(CallIn(program, "ConsumeMutexLock", {lock}));
  }
  return program.Group(unlocked, "unlocked", locks[0]);
}

Output Commit(Program& program, Output beside, const Outputs& ready, SourceLine line) {
  const CallerLine source(program, line);
  const auto device_scope = program.ColocateWith(beside);
  const auto after = program.ControlDependencies(ready);
  return CallIn(program, "NoOp", {}, {{kCommitAttr, true}}, "commit");
}

}  // namespace penstock::client
