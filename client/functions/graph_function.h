// SPDX-License-Identifier: Apache-2.0
//
// GraphFunction: a function that kernels call while they run, made of the nodes that a C++ function
// builds. The datasets (dataset.h) use it.
//
// The nodes are built in the program's graph, then moved out of it into the function. So the body
// is written as everything else in a program is: with name scopes, conditionals, loops, tensors and
// variables of the program. A tensor from outside becomes an additional argument, unless it is a
// small constant, which is copied.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/graph/builder.h"

namespace penstock::client {

// The types and shapes of a list of tensors.
struct TensorSpecs {
  std::vector<DType> types;
  std::vector<PartialShape> shapes;  // as many as types

  size_t size() const { return types.size(); }
};

struct GraphFunction {
  using Body = std::function<Outputs(const Outputs& arguments)>;

  // Calls `body` once, in a new name scope `name`, with one placeholder for each of `arguments`. A
  // mistake becomes the graph's error, with the line if it is one of a node, else with `line`; then
  // the result must not be used.
  static GraphFunction Build(GraphBuilder& graph, string_view name, const TensorSpecs& arguments,
                             const Body& body, SourceLine line);

  // Returns the attributes of a node that calls the function: `attr` names it, others carry its
  // nodes and their lines.
  Attrs AttrsOf(const std::string& attr) const;

  std::string name;     // the name scope in which it was built
  std::string library;  // a serialized FunctionDefLibrary (core/functions/embedded_functions.h)
  // The nodes whose lines are known, including nodes of nested functions: "NODE\nFILE\nLINE".
  std::vector<std::string> lines;
  Outputs captured;  // the values of the additional arguments
  TensorSpecs results;
  // Random ops in the function. "": none.
  std::string random;    // the name of one random op
  std::string unseeded;  // the name of one that draws different numbers in each session
};

// If the node that failed is one of a function that `graph` calls, and its line is known, appends
// the line to the text. Returns any other status as it is.
Status WithFunctionLine(const GraphBuilder& graph, const Status& status);

}  // namespace penstock::client
