// SPDX-License-Identifier: Apache-2.0
//
// Trains asynchronously with BoundedStaleness and ExactlyOnce on a simulated cluster: a parameter
// server, with or without a second process, and two workers, whose programs die with them. Kills
// workers and parameter servers. Each batch has to be applied once, a dead worker must not hold the
// other one up for long, and a parameter server that takes over keeps the clocks.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "client/device_setter.h"
#include "client/exactly_once.h"
#include "client/optimizers.h"
#include "client/seconds.h"
#include "client/sync/bounded_staleness.h"
#include "client/training.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"
#include "tests/sim/sim_process.h"

namespace penstock::simulation {
namespace {

constexpr double kMs = 1e-3;
constexpr int kWorkers = 2;

std::string WorkerTask(int worker) { return StrCat("/job:worker/task:", worker); }

// The results of all programs of one worker.
struct WorkerRecord {
  int64_t steps = 0, waits = 0;
  double ended_seconds = 0;  // when the worker took its last batch
  bool done = false;
};

struct Settings {
  bool replicas = false;
  int64_t bound = 1, batches = 400;  // of each worker
  double timeout_seconds = 1;
  std::vector<double> step_seconds = {10 * kMs, 10 * kMs};
};

struct Record {
  WorkerRecord workers[kWorkers];
  int64_t widest = 0;    // the greatest difference of the clocks, when both workers counted
  int64_t greatest = 0;  // the greatest clock that any program has seen
  int64_t lost = 0;      // by how many steps the greatest clock has fallen back
  float total = 0;       // the variable, to which each batch adds 1
  bool restored = false;
  std::vector<std::string> said;
};

// The program of a worker: one life of it.
class WorkerProgram final : public client::TrainingHook {
 public:
  WorkerProgram(const SimMachine& machine, const Settings& settings, int worker, Record& record)
      : machine_(machine),
        settings_(settings),
        worker_(worker),
        record_(record),
        env_(*machine.scheduler, *machine.files),
        end_{StrCat("client-", worker), env_.RandomU64() | 1},
        scope_(program_.DeviceFunctionScope(
            client::ReplicaDeviceSetter({.ps_tasks = 1, .worker_device = WorkerTask(worker)}))),
        total_(program_, "total", {}, client::Zeros()),
        x_(CallIn(program_, "Placeholder", {},
                  {{"dtype", DType::kFloat}, {"shape", PartialShape()}})),
        once_(program_, {.workers = kWorkers, .worker = worker}),
        bounded_(program_, {.bound = settings.bound,
                            .workers = kWorkers,
                            .worker = worker,
                            .timeout_seconds = settings.timeout_seconds,
                            .task = WorkerTask(worker)}) {
    const Output update =
        once_.Apply(optimizer_, optimizer_.ComputeGradients(program_, -(x_ * total_)));
    client::TrainingOptions options{.is_chief = worker == 0,
                                    .checkpoint_dir = "/checkpoints",
                                    .save_every_steps = 20,
                                    .retry_seconds = 0.05,
                                    .max_failures_in_a_row = 1'000,
                                    .stop_on_signals = false};
    options.new_session = [this] { return NewSession(); };
    options.say = [this](const std::string& line) { Say(line); };
    options.env = &env_;
    options.scheduler = machine.scheduler;
    loop_ = std::make_unique<client::TrainingLoop>(
        program_,
        client::TrainingStep{.train = bounded_.Apply(update),
                             .inputs = {x_},
                             .next_batch = [this](int64_t) { return NextBatch(); },
                             .once = &once_},
        options);
    loop_->AddHook(&bounded_);
    loop_->AddHook(this);
  }

  Status Run() {
    RETURN_IF_ERROR(program_.status());
    const Status status = loop_->Run();
    record_.workers[worker_].waits += bounded_.waits();
    return status;
  }
  void Kill() {
    env_.Kill();
    machine_.network->Kill(end_, /*silent=*/false);
    loop_->RequestStop();
  }
  bool alive() const { return env_.alive(); }

