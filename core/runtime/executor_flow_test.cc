// SPDX-License-Identifier: Apache-2.0
//
// Tests the executor with branches and loops, one feature at a time. executor_random_flow_test.cc
// runs random programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <thread>

#include "core/base/testing/durations.h"
#include "core/runtime/testing/run_step.h"
#include "core/runtime/testing/test_flow.h"
#include "core/runtime/testing/test_ops.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using Values = FlowBuilder::Values;

class ExecutorFlowTest : public testing::TestWithParam<RunMode> {
 protected:
  // Returns the fetches, or the error's text.
  std::string Run(Executor& executor, const std::vector<int64_t>& feeds, int fetches) {
    std::vector<Tensor> fed;
    for (const int64_t feed : feeds) fed.push_back(Tensor::Scalar(feed));
    TestStep step(fetches, std::move(fed));
    step.deadline_ns = deadline_ns_;
    step.stats = stats_;
    const Status status = RunStep(executor, step.Args(), GetParam());
    if (!status.ok()) return status.ToString();
    std::string text;
    for (const Tensor& fetched : step.fetches) {
      StrAppend(&text, text.empty() ? "" : " ",
                fetched.valid() ? StrCat(fetched.scalar<int64_t>()) : "none");
    }
    return text;
  }
  std::string Run(FlowBuilder& b, const std::vector<int64_t>& feeds, int fetches) {
    return Run(*task_.Make(b.Take()), feeds, fetches);
  }

