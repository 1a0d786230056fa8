// SPDX-License-Identifier: Apache-2.0
//
// Tests Insight's TraceCluster, which traces the steps of all clients of a running cluster.
#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "core/graph/builder.h"
#include "distributed/insight/traced_rows.h"
#include "distributed/insight/words.h"
#include "distributed/rpc/ask_cluster.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPs[] = "/job:ps/replica:0/task:0";

// Runs `step` repeatedly, on a thread, until this object is destroyed.
class Repeated {
 public:
  explicit Repeated(std::function<void()> step)
      : thread_([this, step = std::move(step)] {
          while (!stop_) step();
        }) {}
  ~Repeated() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// The parameter server computes a product of a matrix that clients feed at their worker.
class TraceTest : public testing::Test {
 protected:
  TraceTest() {
    fed_ = CallIn(g_, "Placeholder", {},
                  {{"dtype", DType::kFloat}, {"shape", PartialShape({-1, 10})}});
    const auto ps = g_.DeviceScope("/job:ps");
    product_ = Call("MatMul", {fed_, fed_});
    CHECK_OK(g_.status());
  }
  std::unique_ptr<SessionInterface> Session(int task) {
    auto session = cluster_.NewSession({}, "worker", task);
    CHECK_OK(session->Extend(g_.graph()));
    return session;
  }
  Status Run(SessionInterface& session, const RunOptions& options = {},
             RunMetadata* metadata = nullptr) {
    std::vector<Tensor> out;
    const Tensor value(DType::kFloat, Shape({10, 10}));
    return session.Run(options, {{fed_.name(), value}}, {product_.name()}, {}, &out, metadata);
  }

