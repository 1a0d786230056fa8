// SPDX-License-Identifier: Apache-2.0
//
// Tests Batcher and RowExchange under a simulated clock: sizes, time limits, cancellation.
#include "kernels/batching/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/base/sim/sim_env.h"
#include "core/base/sim/sim_scheduler.h"
#include "kernels/batching/batch_rows.h"
#include "kernels/batching/row_exchange.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kStart = 1'000'000'000;  // of the simulated clock

// Runs `body` with a simulated clock and simulated threads; afterwards all operations and threads
// must have ended.
void Simulate(const std::function<void(SimScheduler&, SimEnv&)>& body) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimScheduler threads({.seed = seed});
    SimEnv env(threads, Env::Real());
    const Status status = threads.Run([&] { body(threads, env); });
    ASSERT_TRUE(status.ok()) << status;
  }
}

// Records the rows of each batch; the results are the inputs. A batch takes `cost_ns`, or less if
// it is cancelled.
struct Log {
  std::vector<std::string> batches;
  int64_t cost_ns = 0;
  int running = 0, running_max = 0;
};
class Echo final : public BatchWork {
 public:
  Echo(SimScheduler& threads, Log& log, int kind = 0) : threads_(threads), log_(log), kind_(kind) {}
  bool CanShareBatch(const BatchWork& other) const override {
    return static_cast<const Echo&>(other).kind_ == kind_;
  }
  void Run(std::shared_ptr<Batcher> batcher, std::shared_ptr<Batcher::Batch> batch) const override {
    std::string rows;
    for (const auto& part : batch->parts) {
      for (const float row : part.Rows(0).flat<float>())
        rows += StrCat(rows.empty() ? "" : " ", row);
    }
    log_.batches.push_back(rows);
    log_.running_max = std::max(log_.running_max, ++log_.running);
    const int64_t end_ns = threads_.now_ns() + log_.cost_ns;
    while (threads_.now_ns() < end_ns && !batch->cancellation.cancelled()) {
      threads_.SleepUntil(std::min(end_ns, threads_.now_ns() + kMs));
    }
    --log_.running;
    std::vector<std::vector<Tensor>> results;
    for (const auto& part : batch->parts) results.push_back({part.Rows(0)});
    if (rows.find("13") != std::string::npos) {
      return batcher->End(batch, InvalidArgument("unlucky"), {});
    }
    batcher->End(batch, batch->cancellation.status(), std::move(results));
  }

 private:
  SimScheduler& threads_;
  Log& log_;
  const int kind_;
};

// The steps of a test.
struct Steps {
  struct Step {
    Cancellation cancellation;
    std::string result = "waits";
    int64_t ended_ns = -1;
  };
  Steps(SimScheduler& threads, SimEnv& env, BatchOptions options)
      : threads(threads), batcher(*Batcher::Make("b", std::move(options), threads, env)) {}
  // Adds the rows first, first + 1, ...
  Step& Add(float first, int64_t rows = 1, int kind = 0, const std::string& queue = "") {
    auto request = std::make_shared<Batcher::Request>();
    std::vector<float> values;
    for (int64_t i = 0; i < rows; ++i) values.push_back(first + static_cast<float>(i));
    request->inputs = {Tensor::Vector(values)};
    request->rows = rows;
    request->queue = queue;
    request->work = std::make_shared<Echo>(threads, log, kind);
    Step& step = *steps.emplace_back(std::make_unique<Step>());
    request->cancellation = &step.cancellation;
    request->deliver = [this, &step](const Status& status, const std::vector<Tensor>& results) {
      EXPECT_EQ(step.ended_ns, -1) << "delivered twice";
      step.ended_ns = threads.now_ns();
      step.result = status.ok() ? results[0].ToString() : std::string(status.message());
    };
    batcher->Add(std::move(request));
    return step;
  }
  std::vector<std::string> Results() const {
    std::vector<std::string> results;
    for (const auto& step : steps) results.push_back(step->result);
    return results;
  }

