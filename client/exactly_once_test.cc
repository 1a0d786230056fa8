// SPDX-License-Identifier: Apache-2.0
#include "client/exactly_once.h"

#include <atomic>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "client/device_setter.h"
#include "client/mutex.h"
#include "client/optimizers.h"
#include "client/run_iterators.h"
#include "client/run_queue_runners.h"
#include "client/saver.h"
#include "client/training.h"
#include "core/op/gradient.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

// Runs the second of two workers. Each of its steps adds 1 to row 0 of `seen`, 2 to row 2, and 1 to
// `total`.
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
  // Returns "seen; total; batches_taken; global step; ", or the error of the read.
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

TEST_F(ExactlyOnceTest, AStepPassesOverWhatAnEarlierLifeHasApplied) {
  const Output ahead = taken_->Assign(Constant(program_, Tensor::Vector<int64_t>({7, 1})));
  Start();
  EXPECT_EQ(*once_.Begin(*session_), 0);
  ASSERT_TRUE(session_->Execute(ahead).ok());  // the last step of the previous incarnation
  EXPECT_TRUE(session_->Execute(train_).ok());
  EXPECT_EQ(Values(), "float[3] 0 0 0; float[] 0; int64[2] 7 1; int64[] 0; ");
  EXPECT_TRUE(session_->Execute(train_).ok());
  EXPECT_EQ(Values(), "float[3] 1 0 2; float[] 1; int64[2] 7 2; int64[] 1; ");
}

TEST_F(ExactlyOnceTest, AnotherOfTheSameNumberIsNoticed) {
  const Output others = taken_->Assign(Constant(program_, Tensor::Vector<int64_t>({0, 2})));
  Start();
  ASSERT_TRUE(session_->Execute(others).ok());
  EXPECT_TRUE(session_->Execute(train_).ok());
  const Status status = session_->Execute(train_);
  EXPECT_TRUE(absl::StrContains(status.message(), "another process also trains as worker 1 of 2"))
      << status;
  EXPECT_EQ(once_.Explain(status), status);
  EXPECT_EQ(Values(), "float[3] 0 0 0; float[] 0; int64[2] 0 2; int64[] 0; ");
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

// A step that runs Pass waits until a step runs Open.
class Gate {
 public:
  explicit Gate(Program& program)
      : program_(program),
        queue_(CallIn(program, "FIFOQueueV2", {},
                      {{"component_types", std::vector<DType>{DType::kBool}}})) {}
  Output Open() const {
    return Call("QueueEnqueueV2", {queue_, Outputs{Constant(program_, Tensor::Scalar(true))}});
  }
  Output Pass() const {
    return CallIn(program_, "QueueDequeueV2", {queue_},
                  {{"component_types", std::vector<DType>{DType::kBool}}});
  }

 private:
  Program& program_;
  const Output queue_;
};

// A chief that begins the training again, because there is no checkpoint, must not initialise
// variables amid a step of another worker.
TEST_F(ExactlyOnceTest, InitialisationWaitsForTheStepOfAnotherWorker) {
  const Gate locked(program_), released(program_);
  const Outputs locks = Lock(program_, {once_.mutexes()[0]}, {});
  Output passed;
  {
    const auto behind = program_.ControlDependencies(locks);
    const auto opened = program_.ControlDependencies({locked.Open()});
    passed = released.Pass();
  }
  const Output holds = Unlock(program_, locks, {passed});
  const Output await_lock = locked.Pass(), release = released.Open();
  const Output initialized = program_.AreInitialized({seen_, total_, *taken_});

  TestCluster cluster({{"worker", 1}});
  TrainingLoop loop(program_, {.train = train_, .once = &once_},
                    {.target = cluster.target(), .max_steps = 1, .stop_on_signals = false});
  RunIterators input({}, {}, &once_);
  loop.AddHook(&input);
  const auto session = Session::New(program_, cluster.target());
  ASSERT_TRUE(session.ok()) << session.status();
  std::thread other([&] { EXPECT_EQ((*session)->Execute(holds), OkStatus()); });
  EXPECT_EQ((*session)->Execute(await_lock), OkStatus());
  std::thread trains([&] { EXPECT_EQ(loop.Run(), OkStatus()); });
  Env::Real().SleepForNanos(300'000'000);
  const auto early = (*session)->Run({initialized});
  EXPECT_EQ(early.ok() ? early->front().ToString() : early.status().ToString(),
            "bool[3] false false false");
  EXPECT_EQ((*session)->Execute(release), OkStatus());
  other.join();
  trains.join();
  const auto late = loop.session().Run({seen_, total_, *taken_});
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ((*late)[2].ToString(), "int64[2] 0 1");
}

TEST_F(ExactlyOnceTest, ConcurrentStepsAreRefused) {
  TrainingLoop loop(program_, {.train = train_, .once = &once_}, {.concurrent_steps = 2});
  EXPECT_EQ(loop.Run(), InvalidArgument("concurrent_steps=2: with ExactlyOnce a worker's steps "
                                        "come one after the other: set it to 1"));
}

// `a` is on the first server, `b` on the second one. A step adds 2 to a[1], and 1 to `b`.
class TwoServersTest : public testing::Test {
 protected:
  TwoServersTest() {
    const Output rows = Constant(program_, Tensor::Vector<int32_t>({1, 1}));
    const Output zero = Constant(program_, Tensor::Scalar<int32_t>(0));
    loss_ = -Sum(Gather(a_, rows, zero), zero) - b_;
  }

  Program program_;
  const GraphBuilder::Scope scope_ = program_.DeviceFunctionScope(
      ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "/job:worker/task:0"}));
  const Variable a_{program_, "a", {2}, Zeros()}, b_{program_, "b", {}, Zeros()};
  Output loss_;
  ExactlyOnce once_{program_};
};

