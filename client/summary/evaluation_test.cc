// SPDX-License-Identifier: Apache-2.0
#include "client/summary/evaluation.h"

#include "client/optimizers.h"
#include "client/summary/testing/event_files.h"
#include "client/training.h"
#include "core/base/forwarding_env.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"

namespace penstock::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A training in which w grows by one each step.
struct Counter {
  Counter() {
    const Variable w(program, "w", {}, Zeros());
    value = w.Read();
    train = GradientDescent(1).Minimize(program, -w);
    x = Call("Identity", {CallIn(program, "Placeholder", {},
                                 {{"dtype", DType::kFloat}, {"shape", PartialShape({-1})}})});
    mean = Mean(x, Constant(program, Tensor::Vector<int32_t>({0}))) * w.Read();
  }

  Status Train(std::vector<TrainingHook*> hooks, TrainingOptions options) {
    options.stop_on_signals = false;
    options.say = [](const std::string&) {};
    TrainingLoop loop(program, {.train = train}, options);
    for (TrainingHook* hook : hooks) loop.AddHook(hook);
    return loop.Run();
  }
  StatusOr<Measures> Weight(Session& session) const {
    ASSIGN_OR_RETURN(const Tensor w, session.Fetch(value));
    return Measures{{"weight", w.scalar<float>()}};
  }

  Program program;
  Output value, train, x, mean;
};

TEST(EvaluateMeansTest, BatchesCountByTheirSize) {
  Counter counter;
  const auto session = *Session::New(counter.program);
  CHECK_OK(session->Execute(counter.program.Initialize(counter.program.globals())));
  CHECK_OK(session->Execute(counter.train));
  const std::vector<Tensor> batches = {Tensor::Of<float>({3}, {1, 1, 1}),
                                       Tensor::Of<float>({1}, {9})};
  const EvaluationInput input{.inputs = {counter.x},
                              .measures = {{"mean", counter.mean}},
                              .batch = [&](int64_t number) -> StatusOr<std::vector<Tensor>> {
                                if (number == 2) return OutOfRange("the end");
                                return std::vector<Tensor>{batches[number]};
                              }};
  const auto measures = EvaluateMeans(*session, input);
  ASSERT_TRUE(measures.ok()) << measures.status();
  EXPECT_EQ(measures->at("mean"), 3);  // the mean of 1, 1, 1, 9
}

TEST(EvaluateMeansTest, Mistakes) {
  Counter counter;
  const auto session = *Session::New(counter.program);
  CHECK_OK(session->Execute(counter.program.Initialize(counter.program.globals())));
  const auto evaluate = [&](Output measure, bool empty) {
    return EvaluateMeans(*session,
                         {.inputs = {counter.x},
                          .measures = {{"m", measure}},
                          .batch = [empty](int64_t number) -> StatusOr<std::vector<Tensor>> {
                            if (empty || number > 0) return OutOfRange("the end");
                            return std::vector<Tensor>{Tensor::Of<float>({2}, {1, 2})};
                          }})
        .status();
  };
  EXPECT_THAT(std::string(evaluate(counter.mean, true).message()), HasSubstr("has no examples"));
  EXPECT_THAT(std::string(evaluate(counter.x * 2.0, false).message()),
              HasSubstr("measure 'm' must be one float or double, is float[2]"));
}

TEST(EvaluationHookTest, EverySoManyStepsAndAtTheEnd) {
  const std::string folder = NewTestFolder();
  Counter counter;
  {
    const auto writer = *SummaryWriter::Create(folder);
    EvaluationHook hook([&](Session& session) { return counter.Weight(session); },
                        {.every_steps = 3, .writer = writer.get()});
    CHECK_OK(counter.Train({&hook}, {.max_steps = 7}));
    EXPECT_EQ(hook.last_step(), 7);
    EXPECT_EQ(hook.last().at("weight"), 7);
  }
  const auto events = ReadEvents(folder);
  EXPECT_THAT(StepsWith(events, "weight"), ElementsAre(3, 6, 7));
  EXPECT_EQ(events[1].summary().value(0).simple_value(), 3);
}

