// SPDX-License-Identifier: Apache-2.0
//
// ElasticWorker: for tests of ElasticGroup, one of three workers, which trains in a thread of its
// own on a server of a TestCluster.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "client/allreduce/collective_replicas.h"
#include "client/allreduce/elastic_group.h"
#include "client/optimizers.h"
#include "client/session.h"
#include "client/training.h"
#include "core/base/mutex.h"
#include "core/op/gradient.h"
#include "distributed/testing/test_cluster.h"

namespace penstock::client {

inline constexpr int kElasticWorkers = 3;

inline std::vector<std::string> ElasticNames() {
  return {"/job:worker/task:0", "/job:worker/task:1", "/job:worker/task:2"};
}

inline Tensor NumberedBatch(int64_t number) {
  std::vector<float> values;
  for (int i = 0; i < 12; ++i) {
    values.push_back(static_cast<float>(std::sin(1.7 * i + 0.9 * static_cast<double>(number))));
  }
  return Tensor::Of<float>({4, 3}, values);
}

// Called before an action of a worker:
//   "batch"          makes the next batch
//   "save"           saves the last checkpoint
//   "end"            ends its hook
//   "ended"          (after the end of its training)
//   "session N"      makes a session with N tasks
//   "elastic/leave"  and other names of nodes: runs this node as a target
// The worker's action then fails with the returned error, except "save" and "ended".
using BeforeAction = std::function<Status(int worker, const std::string& action)>;

// Calls BeforeAction with the targets of each Run.
class ObservedSession final : public SessionInterface {
 public:
  ObservedSession(std::unique_ptr<SessionInterface> session,
                  std::function<Status(const std::string& target)> before)
      : session_(std::move(session)), before_(std::move(before)) {}

  Status Extend(const Graph& graph) override { return session_->Extend(graph); }
  Status Run(const RunOptions& options, const Feeds& feeds, const std::vector<std::string>& fetches,
             const std::vector<std::string>& targets, std::vector<Tensor>* outputs,
             RunMetadata* metadata) override {
    for (const std::string& target : targets) RETURN_IF_ERROR(before_(target));
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
  StatusOr<std::vector<DeviceInfo>> ListDevices() override { return session_->ListDevices(); }
  Status Close() override { return session_->Close(); }

 private:
  const std::unique_ptr<SessionInterface> session_;
  const std::function<Status(const std::string& target)> before_;
};

// One worker, which trains in a thread of its own until Stop.
class ElasticWorker : public TrainingHook {
 public:
  struct Options {
    double wait_seconds = 30;
    std::string checkpoint_dir = "";
    // This worker's server stops when it begins to save the last checkpoint.
    int dies_in_last_save = -1;
    int64_t stops_after_step = 0;  // the worker is told to stop after this step; 0: never
    double step_seconds = 10;
    double last_save_seconds = 60;
    BeforeAction before = nullptr;
    // The worker's data end before this step.
    std::shared_ptr<std::atomic<int64_t>> end = std::make_shared<std::atomic<int64_t>>(1'000'000);
  };
  ElasticWorker(TestCluster& cluster, int worker, const Options& options)
      : cluster_(cluster), worker_(worker), options_(options), thread_([this] { Train(); }) {}
  ~ElasticWorker() override { Join(); }

  void Stop() {
    MutexLock lock(mu_);
    if (loop_ != nullptr) loop_->RequestStop();
  }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  // Returns how often the worker has said `text`.
  int Said(const std::string& text) const {
    MutexLock lock(mu_);
    int count = 0;
    for (size_t at = said_.find(text); at != std::string::npos; at = said_.find(text, at + 1)) {
      ++count;
    }
    return count;
  }
  std::string said() const {
    MutexLock lock(mu_);
    return said_;
  }
  int64_t step() const {
    MutexLock lock(mu_);
    return step_;
  }
  // Returns the batch numbers of the steps that this worker has completed.
  std::vector<int64_t> numbers() const {
    MutexLock lock(mu_);
    return numbers_;
  }
  // Valid after Join:
  const Status& status() const { return status_; }
  const Tensor& weights() const { return weights_; }