TEST_F(TwoServersTest, EachPassesOverWhatItHas) {
  GradientDescent optimizer(1);
  const Output train = once_.Apply(optimizer, optimizer.ComputeGradients(program_, loss_));
  const std::vector<Variable> globals = program_.globals();
  std::vector<Variable> counts(globals.end() - 2, globals.end());
  const Output ahead = counts[0].Assign(Constant(program_, Tensor::Vector<int64_t>({2})));
  const Output init = program_.Initialize(program_.variables());
  const std::string names = StrCat(counts[0].name(), " ", counts[1].name());
  EXPECT_EQ(names, "batches_taken_1_of_2 batches_taken_2_of_2");

  TestCluster cluster({{"ps", 2}, {"worker", 1}});
  const auto session = Session::New(program_, cluster.target());
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Execute(init).ok());
  const auto values = [&] {
    const auto read = (*session)->Run({a_, b_, counts[0], counts[1]});
    if (!read.ok()) return read.status().ToString();
    std::string text;
    for (const Tensor& value : *read) StrAppend(&text, value.ToString(), "; ");
    return text;
  };
  EXPECT_TRUE((*session)->Execute(train).ok());
  EXPECT_EQ(values(), "float[2] 0 2; float[] 1; int64[1] 1; int64[1] 1; ");
  ASSERT_TRUE((*session)->Execute(ahead).ok());
  EXPECT_EQ(*once_.Begin(**session), 1);
  EXPECT_TRUE((*session)->Execute(train).ok());
  EXPECT_EQ(values(), "float[2] 0 2; float[] 2; int64[1] 2; int64[1] 2; ");
  EXPECT_TRUE((*session)->Execute(train).ok());
  EXPECT_EQ(values(), "float[2] 0 4; float[] 3; int64[1] 3; int64[1] 3; ");
}