  TestCluster cluster_{{{"ps", 1}, {"worker", 2}}};
  GraphBuilder g_;
  Output fed_, product_;
};

TEST_F(TraceTest, RecordsTheStepsOfAllMastersWhateverTheirClientsDo) {
  const auto first = Session(0), second = Session(1);
  CHECK_OK(Run(*first));
  CHECK_OK(Run(*second));
  StatusOr<ClusterTrace> trace = Internal("");
  {
    const Repeated a([&] { CHECK_OK(Run(*first)); });
    const Repeated b([&] { CHECK_OK(Run(*second)); });
    trace = AskTrace(cluster_.target("ps"), 5, 30'000);
  }
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->asked, kPs);
  ASSERT_EQ(trace->masters.size(), 3u);
  EXPECT_EQ(trace->masters[0].task, kPs);
  EXPECT_EQ(trace->masters[0].sessions, 0);
  ASSERT_EQ(trace->steps.size(), 10u);
  const auto clocks = CompareClocks(*trace);
  ASSERT_EQ(clocks.size(), 3u);
  for (const auto& [task, clock] : clocks) {
    EXPECT_GE(clock.error_ns, 0) << task;
    // All tasks really have the same clock.
    EXPECT_LE(std::abs(clock.offset_ns), clock.error_ns) << task;
  }
  AlignTimes(clocks, &*trace);
  constexpr int64_t kRoundingNanos = 3'000;  // wall clocks are read in whole microseconds
  for (const ClusterTrace::Step& step : trace->steps) {
    const int64_t error_ns =
        clocks.at(kPs).error_ns + clocks.at(step.master).error_ns + kRoundingNanos;
    EXPECT_EQ(step.fetches[0], product_.name());
    const TracedRows rows(step);
    ASSERT_EQ(rows.transfers().size(), 2u) << "there and back";
    for (const TracedTransfer& transfer : rows.transfers()) {
      EXPECT_NE(transfer.send, TracedTransfer::kNone);
      EXPECT_EQ(transfer.bytes, 400);
      EXPECT_EQ((trace->protocols[{TaskOfDevice(transfer.from), TaskOfDevice(transfer.to)}]),
                "shm");
    }
    bool product = false;
    for (const TracedRow& row : rows.rows()) {
      if (row.stats->op != "MatMul") continue;
      product = true;
      EXPECT_EQ(rows.DeviceOf(row), StrCat(kPs, "/device:CPU:0"));
      EXPECT_GE(row.stats->start_ns, row.stats->scheduled_ns);
      EXPECT_LE(row.stats->end_ns, step.end_ns + error_ns);
    }
    EXPECT_TRUE(product);
  }
}

TEST_F(TraceTest, AClientsOwnTraceIsComplete) {
  const auto session = Session(0);
  RunMetadata traced, plain;
  StatusOr<ClusterTrace> trace = Internal("");
  {
    std::atomic<int> runs{0};
    const Repeated a([&] {
      CHECK_OK(Run(*session, {.trace = true}, &traced));
      CHECK_OK(Run(*session, {}, &plain));
      ++runs;
    });
    while (runs == 0) std::this_thread::yield();
    trace = AskTrace(cluster_.target(), 4, 30'000);
  }
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->steps.size(), 4u);
  EXPECT_FALSE(traced.step_stats.empty());
  EXPECT_TRUE(plain.step_stats.empty()) << "nobody but the operator asked";
}

// A step of one task in the client's process runs on the client's thread, without a MasterStep.
TEST(LocalTraceTest, RecordsStepsOfOneTaskInTheClientsProcess) {
  TestCluster cluster({{"worker", 1}}, TestCluster::Direct());
  GraphBuilder g;
  const Output a = CallIn(g, "Placeholder", {}, {{"dtype", DType::kFloat}});
  const Output b = Call("Neg", {a});
  CHECK_OK(g.status());
  const auto session = cluster.NewSession();
  CHECK_OK(session->Extend(g.graph()));
  StatusOr<ClusterTrace> trace = Internal("");
  {
    const Repeated steps([&] {
      std::vector<Tensor> out;
      CHECK_OK(session->Run({}, {{a.name(), Tensor::Vector<float>({1, 2})}}, {b.name()}, {}, &out,
                            nullptr));
    });
    trace = AskTrace(cluster.target(), 3, 30'000);
  }
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->steps.size(), 3u);
  for (const ClusterTrace::Step& step : trace->steps) {
    EXPECT_LE(step.start_ns, step.end_ns);
    const TracedRows rows(step);
    EXPECT_TRUE(std::any_of(rows.rows().begin(), rows.rows().end(),
                            [](const TracedRow& row) { return row.stats->op == "Neg"; }));
  }
}

TEST_F(TraceTest, StepsThatDoNotComeAreNotWaitedForForEver) {
  auto trace = AskTrace(cluster_.target(), 5, 30'000);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->steps, IsEmpty()) << "there is no session";
  const auto session = Session(0);
  CHECK_OK(Run(*session));
  trace = AskTrace(cluster_.target(), 5, 100);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->steps, IsEmpty());
  EXPECT_EQ(trace->masters[1].cut, "the others did not end in time");
}

TEST_F(TraceTest, EndsWithItsCallerAndThenAnotherOneMayBegin) {
  const auto session = Session(0);
  CHECK_OK(Run(*session));
  Cancellation cancellation;
  Status ended;
  // The first trace is started again if it is refused because of a second one, or ends because
  // no step runs.
  std::thread first([&] {
    while (!absl::IsCancelled(ended)) {
      ended = AskTrace(cluster_.target(), 5, 60'000, &cancellation).status();
    }
  });
  // The second trace is refused while the first runs.
  Status refused;
  while (!absl::IsResourceExhausted(refused)) refused = AskTrace(cluster_.target(), 5, 1).status();
  EXPECT_THAT(refused.message(), HasSubstr("being traced already"));
  cancellation.Cancel(Cancelled("enough"));
  first.join();
  EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
  StatusOr<ClusterTrace> next = Internal("");
  do {
    next = AskTrace(cluster_.target(), 5, 1);
  } while (absl::IsResourceExhausted(next.status()));
  EXPECT_TRUE(next.ok()) << next.status();
}

TEST_F(TraceTest, ATaskThatDoesNotAnswerIsNamed) {
  const auto session = Session(0);
  CHECK_OK(Run(*session));
  cluster_.Stop("worker", 1);
  StatusOr<ClusterTrace> trace = Internal("");
  {
    const Repeated a([&] { (void)Run(*session); });
    trace = AskTrace(cluster_.target(), 3, 1'000);
  }
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_TRUE(absl::IsUnavailable(trace->masters[2].status)) << trace->masters[2].status;
}

TEST_F(TraceTest, NumbersOutOfRangeAreNamed) {
  const auto status = AskTrace(cluster_.target(), 0, 1'000).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("steps: 0, expected 1 to 1000"));
  EXPECT_THAT(AskTrace(cluster_.target(), 1, 0).status().message(), HasSubstr("timeout_ms: 0"));
}

}  // namespace
}  // namespace penstock
