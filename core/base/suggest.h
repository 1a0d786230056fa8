// SPDX-License-Identifier: Apache-2.0
//
// Suggestions for errors about an unknown name.
//
// Files of low layers declare the function themselves instead of including this header, because all
// compilations above them would depend on it.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock {

// Returns "; did you mean 'a' or 'b'?", to append to an error about `name`. Suggests up to three
// names of `known`, nearest first. A name is near if it differs in at most a third of the letters,
// or in two letters if that is more, but never in more than half of them. Case does not count.
// Returns "" if there is none, or if `name` has more than 100 bytes. Only the first 20,000 of
// `known` are compared.
std::string SuggestNames(string_view name, const std::vector<string_view>& known);

}  // namespace penstock
