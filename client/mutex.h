// SPDX-License-Identifier: Apache-2.0
//
// Mutexes for parts of steps, called sections: at any time only one step, of all sessions, is in a
// section of a given mutex:
//
//   const Output mutex = NewMutex(program, "updates", variable.handle());
//   const Outputs locks = Lock(program, {mutex}, /*ready=*/gradients);
//   const auto locked = program.ControlDependencies(locks);
//   ...
//   const Output unlocked = Unlock(program, locks, /*after=*/updates);  // to be run, too
//
// A step's locks are released when it ends, also if it fails. After a Commit, the step is no longer
// cancelled on a device, so that an update there is not cut off. Errors of the nodes name the line
// of the call.
#pragma once

#include <map>
#include <string>

#include "client/program.h"

namespace penstock::client {

// Returns the mutex of this name on the device of `beside`. All programs that use the name share
// it.
Output NewMutex(Program& program, const std::string& name, Output beside,
                SourceLine line = {__builtin_FILE(), __builtin_LINE()});
// Returns the mutexes by their hosts (HostOf), in the given order. Omits mutexes that are not
// valid, because then the program has an error.
std::map<std::string, Outputs> MutexesByHost(const Program& program, const Outputs& mutexes);
// Adds an op that waits until all of `ready` have run, and then locks the mutexes one after the
// other. Returns one lock per mutex. REQUIRES: all callers lock several mutexes in the same order.
Outputs Lock(Program& program, const Outputs& mutexes, const Outputs& ready,
             SourceLine line = {__builtin_FILE(), __builtin_LINE()});
// Returns an op that releases `locks` when all of `after` have run. REQUIRES: at least one lock.
Output Unlock(Program& program, const Outputs& locks, const Outputs& after,
              SourceLine line = {__builtin_FILE(), __builtin_LINE()});

// Returns an op on the device of `beside` that runs when all of `ready` have run. After it, the
// step is no longer cancelled on that device, even if another task dies: ready nodes still run,
// except for nodes that wait, such as receives from another device, and nodes of loops
// (core/runtime/executor.h, "_commit").
Output Commit(Program& program, Output beside, const Outputs& ready,
              SourceLine line = {__builtin_FILE(), __builtin_LINE()});

}  // namespace penstock::client
