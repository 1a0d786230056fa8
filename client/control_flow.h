// SPDX-License-Identifier: Apache-2.0
//
// Control flow: conditionals and loops, as nodes of the graph. Branches and bodies may use any
// tensor of the graph: tensors from outside enter through a Switch or an Enter, which is added
// automatically. Conditionals and loops can be nested and have gradients.
//
//   Output y = Cond(p, pred, [&] { return Outputs{x * 2}; }, [&] { return Outputs{-x}; })[0];
//
//   // Counts the powers of 2 below 1000, and finds the first one that is not below 1000.
//   const Outputs last = While(
//       p, {Constant(p, Tensor::Scalar(0)), Constant(p, Tensor::Scalar(1))},
//       [](const Outputs& v) { return Less(v[1], ConstantLike(v[1], 1000)); },
//       [](const Outputs& v) { return Outputs{v[0] + 1, v[1] * 2}; });
//
// Nodes that a function builds inside a branch or a loop run only as part of that branch or loop. A
// node built outside runs whether the branch is taken or not. Make variables and placeholders
// outside. The nodes and their names are those that TensorFlow's cond and while_loop build.
//
// An invalid argument sets the graph's error. Errors of the nodes of a branch or a body name the
// lines of the calls that make them; all other errors name `line`, the line of the call to Cond or
// While.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/builder.h"
#include "core/op/output.h"

namespace penstock::client {

// Returns the outputs of `then` if `pred` (a bool) is true at run time, else those of `otherwise`.
// Both must return the same number of tensors, of the same types. Only one of them runs. If a
// branch function returns an op without outputs, Cond returns a copy of `pred` in its place, which
// is available when the op has run.
Outputs Cond(GraphBuilder& graph, Output pred, const std::function<Outputs()>& then,
             const std::function<Outputs()>& otherwise, string_view name = "cond",
             SourceLine line = {__builtin_FILE(), __builtin_LINE()});

// A predicate, and the function that builds the branch.
using CaseBranch = std::pair<Output, std::function<Outputs()>>;
// Returns the outputs of the first of `cases` with a true predicate at run time; the outputs of
// `otherwise` if no predicate is true.
Outputs Case(GraphBuilder& graph, const std::vector<CaseBranch>& cases,
             const std::function<Outputs()>& otherwise, string_view name = "case",
             SourceLine line = {__builtin_FILE(), __builtin_LINE()});

struct WhileOptions {
  // The maximum number of iterations that run concurrently.
  int64_t parallel_iterations = 10;
  // If true, tensors that are kept for the gradient may be moved to host memory.
  bool swap_memory = false;
  // The shapes that the loop variables have in all iterations, one per variable. Empty: the shapes
  // of the initial values.
  std::vector<PartialShape> shape_invariants = {};
  // The maximum number of iterations; nullopt: no limit.
  std::optional<int64_t> maximum_iterations = std::nullopt;
  string_view name = "while";
};

// Replaces the loop variables, which start as `initial`, by body(variables) as long as
// cond(variables), a bool, is true. Returns their final values. A variable keeps its type, and the
// dimensions of its shape that are known or given in `shape_invariants`.
Outputs While(GraphBuilder& graph, const Outputs& initial,
              const std::function<Output(const Outputs&)>& cond,
              const std::function<Outputs(const Outputs&)>& body, const WhileOptions& options = {},
              SourceLine line = {__builtin_FILE(), __builtin_LINE()});

// The functions below call a FoldFunction or MapFunction for each slice of `elems` along the first
// dimension, whose size must be the same in all `elems`. `initial` is the accumulator's first
// value. Elements and accumulators are lists of tensors, usually of one tensor.
using FoldFunction = std::function<Outputs(const Outputs& accumulator, const Outputs& elements)>;
using MapFunction = std::function<Outputs(const Outputs& elements)>;

// FoldL returns fn(...fn(fn(initial, elems[0]), elems[1])..., elems[n-1]). FoldR begins with the
// last element.
Outputs FoldL(GraphBuilder& graph, const Outputs& elems, const Outputs& initial,
              const FoldFunction& fn, const WhileOptions& options = {.name = "foldl"},
              SourceLine line = {__builtin_FILE(), __builtin_LINE()});
Outputs FoldR(GraphBuilder& graph, const Outputs& elems, const Outputs& initial,
              const FoldFunction& fn, const WhileOptions& options = {.name = "foldr"},
              SourceLine line = {__builtin_FILE(), __builtin_LINE()});
// Stacks all accumulators of FoldL; with `reverse` those of FoldR. Row i is the accumulator after
// fn was called with elems[i].
Outputs Scan(GraphBuilder& graph, const Outputs& elems, const Outputs& initial,
             const FoldFunction& fn, bool reverse = false,
             const WhileOptions& options = {.name = "scan"},
             SourceLine line = {__builtin_FILE(), __builtin_LINE()});
// Calls fn on every slice and stacks the results. `types` are the types of fn's outputs.
Outputs MapFn(GraphBuilder& graph, const Outputs& elems, const std::vector<DType>& types,
              const MapFunction& fn, const WhileOptions& options = {.name = "map"},
              SourceLine line = {__builtin_FILE(), __builtin_LINE()});

}  // namespace penstock::client
