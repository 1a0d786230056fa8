// SPDX-License-Identifier: Apache-2.0
//
// Tests callables and partial runs of a client's session.
#include "core/wire/tensor_proto.h"
#include "distributed/rpc/testing/scripted_master.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const CallableSpec kSpec = {.feeds = {"x:0", "y:0"}, .fetches = {"s:0"}, .targets = {"log"}};

class RemoteCallableTest : public testing::Test {
 protected:
  // Makes a callable of kSpec. The master answers with handle 7.
  int64_t Make() {
    tensorflow::MakeCallableResponse made;
    made.set_handle(7);
    master_.make_callable.Say(made);
    const auto callable = session_->MakeCallable(kSpec);
    CHECK_OK(callable.status());
    return *callable;
  }
  Status Run(int64_t callable, const RunOptions& options = {}) {
    return session_->RunCallable(callable, options, feeds_, &outputs_, nullptr);
  }
  void AnswerRuns(int tensors) {
    tensorflow::RunCallableResponse response;
    for (int i = 0; i < tensors; ++i) {
      CHECK_OK(TensorToProto(Tensor::Scalar(5.0f + i), response.add_fetch()));
    }
    master_.run_callable.Say(response);
  }

  ScriptedMaster master_;
  std::unique_ptr<SessionInterface> session_ = master_.NewSession();
  std::vector<Tensor> feeds_ = {Tensor::Scalar(1.0f), Tensor::Scalar(2.0f)};
  std::vector<Tensor> outputs_;
};

TEST_F(RemoteCallableTest, ARequestToMakeItHasItsFeedsAndFetches) {
  EXPECT_EQ(Make(), 7);
  const tensorflow::MakeCallableRequest request = master_.make_callable.request(0);
  EXPECT_EQ(request.session_handle(), ScriptedMaster::kHandle);
  EXPECT_THAT(request.options().feed(), ElementsAre("x:0", "y:0"));
  EXPECT_THAT(request.options().fetch(), ElementsAre("s:0"));
  EXPECT_THAT(request.options().target(), ElementsAre("log"));
  EXPECT_NE(request.request_id(), 0);
}

TEST_F(RemoteCallableTest, RunsWithFeedsByPosition) {
  const int64_t callable = Make();
  AnswerRuns(1);
  ASSERT_EQ(Run(callable), OkStatus());
  const tensorflow::RunCallableRequest request = master_.run_callable.request(0);
  EXPECT_EQ(request.session_handle(), ScriptedMaster::kHandle);
  EXPECT_EQ(request.handle(), 7);
  EXPECT_NE(request.request_id(), 0);
  ASSERT_EQ(request.feed_size(), 2);
  EXPECT_EQ(TensorFromProto(request.feed(1))->scalar<float>(), 2);
  ASSERT_EQ(outputs_.size(), 1u);
  EXPECT_EQ(outputs_[0].scalar<float>(), 5);
}