  TestTask task_;
  int64_t deadline_ns_ = 0;
  StepStatsCollector* stats_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(How, ExecutorFlowTest, testing::Values(RunMode::kRun, RunMode::kRunAsync),
                         [](const auto& info) {
                           return info.param == RunMode::kRun ? "Run" : "RunAsync";
                         });

TEST_P(ExecutorFlowTest, OneBranchRuns) {
  FlowBuilder b;
  const Endpoint x = b.Feed(0);
  const auto branch = [&](int64_t plus) {
    return [&b, x, plus] { return b.Sum("TestSum", {x}, {{"plus", plus}}); };
  };
  b.Fetch(b.Cond(b.Call("TestOdd", {x}), branch(100), branch(1000)), 0);
  const auto executor = task_.Make(b.Take());
  StepStatsCollector stats;
  stats_ = &stats;
  EXPECT_EQ(Run(*executor, {7}, 1), "107");
  int sums = 0;
  const std::vector<DeviceStats> devices = stats.Take();
  for (const NodeStats& node : devices[0].nodes) {
    sums += node.op == "TestSum";
  }
  EXPECT_EQ(sums, 1) << "the other branch does not run";
  EXPECT_EQ(Run(*executor, {8}, 1), "1008");
}

TEST_P(ExecutorFlowTest, ABranchMayFail) {
  FlowBuilder b;
  const Endpoint x = b.Feed(0);
  b.Fetch(b.Cond(
              b.Call("TestOdd", {x}), [&] { return b.Sum("TestFail", {x}); },
              [&] {
                return b.Sum("TestSum", {}, {{"plus", 3}});
              }),
          0);
  const auto executor = task_.Make(b.Take());
  EXPECT_THAT(Run(*executor, {1}, 1), HasSubstr("INVALID_ARGUMENT: failed"));
  EXPECT_EQ(Run(*executor, {2}, 1), "3");
}

TEST_P(ExecutorFlowTest, MergeSaysWhichInputCame) {
  for (const auto& [fed, expected] : {std::pair(1, "0"), std::pair(2, "1")}) {
    FlowBuilder b;
    const Endpoint x = b.Feed(0);
    const Endpoint merged = b.Cond(
        b.Call("TestOdd", {x}), [&] { return x; }, [&] { return x; });
    b.Fetch({merged.node, 1}, 0);
    const auto executor = task_.Make(b.Take());
    TestStep step(1, {Tensor::Scalar<int64_t>(fed)});
    ASSERT_TRUE(RunStep(*executor, step.Args(), GetParam()).ok());
    EXPECT_EQ(StrCat(step.fetches[0].scalar<int32_t>()), expected);
  }
}

TEST_P(ExecutorFlowTest, AFetchOfADeadValueNamesTheSwitch) {
  TestGraph g;
  Node* const x = g.Feed(0);
  Node* const odd = g.Add("TestOdd", {x});
  Node* const branch = g.Add("Switch", {x, odd}, {{"T", DType::kInt64}}, {}, "cond/Switch");
  auto sum = g.graph().AddNode(
      {.name = "cond/sum", .op = "TestSum", .inputs = {{branch, 1}}, .attrs = {{"N", 1}}});
  ASSERT_TRUE(sum.ok());
  g.Fetch(*sum, 0);
  const auto executor = task_.Make(g.Take());
  EXPECT_EQ(Run(*executor, {3}, 1), "3");
  const std::string error = Run(*executor, {4}, 1);
  EXPECT_THAT(error, HasSubstr("Retval[0] does not have value"));
  EXPECT_THAT(error, HasSubstr("'cond/sum' lies on a branch not taken, behind 'cond/Switch'"));
}

TEST_P(ExecutorFlowTest, ControlEdgesCarryDeathAndMergesWaitForThem) {
  for (const int64_t fed : {1, 2}) {
    TestGraph g;
    Node* const x = g.Feed(0);
    Node* const odd = g.Add("TestOdd", {x});
    Node* const branch = g.Add("Switch", {x, odd}, {{"T", DType::kInt64}});
    auto taken = g.graph().AddNode({.name = "taken",
                                    .op = "TestPass",
                                    .inputs = {{branch, 1}},
                                    .attrs = {{"T", DType::kInt64}}});
    auto other = g.graph().AddNode({.name = "other",
                                    .op = "TestPass",
                                    .inputs = {{branch, 0}},
                                    .attrs = {{"T", DType::kInt64}}});
    Node* const slow = g.AddSum("TestSpin", {}, {{"micros", 2000}});
    Node* const a = g.AddSum("TestSum", {}, {{"plus", 10}}, {*taken});
    Node* const c = g.AddSum("TestSum", {}, {{"plus", 20}}, {*other});
    Node* const merge = g.Add("Merge", {a, c}, {{"N", 2}, {"T", DType::kInt64}}, {slow, *taken});
    g.Fetch(merge, 0);
    const auto executor = task_.Make(g.Take());
    StepStatsCollector stats;
    stats_ = &stats;
    EXPECT_EQ(Run(*executor, {fed}, 1), fed == 1 ? "10" : "20");
    std::map<std::string, NodeStats> nodes;
    const std::vector<DeviceStats> devices = stats.Take();
    for (const NodeStats& node : devices[0].nodes) nodes[node.node] = node;
    EXPECT_LE(nodes[slow->name()].end_ns, nodes[merge->name()].start_ns);
  }
}

TEST_P(ExecutorFlowTest, SwitchNTakesTheLastOutputForNumbersThatItDoesNotHave) {
  for (const auto& [fed, expected] : {std::pair(0, "5"), std::pair(1, "105"), std::pair(2, "1005"),
                                      std::pair(3, "1005"), std::pair(-1, "1005")}) {
    TestGraph g;
    Node* const x = g.Feed(0);
    Node* const index = g.Feed(1, DType::kInt32);
    Node* const branch = g.Add("_SwitchN", {x, index}, {{"T", DType::kInt64}, {"num_outs", 3}});
    std::vector<Node*> ends;
    for (int i = 0; i < 3; ++i) {
      auto sum = g.graph().AddNode({.name = StrCat("branch", i),
                                    .op = "TestSum",
                                    .inputs = {{branch, i}},
                                    .attrs = {{"N", 1},
                                              {"plus", i == 0   ? 0
                                                       : i == 1 ? 100
                                                                : 1000}}});
      ends.push_back(*sum);
    }
    g.Fetch(g.Add("Merge", ends, {{"N", 3}, {"T", DType::kInt64}}), 0);
    const auto executor = task_.Make(g.Take());
    TestStep step(1, {Tensor::Scalar<int64_t>(5), Tensor::Scalar<int32_t>(fed)});
    ASSERT_TRUE(RunStep(*executor, step.Args(), GetParam()).ok());
    EXPECT_EQ(StrCat(step.fetches[0].scalar<int64_t>()), expected);
  }
}

TEST_P(ExecutorFlowTest, AConditionMustBeAScalar) {
  TestGraph g;
  Node* const branch =
      g.Add("Switch", {g.Feed(0), g.Feed(1, DType::kBool)}, {{"T", DType::kInt64}}, {}, "s");
  g.Fetch(branch, 0);
  const auto executor = task_.Make(g.Take());
  TestStep step(1, {Tensor::Scalar<int64_t>(5), Tensor::Vector<bool>({true})});
  const Status status = RunStep(*executor, step.Args(), GetParam());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("must be a scalar, but it has shape [1]"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("{{node s}}"));
}

// Computes the sum of i for i < n, for several values of parallel_iterations.
TEST_P(ExecutorFlowTest, ALoopCounts) {
  for (const int64_t parallel : {1, 2, 10}) {
    FlowBuilder b;
    const Endpoint n = b.Feed(0), step = b.Feed(1);
    const auto results = b.For({"loop", parallel}, n, {b.Sum("TestSum", {})}, [&](const Values& v) {
      return Values{b.Sum("TestSum", {v[0], v[1], step})};
    });
    b.Fetch(results[0], 0);
    const auto executor = task_.Make(b.Take());
    EXPECT_EQ(Run(*executor, {10, 0}, 1), "45");
    EXPECT_EQ(Run(*executor, {0, 5}, 1), "0") << "no iteration";
    EXPECT_EQ(Run(*executor, {1, 5}, 1), "5");
    EXPECT_EQ(Run(*executor, {1000, 1}, 1), "500500");
  }
}

TEST_P(ExecutorFlowTest, AMillionIterationsTakeConstantMemory) {
  FlowBuilder b;
  const auto results = b.For({"loop"}, b.Feed(0), {b.Sum("TestSum", {})}, [&](const Values& v) {
    return Values{b.Sum("TestSum", {v[0], v[1]})};
  });
  b.Fetch(results[0], 0);
  const auto executor = task_.Make(b.Take());
  EXPECT_EQ(Run(*executor, {10}, 1), "45");
#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer keeps freed memory
  const auto resident = [] {
    long pages = 0, ignored = 0;
    FILE* const file = std::fopen("/proc/self/statm", "r");
    CHECK(std::fscanf(file, "%ld %ld", &ignored, &pages) == 2);
    std::fclose(file);
    return pages * 4096;
  };
  EXPECT_EQ(Run(*executor, {1000}, 1), "499500");
  const long before = resident();
  EXPECT_EQ(Run(*executor, {1'000'000}, 1), "499999500000");
  EXPECT_LT(resident() - before, 8 << 20) << "eight bytes for each iteration";
#endif
}

TEST_P(ExecutorFlowTest, LoopsInLoopsInBranches) {
  FlowBuilder b;
  const Endpoint n = b.Feed(0), x = b.Feed(1);
  // For odd x: x times the sum, over i < n, of i * (i - 1) / 2; else n.
  const Endpoint result = b.Cond(
      b.Call("TestOdd", {x}),
      [&] {
        return b.For({"outer"}, n, {b.Sum("TestSum", {})}, [&](const Values& v) {
          const Endpoint i = v[0];
          return b.For({"inner"}, i, {v[1]}, [&](const Values& w) {
            return b.For({"innermost"}, x, {w[1]}, [&](const Values& u) {
              return Values{b.Sum("TestSum", {u[1], w[0]})};
            });
          });
        })[0];
      },
      [&] { return n; });
  b.Fetch(result, 0);
  const auto executor = task_.Make(b.Take());
  const auto expected = [](int64_t n, int64_t x) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) sum += j * x;
    }
    return StrCat(sum);
  };
  EXPECT_EQ(Run(*executor, {10, 3}, 1), expected(10, 3));
  EXPECT_EQ(Run(*executor, {10, 1}, 1), expected(10, 1));
  EXPECT_EQ(Run(*executor, {0, 1}, 1), "0");
  EXPECT_EQ(Run(*executor, {10, 4}, 1), "10") << "the loops lie on a branch not taken";
}

