// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/base/fault_point.h"
#include "distributed/worker/worker_client.h"

namespace penstock {
namespace {

const FaultPoint kAnyIncarnation(FaultPoint::kBug, "worker/incarnation-ignored",
                                 "a task answers calls that are meant for an earlier incarnation");

class DirectWorkerClient final : public WorkerClient {
 public:
  explicit DirectWorkerClient(Worker& worker) : worker_(worker) {}

  void GetStatus(const StatusQuestion& question, const CallOptions& options,
                 StatusAnswer answer) override {
    const Status status = Check(options);
    if (!status.ok()) return std::move(answer)(status);
    TaskStatus task{.self = worker_.self(),
                    .serving = worker_.serving(),
                    .protocol = std::string(worker_.protocol()),
                    .running_steps = worker_.steps().running(),
                    .unknown_sessions = worker_.RenewLeases(question.sessions),
                    .wall_ns = worker_.WallNanos()};
    if (question.want_devices) task.devices = worker_.devices();
    std::move(answer)(std::move(task));
  }
  void CreateSession(const WorkerSessionOptions& session, const CallOptions& options,
                     Done done) override {
    Status status = Check(options);
    if (status.ok()) status = worker_.CreateSession(session);
    std::move(done)(std::move(status));
  }
  void DeleteSession(const std::string& session, const CallOptions& options, Done done) override {
    const Status status = Check(options);
    if (status.ok()) worker_.DeleteSession(session);
    std::move(done)(status);
  }
  void RegisterGraph(const std::string& session, uint64_t graph, std::vector<Partition> partitions,
                     const TrainingProgram& program, const CallOptions& options,
                     Done done) override {
    Status status = Check(options);
    if (status.ok()) status = worker_.RegisterGraph(session, graph, std::move(partitions), program);
    std::move(done)(std::move(status));
  }
  void DeregisterGraph(const std::string& session, uint64_t graph, const CallOptions& options,
                       Done done) override {
    const Status status = Check(options);
    if (status.ok()) worker_.DeregisterGraph(session, graph);
    std::move(done)(status);
  }
  void RunGraph(const RunGraphArgs& args, const CallOptions& options, Done done) override {
    const Status status = Check(options);
    if (!status.ok()) return std::move(done)(status);
    worker_.RunGraph(args, std::move(done));
  }
  void AbortStep(int64_t step_id, const Status& why, const CallOptions& options,
                 Done done) override {
    const Status status = Check(options);
    if (status.ok()) worker_.AbortStep(step_id, why);
    std::move(done)(status);
  }
  // Does nothing: AbortStep is enough, because all waits of a step in this process end when it is
  // cancelled.
  void AbandonStep(int64_t step_id) override {}
  void Reset(const std::vector<std::string>& containers, const CallOptions& options,
             Done done) override {
    const Status status = Check(options);
    if (status.ok()) worker_.Reset(containers);
    std::move(done)(status);
  }
  void Shutdown(const std::string& reason, const CallOptions& options, Done done) override {
    std::move(done)(FailedPrecondition("a task does not shut itself down through its master"));
  }
  Worker* in_process() override { return &worker_; }

 private:
  Status Check(const CallOptions& options) const {
    if (options.incarnation == 0 || options.incarnation == worker_.self().incarnation) {
      return OkStatus();
    }
    if (kAnyIncarnation.Fires()) return OkStatus();
    return Aborted(worker_.self().ToString(), " has restarted");
  }

  Worker& worker_;
};

}  // namespace

std::unique_ptr<WorkerClient> NewDirectWorkerClient(Worker& worker) {
  return std::make_unique<DirectWorkerClient>(worker);
}

}  // namespace penstock
