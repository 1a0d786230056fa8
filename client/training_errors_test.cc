// SPDX-License-Identifier: Apache-2.0
//
// Tests trainings that end with an error: the global step does not rise, or a loss or variables are
// not finite.
#include <sys/resource.h>

#include <limits>
#include <utility>

#include "client/control_flow.h"
#include "client/optimizers.h"
#include "client/training.h"
#include "core/base/check.h"
#include "core/checkpoint/checkpoint_state.h"
#include "core/checkpoint/checkpoints.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class TrainingErrorsTest : public testing::Test {
 protected:
  TrainingErrorsTest() {
    options_.checkpoint_dir = StrCat(testing::TempDir(), "/errors_", Env::Real().RandomU64());
    options_.stop_on_signals = false;
    options_.save_in_background = false;  // so that the saved step is deterministic
    options_.say = [this](const std::string& line) { said_.push_back(line); };
    x_ = CallIn(program_, "Placeholder", {},
                {{"dtype", DType::kFloat}, {"shape", PartialShape({2})}}, "x");
  }
  Output RaiseStep() {
    const Variable step = program_.GlobalStep();
    return step.AssignAdd(OnesLike(step));
  }
  Output MeanOf(Output y) { return Mean(y, Constant(program_, Tensor::Vector<int32_t>({0}))); }
  // Trains; the batch of step `bad` is {1, value}, all others are {1, 1}.
  Status Train(Output train, Output loss, int64_t bad = -1, float value = 1) {
    TrainingStep step{.train = train, .inputs = {x_}, .measures = {{"loss", loss}}};
    step.next_batch = [=](int64_t at) -> StatusOr<std::vector<Tensor>> {
      return std::vector<Tensor>{Tensor::Vector<float>({1, at == bad ? value : 1})};
    };
    loop_.emplace(program_, step, options_);
    for (TrainingHook* hook : hooks_) loop_->AddHook(hook);
    return loop_->Run();
  }
  std::string Latest() { return ReadCheckpointState(Env::Real(), options_.checkpoint_dir)->latest; }

  Program program_;
  Output x_;
  TrainingOptions options_;
  std::vector<TrainingHook*> hooks_;
  std::optional<TrainingLoop> loop_;
  std::vector<std::string> said_;
};

std::string MessageOf(const Status& status) { return std::string(status.message()); }

TEST_F(TrainingErrorsTest, ATrainOpThatNeverRaisesTheGlobalStep) {
  const Variable w(program_, "w", {}, Zeros());
  const Output train =
      program_.Group({w.AssignAdd(OnesLike(w)), program_.GlobalStep().Read()}, "t");
  options_.max_steps = 10;
  const Status status = Train(train, MeanOf(x_));
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      MessageOf(status),
      AllOf(HasSubstr("1000 steps in a row have left global_step at 0, and train op 't' has "
                      "no node that changes it"),
            HasSubstr("Optimizer::ApplyGradients")));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("100 steps in a row have left global_step at 0")));
}

// With accumulated gradients, the train op raises the global step only in some steps.
TEST_F(TrainingErrorsTest, ATrainOpMayRaiseTheGlobalStepNowAndThen) {
  const Variable runs(program_, "runs", {}, Zeros(), {.dtype = DType::kInt64, .trainable = false});
  const Output counted = runs.AssignAdd(OnesLike(runs));
  Output train;
  {
    const auto after = program_.ControlDependencies({counted});
    const Output due = Equal(runs.Read(), Constant(program_, Tensor::Scalar<int64_t>(1500)));
    const Variable step = program_.GlobalStep();
    train = step.AssignAdd(Cast(due, DType::kInt64));
  }
  options_.max_steps = 1;
  const Status status = Train(train, MeanOf(x_));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(said_, ElementsAre("1000 steps in a row have left global_step at 0"));
}

