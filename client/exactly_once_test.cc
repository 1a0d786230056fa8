// SPDX-License-Identifier: Apache-2.0
#include "client/exactly_once.h"

#include <atomic>
#include <thread>

#include "client/optimizers.h"
#include "client/run_queue_runners.h"
#include "client/saver.h"
#include "client/training.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

// The second of two workers; each of its steps adds one to some rows of `seen`, and to `total`.
class ExactlyOnceTest : public testing::Test {
 protected:
  ExactlyOnceTest() {
    const Output rows = Constant(program_, Tensor::Vector<int32_t>({0, 2, 2}));
    const Output zero = Constant(program_, Tensor::Scalar<int32_t>(0));
    const Output loss = -Sum(Gather(seen_, rows, zero), zero) - total_;
    train_ = once_.Apply(optimizer_, optimizer_.ComputeGradients(program_, loss));
    taken_ = program_.globals().back();
  }
  void Start() {
    const Output init = program_.Initialize(program_.variables());
    auto session = Session::New(program_);
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
    ASSERT_TRUE(session_->Execute(init).ok());
  }
  // seen; total; batches_taken; global step.
  std::string Values() {
    const auto values = session_->Run({seen_, total_, *taken_, program_.GlobalStep()});
    if (!values.ok()) return values.status().ToString();
    std::string text;
    for (const Tensor& value : *values) StrAppend(&text, value.ToString(), "; ");
    return text;
  }

  Program program_;
  const Variable seen_{program_, "seen", {3}, Zeros()}, total_{program_, "total", {}, Zeros()};
  ExactlyOnce once_{program_, {.workers = 2, .worker = 1}};
  GradientDescent optimizer_{1};
  Output train_;
  std::optional<Variable> taken_;
  std::unique_ptr<Session> session_;
};

TEST_F(ExactlyOnceTest, CountsWhatItHasApplied) {
  Start();
  EXPECT_EQ(*once_.Begin(*session_), 0);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(session_->Execute(train_).ok());
  EXPECT_EQ(Values(), "float[3] 3 0 6; float[] 3; int64[2] 0 3; int64[] 3; ");
  EXPECT_EQ(*once_.Begin(*session_), 3);
}

TEST_F(ExactlyOnceTest, AStepAtALaterBatchFails) {
  const Output restore = taken_->Assign(Constant(program_, Tensor::Vector<int64_t>({7, 5})));
  const Output lose = taken_->Assign(Constant(program_, Tensor::Vector<int64_t>({7, 3})));
  Start();
  ASSERT_TRUE(session_->Execute(restore).ok());
  EXPECT_EQ(*once_.Begin(*session_), 5);
  EXPECT_TRUE(session_->Execute(train_).ok());
  EXPECT_EQ(Values(), "float[3] 1 0 2; float[] 1; int64[2] 7 6; int64[] 1; ");

  ASSERT_TRUE(session_->Execute(lose).ok());
  const Status status = session_->Execute(train_);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(once_.Explain(status).code(), StatusCode::kAborted);
  EXPECT_EQ(once_.Explain(InvalidArgument("else")), InvalidArgument("else"));
  EXPECT_EQ(Values(), "float[3] 1 0 2; float[] 1; int64[2] 7 3; int64[] 1; ");
}

TEST_F(ExactlyOnceTest, AStepAtABatchThatWasAppliedChangesNothing) {
  const Output restore = taken_->Assign(Constant(program_, Tensor::Vector<int64_t>({7, 2})));
  Start();
  ASSERT_TRUE(session_->Execute(restore).ok());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(session_->Execute(train_).ok());
  EXPECT_EQ(Values(), "float[3] 0 0 0; float[] 0; int64[2] 7 2; int64[] 0; ");
  EXPECT_TRUE(session_->Execute(train_).ok());
  EXPECT_EQ(Values(), "float[3] 1 0 2; float[] 1; int64[2] 7 3; int64[] 1; ");
}

TEST_F(ExactlyOnceTest, CheckpointsAreOfMomentsBetweenSteps) {
  Saver saver(program_, {}, {.keep = 0, .mutexes = once_.mutexes()});
  Start();
  std::atomic<bool> stop = false;
  std::thread trains([&] {
    while (!stop) EXPECT_TRUE(session_->Execute(train_).ok());
  });
  const std::string path = StrCat(testing::TempDir(), "/once_", Env::Real().RandomU64(), "/model");
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(saver.Save(*session_, path, i).ok());
  stop = true;
  trains.join();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(saver.Restore(*session_, StrCat(path, "-", i)).ok());
    const int64_t n = *once_.Begin(*session_);
    EXPECT_EQ(Values(), StrCat("float[3] ", n, " 0 ", 2 * n, "; float[] ", n, "; int64[2] 0 ", n,
                               "; int64[] ", n, "; "));
  }
}

TEST_F(ExactlyOnceTest, ConcurrentStepsAreRefused) {
  TrainingLoop loop(program_, {.train = train_, .once = &once_}, {.concurrent_steps = 2});
  EXPECT_EQ(loop.Run(), InvalidArgument("concurrent_steps=2: with ExactlyOnce a worker's steps "
                                        "come one after the other: say 1"));
}

TEST(ExactlyOnceMistakesTest, AreNamed) {
  Program program;
  const ExactlyOnce once(program, {.workers = 2, .worker = 2});
  EXPECT_EQ(program.status().message(), "ExactlyOnce: worker is 2, must be in [0, 2), the workers");
  const QueueRunners runners(program);
  RunQueueRunners run(runners, {}, &once);
  const auto session = Session::New(program);
  EXPECT_EQ(run.SessionReady(**session, 0).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::client
