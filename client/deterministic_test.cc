// SPDX-License-Identifier: Apache-2.0
//
// Tests TrainingOptions::deterministic: after failures the results are compared bit for bit with an
// undisturbed training. tests/sim/fault_sim_test.cc and tests/e2e/deterministic_test.py kill tasks.
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/optimizers.h"
#include "client/run_iterators.h"
#include "client/training.h"
#include "client/unsaved_stream.h"
#include "core/op/gradient.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// A training of 12 steps on batches that depend only on the step. It saves every 5 steps. Its
// variables are on a server, so that they outlive a session, as those of a parameter server do.
struct RepeatableTraining {
  static constexpr int64_t kSteps = 12;

  RepeatableTraining() {
    directory = StrCat(testing::TempDir(), "/deterministic_", Env::Real().RandomU64());
    options.target = cluster.target();
    options.checkpoint_dir = directory;
    options.save_every_steps = 5;
    options.deterministic = true;
    options.max_steps = kSteps;
    options.retry_seconds = 0.01;
    options.stop_on_signals = false;
    options.say = [this](const std::string& line) { said.push_back(line); };
  }

  static StatusOr<std::vector<Tensor>> Batch(int64_t step) {
    Tensor batch(DType::kFloat, {4, 3});
    for (int i = 0; i < 12; ++i) {
      batch.mutable_data<float>()[i] = static_cast<float>((step * 7 + i * i) % 11) - 5;
    }
    return std::vector<Tensor>{batch};
  }

  std::string Weights() {
    TrainingLoop loop(program, {.train = train, .inputs = {x}, .next_batch = Batch, .once = &once},
                      options);
    RunIterators input({}, {}, &once);
    loop.AddHook(&input);
    for (TrainingHook* hook : hooks) loop.AddHook(hook);
    const Status status = loop.Run();
    EXPECT_EQ(status, OkStatus());
    if (!status.ok()) return status.ToString();
    const auto values = loop.session().Run({w, optimizer.slots()[0]});
    if (!values.ok()) return values.status().ToString();
    std::string bits;
    for (const Tensor& value : *values) {
      for (const float each : value.flat<float>()) StrAppend(&bits, absl::StrFormat("%a ", each));
    }
    return bits;
  }

  TestCluster cluster = TestCluster({{"worker", 1}});
  Program program;
  const Output x = CallIn(program, "Placeholder", {},
                          {{"dtype", DType::kFloat}, {"shape", PartialShape({4, 3})}});
  const Variable w{program, "w", {3, 2}, GlorotUniform(7)};
  Momentum optimizer{0.1, 0.9};
  const Output loss =
      Mean(Square(Tanh(MatMul(x, w)) - 0.5), Constant(program, Tensor::Vector<int32_t>({0, 1})));
  ExactlyOnce once{program};
  const Output train = once.Apply(optimizer, optimizer.ComputeGradients(program, loss));
  // Changes w as a part of a failed step may do.
  const Output part = w.AssignAdd(OnesLike(w));
  TrainingOptions options;
  std::string directory;
  std::vector<TrainingHook*> hooks;
  std::vector<std::string> said;
};

// Fails once after the step `at`, when it has applied a part of the next step.
class FailsInPart : public TrainingHook {
 public:
  FailsInPart(int64_t at, Output part, std::function<void()> before)
      : at_(at), part_(part), before_(std::move(before)) {}
  Status SessionReady(Session& session, int64_t) override {
    session_ = &session;
    return OkStatus();
  }
  Status AfterStep(const StepResult& result, bool*) override {
    if (result.global_step != at_ || std::exchange(failed_, true)) return OkStatus();
    RETURN_IF_ERROR(session_->Execute(part_));
    if (before_) before_();
    return Unavailable("/job:ps/task:1 cannot be reached");
  }

 private:
  const int64_t at_;
  const Output part_;
  const std::function<void()> before_;
  Session* session_ = nullptr;
  bool failed_ = false;
};

std::string UndisturbedWeights() {
  RepeatableTraining training;
  return training.Weights();
}

TEST(Deterministic, APartOfAFailedStepIsForgotten) {
  const std::string expected = UndisturbedWeights();
  for (const bool deterministic : {true, false}) {
    RepeatableTraining training;
    training.options.deterministic = deterministic;
    FailsInPart fails(8, training.part, nullptr);
    training.hooks = {&fails};
    const std::string weights = training.Weights();
    if (deterministic) {
      EXPECT_EQ(weights, expected);
      EXPECT_THAT(training.said, Contains(HasSubstr("restored")));
    } else {
      EXPECT_NE(weights, expected) << "or nothing was compared";
      EXPECT_THAT(training.said, Not(Contains(HasSubstr("restored"))));
    }
  }
}

