// SPDX-License-Identifier: Apache-2.0
//
// Writes one C++ function per op of a registry. Inputs and required attributes become arguments;
// optional attributes become fields of an options struct; several outputs become fields of a result
// struct.
//
//   Output MatMul(Output a, Output b, const MatMulOptions& options = {});
//
// Deterministic. Leaves out ops whose names begin with "_", which only the runtime uses.
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
