// SPDX-License-Identifier: Apache-2.0
//
// OpSpec: an op's signature as TensorFlow spells it when ops are registered, for programs that tell
// TensorFlow about ops that it lacks (tools/tf_ops.py).
#pragma once

#include <nlohmann/json.hpp>

#include "core/op/op_def.h"

namespace penstock {

// {"name": "Triple", "doc": "...", "stateful": false, "gradient": true, "inputs": ["x: T"],
//  "outputs": ["y: T"], "attrs": ["T: {float, double}", "scale: float = 1"]}. An attribute's
// default that TensorFlow's spelling has no room for (a tensor, a function) is left out.
nlohmann::json OpSpec(const OpDef& op);

}  // namespace penstock
