// SPDX-License-Identifier: Apache-2.0
//
// Control flow: conditionals and loops, as nodes of the graph. What a branch or a body computes
// with may come from anywhere: tensors from outside are led in by themselves. All of it nests, and
// has gradients.
//
//   Output y = Cond(p, pred, [&] { return Outputs{x * 2}; }, [&] { return Outputs{-x}; })[0];
//
//   // The powers of 2 below 1000: how many, and the first above.
//   const Outputs last = While(
//       p, {Constant(p, Tensor::Scalar(0)), Constant(p, Tensor::Scalar(1))},
//       [](const Outputs& v) { return Less(v[1], ConstantLike(v[1], 1000)); },
//       [](const Outputs& v) { return Outputs{v[0] + 1, v[1] * 2}; });
//
// Nodes that a function builds inside of a branch or a loop run only there: a node that was built
// before a branch runs whether the branch is taken or not. Variables and placeholders are made
// outside. Mistakes become the graph's error. The nodes and their names are those that TensorFlow's
// cond and while_loop build.
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

// Returns the outputs of `then` if `pred` (a bool) is true at run time, else those of `otherwise`:
// as many tensors, of the same types. Only one of them runs. An op without outputs stands for the
// value of `pred`, there when the op has run.
Outputs Cond(GraphBuilder& graph, Output pred, const std::function<Outputs()>& then,
             const std::function<Outputs()>& otherwise, string_view name = "cond");

// The first case whose predicate is true; else the default.
using CaseBranch = std::pair<Output, std::function<Outputs()>>;
Outputs Case(GraphBuilder& graph, const std::vector<CaseBranch>& cases,
             const std::function<Outputs()>& otherwise, string_view name = "case");

struct WhileOptions {
  // How many iterations may be under way at once.
  int64_t parallel_iterations = 10;
  // Tensors that are kept for the gradient may be moved to the host.
  bool swap_memory = false;
  // The shapes of loop variables in all iterations, if they are less specific than those of the
  // initial values; one per variable, or none at all.
  std::vector<PartialShape> shape_invariants = {};
  // The loop ends after as many iterations at the latest.
  std::optional<int64_t> maximum_iterations = std::nullopt;
  string_view name = "while";
};

// While `cond` (a bool) of the variables is true, they become what `body` makes of them. Starts
// with `initial`; returns the last ones. A variable keeps its type, and its shape as far as that is
// known or said.
Outputs While(GraphBuilder& graph, const Outputs& initial,
              const std::function<Output(const Outputs&)>& cond,
              const std::function<Outputs(const Outputs&)>& body, const WhileOptions& options = {});

// Functions over the slices of `elems` along their first dimension, which is equal in all of them.
// `initial` is what the accumulator starts as; elements and accumulators are lists, mostly of one.
using FoldFunction = std::function<Outputs(const Outputs& accumulator, const Outputs& elements)>;
using MapFunction = std::function<Outputs(const Outputs& elements)>;

// fn(...fn(fn(initial, elems[0]), elems[1])..., elems[n-1]). FoldR begins with the last.
Outputs FoldL(GraphBuilder& graph, const Outputs& elems, const Outputs& initial,
              const FoldFunction& fn, const WhileOptions& options = {.name = "foldl"});
Outputs FoldR(GraphBuilder& graph, const Outputs& elems, const Outputs& initial,
              const FoldFunction& fn, const WhileOptions& options = {.name = "foldr"});
// All the accumulators of FoldL, one after the other; `reverse`: of FoldR, each in the place of the
// element that it was made with.
Outputs Scan(GraphBuilder& graph, const Outputs& elems, const Outputs& initial,
             const FoldFunction& fn, bool reverse = false,
             const WhileOptions& options = {.name = "scan"});
// fn of every slice, one after the other. `types`: of what fn gives.
Outputs MapFn(GraphBuilder& graph, const Outputs& elems, const std::vector<DType>& types,
              const MapFunction& fn, const WhileOptions& options = {.name = "map"});

}  // namespace penstock::client
