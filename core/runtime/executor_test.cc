// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/base/error_origin.h"
#include "core/base/testing/durations.h"
#include "core/op/testing/recording_log.h"
#include "core/runtime/testing/run_step.h"
#include "core/runtime/testing/test_ops.h"

namespace penstock {
namespace {

using testing::HasSubstr;
Tensor Int(int64_t value) { return Tensor::Scalar(value); }

// The two ways of running a step must give the same results.
class ExecutorTest : public testing::TestWithParam<RunMode> {
 protected:
  Status Run(Graph graph, TestStep& step) {
    const auto executor = task_.Make(std::move(graph));
    return RunStep(*executor, step.Args(), GetParam());
  }
  std::string Message(const Status& status) { return std::string(status.message()); }
  TestTask task_;
};
INSTANTIATE_TEST_SUITE_P(How, ExecutorTest, testing::Values(RunMode::kRun, RunMode::kRunAsync),
                         [](const auto& info) {
                           return info.param == RunMode::kRun ? "Run" : "RunAsync";
                         });

TEST_P(ExecutorTest, FeedsComeInAndFetchesGoOut) {
  TestGraph g;
  Node* const x = g.Feed(1);
  g.Fetch(g.AddSum("TestSum", {x, g.Feed(0)}, {{"plus", 100}}), 0);
  g.Fetch(x, 1);
  TestStep step(2, {Int(1), Int(20)});
  ASSERT_TRUE(Run(g.Take(), step).ok());
  EXPECT_EQ(step.fetches[0].scalar<int64_t>(), 121);
  EXPECT_EQ(step.fetches[1].scalar<int64_t>(), 20);
  EXPECT_EQ(step.feeds[1].scalar<int64_t>(), 20) << "feeds are not written to";
}

TEST_P(ExecutorTest, AnEmptyGraphIsAStep) {
  TestStep step;
  EXPECT_TRUE(Run(TestGraph().Take(), step).ok());
}

TEST_P(ExecutorTest, WrongFeedsAreErrors) {
  const struct {
    std::vector<Tensor> feeds;
    int fetches;
    std::string error;
  } kCases[] = {
      {{}, 1, "feed 0 of a step that is fed 0 tensors"},
      {{Tensor::Scalar(1.0f)}, 1, "feed 0 must be int64, is float"},
      {{Tensor()}, 1, "feed 0 must be int64, is missing"},
      {{Int(1)}, 0, "fetch 0 of a step that fetches 0 tensors"},
  };
  for (const auto& c : kCases) {
    TestGraph g;
    g.Fetch(g.Feed(0), 0);
    TestStep step(c.fetches, c.feeds);
    const Status status = Run(g.Take(), step);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(status), HasSubstr(c.error));
    EXPECT_THAT(Message(status), HasSubstr("\n\t [[{{node n"));
  }
}

TEST_P(ExecutorTest, TheFirstFailureIsTheStatusAndNamesItsNodeOnce) {
  TestGraph g;
  Node* const fail = g.Add("TestFail", {}, {{"N", 0}, {"message", "no good"}}, {}, "layer/culprit");
  Node* const after = g.AddSum("TestSum", {fail});
  g.AddSum("TestStall", {});  // ends when the step is cancelled
  g.Fetch(after, 0);
  TestStep step(1);
  Attrs recv = {{"tensor_name", "never"},
                {"send_device", task_.device->name()},
                {"send_device_incarnation", 1},
                {"recv_device", task_.device->name()},
                {"tensor_type", DType::kInt64}};
  g.Add("_Recv", {}, recv);
  const Status status = Run(g.Take(), step);
  EXPECT_EQ(status.message(), "no good\n\t [[{{node layer/culprit}}]]");
  EXPECT_EQ(status, AtNode(InvalidArgument("no good"), "layer/culprit"));
  EXPECT_EQ(step.cancellation.status(), status);
  EXPECT_EQ(step.rendezvous->Send(HashedKey({.tensor = "x"}), Int(1), false), status);
}

TEST_P(ExecutorTest, PayloadsAreKept) {
  TestGraph g;
  g.AddSum("TestStall", {});
  TestStep step;
  Status why = Aborted("peer restarted");
  why.SetPayload("task", absl::Cord("/job:ps/task:1"));
  step.cancellation.Cancel(why);
  EXPECT_EQ(Run(g.Take(), step), why);
}

TEST_P(ExecutorTest, WhatKernelsDoWrongIsReported) {
  const struct {
    const char* op;
    StatusCode code;
    std::string error;
  } kCases[] = {
      {"TestForget", StatusCode::kInternal, "the kernel of TestForget did not set output 0"},
      {"TestWrong", StatusCode::kInternal, "produced output 0 as float, the graph says int64"},
      {"TestThrow", StatusCode::kResourceExhausted, "out of memory"},
  };
  for (const auto& c : kCases) {
    TestGraph g;
    g.AddSum(c.op, {});
    TestStep step;
    const Status status = Run(g.Take(), step);
    EXPECT_EQ(status.code(), c.code);
    EXPECT_THAT(Message(status), HasSubstr(c.error));
    EXPECT_THAT(Message(status), HasSubstr("[[{{node n0}}]]"));
  }
}

TEST_P(ExecutorTest, AnAsyncFailureIsAFailure) {
  for (const bool at_once : {false, true}) {
    TestGraph g;
    g.AddSum("TestSum", {g.AddSum("TestAsync", {}, {{"inline", at_once}, {"fail", true}})});
    TestStep step;
    EXPECT_EQ(Run(g.Take(), step), AtNode(Unavailable("asynchronous failure"), "n0"));
  }
}

TEST_P(ExecutorTest, AFailedStepLeavesNothingBehind) {
  TestGraph g;
  Node* const big = g.Feed(0);
  Node* const fails = g.Feed(1);
  Node* const two = g.AddSum("TestSum", {fails});
  // `big` was passed on to its consumer, which never runs.
  g.AddSum("TestSum", {big, g.Add("TestFail", {two}, {{"N", 1}})});
  const auto executor = task_.Make(g.Take());
  for (int i = 0; i < 5; ++i) {
    TestStep step(0, {Int(1), Int(2)});
    EXPECT_FALSE(RunStep(*executor, step.Args(), GetParam()).ok());
    EXPECT_TRUE(step.feeds[0].unique());
  }
}

TEST_P(ExecutorTest, ReferencesAreReadWhereAValueIsWanted) {
  TestGraph g;
  Node* const v = g.Add("TestVariable", {}, {{"name", "weights"}});
  Node* const assign = g.Add("TestAssign", {v, g.Feed(0)});
  g.Fetch(g.AddSum("TestSum", {assign, assign}), 0);
  g.Fetch(assign, 1);
  TestStep step(2, {Int(21)});
  ASSERT_TRUE(Run(g.Take(), step).ok());
  EXPECT_EQ(step.fetches[0].scalar<int64_t>(), 42);
  EXPECT_EQ(step.fetches[1].scalar<int64_t>(), 21) << "a fetched reference is read too";

  TestGraph read;
  read.Fetch(read.Add("TestVariable", {}, {{"name", "weights"}}), 0);
  ASSERT_TRUE(Run(read.Take(), step).ok()) << "it outlives the step";
  EXPECT_EQ(step.fetches[0].scalar<int64_t>(), 21);
}

TEST_P(ExecutorTest, ChangesArePutDownToStepAndNode) {
  RecordingLog log;
  ResourceStore resources;
  ASSERT_TRUE(resources.AttachLog(&log).ok());
  TestGraph g;
  Node* const v = g.Add("TestVariable", {}, {{"name", "weights"}});
  g.Add("TestAssign", {v, g.Feed(0)}, {}, {}, "set_weights");
  TestStep step(0, {Int(21)});
  StepArgs args = step.Args();
  args.resources = &resources;
  const auto executor = task_.Make(g.Take());
  ASSERT_TRUE(RunStep(*executor, args, GetParam()).ok());
  ASSERT_EQ(log.entries().size(), 2);
  const RecordingLog::Entry entry = log.entries()[1];
  EXPECT_EQ(RecordingLog::Text(entry), "weights 1 assign int64[] 21");
  EXPECT_EQ(entry.step_id, args.step_id);
  EXPECT_EQ(entry.node, "set_weights");
  EXPECT_EQ(entry.device, task_.device->name());
  EXPECT_EQ(entry.incarnation, task_.device->info().incarnation);
}

TEST_P(ExecutorTest, ReadingAVariableBeforeItsFirstValueFails) {
  TestGraph g;
  g.AddSum("TestSum", {g.Add("TestVariable", {}, {{"name", "early"}})});
  TestStep step;
  const Status status = Run(g.Take(), step);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), HasSubstr("Attempting to use uninitialized value early"));
  EXPECT_THAT(Message(status), HasSubstr("[[{{node n1}}]]"));
}

