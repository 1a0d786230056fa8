// SPDX-License-Identifier: Apache-2.0
//
// Parts of steps, of whatever session, of which one runs at a time:
//
//   const Output mutex = NewMutex(program, "updates", variable.handle());
//   const Outputs locks = Lock(program, {mutex}, /*ready=*/gradients);
//   const auto locked = program.ControlDependencies(locks);
//   ...
//   const Output unlocked = Unlock(program, locks, /*after=*/updates);  // to be run, too
//
// A step that ends, however, holds no lock any more.
#pragma once

#include "client/program.h"

namespace penstock::client {

// Shared by all who give the name, beside `beside`.
Output NewMutex(Program& program, const std::string& name, Output beside);
// Waits for the mutexes, one after the other, when all of `ready` have run; returns as many locks.
// REQUIRES that whoever locks several of them does so in the same order.
Outputs Lock(Program& program, const Outputs& mutexes, const Outputs& ready);
// REQUIRES at least one lock.
Output Unlock(Program& program, const Outputs& locks, const Outputs& after);

// Runs when all of `ready` have, beside `beside`. Behind it a step is no longer cut short on that
// device, whoever dies: what is ready there is run, but for nodes that wait, such as those that
// receive from another device, and nodes of loops (core/runtime/executor.h, "_commit").
Output Commit(Program& program, Output beside, const Outputs& ready);

}  // namespace penstock::client
