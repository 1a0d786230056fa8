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
  const auto session = Session::New(program_, cluster.target(), {.operation_timeout_ms = 60'000});
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
  const Output ahead = counts[0].Assign(Constant(program_, Tensor::Of<int64_t>({1, 1}, {2})));
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
  EXPECT_EQ(values(), "float[2] 0 2; float[] 1; int64[1,1] 1; int64[1,1] 1; ");
  ASSERT_TRUE((*session)->Execute(ahead).ok());
  EXPECT_EQ(*once_.Begin(**session), 1);
  EXPECT_TRUE((*session)->Execute(train).ok());
  EXPECT_EQ(values(), "float[2] 0 2; float[] 2; int64[1,1] 2; int64[1,1] 2; ");
  EXPECT_TRUE((*session)->Execute(train).ok());
  EXPECT_EQ(values(), "float[2] 0 4; float[] 3; int64[1,1] 3; int64[1,1] 3; ");
}

// A program with one variable on each of `servers` servers, or with both on one.
struct CountedProgram {
  explicit CountedProgram(int servers)
      : scope(program.DeviceFunctionScope(
            ReplicaDeviceSetter({.ps_tasks = servers, .worker_device = "/job:worker/task:0"}))),
        once(program) {
    const Variable a(program, "a", {}, Zeros()), b(program, "b", {}, Zeros());
    GradientDescent optimizer(1);
    train = once.Apply(optimizer, optimizer.ComputeGradients(program, -(a + b)));
    values = {a, b, program.GlobalStep()};
    SaverOptions options;
    once.SetUp(&options);
    saver.emplace(program, std::vector<Variable>(), options);
    const std::vector<Variable> globals = program.globals();
    ahead = globals.back().AssignAdd(OnesLike(globals.back()));
    init = program.Initialize(program.variables());
    locals = program.Initialize(program.locals());
  }
  std::string Values(Session& session) const {
    const auto read = session.Run({values.begin(), values.end()});
    if (!read.ok()) return read.status().ToString();
    std::string text;
    for (const Tensor& value : *read) StrAppend(&text, value.ToString(), "; ");
    return text;
  }
  Program program;
  const GraphBuilder::Scope scope;
  ExactlyOnce once;
  Output train, init, locals, ahead;
  std::vector<Variable> values;
  std::optional<Saver> saver;
};

TEST(ExactlyOnceRestoreTest, ToAnotherNumberOfServers) {
  const std::string path = StrCat(testing::TempDir(), "/servers_", Env::Real().RandomU64(), "/m");
  int64_t step = 0;
  for (const int servers : {2, 1, 3, 2}) {
    CountedProgram counted(servers);
    TestCluster cluster({{"ps", servers}, {"worker", 1}});
    const auto session = Session::New(counted.program, cluster.target());
    ASSERT_TRUE(session.ok()) << session.status();
    if (step == 0) {
      ASSERT_EQ((*session)->Execute(counted.init), OkStatus());
    } else {
      ASSERT_EQ((*session)->Execute(counted.locals), OkStatus());
      ASSERT_EQ(counted.saver->Restore(**session, StrCat(path, "-", step)), OkStatus());
    }
    EXPECT_EQ(*counted.once.Begin(**session), step);
    for (int i = 0; i < 2; ++i) ASSERT_EQ((*session)->Execute(counted.train), OkStatus());
    step += 2;
    EXPECT_EQ(counted.Values(**session),
              StrCat("float[] ", step, "; float[] ", step, "; int64[] ", step, "; "));
    ASSERT_TRUE(counted.saver->Save(**session, path, step).ok());
  }
}

TEST(ExactlyOnceRestoreTest, AmidABatchOnlyToTheSameNumber) {
  const std::string path = StrCat(testing::TempDir(), "/amid_", Env::Real().RandomU64(), "/m");
  bool saved = false;
  for (const int servers : {2, 2, 1}) {
    CountedProgram counted(servers);
    TestCluster cluster({{"ps", servers}, {"worker", 1}});
    const auto session = Session::New(counted.program, cluster.target());
    ASSERT_TRUE(session.ok()) << session.status();
    if (!std::exchange(saved, true)) {
      ASSERT_EQ((*session)->Execute(counted.init), OkStatus());
      ASSERT_EQ((*session)->Execute(counted.ahead), OkStatus());
      ASSERT_TRUE(counted.saver->Save(**session, path, 0).ok());
      continue;
    }
    const Status restored = counted.saver->Restore(**session, path + "-0");
    EXPECT_EQ(restored.ok(), servers == 2) << restored;
    if (servers == 2) continue;
    EXPECT_EQ(restored.code(), StatusCode::kInvalidArgument) << restored;
    EXPECT_TRUE(absl::StrContains(restored.message(),
                                  "other numbers of parameter servers and workers than 1 and 1"))
        << restored;
  }
}

// A program with all variables on one server, for one worker.
struct WorkersProgram {
  explicit WorkersProgram(const WorkerShare& share) : once(program, share) {
    const Variable a(program, "a", {}, Zeros());
    GradientDescent optimizer(1);
    CHECK(once.Apply(optimizer, optimizer.ComputeGradients(program, -a)).valid());
    taken = program.globals().back();
    SaverOptions options;
    once.SetUp(&options);
    saver.emplace(program, std::vector<Variable>(), options);
    init = program.Initialize(program.variables());
  }
  Program program;
  ExactlyOnce once;
  std::optional<Variable> taken;
  std::optional<Saver> saver;
  Output init;
};

// Saves a training whose workers have applied `counts` batches, and restores it for `share`.
// Returns the count of that worker.
StatusOr<int64_t> Resume(const std::vector<int64_t>& counts, const WorkerShare& share) {
  const std::string path = StrCat(testing::TempDir(), "/workers_", Env::Real().RandomU64(), "/m");
  {
    WorkersProgram saved({.workers = static_cast<int>(counts.size())});
    const Output count = saved.taken->Assign(Constant(saved.program, Tensor::Vector(counts)));
    ASSIGN_OR_RETURN(const auto session, Session::New(saved.program));
    RETURN_IF_ERROR(session->Execute(saved.init));
    RETURN_IF_ERROR(session->Execute(count));
    RETURN_IF_ERROR(saved.saver->Save(*session, path, 0).status());
  }
  WorkersProgram resumed(share);
  ASSIGN_OR_RETURN(const auto session, Session::New(resumed.program));
  RETURN_IF_ERROR(session->Execute(resumed.init));
  RETURN_IF_ERROR(resumed.saver->Restore(*session, path + "-0"));
  return resumed.once.Begin(*session);
}

TEST(ExactlyOnceRestoreTest, ToAnotherNumberOfWorkers) {
  const auto in_turn = [](int workers, int worker) {
    return WorkerShare{.workers = workers, .worker = worker, .round_robin = true};
  };
  // The workers have applied every second one of 9 batches. Each of three workers has 3 of them.
  for (int worker = 0; worker < 3; ++worker) EXPECT_EQ(*Resume({5, 4}, in_turn(3, worker)), 3);
  // The first 8 batches were applied, so the three workers have 3, 3 and 2 of them.
  EXPECT_EQ(*Resume({4, 4}, in_turn(3, 0)), 3);
  EXPECT_EQ(*Resume({4, 4}, in_turn(3, 1)), 3);
  EXPECT_EQ(*Resume({4, 4}, in_turn(3, 2)), 2);
  EXPECT_EQ(*Resume({3, 3, 2}, in_turn(1, 0)), 8);
  EXPECT_EQ(*Resume({0, 0}, in_turn(5, 4)), 0);
  // The same number of workers resumes with any counts.
  EXPECT_EQ(*Resume({2, 7}, in_turn(2, 1)), 7);
  EXPECT_EQ(*Resume({2, 7}, {.workers = 2, .worker = 1}), 7);
}

TEST(ExactlyOnceRestoreTest, OtherWorkersAreRefusedUnlessTheBatchesAreTheFirstOnes) {
  const auto error = [](const std::vector<int64_t>& counts, const WorkerShare& share) {
    const Status status = Resume(counts, share).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error({4, 4}, {.workers = 1}), testing::HasSubstr("needs WorkerShare::round_robin"));
  const WorkerShare one{.workers = 1, .round_robin = true};
  for (const std::vector<int64_t>& counts :
       std::vector<std::vector<int64_t>>{{4, 5}, {5, 3}, {4, 4, 2}}) {
    EXPECT_THAT(error(counts, one), testing::HasSubstr("some workers were ahead of others"));
  }
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