// With SyncReplicas, a thread of the chief raises the global step, not the train op.
TEST_F(TrainingErrorsTest, SomethingElseMayRaiseTheGlobalStep) {
  class Chief : public TrainingHook {
   public:
    explicit Chief(Output raise) : raise_(raise) {}
    Status SessionReady(Session& session, int64_t) override {
      session_ = &session;
      return OkStatus();
    }
    Status AfterStep(const StepResult&, bool*) override {
      return ++runs_ % 700 == 0 ? session_->Execute(raise_) : OkStatus();
    }

   private:
    const Output raise_;
    Session* session_ = nullptr;
    int runs_ = 0;
  } chief(RaiseStep());
  hooks_ = {&chief};
  const Variable w(program_, "w", {}, Zeros());
  options_.max_steps = 2;
  const Status status = Train(w.AssignAdd(OnesLike(w)), MeanOf(x_));
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(TrainingErrorsTest, ALossThatIsNanNamesTheNodeThatTheGoodVariablesGiveIt) {
  const Variable w(program_, "w", {}, Ones());
  const Output loss = MeanOf(Square(Log(x_ * w)));
  const Output train = GradientDescent(0.01).Minimize(program_, loss);
  options_.save_every_steps = 1;
  const Status status = Train(train, loss, /*bad=*/5, -1);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(
      MessageOf(status),
      AllOf(HasSubstr("loss is nan after step 6 of /job:localhost/replica:0/task:0: variable "
                      "'w' has NaN now: this step's update"),
            HasSubstr("/model.ckpt-5 and the same feeds, the first node with NaN is 'Log' "),
            HasSubstr("; the last checkpoint is of step 5")));
  EXPECT_EQ(Latest(), "model.ckpt-5");
}

TEST_F(TrainingErrorsTest, ALossThatIsInfiniteNamesItsNode) {
  const Variable w(program_, "w", {}, Ones());
  const Output loss = MeanOf(Log(x_ - w));
  const Status status = Train(RaiseStep(), loss);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("loss is -inf after step 1 of /job:"),
                                       HasSubstr(": the first node with -Inf is 'Log' (Log)")));
  EXPECT_EQ(Latest(), "model.ckpt-0");
}

TEST_F(TrainingErrorsTest, ABatchThatIsNotFiniteIsNamed) {
  const Status status = Train(RaiseStep(), MeanOf(x_), /*bad=*/2, kNan);
  EXPECT_THAT(MessageOf(status), HasSubstr("loss is nan after step 3"));
  EXPECT_THAT(MessageOf(status), HasSubstr("the batch that was fed to 'x:0' has NaN"));
}

// The untaken branch has no values to check.
TEST_F(TrainingErrorsTest, NodesInBranchesAndLoopsAreNotLookedAt) {
  const Output positive = Greater(MeanOf(x_), Constant(program_, Tensor::Scalar<float>(0)));
  const Output y = Cond(
      program_, positive, [&] { return Outputs{Log(x_ - 1.0)}; },
      [&] { return Outputs{x_ * 2}; })[0];
  const Output z = While(
      program_, {Constant(program_, Tensor::Scalar(0)), y},
      [](const Outputs& v) { return Less(v[0], ConstantLike(v[0], 3)); },
      [](const Outputs& v) {
        return Outputs{v[0] + 1, v[1] * 2};
      })[1];
  const Status status = Train(RaiseStep(), MeanOf(z));
  EXPECT_THAT(MessageOf(status), HasSubstr("the first node with -Inf is 'cond/Merge' (Merge)"));
}

TEST_F(TrainingErrorsTest, VariablesThatAreNotFiniteAreNotSaved) {
  for (const bool every_step : {true, false}) {
    Program program;
    const Variable w(program, "w", {}, Zeros());
    const Variable step = program.GlobalStep();
    const Output value = CallIn(program, "Placeholder", {},
                                {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}});
    TrainingStep each{
        .train = program.Group({w.Assign(value), step.AssignAdd(OnesLike(step))}, "t"),
        .inputs = {value}};
    each.next_batch = [](int64_t at) -> StatusOr<std::vector<Tensor>> {
      return std::vector<Tensor>{Tensor::Scalar(at < 2 ? 1.0f : kInf)};
    };
    options_.checkpoint_dir += "/each";
    options_.save_every_steps = every_step ? 1 : 0;
    options_.max_steps = every_step ? 0 : 3;
    TrainingLoop loop(program, each, options_);
    const Status status = loop.Run();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("model.ckpt-3"),
                                         HasSubstr("variable 'w' is not finite and is not "),
                                         HasSubstr("; the last checkpoint is of step ")));
    EXPECT_EQ(Latest(), every_step ? "model.ckpt-2" : "model.ckpt-0");
  }
}

TEST_F(TrainingErrorsTest, WithoutTheStopTrainingGoesOnAndSays) {
  const Variable w(program_, "w", {}, Ones());
  const Output loss = MeanOf(Log(x_ * w));
  options_.stop_on_nan = false;
  options_.max_steps = 9;
  const Status status = Train(GradientDescent(0.01).Minimize(program_, loss), loss, /*bad=*/5, -1);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(said_, ElementsAre("loss is nan after step 6; training goes on, because stop_on_nan "
                                 "is off"));
  EXPECT_EQ(Latest(), "model.ckpt-9");
}

