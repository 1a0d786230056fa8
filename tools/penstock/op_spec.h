// SPDX-License-Identifier: Apache-2.0
//
// OpSpec: an op's signature in the spelling of TensorFlow's op registration, for programs that
// register the op in TensorFlow (tools/tf_ops.py).
#pragma once

#include <nlohmann/json.hpp>

#include "core/op/op_def.h"

namespace penstock {

// Returns the op as
// {"name": "Triple", "doc": "...", "stateful": false, "gradient": true, "inputs": ["x: T"],
//  "outputs": ["y: T"], "attrs": ["T: {float, double}", "scale: float = 1"]}. Defaults that
// TensorFlow's spelling cannot express (a tensor, a function) are left out.
nlohmann::json OpSpec(const OpDef& op);

}  // namespace penstock
