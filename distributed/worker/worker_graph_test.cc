// SPDX-License-Identifier: Apache-2.0
//
// Tests graphs with several executors. Graphs with one executor are in worker_test.cc.
#include "distributed/worker/worker_graph.h"

#include "core/base/join.h"
#include "core/runtime/testing/test_ops.h"
#include "core/tensor/caching_allocator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// Makes a tensor of `bytes` bytes.
class LargeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("bytes", &bytes_); }
  Status Compute(KernelContext& ctx) override {
    Tensor* y;
    return ctx.Allocate(0, {bytes_}, &y);
  }

 private:
  int64_t bytes_ = 0;
};
OP(TestLarge) {
  return {
      .outputs = {{"y", "uint8"}},
      .attrs = {{"bytes", 0}},
      .stateful = true,
  };
}
KERNEL_DEF({.op = "TestLarge", .make = Make<LargeKernel>});

class WorkerGraphTest : public testing::Test {
 protected:
  void Add(TestGraph g) { parts_.push_back({.executor = task_.Make(g.Take())}); }
  // Adds an executor whose fetch `index` is the executor's number.
  void AddNumber(int index) {
    TestGraph g;
    g.Fetch(g.AddSum("TestSum", {}, {{"plus", index}}), index);
    Add(std::move(g));
  }
  void AddOne(const std::string& op, Attrs attrs = {}) {
    TestGraph g;
    g.AddSum(op, {}, std::move(attrs));
    Add(std::move(g));
  }
  // Adds an executor whose fetch `index` is a tensor of `bytes` bytes.
  void AddLarge(int64_t bytes, int index) {
    TestGraph g;
    Node* const large = *g.graph().AddNode(
        {.name = StrCat("large", index), .op = "TestLarge", .attrs = {{"bytes", bytes}}});
    g.Fetch(large, index);
    Add(std::move(g));
  }
  Status Run(TestStep& step, const MemoryLimits& limits = {}) {
    memory_ = std::make_shared<SessionMemory>("7", limits);
    graph_ =
        std::make_shared<WorkerGraph>(std::move(parts_), std::vector<TaskName>(), false, memory_);
    Wait wait(task_.threads, "the parts of a graph");
    graph_->RunAsync(step.Args(), wait.done());
    return wait.Get();
  }

  TestTask task_;
  std::vector<WorkerGraph::Part> parts_;
  std::shared_ptr<const SessionMemory> memory_;
  std::shared_ptr<WorkerGraph> graph_;
};

// Tests the memory limits of sessions. Only the CachingAllocator charges tensors to accounts, and
// builds with sanitizers have another allocator (core/tensor/system_allocator.h).
class WorkerGraphMemoryTest : public WorkerGraphTest {
 protected:
  void SetUp() override {
    if (&CpuAllocator() != &CachingAllocator::Get()) GTEST_SKIP() << "no account is charged";
    WorkerGraphTest::SetUp();
  }
};

TEST_F(WorkerGraphMemoryTest, TensorsCountForTheSessionUntilTheyAreFreed) {
  AddLarge(1 << 20, 0);
  {
    TestStep step(1);
    ASSERT_EQ(Run(step), OkStatus());
    EXPECT_EQ(memory_->account().in_use(), 1 << 20);
  }
  EXPECT_EQ(memory_->account().in_use(), 0);
}

TEST_F(WorkerGraphMemoryTest, AStepThatNeedsMoreThanItsSessionMayHoldFails) {
  AddLarge(1 << 20, 0);
  AddLarge(2 << 20, 1);
  TestStep step(2);
  const Status status = Run(step, {.session = (2 << 20) + 4096});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("{{node large"), HasSubstr(" bytes on CPU memory: "),
                             HasSubstr("session 7 (--session_memory_limit) may hold 2101248 bytes "
                                       "and holds ")));
}

TEST_F(WorkerGraphMemoryTest, AStepThatNeedsMoreThanStepsMayHoldFails) {
  AddLarge(1 << 20, 0);
  TestStep step(1);
  const Status status = Run(step, {.session = 8 << 20, .step = 1 << 19});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("(--step_memory_limit) may hold 524288 bytes and holds 0"));
}

TEST_F(WorkerGraphTest, RunsAllExecutors) {
  for (int i = 0; i < 3; ++i) AddNumber(i);
  TestStep step(3);
  ASSERT_EQ(Run(step), OkStatus());
  EXPECT_FALSE(graph_->one_part());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step.fetches[i].scalar<int64_t>(), i);
}

TEST_F(WorkerGraphTest, TheFirstFailureEndsAllPartsAndIsTheStatus) {
  AddOne("TestStall");
  AddOne("TestFail", {{"message", "end of input"}});
  AddOne("TestStall");
  TestStep step;
  const Status status = Run(step);
  EXPECT_THAT(std::string(status.message()), HasSubstr("end of input"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("{{node n0}}"));
  EXPECT_EQ(step.cancellation.status(), status);
}

TEST_F(WorkerGraphTest, ACancelledStepIsTheSameForAllParts) {
  AddOne("TestStall");
  AddNumber(0);
  TestStep step(1);
  step.cancellation.Cancel(Unavailable("ps 0 is gone"));
  EXPECT_EQ(Run(step), Unavailable("ps 0 is gone"));
}

// A graph may be deregistered, and its session deleted, while it runs.
TEST_F(WorkerGraphTest, ARunningStepKeepsTheGraph) {
  AddOne("TestStall");
  AddOne("TestStall");
  graph_ = std::make_shared<WorkerGraph>(std::move(parts_), std::vector<TaskName>(), false,
                                         std::make_shared<SessionMemory>("test", MemoryLimits{}));
  TestStep step;
  Wait wait(task_.threads, "the parts of a graph");
  graph_->RunAsync(step.Args(), wait.done());
  const std::weak_ptr<WorkerGraph> weak = graph_;
  graph_ = nullptr;
  EXPECT_FALSE(weak.expired());
  step.cancellation.Cancel(Cancelled("had enough"));
  EXPECT_EQ(wait.Get(), Cancelled("had enough"));
}

TEST_F(WorkerGraphTest, SaysWhatItNeeds) {
  AddNumber(0);
  const std::vector<TaskName> producers = {{"ps", 0, 1}};
  const WorkerGraph graph(std::move(parts_), producers, true,
                          std::make_shared<SessionMemory>("test", MemoryLimits{}));
  EXPECT_TRUE(graph.one_part());
  EXPECT_TRUE(graph.communicates());
  EXPECT_EQ(graph.producers(), producers);
}

}  // namespace
}  // namespace penstock
