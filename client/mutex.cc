// SPDX-License-Identifier: Apache-2.0
#include "client/mutex.h"

namespace penstock::client {

Output NewMutex(Program& program, const std::string& name, Output beside) {
  const auto unordered = program.ClearControlDependencies();
  const auto here = program.ColocateWith(beside);
  return CallIn(program, "MutexV2", {}, {{"shared_name", name}}, name);
}

Output Lock(Program& program, Output mutex, const Outputs& ready) {
  const auto here = program.ColocateWith(mutex);
  const auto after = program.ControlDependencies(ready);
  return CallIn(program, "MutexLock", {mutex});
}

Output Unlock(Program& program, Output lock, const Outputs& after) {
  const auto here = program.ColocateWith(lock);
  const auto last = program.ControlDependencies(after);
  return CallIn(program, "ConsumeMutexLock", {lock});
}

Output Commit(Program& program, Output beside) {
  const auto here = program.ColocateWith(beside);
  return CallIn(program, "NoOp", {}, {{"_commit", true}}, "commit");
}

}  // namespace penstock::client
