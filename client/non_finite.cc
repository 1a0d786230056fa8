// SPDX-License-Identifier: Apache-2.0
#include "client/non_finite.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/checkpoint/checkpoints.h"
#include "core/gradients/branches.h"
#include "core/graph/loop_frames.h"
#include "core/tensor/float16.h"

namespace penstock::client {
namespace {

template <class T>
std::string FirstNonFinite(const Tensor& tensor) {
  for (const T& element : tensor.flat<T>()) {
    const auto value = static_cast<double>(
        static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(element));
    if (std::isfinite(value)) continue;
    if (std::isnan(value)) return "NaN";
    return value > 0 ? "Inf" : "-Inf";
  }
  return "";
}

std::string NameOf(const Endpoint& output) {
  return TensorName{output.node->name(), output.index}.ToString();
}

// Returns the ids of `node` and of all nodes on which it depends. Does not follow inputs that are
// fed, whose names are in `fed`.
std::set<int> Ancestors(const Node* node, const std::set<std::string>& fed) {
  std::set<int> found = {node->id()};
  std::vector<const Node*> to_visit = {node};
  while (!to_visit.empty()) {
    const Node* const next = to_visit.back();
    to_visit.pop_back();
    const auto add = [&](const Node* source) {
      if (source != nullptr && found.insert(source->id()).second) to_visit.push_back(source);
    };
    for (const Endpoint& input : next->inputs()) {
      if (input.node != nullptr && fed.count(NameOf(input)) == 0) add(input.node);
    }
    for (const Node* control : next->control_inputs()) add(control);
  }
  return found;
}

std::string DeviceOf(const Node& node) {
  return node.requested_device().empty() ? "" : StrCat(" on ", node.requested_device());
}

std::string DescribeNode(const Endpoint& output, const std::string& what) {
  return StrCat("the first node with ", what, " is '", output.node->name(), "' (",
                output.node->op_name(), DeviceOf(*output.node), ")");
}

}  // namespace

std::string NonFiniteIn(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kHalf:
      return FirstNonFinite<half>(tensor);
    case DType::kBfloat16:
      return FirstNonFinite<bfloat16>(tensor);
    case DType::kFloat:
      return FirstNonFinite<float>(tensor);
    case DType::kDouble:
      return FirstNonFinite<double>(tensor);
    default:
      return "";
  }
}

NonFiniteOrigin::NonFiniteOrigin(const Program& program, Output loss,
                                 const std::vector<Feed>& feeds, Session& session, Saver* saver,
                                 std::string checkpoint_dir, int64_t timeout_ms, Env& env)
    : program_(program),
      loss_(loss),
      feeds_(feeds),
      session_(session),
      saver_(saver),
      checkpoint_dir_(std::move(checkpoint_dir)),
      timeout_ms_(timeout_ms),
      env_(env) {}

// Sets candidates_ to the floating-point outputs, outside loops and branches, from which the loss
// is computed; the loss itself is one of them.
Status NonFiniteOrigin::FindCandidates() {
  const Graph& graph = program_.graph();
  std::set<std::string> fed;
  for (const Feed& feed : feeds_) fed.insert(feed.tensor.name);
  const std::set<int> ancestors = Ancestors(program_.NodeOf(loss_), fed);
  ASSIGN_OR_RETURN(const LoopFrames frames, FindLoopFrames(graph));
  ASSIGN_OR_RETURN(const Branches branches, Branches::Find(graph, frames));
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  for (Node* const node : order) {
    const int id = node->id();
    if (ancestors.count(id) == 0 || frames.of_outputs[id] != 0) continue;
    for (int i = 0; i < node->num_outputs(); ++i) {
      const Endpoint output = {node, i};
      const EdgeType type = node->output_type(i);
      const bool fetchable = !type.ref && IsFloating(type.dtype) && branches.Of(output).empty();
      if (fetchable && fed.count(NameOf(output)) == 0) candidates_.push_back(output);
    }
  }
  return OkStatus();
}