// The last node to use a value may write to it in place; no other node may.
TEST_P(ExecutorTest, OnlyTheLastConsumerOwnsTheValue) {
  TestGraph g;
  Node* const made = g.AddSum("TestSum", {});
  Node* const alone = g.Add("TestAlias", {made});
  g.Fetch(alone, 0, 1);
  Node* const shared = g.AddSum("TestSum", {});
  Node* const one = g.Add("TestAlias", {shared});
  Node* const other = g.Add("TestAlias", {shared}, {}, {one});
  g.Fetch(one, 1, 1);
  g.Fetch(other, 2, 1);
  TestStep step(3);
  ASSERT_TRUE(Run(g.Take(), step).ok());
  EXPECT_TRUE(step.fetches[0].scalar<bool>());
  EXPECT_FALSE(step.fetches[1].scalar<bool>());
  // Output 0 of the node has no consumer and has been dropped.
  EXPECT_TRUE(step.fetches[2].scalar<bool>());
}

// The last consumer is the sole owner of the value even if a kernel has passed the value through:
// that kernel's input must have been released.
TEST_P(ExecutorTest, InputsAreReleasedBeforeOutputsGoOn) {
  TestGraph g;
  Node* const passed = g.AddSum("TestSum", {g.AddSum("TestSum", {})});  // both in one buffer
  g.Fetch(g.Add("TestAlias", {passed}), 0, 1);
  const auto executor = task_.Make(g.Take());
  for (int i = 0; i < 10; ++i) {  // the first steps, which are timed, take another code path
    TestStep step(1);
    ASSERT_TRUE(RunStep(*executor, step.Args(), GetParam()).ok());
    EXPECT_TRUE(step.fetches[0].scalar<bool>()) << "step " << i;
  }
}

