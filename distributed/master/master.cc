// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/master.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/join.h"

namespace penstock {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;
// A task that does not answer is asked again after this long.
constexpr int64_t kContactTimeoutMs = 2'000;
constexpr int64_t kContactPauseMs = 100;
constexpr int64_t kResetTimeoutMs = 60'000;

StatusOr<std::vector<DeviceName>> ParseFilters(const std::vector<std::string>& texts) {
  std::vector<DeviceName> filters;
  for (const std::string& text : texts) {
    auto filter = DeviceName::Parse(text);
    if (!filter.ok()) return Annotate(filter.status(), "device_filters");
    filters.push_back(*std::move(filter));
  }
  return filters;
}

// Whether a filter speaks of the device, or, with a name without type and index, of its task.
bool Selected(const std::vector<DeviceName>& filters, const DeviceName& name) {
  if (filters.empty()) return true;
  return std::any_of(filters.begin(), filters.end(), [&](const DeviceName& filter) {
    const bool is_task = !name.type.has_value();
    return (is_task ? filter.Task() : filter).Matches(name);
  });
}

}  // namespace

// What one task answers to a new session.
struct Master::Contact {
  TaskId task;
  std::shared_ptr<WorkerClient> client;
  StatusOr<TaskStatus> answer = Unavailable("was not asked");
};

Master::Master(Options options)
    : options_(std::move(options)),
      own_(NewDirectWorkerClient(*options_.worker)),
      health_(options_.health, *options_.services.env, *options_.services.timer) {}

Master::~Master() { Stop(); }

bool Master::stopped() const {
  MutexLock lock(mu_);
  return stopped_;
}

std::vector<TaskId> Master::MatchingTasks(const std::vector<DeviceName>& filters) const {
  std::vector<TaskId> tasks;
  for (const auto& [job, job_tasks] : options_.cluster.jobs()) {
    for (const auto& [index, address] : job_tasks) {
      const DeviceName name{.job = job, .replica = 0, .task = index};
      const std::string text = name.ToString();
      if (text == options_.worker->self().name || !Selected(filters, name)) continue;
      tasks.push_back({.name = text, .address = address});
    }
  }
  return tasks;
}

std::shared_ptr<WorkerClient> Master::ClientOf(const TaskId& task) {
  MutexLock lock(mu_);
  std::shared_ptr<WorkerClient>& client = clients_[task.name];
  if (client == nullptr) client = options_.connect(task);
  return client;
}

