// SPDX-License-Identifier: Apache-2.0
//
// Tests partial runs of the client library: in this process, and on a cluster whose worker feeds
// and fetches while a ps computes.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "client/program.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "distributed/testing/test_cluster.h"

namespace penstock::client {
namespace {

Tensor Value(float value) { return Tensor::Scalar(value); }

class PartialRunTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string target, ps;
    if (GetParam()) {
      cluster_ =
          std::make_unique<TestCluster>(std::map<std::string, int>{{"ps", 1}, {"worker", 1}});
      target = cluster_->target();
      ps = "/job:ps/task:0";
    }
    const auto scope = program_.DeviceScope(ps);
    a_ = Placeholder("a");
    b_ = Placeholder("b");
    twice_ = a_ * 2;
    sum_ = twice_ + b_;
    Variable count(program_, "count", {}, Zeros());
    counted_ = count;
    add_ = count.AssignAdd(twice_);
    auto session = Session::New(program_, target, {.operation_timeout_ms = 20'000});
    CHECK_OK(session.status());
    session_ = *std::move(session);
    CHECK_OK(session_->Execute(count.initializer()));
  }
  Output Placeholder(string_view name) {
    return CallIn(program_, "Placeholder", {},
                  {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}}, name);
  }
  StatusOr<PartialRun> Start() {
    return session_->StartPartialRun({a_, b_}, {twice_, sum_}, {add_});
  }
  float Count() { return session_->Fetch(counted_)->scalar<float>(); }

  std::unique_ptr<TestCluster> cluster_;
  Program program_;
  Output a_, b_, twice_, sum_, counted_, add_;
  std::unique_ptr<Session> session_;
};

// Checks that the status is InvalidArgument and contains `words`.
void ExpectMistake(const Status& status, string_view words) {
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), words)) << status;
}

TEST_P(PartialRunTest, WhatIsFedDependsOnWhatWasFetched) {
  for (int i = 1; i <= 3; ++i) {
    auto run = Start();
    ASSERT_TRUE(run.ok()) << run.status();
    const auto first = run->Run({{a_, Value(2)}}, {twice_});
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ((*first)[0].scalar<float>(), 4);
    const auto second = run->Run({{b_, (*first)[0]}}, {sum_});
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_EQ((*second)[0].scalar<float>(), 8);
    // After all feeds and fetches the target has run, and the step has ended.
    EXPECT_EQ(Count(), 4 * i);
    ExpectMistake(run->Run({}, {twice_}).status(), "Must run PartialRunSetup");
  }
}

TEST_P(PartialRunTest, TensorsByNameAndFeedsAloneAndFetchesAlone) {
  auto run = session_->StartPartialRun({"a", "b:0"}, {sum_.name()});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE(run->Run({{"b", Value(5)}}, {}).ok());
  EXPECT_TRUE(run->Run({{"a:0", Value(1)}}, {}).ok());
  const auto sum = run->Run({}, {sum_});
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ((*sum)[0].scalar<float>(), 7);
}

TEST_P(PartialRunTest, MistakesChangeNothing) {
  auto run = Start();
  ASSERT_TRUE(run.ok()) << run.status();
  ExpectMistake(run->Run({{a_, Value(2)}}, {sum_}).status(), "it needs b:0");
  ExpectMistake(run->Run({}, {counted_}).status(), "was not specified in partial_run_setup");
  ExpectMistake(run->Run({{counted_, Value(2)}}, {}).status(),
                "was not specified in partial_run_setup");
  ExpectMistake(run->Run({{a_, Tensor::Scalar<int32_t>(2)}}, {}).status(), "expected float");
  ASSERT_TRUE(run->Run({{a_, Value(3)}}, {twice_}).ok());
  ExpectMistake(run->Run({{a_, Value(3)}}, {}).status(), "has already been fed");
  ExpectMistake(run->Run({{b_, Value(1)}}, {twice_}).status(), "has already been fetched");
  const auto sum = run->Run({{b_, Value(1)}}, {sum_});
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ((*sum)[0].scalar<float>(), 7);
  EXPECT_EQ(Count(), 6);
}

TEST_P(PartialRunTest, WhatTheGraphHasNotCannotBegin) {
  EXPECT_EQ(session_->StartPartialRun({a_}, {"nowhere:0"}).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(session_->StartPartialRun({"nowhere:0"}, {twice_}).ok());
}

TEST_P(PartialRunTest, AFailureEndsTheStep) {
  const Output checked = Call("CheckNumerics", {Call("Log", {a_})}, {{"message", "no logarithm"}});
  auto run = session_->StartPartialRun({a_, b_}, {checked, b_ * 3});
  ASSERT_TRUE(run.ok()) << run.status();
  const auto failed = run->Run({{a_, Value(-1)}}, {checked});
  ExpectMistake(failed.status(), "no logarithm");
  ExpectMistake(run->Run({{b_, Value(1)}}, {}).status(), "Must run PartialRunSetup");
}

// Partial runs that are never completed do not block other steps, and end when the session ends.
TEST_P(PartialRunTest, AbandonedRunsAreInNobodysWay) {
  std::vector<PartialRun> begun;
  for (int i = 0; i < 20; ++i) {
    auto run = Start();
    ASSERT_TRUE(run.ok()) << run.status();
    ASSERT_TRUE(run->Run({{a_, Value(0)}}, {}).ok());
    begun.push_back(*std::move(run));
  }
  begun.resize(10, begun[0]);  // destroys some PartialRun objects, which does not end their steps
  EXPECT_EQ(session_->Fetch(sum_, {{a_, Value(1)}, {b_, Value(1)}})->scalar<float>(), 3);
  const auto late = begun[0].Run({{b_, Value(4)}}, {sum_});
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ((*late)[0].scalar<float>(), 4);
  EXPECT_TRUE(session_->Close().ok());
  EXPECT_EQ(begun[1].Run({{b_, Value(4)}}, {sum_}).status().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_TRUE(cluster_ == nullptr || cluster_->Idle());
}

TEST_P(PartialRunTest, AnInstalmentHasADeadline) {
  const Output queue =
      CallIn(program_, "FIFOQueueV2", {}, {{"component_types", std::vector<DType>{DType::kFloat}}});
  const Output never =
      Call("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{DType::kFloat}}});
  auto run = session_->StartPartialRun({a_}, {never, twice_});
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(run->Run({{a_, Value(1)}}, {twice_}).ok());
  const auto waited = run->Run({}, {never}, {.timeout_ms = 100});
  EXPECT_EQ(waited.status().code(), StatusCode::kDeadlineExceeded) << waited.status();
}

INSTANTIATE_TEST_SUITE_P(Everywhere, PartialRunTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "Cluster" : "Local"; });

}  // namespace
}  // namespace penstock::client