// Branches in a loop: the Collatz sequence.
TEST_P(ExecutorFlowTest, BranchesInLoops) {
  FlowBuilder b;
  const auto results = b.While(
      {"loop"}, {b.Feed(0), b.Sum("TestSum", {})},
      [&](const Values& v) {
        return b.Call("TestLess", {v[1], b.Feed(1)});
      },
      [&](const Values& v) {
        const Endpoint next = b.Cond(
            b.Call("TestOdd", {v[0]}),
            [&] {
              return b.Sum("TestSum", {v[0], v[0], v[0]}, {{"plus", 1}});
            },
            [&] { return b.Call("TestHalf", {v[0]}); });
        return Values{next, b.Sum("TestSum", {v[1]}, {{"plus", 1}})};
      });
  b.Fetch(results[0], 0);
  const auto executor = task_.Make(b.Take());
  for (const int64_t steps : {0, 1, 2, 10, 100, 111}) {
    int64_t x = 27;
    for (int64_t i = 0; i < steps; ++i) x = x % 2 != 0 ? 3 * x + 1 : x / 2;
    EXPECT_EQ(Run(*executor, {27, steps}, 1), StrCat(x));
  }
}

TEST_P(ExecutorFlowTest, ALoopInABranchNotTakenLeavesDeadValues) {
  FlowBuilder b;
  const Endpoint x = b.Feed(0);
  b.Fetch(b.Cond(
              b.Call("TestOdd", {x}),
              [&] {
                return b.For({"loop"}, x, {x},
                             [&](const Values& v) { return Values{b.Sum("TestFail", {v[1]})}; })[0];
              },
              [&] {
                return b.Sum("TestSum", {x}, {{"plus", 1}});
              }),
          0);
  const auto executor = task_.Make(b.Take());
  EXPECT_EQ(Run(*executor, {4}, 1), "5");
  EXPECT_THAT(Run(*executor, {5}, 1), HasSubstr("failed"));
  EXPECT_EQ(Run(*executor, {6}, 1), "7");
}

