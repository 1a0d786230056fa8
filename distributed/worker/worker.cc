// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/worker.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/error_origin.h"
#include "core/base/fault_point.h"
#include "core/base/log.h"
#include "core/op/private_attrs.h"
#include "distributed/collective/exchange.h"
#include "distributed/worker/gate_wait.h"

namespace penstock {
namespace {

const FaultPoint kSessionsStay(FaultPoint::kBug, "worker/session-kept",
                               "a task keeps a session that its master has deleted");
const FaultPoint kFollowerServes(FaultPoint::kBug, "worker/follower-serves",
                                 "a replica that is not the primary takes sessions");

// The transfers of a step, as its partitions declare them.
struct Traffic {
  bool communicates = false;
  std::set<TaskName> producers;  // other tasks that send tensors to this one
};

// Returns whether the node is a collective. Only ops of collectives have an attribute, or an input,
// for the instance.
bool IsCollective(const Node& node) {
  constexpr char kInstance[] = "instance_key";
  const std::vector<ArgDef>& inputs = node.op().inputs;
  return node.attr<int64_t>(kInstance) != nullptr ||
         std::any_of(inputs.begin(), inputs.end(),
                     [&](const ArgDef& input) { return input.name == kInstance; });
}

StatusOr<Traffic> TrafficOf(const std::vector<Partition>& partitions, const TaskName& self) {
  Traffic traffic;
  for (const Partition& partition : partitions) {
    for (const Node* node : partition.graph.nodes()) {
      // The Step is both the rendezvous and the Collectives of kernels, so a collective needs it.
      traffic.communicates |= IsCollective(*node);
      const bool recv = node->op().end == EndOp::kRecv;
      if (!recv && node->op().end != EndOp::kSend) continue;
      traffic.communicates = true;
      const std::string* source = node->attr<std::string>("send_device");
      if (!recv || source == nullptr) continue;
      StatusOr<TaskName> task = TaskName::OfDevice(*source);
      if (!task.ok()) return InNode(Annotate(task.status(), "send_device"), node->name());
      if (*task != self) traffic.producers.insert(*std::move(task));
    }
  }
  return traffic;
}

std::string PrivateContainer(const std::string& session) {
  return StrCat(kPrivateContainerPrefix, session);
}

// Sets kPrivateContainerAttr (core/op/private_attrs.h) on nodes whose resources belong only to the
// session.
void MarkPrivateResources(const std::string& session, Graph* graph) {
  for (Node* node : graph->nodes()) {
    const std::string* name = node->attr<std::string>("shared_name");
    if (!node->op().in_session && (name == nullptr || !name->empty())) continue;
    graph->set_attr(node, kPrivateContainerAttr, PrivateContainer(session));
  }
}

TaskName NameOf(const TaskId& task) {
  StatusOr<TaskName> name = TaskName::Parse(task.name);
  CHECK_OK(name.status());
  return *std::move(name);
}

}  // namespace

Worker::Worker(Options options)
    : self_(std::move(options.self)),
      name_(NameOf(self_)),
      devices_(std::move(options.devices)),
      threads_(*options.threads),
      env_(*options.env),
      timer_(*options.timer),
      exchange_(std::make_unique<collective::Exchange>(collective::Exchange::Options{
          .self = name_,
          .threads = &threads_,
          .env = &env_,
          .timer = &timer_,
          .tasks_of = [this](const std::string& session) { return TasksOf(session); }})),
      steps_(name_, env_, timer_),
      sessions_(self_, env_),
      memory_(options.memory),
      account_(*options.account) {
  steps_.set_exchange(exchange_.get());
}

Worker::~Worker() = default;

void Worker::set_transport(Transport* transport) {
  transport_ = transport;
  exchange_->set_transport(transport);
}

std::vector<DeviceInfo> Worker::devices() const {
  std::vector<DeviceInfo> infos;
  for (const auto& device : devices_) infos.push_back(device->info());
  return infos;
}

Device* Worker::FindDevice(string_view name) const {
  for (const auto& device : devices_) {
    if (device->name() == name) return device.get();
  }
  return nullptr;
}

Status Worker::CreateSession(const WorkerSessionOptions& options) {
  if (refusing_) return Unavailable(self_.ToString(), " is shutting down");
  if (!serving_ && !kFollowerServes.Fires()) {
    return Unavailable(self_.ToString(),
                       " does not serve: it is, or becomes, the follower of its "
                       "other replica");
  }
  auto session = std::make_shared<WorkerSession>();
  session->options = options;
  session->memory = std::make_shared<SessionMemory>(options.handle, memory_, account_);
  for (const TaskId& task : options.tasks) {
    ASSIGN_OR_RETURN(TaskName name, TaskName::Parse(task.name));
    session->tasks[std::move(name)] = task;
  }
  if (options.isolate_state) {
    for (const auto& device : devices_) {
      session->isolated[device->name()] = std::make_shared<ResourceStore>();
    }
  }
  for (const std::string& superseded : sessions_.Add(std::move(session))) {
    update_rules_.Remove(superseded);  // a restarted master may run another program
  }
  return OkStatus();
}

void Worker::MasterLost(const TaskId& master, const Status& why) {
  const bool restarted = absl::IsAborted(why);
  for (const std::string& handle : sessions_.HandlesOf(master, /*silent_only=*/!restarted)) {
    const Status cause(restarted ? StatusCode::kAborted : StatusCode::kUnavailable,
                       StrCat(self_.ToString(), " has ended the steps of session ", handle,
                              ", because it has lost their master: ", why.message()));
    restarted ? EndSession(handle, cause) : steps_.AbortSession(handle, cause);
  }
}

void Worker::DeleteSession(const std::string& handle) {
  EndSession(handle, Cancelled("session ", handle, " was closed"));
}

void Worker::EndSession(const std::string& handle, const Status& why) {
  if (kSessionsStay.Fires()) return;
  SessionTable::Removed removed = sessions_.Remove(handle);
  if (removed.session == nullptr) return;
  update_rules_.Remove(handle);
  exchange_->EndSession(handle, why);
  steps_.AbortSession(handle, why);
  for (const auto& [device, store] : removed.session->isolated) store->ClearAll();
  for (const auto& device : devices_) {
    device->resources().ClearContainer(PrivateContainer(handle));
  }
  removed.graphs.clear();
  removed.session = nullptr;
  deleted_ = true;
}

bool Worker::in_use(int64_t quiet_ns) const {
  const StepTable::Counts steps = steps_.counts();
  if (steps.running > 0) return true;
  if (steps.last_end_ns == 0 || env_.NowNanos() - steps.last_end_ns >= quiet_ns) return false;
  return sessions_.has_graphs();
}

void Worker::DeleteExpiredSessions() {
  // Uses Aborted, not Cancelled: if the master still runs steps of such a session, its client then
  // makes a new session.
  for (const auto& [handle, silent_ns] : sessions_.FindExpired()) {
    EndSession(handle,
               Aborted(self_.ToString(), " has ended session ", handle,
                       ", because it has not heard its master for ", silent_ns / 1'000'000, " ms"));
  }
}

StatusOr<std::vector<TaskId>> Worker::TasksOf(const std::string& handle) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<WorkerSession> session, sessions_.Find(handle));
  return session->options.tasks;
}

