// SPDX-License-Identifier: Apache-2.0
//
// Tests requests that name a callable or a partial run by its handle, and clients that go away
// while they wait.
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "core/base/testing/eventually.h"
#include "core/runtime/testing/test_ops.h"
#include "distributed/rpc/testing/step_service_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using tensorflow::error::DEADLINE_EXCEEDED;
using tensorflow::error::INVALID_ARGUMENT;
using testing::HasSubstr;
using Stub = MasterClient::Stub;

class CallableTest : public StepServiceTest {
 protected:
  tensorflow::MakeCallableRequest MakeRequest(const Output& fetch) {
    tensorflow::MakeCallableRequest request;
    request.set_session_handle(client_.handle());
    request.mutable_options()->add_fetch(fetch.name());
    return request;
  }
  grpc::Status Make(const tensorflow::MakeCallableRequest& request) {
    return client_.Send(&Stub::MakeCallable, request, &made_);
  }
  // Makes a callable that feeds x_ and fetches sum_.
  void MakeSum() {
    tensorflow::MakeCallableRequest request = MakeRequest(sum_);
    request.mutable_options()->add_feed(x_.name());
    ASSERT_TRUE(Make(request).ok());
  }
  // Returns a request to run the callable with this many feeds.
  tensorflow::RunCallableRequest RunRequest(int feeds) {
    tensorflow::RunCallableRequest request;
    request.set_session_handle(client_.handle());
    request.set_handle(made_.handle());
    for (int i = 0; i < feeds; ++i) *request.add_feed() = FedStep().feed(0).tensor();
    return request;
  }
  grpc::Status RunCallable(const tensorflow::RunCallableRequest& request) {
    return client_.Send(&Stub::RunCallable, request, &ran_);
  }

  tensorflow::MakeCallableResponse made_;
  tensorflow::RunCallableResponse ran_;
};

TEST_F(CallableTest, HandlesThatWereNeverGivenAreRefused) {
  MakeSum();
  for (const int64_t handle : {int64_t{0}, int64_t{-1}, int64_t{1} << 62, made_.handle() + 1}) {
    tensorflow::RunCallableRequest request = RunRequest(1);
    request.set_handle(handle);
    const grpc::Status status = RunCallable(request);
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
    EXPECT_EQ(status.error_message(),
              StrCat("callable ", handle, " was never made or has been released"));
    tensorflow::ReleaseCallableRequest release;
    release.set_session_handle(client_.handle());
    release.set_handle(handle);
    tensorflow::ReleaseCallableResponse released;
    EXPECT_EQ(client_.Send(&Stub::ReleaseCallable, release, &released).error_code(),
              grpc::INVALID_ARGUMENT);
  }
}

TEST_F(CallableTest, BelongsToItsSession) {
  MakeSum();
  MasterClient other(cluster_->target());
  ASSERT_TRUE(other.Create(g_.graph()).ok());
  tensorflow::RunCallableRequest request = RunRequest(1);
  request.set_session_handle(other.handle());
  EXPECT_EQ(RunCallable(request).error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_TRUE(RunCallable(RunRequest(1)).ok());
}

TEST_F(CallableTest, FeedsAreCounted) {
  MakeSum();
  for (const int feeds : {0, 2}) {
    const grpc::Status status = RunCallable(RunRequest(feeds));
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
    EXPECT_EQ(status.error_message(), StrCat("expected 1 feeds, got ", feeds));
  }
}

TEST_F(CallableTest, AFeedThatIsNoTensorIsNamedByItsPlace) {
  MakeSum();
  tensorflow::RunCallableRequest request = RunRequest(1);
  request.mutable_feed(0)->set_tensor_content("123");
  const grpc::Status status = RunCallable(request);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("feed 0: "));
}

TEST_F(CallableTest, UnknownNamesAreRefused) {
  const std::function<void(tensorflow::CallableOptions*)> changes[] = {
      [](auto* o) { o->add_feed("nope:0"); },   [](auto* o) { o->add_fetch("nope:0"); },
      [](auto* o) { o->add_target("nope"); },   [](auto* o) { o->add_fetch("nope:-1"); },
      [](auto* o) { o->add_fetch("^nope:0"); },
  };
  for (const auto& change : changes) {
    tensorflow::MakeCallableRequest request = MakeRequest(sum_);
    change(request.mutable_options());
    const grpc::Status status = Make(request);
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.error_message(), HasSubstr("nope"));
  }
}

