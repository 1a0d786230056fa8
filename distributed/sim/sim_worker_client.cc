// SPDX-License-Identifier: Apache-2.0
//
// The worker client of a simulated network: a call sends a message to the task, which calls its
// worker through a direct client and sends a message back. A call ends at its timeout, even if a
// message is lost.
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "distributed/sim/sim_call.h"
#include "distributed/sim/sim_network.h"

namespace penstock {
namespace {

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
                     const TrainingProgram& program, const CallOptions& options,
                     Done done) override {
    auto sent = std::make_shared<std::vector<Partition>>(std::move(partitions));
    Call(
        StrCat("RegisterGraph ", graph), options,
        [session, graph, sent, program, options](Task&, WorkerClient& worker, Done ended) {
          worker.RegisterGraph(session, graph, std::move(*sent), program, options,
                               std::move(ended));
        },
        std::move(done), /*repeatable=*/false);
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
    // Pointers into the caller's memory are not sent: statistics come back with the
    // answer.
    auto stats = args.stats == nullptr ? nullptr : std::make_shared<StepStatsCollector>();
    const RunGraphArgs run{.session = args.session,
                           .graph = args.graph,
                           .step_id = args.step_id,
                           .deadline_ns = args.deadline_ns,
                           .stats = stats.get()};
    if (!network_.IsDead(SimEnd::Of(self_))) {
      network_.NoteStep({task_.name, task_.address, options.incarnation}, args.step_id);
    }
    const auto watch = std::make_shared<StreamWatch>(network_, self_, task_, args.step_id);
    const auto pending = Call(
        StrCat("RunGraph ", args.graph), options,
        [watch, run, stats, options](Task&, WorkerClient& worker, Done ended) {
          watch->served = true;
          worker.RunGraph(
              run, options,
              Done([watch, stats, ended = std::move(ended)](const Status& status) mutable {
                watch->End();
                std::move(ended)(status);
              }));
        },
        Done([self = shared_from_this(), step_id = args.step_id, watch, stats, to = args.stats,
              done = std::move(done)](const Status& status) mutable {
          self->running_.erase(step_id);
          if (!watch->served) watch->End();
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
    const std::shared_ptr<SimCall> pending = found->second;
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
  // Handles a call in the called task.
  using Serve = std::function<void(Task& task, WorkerClient& worker, Done done)>;

  std::shared_ptr<SimCall> Call(const std::string& what, const CallOptions& options, Serve serve,
                                Done done, bool repeatable = true) {
    const auto call = SimCall::Start(network_, SimEnd::Of(self_), task_, what, options.timeout_ms,
                                     std::move(done));
    call->Ask(
        [&network = network_, address = task_.address, serve = std::move(serve)](Done answer) {
          Task& task = *network.Find(address, 0);
          serve(task, *NewDirectWorkerClient(task.worker()), std::move(answer));
        },
        repeatable);
    return call;
  }

  // Aborts a step when its worker loses the connection to the master, as RunGraphSink does for real
  // servers. If the request has not arrived by then, the step cannot begin any more.
  struct StreamWatch {
    StreamWatch(SimNetwork& on, const TaskId& master, const TaskId& worker, int64_t step_id)
        : network(on),
          id(on.Watch(SimEnd::Of(worker), SimEnd::Of(master),
                      [&network = on, worker, step_id](const std::string&) {
                        Task* const task = network.Find(worker.address, worker.incarnation);
                        if (task == nullptr) return;
                        task->worker().AbortStep(
                            step_id, Cancelled("the master does not wait for the step any more"));
                      })) {}
    void End() { network.Unwatch(id); }

    SimNetwork& network;
    const uint64_t id;
    bool served = false;  // the request has arrived
  };

  static void AddStats(std::vector<DeviceStats> devices, StepStatsCollector* to) {
    for (DeviceStats& device : devices) {
      for (NodeStats& node : device.nodes) to->Add(device.device, std::move(node));
    }
  }

  SimNetwork& network_;
  const TaskId self_, task_;
  std::map<int64_t, std::shared_ptr<SimCall>> running_;  // by step
};

}  // namespace

std::shared_ptr<WorkerClient> NewSimWorkerClient(SimNetwork& network, const TaskId& self,
                                                 const TaskId& task) {
  return std::make_shared<SimWorkerClient>(network, self, task);
}

}  // namespace penstock
