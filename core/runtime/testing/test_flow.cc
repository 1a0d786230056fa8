// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/testing/test_flow.h"

#include "core/base/check.h"

namespace penstock {

Node* FlowBuilder::AddNode(const std::string& op, const Values& inputs, Attrs attrs,
                           Context* context, const std::vector<Node*>& after) {
  auto node = g_.graph().AddNode({.name = StrCat("n", g_.graph().max_id()),
                                  .op = op,
                                  .inputs = inputs,
                                  .control_inputs = after,
                                  .attrs = std::move(attrs)});
  CHECK_OK(node.status());
  context_of_[(*node)->id()] = context;
  return *node;
}

bool FlowBuilder::IsConstant(const Endpoint& value) const {
  const bool* const constant = value.node->attr<bool>("is_constant");
  return constant != nullptr && *constant;
}

// Imports the value into `to`, which is the value's context or nested in it.
Endpoint FlowBuilder::Import(Endpoint value, Context* to) {
  const auto found = context_of_.find(value.node->id());
  if ((found == context_of_.end() ? nullptr : found->second) == to) return value;
  CHECK(to != nullptr, "a value is used outside of its branch or loop");
  Endpoint& imported = to->imported[{value.node->id(), value.index}];
  if (imported.node != nullptr) return imported;
  const Endpoint outer = Import(value, to->outer);
  const DType dtype = outer.node->output_type(outer.index).dtype;
  if (to->frame.empty()) {
    const Endpoint pred = Import(to->pred, to->outer);
    imported = {AddNode("Switch", {outer, pred}, {{"T", dtype}}, to), to->branch};
  } else {
    imported = {AddNode("Enter", {outer},
                        {{"T", dtype},
                         {"frame_name", to->frame},
                         {"is_constant", true},
                         {"parallel_iterations", to->parallel_iterations}},
                        to),
                0};
  }
  return imported;
}

Endpoint FlowBuilder::Call(const std::string& op, const Values& inputs, Attrs attrs) {
  Values imported;
  bool constant = true;
  for (const Endpoint& input : inputs) {
    imported.push_back(Import(input, here_));
    constant = constant && IsConstant(imported.back());
  }
  std::vector<Node*> after;
  if (here_ != nullptr && constant) after.push_back(here_->pivot);
  return {AddNode(op, imported, std::move(attrs), here_, after), 0};
}

Endpoint FlowBuilder::Sum(const std::string& op, const Values& inputs, Attrs attrs) {
  attrs["N"] = static_cast<int64_t>(inputs.size());
  return Call(op, inputs, std::move(attrs));
}

Endpoint FlowBuilder::Pass(Endpoint value) {
  return Call("TestPass", {value}, {{"T", value.node->output_type(value.index).dtype}});
}

Endpoint FlowBuilder::BuildBranch(Endpoint pred, int branch,
                                  const std::function<Endpoint()>& build) {
  contexts_.push_back(std::make_unique<Context>());
  Context* const context = contexts_.back().get();
  context->outer = here_;
  context->pred = pred;
  context->branch = branch;
  here_ = context;
  context->pivot = Pass(pred).node;
  // If the branch returns an outside value, a Switch's output becomes the Merge's input.
  const Endpoint result = Import(build(), context);
  here_ = context->outer;
  return result;
}

Endpoint FlowBuilder::Cond(Endpoint pred, const std::function<Endpoint()>& then,
                           const std::function<Endpoint()>& otherwise) {
  const Endpoint taken = BuildBranch(pred, 1, then);
  const Endpoint other = BuildBranch(pred, 0, otherwise);
  const DType dtype = taken.node->output_type(taken.index).dtype;
  return {AddNode("Merge", {taken, other}, {{"N", 2}, {"T", dtype}}, here_), 0};
}

Endpoint FlowBuilder::Feed(int index) {
  if (form_ == kExecutor) return {g_.Feed(index), 0};
  return {g_.Add("TestSum", {}, {{"N", 0}}, {}, StrCat("feed", index)), 0};
}

void FlowBuilder::Fetch(Endpoint value, int index) {
  if (form_ == kExecutor) {
    g_.Fetch(value.node, index, value.index);
    return;
  }
  const DType dtype = value.node->output_type(value.index).dtype;
  const auto fetch = g_.graph().AddNode({.name = StrCat("fetch", index),
                                         .op = "TestPass",
                                         .inputs = {value},
                                         .attrs = {{"T", dtype}}});
  CHECK_OK(fetch.status());
}

FlowBuilder::Values FlowBuilder::While(const Loop& loop, const Values& inits,
                                       const std::function<Endpoint(const Values&)>& cond,
                                       const Block& body) {
  contexts_.push_back(std::make_unique<Context>());
  Context* const context = contexts_.back().get();
  context->outer = here_;
  context->frame = loop.name;
  context->parallel_iterations = loop.parallel_iterations;
  const auto type = [](Endpoint e) { return e.node->output_type(e.index).dtype; };
  Values merges, vars, exits;
  for (const Endpoint& init : inits) {
    const Endpoint outer = Import(init, here_);
    Node* const enter = AddNode("Enter", {outer},
                                {{"T", type(outer)},
                                 {"frame_name", loop.name},
                                 {"parallel_iterations", loop.parallel_iterations}},
                                context);
    merges.push_back(
        {AddNode("Merge", {{enter, 0}, {}}, {{"N", 2}, {"T", type(outer)}}, context), 0});
  }
  here_ = context;
  context->pivot = merges[0].node;
  const Endpoint go_on = Call("LoopCond", {cond(merges)});
  for (const Endpoint& merge : merges) {
    Node* const chosen = AddNode("Switch", {merge, go_on}, {{"T", type(merge)}}, context);
    exits.push_back({AddNode("Exit", {{chosen, 0}}, {{"T", type(merge)}}, context->outer), 0});
    vars.push_back(Pass({chosen, 1}));
  }
  context->pivot = vars[0].node;
  const Values next = body(vars);
  CHECK(next.size() == merges.size(), "a loop must keep the number of its values");
  for (size_t i = 0; i < next.size(); ++i) {
    Endpoint value = Import(next[i], context);
    if (IsConstant(value)) value = Pass(value);
    Node* const around = AddNode("NextIteration", {value}, {{"T", type(value)}}, context);
    CHECK_OK(g_.graph().SetInput(merges[i].node, 1, {around, 0}));
  }
  here_ = context->outer;
  return exits;
}

FlowBuilder::Values FlowBuilder::For(const Loop& loop, Endpoint limit, const Values& inits,
                                     const Block& body) {
  Values all = {Sum("TestSum", {})};
  all.insert(all.end(), inits.begin(), inits.end());
  Values results = While(
      loop, all,
      [&](const Values& v) {
        return Call("TestLess", {v[0], limit});
      },
      [&](const Values& v) {
        Values next = {Sum("TestSum", {v[0]}, {{"plus", 1}})};
        for (const Endpoint& value : body(v)) next.push_back(value);
        return next;
      });
  results.erase(results.begin());
  return results;
}

}  // namespace penstock