// No node after a commit receives a tensor from another task: it might never arrive.
TEST_F(TwoServersTest, NothingBehindTheCommitComesFromElsewhere) {
  const Output rate = CallIn(program_, "Placeholder", {},
                             {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}}, "rate");
  Adam optimizer(rate);
  once_.Apply(optimizer, optimizer.ComputeGradients(program_, loss_));
  ASSERT_TRUE(program_.status().ok()) << program_.status();
  const auto host = [](const Node* node) { return HostOf(node->requested_device()); };
  std::vector<const Node*> behind;
  for (const Node* node : program_.graph().nodes()) {
    if (node->attr<bool>("_commit") != nullptr) behind.push_back(node);
  }
  ASSERT_EQ(behind.size(), 2);
  EXPECT_NE(host(behind[0]), host(behind[1]));
  std::set<const Node*> seen(behind.begin(), behind.end());
  for (size_t i = 0; i < behind.size(); ++i) {
    const Node& node = *behind[i];
    for (const Endpoint& input : node.inputs()) {
      EXPECT_EQ(host(input.node), host(&node)) << node.name() << " of " << input.node->name();
    }
    for (const Node* before : node.control_inputs()) {
      EXPECT_EQ(host(before), host(&node)) << node.name() << " after " << before->name();
    }
    std::vector<const Node*> next(node.control_outputs().begin(), node.control_outputs().end());
    for (const OutEdge& edge : node.out_edges()) next.push_back(edge.dst);
    for (const Node* n : next) {
      if (host(n) == host(&node) && seen.insert(n).second) behind.push_back(n);
    }
  }
  EXPECT_GT(behind.size(), 50);
}

TEST(ExactlyOnceMistakesTest, AreNamed) {
  Program program;
  const ExactlyOnce once(program, {.workers = 2, .worker = 2});
  const int line = __LINE__ - 1;
  EXPECT_EQ(program.status().message(),
            StrCat("ExactlyOnce: worker is 2, must be in [0, 2), the workers (made at ", __FILE__,
                   ":", line, ")"));
  const QueueRunners runners(program);
  RunQueueRunners run(runners, {}, &once);
  const auto session = Session::New(program);
  EXPECT_EQ(run.SessionBegins({**session}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(once.Begin(**session).status().code(), StatusCode::kFailedPrecondition);
}

TEST(ExactlyOnceMistakesTest, ApplyTwice) {
  Program program;
  const Variable w(program, "w", {}, Zeros());
  GradientDescent optimizer(1);
  ExactlyOnce once(program);
  const auto gradients = optimizer.ComputeGradients(program, w.Read());
  once.Apply(optimizer, gradients);
  EXPECT_TRUE(program.status().ok());
  once.Apply(optimizer, gradients);
  EXPECT_EQ(program.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(program.status().message()),
              testing::HasSubstr("ExactlyOnce: Apply was called twice (made at "));
}

TEST(ExactlyOnceMistakesTest, NoGradients) {
  Program program;
  const Variable w(program, "w", {}, Zeros());
  Adam optimizer(0.1);
  EXPECT_TRUE(optimizer.ApplyGradients(program, {{Gradient(), w}}, program.GlobalStep()).valid());
  ExactlyOnce once(program);
  EXPECT_TRUE(once.Apply(optimizer, {{Gradient(), w}}).valid()) << program.status();
}

TEST(ExactlyOnceMistakesTest, AVariableThatCannotBeGuarded) {
  Program program;
  const auto scope = program.DeviceScope("/job:ps/task:0/device:GPU:0");
  const Variable w(program, "w", {}, Zeros());
  GradientDescent optimizer(1);
  ExactlyOnce once(program);
  const Output train = once.Apply(optimizer, optimizer.ComputeGradients(program, w.Read()));
  EXPECT_EQ(program.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(program.status().message()),
              testing::HasSubstr(
                  "ExactlyOnce: variable 'w' is on /job:ps/task:0/device:GPU:0; it must be on "
                  "the first CPU of its task (made at "));
  // Run returns the program's error; objects built on the program do not crash.
  TrainingLoop loop(program, {.train = train, .once = &once},
                    {.checkpoint_dir = testing::TempDir()});
  EXPECT_EQ(loop.Run().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::client
