// SPDX-License-Identifier: Apache-2.0
//
// Spells the types and texts of attributes as in TensorFlow's op registration.
#pragma once

#include <string>

#include "core/op/op_def.h"

namespace penstock {

// Returns "int >= 1", "{'SAME', 'VALID'}", "list(float)" and so on.
std::string SpellKind(const AttrDef::Kind& kind);

// Returns "{float, double}"; "type" if `allowed` is empty, which means any type.
std::string SpellTypes(const DTypes& allowed);

// Returns the text in quotes, escaped: "'SAME'".
std::string SpellText(const std::string& text);

}  // namespace penstock