// The protocol has no options for a single run of a callable.
TEST_F(RemoteCallableTest, ARunWithOptionsGoesByName) {
  const int64_t callable = Make();
  tensorflow::RunStepResponse response;
  response.add_tensor()->set_name("s:0");
  CHECK_OK(TensorToProto(Tensor::Scalar(9.0f), response.mutable_tensor(0)->mutable_tensor()));
  master_.run_step.Say(response);
  ASSERT_EQ(Run(callable, {.timeout_ms = 1'000}), OkStatus());
  EXPECT_EQ(master_.run_callable.calls(), 0);
  const tensorflow::RunStepRequest request = master_.run_step.request(0);
  EXPECT_EQ(request.options().timeout_in_ms(), 1'000);
  EXPECT_THAT(request.fetch(), ElementsAre("s:0"));
  EXPECT_THAT(request.target(), ElementsAre("log"));
  ASSERT_EQ(request.feed_size(), 2);
  EXPECT_EQ(request.feed(1).name(), "y:0");
  EXPECT_EQ(outputs_[0].scalar<float>(), 9);
}

TEST_F(RemoteCallableTest, FeedsAreCountedBeforeAnythingIsSent) {
  const int64_t callable = Make();
  feeds_.pop_back();
  EXPECT_EQ(Run(callable), InvalidArgument("expected 2 feeds, got 1"));
  EXPECT_EQ(master_.run_callable.calls(), 0);
}

TEST_F(RemoteCallableTest, AnUnknownHandleIsRefusedByTheClient) {
  EXPECT_THAT(std::string(Run(8).message()), HasSubstr("callable 8 was never made"));
  const int64_t callable = Make();
  ASSERT_EQ(session_->ReleaseCallable(callable), OkStatus());
  EXPECT_EQ(master_.release_callable.request(0).handle(), 7);
  EXPECT_EQ(Run(callable).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(master_.run_callable.calls(), 0);
}

TEST_F(RemoteCallableTest, ACallableThatCouldNotBeMadeIsUnknown) {
  master_.make_callable.Fail(grpc::NOT_FOUND, "no node 'x'");
  EXPECT_EQ(session_->MakeCallable(kSpec).status(), NotFound("no node 'x'"));
  EXPECT_EQ(Run(0).code(), StatusCode::kInvalidArgument);
}

TEST_F(RemoteCallableTest, AnAnswerWithAnotherNumberOfTensorsIsTheMastersFault) {
  const int64_t callable = Make();
  for (const int tensors : {0, 2}) {
    AnswerRuns(tensors);
    EXPECT_EQ(
        Run(callable),
        Internal(master_.target(), ": the answer is broken: asked for 1 tensors, got ", tensors));
    EXPECT_TRUE(outputs_.empty());
  }
}

TEST_F(RemoteCallableTest, AnErrorOfTheCallNamesTheMasterAndTheStep) {
  const int64_t callable = Make();
  master_.run_callable.Fail(grpc::UNAVAILABLE, "reset");
  EXPECT_EQ(Run(callable),
            Unavailable(master_.target(), ", running a step of 's:0', 'log': reset"));
  master_.run_callable.Fail(grpc::OUT_OF_RANGE, "end of input");
  EXPECT_EQ(Run(callable), OutOfRange("end of input"));
}

class RemotePartialRunTest : public testing::Test {
 protected:
  ScriptedMaster master_;
  std::unique_ptr<SessionInterface> session_ = master_.NewSession();
  std::vector<Tensor> outputs_;
};

TEST_F(RemotePartialRunTest, SetUpSendsAllFeedsAndFetches) {
  tensorflow::PartialRunSetupResponse begun;
  begun.set_partial_run_handle("p1");
  master_.set_up_partial_run.Say(begun);
  const auto handle = session_->SetUpPartialRun(kSpec);
  ASSERT_TRUE(handle.ok()) << handle.status();
  EXPECT_EQ(*handle, "p1");
  const tensorflow::PartialRunSetupRequest request = master_.set_up_partial_run.request(0);
  EXPECT_EQ(request.session_handle(), ScriptedMaster::kHandle);
  EXPECT_THAT(request.feed(), ElementsAre("x:0", "y:0"));
  EXPECT_THAT(request.fetch(), ElementsAre("s:0"));
  EXPECT_THAT(request.target(), ElementsAre("log"));
  EXPECT_NE(request.request_id(), 0);
}

TEST_F(RemotePartialRunTest, AnInstalmentNamesItsRun) {
  ASSERT_EQ(session_->RunPartial("p1", {.timeout_ms = 500}, {{"x:0", Tensor::Scalar(1.0f)}}, {},
                                 &outputs_),
            OkStatus());
  const tensorflow::RunStepRequest request = master_.run_step.request(0);
  EXPECT_EQ(request.partial_run_handle(), "p1");
  EXPECT_EQ(request.options().timeout_in_ms(), 500);
  ASSERT_EQ(request.feed_size(), 1);
  EXPECT_EQ(request.feed(0).name(), "x:0");
}

// A request for a callable without a handle would run an ordinary step.
TEST_F(RemotePartialRunTest, AnInstalmentWithoutAHandleIsNotSent) {
  EXPECT_EQ(session_->RunPartial("", {}, {}, {"s:0"}, &outputs_).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(master_.run_step.calls(), 0);
}

TEST_F(RemotePartialRunTest, AFailedSetUpIsReported) {
  master_.set_up_partial_run.Fail(grpc::INVALID_ARGUMENT, "'s' is not there");
  EXPECT_EQ(session_->SetUpPartialRun(kSpec).status(), InvalidArgument("'s' is not there"));
}

}  // namespace
}  // namespace penstock
