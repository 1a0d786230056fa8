// SPDX-License-Identifier: Apache-2.0
//
// Tests the handler that traces one task, with a simulated clock: when it gives up, and what it
// refuses. distributed/trace_test.cc tests traces of whole clusters.
#include "distributed/rpc/trace_calls.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/sim/sim_env.h"
#include "core/base/sim/sim_scheduler.h"
#include "core/graph/builder.h"
#include "distributed/sim/sim_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSecondNanos = 1'000'000'000;

wire::TraceRequest Request(int64_t steps, int64_t timeout_ms) {
  wire::TraceRequest request;
  request.set_steps(steps);
  request.set_timeout_ms(timeout_ms);
  return request;
}

class TraceCallsTest : public testing::Test {
 protected:
  TraceCallsTest() {
    const Output x = CallIn(g_, "Placeholder", {}, {{"dtype", DType::kFloat}});
    fed_ = x.name();
    fetched_ = Call("Neg", {x}).name();
    CHECK_OK(g_.status());
  }
  void InCluster(const std::function<void(SimCluster&, const TraceServices&)>& story) {
    CHECK_OK(scheduler_.Run([&] {
      SimCluster cluster(scheduler_, env_, {{"worker", 2}});
      story(cluster, {.task = &cluster.task("worker", 0), .env = &env_, .threads = &scheduler_});
    }));
  }
  std::unique_ptr<SessionInterface> Session(SimCluster& cluster) {
    auto session = cluster.NewSession("client", "worker", 0);
    CHECK_OK(session->Extend(g_.graph()));
    return session;
  }
  void Run(SessionInterface& session) {
    std::vector<Tensor> out;
    CHECK_OK(session.Run({}, {{fed_, Tensor::Scalar(1.f)}}, {fetched_}, {}, &out, nullptr));
  }
  // Traces on a thread, while `meanwhile` runs. Returns the trace, and stores in `took_ns_` how
  // long it took.
  StatusOr<wire::TaskTrace> Trace(const TraceServices& services, const wire::TraceRequest& request,
                                  Cancellation& cancellation,
                                  const std::function<void()>& meanwhile) {
    StatusOr<wire::TaskTrace> trace = Internal("has not ended");
    const int64_t begun_ns = env_.NowNanos();
    auto thread = scheduler_.StartThread("trace", [&] {
      trace = TraceTask(services, request, &cancellation);
      took_ns_ = env_.NowNanos() - begun_ns;
    });
    meanwhile();
    thread = nullptr;
    return trace;
  }

  SimScheduler scheduler_{{.seed = 1}};
  SimEnv env_{scheduler_, Env::Real()};
  GraphBuilder g_;
  std::string fed_, fetched_;
  int64_t took_ns_ = 0;
};

TEST_F(TraceCallsTest, RefusesWhatIsOutOfRange) {
  InCluster([&](SimCluster&, const TraceServices& services) {
    Cancellation cancellation;
    const auto error = [&](int64_t steps, int64_t timeout_ms) {
      const auto trace = TraceTask(services, Request(steps, timeout_ms), &cancellation);
      EXPECT_EQ(trace.status().code(), StatusCode::kInvalidArgument);
      return std::string(trace.status().message());
    };
    EXPECT_THAT(error(0, 1000), HasSubstr("steps: 0, expected 1 to"));
    EXPECT_THAT(error(StepRecorder::kStepsMax + 1, 1000), HasSubstr("steps: "));
    EXPECT_THAT(error(1, 0), HasSubstr("timeout_ms: 0, expected 1 to 3600000"));
    EXPECT_THAT(error(1, kTraceTimeoutMsMax + 1), HasSubstr("timeout_ms: 3600001"));
  });
}

