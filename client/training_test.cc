// SPDX-License-Identifier: Apache-2.0
//
// Tests training loops that start, resume or are interrupted, as the chief and as one of many
// workers.
#include "client/training.h"

#include <signal.h>

#include <fstream>
#include <utility>

#include "client/optimizers.h"
#include "client/run_queue_runners.h"
#include "core/base/mutex.h"
#include "core/checkpoint/checkpoint_state.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string TrainingDirectory() {
  return StrCat(testing::TempDir(), "/training_", Env::Real().RandomU64());
}

// A fake parameter server. All its sessions use the same variables, until Restart loses them.
class Server {
 public:
  Server() { Restart(); }
  void Restart() { variables_ = *NewLocalSession({}); }
  void FailNext(int calls, Status why) {
    MutexLock lock(mu_);
    failures_ = calls;
    why_ = std::move(why);
  }
  StatusOr<std::unique_ptr<SessionInterface>> NewSession();
  int sessions() const {
    MutexLock lock(mu_);
    return sessions_;
  }

  // Returns the error with which a call of the session `session` fails: that of FailNext, or
  // Aborted if there is a newer session. Otherwise returns OK.
  Status Check(int session) {
    MutexLock lock(mu_);
    if (failures_ > 0) {
      --failures_;
      return why_;
    }
    return session == sessions_ ? OkStatus() : Aborted("an old session");
  }
  SessionInterface& variables() { return *variables_; }

 private:
  std::shared_ptr<SessionInterface> variables_;
  mutable Mutex mu_;
  int sessions_ ABSL_GUARDED_BY(mu_) = 0, failures_ ABSL_GUARDED_BY(mu_) = 0;
  Status why_ ABSL_GUARDED_BY(mu_);
};

class ServerSession : public SessionInterface {
 public:
  ServerSession(Server& server, int id) : server_(server), id_(id) {}
  Status Extend(const Graph& graph) override { return server_.variables().Extend(graph); }
  Status Run(const RunOptions& options, const Feeds& feeds, const std::vector<std::string>& fetches,
             const std::vector<std::string>& targets, std::vector<Tensor>* outputs,
             RunMetadata* metadata) override {
    RETURN_IF_ERROR(server_.Check(id_));
    return server_.variables().Run(options, feeds, fetches, targets, outputs, metadata);
  }
  StatusOr<CallableId> MakeCallable(const CallableSpec& spec) override {
    RETURN_IF_ERROR(server_.Check(id_));
    return server_.variables().MakeCallable(spec);
  }
  Status RunCallable(CallableId callable, const RunOptions& options, absl::Span<const Tensor> feeds,
                     std::vector<Tensor>* outputs, RunMetadata* metadata) override {
    RETURN_IF_ERROR(server_.Check(id_));
    return server_.variables().RunCallable(callable, options, feeds, outputs, metadata);
  }
  Status ReleaseCallable(CallableId) override { return OkStatus(); }
  StatusOr<std::string> SetUpPartialRun(const CallableSpec& spec) override {
    return server_.variables().SetUpPartialRun(spec);
  }
  Status RunPartial(const std::string& handle, const RunOptions& options, const Feeds& feeds,
                    const std::vector<std::string>& fetches,
                    std::vector<Tensor>* outputs) override {
    return server_.variables().RunPartial(handle, options, feeds, fetches, outputs);
  }
  StatusOr<std::vector<DeviceInfo>> ListDevices() override {
    return server_.variables().ListDevices();
  }
  Status Close() override { return OkStatus(); }

 private:
  Server& server_;
  const int id_;
};

StatusOr<std::unique_ptr<SessionInterface>> Server::NewSession() {
  MutexLock lock(mu_);
  return std::make_unique<ServerSession>(*this, ++sessions_);
}