  Status SessionReady(client::Session& session, int64_t) override {
    ASSIGN_OR_RETURN(next_batch_, once_.Begin(session));
    return OkStatus();
  }
  Status StepFailed(const Status& why) override { return once_.Explain(why); }
  Status BeforeStep(int64_t) override {
    env_.SleepForNanos(client::Nanos(settings_.step_seconds[worker_]));
    return OkStatus();
  }
  Outputs ExtraFetches(int64_t) override { return bounded_.clocks(); }
  void Fetched(std::vector<Tensor> values) override {
    if (!alive()) return;
    const auto clocks = values[0].flat<int64_t>();
    const auto counts = values[1].flat<bool>();
    const int64_t most = std::max(clocks[0], clocks[1]);
    record_.lost = std::max(record_.lost, record_.greatest - most);
    record_.greatest = std::max(record_.greatest, most);
    ++record_.workers[worker_].steps;
    record_.workers[worker_].ended_seconds = static_cast<double>(env_.NowNanos()) * 1e-9;
    if (!counts[0] || !counts[1]) return;
    record_.widest = std::max(record_.widest, std::abs(clocks[0] - clocks[1]));
  }
  Status End(client::Session& session, int64_t) override {
    ASSIGN_OR_RETURN(const Tensor total, session.Fetch(total_));
    if (alive()) record_.total = std::max(record_.total, total.scalar<float>());
    return OkStatus();
  }