  SimScheduler& threads;
  Log log;
  std::vector<std::unique_ptr<Step>> steps;
  std::shared_ptr<Batcher> batcher;
};

BatchOptions Options(int64_t rows_max, int64_t timeout_ms = 100) {
  return {.rows_max = rows_max,
          .request_rows_max = rows_max,
          .waiting_max = 10,
          .timeout_ns = timeout_ms * kMs};
}

TEST(Batcher, AFullBatchRunsAtOnce) {
  Simulate([](SimScheduler& threads, SimEnv& env) {
    Steps steps(threads, env, Options(3));
    steps.Add(1);
    steps.Add(2, 2);
    threads.SleepUntil(kStart + kMs);
    EXPECT_THAT(steps.log.batches, ElementsAre("1 2 3"));
    EXPECT_THAT(steps.Results(), ElementsAre("float[1] 1", "float[2] 2 3"));
  });
}

TEST(Batcher, ABatchWaitsUntilItsTimeIsOver) {
  Simulate([](SimScheduler& threads, SimEnv& env) {
    Steps steps(threads, env, Options(10));
    Steps::Step& first = steps.Add(1);
    threads.SleepUntil(kStart + 60 * kMs);
    Steps::Step& second = steps.Add(2);
    threads.SleepUntil(kStart + 99 * kMs);
    EXPECT_THAT(steps.Results(), ElementsAre("waits", "waits"));
    threads.SleepUntil(kStart + 300 * kMs);
    EXPECT_THAT(steps.log.batches, ElementsAre("1 2"));
    EXPECT_EQ(first.ended_ns, kStart + 100 * kMs);
    EXPECT_EQ(second.ended_ns, kStart + 100 * kMs);
    steps.Add(3);
    threads.SleepUntil(kStart + 500 * kMs);
    EXPECT_THAT(steps.log.batches, ElementsAre("1 2", "3"));
  });
}

TEST(Batcher, InputsThatDoNotFitTogetherAreApart) {
  Simulate([](SimScheduler& threads, SimEnv& env) {
    BatchOptions options = Options(4);
    options.parallel_max = 5;
    Steps steps(threads, env, options);
    steps.Add(1, 3);
    steps.Add(4, 2);  // too many for the first batch
    steps.Add(6, 1, /*kind=*/1);
    steps.Add(7, 1, 1, "other queue");
    steps.Add(8, 0, 1, "other queue");
    threads.SleepUntil(kStart + kMs * 1000);
    EXPECT_THAT(steps.log.batches, UnorderedElementsAre("1 2 3", "4 5", "6", "7"));
    EXPECT_EQ(steps.Results()[4], "float[0]");
  });
}

TEST(Batcher, LimitsBatchesThatWaitAndBatchesThatRun) {
  Simulate([](SimScheduler& threads, SimEnv& env) {
    BatchOptions options = Options(2);
    options.waiting_max = 2;
    options.parallel_max = 2;
    Steps steps(threads, env, options);
    steps.log.cost_ns = 50 * kMs;
    for (float i = 0; i < 5; ++i) steps.Add(2 * i, 2);
    EXPECT_EQ(steps.Results()[4],
              "The batch scheduling queue to which this task was submitted is full; currently 2 "
              "batches enqueued and max_enqueued_batches is 2");
    steps.Add(0, 3);
    EXPECT_EQ(steps.Results()[5], "Task size 3 is larger than maximum input batch size 2");
    threads.SleepUntil(kStart + 60 * kMs);
    steps.Add(20, 2);
    threads.SleepUntil(kStart + 1000 * kMs);
    EXPECT_THAT(steps.log.batches, UnorderedElementsAre("0 1", "2 3", "4 5", "6 7", "20 21"));
    EXPECT_EQ(steps.log.running_max, 2);
  });
}

