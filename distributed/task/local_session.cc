// SPDX-License-Identifier: Apache-2.0
//
// Sessions in this process without a cluster. All share one worker, so that devices are opened
// once, but each has its own variables.
#include <algorithm>
#include <utility>

#include "core/base/mutex.h"
#include "distributed/master/master_session.h"
#include "distributed/session/session.h"
#include "distributed/task/free_memory.h"

namespace penstock {
namespace {

constexpr char kLocalTask[] = "/job:localhost/replica:0/task:0";
// A graph of this size takes tens of megabytes; returning them to the system takes
// milliseconds.
constexpr int kLargeGraphNodes = 20'000;

// Never destroyed, because static destructors may close sessions.
struct LocalRuntime {
  LocalRuntime(Worker::Options options, const MasterStep::Services& s)
      : services(s), worker(std::move(options)), client(NewDirectWorkerClient(worker)) {}
  const MasterStep::Services services;
  Worker worker;
  std::shared_ptr<WorkerClient> client;
};

StatusOr<LocalRuntime*> MakeRuntime(const MasterStep::Services& services) {
  const uint64_t incarnation = services.env->RandomU64() | 1;
  ASSIGN_OR_RETURN(const DeviceName task, DeviceName::Parse(kLocalTask));
  Worker::Options options{.self = {.name = kLocalTask, .incarnation = incarnation},
                          .threads = services.threads,
                          .env = services.env,
                          .timer = services.timer};
  ASSIGN_OR_RETURN(options.devices, MakeDevices({.task = task,
                                                 .incarnation = incarnation,
                                                 .lanes = services.threads->num_threads()}));
  return new LocalRuntime(std::move(options), services);
}

class LocalSession final : public SessionInterface {
 public:
  explicit LocalSession(std::shared_ptr<MasterSession> session) : session_(std::move(session)) {}
  ~LocalSession() override { (void)Close(); }

  Status Extend(const Graph& graph) override {
    MutexLock lock(mu_);
    if (graph.max_id() == nodes_seen_) return OkStatus();
    if (graph.max_id() < nodes_seen_) {
      return InvalidArgument("Extend: the graph has fewer nodes than the session has seen");
    }
    RETURN_IF_ERROR(session_
                        ->Extend(-1,
                                 [&](Graph* all) {
                                   *all = graph.Clone();
                                   return OkStatus();
                                 })
                        .status());
    nodes_seen_ = graph.max_id();
    return OkStatus();
  }
  Status Run(const RunOptions& options, const Feeds& feeds, const std::vector<std::string>& fetches,
             const std::vector<std::string>& targets, std::vector<Tensor>* outputs,
             RunMetadata* metadata) override {
    return session_->Run(options, feeds, fetches, targets, outputs, metadata);
  }
  StatusOr<CallableId> MakeCallable(const CallableSpec& spec) override {
    return session_->MakeCallable(spec);
  }
  Status RunCallable(CallableId callable, const RunOptions& options, absl::Span<const Tensor> feeds,
                     std::vector<Tensor>* outputs, RunMetadata* metadata) override {
    return session_->RunCallable(callable, options, feeds, outputs, metadata);
  }
  Status ReleaseCallable(CallableId callable) override {
    return session_->ReleaseCallable(callable);
  }
  StatusOr<std::string> SetUpPartialRun(const CallableSpec& spec) override {
    return session_->SetUpPartialRun(spec);
  }
  Status RunPartial(const std::string& handle, const RunOptions& options, const Feeds& feeds,
                    const std::vector<std::string>& fetches,
                    std::vector<Tensor>* outputs) override {
    return session_->RunPartial(handle, options, feeds, fetches, outputs);
  }
  StatusOr<std::vector<DeviceInfo>> ListDevices() override { return session_->devices(); }
  // If the graph was large, also returns free memory to the system, because the C library keeps it
  // otherwise.
  Status Close() override {
    Status status = session_->Close();
    bool large = false;
    {
      MutexLock lock(mu_);
      large = std::exchange(nodes_seen_, 0) >= kLargeGraphNodes;
    }
    if (large) ReturnFreeMemory(/*tensors=*/false);
    return status;
  }

 private:
  const std::shared_ptr<MasterSession> session_;
  Mutex mu_;
  int nodes_seen_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace

StatusOr<std::unique_ptr<SessionInterface>> NewLocalSession(const SessionOptions& options) {
  // All local sessions of the process share one runtime. It uses Env::Real(), because the Env of a
  // test would be destroyed before the runtime. Simulations make Tasks with a simulated Env.
  static Mutex mu;
  static LocalRuntime* runtime = nullptr;
  {
    MutexLock lock(mu);
    if (runtime == nullptr) {
      ASSIGN_OR_RETURN(runtime, MakeRuntime({.env = &Env::Real(),
                                             .timer = &DeadlineTimer::Real(),
                                             .threads = &Scheduler::Real()}));
    }
  }
  Worker& worker = runtime->worker;
  MasterSession::Options session{
      .handle = StrCat("local-", absl::Hex(runtime->services.env->RandomU64(), absl::kZeroPad16)),
      .session = options,
      .tasks = {{.id = worker.self(), .client = runtime->client, .devices = worker.devices()}},
      .services = runtime->services,
      .registry = &Registry::Global()};
  session.session.isolate_state = true;
  ASSIGN_OR_RETURN(std::shared_ptr<MasterSession> made, MasterSession::Create(std::move(session)));
  return std::make_unique<LocalSession>(std::move(made));
}

}  // namespace penstock
