// SPDX-License-Identifier: Apache-2.0
//
// FunctionGraph: a function as a graph: a placeholder for each parameter, the body, and the name of
// the node whose outputs are the results.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace penstock {

struct FunctionGraph {
  // Makes the graph of `function`. `library` is a serialized FunctionDefLibrary, not trusted:
  // InvalidArgument if it is malformed or does not have the function.
  static StatusOr<FunctionGraph> Make(const std::string& library, const FunctionName& function);

  // Returns the name of the placeholder of parameter `i`.
  static std::string Parameter(int i) { return StrCat("arg", i); }
  static constexpr char kResults[] = "call";

  Graph graph;
  std::vector<DType> arg_types, result_types;
};

}  // namespace penstock