  Status AfterStep(const StepResult& result, bool* stop) override {
    MutexLock lock(mu_);
    step_ = result.global_step;
    numbers_.push_back(number_);
    if (step_ == options_.stops_after_step) *stop = true;
    return OkStatus();
  }
  Status End(Session& session, int64_t) override {
    RETURN_IF_ERROR(Before("end"));
    return options_.before ? session.Fetch(value_).status() : OkStatus();
  }
  void HoldUpdates() override {
    if (step() < *options_.end) return;
    Before("save").IgnoreError();
    if (options_.dies_in_last_save != worker_) return;
    cluster_.Stop("worker", worker_);
    Stop();
  }

 private:
  Status Before(const std::string& action) const {
    return options_.before ? options_.before(worker_, action) : OkStatus();
  }
  StatusOr<std::unique_ptr<SessionInterface>> NewSession(const SessionOptions& options) const {
    RETURN_IF_ERROR(Before(StrCat("session ", options.device_filters.size())));
    ASSIGN_OR_RETURN(auto session, NewRemoteSession(cluster_.target("worker", worker_), options));
    return std::make_unique<ObservedSession>(
        std::move(session), [this](const std::string& target) { return Before(target); });
  }
  void Train() {
    Program program;
    const std::string target = cluster_.target("worker", worker_);
    ElasticGroup group(program, {.workers = ElasticNames(),
                                 .worker = worker_,
                                 .ask_seconds = 0.5,
                                 .form_seconds = 2,
                                 .rejoin_seconds = 0.2,
                                 .pause_seconds = 10,
                                 .present_seconds = 6,
                                 .new_session = [this](const SessionOptions& session) {
                                   return NewSession(session);
                                 }});
    CollectiveReplicas replicas(program,
                                {.workers = kElasticWorkers, .worker = worker_, .group = &group});
    const auto scope = program.DeviceFunctionScope(replicas.Devices());
    const Output x = CallIn(program, "Placeholder", {},
                            {{"dtype", DType::kFloat}, {"shape", PartialShape({-1, 3})}});
    const Variable w(program, "w", {3, 1}, GlorotUniform(1));
    const Output loss =
        Mean(Square(MatMul(x, w) - 1), Constant(program, Tensor::Vector<int32_t>({0, 1})));
    value_ = w.Read();
    const Output mean = replicas.Average(loss);
    Momentum optimizer(0.01, 0.9);
    const auto gradients = replicas.Average(optimizer.ComputeGradients(program, loss));
    const Output train = optimizer.ApplyGradients(program, gradients, program.GlobalStep());
    TrainingStep step{.train = train, .inputs = {x}, .measures = {{"loss", mean}}};
    step.next_batch = [&](int64_t number) -> StatusOr<std::vector<Tensor>> {
      RETURN_IF_ERROR(Before("batch"));
      if (number >= *options_.end) return OutOfRange("no more rows");
      number_ = group.BatchNumber(number);
      Env::Real().SleepForNanos(2'000'000);
      return std::vector<Tensor>{NumberedBatch(number_)};
    };
    const auto say = [this](const std::string& line) {
      MutexLock lock(mu_);
      said_ += line + "\n";
    };
    const TrainingOptions options{.target = target,
                                  .agree = replicas.Agree(),
                                  .group = &group,
                                  .checkpoint_dir = options_.checkpoint_dir,
                                  .save_every_steps = 20,
                                  .wait_seconds = options_.wait_seconds,
                                  .retry_seconds = 0.05,
                                  .connect_seconds = 2,
                                  .step_seconds = options_.step_seconds,
                                  .last_save_seconds = options_.last_save_seconds,
                                  .max_failures_in_a_row = 100,
                                  .stop_on_signals = false,
                                  .say = say};
    TrainingLoop loop(program, step, options);
    loop.AddHook(this);
    {
      MutexLock lock(mu_);
      loop_ = &loop;
    }
    status_ = loop.Run();
    Before("ended").IgnoreError();
    MutexLock lock(mu_);
    loop_ = nullptr;
    step_ = loop.global_step();
    if (!status_.ok()) return;
    const auto fetched = loop.session().Fetch(w);
    if (fetched.ok()) weights_ = *fetched;
  }

  TestCluster& cluster_;
  const int worker_;
  const Options options_;
  mutable Mutex mu_;
  TrainingLoop* loop_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::string said_ ABSL_GUARDED_BY(mu_);
  int64_t step_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<int64_t> numbers_ ABSL_GUARDED_BY(mu_);
  int64_t number_ = 0;  // of the batch of the current step
  Output value_;        // of the weights
  Status status_;
  Tensor weights_;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace penstock::client