TEST_P(ExecutorTest, FeedsAreNeverWrittenInPlace) {
  TestGraph g;
  g.Fetch(g.AddSum("TestSum", {g.Feed(0)}, {{"plus", 1}}), 0);
  TestStep step(1, {Int(5)});
  ASSERT_TRUE(Run(g.Take(), step).ok());
  EXPECT_EQ(step.feeds[0].scalar<int64_t>(), 5);
  EXPECT_EQ(step.fetches[0].scalar<int64_t>(), 6);
}

TEST_P(ExecutorTest, SendAndRecvMeet) {
  Attrs key = {{"tensor_name", "edge_1_x:0"},
               {"send_device", task_.device->name()},
               {"send_device_incarnation", 1},
               {"recv_device", task_.device->name()}};
  Attrs send = key, recv = key;
  send["T"] = DType::kInt64;
  recv["tensor_type"] = DType::kInt64;
  for (const bool recv_first : {false, true}) {
    TestGraph g;
    Node* const received = g.Add("_Recv", {}, recv);
    Node* const value = g.AddSum("TestSpin", {}, {{"plus", 3}, {"micros", recv_first ? 300 : 0}});
    g.Add("_Send", {value}, send);
    g.Fetch(g.AddSum("TestSum", {received}, {{"plus", 4}}), 0);
    TestStep step(1);
    ASSERT_TRUE(Run(g.Take(), step).ok());
    EXPECT_EQ(step.fetches[0].scalar<int64_t>(), 7);
  }
}