// A program whose step adds 1 to `w` and to the global step; and the lines that its loop printed.
struct Trainer {
  explicit Trainer(Server& server)
      : w(program, "w", {}, Zeros()),
        train(program.Group({w.AssignAdd(OnesLike(w)),
                             program.GlobalStep().AssignAdd(OnesLike(program.GlobalStep()))},
                            "train")) {
    options.new_session = [&server] { return server.NewSession(); };
    options.say = [this](const std::string& line) { said.push_back(line); };
    options.stop_on_signals = false;
    options.retry_seconds = 0.01;
    options.wait_seconds = 5;
    // These tests choose the call that fails, so calls must come in a fixed order.
    // background_save_test.cc tests background saves.
    options.save_in_background = false;
  }
  Status Run() {
    loop.emplace(program, TrainingStep{.train = train, .measures = {{"w", w}}}, options);
    for (TrainingHook* hook : hooks) loop->AddHook(hook);
    return loop->Run();
  }
  float Value() { return loop->session().Fetch(w)->scalar<float>(); }

  Program program;
  Variable w;
  Output train;
  TrainingOptions options;
  std::vector<TrainingHook*> hooks;
  std::optional<TrainingLoop> loop;
  std::vector<std::string> said;
};

// Calls `fn` after each step.
class AfterEach : public TrainingHook {
 public:
  explicit AfterEach(std::function<void(int64_t)> fn) : fn_(std::move(fn)) {}
  Status AfterStep(const StepResult& result, bool* stop) override {
    fn_(result.global_step);
    return OkStatus();
  }

 private:
  const std::function<void(int64_t)> fn_;
};

TEST(TrainingLoopTest, TrainsToTheLastStepOnThisProcess) {
  Server server;
  Trainer trainer(server);
  trainer.options.new_session = nullptr;
  trainer.options.max_steps = 7;
  std::vector<int64_t> steps;
  AfterEach record([&](int64_t step) { steps.push_back(step); });
  trainer.hooks = {&record};
  const Status status = trainer.Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(trainer.loop->global_step(), 7);
  EXPECT_EQ(trainer.Value(), 7);
}

TEST(TrainingLoopTest, GoesOnFromTheLastCheckpoint) {
  const std::string directory = TrainingDirectory();
  for (const int64_t last : {5, 12, 12}) {
    Server server;
    Trainer trainer(server);
    trainer.options.checkpoint_dir = directory;
    trainer.options.max_steps = last;
    const Status status = trainer.Run();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(trainer.Value(), last);
  }
  EXPECT_EQ(ReadCheckpointState(Env::Real(), directory)->latest, "model.ckpt-12");
}

TEST(TrainingLoopTest, SavesEveryFewSteps) {
  const std::string directory = TrainingDirectory();
  Server server;
  Trainer trainer(server);
  trainer.options.checkpoint_dir = directory;
  trainer.options.save_every_steps = 4;
  trainer.options.max_steps = 10;
  ASSERT_TRUE(trainer.Run().ok());
  EXPECT_THAT(ReadCheckpointState(Env::Real(), directory)->all,
              ElementsAre("model.ckpt-0", "model.ckpt-4", "model.ckpt-8", "model.ckpt-10"));
}

TEST(TrainingLoopTest, LostVariablesComeBackFromTheCheckpoint) {
  Server server;
  Trainer trainer(server);
  trainer.options.checkpoint_dir = TrainingDirectory();
  trainer.options.save_every_steps = 4;
  trainer.options.max_steps = 10;
  bool crashed = false;
  AfterEach crash([&](int64_t step) {
    if (step != 7 || crashed) return;
    crashed = true;
    server.Restart();
    server.FailNext(1, Aborted("/job:ps/task:0 was restarted"));
  });
  trainer.hooks = {&crash};
  const Status status = trainer.Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(trainer.Value(), 10) << "4 from the checkpoint, and 6 steps";
  EXPECT_EQ(server.sessions(), 2);
  EXPECT_THAT(trainer.said,
              ElementsAre(HasSubstr("step after 7 failed: /job:ps/task:0 was restarted"),
                          HasSubstr("model.ckpt-4"), "going on at step 4"));
}

TEST(TrainingLoopTest, AfterAFailureWithoutLossNothingIsRestored) {
  Server server;
  Trainer trainer(server);
  trainer.options.max_steps = 10;
  AfterEach fail([&](int64_t step) {
    if (step == 7) server.FailNext(3, Unavailable("/job:ps/task:0 cannot be reached"));
  });
  trainer.hooks = {&fail};
  const Status status = trainer.Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(trainer.Value(), 10);
  EXPECT_THAT(trainer.said, ElementsAre(HasSubstr("step after 7 failed"),
                                        "waiting: /job:ps/task:0 cannot be reached",
                                        "no variable was lost: going on", "going on at step 7"));
}

