// SPDX-License-Identifier: Apache-2.0
#include "client/control_flow.h"

#include <algorithm>

#include "client/ops/line_scope.h"
#include "core/graph/flow_context.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

Outputs InvalidOutputs(GraphBuilder& graph, size_t count) {
  return Outputs(count, Output{&graph, -1, 0});
}

bool IsScalarBool(Output value) {
  return value.dtype() == DType::kBool && value.shape().Compatible(PartialShape::Scalar());
}

// Builds the branch that runs if `pred` equals `side`. Returns its outputs, as tensors of the
// branch. An op without outputs is replaced by a copy of `pred` that is available when the op has
// run. Returns none if `function` returns an invalid output.
Outputs BuildBranch(GraphBuilder& graph, Output pred, bool side,
                    const std::function<Outputs()>& function, SourceLine line) {
  BranchContext branch = [&] {
    const CallerLine source(graph, line);
    return BranchContext(graph, pred, side);
  }();
  const auto inside = graph.ContextScope(&branch);
  const Outputs outputs = function();
  const CallerLine source(graph, line);
  Outputs results;
  for (const Output& result : outputs) {
    if (!result.valid()) return {};
    if (graph.num_outputs(result.node) > 0) {
      results.push_back(Identity(result));
    } else {
      const auto after = graph.ControlDependencies({result});
      results.push_back(Identity(branch.pivot()));
    }
  }
  return results;
}

Status CheckSides(const Outputs& yes, const Outputs& no) {
  if (yes.size() != no.size()) {
    return InvalidArgument("the two branches return ", yes.size(), " and ", no.size(), " tensors");
  }
  for (size_t i = 0; i < yes.size(); ++i) {
    if (yes[i].dtype() == no[i].dtype()) continue;
    return InvalidArgument("result ", i, " is ", Name(yes[i].dtype()), " on one side and ",
                           Name(no[i].dtype()), " on the other");
  }
  return OkStatus();
}

// Returns true if every full shape that matches `shape` also matches `invariant`.
bool IsSubshape(const PartialShape& shape, const PartialShape& invariant) {
  const StatusOr<PartialShape> both = shape.Merge(invariant);
  return both.ok() && *both == shape;
}

// Builds the nodes of one While.
class LoopBuilder {
 public:
  LoopBuilder(GraphBuilder& graph, const WhileOptions& options, SourceLine line)
      : graph_(graph),
        options_(options),
        line_(line),
        context_(graph, StrCat(graph.name_scope(), "while_context"),
                 {.parallel_iterations = options.parallel_iterations,
                  .swap_memory = options.swap_memory}) {}

  Status Build(const Outputs& initial, const std::function<Output(const Outputs&)>& cond,
               const std::function<Outputs(const Outputs&)>& body, Outputs* last) {
    RETURN_IF_ERROR(Enter(initial));
    const auto inside = graph_.ContextScope(&context_);
    RETURN_IF_ERROR(Branch(cond));
    const Outputs next = body(body_);
    RETURN_IF_ERROR(graph_.status());
    RETURN_IF_ERROR(Check(next));
    const CallerLine source(graph_, line_);
    for (size_t i = 0; i < next.size(); ++i) {
      const Output next_iteration = Call("NextIteration", {next[i]});
      RETURN_IF_ERROR(graph_.status());
      RETURN_IF_ERROR(graph_.mutable_graph().SetInput(graph_.NodeOf(merges_[i]), 1,
                                                      {graph_.NodeOf(next_iteration), 0}));
    }
    for (const Output& out : out_) last->push_back(Call("Exit", {out}));
    return graph_.status();
  }

 private:
  // Returns the initial value of loop variable `i`, with the shape that the variable has in all
  // iterations. InvalidArgument if the value does not have that shape.
  StatusOr<Output> Start(Output initial, size_t i) {
    if (initial.type().ref) initial = Identity(initial);
    if (options_.shape_invariants.empty()) return initial;
    const PartialShape& invariant = options_.shape_invariants[i];
    if (!IsSubshape(initial.shape(), invariant)) {
      return InvalidArgument("variable ", i, " starts with shape ", initial.shape().ToString(),
                             ", which is not of the shape ", invariant.ToString(),
                             " that it is said to have");
    }
    if (initial.shape() == invariant) return initial;
    return Call("PlaceholderWithDefault", {initial}, {{"shape", invariant}});
  }

  Status Enter(const Outputs& initial) {
    const CallerLine source(graph_, line_);
    if (initial.empty()) return InvalidArgument("there is nothing that could change");
    if (!options_.shape_invariants.empty() && options_.shape_invariants.size() != initial.size()) {
      return InvalidArgument(initial.size(), " variables but ", options_.shape_invariants.size(),
                             " shape_invariants");
    }
    for (size_t i = 0; i < initial.size(); ++i) {
      ASSIGN_OR_RETURN(const Output start, Start(initial[i], i));
      entered_.push_back(context_.Enter(start));
    }
    return graph_.status();
  }

