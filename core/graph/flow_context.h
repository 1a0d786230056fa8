// SPDX-License-Identifier: Apache-2.0
//
// Flow contexts: what nodes pass through that are built inside a branch or a loop. What they use
// from outside is led in, by a Switch or by a constant Enter, once per tensor; what has no inputs
// of its own runs after the context's pivot, so that it runs when the others do.
//
//   LoopContext loop(builder, "while", {.parallel_iterations = 10});
//   const Output x = loop.Enter(x0);  ... Merge, Switch ...
//   const auto inside = builder.ContextScope(&loop);
//
// Nested contexts pass on to the one outside what neither has. Not thread-safe; borrow the builder.
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
  // Inside of what is the builder's context now.
  explicit FlowContext(GraphBuilder& builder) : builder_(builder), outer_(builder.context()) {}
  FlowContext(const FlowContext&) = delete;
  FlowContext& operator=(const FlowContext&) = delete;

  Status Adapt(GraphBuilder::NewNode* node) override;
  void Added(int node) override;

  // The tensor as it is seen in here.
  Output Import(Output output);
  // A node that is in here although it was not built under this context's scope.
  void Adopt(Output output) { own_.insert(output.node); }
  bool Owns(int node) const { return own_.contains(node); }
  // After what nodes without inputs run.
  void set_pivot(Output pivot) { pivot_ = pivot; }
  Output pivot() const { return pivot_; }

 protected:
  // Leads in what comes from outside; called once per tensor, outside.
  virtual Output Lead(Output outside) = 0;
  // True where a node that has `input` runs only as often as this context does.
  virtual bool Holds(Output input) const = 0;

  GraphBuilder& builder_;

 private:
  StatusOr<Node*> ImportControl(Node* node);

  GraphBuilder::Context* const outer_;
  absl::flat_hash_set<int> own_;
  absl::flat_hash_map<std::pair<int, int>, Output> imported_;
  Output pivot_;
};

// One side of a conditional.
class BranchContext final : public FlowContext {
 public:
  BranchContext(GraphBuilder& builder, Output predicate, bool side);

 protected:
  Output Lead(Output outside) override;
  bool Holds(Output) const override { return true; }

 private:
  const Output predicate_;
  const int side_;
};

struct LoopOptions {
  int64_t parallel_iterations = 10;
  bool swap_memory = false;  // what is kept for gradients may be moved to the host
};

class LoopContext : public FlowContext {
 public:
  // `frame` is unique among the loops of the graph.
  LoopContext(GraphBuilder& builder, std::string frame, const LoopOptions& options);

  const std::string& frame() const { return frame_; }
  // The first value of what changes from iteration to iteration.
  Output Enter(Output initial);
  // A tensor that every iteration sees. Import does the same, but only for what is outside.
  Output EnterInvariant(Output value);

 protected:
  Output Lead(Output outside) override { return EnterInvariant(outside); }
  bool Holds(Output input) const override { return !invariants_.contains(input.node); }

 private:
  Output AddEnter(Output value, bool is_constant);

  const std::string frame_;
  const LoopOptions options_;
  absl::flat_hash_set<int> invariants_;
};

// The op, or its form for references where `value` is one.
std::string FlowOpName(string_view op, Output value);
// Switch: {false side, true side}, beside `value`.
Outputs AddSwitch(Output value, Output predicate);

}  // namespace penstock
