// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/master_session.h"

#include <chrono>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/base/join.h"
#include "core/base/timeout.h"
#include "core/compiler/compile.h"
#include "core/runtime/poller.h"
#include "distributed/master/health.h"

namespace penstock {
namespace {

constexpr int64_t kMinuteMs = 60'000;
constexpr int64_t kDayMs = 24 * 60 * kMinuteMs;
// A worker deletes a session if its master has not renewed the lease for this long.
constexpr int64_t kLeaseMs = kMinuteMs;
// How long a thread polls for the end of a step before it blocks: about the cost of waking it.
constexpr auto kSpin = std::chrono::microseconds(50);

std::vector<DeviceInfo> DevicesOf(const std::vector<SessionTask>& tasks) {
  std::vector<DeviceInfo> devices;
  for (const SessionTask& task : tasks) {
    devices.insert(devices.end(), task.devices.begin(), task.devices.end());
  }
  return devices;
}

}  // namespace

MasterSession::MasterSession(Options options)
    : options_(std::move(options)),
      tasks_(std::make_shared<SessionTasks>()),
      created_ns_(options_.services.env->NowNanos()),
      activity_(std::make_shared<ClientActivity>(*options_.services.env)),
      steps_(std::make_shared<SessionSteps>(SessionSteps::Options{.session = options_.handle,
                                                                  .task = options_.tasks[0].id,
                                                                  .services = options_.services,
                                                                  .counters = options_.counters,
                                                                  .activity = activity_})),
      partial_runs_(std::make_shared<PartialRuns>(
          PartialRuns::Options{.session = options_.handle,
                               .client_device = options_.tasks[0].devices[0].name.ToString(),
                               .services = options_.services,
                               .steps = steps_})),
      graph_(std::make_shared<SessionGraph>(
          SessionGraph::Options{.session = options_.session,
                                .registry = options_.registry,
                                .task = options_.tasks[0].id.name,
                                .devices = DevicesOf(options_.tasks),
                                .env = options_.services.env,
                                .threads = options_.services.threads})),
      prepared_(std::make_shared<PreparedSteps>(
          PreparedSteps::Options{.session = options_.handle,
                                 .tasks = tasks_,
                                 .graph = graph_,
                                 .steps = steps_,
                                 .threads = options_.services.threads,
                                 .register_timeout_ms = TimeoutMs(0),
                                 .memory_limit = options_.session.memory_limit})),
      measuring_({.session = options_.handle,
                  .build_cost_model = options_.session.build_cost_model,
                  .build_cost_model_after = options_.session.build_cost_model_after,
                  .env = options_.services.env,
                  .health = options_.health,
                  .recorder = options_.recorder,
                  .graph = graph_,
                  .prepared = prepared_}) {
  tasks_->list = options_.tasks;
}

MasterSession::~MasterSession() {
  CHECK(!steps_->CheckOpen().ok(), "session ", handle(), " was not closed");
}

StatusOr<std::shared_ptr<MasterSession>> MasterSession::Create(Options options) {
  RETURN_IF_ERROR(CheckDisabledPasses(options.session.disabled_passes));
  RETURN_IF_ERROR(CheckPlacement(options.session.placement));
  if (options.session.memory_limit < 0) {
    return InvalidArgument("memory_limit: expected a number of bytes, or 0 for no limit");
  }
  std::shared_ptr<MasterSession> session(new MasterSession(std::move(options)));
  const Status begun = session->CreateInTasks();
  if (!begun.ok()) {
    (void)session->Close();
    return begun;
  }
  session->WatchTasks();
  return session;
}

Status MasterSession::CreateInTasks() {
  WorkerSessionOptions session{.handle = handle(), .isolate_state = options_.session.isolate_state};
  for (const SessionTask& task : tasks()) session.tasks.push_back(task.id);
  Wait wait(*options_.services.threads, "the tasks to begin a session");
  {
    auto join = std::make_shared<Join>(wait.done());
    for (const SessionTask& task : tasks()) {
      session.lease_ms = task.client->in_process() != nullptr ? 0 : kLeaseMs;
      task.client->CreateSession(
          session, {.incarnation = task.id.incarnation, .timeout_ms = TimeoutMs(kMinuteMs)},
          Join::Part(join));
    }
  }
  return wait.Get();
}

void MasterSession::WatchTasks() {
  if (options_.health == nullptr) return;
  for (SessionTask& task : tasks_->list) {
    if (task.client->in_process() != nullptr) continue;
    const auto lost = [weak = weak_from_this(), id = task.id](HealthMonitor::Loss what,
                                                              const Status& why) {
      const auto session = weak.lock();
      if (session == nullptr) return;
      Worker* const own = session->tasks()[0].client->in_process();
      // The lost task may be the master of other sessions' steps that have a part in this task.
      if (what == HealthMonitor::Loss::kTask && own != nullptr) own->MasterLost(id, why);
      session->steps_->TaskLost(id, why);
    };
    task.health = options_.health->Watch(task.id, task.client, handle(), lost);
  }
}

void MasterSession::DeleteInTasks() {
  if (options_.health != nullptr) options_.health->Unwatch(handle());
  Wait wait(*options_.services.threads, "the tasks to end a session");
  {
    auto join = std::make_shared<Join>(wait.done());
    for (const SessionTask& task : tasks()) {
      // A lost task deletes the session by itself, when its lease ends.
      if (task.health != nullptr && !task.health->ok()) continue;
      task.client->DeleteSession(
          handle(), {.incarnation = task.id.incarnation, .timeout_ms = TimeoutMs(kMinuteMs / 6)},
          Join::Part(join));
    }
  }
  (void)wait.Get();
  tasks_->session_deleted = true;
}

int64_t MasterSession::TimeoutMs(int64_t default_ms) const {
  const int64_t given = options_.session.operation_timeout_ms;
  return given > 0 ? LimitTimeout(given) : default_ms;
}

int64_t MasterSession::DeadlineOf(const RunOptions& options, bool several_tasks) const {
  const int64_t timeout_ms =
      options.timeout_ms > 0 ? options.timeout_ms : TimeoutMs(several_tasks ? kDayMs : 0);
  if (timeout_ms == 0) return 0;
  return options_.services.env->NowNanos() + TimeoutNanos(timeout_ms);
}

StatusOr<int64_t> MasterSession::Extend(int64_t expected_version,
                                        absl::FunctionRef<Status(Graph*)> add) {
  RETURN_IF_ERROR(steps_->CheckOpen());
  activity_->NoteUse();
  return graph_->Extend(expected_version, add);
}

Status MasterSession::Run(const RunOptions& options, const Feeds& feeds,
                          const std::vector<std::string>& fetches,
                          const std::vector<std::string>& targets, std::vector<Tensor>* outputs,
                          RunMetadata* metadata) {
  const Prepared step = prepared_->cache().Get(feeds, fetches, targets);
  absl::InlinedVector<Tensor, 4> values;
  for (const auto& [name, value] : feeds) values.push_back(value);
  return RunPrepared(step, options, values, outputs, metadata);
}

Status MasterSession::RunPrepared(const Prepared& step, const RunOptions& options,
                                  absl::Span<const Tensor> feeds, std::vector<Tensor>* outputs,
                                  RunMetadata* metadata) {
  if (!step->ready()) [[unlikely]] {
    Wait wait(*options_.services.threads, "a step to be prepared");
    prepared_->Await(step, feeds, wait.done());
    RETURN_IF_ERROR(wait.Get());
  }
  RETURN_IF_ERROR(step->CheckFeeds(feeds));
  if (prepared_->Outgrows(*step, feeds)) {
    Wait wait(*options_.services.threads, "a step to be prepared");
    Prepared larger;
    prepared_->PrepareLarger(step, feeds,
                             [&larger, done = wait.done()](StatusOr<Prepared> next) mutable {
                               if (next.ok()) larger = *next;
                               std::move(done)(next.status());
                             });
    RETURN_IF_ERROR(wait.Get());
    return RunPrepared(larger, options, feeds, outputs, metadata);
  }
  step->NoteFeeds(feeds);
  if (step->may_adapt_to_feeds.load(std::memory_order_relaxed)) {
    prepared_->AdaptToFeeds(step, feeds);
  }
  std::optional<StepStatsCollector> stats;
  const StepMeasuring::Reasons reasons = measuring_.Begin(step.get());
  if (options.trace || reasons.any()) stats.emplace();
  StepStatsCollector* const collector = stats.has_value() ? &*stats : nullptr;
  // Releases the old outputs first, so that a variable that shares memory with one of them can be
  // updated in place.
  outputs->clear();
  outputs->resize(step->names().fetches.size());
  if (step->local != nullptr) {
    const bool timed = collector != nullptr || step->placed != nullptr;
    const int64_t begun_ns = timed ? options_.services.env->NowNanos() : 0;
    const Status status = RunLocal(*step, options, feeds, absl::MakeSpan(*outputs), collector);
    if (timed && status.ok()) {
      step->times.Add(options_.services.env->NowNanos() - begun_ns);
    }
    return measuring_.End(step, options, status, reasons, collector, outputs, metadata);
  }
  Wait wait(*options_.services.threads, "the end of a step");
  steps_->Start(step,
                {.id = steps_->NextId(),
                 .deadline_ns = DeadlineOf(options, true),
                 .feeds = feeds,
                 .fetches = absl::MakeSpan(*outputs),
                 .stats = collector,
                 .cancellation = options.cancellation,
                 .on_this_thread = true},
                wait.done());
  AwaitStep(wait);
  return measuring_.End(step, options, wait.Get(), reasons, collector, outputs, metadata);
}

// Spins until the step has ended, but at most for kSpin. The step's part in this task has already
// ended, and other parts usually end before it.
void MasterSession::AwaitStep(const Wait& wait) const {
  if (wait.ended()) return;
  Worker* const worker = tasks().front().client->in_process();
  Polling polling(worker == nullptr ? nullptr : worker->poller());
  thread_local SpinHabit habit;
  options_.services.threads->Spin(habit, kSpin, [&] {
    polling.Once();
    return wait.ended();
  });
}

Status MasterSession::RunLocal(const PreparedStep& step, const RunOptions& options,
                               absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                               StepStatsCollector* stats) {
  ASSIGN_OR_RETURN(SessionSteps::LocalStep* const running, steps_->BeginLocal(step));
  Cancellation& cancellation = running->cancellation;
  Cancellation::Token token = 0;
  const bool registered =
      options.cancellation != nullptr &&
      options.cancellation->Register([&](const Status& why) { cancellation.Cancel(why); }, &token);
  Status status;
  int64_t id = 0;
  if (options.cancellation != nullptr && !registered) {
    status = options.cancellation->status();
  } else {
    id = steps_->NextId();
    status = step.local->Run({.step_id = id,
                              .cancellation = &cancellation,
                              .deadline_ns = DeadlineOf(options, false),
                              .feeds = feeds.data(),
                              .num_feeds = static_cast<int>(feeds.size()),
                              .fetches = fetches.data(),
                              .num_fetches = static_cast<int>(fetches.size()),
                              .stats = stats});
  }
  if (registered) options.cancellation->Deregister(token);
  steps_->EndLocal(running, id, status);
  return status;
}

void MasterSession::RunAsync(AsyncRun* run, Done done) {
  const Prepared step = prepared_->cache().Get(run->feeds, run->fetches, run->targets);
  if (step->ready()) return StartAsync(step, run, std::move(done));
  Done ready([self = shared_from_this(), step, run, done = std::move(done)](Status status) mutable {
    if (!status.ok()) return std::move(done)(std::move(status));
    self->StartAsync(step, run, std::move(done));
  });
  std::vector<PartialShape> shapes;
  for (const auto& [name, value] : run->feeds) shapes.emplace_back(value.shape());
  prepared_->AwaitOnPool(step, std::move(shapes), std::move(ready));
}

void MasterSession::StartAsync(const Prepared& step, AsyncRun* run, Done done) {
  run->values.clear();
  for (auto& [name, value] : run->feeds) run->values.push_back(std::move(value));
  const Status fits = step->CheckFeeds(run->values);
  if (!fits.ok()) return std::move(done)(fits);
  if (!prepared_->Outgrows(*step, run->values)) return StartWithinLimit(step, run, std::move(done));
  prepared_->PrepareLarger(
      step, run->values,
      [self = shared_from_this(), run, done = std::move(done)](StatusOr<Prepared> larger) mutable {
        if (!larger.ok()) return std::move(done)(larger.status());
        self->StartWithinLimit(*larger, run, std::move(done));
      });
}

void MasterSession::StartWithinLimit(const Prepared& step, AsyncRun* run, Done done) {
  step->NoteFeeds(run->values);
  if (step->may_adapt_to_feeds.load(std::memory_order_relaxed)) {
    prepared_->AdaptToFeeds(step, run->values);
  }
  run->outputs.resize(step->names().fetches.size());
  const StepMeasuring::Reasons reasons = measuring_.Begin(step.get());
  const bool measured = run->options.trace || reasons.any();
  StepStatsCollector* const stats = measured ? &run->stats : nullptr;
  steps_->Start(step,
                {.id = steps_->NextId(),
                 .deadline_ns = DeadlineOf(run->options, true),
                 .feeds = run->values,
                 .fetches = absl::MakeSpan(run->outputs),
                 .stats = stats,
                 .cancellation = run->options.cancellation},
                Done([self = shared_from_this(), step, run, reasons, stats,
                      done = std::move(done)](Status status) mutable {
                  status = self->measuring_.End(step, run->options, std::move(status), reasons,
                                                stats, &run->outputs, &run->metadata);
                  std::move(done)(std::move(status));
                }));
}

StatusOr<int64_t> MasterSession::MakeCallable(const CallableSpec& spec, const RunOptions& options) {
  auto step = std::make_shared<PreparedStep>(spec);
  Wait wait(*options_.services.threads, "a step to be prepared");
  prepared_->Await(step, /*feeds=*/{}, wait.done());
  RETURN_IF_ERROR(wait.Get());
  return prepared_->callables().Add({std::move(step), options});
}

Status MasterSession::RunCallable(int64_t callable, const RunOptions& options,
                                  absl::Span<const Tensor> feeds, std::vector<Tensor>* outputs,
                                  RunMetadata* metadata) {
  ASSIGN_OR_RETURN(const Callables::Entry found, prepared_->callables().Find(callable));
  return RunPrepared(found.step, options, feeds, outputs, metadata);
}

void MasterSession::RunCallableAsync(int64_t callable, AsyncRun* run, Done done) {
  auto found = prepared_->callables().Find(callable);
  if (!found.ok()) return std::move(done)(found.status());
  Cancellation* const cancellation = run->options.cancellation;
  run->options = found->options;
  run->options.cancellation = cancellation;
  StartAsync(found->step, run, std::move(done));
}

Status MasterSession::ReleaseCallable(int64_t callable) {
  return prepared_->callables().Release(callable);
}

StatusOr<std::string> MasterSession::SetUpPartialRun(const CallableSpec& spec) {
  StatusOr<std::string> handle = Internal("no handle");
  Wait wait(*options_.services.threads, "a partial run to be prepared");
  SetUpPartialRunAsync(spec, [&handle, done = wait.done()](StatusOr<std::string> made) mutable {
    handle = std::move(made);
    std::move(done)(OkStatus());
  });
  RETURN_IF_ERROR(wait.Get());
  return handle;
}

void MasterSession::SetUpPartialRunAsync(const CallableSpec& spec, SetUp done,
                                         std::shared_ptr<void> hold) {
  const Prepared step = prepared_->cache().GetPartial(spec);
  const auto begin = [self = shared_from_this(), step](std::shared_ptr<void> held) {
    return self->partial_runs_->Begin(step, self->DeadlineOf({}, true), std::move(held));
  };
  if (step->ready()) return std::move(done)(begin(std::move(hold)));
  Done ready([begin, done = std::move(done), hold = std::move(hold)](Status status) mutable {
    if (!status.ok()) return std::move(done)(std::move(status));
    std::move(done)(begin(std::move(hold)));
  });
  prepared_->AwaitOnPool(step, /*fed_shapes=*/{}, std::move(ready));
}

Status MasterSession::RunPartial(const std::string& handle, const RunOptions& options,
                                 const Feeds& feeds, const std::vector<std::string>& fetches,
                                 std::vector<Tensor>* outputs) {
  outputs->clear();
  Wait wait(*options_.services.threads, "a part of a partial run");
  partial_runs_->Run(handle, options, feeds, fetches, outputs, wait.done());
  return wait.Get();
}

void MasterSession::EndPartialRun(const std::string& handle, const Status& why) {
  partial_runs_->End(handle, why);
}

void MasterSession::RunPartialAsync(const std::string& handle, AsyncRun* run, Done done) {
  partial_runs_->Run(handle, run->options, run->feeds, run->fetches, &run->outputs,
                     std::move(done));
}

std::vector<DeviceInfo> MasterSession::devices() const { return DevicesOf(tasks()); }

Status MasterSession::Close() {
  return Close(Cancelled("Step was cancelled by an explicit call to `Session::Close()`."));
}

Status MasterSession::Close(const Status& why) {
  if (!steps_->Close()) return OkStatus();
  const Status ended = steps_->EndAll(why, TimeoutMs(kMinuteMs));
  prepared_->callables().Clear();
  partial_runs_->Clear();
  if (options_.counters != nullptr) options_.counters->AddBegun(steps_begun());
  DeleteInTasks();
  prepared_->cache().Clear();
  graph_->Clear();
  return ended;
}

int64_t MasterSession::idle_ns() const { return steps_->busy() ? 0 : activity_->unused_ns(); }

}  // namespace penstock