TEST_P(ExecutorFlowTest, AsyncAndExpensiveNodesInLoops) {
  for (const char* op : {"TestAsync", "TestSpin"}) {
    FlowBuilder b;
    const auto results = b.For({"loop"}, b.Feed(0), {b.Sum("TestSum", {})}, [&](const Values& v) {
      const Attrs attrs = op == std::string("TestSpin") ? Attrs{{"micros", 10}} : Attrs{};
      const Endpoint a = b.Sum(op, {v[0]}, attrs), c = b.Sum(op, {v[0], v[0]}, attrs);
      return Values{b.Sum(op, {v[1], a, c}, attrs)};
    });
    b.Fetch(results[0], 0);
    const auto executor = task_.Make(b.Take());
    for (int i = 0; i < 5; ++i) EXPECT_EQ(Run(*executor, {100}, 1), StrCat(3 * 99 * 50));
  }
}

// The slow node does not depend on the previous iteration, so the allowed number of iterations run
// at once.
TEST_P(ExecutorFlowTest, IterationsOverlapAsFarAsTheyMay) {
  for (const int64_t parallel : {1, 2, 4}) {
    FlowBuilder b;
    const auto results =
        b.For({"loop", parallel}, b.Feed(0), {b.Sum("TestSum", {})}, [&](const Values& v) {
          return Values{b.Sum("TestSum", {b.Sum("TestSleep", {v[0]}), v[1]})};
        });
    b.Fetch(results[0], 0);
    StepStatsCollector stats;
    stats_ = &stats;
    EXPECT_EQ(Run(b, {12}, 1), "66");
    std::vector<std::pair<int64_t, int>> events;
    const std::vector<DeviceStats> devices = stats.Take();
    for (const NodeStats& node : devices[0].nodes) {
      if (node.op != "TestSleep") continue;
      events.emplace_back(node.start_ns, 1);
      events.emplace_back(node.end_ns, -1);
    }
    EXPECT_EQ(events.size(), 24u);
    std::sort(events.begin(), events.end());
    int now = 0, most = 0;
    for (const auto& [time, change] : events) most = std::max(most, now += change);
    EXPECT_EQ(most, parallel);
  }
}