  Status Branch(const std::function<Output(const Outputs&)>& cond) {
    for (const Output& entered : entered_) {
      const CallerLine source(graph_, line_);
      // The second input is replaced when the body's output exists.
      merges_.push_back(CallN("Merge", {Outputs{entered, entered}})[0]);
    }
    context_.set_pivot(merges_[0]);
    const Output goes_on = cond(merges_);
    RETURN_IF_ERROR(graph_.status());
    if (!IsScalarBool(goes_on)) {
      return InvalidArgument("the condition must be a bool, is ", Name(goes_on.dtype()),
                             goes_on.shape().ToString());
    }
    const CallerLine source(graph_, line_);
    const Output test = Call("LoopCond", {goes_on});
    for (const Output& merge : merges_) {
      const Outputs sides = AddSwitch(merge, test);
      out_.push_back(sides[0]);
      body_.push_back(Identity(sides[1]));
    }
    if (graph_.status().ok()) context_.set_pivot(body_[0]);
    return graph_.status();
  }

  Status Check(const Outputs& next) const {
    if (next.size() != merges_.size()) {
      return InvalidArgument("the body gives ", next.size(), " tensors for ", merges_.size(),
                             " variables");
    }
    for (size_t i = 0; i < next.size(); ++i) {
      const Output variable = merges_[i];
      if (!next[i].valid()) return InvalidArgument("the body gives no tensor for variable ", i);
      if (next[i].dtype() != variable.dtype()) {
        return InvalidArgument("variable ", i, " is ", Name(variable.dtype()),
                               ", but the body returns ", Name(next[i].dtype()), " for it");
      }
      if (!IsSubshape(next[i].shape(), variable.shape())) {
        return InvalidArgument("variable ", i, " has shape ", variable.shape().ToString(),
                               ", but the body returns ", next[i].shape().ToString(),
                               " for it; say in shape_invariants what stays the same");
      }
    }
    return OkStatus();
  }

  GraphBuilder& graph_;
  const WhileOptions& options_;
  const SourceLine line_;
  LoopContext context_;
  Outputs entered_, merges_, body_, out_;
};

}  // namespace

Outputs Cond(GraphBuilder& graph, Output pred, const std::function<Outputs()>& then,
             const std::function<Outputs()>& otherwise, string_view name, SourceLine line) {
  if (!graph.status().ok()) return {};
  const auto scope = graph.NameScope(name);
  const auto fail = [&](const Status& status) {
    const CallerLine source(graph, line);
    graph.Fail(Annotate(status, StrCat("conditional '", graph.name_scope(), "'")));
    return Outputs();
  };
  if (!pred.valid() || !IsScalarBool(pred)) {
    return fail(InvalidArgument("the predicate must be a bool, is ", Name(pred.dtype()),
                                pred.shape().ToString()));
  }
  const Output decided = [&] {
    const CallerLine source(graph, line);
    return Identity(pred);
  }();
  const Outputs yes = BuildBranch(graph, decided, true, then, line);
  const Outputs no = BuildBranch(graph, decided, false, otherwise, line);
  if (!graph.status().ok()) return InvalidOutputs(graph, std::max(yes.size(), no.size()));
  if (const Status status = CheckSides(yes, no); !status.ok()) return fail(status);
  const CallerLine source(graph, line);
  Outputs results;
  for (size_t i = 0; i < yes.size(); ++i) {
    results.push_back(CallN("Merge", {Outputs{no[i], yes[i]}})[0]);
  }
  return results;
}

Outputs Case(GraphBuilder& graph, const std::vector<CaseBranch>& cases,
             const std::function<Outputs()>& otherwise, string_view name, SourceLine line) {
  const auto scope = graph.NameScope(name);
  const std::function<Outputs(size_t)> from = [&](size_t i) {
    if (i == cases.size()) return otherwise();
    return Cond(
        graph, cases[i].first, cases[i].second, [&] { return from(i + 1); }, "cond", line);
  };
  return from(0);
}

Outputs While(GraphBuilder& graph, const Outputs& initial,
              const std::function<Output(const Outputs&)>& cond,
              const std::function<Outputs(const Outputs&)>& body, const WhileOptions& options,
              SourceLine line) {
  if (!graph.status().ok()) return InvalidOutputs(graph, initial.size());
  if (options.maximum_iterations.has_value()) {
    WhileOptions unlimited = options;
    unlimited.maximum_iterations.reset();
    if (!unlimited.shape_invariants.empty()) {
      unlimited.shape_invariants.push_back(PartialShape::Scalar());
    }
    const auto rest = [](const Outputs& v) { return Outputs(v.begin(), v.end() - 1); };
    const int64_t limit = *options.maximum_iterations;
    Outputs counted = initial;
    {
      const CallerLine source(graph, line);
      counted.push_back(Constant(graph, Tensor::Scalar<int64_t>(0)));
    }
    return rest(While(
        graph, counted,
        [&](const Outputs& v) {
          const Output asked = cond(rest(v));
          const CallerLine source(graph, line);
          return LogicalAnd(Less(v.back(), ConstantLike(v.back(), limit)), asked);
        },
        [&](const Outputs& v) {
          Outputs next = body(rest(v));
          const CallerLine source(graph, line);
          next.push_back(v.back() + 1);
          return next;
        },
        unlimited, line));
  }
  const auto scope = graph.NameScope(options.name);
  Outputs last;
  const Status status = LoopBuilder(graph, options, line).Build(initial, cond, body, &last);
  if (status.ok()) return last;
  const CallerLine source(graph, line);
  graph.Fail(Annotate(status, StrCat("loop '", graph.name_scope(), "'")));
  return InvalidOutputs(graph, initial.size());
}

}  // namespace penstock::client