TEST(Batcher, SplitsLargeInputs) {
  Simulate([](SimScheduler& threads, SimEnv& env) {
    BatchOptions options = Options(10);
    options.rows_max = 3;
    options.split = true;
    Steps steps(threads, env, options);
    steps.log.cost_ns = kMs;
    steps.Add(1, 2);
    steps.Add(3, 5);
    steps.Add(8, 1);
    threads.SleepUntil(kStart + 1000 * kMs);
    EXPECT_THAT(steps.log.batches, ElementsAre("1 2 3", "4 5 6", "7 8"));
    EXPECT_THAT(steps.Results(), ElementsAre("float[2] 1 2", "float[5] 3 4 5 6 7", "float[1] 8"));
    // An error of one part ends the request; its other part does not run.
    steps.Add(10, 6);
    threads.SleepUntil(kStart + 2000 * kMs);
    EXPECT_EQ(steps.Results()[3], "unlucky");
  });
}

TEST(Batcher, GivesRowsBackToAnAllowedSize) {
  Simulate([](SimScheduler& threads, SimEnv& env) {
    BatchOptions options = Options(4);
    options.allowed = {2, 4};
    options.batch_down = true;
    Steps steps(threads, env, options);
    for (float i = 1; i <= 3; ++i) steps.Add(i);
    threads.SleepUntil(kStart + 1000 * kMs);
    EXPECT_THAT(steps.log.batches, ElementsAre("1 2", "3"));
    steps.Add(4);
    steps.Add(5, 2);  // no whole requests add up to two rows
    threads.SleepUntil(kStart + 2000 * kMs);
    EXPECT_THAT(steps.log.batches, ElementsAre("1 2", "3", "4 5 6"));
    EXPECT_EQ(options.PaddedRows(3), 4);
    EXPECT_THAT(steps.Results()[2], "float[1] 3");
  });
}

TEST(Batcher, ACancelledStepLeavesItsBatch) {
  Simulate([](SimScheduler& threads, SimEnv& env) {
    Steps steps(threads, env, Options(3));
    Steps::Step& first = steps.Add(1, 2);
    steps.Add(3);
    EXPECT_EQ(steps.batcher->DebugString(), "Batcher 'b': 0 rows in 0 batches wait, 1 batches run");
    threads.SleepUntil(kStart + kMs);
    Steps::Step& waits = steps.Add(4, 2);
    waits.cancellation.Cancel(Cancelled("enough"));
    EXPECT_EQ(waits.result, "enough");
    EXPECT_EQ(first.result, "float[2] 1 2");
    steps.Add(6, 3);
    threads.SleepUntil(kStart + 1000 * kMs);
    EXPECT_THAT(steps.log.batches, ElementsAre("1 2 3", "6 7 8"));
    Steps::Step& late = steps.Add(9, 0);
    late.cancellation.Cancel(Cancelled("at once"));
    EXPECT_EQ(late.result, "at once");
  });
}

TEST(Batcher, TheWorkIsCancelledWithItsLastStep) {
  Simulate([](SimScheduler& threads, SimEnv& env) {
    Steps steps(threads, env, Options(2));
    steps.log.cost_ns = 1000 * kMs;
    Steps::Step& a = steps.Add(1);
    Steps::Step& b = steps.Add(2);
    threads.SleepUntil(kStart + 10 * kMs);
    b.cancellation.Cancel(Cancelled("first"));
    EXPECT_EQ(b.ended_ns, kStart + 10 * kMs);
    EXPECT_EQ(a.result, "waits");
    a.cancellation.Cancel(Cancelled("last"));
    threads.SleepUntil(kStart + 20 * kMs);
    EXPECT_THAT(steps.Results(), ElementsAre("last", "first"));
    EXPECT_EQ(steps.log.running, 0);
  });
}

TEST(Batcher, ADroppedBatcherEndsItsSteps) {
  Simulate([](SimScheduler& threads, SimEnv& env) {
    Steps steps(threads, env, Options(2));
    steps.log.cost_ns = 1000 * kMs;
    steps.Add(1, 2);
    steps.Add(3);
    threads.SleepUntil(kStart + 10 * kMs);
    steps.batcher->Shutdown();
    threads.SleepUntil(kStart + 20 * kMs);
    steps.Add(4);
    for (const std::string& result : steps.Results()) EXPECT_EQ(result, "batcher 'b' was dropped");
  });
}