// Two partitions of one step send to each other back and forth: a waiting receiver must hold no
// thread, and the stack must not grow with the number of transfers.
TEST_P(ExecutorTest, PartitionsPlayPingPong) {
  constexpr int kRounds = 2000;
  const auto key = [&](int i, const char* type) {
    Attrs attrs = {{"tensor_name", StrCat("ball", i)},
                   {"send_device", task_.device->name()},
                   {"send_device_incarnation", 1},
                   {"recv_device", task_.device->name()}};
    attrs[type] = DType::kInt64;
    return attrs;
  };
  TestGraph ping, pong;
  Node* ball = ping.AddSum("TestSum", {});
  for (int i = 0; i < kRounds; ++i) {
    TestGraph &from = i % 2 == 0 ? ping : pong, &to = i % 2 == 0 ? pong : ping;
    from.Add("_Send", {ball}, key(i, "T"));
    ball = to.AddSum("TestSum", {to.Add("_Recv", {}, key(i, "tensor_type"))}, {{"plus", 1}});
  }
  ping.Fetch(ball, 0);
  const auto a = task_.Make(ping.Take()), b = task_.Make(pong.Take());
  TestStep step(1);
  std::atomic<bool> other_ended{false};
  b->RunAsync(step.Args(), Done([&](Status status) {
                EXPECT_TRUE(status.ok()) << status;
                other_ended = true;
              }));
  EXPECT_TRUE(RunStep(*a, step.Args(), GetParam()).ok());
  while (!other_ended) std::this_thread::yield();
  EXPECT_EQ(step.fetches[0].scalar<int64_t>(), kRounds);
}

TEST_P(ExecutorTest, ADeadValueKillsWhatDependsOnIt) {
  Attrs recv = {{"tensor_name", "x"},
                {"send_device", task_.device->name()},
                {"send_device_incarnation", 1},
                {"recv_device", task_.device->name()},
                {"tensor_type", DType::kInt64}};
  RendezvousKey key = {.src_device = task_.device->name(),
                       .src_incarnation = 1,
                       .dst_device = task_.device->name(),
                       .tensor = "x"};
  for (const bool fetched : {false, true}) {
    TestGraph g;
    Node* const received = g.Add("_Recv", {}, recv);
    Node* const live = g.AddSum("TestSum", {});
    Node* const dead = g.AddSum("TestSum", {live, received});
    // None of these nodes may run.
    g.Add("TestFail", {dead}, {{"N", 1}});
    g.Add("TestFail", {}, {{"N", 0}}, {dead});
    g.Add("TestFail", {}, {{"N", 0}}, {received});
    g.Add("TestFail", {}, {{"N", 0}}, {g.Add("NoOp", {}, {}, {dead})});
    // A ControlTrigger runs even if its input is dead; so the nodes after it run, too.
    g.Fetch(g.AddSum("TestSum", {}, {{"plus", 9}}, {g.Add("ControlTrigger", {}, {}, {dead})}), 1);
    Attrs send = {{"tensor_name", "y"},
                  {"send_device", task_.device->name()},
                  {"send_device_incarnation", 1},
                  {"recv_device", task_.device->name()},
                  {"T", DType::kInt64}};
    g.Add("_Send", {dead}, send);
    g.Fetch(fetched ? dead : live, 0);
    TestStep step(2);
    ASSERT_TRUE(step.rendezvous->Send(HashedKey(key), Tensor(), true).ok());
    const Status status = Run(g.Take(), step);
    if (fetched) {
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(Message(status), HasSubstr("lies on a branch not taken"));
    } else {
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(step.fetches[1].scalar<int64_t>(), 9);
      bool passed_on = false;
      RendezvousKey sent = key;
      sent.tensor = "y";
      step.rendezvous->Recv(HashedKey(sent), [&](Status received, Tensor, bool is_dead) {
        passed_on = received.ok() && is_dead;
      });
      EXPECT_TRUE(passed_on) << "deadness crosses devices";
    }
  }
}

TEST_P(ExecutorTest, AStepThatWaitsForEverEndsAtItsDeadline) {
  TestGraph g;
  g.Add("TestStall", {}, {{"N", 0}}, {}, "queue/dequeue");
  g.Add("_Recv", {},
        {{"tensor_name", "never"},
         {"send_device", task_.device->name()},
         {"send_device_incarnation", 1},
         {"recv_device", task_.device->name()},
         {"tensor_type", DType::kInt64}},
        {}, "from_ps");
  TestStep step;
  const int64_t start = Env::Real().NowNanos();
  step.deadline_ns = start + 30 * kMilli;
  const Status status = Run(g.Take(), step);
  const int64_t took = Env::Real().NowNanos() - start;
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Message(status), HasSubstr("step 7 did not end before its deadline"));
  EXPECT_THAT(Message(status), HasSubstr("'queue/dequeue' (TestStall)"));
  EXPECT_THAT(Message(status), HasSubstr("'from_ps' (_Recv)"));
  EXPECT_GE(took, 30 * kMilli);
  EXPECT_LT(took, 5'000 * kMilli);
}