Status Worker::RegisterGraph(const std::string& handle, uint64_t graph,
                             std::vector<Partition> partitions, const TrainingProgram& program) {
  ASSIGN_OR_RETURN(const std::shared_ptr<WorkerSession> session, sessions_.Find(handle));
  NoteUpdateRules(session->options, partitions, program);
  ASSIGN_OR_RETURN(std::shared_ptr<WorkerGraph> made, MakeGraph(*session, std::move(partitions)));
  sessions_.AddGraph(session, graph, std::move(made));
  return OkStatus();
}

void Worker::NoteUpdateRules(const WorkerSessionOptions& session,
                             const std::vector<Partition>& partitions,
                             const TrainingProgram& program) {
  if (session.isolate_state) return;  // the session has variables of its own
  const std::string master =
      session.tasks.empty() ? "an unknown master" : session.tasks[0].ToString();
  for (const Partition& partition : partitions) {
    for (std::string& difference :
         update_rules_.Add(session.handle, master, partition.device, partition.graph, program)) {
      Log({.level = LogLevel::kWarning,
           .task = self_.name,
           .event = "programs_differ",
           .text = std::move(difference),
           .fields = {{"session", session.handle}},
           .limited = true});
    }
  }
  // The session may have ended meanwhile.
  if (!sessions_.Find(session.handle).ok()) update_rules_.Remove(session.handle);
}

StatusOr<std::shared_ptr<WorkerGraph>> Worker::MakeGraph(WorkerSession& session,
                                                         std::vector<Partition> partitions) const {
  ASSIGN_OR_RETURN(const Traffic traffic, TrafficOf(partitions, name_));
  std::vector<WorkerGraph::Part> parts;
  for (Partition& partition : partitions) {
    Device* const device = FindDevice(partition.device);
    if (device == nullptr) {
      return InvalidArgument("a partition for ", partition.device, ", which ", self_.name,
                             " does not have");
    }
    WorkerGraph::Part part;
    const auto isolated = session.isolated.find(device->name());
    if (isolated != session.isolated.end()) {
      part.store_kept = isolated->second;
      part.resources = part.store_kept.get();
    } else {
      MarkPrivateResources(session.options.handle, &partition.graph);
    }
    const ExecutorOptions options{.device = device,
                                  .threads = &threads_,
                                  .env = &env_,
                                  .timer = &timer_,
                                  .kernels = &session.kernels};
    ASSIGN_OR_RETURN(part.executor, MakeExecutor(std::move(partition.graph), options));
    parts.push_back(std::move(part));
  }
  if (parts.empty()) return InvalidArgument("a graph without partitions for ", self_.name);
  return std::make_shared<WorkerGraph>(
      std::move(parts), std::vector<TaskName>(traffic.producers.begin(), traffic.producers.end()),
      traffic.communicates, session.memory);
}

