// SPDX-License-Identifier: Apache-2.0
//
// The methods of MasterSession that prepare a step: compile it, and register each part with its
// task.
#include <cstdio>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/base/error_origin.h"
#include "core/base/join.h"
#include "core/base/log.h"
#include "core/compiler/compile.h"
#include "core/op/task_name.h"
#include "distributed/master/master_session.h"

namespace penstock {

// See core/base/suggest.h.
std::string SuggestNames(string_view name, const std::vector<string_view>& known);
namespace {

constexpr int64_t kRegisterTimeoutMs = 60'000;

// Returns the shape that feeds of an output must have, as far as the graph says. Only placeholders
// state a shape; a feed of another node may have any shape.
PartialShape PromisedShape(const Node& node) {
  if (!node.op().is_placeholder) return PartialShape();
  const PartialShape* shape = node.attr<PartialShape>("shape");
  // Old clients write the shape of a scalar if they do not know the shape.
  if (shape == nullptr || shape->rank() == 0) return PartialShape();
  return *shape;
}

bool LeavesChoice(const PlacementReport& placement) {
  const auto has_choice = [](const PlacementReport::Group& group) { return group.has_choice(); };
  return absl::c_any_of(placement.groups, has_choice);
}

std::vector<PartialShape> ShapesOf(absl::Span<const Tensor> tensors) {
  std::vector<PartialShape> shapes;
  for (const Tensor& tensor : tensors) shapes.emplace_back(tensor.shape());
  return shapes;
}

// Returns null if no node could be placed on several devices.
std::shared_ptr<const DeviceByNode> PlacementIn(const PlacementReport& placement) {
  if (!LeavesChoice(placement)) return nullptr;
  auto devices = std::make_shared<DeviceByNode>();
  for (const PlacementReport::Group& group : placement.groups) {
    devices->emplace(group.node, placement.devices[group.device]);
  }
  return devices;
}

}  // namespace

void MasterSession::AwaitPrepared(const Prepared& step, absl::Span<const Tensor> feeds, Done done) {
  if (step->AwaitReady(std::move(done))) Prepare(step, ShapesOf(feeds));
}

void MasterSession::Prepare(const Prepared& step, std::vector<PartialShape> fed_shapes) {
  step->expected_shapes = std::move(fed_shapes);
  PlacementReport placement;
  auto partitions = CompileNew(step.get(), &placement);
  if (!partitions.ok()) return EndPreparing(step, partitions.status());
  step->may_adapt_to_feeds = LeavesChoice(placement) && !step->feeds.empty();
  Register(step, *std::move(partitions));
}

StatusOr<std::vector<Partition>> MasterSession::CompileNew(PreparedStep* step,
                                                           PlacementReport* placement) {
  RETURN_IF_ERROR(steps_->CheckOpen());
  ASSIGN_OR_RETURN(step->feeds, FeedsOf(*step));
  // If a value does not have the shape that the graph states, only its own step fails; later values
  // will have that shape.
  step->expected_shapes.resize(step->feeds.size());
  for (size_t i = 0; i < step->feeds.size(); ++i) {
    const PartialShape& promised = step->feeds[i].shape;
    PartialShape& expected = step->expected_shapes[i];
    if (!expected.fully_known() || !promised.Compatible(expected)) expected = promised;
  }
  step->costs = costs_.Get();
  CompileReport report;
  ASSIGN_OR_RETURN(std::vector<Partition> partitions, CompileStep(*step, &report));
  if (options_.session.log_device_placement) LogPlacement(partitions);
  if (places_automatically_) step->placed = PlacementIn(report.placement);
  if (step->partial()) {
    ASSIGN_OR_RETURN(step->feeds_of_fetches, FeedsOfFetches(*step));
  }
  if (placement != nullptr) *placement = std::move(report.placement);
  return partitions;
}

void MasterSession::Register(const Prepared& step, std::vector<Partition> partitions) {
  step->session = handle();
  step->tasks = tasks_;
  std::map<std::string, std::vector<Partition>> by_task;
  for (Partition& partition : partitions) {
    const auto task = TaskName::OfDevice(partition.device);
    CHECK_OK(task.status());  // PartitionGraph was given the full names of the devices
    by_task[task->ToString()].push_back(std::move(partition));
  }
  for (auto task = tasks().rbegin(); task != tasks().rend(); ++task) {
    if (by_task.count(task->id.name) > 0) step->parts.push_back({&*task, next_graph_++});
  }
  auto join = std::make_shared<Join>(Done([self = shared_from_this(), step](Status status) {
    self->EndPreparing(step, std::move(status));
  }));
  for (const PreparedStep::Part& part : step->parts) {
    part.task->client->RegisterGraph(
        handle(), part.graph, std::move(by_task[part.task->id.name]),
        {.incarnation = part.task->id.incarnation, .timeout_ms = TimeoutMs(kRegisterTimeoutMs)},
        Join::Part(join));
  }
}

void MasterSession::EndPreparing(const Prepared& step, Status status) {
  const bool alone = step->parts.size() == 1;
  Worker* const worker = alone ? step->parts[0].task->client->in_process() : nullptr;
  if (status.ok() && worker != nullptr) {
    auto graph = worker->FindGraph(handle(), step->parts[0].graph);
    if (!graph.ok()) {
      status = graph.status();
    } else if ((*graph)->one_part() && !(*graph)->communicates() &&
               worker->step_gate() == nullptr) {
      step->local = *std::move(graph);
    }
  }
  if (!status.ok()) cache_.Drop(*step);
  step->Finish(ShowNode(status));
}

StatusOr<std::vector<PreparedStep::Feed>> MasterSession::FeedsOf(const PreparedStep& step) const {
  ReaderMutexLock lock(graph_mu_);
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

// Returns the session's limit; 0, no limit, for a callable before its first feeds, for which it is
// prepared again (Outgrows). A partial run is never prepared again, so it has the limit from the
// start.
int64_t MasterSession::MemoryLimitOf(const PreparedStep& step) const {
  return step.partial() || step.KnowsFeedSizes() ? options_.session.memory_limit : 0;
}

StatusOr<CompileOptions> MasterSession::OptionsOf(const PreparedStep& step) const {
  CompileOptions options{.targets = step.names().targets,
                         .feed_shapes = step.expected_shapes,
                         .allow_soft_placement = options_.session.allow_soft_placement,
                         .optimize = options_.session.optimize,
                         .disabled_passes = options_.session.disabled_passes,
                         .bfloat16_transfers = options_.session.bfloat16_transfers,
                         .memory_limit = MemoryLimitOf(step),
                         .env = options_.services.env,
                         .threads = options_.services.threads,
                         .partial_run = step.partial(),
                         .client_device = tasks()[0].devices[0].name,
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

StatusOr<std::vector<Partition>> MasterSession::CompileStep(const PreparedStep& step,
                                                            CompileReport* report) {
  ASSIGN_OR_RETURN(CompileOptions options, OptionsOf(step));
  return CompileWith(step, std::move(options), report);
}

StatusOr<std::vector<Partition>> MasterSession::CompileWith(const PreparedStep& step,
                                                            CompileOptions options,
                                                            CompileReport* report) {
  std::shared_ptr<const DeviceByNode> state;
  ReaderMutexLock lock(graph_mu_);
  if (places_automatically_) {
    ASSIGN_OR_RETURN(state, placement_.StateDevices(graph_, version_, devices(), options));
    options.any_task = true;
    options.state_devices = state.get();
    options.placed_before = step.placed.get();
  }
  return Compile(graph_, devices(), options, report);
}

void MasterSession::AdaptToFeeds(const Prepared& step, absl::Span<const Tensor> feeds) {
  if (!step->FeedsDiffer(feeds) || !step->may_adapt_to_feeds.exchange(false)) return;
  PlaceAgain(step, ShapesOf(feeds));
}

bool MasterSession::Outgrows(const PreparedStep& step, absl::Span<const Tensor> feeds) const {
  return options_.session.memory_limit > 0 && step.AnyFeedLarger(feeds);
}

void MasterSession::PrepareLarger(const Prepared& step, absl::Span<const Tensor> feeds,
                                  UseLarger use) {
  const auto anew = std::make_shared<PreparedStep>(step->names());
  anew->placed = step->placed;
  const bool first = anew->AwaitReady(
      Done([self = shared_from_this(), step, anew, use = std::move(use)](Status status) mutable {
        if (!status.ok()) return std::move(use)(std::move(status));
        self->Replace(*step, anew);
        std::move(use)(anew);
      }));
  CHECK(first, "nobody else knows the new step");
  options_.services.threads->Schedule(
      [self = shared_from_this(), anew, shapes = ShapesOf(feeds)]() mutable {
        self->Prepare(anew, std::move(shapes));
      });
}

void MasterSession::PlaceAgain(const Prepared& step, std::vector<PartialShape> fed_shapes) {
  options_.services.threads->Schedule(
      [self = shared_from_this(), step, shapes = std::move(fed_shapes)]() mutable {
        const auto anew = std::make_shared<PreparedStep>(step->names());
        anew->placed = step->placed;
        anew->expected_shapes = std::move(shapes);
        anew->may_adapt_to_feeds = step->may_adapt_to_feeds.load();
        PlacementReport placement;
        auto partitions = self->CompileNew(anew.get(), &placement);
        // An error here means that the session ends or a task is lost. The next execution of the
        // old step will report it.
        if (!partitions.ok() || placement.kept) return;
        const bool first = anew->AwaitReady(Done([self, step, anew](const Status& status) {
          if (status.ok()) self->Replace(*step, anew);
        }));
        CHECK(first, "nobody else knows the new step");
        self->Register(anew, *std::move(partitions));
      });
}

void MasterSession::Replace(const PreparedStep& step, const Prepared& anew) {
  cache_.Replace(step, anew);
  callables_.Replace(step, anew);
}

StatusOr<std::vector<std::vector<int>>> MasterSession::FeedsOfFetches(
    const PreparedStep& step) const {
  ASSIGN_OR_RETURN(const CompileOptions options, OptionsOf(step));
  ReaderMutexLock lock(graph_mu_);
  return penstock::FeedsOfFetches(graph_, options);
}

// Logs each node's device in TensorFlow's format. Nodes whose names begin with "_" were added by
// the compiler.
void MasterSession::LogPlacement(const std::vector<Partition>& partitions) const {
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
    Log({.task = tasks()[0].id.name, .event = "placement", .text = text});
  }
}

StatusOr<PreparedStep::Graphs> MasterSession::PartitionGraphs(const PreparedStep& step) {
  ASSIGN_OR_RETURN(std::vector<Partition> partitions, CompileStep(step, nullptr));
  PreparedStep::Graphs graphs;
  for (Partition& partition : partitions) {
    graphs.emplace_back(partition.device, std::move(partition.graph));
  }
  return graphs;
}

std::shared_ptr<const PreparedStep::Graphs> MasterSession::KeptGraphs(PreparedStep& step) {
  std::shared_ptr<const PreparedStep::Graphs> kept = step.graphs();
  if (kept != nullptr) return kept;
  auto graphs = PartitionGraphs(step);
  if (!graphs.ok()) return nullptr;
  kept = std::make_shared<const PreparedStep::Graphs>(*std::move(graphs));
  step.KeepGraphs(kept);
  return kept;
}

}  // namespace penstock
