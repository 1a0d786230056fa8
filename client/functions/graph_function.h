// SPDX-License-Identifier: Apache-2.0
//
// GraphFunction: a function of nodes that kernels can call while they run. A C++ function (the
// body) builds the nodes. The datasets (client/dataset.h) use it.
//
// The body adds its nodes to the program's graph; then Build moves them into the function. So the
// body may use everything that a program uses: name scopes, conditionals, loops, tensors and
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

  // Calls `body` once, in a new name scope `name`, with one placeholder for each of `arguments`. If
  // the body is invalid, sets the graph's error, which names the line of the invalid node or, if
  // there is none, `line`; then the result must not be used.
  static GraphFunction Build(GraphBuilder& graph, string_view name, const TensorSpecs& arguments,
                             const Body& body, SourceLine line);

  // Returns the attributes of a node that calls the function: `attr` names it, others carry its
  // nodes and their lines.
  Attrs AttrsOf(const std::string& attr) const;

  std::string name;     // the name scope in which it was built
  std::string library;  // a serialized FunctionDefLibrary (core/functions/embedded_functions.h)
  // The lines of the nodes, as far as they are known, including nodes of nested functions:
  // "NODE\nFILE\nLINE".
  std::vector<std::string> lines;
  Outputs captured;  // the values of the additional arguments
  TensorSpecs results;
  // Random ops in the function. "": none.
  std::string random;    // the name of one random op
  std::string unseeded;  // one that draws different numbers in each session
};

// If the failed node belongs to a function that `graph` calls, and its line is known, returns
// `status` with the line appended to its message. Returns any other status unchanged.
Status WithFunctionLine(const GraphBuilder& graph, const Status& status);

}  // namespace penstock::client
