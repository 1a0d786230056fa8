// SPDX-License-Identifier: Apache-2.0
//
// Writes one C++ function per op of a registry: inputs and required attributes are arguments,
// optional attributes the fields of a struct, several outputs a struct with their names.
//
//   Output MatMul(Output a, Output b, const MatMulOptions& options = {});
//
// Deterministic. Ops whose names begin with "_" are the runtime's own and are left out.
#pragma once

#include <string>

#include "core/op/registry.h"

namespace penstock::client {

struct GeneratedOps {
  std::string header;  // declarations, with the ops' documentation
  std::string source;  // definitions; includes the header as `include`
};
GeneratedOps GenerateOps(const Registry& registry, const std::string& include);

}  // namespace penstock::client
