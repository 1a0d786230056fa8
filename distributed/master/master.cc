// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/master.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/join.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/timeout.h"
#include "distributed/master/reset_tasks.h"

namespace penstock {
namespace {

// A task that does not answer is asked again after this time, plus kContactPauseMsPerWait for each
// session that waits.
constexpr int64_t kContactPauseMs = 100;
constexpr int64_t kContactPauseMsPerWait = 5;
// The maximum number of sessions that wait for tasks. Each of them holds its client's graph.
constexpr size_t kWaitsMax = 1'000;

StatusOr<std::vector<DeviceName>> ParseFilters(const std::vector<std::string>& texts) {
  std::vector<DeviceName> filters;
  for (const std::string& text : texts) {
    auto filter = DeviceName::Parse(text);
    if (!filter.ok()) return Annotate(filter.status(), "device_filters");
    filters.push_back(*std::move(filter));
  }
  return filters;
}

}  // namespace

Master::Master(Options options)
    : options_(std::move(options)),
      own_(NewDirectWorkerClient(*options_.worker)),
      tasks_(options_.cluster, self().name, options_.connect),
      recorder_(std::make_shared<StepRecorder>(*options_.services.threads)),
      health_(options_.health, *options_.services.env, *options_.services.timer) {}

Master::~Master() { Stop(); }

std::vector<std::shared_ptr<MasterSession>> Master::sessions() const {
  std::vector<std::shared_ptr<MasterSession>> sessions;
  MutexLock lock(mu_);
  for (const auto& [handle, session] : sessions_) sessions.push_back(session);
  return sessions;
}

std::vector<std::shared_ptr<const TaskWait>> Master::waits() const {
  std::vector<std::shared_ptr<const TaskWait>> waits;
  MutexLock lock(mu_);
  for (const auto& [id, wait] : waits_) waits.push_back(wait);
  return waits;
}

uint64_t Master::steps_begun() const {
  uint64_t steps = counters_->begun_in_closed_sessions();
  for (const auto& session : sessions()) steps += session->steps_begun();
  return steps;
}

void Master::SampleSteps() { rate_.Sample(options_.services.env->NowNanos(), steps_begun()); }

double Master::steps_per_second() const {
  return rate_.PerSecond(options_.services.env->NowNanos(), steps_begun());
}

Status Master::ShuttingDown() const {
  return Unavailable(options_.worker->self().ToString(), " is shutting down");
}

bool Master::stopped() const {
  MutexLock lock(mu_);
  return stopped_;
}

std::shared_ptr<TaskWait> Master::AwaitTasks(const SessionOptions& options, TasksFound found) {
  auto filters = ParseFilters(options.device_filters);
  if (!filters.ok()) {
    std::move(found)(filters.status());
    return nullptr;
  }
  size_t waiting = 0;
  uint64_t id = 0;
  {
    MutexLock lock(mu_);
    id = ++last_wait_;
    waiting = waits_.size();
  }
  TaskWait::Options wanted{
      .timeout_ms = options.operation_timeout_ms > 0 ? LimitTimeout(options.operation_timeout_ms)
                                                     : options_.create_timeout_ms,
      // The pause grows with the number of waits, so that all waits together send only a few
      // hundred questions a second.
      .pause_ms = kContactPauseMs + static_cast<int64_t>(waiting) * kContactPauseMsPerWait,
      .env = options_.services.env,
      .timer = options_.services.timer};
  wanted.tasks = tasks_.Selected(*filters);
  const auto wait = std::make_shared<TaskWait>(
      wanted, [this, id, tasks = wanted.tasks, filters = *std::move(filters),
               found = std::move(found)](StatusOr<std::vector<TaskStatus>> answers) mutable {
        RemoveWait(id);
        if (!answers.ok()) {
          Log({.level = LogLevel::kWarning,
               .task = this->self().name,
               .event = "session_refused",
               .text = StrCat("no session: ", answers.status().message()),
               .limited = true});
          return std::move(found)(answers.status());
        }
        std::move(found)(SessionTasksOf(tasks, filters, *std::move(answers)));
      });
  const Status added = AddWait(id, wait);
  if (!added.ok()) {
    wait->Cancel(added);
    return nullptr;
  }
  wait->Start();
  return wait;
}

Status Master::AddWait(uint64_t id, const std::shared_ptr<TaskWait>& wait) {
  MutexLock lock(mu_);
  if (stopped_) return ShuttingDown();
  if (waits_.size() >= kWaitsMax) {
    return ResourceExhausted(kWaitsMax, " new sessions wait for tasks that do not answer");
  }
  waits_.emplace(id, wait);
  return OkStatus();
}

void Master::RemoveWait(uint64_t id) {
  MutexLock lock(mu_);
  waits_.erase(id);
}

StatusOr<std::vector<SessionTask>> Master::SessionTasksOf(const std::vector<TaskWait::Task>& tasks,
                                                          const std::vector<DeviceName>& filters,
                                                          std::vector<TaskStatus> answers) const {
  std::vector<SessionTask> all = {
      {.id = options_.worker->self(), .client = own_, .devices = options_.worker->devices()}};
  for (size_t i = 0; i < tasks.size(); ++i) {
    SessionTask task{.id = tasks[i].id, .client = tasks[i].client};
    if (answers[i].self.name != task.id.name) {
      return FailedPrecondition(task.id.ToString(), " says that it is ", answers[i].self.name,
                                ": the tasks' clusters differ");
    }
    if (answers[i].protocol != options_.worker->protocol()) {
      return FailedPrecondition(task.id.ToString(), " moves tensors by protocol '",
                                answers[i].protocol, "', ", options_.worker->self().ToString(),
                                " by '", options_.worker->protocol(),
                                "': start both with the same --protocol");
    }
    if (tasks[i].other_client != nullptr && answers[i].self.address == tasks[i].other.address) {
      task.id = tasks[i].other;
      task.client = tasks[i].other_client;
    }
    task.id.incarnation = answers[i].self.incarnation;
    for (DeviceInfo& device : answers[i].devices) {
      if (IsSelected(filters, device.name)) task.devices.push_back(std::move(device));
    }
    all.push_back(std::move(task));
  }
  return all;
}

StatusOr<std::shared_ptr<MasterSession>> Master::CreateSession(const SessionOptions& options,
                                                               AddNodes add) {
  Graph graph = NewGraph();
  RETURN_IF_ERROR(add(&graph));
  StatusOr<std::vector<SessionTask>> tasks = Internal("no tasks");
  Wait wait(*options_.services.threads, "the answers of the tasks of a new session");
  AwaitTasks(options, [&tasks, done = wait.done()](StatusOr<std::vector<SessionTask>> t) mutable {
    tasks = std::move(t);
    std::move(done)(tasks.status());
  });
  RETURN_IF_ERROR(wait.Get());
  return CreateSession(options, std::move(graph), *std::move(tasks), "");
}

StatusOr<std::shared_ptr<MasterSession>> Master::CreateSession(const SessionOptions& options,
                                                               Graph graph,
                                                               std::vector<SessionTask> tasks,
                                                               const std::string& client) {
  if (stopped()) return ShuttingDown();
  const uint64_t id = options_.services.env->RandomU64();
  ASSIGN_OR_RETURN(std::shared_ptr<MasterSession> session,
                   MasterSession::Create({.handle = StrCat(absl::Hex(id, absl::kZeroPad16)),
                                          .session = options,
                                          .tasks = std::move(tasks),
                                          .services = options_.services,
                                          .health = &health_,
                                          .registry = options_.registry,
                                          .counters = counters_,
                                          .recorder = recorder_}));
  session->NoteClientCall(client);
  CHECK_OK(session
               ->Extend(-1,
                        [&](Graph* all) {
                          *all = std::move(graph);
                          return OkStatus();
                        })
               .status());
  bool stopped = false;
  {
    MutexLock lock(mu_);
    stopped = stopped_;
    if (!stopped) sessions_.emplace(session->handle(), session);
  }
  if (!stopped) {
    LogNewSession(*session, client);
    return session;
  }
  (void)session->Close();
  return ShuttingDown();
}

void Master::LogNewSession(const MasterSession& session, const std::string& client) {
  std::vector<TaskId> restarted;
  {
    MutexLock lock(mu_);
    for (const SessionTask& task : session.tasks()) {
      uint64_t& incarnation = incarnations_[task.id.name];
      if (incarnation != 0 && incarnation != task.id.incarnation) restarted.push_back(task.id);
      incarnation = task.id.incarnation;
    }
  }
  for (const TaskId& task : restarted) {
    Log({.level = LogLevel::kWarning,
         .task = self().name,
         .event = "task_back",
         .text = StrCat(task.ToString(), " is back, as another process"),
         .fields = {{"peer", task.name}},
         .limited = true});
  }
  const std::string from = client.empty() ? "a client in this process" : client;
  const auto tasks = static_cast<int64_t>(session.tasks().size());
  Log({.task = self().name,
       .event = "session_made",
       .text = StrCat("session ", session.handle(), " made for ", from, ", on ", tasks,
                      tasks == 1 ? " task" : " tasks"),
       .fields = {{"session", session.handle()}, {"client", client}, {"tasks", tasks}},
       .limited = true});
}

void Master::LogClosedSession(const MasterSession& session, const std::string& reason) const {
  const double seconds =
      static_cast<double>(options_.services.env->NowNanos() - session.created_ns()) * 1e-9;
  const auto steps = static_cast<int64_t>(session.steps_begun());
  Log({.task = self().name,
       .event = "session_closed",
       .text = StrCat("session ", session.handle(), " closed after ",
                      absl::StrFormat("%.1f", seconds), " s and ", steps, " steps: ", reason),
       .fields = {{"session", session.handle()},
                  {"client", session.client()},
                  {"seconds", seconds},
                  {"steps", steps},
                  {"reason", reason}},
       .limited = true});
}

StatusOr<std::shared_ptr<MasterSession>> Master::FindSession(const std::string& handle) const {
  MutexLock lock(mu_);
  const auto found = sessions_.find(handle);
  if (found == sessions_.end()) return Aborted("Session ", handle, " is not found.");
  return found->second;
}

Status Master::CloseSession(const std::string& handle, const std::string& reason) {
  std::shared_ptr<MasterSession> session;
  {
    MutexLock lock(mu_);
    const auto found = sessions_.find(handle);
    if (found == sessions_.end()) {
      return Aborted("Session ", handle, " is not found. Possibly, this master has restarted.");
    }
    session = std::move(found->second);
    sessions_.erase(found);
  }
  const Status closed = session->Close();
  LogClosedSession(*session, reason);
  session = nullptr;
  closed_ = true;
  return closed;
}

std::vector<std::shared_ptr<MasterSession>> Master::TakeSessions() {
  std::vector<std::shared_ptr<MasterSession>> sessions;
  MutexLock lock(mu_);
  for (auto& [handle, session] : sessions_) sessions.push_back(std::move(session));
  sessions_.clear();
  return sessions;
}

Status Master::Reset(const std::vector<std::string>& containers,
                     const std::vector<std::string>& device_filters) {
  ASSIGN_OR_RETURN(const std::vector<DeviceName> filters, ParseFilters(device_filters));
  if (!options_.worker->serving()) {
    return Unavailable(options_.worker->self().ToString(), " does not serve");
  }
  for (const auto& session : TakeSessions()) {
    (void)session->Close();
    LogClosedSession(*session, "a client resets the cluster");
  }
  closed_ = true;
  options_.worker->Reset(containers);
  Wait wait(*options_.services.threads, "the tasks to be reset");
  {
    auto join = std::make_shared<Join>(wait.done());
    for (const TaskWait::Task& task : tasks_.Selected(filters)) {
      ResetOnTask(task, containers, Join::Part(join));
    }
  }
  return wait.Get();
}

void Master::CloseIdleSessions(const absl::flat_hash_set<std::string>& connected) {
  if (!closes_idle_sessions()) return;
  std::vector<std::string> idle;
  {
    MutexLock lock(mu_);
    for (const auto& [handle, session] : sessions_) {
      session->NoteConnectedClient(connected);
      if (session->idle_ns() > TimeoutNanos(options_.idle_timeout_ms)) idle.push_back(handle);
    }
  }
  for (const std::string& handle : idle) {
    (void)CloseSession(handle, "its client has had no connection for too long");
  }
  for (const auto& session : sessions()) {
    if (session->client().empty()) continue;
    session->EndUnusedPartialRuns(TimeoutNanos(options_.idle_timeout_ms));
  }
}

void Master::Stop() {
  std::map<uint64_t, std::shared_ptr<TaskWait>> waits;
  {
    MutexLock lock(mu_);
    stopped_ = true;
    waits = waits_;
  }
  const Status why = ShuttingDown();
  for (const auto& [id, wait] : waits) wait->Cancel(why);
  for (const auto& session : TakeSessions()) {
    (void)session->Close(why);
    LogClosedSession(*session, "the task is shutting down");
  }
}

}  // namespace penstock
