// SPDX-License-Identifier: Apache-2.0
#include "client/allreduce/presence.h"

#include <cmath>
#include <optional>
#include <utility>

#include "client/seconds.h"
#include "core/graph/builder.h"

namespace penstock::client {
namespace {

// The variable that holds a client's last announcement.
Output AddVariable(GraphBuilder& graph, const std::string& training) {
  return CallIn(graph, "VarHandleOp", {},
                {{"dtype", DType::kDouble},
                 {"shape", PartialShape::Scalar()},
                 {"shared_name", StrCat("presence/", training)}},
                "announced");
}

std::string CpuOf(const std::string& task) { return StrCat(task, "/device:CPU:0"); }

}  // namespace

// The session and the ops with which a thread announces the client.
struct Presence::Announcer {
  explicit Announcer(const Options& options) : options(options) {
    const auto device = graph.DeviceScope(CpuOf(options.task));
    const Output variable = AddVariable(graph, options.training);
    announce = CallIn(graph, "AssignVariableOp", {variable, CallIn(graph, "Timestamp", {}, {})}, {},
                      "announce");
    withdraw =
        CallIn(graph, "DestroyResourceOp", {variable}, {{"ignore_lookup_error", true}}, "withdraw");
  }

  Status Run(const Output& op) {
    if (session == nullptr) {
      ASSIGN_OR_RETURN(auto made, options.new_session());
      session = std::make_unique<Session>(graph, std::move(made));
    }
    const Status ran = session->Execute(op);
    // The task may have been restarted, which ends its sessions.
    if (!ran.ok()) session = nullptr;
    return ran;
  }

  const Options& options;
  GraphBuilder graph;
  Output announce, withdraw;
  std::unique_ptr<Session> session;
};

Presence::Presence(Options options)
    : options_(std::move(options)), changed_(*options_.scheduler, "a client's announcement") {}

Presence::~Presence() { Withdraw(); }

Status Presence::Announce() {
  if (thread_ == nullptr) {
    {
      MutexLock lock(mu_);
      withdrawn_ = false;
    }
    thread_ =
        options_.scheduler->StartThread("announce a client", [this] { AnnouncePeriodically(); });
  }
  const int64_t deadline_ns = options_.env->NowNanos() + Nanos(options_.announce_seconds);
  MutexLock lock(mu_);
  const int64_t own = ++wanted_;
  changed_.NotifyAll();
  const auto answered = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return answered_ >= own; };
  if (changed_.WaitUntil(mu_, deadline_ns, answered)) return last_;
  return DeadlineExceeded(options_.task, " has not noted its client within ",
                          options_.announce_seconds, " s");
}

void Presence::Withdraw() {
  {
    MutexLock lock(mu_);
    withdrawn_ = true;
    changed_.NotifyAll();
  }
  thread_ = nullptr;  // waits for it
}

void Presence::AnnouncePeriodically() {
  Announcer announcer(options_);
  const int64_t interval_ns = Nanos(options_.lifetime_seconds / 3);
  while (true) {
    int64_t wanted;
    {
      MutexLock lock(mu_);
      const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return withdrawn_ || answered_ < wanted_;
      };
      (void)changed_.WaitUntil(mu_, options_.env->NowNanos() + interval_ns, due);
      if (withdrawn_) break;
      wanted = wanted_;
    }
    Status announced = announcer.Run(announcer.announce);
    MutexLock lock(mu_);
    last_ = std::move(announced);
    answered_ = wanted;
    changed_.NotifyAll();
  }
  if (announcer.session != nullptr) announcer.Run(announcer.withdraw).IgnoreError();
}

StatusOr<bool> Presence::IsPresent(std::unique_ptr<SessionInterface> session,
                                   const std::string& training, const std::string& task,
                                   double lifetime_seconds) {
  GraphBuilder graph;
  const auto device = graph.DeviceScope(CpuOf(task));
  const Output variable = AddVariable(graph, training);
  const Output is_announced = CallIn(graph, "VarIsInitializedOp", {variable}, {});
  const Output announced = CallIn(graph, "ReadVariableOp", {variable}, {{"dtype", DType::kDouble}});
  const Output now = CallIn(graph, "Timestamp", {}, {});
  Session asking(graph, std::move(session));
  ASSIGN_OR_RETURN(const Tensor any, asking.Fetch(is_announced));
  if (!any.scalar<bool>()) return false;
  ASSIGN_OR_RETURN(const auto times, asking.Run({announced, now}));
  // A clock that was set back makes the announcement seem to come from the future.
  return std::abs(times[1].scalar<double>() - times[0].scalar<double>()) <= lifetime_seconds;
}

}  // namespace penstock::client