TEST_P(ExecutorFlowTest, KernelsSeeFrameAndIteration) {
  FlowBuilder b;
  std::vector<Endpoint> frames;
  const Endpoint zero = b.Sum("TestSum", {});
  const auto results = b.For({"outer"}, b.Feed(0), {zero, zero, zero}, [&](const Values& v) {
    const auto inner = b.For({"inner"}, b.Feed(1), {v[1], v[2]}, [&](const Values& w) {
      const Endpoint where = b.Call("TestWhere", {w[1]});
      return Values{where, b.Sum("TestSum", {{where.node, 1}})};
    });
    const Endpoint where = b.Call("TestWhere", {zero});
    return Values{inner[0], inner[1], b.Sum("TestSum", {{where.node, 1}})};
  });
  for (int i = 0; i < 3; ++i) b.Fetch(results[i], i);
  const Endpoint outside = b.Call("TestWhere", {zero});
  b.Fetch({outside.node, 1}, 3);
  const auto executor = task_.Make(b.Take());
  std::vector<int64_t> inner_frames;
  for (const int64_t outer : {1, 2, 3}) {
    TestStep step(4, {Tensor::Scalar(outer), Tensor::Scalar<int64_t>(5)});
    ASSERT_TRUE(RunStep(*executor, step.Args(), GetParam()).ok());
    EXPECT_EQ(step.fetches[0].scalar<int64_t>(), outer * (0 + 1 + 2 + 3 + 4));
    inner_frames.push_back(step.fetches[1].scalar<int64_t>());
    EXPECT_NE(inner_frames.back(), step.fetches[2].scalar<int64_t>());
    EXPECT_NE(step.fetches[2].scalar<int64_t>(), 0);
    EXPECT_EQ(step.fetches[3].scalar<int64_t>(), 0);
  }
  EXPECT_NE(inner_frames[0], inner_frames[1]) << "another run of the inner loop";
  EXPECT_NE(inner_frames[1], inner_frames[2]);
}

TEST_P(ExecutorFlowTest, AFailureInAnIterationEndsTheStep) {
  for (const char* op : {"TestFail", "TestAsync"}) {
    FlowBuilder b;
    const Endpoint limit = b.Feed(0);
    const auto results = b.For({"loop"}, limit, {b.Sum("TestSum", {})}, [&](const Values& v) {
      const Attrs attrs = op == std::string("TestAsync") ? Attrs{{"fail", true}} : Attrs{};
      return Values{b.Cond(
          b.Call("TestLess", {v[0], b.Feed(1)}),
          [&] {
            return b.Sum("TestSum", {v[0], v[1]});
          },
          [&] { return b.Sum(op, {v[1]}, attrs); })};
    });
    b.Fetch(results[0], 0);
    const auto executor = task_.Make(b.Take());
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(Run(*executor, {100, 30}, 1), HasSubstr("fail"));
      EXPECT_EQ(Run(*executor, {100, 100}, 1), "4950") << "as good as new";
    }
  }
}

