// SPDX-License-Identifier: Apache-2.0
//
// SharingOf: whether an output of a node has memory of its own, or that of an input, a variable or
// a constant.
#pragma once

#include "core/graph/graph.h"

namespace penstock {

struct Sharing {
  enum class Kind {
    kNew,   // memory of its own
    kView,  // the memory of input `input`, unchanged
    // Writes into the memory of input `input`, -1: any, if nothing else needs it and its type and
    // size fit.
    kReuses,
    kState,  // a view of the variable behind input `input`, or a reference to it: no memory
    kKept,   // lives longer than the step: constants, handles
  };
  Kind kind = Kind::kNew;
  int input = 0;
};

Sharing SharingOf(const Node& node, int output);

// Whether the node changes the state behind its input `input`, which is a reference or a handle.
bool Updates(const Node& node, int input);

}  // namespace penstock