// Applies a part of the step after the step `at`; then a signal ends the training and cancels the
// step.
class IsCutOff : public TrainingHook {
 public:
  IsCutOff(int64_t at, Output part) : at_(at), part_(part) {}
  void Stops(TrainingLoop* loop) { loop_ = loop; }
  Status SessionReady(Session& session, int64_t) override {
    session_ = &session;
    return OkStatus();
  }
  Status BeforeStep(int64_t step) override {
    if (step != at_) return OkStatus();
    RETURN_IF_ERROR(session_->Execute(part_));
    loop_->RequestStop();
    return Cancelled("a signal has ended the step");
  }

 private:
  const int64_t at_;
  const Output part_;
  TrainingLoop* loop_ = nullptr;
  Session* session_ = nullptr;
};

TEST(Deterministic, AStepThatASignalCutsOffIsNotSaved) {
  for (const bool deterministic : {true, false}) {
    RepeatableTraining training;
    training.options.deterministic = deterministic;
    training.options.save_in_background = false;
    IsCutOff cut_off(8, training.part);
    TrainingLoop loop(training.program,
                      {.train = training.train,
                       .inputs = {training.x},
                       .next_batch = RepeatableTraining::Batch,
                       .once = &training.once},
                      training.options);
    RunIterators input({}, {}, &training.once);
    cut_off.Stops(&loop);
    loop.AddHook(&input);
    loop.AddHook(&cut_off);
    EXPECT_EQ(loop.Run(), OkStatus());
    const std::string last = training.directory + "/model.ckpt-";
    EXPECT_TRUE(std::filesystem::exists(last + "5.index"));
    EXPECT_EQ(std::filesystem::exists(last + "8.index"), !deterministic);
    EXPECT_EQ(testing::Matches(Contains(HasSubstr("step 8 is not saved")))(training.said),
              deterministic);
  }
}

TEST(Deterministic, WithoutACheckpointTheTrainingBeginsAgain) {
  const std::string expected = UndisturbedWeights();
  RepeatableTraining training;
  training.options.save_in_background = false;
  FailsInPart fails(3, training.part,
                    [&training] { std::filesystem::remove_all(training.directory); });
  training.hooks = {&fails};
  EXPECT_EQ(training.Weights(), expected);
  EXPECT_THAT(training.said, Contains("there is no checkpoint yet: beginning again"));
}

TEST(Deterministic, MistakesAreNamed) {
  const auto error = [](const std::function<void(TrainingStep*, TrainingOptions*)>& change) {
    RepeatableTraining training;
    TrainingStep step{.train = training.train, .once = &training.once};
    change(&step, &training.options);
    TrainingLoop loop(training.program, step, training.options);
    const Status status = loop.Run();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error([](auto*, auto* options) { options->checkpoint_dir = ""; }),
              HasSubstr("set checkpoint_dir"));
  EXPECT_THAT(error([](auto* step, auto*) { step->once = nullptr; }),
              HasSubstr("set TrainingStep::once"));
  EXPECT_THAT(error([](auto*, auto* options) { options->is_chief = false; }),
              HasSubstr("let the chief take all steps"));
}

TEST(Deterministic, RandomOpsWithAnUnsavedPositionAreRefused) {
  RepeatableTraining training;
  const Output shape = Constant(training.program, Tensor::Vector<int32_t>({2}));
  const Output draw = CallIn(training.program, "RandomUniform", {shape},
                             {{"dtype", DType::kFloat}, {"seed", 5}}, "noise");
  TrainingLoop loop(
      training.program,
      {.train = training.program.Group({training.train, draw}, "both"), .once = &training.once},
      training.options);
  const Status status = loop.Run();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'noise' (RandomUniform) draws from"));
}

TEST(UnsavedStream, StatelessOpsHaveNone) {
  Program program;
  const Output shape = Constant(program, Tensor::Vector<int32_t>({2}));
  const Output seed = Constant(program, Tensor::Vector<int64_t>({3, 4}));
  const Output stateless =
      CallIn(program, "StatelessRandomUniform", {shape, seed}, {{"dtype", DType::kFloat}});
  EXPECT_EQ(FindUnsavedStream(program, program.Group({stateless}, "train")), "");
}

}  // namespace
}  // namespace penstock::client