TEST(TrainingLoopTest, LostVariablesWithoutACheckpointAreAnError) {
  Server server;
  Trainer trainer(server);
  trainer.options.max_steps = 10;
  AfterEach crash([&](int64_t step) {
    if (step != 7) return;
    server.Restart();
    server.FailNext(1, Aborted("restarted"));
  });
  trainer.hooks = {&crash};
  const Status status = trainer.Run();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the values of w, global_step were lost"));
}

TEST(TrainingLoopTest, EveryWaitEnds) {
  Server server;
  Trainer trainer(server);
  trainer.options.wait_seconds = 0.2;
  server.FailNext(1 << 30, Unavailable("/job:ps/task:1 cannot be reached"));
  const Status status = trainer.Run();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job:ps/task:1 cannot be reached"));
}

TEST(TrainingLoopTest, FailuresWithoutAStepBetweenThemEnd) {
  Server server;
  Trainer trainer(server);
  trainer.options.max_failures_in_a_row = 3;
  // Each new session connects without failure; then the hook makes the step fail.
  class FailSteps : public TrainingHook {
   public:
    explicit FailSteps(Server& server) : server_(server) {}
    Status BeforeStep(int64_t) override {
      server_.FailNext(1, Aborted("this step kills a task"));
      return OkStatus();
    }
    Server& server_;
  } fail(server);
  trainer.hooks = {&fail};
  const Status status = trainer.Run();
  EXPECT_EQ(status.code(), StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("gave up after 4 failures"));
  EXPECT_EQ(server.sessions(), 4);
}

TEST(TrainingLoopTest, OtherErrorsEndTheTraining) {
  Server server;
  Trainer trainer(server);
  AfterEach fail([&](int64_t step) {
    if (step == 2) server.FailNext(1, InvalidArgument("a bad batch"));
  });
  trainer.hooks = {&fail};
  EXPECT_EQ(trainer.Run(), InvalidArgument("a bad batch"));
}

TEST(TrainingLoopTest, AWorkerWaitsForTheChiefAndSaysSo) {
  Server server;
  Trainer worker(server);
  worker.options.is_chief = false;
  worker.options.max_steps = 4;
  int attempts = 0;
  worker.options.new_session = [&]() {
    if (++attempts == 3) {  // the chief initialises the variables only after the worker has waited
      Trainer chief(server);
      chief.options.max_steps = 1;
      CHECK_OK(chief.Run());
    }
    return server.NewSession();
  };
  const Status status = worker.Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(worker.said,
              ElementsAre("waiting: /job:worker/task:0 (the chief) has not initialised w, "
                          "global_step yet"));
  EXPECT_EQ(worker.Value(), 4) << "the chief's step and three of its own";
}

TEST(TrainingLoopTest, AWorkerDoesNotWaitForEver) {
  Server server;
  Trainer worker(server);
  worker.options.is_chief = false;
  worker.options.wait_seconds = 0.1;
  const Status status = worker.Run();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("(the chief) has not initialised w"));
}

TEST(TrainingLoopTest, TheEndOfTheDataEndsTheLoopInGoodOrder) {
  const std::string directory = TrainingDirectory();
  Program program;
  const Output x = CallIn(program, "Placeholder", {},
                          {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}});
  Variable sum(program, "sum", {}, Zeros());
  const Output train = program.Group(
      {sum.AssignAdd(x), program.GlobalStep().AssignAdd(OnesLike(program.GlobalStep()))}, "train");
  float next = 0;
  TrainingLoop loop(program,
                    {.train = train,
                     .inputs = {x},
                     .next_batch = [&](int64_t) -> StatusOr<std::vector<Tensor>> {
                       if (next == 4) return OutOfRange("no more");
                       return std::vector<Tensor>{Tensor::Scalar(++next)};
                     }},
                    {.checkpoint_dir = directory, .stop_on_signals = false});
  const Status status = loop.Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(loop.session().Fetch(sum)->scalar<float>(), 1 + 2 + 3 + 4);
  EXPECT_EQ(ReadCheckpointState(Env::Real(), directory)->latest, "model.ckpt-4");
}

