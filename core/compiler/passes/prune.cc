// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/base/error_origin.h"
#include "core/compiler/pass/feeds.h"
#include "core/compiler/passes/passes.h"
#include "core/graph/loop_frames.h"

namespace penstock {
namespace {

// Rejects feeds, fetches and targets inside a loop: they have a value per iteration, but a step
// feeds or fetches one value. REQUIRES: the feeds, fetches and targets exist.
Status CheckLoops(const Graph& graph, const Graph& pruned, const CompileOptions& options) {
  const std::vector<Node*> kept = pruned.nodes();
  const bool flow = std::any_of(kept.begin(), kept.end(),
                                [](const Node* node) { return FlowOpOf(*node) != FlowOp::kNone; });
  if (!flow) return OkStatus();
  const StatusOr<LoopFrames> found = FindLoopFrames(graph);
  if (!found.ok())
    return FindLoopFrames(pruned)
        .status();  // errors in nodes that the step does not need do not matter
  const auto check = [&](string_view what, const std::string& node, const std::string& name) {
    const int frame = found->of_outputs[graph.FindNode(node)->id()];
    if (frame == 0) return OkStatus();
    return InvalidArgument(what, " '", name, "' is inside the loop '", found->frames[frame].name,
                           "', where it has a value in each iteration: only what leaves a loop, by "
                           "an Exit, is a value of the step");
  };
  for (const TensorName& feed : options.feeds) {
    RETURN_IF_ERROR(check("Feed", feed.node, feed.ToString()));
  }
  for (const TensorName& fetch : options.fetches) {
    RETURN_IF_ERROR(check("Fetch", fetch.node, fetch.ToString()));
  }
  for (const std::string& target : options.targets) {
    RETURN_IF_ERROR(check("Target", target, target));
  }
  return OkStatus();
}

// The op by which an import replaces a large Const (core/graph/graph_proto.cc).
constexpr char kFilledConstOp[] = "_FilledConst";

// Copies the nodes of a graph that a step needs, sources before their consumers.
class Pruner {
 public:
  Pruner(const Graph& from, FeedMap feeds, const CompileOptions& options)
      : to_(from.registry()),
        feeds_(std::move(feeds)),
        options_(options),
        copies_(from.max_id(), nullptr) {}

  Status Need(Node* root) {
    RETURN_IF_ERROR(Visit(root));
    // Visiting the source of a back edge can find further loops.
    while (!back_edges_.empty()) {
      std::vector<std::pair<Node*, int>> edges = std::move(back_edges_);
      back_edges_.clear();
      for (const auto& [node, input] : edges) {
        const Endpoint source = SourceInStep(node->input(input), feeds_);
        RETURN_IF_ERROR(Visit(source.node));
        RETURN_IF_ERROR(to_.SetInput(CopyOf(node), input, CopiedEndpoint(source)));
      }
    }
    return OkStatus();
  }

  Status AddFetch(Endpoint source, int index) {
    if (source.node == nullptr) return Internal("fetch without a source");
    source = SourceInStep(source, feeds_);
    if (Fed(source)) {
      RETURN_IF_ERROR(AddFeed(source));
    } else {
      RETURN_IF_ERROR(Need(source.node));
    }
    const DType dtype = source.node->output_type(source.index).dtype;
    Graph::NodeSpec fetch = options_.partial_run
                                ? ClientEnd("_Send", PartialFetch(index))
                                : Graph::NodeSpec{.op = "_Fetch", .attrs = {{"index", index}}};
    fetch.attrs["T"] = dtype;
    fetch.inputs = {CopiedEndpoint(source)};
    return AddPinned(StrCat("_fetch_", source.node->name()), std::move(fetch)).status();
  }

  Graph Take() && { return std::move(to_); }

 private:
  bool Fed(const Endpoint& e) const {
    return !feeds_.empty() && feeds_.count({e.node->id(), e.index}) > 0;
  }
  Node* CopyOf(const Node* node) const { return copies_[node->id()]; }
  bool IsAvailable(const Endpoint& e) const { return Fed(e) || CopyOf(e.node) != nullptr; }

  // Copies `root` and the nodes that it needs. Visits depth first, a node's first input before its
  // second, without recursion, because graphs can be deeper than the stack. The order of the copies
  // matters: an executor starts the nodes without inputs in the graph's order, so a parameter
  // server sends weights in this order. Depth first, this is the order of the layers, so the first
  // layer can run while the weights of later layers are being sent.
  Status Visit(Node* root) {
    std::vector<Node*> stack = {root};
    while (!stack.empty()) {
      Node* node = stack.back();
      if (CopyOf(node) != nullptr) {
        stack.pop_back();
        continue;
      }
      if (!PushMissing(node, &stack)) {
        stack.pop_back();
        RETURN_IF_ERROR(Copy(node));
      }
    }
    return OkStatus();
  }

