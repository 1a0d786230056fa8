// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/pass/feeds.h"

#include "absl/strings/str_join.h"
#include "core/graph/loop_frames.h"
#include "core/graph/reachability.h"
#include "core/op/independent_results.h"

namespace penstock {

// Declared in core/base/suggest.h.
std::string SuggestNames(string_view name, const std::vector<string_view>& known);

namespace {

// Returns a suggestion of similar node names to append to a not-found error; "" if the graph has
// `name`.
std::string SuggestNodes(const Graph& graph, const std::string& name) {
  if (graph.FindNode(name) != nullptr) return "";
  std::vector<string_view> known;
  for (const Node* node : graph.nodes()) known.push_back(node->name());
  return SuggestNames(name, known);
}

// Returns the consumers of the feeds with indices from `first` on, at most as many feeds as
// Reachability can search at once.
std::vector<Reachability::Seed> Consumers(const Graph& graph, const FeedMap& feeds, int first) {
  std::vector<Reachability::Seed> consumers;
  const auto add = [&](const Node* node, const Endpoint& input) {
    const auto fed = feeds.find({input.node->id(), input.index});
    if (fed == feeds.end() || fed->second < first) return;
    const size_t source = fed->second - first;
    if (source < Reachability::kSourcesMax) consumers.push_back({node, source});
  };
  for (const Node* node : graph.nodes()) {
    for (const Endpoint& input : node->inputs()) add(node, SourceInStep(input, feeds));
    for (Node* control : node->control_inputs()) {
      if (IsFedPlaceholder(*control, feeds)) add(node, {control, 0});
    }
  }
  return consumers;
}

// A client can set the attribute on any node. The attribute is ignored if outputs do not correspond
// to inputs, or if following the inputs could lead around a loop.
bool HasIndependentResults(const Node& node) {
  const bool* const independent = node.attr<bool>(kIndependentResultsAttr);
  return independent != nullptr && *independent && FlowOpOf(node) == FlowOp::kNone &&
         !node.op().stateful && node.input_types() == node.output_types();
}

}  // namespace

StatusOr<FeedMap> ResolveFeeds(const Graph& graph, const CompileOptions& options) {
  FeedMap feeds;
  for (size_t i = 0; i < options.feeds.size(); ++i) {
    const TensorName& name = options.feeds[i];
    const Node* node = graph.FindNode(name.node);
    if (node == nullptr || name.index < 0 || name.index >= node->num_outputs()) {
      return NotFound("FeedInputs: unable to find feed output ", name.ToString(),
                      SuggestNodes(graph, name.node));
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

Endpoint SourceInStep(Endpoint tensor, const FeedMap& feeds) {
  while (feeds.count({tensor.node->id(), tensor.index}) == 0) {
    if (!HasIndependentResults(*tensor.node)) break;
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
      return NotFound("FetchOutputs node ", name.ToString(), ": not found",
                      SuggestNodes(graph, name.node));
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
    return NotFound("PruneForTargets: Some target nodes not found: ", absl::StrJoin(missing, " "),
                    SuggestNodes(graph, missing[0]));
  }
  return targets;
}

std::string PartialFeed(int index) { return StrCat("feed_", index); }
std::string PartialFetch(int index) { return StrCat("fetch_", index); }

StatusOr<std::vector<std::vector<int>>> FeedsOfFetches(const Graph& graph,
                                                       const CompileOptions& options) {
  ASSIGN_OR_RETURN(const FeedMap feeds, ResolveFeeds(graph, options));
  ASSIGN_OR_RETURN(const std::vector<Endpoint> fetches, ResolveFetches(graph, options, feeds));
  Reachability reachability(graph, [&feeds](const Node& node, int input) -> const Node* {
    const Endpoint source = SourceInStep(node.input(input), feeds);
    return feeds.contains({source.node->id(), source.index}) ? nullptr : source.node;
  });
  std::vector<std::vector<int>> needed(fetches.size());
  std::vector<Endpoint> read;  // by fetch
  for (const Endpoint& fetch : fetches) read.push_back(SourceInStep(fetch, feeds));
  const int num_feeds = static_cast<int>(feeds.size());
  const int at_a_time = Reachability::kSourcesMax;
  for (int first = 0; first < num_feeds; first += at_a_time) {
    reachability.Find(Consumers(graph, feeds, first));
    for (size_t f = 0; f < fetches.size(); ++f) {
      Reachability::Sources found = reachability.Of(*read[f].node);
      const auto fed = feeds.find({read[f].node->id(), read[f].index});
      if (fed != feeds.end()) {  // the fetch returns the feed
        found.reset();
        if (fed->second >= first && fed->second < first + at_a_time) found.set(fed->second - first);
      }
      for (int i = 0; i < at_a_time && found.any(); ++i) {
        if (found.test(i)) needed[f].push_back(first + i);
      }
    }
  }
  return needed;
}

}  // namespace penstock
