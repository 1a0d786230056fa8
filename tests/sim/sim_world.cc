// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_world.h"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "core/checkpoint/checkpoints.h"
#include "tests/sim/replica_check.h"
#include "tests/sim/sim_chooser.h"
#include "tests/sim/sim_training.h"

namespace penstock::simulation {
namespace {

// Returns the status as text without payloads, whose order differs between processes.
std::string WithoutPayloads(const Status& status) {
  return status.ToString(absl::StatusToStringMode::kWithNoExtraData);
}

constexpr int64_t kMilli = 1'000'000;
constexpr int kPs = 2, kWorkers = 3;
constexpr char kClient[] = "client";
// The training must end within this time after the last fault.
constexpr int64_t kEndsWithinMs = 240'000;
// Leases, parked subscriptions and idle sessions must have ended after this time.
constexpr int64_t kQuietMs = 200'000;
constexpr int64_t kPowerOffMs = 300;  // minimum duration of a loss of power
// All tasks must have ended the last step after this time.
constexpr int64_t kStepsEndMs = 20'000;
constexpr int64_t kWholeWithinMs = 60'000;
// The interval at which replicas are compared during the training.
constexpr int64_t kCompareEveryMs = 2;
constexpr int kComparisonsPerHealthCheck = 50;
constexpr int kMissesMax = 3;  // heartbeats

class Simulation {
 public:
  Simulation(const SimRunOptions& options, std::vector<Fault> plan)
      : options_(options),
        plan_(std::move(plan)),
        scheduler_({.seed = options.plan.seed, .limit_ns = 3'600'000 * kMilli}),
        files_(scheduler_),
        clock_(scheduler_, files_),
        chooser_(options.plan.seed, options.bugs, options.mishaps && options.faults) {}

  SimRunResult Run();

 private:
  void Simulate();
  void AddTasks();
  void Start(const std::string& host);
  void Boot(const std::string& host, int64_t after_ms);
  void Kill(SimProcess& process, bool silent, int64_t down_ms);
  void KillHost(const std::string& host, bool silent, int64_t down_ms);
  void MakeFaults();
  bool AwaitReplicas();
  void Make(const Fault& fault);
  void LosePower(const Fault& fault);
  void RunClients();
  void CheckCheckpoints();
  void CheckSteps();
  void CompareReplicas();
  void CheckAcknowledged();
  void CheckHealth();
  void CheckStateFile();
  void KillSlowly(const Fault& fault);
  void CheckLeaks();
  void StopAll();

  void Sleep(int64_t millis) { scheduler_.SleepUntil(scheduler_.now_ns() + millis * kMilli); }
  void Say(const std::string& line) {
    if (network_ != nullptr) network_->Log(line);
    result_.timeline +=
        absl::StrFormat("%9.3f s  %s\n", static_cast<double>(scheduler_.now_ns()) / 1e9 - 1, line);
  }
  void Violation(const std::string& text) {
    result_.violations.push_back(text);
    Say("VIOLATION: " + text);
  }
  SimProcess* At(const std::string& host) {
    const auto found = process_at_.find(host);
    return found == process_at_.end() ? nullptr : found->second;
  }

