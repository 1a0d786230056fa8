// SPDX-License-Identifier: Apache-2.0
//
// Calls of workers on a simulated network: a message there, what a direct client does, and a
// message back. A call ends at its time limit, whatever happens to the messages.
#include <map>
#include <optional>
#include <utility>

#include "distributed/transport/sim/sim_network.h"

namespace penstock {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;

// A call that waits for its answer, or for its time limit: whichever comes first ends it.
class Pending : public std::enable_shared_from_this<Pending> {
 public:
  Pending(SimNetwork& network, Done done) : network_(network), done_(std::move(done)) {}

  void EndAfter(int64_t timeout_ms, const Status& why) {
    const int64_t at_ns = network_.env().NowNanos() + timeout_ms * kNanosPerMilli;
    // The timer's thread must not end the call, which disarms it.
    timeout_ = network_.timer().Arm(at_ns, [&network = network_, weak = weak_from_this(), why] {
      network.scheduler().Schedule([weak, why] {
        if (const auto pending = weak.lock()) pending->End(why);
      });
    });
  }
  void End(const Status& status) {
    if (!done_.has_value()) return;
    Done done = *std::move(done_);
    done_.reset();
    network_.timer().Disarm(timeout_);
    std::move(done)(status);
  }

 private:
  SimNetwork& network_;
  std::optional<Done> done_;
  DeadlineTimer::Token timeout_;
};

class SimWorkerClient final : public WorkerClient,
                              public std::enable_shared_from_this<SimWorkerClient> {
 public:
  SimWorkerClient(SimNetwork& network, TaskId self, TaskId task)
      : network_(network), self_(std::move(self)), task_(std::move(task)) {}

  void GetStatus(const StatusQuestion& question, const CallOptions& options,
                 StatusAnswer answer) override {
    auto found = std::make_shared<TaskStatus>();
    Call(
        "GetStatus", options,
        [question, options, found](Task&, WorkerClient& worker, Done done) {
          worker.GetStatus(question, options,
                           [found, done = std::move(done)](StatusOr<TaskStatus> answered) mutable {
                             if (answered.ok()) *found = *std::move(answered);
                             std::move(done)(answered.status());
                           });
        },
        Done([found, answer = std::move(answer)](const Status& status) mutable {
          if (!status.ok()) return std::move(answer)(status);
          std::move(answer)(std::move(*found));
        }));
  }
  void CreateSession(const WorkerSessionOptions& session, const CallOptions& options,
                     Done done) override {
    Call(
        "CreateSession", options,
        [session, options](Task&, WorkerClient& worker, Done ended) {
          worker.CreateSession(session, options, std::move(ended));
        },
        std::move(done));
  }
  void DeleteSession(const std::string& session, const CallOptions& options, Done done) override {
    Call(
        "DeleteSession", options,
        [session, options](Task&, WorkerClient& worker, Done ended) {
          worker.DeleteSession(session, options, std::move(ended));
        },
        std::move(done));
  }
  void RegisterGraph(const std::string& session, uint64_t graph, std::vector<Partition> partitions,
                     const CallOptions& options, Done done) override {
    Call(
        StrCat("RegisterGraph ", graph), options,
        [session, graph, partitions = std::move(partitions), options](Task&, WorkerClient& worker,
                                                                      Done ended) mutable {
          worker.RegisterGraph(session, graph, std::move(partitions), options, std::move(ended));
        },
        std::move(done));
  }
  void DeregisterGraph(const std::string& session, uint64_t graph, const CallOptions& options,
                       Done done) override {
    Call(
        StrCat("DeregisterGraph ", graph), options,
        [session, graph, options](Task&, WorkerClient& worker, Done ended) {
          worker.DeregisterGraph(session, graph, options, std::move(ended));
        },
        std::move(done));
  }
  void RunGraph(const RunGraphArgs& args, const CallOptions& options, Done done) override {
    // Pointers into the caller's memory stay here: statistics come back with the answer.
    auto stats = args.stats == nullptr ? nullptr : std::make_shared<StepStatsCollector>();
    const RunGraphArgs run{.session = args.session,
                           .graph = args.graph,
                           .step_id = args.step_id,
                           .deadline_ns = args.deadline_ns,
                           .stats = stats.get()};
    const auto pending = Call(
        StrCat("RunGraph ", args.graph), options,
        [run, stats, options](Task&, WorkerClient& worker, Done ended) {
          worker.RunGraph(run, options,
                          Done([stats, ended = std::move(ended)](const Status& status) mutable {
                            std::move(ended)(status);
                          }));
        },
        Done([self = shared_from_this(), step_id = args.step_id, stats, to = args.stats,
              done = std::move(done)](const Status& status) mutable {
          self->running_.erase(step_id);
          if (status.ok() && stats != nullptr) AddStats(stats->Take(), to);
          std::move(done)(status);
        }));
    running_[args.step_id] = pending;
  }
  void AbortStep(int64_t step_id, const Status& why, const CallOptions& options,
                 Done done) override {
    Call(
        "AbortStep", options,
        [step_id, why, options](Task&, WorkerClient& worker, Done ended) {
          worker.AbortStep(step_id, why, options, std::move(ended));
        },
        std::move(done));
  }
  void AbandonStep(int64_t step_id) override {
    const auto found = running_.find(step_id);
    if (found == running_.end()) return;
    const std::shared_ptr<Pending> pending = found->second;
    pending->End(Cancelled("step ", step_id, " was abandoned in ", task_.ToString()));
  }
  void Reset(const std::vector<std::string>& containers, const CallOptions& options,
             Done done) override {
    Call(
        "Reset", options,
        [containers, options](Task&, WorkerClient& worker, Done ended) {
          worker.Reset(containers, options, std::move(ended));
        },
        std::move(done));
  }
  void Shutdown(const std::string& reason, const CallOptions& options, Done done) override {
    Call(
        "Shutdown", options,
        [reason](Task& task, WorkerClient&, Done ended) {
          task.RequestShutdown(reason);
          std::move(ended)(OkStatus());
        },
        std::move(done));
  }

 private:
  // Answers a call in the task itself.
  using Serve = absl::AnyInvocable<void(Task& task, WorkerClient& worker, Done done) &&>;

  std::shared_ptr<Pending> Call(const std::string& what, const CallOptions& options, Serve serve,
                                Done done) {
    auto pending = std::make_shared<Pending>(network_, std::move(done));
    pending->EndAfter(options.timeout_ms,
                      DeadlineExceeded(what, ": no answer from ", task_.ToString(), " within ",
                                       options.timeout_ms, " ms"));
    network_.Send(self_.name, task_.name, what,
                  [&network = network_, self = self_, to = task_, what, pending,
                   serve = std::move(serve)]() mutable {
                    Done answer([&network, self, to, what, pending](const Status& status) {
                      network.Send(to.name, self.name, StrCat(what, status.ok() ? " ok" : " error"),
                                   [pending, status] { pending->End(status); });
                    });
                    Task* const task = network.Find(to.address, 0);
                    if (task == nullptr) {
                      return std::move(answer)(Unavailable("no task is at ", to.address));
                    }
                    std::move(serve)(*task, *NewDirectWorkerClient(task->worker()),
                                     std::move(answer));
                  });
    return pending;
  }

  static void AddStats(std::vector<DeviceStats> devices, StepStatsCollector* to) {
    for (DeviceStats& device : devices) {
      for (NodeStats& node : device.nodes) to->Add(device.device, std::move(node));
    }
  }

  SimNetwork& network_;
  const TaskId self_, task_;
  std::map<int64_t, std::shared_ptr<Pending>> running_;  // by step
};

}  // namespace

std::shared_ptr<WorkerClient> NewSimWorkerClient(SimNetwork& network, const TaskId& self,
                                                 const TaskId& task) {
  return std::make_shared<SimWorkerClient>(network, self, task);
}

}  // namespace penstock