TEST(RowExchange, HandsTensorsOutInTime) {
  Simulate([](SimScheduler& threads, SimEnv& env) {
    const auto exchange = *RowExchange::Make("Unbatch", "u", threads, env);
    Cancellation cancellation;
    std::vector<std::string> log;
    const auto take = [&](std::vector<int64_t> ids, int64_t wait_ns) {
      exchange->Take(
          std::move(ids), wait_ns,
          [&](const std::vector<Tensor>& taken) {
            for (const Tensor& tensor : taken) log.push_back(tensor.ToString());
          },
          &cancellation, Done([&](const Status& status) {
            log.push_back(status.ok() ? "ok" : std::string(status.message()));
          }));
    };
    const auto put = [&](int64_t id, int64_t keep_ns) {
      return exchange->Put({{id, Tensor::Scalar<int64_t>(id)}}, keep_ns, {});
    };
    take({1, 2}, 50 * kMs);
    EXPECT_TRUE(put(2, 10 * kMs).ok());
    EXPECT_THAT(std::string(put(2, 10 * kMs).message()), HasSubstr("rows of id 2 already"));
    EXPECT_THAT(log, ElementsAre());
    EXPECT_TRUE(put(1, 10 * kMs).ok());
    EXPECT_THAT(log, ElementsAre("int64[] 1", "int64[] 2", "ok"));
    log.clear();
    EXPECT_TRUE(put(3, 10 * kMs).ok());
    threads.SleepUntil(kStart + 20 * kMs);
    EXPECT_EQ(exchange->DebugString(),
              "Unbatch 'u': keeps 0 tensors for other steps, 0 steps wait");
    take({3}, 30 * kMs);
    threads.SleepUntil(kStart + 49 * kMs);
    EXPECT_THAT(log, ElementsAre());
    threads.SleepUntil(kStart + 51 * kMs);
    EXPECT_THAT(log, ElementsAre("Batched data did not arrive within timeout window."));
    take({4}, 30 * kMs);
    cancellation.Cancel(Cancelled("enough"));
    EXPECT_EQ(log.back(), "enough");
  });
}

TEST(RowExchange, KeepsALimitedNumberOfTensors) {
  Simulate([](SimScheduler& threads, SimEnv& env) {
    const auto exchange = *RowExchange::Make("Unbatch", "u", threads, env);
    std::vector<std::pair<int64_t, Tensor>> many;
    for (int64_t id = 0; id < RowExchange::kTensorsMax; ++id) many.emplace_back(id, Tensor());
    EXPECT_TRUE(exchange->Put(std::move(many), kMs, {}).ok());
    EXPECT_EQ(exchange->Put({{-1, Tensor()}}, kMs, {}).code(), StatusCode::kResourceExhausted);
    threads.SleepUntil(kStart + 2 * kMs);
    EXPECT_TRUE(exchange->Put({{-1, Tensor()}}, kMs, {}).ok());
  });
}

TEST(BatchRows, PadsWithZerosOrRows) {
  const Tensor a = Tensor::Of<int32_t>({1, 2}, {1, 2}),
               b = Tensor::Of<int32_t>({2, 2}, {3, 4, 5, 6});
  EXPECT_EQ(JoinRows({a, b}, 4)->ToString(), "int32[4,2] 1 2 3 4 5 6 0 0");
  EXPECT_EQ(JoinRows({b}, 4, &a)->ToString(), "int32[4,2] 3 4 5 6 1 2 1 2");
  EXPECT_EQ(JoinRows({a, Tensor::Vector<int32_t>({1})}, 2).status().code(),
            StatusCode::kInvalidArgument);
  const Tensor texts = Tensor::Vector<std::string>({"a", "b", "c"});
  EXPECT_EQ(CopyRows(texts, 1, 3)->ToString(), Tensor::Vector<std::string>({"b", "c"}).ToString());
}

}  // namespace
}  // namespace penstock
