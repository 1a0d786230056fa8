// SPDX-License-Identifier: Apache-2.0
//
// FunctionGraph: one call of a function as a graph of its own: a placeholder for each parameter,
// the body, and the name of the node whose outputs are the results.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace penstock {

struct FunctionGraph {
  // `library` is a serialized FunctionDefLibrary, from outside. InvalidArgument names the function.
  static StatusOr<FunctionGraph> Make(const std::string& library, const FunctionName& function);

  // Returns the name of the node of parameter `i`.
  static std::string Parameter(int i) { return StrCat("arg", i); }
  static constexpr char kResults[] = "call";

  Graph graph;
  std::vector<DType> arg_types, result_types;
};

}  // namespace penstock