TEST_P(ExecutorTest, AStepThatComputesForTooLongEndsAtItsDeadline) {
  for (const bool declared : {false, true}) {
    TestGraph g;
    Node* last = g.AddSum("TestSum", {});
    for (int i = 0; i < 1000; ++i) {
      last = g.AddSum("TestSpin", {last}, {{"micros", 1000}, {"declared", declared}});
    }
    TestStep step;
    const int64_t start = Env::Real().NowNanos();
    step.deadline_ns = start + 20 * kMilli;
    EXPECT_EQ(Run(g.Take(), step).code(), StatusCode::kDeadlineExceeded);
    EXPECT_LT(Env::Real().NowNanos() - start, 500 * kMilli) << "all of it takes a second";
  }
}

TEST_P(ExecutorTest, ADeadlineThatIsNotReachedChangesNothing) {
  TestGraph g;
  g.Fetch(g.AddSum("TestAsync", {g.Feed(0)}), 0);
  const auto executor = task_.Make(g.Take());
  for (int i = 0; i < 200; ++i) {
    TestStep step(1, {Int(i)});
    step.deadline_ns = Env::Real().NowNanos() + 60'000 * kMilli;
    ASSERT_TRUE(RunStep(*executor, step.Args(), GetParam()).ok());
    EXPECT_EQ(step.fetches[0].scalar<int64_t>(), i);
  }
}