 private:
  StatusOr<std::unique_ptr<SessionInterface>> NewSession() {
    SimProcess* const master = machine_.find(StrCat("worker-", worker_, ":2222"));
    if (master == nullptr) return Unavailable("connection refused: no master is there");
    return machine_.network->NewSession(
        end_, master->task().self(),
        {.operation_timeout_ms = 5'000, .device_filters = {"/job:ps", WorkerTask(worker_)}});
  }
  void Say(const std::string& line) {
    if (!alive()) return;
    record_.said.push_back(StrCat(end_.host, ": ", line));
    if (absl::StartsWith(line, "restored")) record_.restored = true;
  }
  StatusOr<std::vector<Tensor>> NextBatch() {
    if (next_batch_ >= settings_.batches) return OutOfRange("there are no more batches");
    ++next_batch_;
    return std::vector<Tensor>{Tensor::Scalar(1.0f)};
  }

  const SimMachine machine_;
  const Settings& settings_;
  const int worker_;
  Record& record_;
  ProcessEnv env_;
  const SimEnd end_;
  client::Program program_;
  const decltype(program_.DeviceFunctionScope(nullptr)) scope_;
  const client::Variable total_;
  const Output x_;
  client::ExactlyOnce once_;
  client::GradientDescent optimizer_{1};
  client::BoundedStaleness bounded_;
  std::unique_ptr<client::TrainingLoop> loop_;
  int64_t next_batch_ = 0;
};

class StaleCluster {
 public:
  using Faults = std::function<void(StaleCluster&)>;
  StaleCluster(const Settings& settings, uint64_t seed)
      : settings_(settings),
        scheduler_({.seed = seed, .limit_ns = int64_t{3'600'000'000'000}}),
        files_(scheduler_),
        clock_(scheduler_, files_) {}

  // Trains to the end, while `faults` runs.
  void Run(const Faults& faults) {
    const Status ran = scheduler_.Run([&] { Simulate(faults); });
    ASSERT_EQ(ran, OkStatus());
    for (const WorkerRecord& worker : record_.workers) EXPECT_TRUE(worker.done) << Said();
    EXPECT_EQ(record_.total, static_cast<float>(kWorkers * settings_.batches)) << Said();
    EXPECT_LE(record_.widest, settings_.bound + 1);
  }
  const Record& record() const { return record_; }
  std::string Said() const {
    std::string text;
    for (const std::string& line : record_.said) StrAppend(&text, line, "\n");
    return text;
  }

  // The following are for the faults.
  void Sleep(double seconds) { clock_.SleepForNanos(client::Nanos(seconds)); }
  double now_seconds() { return static_cast<double>(clock_.NowNanos()) * 1e-9; }
  bool over() const { return record_.workers[0].done && record_.workers[1].done; }
  // Kills the process at this host, with its program, and starts it again after a while.
  void Kill(const std::string& host, double down_seconds) {
    const auto found = process_at_.find(host);
    ASSERT_NE(found, process_at_.end());
    End(*found->second, /*silent=*/false);
    if (absl::StartsWith(host, "worker-")) {
      WorkerProgram*& program = programs_[host.back() - '0'];
      if (program != nullptr) program->Kill();
      program = nullptr;
    }
    scheduler_.ScheduleAt(scheduler_.now_ns() + client::Nanos(down_seconds),
                          [this, host] { Start(host); });
  }
  // Waits until the parameter server has a follower that could take over; returns the primary's
  // host.
  std::string AwaitFollower() {
    while (true) {
      for (const char* host : {"ps-0", "ps-0b"}) {
        SimProcess* const process = Find(host);
        if (process != nullptr && process->replica()->has_follower()) return host;
      }
      Sleep(5 * kMs);
    }
  }

 private:
  SimProcess* Find(const std::string& host) {
    const auto found = process_at_.find(host);
    return found == process_at_.end() ? nullptr : found->second;
  }
  void Start(const std::string& host) {
    if (stopped_ || Find(host) != nullptr) return;
    const bool ps = absl::StartsWith(host, "ps");
    network_->Boot(host);
    processes_.push_back(std::make_unique<SimProcess>(
        machine_, ps ? "ps" : "worker", ps ? 0 : host.back() - '0', host.back() == 'b' ? 1 : 0));
    process_at_[host] = processes_.back().get();
  }
  void End(SimProcess& process, bool silent) {
    process_at_.erase(process.host());
    process.Kill(silent);
    threads_.push_back(scheduler_.StartThread("the end of " + process.host(),
                                              [process = &process] { process->Stop(); }));
  }
  // Runs the programs of a worker, one after the other.
  void RunWorker(int worker) {
    while (!record_.workers[worker].done) {
      lives_.push_back(std::make_unique<WorkerProgram>(machine_, settings_, worker, record_));
      WorkerProgram* const program = programs_[worker] = lives_.back().get();
      const Status status = program->Run();
      if (!program->alive()) {
        while (Find(StrCat("worker-", worker)) == nullptr) Sleep(10 * kMs);
        continue;
      }
      programs_[worker] = nullptr;
      EXPECT_EQ(status, OkStatus()) << Said();
      record_.workers[worker].done = true;
    }
  }

  void Simulate(const Faults& faults) {
    timer_ = NewThreadTimer(clock_, scheduler_);
    network_ = std::make_unique<SimNetwork>(scheduler_, clock_, *timer_, SimNetwork::Options());
    machine_ = {.scheduler = &scheduler_,
                .files = &files_,
                .network = network_.get(),
                .cluster = &cluster_,
                .find = [this](const std::string& address) {
                  return Find(address.substr(0, address.find(':')));
                }};
    machine_.fenced = [this](SimProcess& process) {
      const std::string host = process.host();
      if (process.alive()) End(process, false);
      scheduler_.ScheduleAt(scheduler_.now_ns() + 300'000'000, [this, host] { Start(host); });
    };
    machine_.say = [this](const std::string& line) { record_.said.push_back(line); };
    CHECK_OK(cluster_.AddTask("ps", 0, "ps-0:2222"));
    if (settings_.replicas) CHECK_OK(cluster_.AddReplica("ps", 0, "ps-0b:2222"));
    for (int i = 0; i < kWorkers; ++i) {
      CHECK_OK(cluster_.AddTask("worker", i, StrCat("worker-", i, ":2222")));
    }
    Start("ps-0");
    if (settings_.replicas) Start("ps-0b");
    for (int i = 0; i < kWorkers; ++i) Start(StrCat("worker-", i));
    {
      std::vector<std::unique_ptr<Thread>> workers;
      for (int i = 0; i < kWorkers; ++i) {
        workers.push_back(
            scheduler_.StartThread(StrCat("client-", i), [this, i] { RunWorker(i); }));
      }
      if (faults) faults(*this);
    }
    stopped_ = true;
    threads_.clear();
    lives_.clear();
    for (const auto& process : processes_) {
      if (process->alive()) process->Stop();
    }
    Sleep(1);
    process_at_.clear();
    for (const auto& process : processes_) network_->Remove(process->task());
    processes_.clear();
    network_ = nullptr;
    timer_ = nullptr;
  }

  const Settings settings_;
  SimScheduler scheduler_;
  SimFiles files_;
  ProcessEnv clock_;
  ClusterSpec cluster_;
  std::unique_ptr<DeadlineTimer> timer_;
  std::unique_ptr<SimNetwork> network_;
  SimMachine machine_;
  std::map<std::string, SimProcess*> process_at_;       // live processes, by host
  std::vector<std::unique_ptr<SimProcess>> processes_;  // killed ones, too
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::unique_ptr<WorkerProgram>> lives_;
  WorkerProgram* programs_[kWorkers] = {};  // the live ones
  Record record_;
  bool stopped_ = false;
};

TEST(StalenessFaults, ADeadWorkerHoldsTheOtherOneOnlyForATime) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    StaleCluster cluster({}, seed);
    double back = 0;
    cluster.Run([&](StaleCluster& c) {
      c.Sleep(1 + static_cast<double>(seed) * 0.1);
      c.Kill("worker-1", /*down_seconds=*/20);
      back = c.now_seconds() + 20;
    });
    // Worker 0 takes its last 300 batches or so in 3 s, after waiting for a second or less.
    EXPECT_LT(cluster.record().workers[0].ended_seconds, back - 10);
    EXPECT_GT(cluster.record().workers[1].ended_seconds, back);
  }
}

// A worker that comes back is waited for again.
TEST(StalenessFaults, AWorkerComesBackAgainAndAgain) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    StaleCluster cluster({.step_seconds = {1 * kMs, 20 * kMs}}, seed);
    cluster.Run([](StaleCluster& c) {
      for (int kill = 0; kill < 3; ++kill) {
        c.Sleep(1.37);
        if (!c.over()) c.Kill("worker-1", /*down_seconds=*/0.4);
      }
    });
    EXPECT_GT(cluster.record().workers[0].waits, 100);
  }
}