// Limits the size of files, so that saves of large variables fail: from the end of step `from` (0:
// at once) to the end of step `until` (-1: until the object is destroyed).
class LimitFiles : public TrainingHook {
 public:
  explicit LimitFiles(int64_t from, int64_t until = -1) : until_(until), from_(from) {
    CHECK(getrlimit(RLIMIT_FSIZE, &before_) == 0);
    if (from == 0) Limit();
  }
  ~LimitFiles() override { Lift(); }
  Status AfterStep(const StepResult& result, bool*) override {
    if (result.global_step == from_) Limit();
    if (result.global_step == until_) Lift();
    return OkStatus();
  }

 private:
  void Limit() {
    const rlimit limit = {.rlim_cur = 50'000, .rlim_max = before_.rlim_max};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  void Lift() { CHECK(setrlimit(RLIMIT_FSIZE, &before_) == 0); }

  const int64_t until_, from_;
  rlimit before_;
};

TEST_F(TrainingErrorsTest, AFileThatMayNotGrowSoLargeLeavesTheLastCheckpointWhole) {
  const Variable large(program_, "large", {100'000}, Zeros());
  options_.save_every_steps = 1;
  options_.max_steps = 3;
  Status status;
  {
    LimitFiles limit_files(/*from=*/2);
    hooks_ = {&limit_files};
    status = Train(RaiseStep(), MeanOf(x_));
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  const std::string why = "at most 50000 bytes: raise the limit with `ulimit -f`";
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("saving "), HasSubstr(".data-"), HasSubstr(why)));
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("NOT SAVED: "), HasSubstr(why)),
                                 AllOf(HasSubstr("NOT SAVED: "), HasSubstr(why))));
  const auto newest = FindNewestGood(Env::Real(), options_.checkpoint_dir);
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_THAT(newest->prefix, HasSubstr("model.ckpt-1"));
  EXPECT_THAT(newest->skipped, IsEmpty());
}

TEST_F(TrainingErrorsTest, TheFirstSaveMayFailToo) {
  const Variable large(program_, "large", {100'000}, Zeros());
  options_.save_every_steps = 2;
  options_.max_steps = 5;
  LimitFiles limit_files(/*from=*/0, /*until=*/3);
  hooks_ = {&limit_files};
  const Status status = Train(RaiseStep(), MeanOf(x_));
  ASSERT_TRUE(status.ok()) << status;
  // After a failed save the next one is tried when it is due, not after each step.
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("NOT SAVED: "), HasSubstr("no checkpoint yet")),
                                 AllOf(HasSubstr("NOT SAVED: "), HasSubstr("no checkpoint yet"))));
  EXPECT_EQ(Latest(), "model.ckpt-5");
}

TEST_F(TrainingErrorsTest, TooManySavesInARowThatFailEndTheTraining) {
  for (const bool in_background : {false, true}) {
    Program program;
    const Variable large(program, "large", {100'000}, Zeros());
    const Variable step = program.GlobalStep();
    said_.clear();
    options_.save_in_background = in_background;
    options_.checkpoint_dir = StrCat(testing::TempDir(), "/errors_", Env::Real().RandomU64());
    options_.save_every_steps = 1;
    options_.max_failed_saves_in_a_row = 3;
    TrainingLoop loop(program, {.train = step.AssignAdd(OnesLike(step))}, options_);
    LimitFiles limit_files(/*from=*/2);
    loop.AddHook(&limit_files);
    const Status status = loop.Run();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(MessageOf(status),
                AllOf(HasSubstr("gave up after 3 saves in a row that have failed "
                                "(max_failed_saves_in_a_row): "),
                      HasSubstr("; the last checkpoint is of step ")));
    EXPECT_EQ(said_.size(), 3u);
    const auto newest = FindNewestGood(Env::Real(), options_.checkpoint_dir);
    ASSERT_TRUE(newest.ok()) << newest.status();
    EXPECT_THAT(newest->prefix, HasSubstr("model.ckpt-"));
    EXPECT_THAT(newest->skipped, IsEmpty());
  }
}

TEST_F(TrainingErrorsTest, ALimitOfFailedSavesBelowZero) {
  options_.max_failed_saves_in_a_row = -1;
  EXPECT_THAT(MessageOf(Train(RaiseStep(), MeanOf(x_))),
              HasSubstr("max_failed_saves_in_a_row=-1: expected 0, for no limit, or more"));
}

TEST_F(TrainingErrorsTest, ALossThatIsNoMeasure) {
  TrainingLoop loop(program_, {.train = RaiseStep(), .loss = "bits"}, options_);
  EXPECT_EQ(loop.Run(), InvalidArgument("TrainingStep::loss: there is no measure 'bits'"));
}

}  // namespace
}  // namespace penstock::client
