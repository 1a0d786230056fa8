// SPDX-License-Identifier: Apache-2.0
//
// CallerLine: for library functions that make several nodes on behalf of their caller. Errors of
// these nodes name the caller's line, not a line in the library.
//
//   Output SquaredError(const LocatedOutput& labels, Output predictions) {
//     const CallerLine source(labels);
//     ...
//   Output Lock(Program& program, ..., SourceLine line = {__builtin_FILE(), __builtin_LINE()});
//   ...  const CallerLine source(program, line);
//
// A library function that calls another one need not pass the line: if several CallerLines of a
// graph exist, the outermost one sets the line. So a function that calls back into the program,
// such as Cond, must have no CallerLine during that call: else the nodes that the program adds
// would not have lines of their own.
#pragma once

#include <cstring>
#include <optional>
#include <utility>

#include "core/graph/builder.h"
#include "core/op/output.h"

namespace penstock::client {

// While an object of this class exists, its line is the line of each CallerLine that is made
// without a known line.
class [[nodiscard]] FallbackLine {
 public:
  explicit FallbackLine(SourceLine line) : outer_(std::exchange(line_, line)) {}
  ~FallbackLine() { line_ = outer_; }
  FallbackLine(const FallbackLine&) = delete;
  FallbackLine& operator=(const FallbackLine&) = delete;

  static SourceLine line() { return line_; }

 private:
  static inline constinit thread_local SourceLine line_;
  const SourceLine outer_;
};

// Returns `line`; or no line if it is in the C++ standard library. That happens if a function such
// as std::make_shared calls a constructor that has the line as a default argument.
inline SourceLine ProgramLine(SourceLine line) {
  const bool known = line.file != nullptr && std::strstr(line.file, "include/c++/") == nullptr;
  return known ? line : SourceLine();
}

// While an object of this class exists, new nodes of the graph have the line that its constructor
// got or, if ProgramLine() of it is unknown, FallbackLine::line(). Does nothing without a graph or
// a line, if the graph keeps no lines, or if this thread's innermost CallerLine is of that graph.
class [[nodiscard]] CallerLine {
 public:
  CallerLine(GraphBuilder& graph, SourceLine line) : CallerLine(&graph, line) {}
  explicit CallerLine(const LocatedOutput& at)
      : CallerLine(dynamic_cast<GraphBuilder*>(at.output().sink), at.line()) {}
  explicit CallerLine(const Output& of, SourceLine line)
      : CallerLine(dynamic_cast<GraphBuilder*>(of.sink), line) {}
  ~CallerLine() { current_ = outer_; }
  CallerLine(const CallerLine&) = delete;
  CallerLine& operator=(const CallerLine&) = delete;

 private:
  CallerLine(GraphBuilder* graph, SourceLine line) : outer_(current_) {
    line = ProgramLine(line);
    if (line.file == nullptr) line = FallbackLine::line();
    if (graph == nullptr || graph == current_ || line.file == nullptr) return;
    scope_.emplace(graph->SourceLineScope(line));
    current_ = graph;
  }

  // The graph of the thread's innermost CallerLine that sets lines; null: none.
  static inline constinit thread_local const GraphBuilder* current_ = nullptr;
  const GraphBuilder* const outer_;
  std::optional<GraphBuilder::Scope> scope_;
};

}  // namespace penstock::client