void Worker::DeregisterGraph(const std::string& handle, uint64_t graph) {
  sessions_.RemoveGraph(handle, graph);
}

std::vector<Worker::Store> Worker::stores() const {
  std::vector<Store> stores;
  for (const auto& device : devices_) {
    stores.push_back({device->name(), &device->resources(), nullptr});
  }
  for (const auto& session : sessions_.sessions()) {
    for (const auto& [device, store] : session->isolated) {
      stores.push_back({device, store.get(), store});
    }
  }
  return stores;
}

std::vector<Worker::AllocatorUse> Worker::allocators() const {
  std::vector<AllocatorUse> uses;
  for (const auto& device : devices_) {
    Allocator& allocator = device->allocator();
    AllocatorUse use = {device->name(), allocator.name(), allocator.stats()};
    if (use.stats.bytes_limit == 0 && allocator.host_accessible()) {
      use.stats.bytes_limit = account_.limit();
    }
    uses.push_back(std::move(use));
  }
  return uses;
}

std::vector<Worker::SessionUse> Worker::session_memory() const {
  std::vector<SessionUse> uses;
  for (const auto& session : sessions_.sessions()) {
    const MemoryAccount& account = session->memory->account();
    uses.push_back({session->options.handle, account.in_use(), account.peak(), account.limit()});
  }
  return uses;
}

StatusOr<std::vector<TaskId>> Worker::ProducersOf(const std::string& handle,
                                                  const WorkerGraph& graph) const {
  std::vector<TaskId> producers;
  if (graph.producers().empty()) return producers;
  if (transport_ == nullptr) return Internal(self_.name, " has no transport to other tasks");
  ASSIGN_OR_RETURN(const std::shared_ptr<WorkerSession> session, sessions_.Find(handle));
  for (const TaskName& name : graph.producers()) {
    const auto task = session->tasks.find(name);
    if (task == session->tasks.end()) {
      return InvalidArgument("session ", handle, " has no address for ", name.ToString());
    }
    producers.push_back(task->second);
  }
  return producers;
}

void Worker::RunGraph(const RunGraphArgs& args, Done done) {
  // Begins the step before it looks up the session, so that a deletion of the session from now on
  // aborts the step.
  auto begun = steps_.Begin(args.step_id, args.session);
  if (!begun.ok()) return std::move(done)(begun.status());
  const std::shared_ptr<Step> step = *std::move(begun);
  auto graph = FindGraph(args.session, args.graph);
  Status known = graph.status();
  StatusOr<std::vector<TaskId>> producers = std::vector<TaskId>();
  if (known.ok()) {
    producers = ProducersOf(args.session, **graph);
    known = producers.status();
  }
  if (!known.ok()) {
    step->Cancel(known);
    steps_.End(step->id());
    return std::move(done)(std::move(known));
  }
  if (args.step != nullptr) *args.step = step;
  for (const TaskId& producer : *producers) transport_->Subscribe(producer, step->id());

  Done ended([this, step, producers = *std::move(producers),
              done = std::move(done)](Status status) mutable {
    for (const TaskId& producer : producers) transport_->Unsubscribe(producer, step->id());
    steps_.End(step->id());
    std::move(done)(std::move(status));
  });
  if (gate_ != nullptr) gate_->StepBegins(step->id());
  Done passed([step, ended = std::move(ended)](Status status) mutable {
    if (status.ok()) return step->WhenSent(std::move(ended));
    step->Cancel(status);
    std::move(ended)(std::move(status));
  });
  Done ran([this, step, deadline_ns = args.deadline_ns,
            passed = std::move(passed)](Status status) mutable {
    if (gate_ == nullptr) return std::move(passed)(std::move(status));
    AwaitGate(*gate_, step, status, deadline_ns,
              {.threads = &threads_, .timer = &timer_, .task = self_.name}, std::move(passed));
  });
  StepArgs step_args{.step_id = args.step_id,
                     .rendezvous = step.get(),
                     .cancellation = &step->cancellation(),
                     .step_resources = &step->resources(),
                     .deadline_ns = args.deadline_ns,
                     .feeds = args.feeds,
                     .num_feeds = args.num_feeds,
                     .fetches = args.fetches,
                     .num_fetches = args.num_fetches,
                     .stats = args.stats,
                     .may_start_here = args.may_start_here};
  if (args.on_this_thread && (*graph)->one_part()) {
    step_args.poller = poller();
    return std::move(ran)((*graph)->Run(step_args));
  }
  (*graph)->RunAsync(step_args, std::move(ran));
}

void Worker::Reset(const std::vector<std::string>& containers) {
  if (!serving_) return;  // the state belongs to the other replica, which serves
  for (const auto& device : devices_) {
    if (containers.empty()) device->resources().ClearContainer(kDefaultContainer);
    for (const std::string& container : containers) {
      device->resources().ClearContainer(container);
    }
  }
}

}  // namespace penstock