  const SimRunOptions& options_;
  const std::vector<Fault> plan_;
  SimScheduler scheduler_;
  SimFiles files_;
  ProcessEnv clock_;
  SimChooser chooser_;
  ClusterSpec cluster_;
  std::unique_ptr<DeadlineTimer> timer_;
  std::unique_ptr<SimNetwork> network_;
  SimMachine machine_;
  struct Place {
    std::string job;
    int index, replica;
  };
  std::map<std::string, Place> places_;                 // keyed by host
  std::map<std::string, SimProcess*> process_at_;       // live processes, keyed by host
  std::vector<std::unique_ptr<SimProcess>> processes_;  // includes killed processes
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::unique_ptr<SimTraining>> clients_;
  SimTraining* client_ = nullptr;  // the live client
  SeenByClients seen_;
  SimTrainingOptions training_;
  ReplicaCheck replica_checks_[kPs];
  int64_t power_off_until_ns_ = 0, last_fault_ns_ = 0;
  int num_comparisons_ = 0;
  bool faults_done_ = false, done_ = false;
  SimRunResult result_;
};

void Simulation::AddTasks() {
  const auto add = [&](const std::string& job, int index, int replica) {
    const std::string host = StrCat(job, "-", index, replica == 0 ? "" : "b");
    places_[host] = {job, index, replica};
    const std::string address = host + ":2222";
    CHECK_OK(replica == 0 ? cluster_.AddTask(job, index, address)
                          : cluster_.AddReplica(job, index, address));
  };
  for (int i = 0; i < kPs; ++i) {
    add("ps", i, 0);
    if (options_.plan.replicas) add("ps", i, 1);
  }
  for (int i = 0; i < kWorkers; ++i) add("worker", i, 0);
}

void Simulation::Start(const std::string& host) {
  if (done_ || At(host) != nullptr) return;
  if (const int64_t left_ns = power_off_until_ns_ - scheduler_.now_ns(); left_ns > 0) {
    return Boot(host, left_ns / kMilli + 1);
  }
  const Place& place = places_.at(host);
  network_->Boot(host);
  processes_.push_back(
      std::make_unique<SimProcess>(machine_, place.job, place.index, place.replica));
  process_at_[host] = processes_.back().get();
  Say(host + " starts");
}

void Simulation::Boot(const std::string& host, int64_t after_ms) {
  scheduler_.ScheduleAt(scheduler_.now_ns() + after_ms * kMilli, [this, host] { Start(host); });
}

void Simulation::Kill(SimProcess& process, bool silent, int64_t down_ms) {
  if (!process.alive()) return;
  process_at_.erase(process.host());
  process.Kill(silent);
  threads_.push_back(scheduler_.StartThread("the end of " + process.host(),
                                            [process = &process] { process->Stop(); }));
  Boot(process.host(), down_ms);
}

void Simulation::KillHost(const std::string& host, bool silent, int64_t down_ms) {
  if (host == kClient) {
    if (client_ != nullptr) client_->Kill();
    client_ = nullptr;
  } else if (SimProcess* const process = At(host)) {
    Kill(*process, silent, down_ms);
  }
}

// Waits until both processes of each ps are healthy. With replicas the next fault occurs only then.
bool Simulation::AwaitReplicas() {
  const int64_t until_ns = scheduler_.now_ns() + kWholeWithinMs * kMilli;
  const auto whole = [&](int ps) {
    SimProcess* const a = At(StrCat("ps-", ps));
    SimProcess* const b = At(StrCat("ps-", ps, "b"));
    if (a == nullptr || b == nullptr) return false;
    const auto pair = [](SimProcess* primary, SimProcess* follower) {
      return primary->replica()->has_follower() && follower->replica()->state().whole;
    };
    return pair(a, b) || pair(b, a);
  };
  while (scheduler_.now_ns() < until_ns && !done_) {
    if (whole(0) && whole(1)) return true;
    Sleep(5);
  }
  if (!done_) {
    Violation(StrCat("the replicas of a ps were not whole again within ", kWholeWithinMs, " ms"));
  }
  return false;
}

void Simulation::Make(const Fault& fault) {
  const int64_t until_ns = scheduler_.now_ns() + fault.lasts_ms * kMilli;
  switch (fault.kind) {
    case Fault::kKill:
    case Fault::kHostDown:
      return KillHost(fault.host, fault.kind == Fault::kHostDown, fault.lasts_ms);
    case Fault::kFreeze:
      return network_->Freeze(fault.host, until_ns);
    case Fault::kCut:
      network_->Block(fault.other, fault.host, until_ns);
      return network_->Block(fault.host, fault.other, until_ns);
    case Fault::kCutOneWay:
      return network_->Block(fault.host, fault.other, until_ns);
    case Fault::kLoss:
      return network_->set_faults(
          {.until_ns = until_ns, .lose_one_in = 20 + static_cast<int>(fault.choice % 100)});
    case Fault::kRepeat:
      return network_->set_faults({.until_ns = until_ns, .repeat_one_in = 2});
    case Fault::kSlow:
      return network_->set_faults(
          {.until_ns = until_ns, .slowness = 2 + static_cast<int>(fault.choice % 20)});
    case Fault::kSlowKill:
      return KillSlowly(fault);
    case Fault::kDiskErrors:
      return files_.FailUntil(until_ns, 2 + static_cast<int>(fault.choice % 10));
    case Fault::kPowerLoss:
      return LosePower(fault);
    case Fault::kBitFlip: {
      const std::string flipped = files_.FlipBit(fault.choice % 2 == 0 ? ".data-" : ".index");
      seen_.damaged = seen_.damaged || !flipped.empty();
      return Say("a bit flips in " + (flipped.empty() ? "no file" : flipped));
    }
    case Fault::kClockJump: {
      const auto micros =
          static_cast<int64_t>(fault.choice % 63'072'000'000'000) - 31'536'000'000'000;
      for (const auto& [host, process] : process_at_) process->env().JumpWallClock(micros);
      if (client_ != nullptr) client_->env().JumpWallClock(micros);
      return;
    }
  }
}

void Simulation::KillSlowly(const Fault& fault) {
  const int64_t wait_ms = 50 + static_cast<int64_t>(fault.choice % 300);
  network_->set_faults({.until_ns = scheduler_.now_ns() + wait_ms * kMilli, .slowness = 20});
  Sleep(wait_ms);
  // Meanwhile a mishap may have separated the primary from its follower.
  if (options_.plan.replicas && !AwaitReplicas()) return;
  KillHost(fault.host, false, fault.lasts_ms);
}

void Simulation::LosePower(const Fault& fault) {
  const int64_t off_ms = fault.lasts_ms + kPowerOffMs;
  power_off_until_ns_ = scheduler_.now_ns() + off_ms * kMilli;
  KillHost(kClient, true, 0);
  for (const auto& [host, place] : places_) {
    KillHost(host, true, off_ms + static_cast<int64_t>(scheduler_.Random() % 500));
  }
  files_.LosePower();
  CheckCheckpoints();
}

void Simulation::MakeFaults() {
  for (const Fault& fault : plan_) {
    if (options_.plan.replicas && !AwaitReplicas()) break;
    Sleep(fault.after_ms);
    // The previous fault may have changed the replicas' roles meanwhile.
    if (options_.plan.replicas && !AwaitReplicas()) break;
    if (done_) break;
    Say("FAULT: " + fault.ToString());
    last_fault_ns_ = scheduler_.now_ns() + fault.lasts_ms * kMilli;
    Make(fault);
    // With replicas the next fault occurs only when this one is over.
    if (options_.plan.replicas) Sleep(fault.lasts_ms + 4'000);
  }
  faults_done_ = true;
  seen_.faults_due = false;
  chooser_.EndMishaps();
}

// Starts a client, and a new one each time the client was killed or stopped with a disk error.
void Simulation::RunClients() {
  while (!done_) {
    while (scheduler_.now_ns() < power_off_until_ns_) Sleep(20);
    clients_.push_back(std::make_unique<SimTraining>(machine_, training_, seen_,
                                                     [this] { return At("worker-0"); }));
    SimTraining* const client = client_ = clients_.back().get();
    const auto ended = std::make_shared<std::pair<bool, Status>>(false, OkStatus());
    const auto weights = std::make_shared<std::string>();
    Say("client starts");
    threads_.push_back(scheduler_.StartThread(kClient, [client, ended, weights] {
      ended->second = client->Run(weights.get());
      ended->first = true;
    }));
    const auto late = [this] {
      return scheduler_.now_ns() > last_fault_ns_ + kEndsWithinMs * kMilli && faults_done_;
    };
    while (!ended->first && client->alive() && !late()) Sleep(10);
    if (!client->alive()) {
      Sleep(static_cast<int64_t>(scheduler_.Random() % 2'000));
      continue;
    }
    client_ = nullptr;
    done_ = true;
    if (!ended->first) {
      Violation(StrCat("hang: not at its end ", kEndsWithinMs, " ms after the last fault"));
    } else if (ended->second.ok()) {
      result_.weights = *weights;
    } else if (ended->second.message().find(SimFiles::kInjected) != string_view::npos) {
      Say(StrCat("client gives up: ", WithoutPayloads(ended->second)));
      client->Kill();
      done_ = false;
      Sleep(500);
    } else if (seen_.damaged && absl::IsDataLoss(ended->second)) {
      Say(StrCat("no checkpoint is left: ", WithoutPayloads(ended->second)));
      result_.weights = options_.expected_weights;
    } else {
      Violation(StrCat("the training failed: ", WithoutPayloads(ended->second)));
    }
  }
}

// Checks that each visible checkpoint is undamaged, even right after a loss of power.
void Simulation::CheckCheckpoints() {
  if (seen_.damaged || !files_.FileExists("/checkpoints")) return;
  const auto prefixes = ListCheckpoints(clock_, "/checkpoints");
  if (!prefixes.ok())
    return Violation("checkpoints cannot be listed: " + prefixes.status().ToString());
  for (const std::string& prefix : *prefixes) {
    // A checkpoint that is being replaced or removed has no index.
    if (!files_.FileExists(prefix + ".index")) continue;
    const Status good = VerifyCheckpoint(clock_, prefix);
    if (!good.ok()) Violation(StrCat("checkpoint ", prefix, " is damaged: ", good.ToString()));
  }
}

void Simulation::CompareReplicas() {
  if (done_) return;
  if (++num_comparisons_ % kComparisonsPerHealthCheck == 0) CheckHealth();
  for (int ps = 0; ps < kPs; ++ps) {
    const std::string wrong =
        replica_checks_[ps].Check(At(StrCat("ps-", ps)), At(StrCat("ps-", ps, "b")));
    // Records only the first violation, because later ones are its consequences.
    if (!wrong.empty() && result_.violations.empty()) {
      Violation(StrCat("the replicas of ps ", ps, " differ: ", wrong));
    }
  }
  scheduler_.ScheduleAt(scheduler_.now_ns() + kCompareEveryMs * kMilli,
                        [this] { CompareReplicas(); });
}

// Checks that the followers have a step that the client has just seen acknowledged.
void Simulation::CheckAcknowledged() {
  for (int ps = 0; ps < kPs; ++ps) {
    const std::string wrong = replica_checks_[ps].CheckStep(At(StrCat("ps-", ps)),
                                                            At(StrCat("ps-", ps, "b")), seen_.step);
    if (!wrong.empty() && result_.violations.empty()) Violation(wrong);
  }
}

// Checks that each task that has missed several heartbeats counts as lost.
void Simulation::CheckHealth() {
  for (const auto& [host, process] : process_at_) {
    for (const HealthMonitor::Peer& peer : process->task().master().peers()) {
      if (peer.misses < kMissesMax || !peer.status.ok() || !result_.violations.empty()) continue;
      Violation(StrCat(host, " does not count ", peer.task.name, " as lost, after ", peer.misses,
                       " heartbeats without an answer"));
    }
  }
}

// Checks that the state file names the newest checkpoint. A client that ends without error has
// written both.
void Simulation::CheckStateFile() {
  if (seen_.damaged || !files_.FileExists("/checkpoints")) return;
  const auto prefixes = ListCheckpoints(clock_, "/checkpoints");
  if (!prefixes.ok() || prefixes->empty()) return;
  const auto state = clock_.ReadFile("/checkpoints/checkpoint");
  const std::string newest = prefixes->front().substr(prefixes->front().rfind('/') + 1);
  if (!state.ok() || !absl::StrContains(*state, newest)) {
    Violation(StrCat("the state file does not name the newest checkpoint, ", newest));
  }
}

// Checks that no step runs. The last session still exists, so a step that runs now would run
// forever.
void Simulation::CheckSteps() {
  for (const auto& [host, process] : process_at_) {
    const int64_t running = process->task().worker().steps().counts().running;
    if (running != 0) Violation(StrCat(host, " runs ", running, " steps that nobody waits for"));
  }
}

void Simulation::CheckLeaks() {
  for (const auto& [host, process] : process_at_) {
    Worker& worker = process->task().worker();
    const StepTable::Counts counts = worker.steps().counts();
    if (counts.running != 0) Violation(StrCat(host, " still runs ", counts.running, " steps"));
    if (counts.parked != 0) Violation(StrCat(host, " has ", counts.parked, " subscriptions left"));
    if (worker.has_sessions()) Violation(host + " still has sessions");
  }
  const auto& repeated = network_->repeated_steps();
  result_.violations.insert(result_.violations.end(), repeated.begin(), repeated.end());
}

void Simulation::StopAll() {
  for (const auto& process : processes_) {
    if (process->alive()) process->Stop();
  }
  Sleep(1'000);
  process_at_.clear();
  for (const auto& process : processes_) network_->Remove(process->task());
  processes_.clear();
  network_ = nullptr;
  timer_ = nullptr;
}

void Simulation::Simulate() {
  timer_ = NewThreadTimer(clock_, scheduler_);
  network_ = std::make_unique<SimNetwork>(scheduler_, clock_, *timer_, SimNetwork::Options());
  machine_ = {
      .scheduler = &scheduler_,
      .files = &files_,
      .network = network_.get(),
      .cluster = &cluster_,
      .find =
          [this](const std::string& address) { return At(address.substr(0, address.find(':'))); },
      .fenced =
          [this](SimProcess& process) {
            if (process.alive()) Say(process.host() + " is fenced");
            Kill(process, /*silent=*/false, 300);
          },
      .say =
          [this](const std::string& line) {
            // A follower refuses a push only if the push is wrong.
            if (absl::StrContains(line, "begins anew: ") && !done_) return Violation(line);
            Say(line);
          }};
  training_ = {.steps = options_.steps,
               .ps = kPs,
               .workers = kWorkers,
               .replicas = options_.plan.replicas,
               .deterministic = options_.deterministic};
  AddTasks();
  for (const auto& [host, place] : places_) Start(host);
  if (options_.plan.replicas) {
    seen_.faults_due = options_.faults;
    seen_.acknowledged = [this] { CheckAcknowledged(); };
    CompareReplicas();
  }
  std::unique_ptr<Thread> faults = scheduler_.StartThread("faults", [this] {
    if (options_.faults) MakeFaults();
    faults_done_ = true;
  });
  RunClients();
  const int64_t ended_ns = scheduler_.now_ns();
  result_.simulated_seconds = static_cast<double>(ended_ns) / 1e9 - 1;
  for (const std::string& each : seen_.violations) result_.violations.push_back(each);
  if (!result_.violations.empty()) return;  // the process will exit: see RunSimulation
  faults = nullptr;
  // Waits until all clients and all killed processes have ended.
  threads_.clear();
  Sleep(kStepsEndMs);
  CheckSteps();
  clients_.clear();
  Sleep(kQuietMs);
  CheckCheckpoints();
  CheckStateFile();
  CheckLeaks();
  result_.simulated_seconds = static_cast<double>(scheduler_.now_ns()) / 1e9 - 1;
  result_.log = network_->log();
  if (result_.violations.empty()) StopAll();
}

SimRunResult Simulation::Run() {
  FaultPoint::SetChooser(&chooser_);
  bool simulated = false;
  const Status ran = scheduler_.Run([&] {
    Simulate();
    simulated = true;
    if (!result_.violations.empty()) {
      result_.log = network_->log();
      scheduler_.Abandon();
    }
  });
  FaultPoint::SetChooser(nullptr);
  if (!ran.ok() && result_.violations.empty()) {
    result_.violations.push_back(StrCat("hang: ", ran.ToString()));
  }
  const std::string& expected = options_.expected_weights;
  if (result_.violations.empty() && !expected.empty() && result_.weights != expected) {
    result_.violations.push_back(
        StrCat("bits: the variables are ", result_.weights, ", expected ", expected));
  }
  result_.points = chooser_.reached();
  return std::move(result_);
}

}  // namespace

std::vector<std::string> SimHosts(bool replicas) {
  std::vector<std::string> hosts;
  for (int i = 0; i < kPs; ++i) {
    hosts.push_back(StrCat("ps-", i));
    if (replicas) hosts.push_back(StrCat("ps-", i, "b"));
  }
  for (int i = 0; i < kWorkers; ++i) hosts.push_back(StrCat("worker-", i));
  if (!replicas) hosts.push_back(kClient);
  return hosts;
}

StatusOr<SimRunResult> RunSimulation(const SimRunOptions& options) {
  SimRunOptions run = options;
  if (run.plan.hosts.empty()) run.plan.hosts = SimHosts(run.plan.replicas);
  if (run.deterministic && run.plan.replicas) {
    return InvalidArgument("deterministic and replicas: a training that goes back after a failure ",
                           "loses steps that were acknowledged");
  }
  ASSIGN_OR_RETURN(std::vector<Fault> plan, MakeFaultPlan(run.plan));
  RETURN_IF_ERROR(SimChooser::CheckNames(run.bugs));
  // The Simulation is not destroyed after a violation, because waiting closures still use it.
  auto* const simulation = new Simulation(run, std::move(plan));
  SimRunResult result = simulation->Run();
  if (result.violations.empty()) delete simulation;
  return result;
}

}  // namespace penstock::simulation
