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
// Returns true if the step feeds `node`, a placeholder without a default. Nodes with a control edge
// from it then wait for the feed, because the placeholder itself must not run.
bool IsFedPlaceholder(const Node& node, const FeedMap& feeds);
// Returns the tensor that a consumer of `tensor` reads in a step. Returns `tensor` itself, unless
// its node only passes independent inputs on (core/op/independent_results.h) and `tensor` is not
// fed. In that case returns the input that becomes `tensor`.
Endpoint SourceInStep(Endpoint tensor, const FeedMap& feeds);
// Finds the outputs that are fetched. NotFound "FetchOutputs node X:0: not found". InvalidArgument
// if a tensor is both fed and fetched.
StatusOr<std::vector<Endpoint>> ResolveFetches(const Graph& graph, const CompileOptions& options,
                                               const FeedMap& feeds);
// Finds the targets. NotFound "PruneForTargets: Some target nodes not found: ...".
StatusOr<std::vector<Node*>> ResolveTargets(const Graph& graph, const CompileOptions& options);

// Return the name of the index-th feed and fetch of a partial run: the RendezvousKey::tensor of a
// key with the client's device at both ends and incarnation 0.
std::string PartialFeed(int index);
std::string PartialFetch(int index);

// Returns, for each fetch in order, the indices of the feeds that it needs. Returns the errors of
// ResolveFeeds and ResolveFetches.
StatusOr<std::vector<std::vector<int>>> FeedsOfFetches(const Graph& graph,
                                                       const CompileOptions& options);

}  // namespace penstock