TEST_F(TraceCallsTest, ATaskWithoutSessionsAnswersAtOnce) {
  InCluster([&](SimCluster&, const TraceServices& services) {
    Cancellation cancellation;
    const int64_t begun_ns = env_.NowNanos();
    const auto trace = TraceTask(services, Request(3, 60'000), &cancellation);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->sessions(), 0);
    EXPECT_EQ(trace->step_size(), 0);
    EXPECT_EQ(env_.NowNanos(), begun_ns);
  });
}

TEST_F(TraceCallsTest, RecordsNothingIfOnlyTransportsAreAskedFor) {
  InCluster([&](SimCluster& cluster, const TraceServices& services) {
    const auto session = Session(cluster);
    Run(*session);
    Cancellation cancellation;
    wire::TraceRequest request = Request(0, 60'000);
    request.set_roads_only(true);
    const int64_t begun_ns = env_.NowNanos();
    const auto trace = TraceTask(services, request, &cancellation);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->step_size(), 0);
    EXPECT_EQ(env_.NowNanos(), begun_ns);
  });
}

TEST_F(TraceCallsTest, EndsWithTheLastStepThatIsWanted) {
  InCluster([&](SimCluster& cluster, const TraceServices& services) {
    const auto session = Session(cluster);
    Cancellation cancellation;
    const auto trace = Trace(services, Request(2, 60'000), cancellation, [&] {
      for (int i = 0; i < 4; ++i) {
        scheduler_.SleepUntil(env_.NowNanos() + kSecondNanos / 10);
        Run(*session);
      }
    });
    ASSERT_TRUE(trace.ok()) << trace.status();
    ASSERT_EQ(trace->step_size(), 2);
    EXPECT_EQ(trace->step(0).fetch(0), fetched_);
    EXPECT_LE(trace->step(0).end_ns(), trace->step(1).start_ns());
    EXPECT_EQ(trace->cut(), "");
    EXPECT_LT(took_ns_, kTraceIdleNanos);
  });
}

TEST_F(TraceCallsTest, GivesUpWhenNoStepRuns) {
  InCluster([&](SimCluster& cluster, const TraceServices& services) {
    const auto session = Session(cluster);
    Cancellation cancellation;
    const auto trace = Trace(services, Request(5, 60'000), cancellation, [&] {
      scheduler_.SleepUntil(env_.NowNanos() + kSecondNanos);
      Run(*session);
    });
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->step_size(), 1);
    EXPECT_EQ(trace->cut(), "no more ran for 3 s");
    EXPECT_GE(took_ns_, kSecondNanos + kTraceIdleNanos - kSecondNanos / 5);
    EXPECT_LT(took_ns_, 10 * kSecondNanos);
  });
}

TEST_F(TraceCallsTest, GivesUpAfterItsTimeout) {
  InCluster([&](SimCluster& cluster, const TraceServices& services) {
    const auto session = Session(cluster);
    Cancellation cancellation;
    const auto trace = Trace(services, Request(100, 2'000), cancellation, [&] {
      for (int i = 0; i < 10; ++i) {
        scheduler_.SleepUntil(env_.NowNanos() + kSecondNanos / 2);
        Run(*session);
      }
    });
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->cut(), "the others did not end in time");
    EXPECT_LT(trace->step_size(), 10);
    EXPECT_LT(took_ns_, 3 * kSecondNanos);
  });
}

TEST_F(TraceCallsTest, EndsSoonAfterItIsCancelled) {
  InCluster([&](SimCluster& cluster, const TraceServices& services) {
    const auto session = Session(cluster);
    Cancellation cancellation;
    const auto trace = Trace(services, Request(5, 60'000), cancellation, [&] {
      scheduler_.SleepUntil(env_.NowNanos() + kSecondNanos);
      cancellation.Cancel(Cancelled("the operator has gone"));
    });
    EXPECT_EQ(trace.status().code(), StatusCode::kCancelled);
    EXPECT_LT(took_ns_, 2 * kSecondNanos);
  });
}

TEST_F(TraceCallsTest, OnlyOneTraceAtATime) {
  InCluster([&](SimCluster& cluster, const TraceServices& services) {
    const auto session = Session(cluster);
    Cancellation cancellation;
    const auto trace = Trace(services, Request(1, 60'000), cancellation, [&] {
      scheduler_.SleepUntil(env_.NowNanos() + kSecondNanos);
      Cancellation other;
      EXPECT_EQ(TraceTask(services, Request(1, 1'000), &other).status().code(),
                StatusCode::kResourceExhausted);
      Run(*session);
    });
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->step_size(), 1);
  });
}

}  // namespace
}  // namespace penstock
