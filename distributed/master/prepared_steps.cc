// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/prepared_steps.h"

#include <map>
#include <utility>

#include "core/base/error_origin.h"
#include "core/base/join.h"
#include "core/compiler/compile.h"
#include "core/op/task_name.h"

namespace penstock {
namespace {

std::vector<PartialShape> ShapesOf(absl::Span<const Tensor> tensors) {
  std::vector<PartialShape> shapes;
  for (const Tensor& tensor : tensors) shapes.emplace_back(tensor.shape());
  return shapes;
}

// Returns whether the partitions update variables.
bool Updates(const std::vector<Partition>& partitions) {
  for (const Partition& partition : partitions) {
    for (const Node* const node : partition.graph.nodes()) {
      if (!node->op().update_rule.empty()) return true;
    }
  }
  return false;
}

int64_t TensorBytesOf(const std::vector<Partition>& partitions) {
  int64_t bytes = 0;
  for (const Partition& partition : partitions) {
    for (const Node* const node : partition.graph.nodes()) {
      for (const auto& [name, attr] : node->attrs()) {
        const Tensor* const tensor = attr.get<Tensor>();
        if (tensor != nullptr) bytes += static_cast<int64_t>(tensor->bytes());
      }
    }
  }
  return bytes;
}

// Returns the default limit for registering graphs with so many bytes of tensors.
int64_t RegisterTimeoutMs(int64_t bytes) {
  constexpr int64_t kMinuteMs = 60'000, kMiB = 1 << 20;
  return kMinuteMs + bytes / kMiB * kMinuteMs / 1024;
}

}  // namespace

std::vector<PreparedSteps::Prepared> PreparedSteps::List() const {
  std::vector<Prepared> steps = cache_.List();
  for (Prepared& step : callables_.Steps()) steps.push_back(std::move(step));
  return steps;
}

void PreparedSteps::Await(const Prepared& step, absl::Span<const Tensor> feeds, Done done) {
  if (step->AwaitReady(std::move(done))) Prepare(step, ShapesOf(feeds));
}

void PreparedSteps::AwaitOnPool(const Prepared& step, std::vector<PartialShape> fed_shapes,
                                Done done) {
  if (!step->AwaitReady(std::move(done))) return;
  options_.threads->Schedule(
      [self = shared_from_this(), step, shapes = std::move(fed_shapes)]() mutable {
        self->Prepare(step, std::move(shapes));
      });
}

void PreparedSteps::Prepare(const Prepared& step, std::vector<PartialShape> fed_shapes) {
  step->expected_shapes = std::move(fed_shapes);
  auto compiled = Compile(step.get());
  if (!compiled.ok()) return EndPreparing(step, compiled.status());
  step->may_adapt_to_feeds = compiled->has_choice && !step->feeds.empty();
  Register(step, *std::move(compiled));
}

StatusOr<SessionGraph::Compiled> PreparedSteps::Compile(PreparedStep* step) {
  RETURN_IF_ERROR(options_.steps->CheckOpen());
  return options_.graph->Compile(step);
}

void PreparedSteps::Register(const Prepared& step, SessionGraph::Compiled compiled) {
  step->session = options_.session;
  step->tasks = options_.tasks;
  const int64_t timeout_ms = options_.register_timeout_ms > 0
                                 ? options_.register_timeout_ms
                                 : RegisterTimeoutMs(TensorBytesOf(compiled.partitions));
  std::map<std::string, std::vector<Partition>> by_task;
  for (Partition& partition : compiled.partitions) {
    const auto task = TaskName::OfDevice(partition.device);
    CHECK_OK(task.status());  // PartitionGraph was given the full names of the devices
    by_task[task->ToString()].push_back(std::move(partition));
  }
  const std::vector<SessionTask>& tasks = options_.tasks->list;
  for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
    if (by_task.count(task->id.name) > 0) step->parts.push_back({&*task, next_graph_++});
  }
  auto join = std::make_shared<Join>(Done([self = shared_from_this(), step](Status status) {
    self->EndPreparing(step, std::move(status));
  }));
  const TrainingProgram no_updates;
  for (const PreparedStep::Part& part : step->parts) {
    std::vector<Partition>& partitions = by_task[part.task->id.name];
    const TrainingProgram& program = Updates(partitions) ? compiled.program : no_updates;
    part.task->client->RegisterGraph(
        options_.session, part.graph, std::move(partitions), program,
        {.incarnation = part.task->id.incarnation, .timeout_ms = timeout_ms},
        Join::Part(join));
  }
}

void PreparedSteps::EndPreparing(const Prepared& step, Status status) {
  const bool alone = step->parts.size() == 1;
  Worker* const worker = alone ? step->parts[0].task->client->in_process() : nullptr;
  if (status.ok() && worker != nullptr) {
    auto graph = worker->FindGraph(options_.session, step->parts[0].graph);
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

void PreparedSteps::AdaptToFeeds(const Prepared& step, absl::Span<const Tensor> feeds) {
  if (!step->FeedsDiffer(feeds) || !step->may_adapt_to_feeds.exchange(false)) return;
  PlaceAgain(step, ShapesOf(feeds));
}

void PreparedSteps::PrepareLarger(const Prepared& step, absl::Span<const Tensor> feeds,
                                  UseLarger use) {
  const auto next = std::make_shared<PreparedStep>(step->names());
  next->placed = step->placed;
  const bool first = next->AwaitReady(
      Done([self = shared_from_this(), step, next, use = std::move(use)](Status status) mutable {
        if (!status.ok()) return std::move(use)(std::move(status));
        self->Replace(*step, next);
        std::move(use)(next);
      }));
  CHECK(first, "nobody else knows the new step");
  options_.threads->Schedule([self = shared_from_this(), next, shapes = ShapesOf(feeds)]() mutable {
    self->Prepare(next, std::move(shapes));
  });
}

void PreparedSteps::PlaceAgain(const Prepared& step, std::vector<PartialShape> fed_shapes) {
  options_.threads->Schedule(
      [self = shared_from_this(), step, shapes = std::move(fed_shapes)]() mutable {
        const auto next = std::make_shared<PreparedStep>(step->names());
        next->placed = step->placed;
        next->expected_shapes = std::move(shapes);
        next->may_adapt_to_feeds = step->may_adapt_to_feeds.load();
        auto compiled = self->Compile(next.get());
        // An error here means that the session ends or a task is lost. The next execution of the
        // old step will report it.
        if (!compiled.ok() || compiled->placement_kept) return;
        const bool first = next->AwaitReady(Done([self, step, next](const Status& status) {
          if (status.ok()) self->Replace(*step, next);
        }));
        CHECK(first, "nobody else knows the new step");
        self->Register(next, *std::move(compiled));
      });
}

void PreparedSteps::Replace(const PreparedStep& step, const Prepared& other) {
  cache_.Replace(step, other);
  callables_.Replace(step, other);
}

}  // namespace penstock