// Trains a small net on batches that depend only on the step; returns its weights.
std::string TrainTo(int64_t last, const std::string& directory) {
  Program program;
  const Output x = CallIn(program, "Placeholder", {},
                          {{"dtype", DType::kFloat}, {"shape", PartialShape({4, 3})}});
  Variable w(program, "w", {3, 2}, GlorotUniform(7));
  Momentum optimizer(0.1, 0.9);
  const Output loss =
      Mean(Square(Tanh(MatMul(x, w)) - 0.5), Constant(program, Tensor::Vector<int32_t>({0, 1})));
  const TrainingStep step{.train = optimizer.Minimize(program, loss),
                          .inputs = {x},
                          .next_batch = [](int64_t step) -> StatusOr<std::vector<Tensor>> {
                            Tensor batch(DType::kFloat, {4, 3});
                            for (int i = 0; i < 12; ++i) {
                              batch.mutable_data<float>()[i] =
                                  static_cast<float>((step * 7 + i * i) % 11) - 5;
                            }
                            return std::vector<Tensor>{batch};
                          }};
  TrainingLoop loop(program, step,
                    {.checkpoint_dir = directory, .max_steps = last, .stop_on_signals = false});
  CHECK_OK(loop.Run());
  return loop.session().Fetch(w)->ToString();
}

TEST(TrainingLoopTest, AResumedTrainingIsTheUninterruptedOneBitForBit) {
  const std::string interrupted = TrainingDirectory();
  TrainTo(7, interrupted);
  const std::string resumed = TrainTo(20, interrupted);
  EXPECT_EQ(resumed, TrainTo(20, TrainingDirectory()));
  EXPECT_NE(resumed, TrainTo(19, TrainingDirectory())) << "or nothing was compared";
}

TEST(TrainingLoopTest, SigtermEndsTheLoopAfterTheStepAndSaves) {
  const std::string directory = TrainingDirectory();
  Server server;
  Trainer trainer(server);
  trainer.options.checkpoint_dir = directory;
  trainer.options.stop_on_signals = true;
  AfterEach signal([&](int64_t step) {
    if (step == 5) raise(SIGTERM);
  });
  trainer.hooks = {&signal};
  const Status status = trainer.Run();
  ASSERT_TRUE(status.ok()) << status;
  const int64_t last = trainer.loop->global_step();
  EXPECT_GE(last, 5);
  EXPECT_EQ(ReadCheckpointState(Env::Real(), directory)->latest, StrCat("model.ckpt-", last));
}

TEST(TrainingLoopTest, ASaveThatFailsIsReportedAndTrainingGoesOn) {
  const std::string directory = TrainingDirectory();
  Server server;
  Trainer trainer(server);
  trainer.options.checkpoint_dir = directory;
  trainer.options.save_every_steps = 2;
  trainer.options.max_steps = 6;
  AfterEach fail([&](int64_t step) {
    if (step == 2) server.FailNext(1, ResourceExhausted("disk full"));
  });
  trainer.hooks = {&fail};
  const Status status = trainer.Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(trainer.said, ElementsAre("NOT SAVED: disk full; the last checkpoint is of step 0"));
  EXPECT_EQ(ReadCheckpointState(Env::Real(), directory)->latest, "model.ckpt-6");
}

TEST(TrainingLoopTest, HooksSeeTheMeasuresAndMayStopTheLoop) {
  Server server;
  Trainer trainer(server);
  StopAtStep stop(3);
  std::vector<double> values;
  class Record : public TrainingHook {
   public:
    explicit Record(std::vector<double>& values) : values_(values) {}
    Status AfterStep(const StepResult& result, bool*) override {
      values_.push_back(result.measures.at("w"));
      return OkStatus();
    }
    std::vector<double>& values_;
  } record(values);
  trainer.hooks = {&stop, &record};
  ASSERT_TRUE(trainer.Run().ok());
  EXPECT_EQ(trainer.loop->global_step(), 3);
  EXPECT_EQ(values.size(), 3u);
}