TEST_P(ExecutorFlowTest, AnEndlessLoopEndsAtTheDeadline) {
  for (const char* op : {"TestSum", "TestAsync"}) {
    FlowBuilder b;
    const Endpoint one = b.Sum("TestSum", {}, {{"plus", 1}});
    const auto results = b.While(
        {"train/while_context"}, {one}, [&](const Values& v) { return b.Call("TestOdd", {one}); },
        [&](const Values& v) { return Values{b.Sum(op, {v[0]})}; });
    b.Fetch(results[0], 0);
    const auto executor = task_.Make(b.Take());
    const int64_t start = Env::Real().NowNanos();
    deadline_ns_ = start + 300 * kMilli;  // even a busy machine begins the step before that
    const std::string error = Run(*executor, {}, 1);
    EXPECT_THAT(error, HasSubstr("DEADLINE_EXCEEDED: step 7 did not end before its deadline"));
    EXPECT_THAT(error, HasSubstr("of loop 'train/while_context'"));
    EXPECT_LT(Env::Real().NowNanos() - start, 5'000 * kMilli);
  }
}

TEST_P(ExecutorFlowTest, AWaitInALoopIsNamed) {
  FlowBuilder b;
  const auto results = b.For({"loop"}, b.Feed(0), {b.Sum("TestSum", {})},
                             [&](const Values& v) { return Values{b.Sum("TestStall", {v[1]})}; });
  b.Fetch(results[0], 0);
  deadline_ns_ = Env::Real().NowNanos() + 300 * kMilli;
  const std::string error = Run(b, {3}, 1);
  EXPECT_THAT(error, HasSubstr("(TestStall)"));
  EXPECT_THAT(error, HasSubstr("iteration"));
}

TEST_P(ExecutorFlowTest, AnEndlessLoopIsCancelled) {
  FlowBuilder b;
  const Endpoint one = b.Sum("TestSum", {}, {{"plus", 1}});
  b.Fetch(b.While(
              {"loop"}, {one}, [&](const Values&) { return b.Call("TestOdd", {one}); },
              [&](const Values& v) {
                return Values{b.Sum("TestSpin", {v[0]}, {{"micros", 5}})};
              })[0],
          0);
  const auto executor = task_.Make(b.Take());
  for (int i = 0; i < 5; ++i) {
    TestStep step(1);
    std::thread canceller([&] {
      Env::Real().SleepForNanos(i * 300'000);
      step.cancellation.Cancel(Cancelled("enough"));
    });
    EXPECT_EQ(RunStep(*executor, step.Args(), GetParam()), Cancelled("enough"));
    canceller.join();
  }
}

// _Send and _Recv in a loop: each iteration has its own key.
TEST_P(ExecutorFlowTest, EachIterationSendsUnderItsOwnKey) {
  const auto key = [&](const char* type) {
    Attrs attrs = {{"tensor_name", "x"},
                   {"send_device", task_.device->name()},
                   {"send_device_incarnation", 1},
                   {"recv_device", task_.device->name()}};
    attrs[type] = DType::kInt64;
    return attrs;
  };
  FlowBuilder b;
  const auto results = b.For({"loop"}, b.Feed(0), {b.Sum("TestSum", {})}, [&](const Values& v) {
    b.Call("_Send", {v[0]}, key("T"));
    const Endpoint received = b.Call("_Recv", {}, key("tensor_type"));
    return Values{b.Sum("TestSum", {v[1], received})};
  });
  b.Fetch(results[0], 0);
  EXPECT_EQ(Run(b, {500}, 1), StrCat(499 * 250));
}

TEST_P(ExecutorFlowTest, LoopsThatAreNotWellFormed) {
  const Attrs t = {{"T", DType::kInt64}};
  const Attrs enter = {{"T", DType::kInt64}, {"frame_name", "f"}};
  {
    TestGraph g;
    g.Add("Exit", {g.Feed(0)}, t, {}, "exit");
    EXPECT_THAT(task_.TryMake(g.Take()).status().ToString(),
                HasSubstr("'exit' (Exit) is outside of any loop"));
  }
  {
    TestGraph g;
    Node* const inside = g.Add("Enter", {g.Feed(0)}, enter, {}, "inside");
    g.AddSum("TestSum", {inside, g.Add("TestPass", {g.Feed(1)}, t, {}, "outside")});
    EXPECT_THAT(task_.TryMake(g.Take()).status().ToString(),
                HasSubstr("has inputs from different frames. The input 'inside' is in frame 'f'. "
                          "The input 'outside' is outside of loops."));
  }
  {
    TestGraph g;
    Node* const inside = g.Add("Enter", {g.Feed(0)}, enter);
    g.AddSum("TestSum", {g.Add("NextIteration", {inside}, t, {}, "next")});
    EXPECT_THAT(task_.TryMake(g.Take()).status().ToString(),
                HasSubstr("'next' (NextIteration) must lead to a Merge of its own loop"));
  }
  {
    // The Exit is in the loop's body, and gets a value in each iteration. That is an error only if
    // there is more than one iteration.
    FlowBuilder b;
    Node* taken = nullptr;
    b.For({"loop"}, b.Feed(0), {}, [&](const Values& v) {
      taken = v[0].node;
      return Values{};
    });
    b.graph().Fetch(b.graph().Add("Exit", {taken}, t), 0);
    EXPECT_THAT(Run(b, {1}, 1), testing::StrEq("0"));
  }
  {
    FlowBuilder b;
    Node* taken = nullptr;
    b.For({"loop"}, b.Feed(0), {}, [&](const Values& v) {
      taken = v[0].node;
      return Values{};
    });
    b.graph().Fetch(b.graph().Add("Exit", {taken}, t), 0);
    EXPECT_THAT(Run(b, {2}, 1), HasSubstr("loop 'loop' is left twice"));
  }
}

}  // namespace
}  // namespace penstock
