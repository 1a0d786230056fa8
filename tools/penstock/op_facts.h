// SPDX-License-Identifier: Apache-2.0
//
// Describes an op of the registry in words, for `penstock ops OP` and for the page of `penstock ops
// --html`.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/op/registry.h"

namespace penstock {

// One line about an input, an output or an attribute: "x", "Ref(T)", "The variable to update."
struct OpFact {
  std::string name;
  std::string type;  // for an attribute: its type, allowed values and default
  std::string doc;   // may be empty
};

struct OpFacts {
  std::vector<OpFact> inputs, outputs, attributes;
  // The types of the op's kernels by device: {"CPU", {"float", "double"}}; "any" if kernels do not
  // depend on types.
  std::map<std::string, std::set<std::string>> kernels;
  bool gradient = false;
};

OpFacts FactsOf(const Registry& registry, const OpDef& op);

// Returns only the kernels of FactsOf.
std::map<std::string, std::set<std::string>> KernelTypes(const Registry& registry, const OpDef& op);

}  // namespace penstock