TEST_P(ExecutorTest, CancellationFromOutsideEndsTheStepAndItsRendezvous) {
  TestGraph g;
  g.AddSum("TestStall", {});
  g.Add("_Recv", {},
        {{"tensor_name", "never"},
         {"send_device", task_.device->name()},
         {"send_device_incarnation", 1},
         {"recv_device", task_.device->name()},
         {"tensor_type", DType::kInt64}});
  const auto executor = task_.Make(g.Take());
  for (int i = 0; i < 20; ++i) {
    TestStep step;
    std::thread canceller([&] {
      Env::Real().SleepForNanos(i * 50'000);
      step.cancellation.Cancel(Cancelled("the session was closed"));
    });
    EXPECT_EQ(RunStep(*executor, step.Args(), GetParam()), Cancelled("the session was closed"));
    canceller.join();
    EXPECT_EQ(step.rendezvous->Send(HashedKey({.tensor = "x"}), Int(1), false),
              Cancelled("the session was closed"));
  }
}

TEST_P(ExecutorTest, CancellationReachesANodeThatOnlyWaitsAtTheRendezvous) {
  TestGraph g;
  g.Add("_Recv", {},
        {{"tensor_name", "never"},
         {"send_device", task_.device->name()},
         {"send_device_incarnation", 1},
         {"recv_device", task_.device->name()},
         {"tensor_type", DType::kInt64}});
  const auto executor = task_.Make(g.Take());
  for (int i = 0; i < 20; ++i) {
    TestStep step;
    std::thread canceller([&] {
      Env::Real().SleepForNanos(i * 30'000);
      step.cancellation.Cancel(Cancelled("enough"));
    });
    EXPECT_EQ(RunStep(*executor, step.Args(), GetParam()), Cancelled("enough"));
    canceller.join();
  }
}

TEST_P(ExecutorTest, AnErrorThatNamesANodeAlreadyIsNotNamedAgain) {
  TestGraph g;
  g.Add("_Recv", {},
        {{"tensor_name", "x"},
         {"send_device", task_.device->name()},
         {"send_device_incarnation", 1},
         {"recv_device", task_.device->name()},
         {"tensor_type", DType::kInt64}});
  TestStep step;
  const Status other_iterations = AtNode(Internal("From /job:ps/task:1: bad"), "there");
  step.rendezvous->Abort(other_iterations);
  EXPECT_EQ(Run(g.Take(), step), other_iterations);
}

TEST_P(ExecutorTest, StepsRunSideBySide) {
  TestGraph g;
  Node* last = g.Feed(0);
  for (int i = 0; i < 20; ++i) {
    last = g.AddSum(i % 5 == 0 ? "TestAsync" : "TestSum", {last, last});
  }
  g.Fetch(last, 0);
  const auto executor = task_.Make(g.Take());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        TestStep step(1, {Int(t * 1000 + i)});
        EXPECT_TRUE(RunStep(*executor, step.Args(), GetParam()).ok());
        EXPECT_EQ(step.fetches[0].scalar<int64_t>(), int64_t{t * 1000 + i} << 20);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Independent expensive nodes run at the same time.
TEST_P(ExecutorTest, ExpensiveNodesAreShared) {
  for (const bool declared : {true, false}) {
    TestGraph g;
    std::vector<Node*> spins;
    for (int i = 0; i < 8; ++i) {
      spins.push_back(g.AddSum("TestSpin", {}, {{"micros", 5000}, {"declared", declared}}));
    }
    g.AddSum("TestSum", spins);
    const auto executor = task_.Make(g.Take());
    // A cost that is not declared is learned in the first steps.
    size_t threads_max = 0;
    for (int i = 0; i < 4; ++i) {
      StepStatsCollector stats;
      TestStep step;
      step.stats = &stats;
      ASSERT_TRUE(RunStep(*executor, step.Args(), GetParam()).ok());
      std::set<uint32_t> threads;
      const std::vector<DeviceStats> devices = stats.Take();
      for (const NodeStats& node : devices[0].nodes) threads.insert(node.thread);
      threads_max = std::max(threads_max, threads.size());
    }
    // Two threads work at a time, but a runner that has yielded may continue on a third thread.
    EXPECT_GE(threads_max, 2u) << (declared ? "declared" : "learned");
  }
}

// Runs as many steps at once as the pool has threads. Each step runs on a thread of the pool and
// offers nodes to others: no step may wait for another thread to take them.
TEST_P(ExecutorTest, StepsMayRunOnThePoolThatTheyShare) {
  TestGraph g;
  std::vector<Node*> spins;
  for (int i = 0; i < 10; ++i) spins.push_back(g.AddSum("TestSpin", {}, {{"micros", 20}}));
  g.AddSum("TestSum", spins);
  const auto executor = task_.Make(g.Take());
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> ended{0};
    for (int i = 0; i < 2; ++i) {
      task_.threads.Schedule([&] {
        TestStep step;
        EXPECT_TRUE(executor->Run(step.Args()).ok());
        ++ended;
      });
    }
    while (ended < 2) std::this_thread::yield();
  }
}

TEST_P(ExecutorTest, AStepNeedsNothingThatItDoesNotUse) {
  TestGraph g;
  g.AddSum("TestSum", {g.AddSum("TestAsync", {})});
  const auto executor = task_.Make(g.Take());
  EXPECT_TRUE(RunStep(*executor, StepArgs(), GetParam()).ok());

  TestGraph failing;
  failing.Add("TestFail", {}, {{"N", 0}});
  failing.AddSum("TestStall", {});
  const auto fails = task_.Make(failing.Take());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(RunStep(*fails, StepArgs(), GetParam()).code(), StatusCode::kInvalidArgument);
  }

  TestGraph receiving;
  receiving.Add("_Recv", {},
                {{"tensor_name", "x"},
                 {"send_device", task_.device->name()},
                 {"send_device_incarnation", 1},
                 {"recv_device", task_.device->name()},
                 {"tensor_type", DType::kInt64}});
  const auto receives = task_.Make(receiving.Take());
  const Status status = RunStep(*receives, StepArgs(), GetParam());
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), HasSubstr("has no rendezvous"));
}

TEST(MakeExecutorTest, ErrorsNameTheNode) {
  TestTask task;
  TestGraph g;
  g.Add("TestVariable", {}, {{"name", "v"}}, {}, "fine");
  Node* const node = g.Add("_Feed", {}, {{"index", 1}, {"T", DType::kInt64}}, {}, "bad");
  g.graph().set_attr(node, "index", AttrValue("zero"));
  const auto executor = task.TryMake(g.Take());
  EXPECT_EQ(executor.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(executor.status().message()), HasSubstr("[[{{node bad}}]]"));
}

}  // namespace
}  // namespace penstock