TEST_F(CallableTest, AFeedIsNamedOnce) {
  tensorflow::MakeCallableRequest request = MakeRequest(sum_);
  request.mutable_options()->add_feed(x_.name());
  request.mutable_options()->add_feed(x_.name());
  const grpc::Status status = Make(request);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr(x_.name()));
}

TEST_F(CallableTest, ConnectionsOfTensorsAreNotSupported) {
  tensorflow::MakeCallableRequest request = MakeRequest(sum_);
  request.mutable_options()->add_tensor_connection();
  EXPECT_EQ(Make(request).error_code(), grpc::UNIMPLEMENTED);
}

TEST_F(CallableTest, ARepeatedRequestIsRefused) {
  tensorflow::MakeCallableRequest make = MakeRequest(sum_);
  make.mutable_options()->add_feed(x_.name());
  make.set_request_id(static_cast<int64_t>(Env::Real().RandomU64() | 1));
  ASSERT_TRUE(Make(make).ok());
  EXPECT_EQ(Make(make).error_code(), grpc::ABORTED);
  tensorflow::RunCallableRequest run = RunRequest(1);
  run.set_handle(1);
  run.set_request_id(static_cast<int64_t>(Env::Real().RandomU64() | 1));
  EXPECT_TRUE(RunCallable(run).ok());
  EXPECT_EQ(RunCallable(run).error_code(), grpc::ABORTED);
}

TEST_F(CallableTest, ItsOptionsApplyToEachRun) {
  tensorflow::MakeCallableRequest request = MakeRequest(block_);
  request.mutable_options()->mutable_run_options()->set_timeout_in_ms(50);
  ASSERT_TRUE(Make(request).ok());
  const grpc::Status status = RunCallable(RunRequest(0));
  EXPECT_EQ(status.error_code(), grpc::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("TestStall")) << "the server's words";
}

class PartialRunTest : public StepServiceTest {
 protected:
  // Sets up a partial run that feeds x_ and fetches sum_ and block_.
  grpc::Status SetUpRun(const std::string& other_feed = "") {
    tensorflow::PartialRunSetupRequest request;
    request.set_session_handle(client_.handle());
    request.add_feed(x_.name());
    if (!other_feed.empty()) request.add_feed(other_feed);
    request.add_fetch(sum_.name());
    request.add_fetch(block_.name());
    tensorflow::PartialRunSetupResponse response;
    const grpc::Status status = client_.Send(&Stub::PartialRunSetup, request, &response);
    run_ = response.partial_run_handle();
    return status;
  }
  tensorflow::RunStepRequest Part(tensorflow::RunStepRequest request) {
    request.set_partial_run_handle(run_);
    return request;
  }
  // Ends a run that a test leaves unfinished.
  void End() {
    tensorflow::RunStepRequest request = Part(client_.Step(block_.name()));
    request.mutable_options()->set_timeout_in_ms(1);
    ExpectRefused(request, DEADLINE_EXCEEDED, "");
  }

  std::string run_;
};

TEST_F(PartialRunTest, HandlesThatWereNeverGivenAreRefused) {
  for (const std::string handle : {"nope", "0", "0000000000000000", "\n"}) {
    run_ = handle;
    ExpectRefused(Part(FedStep()), INVALID_ARGUMENT, StrCat("'", handle, "' is no partial run"));
  }
}

TEST_F(PartialRunTest, BelongsToItsSession) {
  ASSERT_TRUE(SetUpRun().ok());
  MasterClient other(cluster_->target());
  ASSERT_TRUE(other.Create(g_.graph()).ok());
  tensorflow::RunStepRequest request = Part(FedStep());
  request.set_session_handle(other.handle());
  ExpectRefused(request, INVALID_ARGUMENT, "is no partial run");
  End();
}

