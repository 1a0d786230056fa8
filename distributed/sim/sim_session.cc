// SPDX-License-Identifier: Apache-2.0
//
// A client's session on a simulated network: each call sends one message to the master and one
// back. The master serves a call in a closure of its own, with copies of the arguments, because the
// client may give up meanwhile.
#include <memory>
#include <utility>
#include <vector>

#include "core/base/join.h"
#include "distributed/sim/sim_call.h"
#include "distributed/sim/sim_network.h"

namespace penstock {
namespace {

// kCallMs: the timeout of a call whose caller sets none. kSlackMs: how much longer than the timeout
// the client waits; the master normally ends the call at the timeout.
constexpr int64_t kCallMs = 300'000, kSlackMs = 30'000;
// A session is closed this long after its client is gone.
constexpr int64_t kIdleNanos = 10'000'000'000;

class SimSession final : public SessionInterface {
 public:
  SimSession(SimNetwork& network, SimEnd client, TaskId master, const SessionOptions& options)
      : network_(network),
        client_(std::move(client)),
        master_(std::move(master)),
        options_(options) {}
  ~SimSession() override {
    network_.scheduler().ScheduleAt(network_.scheduler().now_ns() + (closed_ ? 0 : kIdleNanos),
                                    [there = served_session_] { there->session.reset(); });
  }

  Status Extend(const Graph& graph) override {
    auto copy = std::make_shared<const Graph>(graph.Clone());
    return Call("Extend", 0, [copy](SessionInterface& session) { return session.Extend(*copy); });
  }
  Status Run(const RunOptions& options, const Feeds& feeds, const std::vector<std::string>& fetches,
             const std::vector<std::string>& targets, std::vector<Tensor>* outputs,
             RunMetadata* metadata) override {
    auto results = std::make_shared<Results>();
    const auto serve = [=, run = WithoutPointers(options)](SessionInterface& session) {
      return session.Run(run, feeds, fetches, targets, &results->outputs, &results->metadata);
    };
    return results->MoveTo(Call("Run", options.timeout_ms, serve), outputs, metadata);
  }
  StatusOr<CallableId> MakeCallable(const CallableSpec& spec) override {
    return Ask<CallableId>("MakeCallable",
                           [spec](SessionInterface& s) { return s.MakeCallable(spec); });
  }
  Status RunCallable(CallableId callable, const RunOptions& options, absl::Span<const Tensor> feeds,
                     std::vector<Tensor>* outputs, RunMetadata* metadata) override {
    auto results = std::make_shared<Results>();
    const std::vector<Tensor> fed(feeds.begin(), feeds.end());
    const auto serve = [=, run = WithoutPointers(options)](SessionInterface& session) {
      return session.RunCallable(callable, run, fed, &results->outputs, &results->metadata);
    };
    return results->MoveTo(Call("RunCallable", options.timeout_ms, serve), outputs, metadata);
  }
  Status ReleaseCallable(CallableId callable) override {
    return Call("ReleaseCallable", 0, [callable](SessionInterface& session) {
      return session.ReleaseCallable(callable);
    });
  }
  StatusOr<std::string> SetUpPartialRun(const CallableSpec& spec) override {
    return Ask<std::string>("SetUpPartialRun",
                            [spec](SessionInterface& s) { return s.SetUpPartialRun(spec); });
  }
  Status RunPartial(const std::string& handle, const RunOptions& options, const Feeds& feeds,
                    const std::vector<std::string>& fetches,
                    std::vector<Tensor>* outputs) override {
    auto results = std::make_shared<Results>();
    const auto serve = [=, run = WithoutPointers(options)](SessionInterface& session) {
      return session.RunPartial(handle, run, feeds, fetches, &results->outputs);
    };
    return results->MoveTo(Call("RunPartial", options.timeout_ms, serve), outputs, nullptr);
  }
  StatusOr<std::vector<DeviceInfo>> ListDevices() override {
    return Ask<std::vector<DeviceInfo>>("ListDevices",
                                        [](SessionInterface& s) { return s.ListDevices(); });
  }
  Status Close() override {
    const Status closed = Call("Close", 0, [](SessionInterface& s) { return s.Close(); });
    closed_ = closed.ok();
    return closed;
  }

 private:
  using Serve = std::function<Status(SessionInterface& session)>;
  // The session in the master's process; null before the first call.
  struct ServedSession {
    std::shared_ptr<SessionInterface> session;
  };
  // The results of a step, kept until its answer arrives.
  struct Results {
    std::vector<Tensor> outputs;
    RunMetadata metadata;
    Status MoveTo(Status status, std::vector<Tensor>* to_outputs, RunMetadata* to_metadata) {
      if (status.ok() && to_outputs != nullptr) *to_outputs = std::move(outputs);
      if (status.ok() && to_metadata != nullptr) *to_metadata = std::move(metadata);
      return status;
    }
  };

  // Clears the pointer to the cancellation, which a message cannot contain.
  static RunOptions WithoutPointers(RunOptions options) {
    options.cancellation = nullptr;
    return options;
  }
  template <class Value>
  StatusOr<Value> Ask(const std::string& what,
                      std::function<StatusOr<Value>(SessionInterface&)> ask) {
    auto value = std::make_shared<StatusOr<Value>>(Internal("no answer"));
    RETURN_IF_ERROR(Call(what, 0, [value, ask](SessionInterface& session) {
      *value = ask(session);
      return value->status();
    }));
    return *std::move(value);
  }

  Status Call(const std::string& what, int64_t timeout_ms, Serve serve) {
    Wait wait(network_.scheduler(), "the answer of a master");
    const int64_t limit_ms = timeout_ms > 0 ? timeout_ms + kSlackMs : kCallMs;
    SimCall::Start(network_, client_, master_, what, limit_ms, wait.done())
        ->Ask([&network = network_, master = master_, options = options_, there = served_session_,
               serve = std::move(serve)](Done answer) {
          Task* const task = network.Find(master.address, master.incarnation);
          if (task == nullptr) {
            return std::move(answer)(Aborted(master.ToString(), " has restarted"));
          }
          if (there->session == nullptr) there->session = task->NewSession(options);
          const std::shared_ptr<SessionInterface> session = there->session;
          std::move(answer)(serve(*session));
        });
    return wait.Get();
  }

  SimNetwork& network_;
  const SimEnd client_;
  const TaskId master_;
  const SessionOptions options_;
  const std::shared_ptr<ServedSession> served_session_ = std::make_shared<ServedSession>();
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<SessionInterface> NewSimSession(SimNetwork& network, const SimEnd& client,
                                                const TaskId& master,
                                                const SessionOptions& options) {
  return std::make_unique<SimSession>(network, client, master, options);
}

}  // namespace penstock