StatusOr<std::vector<SessionTask>> Master::ContactTasks(const std::vector<DeviceName>& filters,
                                                        int64_t timeout_ms) {
  std::vector<SessionTask> tasks = {
      {.id = options_.worker->self(), .client = own_, .devices = options_.worker->devices()}};
  std::vector<Contact> contacts;
  for (TaskId& task : MatchingTasks(filters)) {
    auto client = ClientOf(task);
    contacts.push_back({.task = std::move(task), .client = std::move(client)});
  }
  Env& env = *options_.services.env;
  const int64_t deadline_ns = env.NowNanos() + timeout_ms * kNanosPerMilli;
  while (true) {
    const int64_t left_ms = (deadline_ns - env.NowNanos()) / kNanosPerMilli;
    Wait wait;
    {
      auto join = std::make_shared<Join>(wait.done());
      for (Contact& contact : contacts) {
        if (contact.answer.ok()) continue;
        contact.client->GetStatus(
            {.want_devices = true},
            {.timeout_ms = std::clamp<int64_t>(left_ms, 1, kContactTimeoutMs)},
            [&contact, part = Join::Part(join)](StatusOr<TaskStatus> answer) mutable {
              contact.answer = std::move(answer);
              std::move(part)(contact.answer.status());
            });
      }
    }
    if (wait.Get().ok()) break;
    if (stopped()) return Unavailable("the server is shutting down");
    if (env.NowNanos() + kContactPauseMs * kNanosPerMilli >= deadline_ns) {
      std::vector<std::string> silent;
      for (const Contact& contact : contacts) {
        if (!contact.answer.ok()) {
          silent.push_back(
              StrCat(contact.task.ToString(), " (", contact.answer.status().message(), ")"));
        }
      }
      return DeadlineExceeded("CreateSession: no answer within ", timeout_ms, " ms from ",
                              absl::StrJoin(silent, ", "));
    }
    env.SleepForNanos(kContactPauseMs * kNanosPerMilli);
  }
  for (Contact& contact : contacts) {
    if (contact.answer->self.name != contact.task.name) {
      return FailedPrecondition(contact.task.ToString(), " says that it is ",
                                contact.answer->self.name, ": the tasks' clusters differ");
    }
    contact.task.incarnation = contact.answer->self.incarnation;
    SessionTask task{.id = std::move(contact.task), .client = std::move(contact.client)};
    for (DeviceInfo& device : contact.answer->devices) {
      if (Selected(filters, device.name)) task.devices.push_back(std::move(device));
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

StatusOr<std::shared_ptr<MasterSession>> Master::CreateSession(const SessionOptions& options,
                                                               AddNodes add) {
  if (stopped()) return Unavailable("the server is shutting down");
  ASSIGN_OR_RETURN(const std::vector<DeviceName> filters, ParseFilters(options.device_filters));
  Graph graph(*options_.registry);
  RETURN_IF_ERROR(add(&graph));
  const int64_t timeout_ms =
      options.operation_timeout_ms > 0 ? options.operation_timeout_ms : options_.create_timeout_ms;
  ASSIGN_OR_RETURN(std::vector<SessionTask> tasks, ContactTasks(filters, timeout_ms));
  const uint64_t id = options_.services.env->RandomU64();
  ASSIGN_OR_RETURN(std::shared_ptr<MasterSession> session,
                   MasterSession::Create({.handle = StrCat(absl::Hex(id, absl::kZeroPad16)),
                                          .session = options,
                                          .tasks = std::move(tasks),
                                          .services = options_.services,
                                          .health = &health_,
                                          .registry = options_.registry}));
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
  if (!stopped) return session;
  (void)session->Close();
  return Unavailable("the server is shutting down");
}

StatusOr<std::shared_ptr<MasterSession>> Master::FindSession(const std::string& handle) const {
  MutexLock lock(mu_);
  const auto found = sessions_.find(handle);
  if (found == sessions_.end()) return Aborted("Session ", handle, " is not found.");
  return found->second;
}

Status Master::CloseSession(const std::string& handle) {
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
  return session->Close();
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
  for (const auto& session : TakeSessions()) (void)session->Close();
  options_.worker->Reset(containers);
  Wait wait;
  {
    auto join = std::make_shared<Join>(wait.done());
    for (const TaskId& task : MatchingTasks(filters)) {
      const auto client = ClientOf(task);
      // Whichever life it is in.
      client->GetStatus(
          {}, {.timeout_ms = kResetTimeoutMs},
          [client, containers, part = Join::Part(join)](StatusOr<TaskStatus> answer) mutable {
            if (!answer.ok()) return std::move(part)(answer.status());
            client->Reset(containers,
                          {.incarnation = answer->self.incarnation, .timeout_ms = kResetTimeoutMs},
                          std::move(part));
          });
    }
  }
  return wait.Get();
}

void Master::CloseIdleSessions() {
  if (options_.idle_timeout_ms <= 0) return;
  std::vector<std::string> idle;
  {
    MutexLock lock(mu_);
    for (const auto& [handle, session] : sessions_) {
      if (session->idle_ns() > options_.idle_timeout_ms * kNanosPerMilli) idle.push_back(handle);
    }
  }
  for (const std::string& handle : idle) (void)CloseSession(handle);
}

void Master::Stop() {
  {
    MutexLock lock(mu_);
    stopped_ = true;
  }
  const Status why = Unavailable(options_.worker->self().ToString(), " is shutting down");
  for (const auto& session : TakeSessions()) (void)session->Close(why);
}

}  // namespace penstock
