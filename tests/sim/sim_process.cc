// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_process.h"

#include <utility>

#include "core/op/registry.h"
#include "distributed/sim/sim_call.h"

namespace penstock::simulation {
namespace {

constexpr HealthOptions kHealth{.interval_ms = 500, .misses_max = 3};

// The client with which a replica calls the other replica, or the witness.
class SimReplicaClient final : public ReplicaClient {
 public:
  SimReplicaClient(const SimMachine& machine, SimEnd self, std::string address, bool witness)
      : machine_(machine),
        self_(std::move(self)),
        address_(std::move(address)),
        witness_(witness) {}

  void Greet(const wire::GreetRequest& request, int64_t timeout_ms,
             Answer<wire::GreetResponse> answer) override {
    Call<wire::GreetResponse>("Greet", timeout_ms, std::move(answer),
                              [request](SimProcess& p) -> StatusOr<wire::GreetResponse> {
                                return p.replica()->Greet(request);
                              });
  }
  void Follow(const wire::FollowRequest& request, int64_t timeout_ms,
              Answer<wire::FollowResponse> answer) override {
    Call<wire::FollowResponse>("Follow", timeout_ms, std::move(answer),
                               [request](SimProcess& p) { return p.replica()->Follow(request); });
  }
  void Push(const wire::PushRequest& request, int64_t timeout_ms,
            Answer<wire::PushResponse> answer) override {
    Call<wire::PushResponse>(StrCat("Push ", request.number()), timeout_ms, std::move(answer),
                             [request](SimProcess& p) { return p.replica()->Push(request); });
  }
  void Claim(const wire::ClaimRequest& request, int64_t timeout_ms,
             Answer<wire::ClaimResponse> answer) override {
    Call<wire::ClaimResponse>(StrCat("Claim ", request.epoch()), timeout_ms, std::move(answer),
                              [request](SimProcess& p) { return p.witness().Claim(request); });
  }

 private:
  template <class Response>
  void Call(const std::string& what, int64_t timeout_ms, Answer<Response> answer,
            std::function<StatusOr<Response>(SimProcess&)> serve) {
    const auto response = std::make_shared<Response>();
    SimCall::Start(*machine_.network, self_, {.name = address_, .address = address_}, what,
                   timeout_ms,
                   Done([response, answer = std::move(answer)](const Status& status) mutable {
                     if (!status.ok()) return std::move(answer)(status);
                     std::move(answer)(std::move(*response));
                   }))
        ->Ask([find = machine_.find, address = address_, witness = witness_, response,
               serve = std::move(serve)](Done done) {
          SimProcess* const process = find(address);
          if (process == nullptr || (!witness && process->replica() == nullptr)) {
            return std::move(done)(Unavailable("nobody is at ", address));
          }
          StatusOr<Response> result = serve(*process);
          if (result.ok()) *response = *std::move(result);
          std::move(done)(result.status());
        });
  }

  const SimMachine machine_;
  const SimEnd self_;
  const std::string address_;
  const bool witness_;
};

}  // namespace

// Counts the steps that go through the gate of a process.
class SimProcess::CountingGate final : public StepGate {
 public:
  CountingGate(StepGate& gate, StepCounts& counts) : gate_(gate), counts_(counts) {}
  void StepBegins(int64_t step_id) override {
    ++counts_.begun;
    gate_.StepBegins(step_id);
  }
  void StepEnds(int64_t step_id, const Status& status, Done done) override {
    ++counts_.ended;
    gate_.StepEnds(step_id, status, std::move(done));
  }
  const char* awaited() const override { return gate_.awaited(); }

 private:
  StepGate& gate_;
  StepCounts& counts_;
};

SimProcess::SimProcess(const SimMachine& machine, const std::string& j, int i, int replica)
    : job(j),
      index(i),
      machine_(machine),
      replica_index_(replica),
      env_(*machine.scheduler, *machine.files),
      timer_(NewThreadTimer(env_, *machine.scheduler)),
      transport_(machine.network->NewTransport()),
      account_(NewSimMemory(StrCat(job, "-", index, "-", replica))) {
  const DeviceName name{.job = job, .replica = 0, .task = index};
  const std::string first = machine.cluster->Address(job, index);
  const std::string second = machine.cluster->ReplicaAddress(job, index);
  Task::Parts parts{.self = {.name = name.ToString(),
                             .address = replica == 0 ? first : second,
                             .incarnation = env_.RandomU64() | 1},
                    .env = &env_,
                    .scheduler = machine.scheduler,
                    .timer = timer_.get(),
                    .registry = &Registry::Global(),
                    .transport = transport_.get(),
                    .health = kHealth,
                    .account = account_.get()};
  parts.connect = machine.network->Connector(parts.self);
  end_ = SimEnd::Of(parts.self);
  auto devices = MakeDevices({.task = name,
                              .incarnation = parts.self.incarnation,
                              .gpus_max = 0,
                              .memory_limit = kSimTaskBytes});
  CHECK_OK(devices.status());
  parts.devices = *std::move(devices);
  task_ = std::make_unique<Task>(std::move(parts));
  if (!second.empty()) MakeReplica(replica == 0 ? second : first);
  CHECK_OK(task_->Start(*machine.cluster));
  machine.network->Add(*task_);
  if (replica_ != nullptr) replica_->Start();
}

SimProcess::~SimProcess() = default;

void SimProcess::MakeReplica(const std::string& other) {
  const Task& task = *task_;
  log_ = std::make_unique<ReplicaLog>(env_, *machine_.scheduler);
  const std::vector<Worker::Store> stores = task_->worker().stores();
  CHECK_OK(stores[0].resources->AttachLog(log_.get()));
  log_->RemoveRefusedFrom(stores[0].resources);
  gate_ = std::make_unique<CountingGate>(*log_, step_counts_);
  task_->worker().set_step_gate(gate_.get());
  task_->worker().set_serving(false);
  replica_ = std::make_unique<Replica>(Replica::Options{
      .task = task.self().name,
      .incarnation = task.self().incarnation,
      .index = replica_index_,
      .other = other,
      .store = stores[0].resources,
      .log = log_.get(),
      .env = &env_,
      .scheduler = machine_.scheduler,
      .peer = std::make_shared<SimReplicaClient>(machine_, end_, other, /*witness=*/false),
      .witness = std::make_shared<SimReplicaClient>(
          machine_, end_, machine_.cluster->Address("worker", 0), /*witness=*/true),
      .serve = [this] { task_->worker().set_serving(true); },
      .fenced = [this](const Status&) { machine_.fenced(*this); },
      .say =
          [this](const std::string& line) {
            if (alive()) machine_.say(line);
          }});
}

void SimProcess::Kill(bool silent) {
  env_.Kill();
  machine_.network->Remove(*task_);
  machine_.network->Kill(end_, silent);
}

void SimProcess::Stop() {
  if (replica_ != nullptr) replica_->Stop();
  task_->Stop();
  task_->WaitForSessions();
  transport_->Stop();
  task_->WaitForSteps();
}

}  // namespace penstock::simulation
