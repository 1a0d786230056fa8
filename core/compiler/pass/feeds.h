// SPDX-License-Identifier: Apache-2.0
//
// Finds the feeds, fetches and targets of a step in the client's graph.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/compiler/pass/compile_options.h"
#include "core/graph/graph.h"

namespace penstock {

// Key: node id and output; value: the feed's index.
using FeedMap = std::map<std::pair<int, int>, int>;

// Finds the outputs that are fed. NotFound "FeedInputs: unable to find feed output X:0".
// InvalidArgument if a tensor is fed twice.
StatusOr<FeedMap> ResolveFeeds(const Graph& graph, const CompileOptions& options);
// Returns true if `node` is a placeholder without a default value and the step feeds it. In such a
// step, nodes with a control edge from the placeholder wait for the feed instead, because the
// placeholder itself must not run.
bool IsFedPlaceholder(const Node& node, const FeedMap& feeds);
// Returns the tensor that a consumer of `tensor` reads in a step: usually `tensor` itself. But if
// its node only groups independent results (core/op/independent_results.h) and `tensor` is not fed,
// returns the input that the node passes on as `tensor`.
Endpoint SourceInStep(Endpoint tensor, const FeedMap& feeds);
// Finds the outputs that are fetched. NotFound "FetchOutputs node X:0: not found". InvalidArgument
// if a tensor is both fed and fetched.
StatusOr<std::vector<Endpoint>> ResolveFetches(const Graph& graph, const CompileOptions& options,
                                               const FeedMap& feeds);
// Finds the targets. NotFound "PruneForTargets: Some target nodes not found: ...".
StatusOr<std::vector<Node*>> ResolveTargets(const Graph& graph, const CompileOptions& options);

// Return the name under which a partial run receives its index-th feed, or sends its index-th
// fetch: the RendezvousKey::tensor of a key with the client's device at both ends and incarnation
// 0.
std::string PartialFeed(int index);
std::string PartialFetch(int index);

// Returns, for each fetch in order, the indices of the feeds that it needs. Returns the errors of
// ResolveFeeds and ResolveFetches.
StatusOr<std::vector<std::vector<int>>> FeedsOfFetches(const Graph& graph,
                                                       const CompileOptions& options);

}  // namespace penstock