TEST(StalenessFaults, APsWithoutReplicasGoesBackToACheckpoint) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    StaleCluster cluster({}, seed);
    cluster.Run([](StaleCluster& c) {
      c.Sleep(1.5);
      c.Kill("ps-0", /*down_seconds=*/0.5);
    });
    EXPECT_TRUE(cluster.record().restored);
  }
}

TEST(StalenessFaults, AFollowerThatTakesOverKeepsTheClocks) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    StaleCluster cluster({.replicas = true, .step_seconds = {2 * kMs, 10 * kMs}}, seed);
    cluster.Run([seed](StaleCluster& c) {
      for (int kill = 0; kill < 3 && !c.over(); ++kill) {
        c.AwaitFollower();
        c.Sleep(0.2 + static_cast<double>(seed) * 0.0123);
        c.Kill(c.AwaitFollower(), /*down_seconds=*/0.3);
      }
    });
    const Record& record = cluster.record();
    EXPECT_FALSE(record.restored) << cluster.Said();
    EXPECT_GT(record.greatest, 300);
    // One that comes back takes the clock of the slowest one.
    EXPECT_LE(record.lost, 2);
    EXPECT_GT(record.workers[0].waits, 100);
  }
}

TEST(StalenessFaults, AWorkerAndAPsWithReplicas) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    StaleCluster cluster({.replicas = true}, seed);
    cluster.Run([](StaleCluster& c) {
      c.AwaitFollower();
      c.Sleep(0.5);
      c.Kill("worker-1", /*down_seconds=*/1);
      c.Sleep(0.1);
      c.Kill(c.AwaitFollower(), /*down_seconds=*/0.3);
      c.Sleep(2);
      if (!c.over()) c.Kill(c.AwaitFollower(), /*down_seconds=*/0.3);
    });
    EXPECT_FALSE(cluster.record().restored) << cluster.Said();
  }
}

// A step that waits for a slower worker has made its changes, so it must not delay the
// acknowledgement of the steps of other workers.
TEST(StalenessFaults, ReplicasDoNotSlowWaitingWorkersDown) {
  double seconds[2];
  for (const bool replicas : {false, true}) {
    StaleCluster cluster({.replicas = replicas, .step_seconds = {1 * kMs, 10 * kMs}}, 1);
    cluster.Run(nullptr);
    seconds[replicas ? 1 : 0] = std::max(cluster.record().workers[0].ended_seconds,
                                         cluster.record().workers[1].ended_seconds);
  }
  EXPECT_LT(seconds[1], 1.5 * seconds[0]);
}

}  // namespace
}  // namespace penstock::simulation
