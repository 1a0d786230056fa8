// SPDX-License-Identifier: Apache-2.0
//
// An op in words, from the registry: the source of `penstock ops OP` and of the page of
// `penstock ops --html`.
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
  std::string type;  // of an attribute: what it may be, and its default value
  std::string doc;   // may be empty
};

struct OpFacts {
  std::vector<OpFact> inputs, outputs, attributes;
  // The types of its kernels by device: {"CPU", {"float", "double"}}; "any" where kernels do not
  // ask.
  std::map<std::string, std::set<std::string>> kernels;
  bool gradient = false;
};

OpFacts FactsOf(const Registry& registry, const OpDef& op);

// The kernels of FactsOf alone.
std::map<std::string, std::set<std::string>> KernelTypes(const Registry& registry, const OpDef& op);

}  // namespace penstock
