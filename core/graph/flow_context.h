// SPDX-License-Identifier: Apache-2.0
//
// Flow contexts: adapt nodes that are built inside a branch or a loop. A context adds one Switch or
// constant Enter for each tensor from outside that its nodes use. Nodes without inputs get a
// control edge from the context's pivot, so that they run only if the branch or iteration does.
//
//   LoopContext loop(builder, "while", {.parallel_iterations = 10});
//   const Output x = loop.Enter(x0);  ... Merge, Switch ...
//   const auto inside = builder.ContextScope(&loop);
//
// A nested context imports a tensor from outside through the context around it. Contexts are not
// thread-safe. They borrow the builder.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/graph/builder.h"

namespace penstock {

class FlowContext : public GraphBuilder::Context {
 public:
  // Makes a context inside the builder's current context.
  explicit FlowContext(GraphBuilder& builder) : builder_(builder), outer_(builder.context()) {}
  FlowContext(const FlowContext&) = delete;
  FlowContext& operator=(const FlowContext&) = delete;

  Status Adapt(GraphBuilder::NewNode* node) override;
  void Added(int node) override;

  // Returns the output that nodes in this context use instead of `output`: that of a Switch or an
  // Enter for a tensor from outside, else `output` itself.
  Output Import(Output output);
  // Marks a node as inside this context, although it was not built in the context's scope.
  void Adopt(Output output) { own_.insert(output.node); }
  bool Owns(int node) const { return own_.contains(node); }
  // Sets the output after which nodes without inputs run.
  void set_pivot(Output pivot) { pivot_ = pivot; }
  Output pivot() const { return pivot_; }

 protected:
  // Adds the node through which an outside tensor enters, in the outer context. Called once per
  // tensor.
  virtual Output AddEntry(Output outside) = 0;
  // Returns true if a node with the input `input` needs no control edge from the pivot: `input` is
  // computed anew each time the context runs.
  virtual bool Holds(Output input) const = 0;

  GraphBuilder& builder_;

 private:
  StatusOr<Node*> ImportControl(Node* node);

  GraphBuilder::Context* const outer_;
  absl::flat_hash_set<int> own_;
  absl::flat_hash_map<std::pair<int, int>, Output> imported_;
  Output pivot_;
};

// The context of one branch of a conditional: that for `side` of the predicate.
class BranchContext final : public FlowContext {
 public:
  BranchContext(GraphBuilder& builder, Output predicate, bool side);

 protected:
  Output AddEntry(Output outside) override;
  bool Holds(Output) const override { return true; }

 private:
  const Output predicate_;
  const int side_;
};

struct LoopOptions {
  int64_t parallel_iterations = 10;
  bool swap_memory = false;  // values kept for gradients may be moved to host memory
};

class LoopContext : public FlowContext {
 public:
  // `frame` is unique among the loops of the graph.
  LoopContext(GraphBuilder& builder, std::string frame, const LoopOptions& options);

  const std::string& frame() const { return frame_; }
  // Adds an Enter for a loop-carried value. Returns its output, the value in the first iteration.
  Output Enter(Output initial);
  // Returns `value` as a loop invariant, which is the same in every iteration. Import does the
  // same, but only for tensors from outside.
  Output EnterInvariant(Output value);

 protected:
  Output AddEntry(Output outside) override { return EnterInvariant(outside); }
  bool Holds(Output input) const override { return !invariants_.contains(input.node); }

 private:
  Output AddEnter(Output value, bool is_constant);

  const std::string frame_;
  const LoopOptions options_;
  absl::flat_hash_set<int> invariants_;
};

// Returns `op`, or the op's reference form (RefSwitch for Switch) if `value` is a reference.
std::string FlowOpName(string_view op, Output value);
// Adds a Switch colocated with `value`; returns {false side, true side}.
Outputs AddSwitch(Output value, Output predicate);

}  // namespace penstock
