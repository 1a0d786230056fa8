// SPDX-License-Identifier: Apache-2.0
//
// StepServiceTest: the fixture for tests of a master's answers to requests for steps. It checks
// after each test that no step is left, and that the session still works.
#pragma once

#include <string>

#include "core/graph/builder.h"
#include "distributed/rpc/testing/master_client.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {

class StepServiceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = new TestCluster({{"worker", 1}}); }
  static void TearDownTestSuite() { delete cluster_; }

  // Builds the graph: sum_ is x_ + x_; block_ ends only when its step is cancelled.
  void SetUp() override {
    x_ = CallIn(g_, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape()}});
    sum_ = x_ + x_;
    block_ = CallIn(g_, "TestStall", {Outputs{}});
    CHECK_OK(g_.status());
    ASSERT_TRUE(client_.Create(g_.graph()).ok());
  }
  void TearDown() override {
    EXPECT_TRUE(cluster_->Idle()) << "a step is left";
    tensorflow::RunStepRequest request = FedStep();
    Run(request);
    EXPECT_EQ(answer_.status_code(), 0)
        << "the session does not go on: " << answer_.status_error_message();
  }

  // Writes a feed of the value 21.
  static void SetFeed(const std::string& name, tensorflow::NamedTensorProto* feed) {
    feed->set_name(name);
    feed->mutable_tensor()->set_dtype(tensorflow::DT_FLOAT);
    feed->mutable_tensor()->add_float_val(21);
  }
  // Returns a correct request, with all feeds.
  tensorflow::RunStepRequest FedStep() {
    tensorflow::RunStepRequest request = client_.Step(sum_.name());
    SetFeed(x_.name(), request.add_feed());
    return request;
  }
  void Run(const tensorflow::RunStepRequest& request) {
    answer_.Clear();
    const grpc::Status status = client_.Send(&MasterClient::Stub::RunStep, request, &answer_);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  void ExpectRefused(const tensorflow::RunStepRequest& request, int code, const std::string& text) {
    Run(request);
    EXPECT_EQ(answer_.status_code(), code) << text << ": " << answer_.status_error_message();
    EXPECT_THAT(answer_.status_error_message(), testing::HasSubstr(text));
    EXPECT_EQ(answer_.tensor_size(), 0);
  }

  static inline TestCluster* cluster_ = nullptr;
  MasterClient client_{cluster_->target()};
  GraphBuilder g_;
  Output x_, sum_, block_;
  tensorflow::RunStepResponse answer_;
};
}  // namespace penstock
