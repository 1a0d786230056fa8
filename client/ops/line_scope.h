// SPDX-License-Identifier: Apache-2.0
//
// For library functions that make several nodes on behalf of their caller: errors of these nodes
// name the caller's line, not the line in the library.
//
//   Output SquaredError(const LocatedOutput& labels, Output predictions) {
//     const auto source = LineScope(labels);
//     ...
#pragma once

#include <optional>

#include "core/graph/builder.h"
#include "core/op/output.h"

namespace penstock::client {

// Opens a scope in which new nodes have the line of `at`. Returns no scope if `at` has no graph, or
// its graph keeps no lines.
inline std::optional<GraphBuilder::Scope> LineScope(const LocatedOutput& at) {
  auto* const graph = dynamic_cast<GraphBuilder*>(at.output().sink);
  if (graph == nullptr) return std::nullopt;
  return graph->SourceLineScope(at.line());
}

// Returns `output` as an argument of a function that is called on behalf of `line`.
inline LocatedOutput AtLine(Output output, SourceLine line) {
  return {output, line.file, line.line};
}

}  // namespace penstock::client
