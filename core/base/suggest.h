// SPDX-License-Identifier: Apache-2.0
//
// Suggestions for errors about an unknown name.
//
// Files of widely used libraries, such as core/op/registry.cc, declare the function themselves: if
// they included this header, all compilations that depend on the library would depend on it.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock {

// Returns "; did you mean 'a' or 'b'?", to append to an error about `name`. Suggests up to three
// names of `known`, nearest first. A name is near if it differs in at most a third of the letters,
// or in two letters if that is more, but never in more than half of them. Ignores case. Returns ""
// if no name is near, or if `name` has more than 100 bytes. Compares only the first 20,000 names of
// `known`.
std::string SuggestNames(string_view name, const std::vector<string_view>& known);

}  // namespace penstock
