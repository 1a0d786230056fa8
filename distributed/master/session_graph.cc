// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/session_graph.h"

#include <cstdio>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/base/log.h"
#include "core/compiler/compile.h"
#include "distributed/master/summarize_training.h"

namespace penstock {

// See core/base/suggest.h.
std::string SuggestNames(string_view name, const std::vector<string_view>& known);
namespace {

// Returns the shape that the graph states for feeds of a node's output; an unknown shape if it
// states none. Only placeholders state a shape; a feed of another node may have any shape.
PartialShape PromisedShape(const Node& node) {
  if (!node.op().is_placeholder) return PartialShape();
  const PartialShape* shape = node.attr<PartialShape>("shape");
  // Old clients write the shape of a scalar if they do not know the shape.
  if (shape == nullptr || shape->rank() == 0) return PartialShape();
  return *shape;
}

bool HasChoice(const PlacementReport& placement) {
  const auto has_choice = [](const PlacementReport::Group& group) { return group.has_choice(); };
  return absl::c_any_of(placement.groups, has_choice);
}

// Returns the device of each node; null if every node had only one possible device.
std::shared_ptr<const DeviceByNode> PlacementIn(const PlacementReport& placement) {
  if (!HasChoice(placement)) return nullptr;
  auto devices = std::make_shared<DeviceByNode>();
  for (const PlacementReport::Group& group : placement.groups) {
    devices->emplace(group.node, placement.devices[group.device]);
  }
  return devices;
}

}  // namespace

SessionGraph::SessionGraph(Options options)
    : options_(std::move(options)),
      places_automatically_(options_.session.placement == kPlacementAuto),
      graph_(*options_.registry) {}

StatusOr<int64_t> SessionGraph::Extend(int64_t expected_version,
                                       absl::FunctionRef<Status(Graph*)> add) {
  WriterMutexLock lock(mu_);
  if (expected_version >= 0 && expected_version != version_) {
    return Aborted("Current version is ", version_, " but caller expected ", expected_version, ".");
  }
  RETURN_IF_ERROR(add(&graph_));
  return ++version_;
}

int64_t SessionGraph::version() const {
  ReaderMutexLock lock(mu_);
  return version_;
}

void SessionGraph::Clear() {
  Graph freed(*options_.registry);  // destroyed after the lock is released
  WriterMutexLock lock(mu_);
  std::swap(graph_, freed);
}

void SessionGraph::RecordCosts(const std::vector<DeviceStats>& stats,
                               const MeasuredCosts::ClocksAhead& clocks_ahead) {
  ReaderMutexLock lock(mu_);
  costs_.Record(graph_, stats, clocks_ahead);
}

StatusOr<SessionGraph::Compiled> SessionGraph::Compile(PreparedStep* step) {
  ASSIGN_OR_RETURN(step->feeds, FeedsOf(*step));
  // If a fed value contradicts the shape that the graph states, only that execution fails. The
  // estimates are then based on the stated shape, which later values will have.
  step->expected_shapes.resize(step->feeds.size());
  for (size_t i = 0; i < step->feeds.size(); ++i) {
    const PartialShape& promised = step->feeds[i].shape;
    PartialShape& expected = step->expected_shapes[i];
    if (!expected.fully_known() || !promised.Compatible(expected)) expected = promised;
  }
  step->costs = costs_.Get();
  CompileReport report;
  ASSIGN_OR_RETURN(CompileOptions options, OptionsOf(*step));
  Compiled compiled;
  ASSIGN_OR_RETURN(compiled.partitions, CompileWith(*step, std::move(options), &report));
  if (options_.session.log_device_placement) LogPlacement(compiled.partitions);
  if (places_automatically_) step->placed = PlacementIn(report.placement);
  if (step->partial()) {
    ASSIGN_OR_RETURN(step->feeds_of_fetches, FeedsOfFetches(*step));
  }
  if (IsCluster()) {
    ReaderMutexLock lock(mu_);
    compiled.program = SummarizeTraining(graph_, compiled.partitions);
  }
  compiled.has_choice = HasChoice(report.placement);
  compiled.placement_kept = report.placement.kept;
  return compiled;
}

StatusOr<std::vector<PreparedStep::Feed>> SessionGraph::FeedsOf(const PreparedStep& step) const {
  ReaderMutexLock lock(mu_);
  std::vector<PreparedStep::Feed> feeds;
  for (const std::string& text : step.names().feeds) {
    ASSIGN_OR_RETURN(const TensorName name, TensorName::Parse(text));
    const Node* node = graph_.FindNode(name.node);
    if (node == nullptr) {
      std::vector<string_view> known;
      for (const Node* other : graph_.nodes()) known.push_back(other->name());
      return NotFound("FeedInputs: unable to find feed output ", text,
                      SuggestNames(name.node, known));
    }
    if (name.control || name.index < 0 || name.index >= node->num_outputs()) {
      return NotFound("FeedInputs: unable to find feed output ", text);
    }
    feeds.push_back({text, node->output_type(name.index).dtype, PromisedShape(*node)});
  }
  return feeds;
}

StatusOr<std::vector<std::vector<int>>> SessionGraph::FeedsOfFetches(
    const PreparedStep& step) const {
  ASSIGN_OR_RETURN(const CompileOptions options, OptionsOf(step));
  ReaderMutexLock lock(mu_);
  return penstock::FeedsOfFetches(graph_, options);
}

// Returns the session's limit; 0, no limit, for a step whose feeds have unknown sizes, such as a
// callable before its first run: PreparedSteps prepares that step again when it is fed (Outgrows).
// A partial run is never prepared again, so it has the limit from the start.
int64_t SessionGraph::MemoryLimitOf(const PreparedStep& step) const {
  return step.partial() || step.KnowsFeedSizes() ? options_.session.memory_limit : 0;
}

StatusOr<CompileOptions> SessionGraph::OptionsOf(const PreparedStep& step) const {
  CompileOptions options{.targets = step.names().targets,
                         .feed_shapes = step.expected_shapes,
                         .allow_soft_placement = options_.session.allow_soft_placement,
                         .optimize = options_.session.optimize,
                         .disabled_passes = options_.session.disabled_passes,
                         .bfloat16_transfers = options_.session.bfloat16_transfers,
                         .memory_limit = MemoryLimitOf(step),
                         .env = options_.env,
                         .threads = options_.threads,
                         .partial_run = step.partial(),
                         .client_device = options_.devices[0].name,
                         .costs = step.costs.get()};
  for (const std::string& feed : step.names().feeds) {
    ASSIGN_OR_RETURN(TensorName name, TensorName::Parse(feed));
    options.feeds.push_back(std::move(name));
  }
  for (const std::string& fetch : step.names().fetches) {
    ASSIGN_OR_RETURN(TensorName name, TensorName::Parse(fetch));
    if (name.control) return InvalidArgument("fetch '", fetch, "' is not a tensor");
    options.fetches.push_back(std::move(name));
  }
  return options;
}

StatusOr<std::vector<Partition>> SessionGraph::CompileWith(const PreparedStep& step,
                                                           CompileOptions options,
                                                           CompileReport* report) {
  std::shared_ptr<const DeviceByNode> state;
  ReaderMutexLock lock(mu_);
  if (places_automatically_) {
    ASSIGN_OR_RETURN(state, placement_.StateDevices(graph_, version_, options_.devices, options));
    options.any_task = true;
    options.state_devices = state.get();
    options.placed_before = step.placed.get();
  }
  return penstock::Compile(graph_, options_.devices, options, report);
}

Status SessionGraph::Predict(const PreparedStep& step, const CostTable* costs,
                             CompileReport* report) {
  ASSIGN_OR_RETURN(CompileOptions options, OptionsOf(step));
  options.costs = costs;
  options.feed_shapes = step.LikelyShapes();
  options.predict = true;
  return CompileWith(step, std::move(options), report).status();
}

bool SessionGraph::IsCluster() const {
  return absl::c_any_of(options_.devices, [&](const DeviceInfo& device) {
    return !device.name.SameTask(options_.devices[0].name);
  });
}

// Logs each node's device in TensorFlow's format. Leaves out nodes that the compiler has added.
void SessionGraph::LogPlacement(const std::vector<Partition>& partitions) const {
  std::string text;
  for (const Partition& partition : partitions) {
    for (const Node* const node : partition.graph.nodes()) {
      if (node->op().internal()) continue;
      StrAppend(&text, node->name(), ": (", node->op().name, "): ", partition.device, "\n");
    }
  }
  // Prints the text whatever the level of the log is, because the client has asked for it.
  if (CurrentLogOptions().format == LogFormat::kText) {
    std::fputs(text.c_str(), stderr);
  } else {
    Log({.task = options_.task, .event = "placement", .text = text});
  }
}

StatusOr<PreparedStep::Graphs> SessionGraph::PartitionGraphs(const PreparedStep& step) {
  ASSIGN_OR_RETURN(CompileOptions options, OptionsOf(step));
  ASSIGN_OR_RETURN(std::vector<Partition> partitions,
                   CompileWith(step, std::move(options), nullptr));
  PreparedStep::Graphs graphs;
  for (Partition& partition : partitions) {
    graphs.emplace_back(partition.device, std::move(partition.graph));
  }
  return graphs;
}

std::shared_ptr<const PreparedStep::Graphs> SessionGraph::KeptGraphs(PreparedStep& step) {
  std::shared_ptr<const PreparedStep::Graphs> kept = step.graphs();
  if (kept != nullptr) return kept;
  auto graphs = PartitionGraphs(step);
  if (!graphs.ok()) return nullptr;
  kept = std::make_shared<const PreparedStep::Graphs>(*std::move(graphs));
  step.KeepGraphs(kept);
  return kept;
}

}  // namespace penstock