StatusOr<std::optional<NonFiniteOrigin::NonFiniteOutput>> NonFiniteOrigin::RunStepAgain(
    const std::vector<Feed>& feeds) {
  std::set<std::string> fed;
  for (const Feed& feed : feeds) fed.insert(feed.tensor.name);
  std::vector<Endpoint> outputs;
  std::vector<TensorRef> fetches;
  for (const Endpoint& output : candidates_) {
    if (fed.count(NameOf(output)) > 0) continue;
    outputs.push_back(output);
    fetches.emplace_back(NameOf(output));
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                   session_.Run(feeds, fetches, {}, {.timeout_ms = timeout_ms_}));
  for (size_t i = 0; i < values.size(); ++i) {
    std::string what = NonFiniteIn(values[i]);
    if (!what.empty()) return std::optional<NonFiniteOutput>({outputs[i], std::move(what)});
  }
  return std::optional<NonFiniteOutput>();
}

// If the output is the value of a variable, returns the variable's name; else "".
std::string NonFiniteOrigin::VariableOf(const Endpoint& output) const {
  if (output.node->num_inputs() != 1) return "";
  for (const Variable& variable : program_.variables()) {
    if (!variable.handle().valid()) continue;
    if (program_.NodeOf(variable.handle()) != output.node->input(0).node) continue;
    const OpDef& op = output.node->op();
    if (op.reads_variable || op.passes_through) return variable.name();
  }
  return "";
}

std::string NonFiniteOrigin::Describe() {
  for (const Feed& feed : feeds_) {
    const std::string what = NonFiniteIn(feed.value);
    if (!what.empty())
      return StrCat("the batch that was fed to '", feed.tensor.name, "' has ", what);
  }
  const Status prepared = FindCandidates();
  if (!prepared.ok()) return StrCat("where it comes from is not known: ", prepared.message());
  const auto found = RunStepAgain(feeds_);
  if (!found.ok()) {
    return StrCat("where it comes from is not known, because the step cannot be run again: ",
                  found.status().message());
  }
  if (!found->has_value()) {
    return "run again after its update, the step has no such value: its input does not come from "
           "feeds, or it draws random numbers, or another worker has changed the variables";
  }
  if (!VariableOf((*found)->output).empty()) return DescribeVariable(**found);
  return DescribeNode((*found)->output, (*found)->what);
}

std::string NonFiniteOrigin::DescribeVariable(const NonFiniteOutput& found) {
  const std::string text = StrCat("variable '", VariableOf(found.output), "' has ", found.what,
                                  " now: this step's update, or one before it, has put it there");
  const std::string earlier = WithCheckpoint();
  return earlier.empty() ? text : StrCat(text, "; ", earlier);
}

// Repeats the step with the variables' values from the newest good checkpoint, and describes the
// first node whose output is not finite in that step. Returns "" if there is no such checkpoint.
std::string NonFiniteOrigin::WithCheckpoint() {
  if (saver_ == nullptr) return "";
  const auto newest = FindNewestGood(env_, checkpoint_dir_);
  if (!newest.ok() || newest->prefix.empty()) return "";
  const auto values = saver_->Read(session_, newest->prefix, {.timeout_ms = timeout_ms_});
  if (!values.ok()) return StrCat(newest->prefix, " cannot be read: ", values.status().message());
  std::vector<Feed> feeds = feeds_;
  for (const Endpoint& output : candidates_) {
    const auto value = values->find(VariableOf(output));
    if (value != values->end()) feeds.push_back({NameOf(output), value->second});
  }
  const auto found = RunStepAgain(feeds);
  const std::string with =
      StrCat("with the variables of ", newest->prefix, " and the same feeds, ");
  if (!found.ok()) return StrCat(with, "the step fails: ", found.status().message());
  if (found->has_value()) return StrCat(with, DescribeNode((*found)->output, (*found)->what));
  return StrCat(with, "everything is finite: the variables have diverged since, or a gradient is ",
                "not finite (a lower learning rate or clipped gradients may help)");
}

}  // namespace penstock::client
