// SPDX-License-Identifier: Apache-2.0
//
// Parts of steps, of whatever session, of which one runs at a time:
//
//   const Output mutex = NewMutex(program, "updates", variable.handle());
//   const Output lock = Lock(program, mutex, /*ready=*/gradients);
//   const auto locked = program.ControlDependencies({lock});
//   ...
//   const Output unlocked = Unlock(program, lock, /*after=*/updates);  // to be run, too
//
// A step that ends, however, holds no lock any more.
#pragma once

#include "client/program.h"

namespace penstock::client {

// Shared by all who give the name, beside `beside`.
Output NewMutex(Program& program, const std::string& name, Output beside);
// Waits for the mutex when all of `ready` have run.
Output Lock(Program& program, Output mutex, const Outputs& ready);
Output Unlock(Program& program, Output lock, const Outputs& after);

// An op, beside `beside`, behind which a step is no longer cut short in that task, whoever dies:
// what is ready there is run (core/runtime/executor.h, "_commit").
Output Commit(Program& program, Output beside);

}  // namespace penstock::client
