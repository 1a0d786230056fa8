// SPDX-License-Identifier: Apache-2.0
//
// FindUnsavedStream: finds random ops that a resumed training cannot repeat.
#pragma once

#include <string>

#include "client/program.h"

namespace penstock::client {

// Returns a text such as "'dropout/RandomUniform' (RandomUniform)" that names a node which `train`
// runs and whose kernel keeps its position in a stream of random numbers; "" if there is none. Such
// a position is lost with the session. Does not look into functions that kernels call.
std::string FindUnsavedStream(const Program& program, Output train);

}  // namespace penstock::client