TEST(EvaluationHookTest, ByTime) {
  class Clock final : public ForwardingEnv {
   public:
    Clock() : ForwardingEnv(Env::Real()) {}
    int64_t NowNanos() override { return now_ns += 1'000'000'000; }
    int64_t now_ns = 0;
  };
  Counter counter;
  Clock clock;
  std::vector<float> seen;
  EvaluationHook hook(
      [&](Session& session) {
        auto measures = counter.Weight(session);
        if (measures.ok()) seen.push_back(measures->at("weight"));
        return measures;
      },
      {.every_seconds = 4, .at_end = false, .env = &clock});
  CHECK_OK(counter.Train({&hook}, {.max_steps = 9}));
  EXPECT_THAT(seen, ElementsAre(4, 8));
}

TEST(EvaluationHookTest, ALostTaskIsRecoveredFromAndAnotherErrorIsTheTrainings) {
  for (const bool lost : {true, false}) {
    Counter counter;
    int evaluations = 0;
    EvaluationHook hook(
        [&](Session& session) -> StatusOr<Measures> {
          if (++evaluations > 1) return counter.Weight(session);
          return lost ? Aborted("a task was lost") : InvalidArgument("a mistake");
        },
        {.every_steps = 2});
    const Status trained = counter.Train(
        {&hook}, {.checkpoint_dir = NewTestFolder(), .save_every_steps = 1, .max_steps = 4});
    EXPECT_EQ(trained.code(), lost ? StatusCode::kOk : StatusCode::kInvalidArgument) << trained;
    if (lost) {
      EXPECT_EQ(hook.last().at("weight"), 4);
    }
  }
}

TEST(EvaluateCheckpointsTest, EachNewestCheckpointUntilTheLastStep) {
  const std::string checkpoints = NewTestFolder(), folder = NewTestFolder();
  Counter trained, evaluated;
  Saver saver(evaluated.program, {});
  const auto session = *Session::New(evaluated.program);
  // An Env that trains further each time the evaluation sleeps to wait for a checkpoint.
  class Train final : public ForwardingEnv {
   public:
    explicit Train(std::function<void()> train) : ForwardingEnv(Env::Real()), train_(train) {}
    int64_t NowNanos() override { return now_ns; }
    void SleepForNanos(int64_t nanos) override {
      now_ns += nanos;
      train_();
    }
    int64_t now_ns = 0;

   private:
    const std::function<void()> train_;
  };
  int64_t steps = 0;
  Train env([&] {
    steps += 2;
    Counter counter;  // continues from the last checkpoint
    CHECK_OK(counter.Train({}, {.checkpoint_dir = checkpoints, .max_steps = steps}));
  });
  {
    const auto writer = *SummaryWriter::Create(folder);
    const Status followed =
        EvaluateCheckpoints(saver, *session, evaluated.program.GlobalStep().Read(),
                            [&](Session& s) { return evaluated.Weight(s); },
                            {.checkpoint_dir = checkpoints,
                             .poll_seconds = 0.05,
                             .last_step = 6,
                             .writer = writer.get(),
                             .env = &env});
    EXPECT_TRUE(followed.ok()) << followed;
  }
  const auto events = ReadEvents(folder);
  EXPECT_THAT(StepsWith(events, "weight"), ElementsAre(2, 4, 6));
  EXPECT_EQ(events[3].summary().value(0).simple_value(), 6);
}

TEST(EvaluateCheckpointsTest, WaitsSoLongAndNoLonger) {
  class Clock final : public ForwardingEnv {
   public:
    Clock() : ForwardingEnv(Env::Real()) {}
    int64_t NowNanos() override { return now_ns; }
    void SleepForNanos(int64_t nanos) override { now_ns += nanos; }
    int64_t now_ns = 0;
  };
  Counter counter;
  Saver saver(counter.program, {});
  const auto session = *Session::New(counter.program);
  Clock clock;
  Cancellation cancellation;
  EvaluateCheckpointsOptions options{.checkpoint_dir = NewTestFolder(),
                                     .wait_seconds = 60,
                                     .cancellation = &cancellation,
                                     .env = &clock};
  const auto evaluate = [&] {
    return EvaluateCheckpoints(
        saver, *session, counter.program.GlobalStep().Read(),
        [&](Session& s) { return counter.Weight(s); }, options);
  };
  EXPECT_EQ(evaluate().code(), StatusCode::kDeadlineExceeded);
  EXPECT_NEAR(static_cast<double>(clock.now_ns) * 1e-9, 60, 0.1);
  cancellation.Cancel(Cancelled("a signal"));
  EXPECT_EQ(evaluate().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace penstock::client
