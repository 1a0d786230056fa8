// SPDX-License-Identifier: Apache-2.0
//
// SharingOf: returns whether an output of a node has memory of its own, or uses the memory of an
// input, a variable or a constant. Updates: returns whether a node changes a variable or other
// state.
#pragma once

#include "core/graph/graph.h"

namespace penstock {

struct Sharing {
  enum class Kind {
    kNew,   // memory of its own
    kView,  // the memory of input `input`, unchanged; -1: of any one input (Merge)
    // The kernel writes the output into the memory of input `input` (-1: any input) if nothing else
    // needs that memory, and type and size are the same; else into new memory.
    kReuses,
    kState,         // a view of, or a reference to, the variable of input `input`: no new memory
    kOutlivesStep,  // memory that lives longer than the step: constants, handles
  };
  Kind kind = Kind::kNew;
  int input = 0;
};

Sharing SharingOf(const Node& node, int output);

// Returns whether the node changes the state to which its input `input`, a reference or a handle,
// refers.
bool Updates(const Node& node, int input);

}  // namespace penstock