  bool PushMissing(Node* node, std::vector<Node*>* stack) {
    const size_t before = stack->size();
    for (const Endpoint& consumed : node->inputs()) {
      const Endpoint input = SourceInStep(consumed, feeds_);
      if (!IsAvailable(input) && !IsLoopBackEdge(*input.node, *node)) stack->push_back(input.node);
    }
    for (Node* control : node->control_inputs()) {
      if (CopyOf(control) == nullptr && !IsFedPlaceholder(*control, feeds_))
        stack->push_back(control);
    }
    std::reverse(stack->begin() + static_cast<ptrdiff_t>(before), stack->end());
    return stack->size() > before;
  }

  Status Copy(Node* node) {
    // core/functions converts a program's Case into _SwitchN.
    const bool made_on_import =
        node->op_name() == kFilledConstOp || node->op().flow == FlowOp::kSwitch;
    if (node->op().internal() && !made_on_import) {
      return InNode(InvalidArgument("op ", node->op_name(),
                                    " is the runtime's own and cannot be used in programs"),
                    node->name());
    }
    Graph::NodeSpec spec{.name = node->name(),
                         .op = node->op_name(),
                         .attrs = node->attrs(),
                         .device = node->requested_device()};
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Endpoint input = SourceInStep(node->input(i), feeds_);
      if (Fed(input)) RETURN_IF_ERROR(AddFeed(input));
      if (!IsAvailable(input)) back_edges_.emplace_back(node, i);
      spec.inputs.push_back(IsAvailable(input) ? CopiedEndpoint(input) : Endpoint{});
    }
    for (Node* control : node->control_inputs()) {
      if (IsFedPlaceholder(*control, feeds_)) {
        RETURN_IF_ERROR(AddFeed({control, 0}));
        spec.control_inputs.push_back(feed_nodes_.at({control->id(), 0}));
      } else {
        spec.control_inputs.push_back(CopyOf(control));
      }
    }
    ASSIGN_OR_RETURN(Node * copy, to_.AddNode(std::move(spec)));
    copies_[node->id()] = copy;
    return OkStatus();
  }

  Status AddFeed(const Endpoint& fed) {
    const std::pair key(fed.node->id(), fed.index);
    if (feed_nodes_.count(key) > 0) return OkStatus();
    const int index = feeds_.at(key);
    Graph::NodeSpec feed = options_.partial_run
                               ? ClientEnd("_Recv", PartialFeed(index))
                               : Graph::NodeSpec{.op = "_Feed", .attrs = {{"index", index}}};
    feed.attrs[options_.partial_run ? "tensor_type" : "T"] = fed.node->output_type(fed.index).dtype;
    ASSIGN_OR_RETURN(feed_nodes_[key],
                     AddPinned(StrCat("_feed_", fed.node->name()), std::move(feed)));
    return OkStatus();
  }

  // Returns the _Send or _Recv that exchanges a tensor with the client in a partial run.
  Graph::NodeSpec ClientEnd(const std::string& op, const std::string& tensor) const {
    const std::string client = options_.client_device.ToString();
    return {.op = op,
            .attrs = {{"tensor_name", tensor},
                      {"send_device", client},
                      {"send_device_incarnation", int64_t{0}},
                      {"recv_device", client},
                      {"client_terminated", true}}};
  }

  StatusOr<Node*> AddPinned(const std::string& name, Graph::NodeSpec spec) {
    spec.name = to_.UniqueName(name);
    spec.device = options_.client_device.ToString();
    return to_.AddNode(std::move(spec));
  }

  Endpoint CopiedEndpoint(const Endpoint& e) const {
    if (!feed_nodes_.empty()) {
      const auto feed = feed_nodes_.find({e.node->id(), e.index});
      if (feed != feed_nodes_.end()) return {feed->second, 0};
    }
    return {CopyOf(e.node), e.index};
  }

  Graph to_;
  const FeedMap feeds_;
  const CompileOptions& options_;
  std::vector<Node*> copies_;  // by id of the original node; null: not copied yet
  std::map<std::pair<int, int>, Node*> feed_nodes_;
  std::vector<std::pair<Node*, int>> back_edges_;  // (original node, input) to connect at the end
};

}  // namespace

Status Prune(PassContext& context) {
  const CompileOptions& options = context.options;
  if (options.fetches.empty() && options.targets.empty()) {
    return InvalidArgument("Must specify at least one target to fetch or execute.");
  }
  const Graph& graph = context.program;
  ASSIGN_OR_RETURN(FeedMap feeds, ResolveFeeds(graph, options));
  ASSIGN_OR_RETURN(const std::vector<Endpoint> fetches, ResolveFetches(graph, options, feeds));
  ASSIGN_OR_RETURN(const std::vector<Node*> targets, ResolveTargets(graph, options));
  Pruner pruner(graph, std::move(feeds), options);
  for (Node* target : targets) RETURN_IF_ERROR(pruner.Need(target));
  for (size_t i = 0; i < fetches.size(); ++i) {
    RETURN_IF_ERROR(pruner.AddFetch(fetches[i], static_cast<int>(i)));
  }
  *context.graph = std::move(pruner).Take();
  return CheckLoops(graph, *context.graph, options);
}

}  // namespace penstock
