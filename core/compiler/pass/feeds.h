// SPDX-License-Identifier: Apache-2.0
//
// The feeds, fetches and targets of a step, found in the client's graph.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/compiler/pass/compile_options.h"
#include "core/graph/graph.h"

namespace penstock {

// The index of each feed, by the node's id and its output.
using FeedMap = std::map<std::pair<int, int>, int>;

// NotFound "FeedInputs: unable to find feed output X:0". InvalidArgument if a tensor is fed twice.
StatusOr<FeedMap> ResolveFeeds(const Graph& graph, const CompileOptions& options);
// Returns true if the step feeds `node`, a placeholder without a default. Nodes that wait for it
// (by a control edge) wait for the feed: the placeholder itself must not run.
bool IsFedPlaceholder(const Node& node, const FeedMap& feeds);
// Returns what a consumer of `tensor` reads in a step: `tensor` itself, or what its node passes on,
// if the node stands for independent results (core/op/results_apart.h) and `tensor` is not fed.
Endpoint ReadBy(Endpoint tensor, const FeedMap& feeds);
// NotFound "FetchOutputs node X:0: not found". InvalidArgument if a tensor is both fed and fetched.
StatusOr<std::vector<Endpoint>> ResolveFetches(const Graph& graph, const CompileOptions& options,
                                               const FeedMap& feeds);
// NotFound "PruneForTargets: Some target nodes not found: ...".
StatusOr<std::vector<Node*>> ResolveTargets(const Graph& graph, const CompileOptions& options);

// Returns the name in the rendezvous of the i-th feed (fetch) of a partial run
// (RendezvousKey::tensor, with the client's device at both ends, incarnation 0).
std::string PartialFeed(int index);
std::string PartialFetch(int index);

// For each fetch, in order, which feeds (by index) it needs. Errors as above.
StatusOr<std::vector<std::vector<int>>> FeedsOfFetches(const Graph& graph,
                                                       const CompileOptions& options);

}  // namespace penstock
