// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/pass/feeds.h"

#include <set>

#include "absl/strings/str_join.h"
#include "core/graph/loop_frames.h"
#include "core/op/results_apart.h"

namespace penstock {
namespace {

// The feeds that `fetch` needs, in order.
std::vector<int> FeedsOf(const Graph& graph, const FeedMap& feeds, const Endpoint& fetch) {
  std::set<int> found;
  std::vector<bool> seen(graph.max_id(), false);
  const Endpoint root = ReadBy(fetch, feeds);
  if (const auto fed = feeds.find({root.node->id(), root.index}); fed != feeds.end()) {
    return {fed->second};
  }
  std::vector<const Node*> stack = {root.node};
  seen[root.node->id()] = true;
  const auto visit = [&](const Node* node) {
    if (!seen[node->id()]) stack.push_back(node);
    seen[node->id()] = true;
  };
  while (!stack.empty()) {
    const Node* const node = stack.back();
    stack.pop_back();
    for (const Endpoint& consumed : node->inputs()) {
      const Endpoint input = ReadBy(consumed, feeds);
      const auto fed = feeds.find({input.node->id(), input.index});
      if (fed != feeds.end()) {
        found.insert(fed->second);
      } else {
        visit(input.node);
      }
    }
    for (const Node* control : node->control_inputs()) {
      if (IsFedPlaceholder(*control, feeds)) {
        found.insert(feeds.at({control->id(), 0}));
      } else {
        visit(control);
      }
    }
  }
  return {found.begin(), found.end()};
}

// A client can give any node the attribute: it means nothing where inputs are no outputs, and where
// following inputs could lead round a loop.
bool HasResultsApart(const Node& node) {
  const bool* const apart = node.attr<bool>(kResultsApartAttr);
  return apart != nullptr && *apart && FlowOpOf(node) == FlowOp::kNone && !node.op().stateful &&
         node.input_types() == node.output_types();
}

}  // namespace

StatusOr<FeedMap> ResolveFeeds(const Graph& graph, const CompileOptions& options) {
  FeedMap feeds;
  for (size_t i = 0; i < options.feeds.size(); ++i) {
    const TensorName& name = options.feeds[i];
    const Node* node = graph.FindNode(name.node);
    if (node == nullptr || name.index < 0 || name.index >= node->num_outputs()) {
      return NotFound("FeedInputs: unable to find feed output ", name.ToString());
    }
    if (!feeds.emplace(std::pair(node->id(), name.index), static_cast<int>(i)).second) {
      return InvalidArgument("Tensor ", name.ToString(), " is fed twice");
    }
  }
  return feeds;
}

bool IsFedPlaceholder(const Node& node, const FeedMap& feeds) {
  return node.op().is_placeholder && node.num_inputs() == 0 && feeds.count({node.id(), 0}) > 0;
}

Endpoint ReadBy(Endpoint tensor, const FeedMap& feeds) {
  while (feeds.count({tensor.node->id(), tensor.index}) == 0) {
    if (!HasResultsApart(*tensor.node)) break;
    tensor = tensor.node->input(tensor.index);
  }
  return tensor;
}

StatusOr<std::vector<Endpoint>> ResolveFetches(const Graph& graph, const CompileOptions& options,
                                               const FeedMap& feeds) {
  std::vector<Endpoint> fetches;
  for (const TensorName& name : options.fetches) {
    Node* node = graph.FindNode(name.node);
    if (node == nullptr || name.index < 0 || name.index >= node->num_outputs()) {
      return NotFound("FetchOutputs node ", name.ToString(), ": not found");
    }
    if (feeds.count({node->id(), name.index}) > 0) {
      return InvalidArgument("Tensor ", name.ToString(), " is both fed and fetched");
    }
    fetches.push_back({node, name.index});
  }
  return fetches;
}

StatusOr<std::vector<Node*>> ResolveTargets(const Graph& graph, const CompileOptions& options) {
  std::vector<Node*> targets;
  std::vector<std::string> missing;
  for (const std::string& name : options.targets) {
    Node* node = graph.FindNode(name);
    if (node == nullptr) {
      missing.push_back(name);
    } else {
      targets.push_back(node);
    }
  }
  if (!missing.empty()) {
    return NotFound("PruneForTargets: Some target nodes not found: ", absl::StrJoin(missing, " "));
  }
  return targets;
}

std::string PartialFeed(int index) { return StrCat("feed_", index); }
std::string PartialFetch(int index) { return StrCat("fetch_", index); }

StatusOr<std::vector<std::vector<int>>> FeedsOfFetches(const Graph& graph,
                                                       const CompileOptions& options) {
  ASSIGN_OR_RETURN(const FeedMap feeds, ResolveFeeds(graph, options));
  ASSIGN_OR_RETURN(const std::vector<Endpoint> fetches, ResolveFetches(graph, options, feeds));
  std::vector<std::vector<int>> needed;
  for (const Endpoint& fetch : fetches) needed.push_back(FeedsOf(graph, feeds, fetch));
  return needed;
}

}  // namespace penstock