// Records its calls. With `told_to_end`, SessionBegins calls it and returns Cancelled.
class RecordCalls : public TrainingHook {
 public:
  explicit RecordCalls(std::function<void()> told_to_end = nullptr)
      : told_to_end_(std::move(told_to_end)) {}
  Status SessionBegins(const HookSession& begun) override {
    calls.emplace_back("begins");
    if (told_to_end_ == nullptr) return OkStatus();
    told_to_end_();
    return begun.stopping() ? Cancelled("told to end") : Internal("was not told to end");
  }
  Status End(Session&, int64_t) override {
    calls.emplace_back("ends");
    return OkStatus();
  }
  std::vector<std::string> calls;

 private:
  const std::function<void()> told_to_end_;
};

TEST(TrainingLoopTest, AHookThatHasNotBegunDoesNotEnd) {
  Server server;
  Trainer trainer(server);
  RecordCalls first, second([&] { trainer.loop->RequestStop(); }), third;
  trainer.hooks = {&first, &second, &third};
  const Status status = trainer.Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(trainer.loop->global_step(), 0);
  EXPECT_THAT(first.calls, ElementsAre("begins", "ends"));
  EXPECT_THAT(second.calls, ElementsAre("begins", "ends"));
  EXPECT_THAT(third.calls, IsEmpty());
}

// Two steps wait for each other, so one at a time would never end. (A third step might take the
// element that the second one waits for.)
TEST(TrainingLoopTest, StepsRunAtTheSameTime) {
  Program program;
  QueueRunners runners(program);
  const std::vector<DType> types = {DType::kFloat};
  const auto queue = [&] {
    return CallIn(program, "FIFOQueueV2", {},
                  {{"component_types", types},
                   {"shapes", std::vector<PartialShape>{PartialShape::Scalar()}}});
  };
  const Output come = queue(), go = queue();
  const Output two = Constant(program, Tensor::Scalar<int32_t>(2));
  const Outputs pair = CallN("QueueDequeueManyV2", {come, two}, {{"component_types", types}});
  runners.Add({Call("QueueEnqueueManyV2", {go, pair})}, {go});

  Variable sum(program, "sum", {}, Zeros());
  const Output one = Constant(program, Tensor::Scalar(1.0f));
  Output train;
  {
    const auto after = program.ControlDependencies({Call("QueueEnqueueV2", {come, Outputs{one}})});
    const Output gone = Call("QueueDequeueV2", {go}, {{"component_types", types}});
    train = program.Group(
        {sum.AssignAdd(gone), program.GlobalStep().AssignAdd(OnesLike(program.GlobalStep()))},
        "train");
  }
  StepTrace trace({.first_step = 0, .steps = 2});
  TrainingLoop loop(program, {.train = train},
                    {.max_steps = 2,
                     .concurrent_steps = 2,
                     .trace = &trace,
                     .step_seconds = 20,
                     .stop_on_signals = false});
  RunQueueRunners run_queues(runners);
  loop.AddHook(&run_queues);
  const Status status = loop.Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(loop.global_step(), 2);
  EXPECT_EQ(loop.session().Fetch(sum)->scalar<float>(), 2);
  EXPECT_GT(trace.use().steps_under_way, 1);
  EXPECT_EQ(trace.use().busy.size(), 1);
}

TEST(TrainingLoopTest, AFailureAmongConcurrentStepsIsRecoveredFrom) {
  Server server;
  Trainer trainer(server);
  trainer.options.max_steps = 30;
  trainer.options.concurrent_steps = 3;
  bool failed = false;
  AfterEach fail([&](int64_t step) {
    if (step < 12 || std::exchange(failed, true)) return;
    server.FailNext(1, Unavailable("/job:ps/task:0 does not answer"));
  });
  trainer.hooks = {&fail};
  const Status status = trainer.Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(server.sessions(), 2);
  EXPECT_EQ(trainer.loop->global_step(), 30);
  EXPECT_EQ(trainer.Value(), 30);
}

}  // namespace
}  // namespace penstock::client
