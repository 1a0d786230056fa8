// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/in_process_master.h"

#include <atomic>
#include <utility>

#include "core/base/mutex.h"
#include "distributed/master/master.h"
#include "distributed/session/in_process_sessions.h"

namespace penstock {

struct InProcessMaster::State {
  State(std::string a, Master& m, Scheduler& scheduler)
      : address(std::move(a)),
        master(m),
        no_calls_left(scheduler, "calls of sessions in this process") {}

  const std::string address;
  Master& master;
  std::atomic<bool> refused{false};
  std::atomic<int64_t> calls{0};  // running calls
  Mutex mu;
  // True while Close waits. `no_calls_left` may be notified only then, because afterwards its
  // scheduler may be destroyed.
  bool closing ABSL_GUARDED_BY(mu) = false;
  Condition no_calls_left;
};

namespace {

// Counts a running call into the master, so that the master lives at least as long as this object.
class Call {
 public:
  explicit Call(InProcessMaster::State& state) : state_(state) { state_.calls.fetch_add(1); }
  ~Call() {
    if (state_.calls.fetch_sub(1) != 1 || !state_.refused.load()) return;
    MutexLock lock(state_.mu);
    if (state_.closing) state_.no_calls_left.NotifyAll();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  StatusOr<Master*> master() const {
    if (state_.refused.load()) {
      return Unavailable("the server at ", state_.address, " has been stopped");
    }
    return &state_.master;
  }

 private:
  InProcessMaster::State& state_;
};

class InProcessSession final : public SessionInterface {
 public:
  InProcessSession(std::shared_ptr<InProcessMaster::State> state, const SessionOptions& options)
      : state_(std::move(state)), options_(options) {}
  ~InProcessSession() override { (void)Close(); }

  Status Extend(const Graph& graph) override {
    MutexLock lock(mu_);
    return ExtendTo(graph);
  }
  Status Run(const RunOptions& options, const Feeds& feeds, const std::vector<std::string>& fetches,
             const std::vector<std::string>& targets, std::vector<Tensor>* outputs,
             RunMetadata* metadata) override {
    return With([&](MasterSession& session) {
      return session.Run(options, feeds, fetches, targets, outputs, metadata);
    });
  }
  StatusOr<CallableId> MakeCallable(const CallableSpec& spec) override {
    return With([&](MasterSession& session) { return session.MakeCallable(spec); });
  }
  Status RunCallable(CallableId callable, const RunOptions& options, absl::Span<const Tensor> feeds,
                     std::vector<Tensor>* outputs, RunMetadata* metadata) override {
    return With([&](MasterSession& session) {
      return session.RunCallable(callable, options, feeds, outputs, metadata);
    });
  }
  Status ReleaseCallable(CallableId callable) override {
    return With([&](MasterSession& session) { return session.ReleaseCallable(callable); });
  }
  StatusOr<std::string> SetUpPartialRun(const CallableSpec& spec) override {
    return With([&](MasterSession& session) { return session.SetUpPartialRun(spec); });
  }
  Status RunPartial(const std::string& handle, const RunOptions& options, const Feeds& feeds,
                    const std::vector<std::string>& fetches,
                    std::vector<Tensor>* outputs) override {
    return With([&](MasterSession& session) {
      return session.RunPartial(handle, options, feeds, fetches, outputs);
    });
  }
  StatusOr<std::vector<DeviceInfo>> ListDevices() override {
    return With([&](MasterSession& session) -> StatusOr<std::vector<DeviceInfo>> {
      return session.devices();
    });
  }
  Status Close() override {
    std::string handle;
    {
      MutexLock lock(mu_);
      if (std::exchange(closed_, true) || handle_.empty()) return OkStatus();
      handle = handle_;
    }
    const Call call(*state_);
    ASSIGN_OR_RETURN(Master * master, call.master());
    return master->CloseSession(handle);
  }

 private:
  static Status Closed() { return FailedPrecondition("Session is closed."); }

  // Extends the session to `graph`. Creates the session if there is none yet.
  Status ExtendTo(const Graph& graph) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (closed_) return Closed();
    if (graph.max_id() == nodes_seen_ && !handle_.empty()) return OkStatus();
    if (graph.max_id() < nodes_seen_) {
      return InvalidArgument("Extend: the graph has fewer nodes than the session has seen");
    }
    const Call call(*state_);
    ASSIGN_OR_RETURN(Master * master, call.master());
    const auto take = [&](Graph* all) {
      *all = graph.Clone();
      return OkStatus();
    };
    if (handle_.empty()) {
      ASSIGN_OR_RETURN(const auto session, master->CreateSession(options_, take));
      handle_ = session->handle();
    } else {
      ASSIGN_OR_RETURN(const auto session, master->FindSession(handle_));
      RETURN_IF_ERROR(session->Extend(-1, take).status());
    }
    nodes_seen_ = graph.max_id();
    return OkStatus();
  }

  // Returns the session's handle. Creates the session, with an empty graph, if there is none
  // yet.
  StatusOr<std::string> Handle() {
    MutexLock lock(mu_);
    if (closed_) return Closed();
    if (handle_.empty()) RETURN_IF_ERROR(ExtendTo(Graph(Registry::Global())));
    return handle_;
  }

  // Calls `use` with the session.
  template <class Use>
  auto With(Use use) -> decltype(use(std::declval<MasterSession&>())) {
    ASSIGN_OR_RETURN(const std::string handle, Handle());
    const Call call(*state_);
    ASSIGN_OR_RETURN(Master * master, call.master());
    ASSIGN_OR_RETURN(const auto session, master->FindSession(handle));
    return use(*session);
  }

  const std::shared_ptr<InProcessMaster::State> state_;
  const SessionOptions options_;
  Mutex mu_;  // locked before the mutex of the state
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::string handle_ ABSL_GUARDED_BY(mu_);  // "" before the first call
  int nodes_seen_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace

InProcessMaster::InProcessMaster(std::string address, Master& master, Scheduler& scheduler)
    : state_(std::make_shared<State>(std::move(address), master, scheduler)) {}

void InProcessMaster::Publish() {
  InProcessSessions::Add(state_->address, [state = state_](const SessionOptions& options) {
    return std::make_unique<InProcessSession>(state, options);
  });
  published_ = true;
}

std::unique_ptr<SessionInterface> InProcessMaster::NewSession(const SessionOptions& options) {
  return std::make_unique<InProcessSession>(state_, options);
}

InProcessMaster::~InProcessMaster() {
  Refuse();
  Close();
}

void InProcessMaster::Refuse() {
  if (state_->refused.exchange(true)) return;
  if (published_) InProcessSessions::Remove(state_->address);
}

void InProcessMaster::Close() {
  MutexLock lock(state_->mu);
  state_->closing = true;
  state_->no_calls_left.Wait(state_->mu, [this] { return state_->calls.load() == 0; });
  state_->closing = false;
}

}  // namespace penstock
