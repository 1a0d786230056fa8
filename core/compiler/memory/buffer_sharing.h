// SPDX-License-Identifier: Apache-2.0
//
// SharingOf: tells whether an output of a node has memory of its own, or uses the memory of an
// input, a variable or a constant.
#pragma once

#include "core/graph/graph.h"

namespace penstock {

struct Sharing {
  enum class Kind {
    kNew,   // memory of its own
    kView,  // the memory of input `input`, unchanged
    // Writes into the memory of input `input` (-1: of any input), if nothing else needs that
    // memory, and type and size are the same; else into memory of its own.
    kReuses,
    kState,         // a view of, or a reference to, the variable of input `input`: no memory
    kOutlivesStep,  // lives longer than the step: constants, handles
  };
  Kind kind = Kind::kNew;
  int input = 0;
};

Sharing SharingOf(const Node& node, int output);

// Returns whether the node changes the state to which its input `input`, a reference or a handle,
// refers.
bool Updates(const Node& node, int input);

}  // namespace penstock