// --max_steps_in_flight: a partial run counts as one step from its set-up to its end.
TEST_F(PartialRunTest, CountsAsAStepInFlight) {
  ServerOptions options = TestCluster::Quick();
  options.max_steps_in_flight = 1;
  TestCluster limited({{"worker", 1}}, options);
  MasterClient client(limited.target());
  ASSERT_TRUE(client.Create(g_.graph()).ok());
  tensorflow::PartialRunSetupRequest setup;
  setup.set_session_handle(client.handle());
  setup.add_feed(x_.name());
  setup.add_fetch(sum_.name());
  tensorflow::PartialRunSetupResponse begun, second;
  ASSERT_TRUE(client.Send(&Stub::PartialRunSetup, setup, &begun).ok());
  const grpc::Status refused = client.Send(&Stub::PartialRunSetup, setup, &second);
  EXPECT_EQ(refused.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("--max_steps_in_flight=1: session "));
  tensorflow::RunStepRequest whole = client.Step(sum_.name());
  SetFeed(x_.name(), whole.add_feed());
  tensorflow::RunStepResponse answer;
  ASSERT_TRUE(client.Send(&Stub::RunStep, whole, &answer).ok());
  EXPECT_EQ(answer.status_code(), tensorflow::error::RESOURCE_EXHAUSTED);

  tensorflow::RunStepRequest part = whole;
  part.set_partial_run_handle(begun.partial_run_handle());
  answer.Clear();
  ASSERT_TRUE(client.Send(&Stub::RunStep, part, &answer).ok());
  EXPECT_EQ(answer.status_code(), 0) << answer.status_error_message();
  EXPECT_TRUE(limited.Idle());
  EXPECT_TRUE(client.Send(&Stub::PartialRunSetup, setup, &second).ok()) << "the first has ended";
}

TEST_F(PartialRunTest, SetUpRefusesUnknownNames) {
  const grpc::Status status = SetUpRun("nope:0");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.error_message(), HasSubstr("nope:0"));
}

TEST_F(PartialRunTest, ATensorIsFedAndFetchedOnceAndOnlyIfItWasAnnounced) {
  ASSERT_TRUE(SetUpRun().ok());
  tensorflow::RunStepRequest other = Part(client_.Step(""));
  SetFeed("Placeholder:7", other.add_feed());
  ExpectRefused(other, INVALID_ARGUMENT, "Placeholder:7 was not specified");
  ExpectRefused(Part(client_.Step("nope")), INVALID_ARGUMENT, "nope was not specified");
  tensorflow::RunStepRequest twice = Part(FedStep());
  *twice.add_feed() = twice.feed(0);
  ExpectRefused(twice, INVALID_ARGUMENT, "has already been fed");

  Run(Part(FedStep()));
  EXPECT_EQ(answer_.status_code(), 0) << answer_.status_error_message();
  ExpectRefused(Part(FedStep()), INVALID_ARGUMENT, "has already been fed");
  ExpectRefused(Part(client_.Step(sum_.name())), INVALID_ARGUMENT, "has already been fetched");
  End();
}

TEST_F(PartialRunTest, ATraceIsRefused) {
  ASSERT_TRUE(SetUpRun().ok());
  tensorflow::RunStepRequest request = Part(FedStep());
  request.mutable_options()->set_trace_level(tensorflow::RunOptions::FULL_TRACE);
  ExpectRefused(request, tensorflow::error::UNIMPLEMENTED,
                "has neither a trace nor partition graphs");
  End();
}

// Clients disconnect, or stop waiting. Then no client needs the step, so it must end; TearDown
// checks that it has.
class ClientThatLeavesTest : public CallableTest {
 protected:
  void LeaveDuring(const std::function<grpc::Status(Stub&, grpc::ClientContext*)>& call) {
    grpc::ClientContext context;
    std::thread leaver([&] {
      EXPECT_TRUE(AwaitStalled());
      context.TryCancel();
    });
    EXPECT_EQ(call(client_.stub(), &context).error_code(), grpc::CANCELLED);
    leaver.join();
  }
};

TEST_F(ClientThatLeavesTest, EndsItsStep) {
  LeaveDuring([this](Stub& stub, grpc::ClientContext* context) {
    return stub.RunStep(context, client_.Step(block_.name()), &answer_);
  });
}

TEST_F(ClientThatLeavesTest, EndsItsCallable) {
  ASSERT_TRUE(Make(MakeRequest(block_)).ok());
  LeaveDuring([this](Stub& stub, grpc::ClientContext* context) {
    return stub.RunCallable(context, RunRequest(0), &ran_);
  });
}

}  // namespace
}  // namespace penstock
