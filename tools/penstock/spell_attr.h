// SPDX-License-Identifier: Apache-2.0
//
// SpellKind: says what an attribute may be, as TensorFlow spells it when ops are registered.
#pragma once

#include <string>

#include "core/op/op_def.h"

namespace penstock {

// "int >= 1", "{'SAME', 'VALID'}", "list(float)".
std::string SpellKind(const AttrDef::Kind& kind);

// "{float, double}"; "type" if `allowed` is empty, which means any.
std::string SpellTypes(const DTypes& allowed);

// The text in quotes, escaped: "'SAME'".
std::string SpellText(const std::string& text);

}  // namespace penstock
