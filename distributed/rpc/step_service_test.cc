// SPDX-License-Identifier: Apache-2.0
//
// Tests malformed or malicious requests for steps: each is refused with an error that says what is
// wrong, and the session still works. Callables, partial runs and clients that go away are in
// step_service_handle_test.cc.
#include "distributed/rpc/testing/step_service_test.h"

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using tensorflow::error::INVALID_ARGUMENT;
using testing::HasSubstr;
using Stub = MasterClient::Stub;

TEST_F(StepServiceTest, EveryMethodRefusesASessionThatIsNotThere) {
  const auto expect_refused = [&](auto method, auto request, auto response) {
    for (const std::string handle : {"", "nope", "\n\xc3\xa9"}) {
      request.set_session_handle(handle);
      EXPECT_EQ(client_.Send(method, request, &response).error_message(),
                StrCat("Session ", handle, " is not found."));
    }
  };
  expect_refused(&Stub::RunStep, tensorflow::RunStepRequest(), tensorflow::RunStepResponse());
  expect_refused(&Stub::PartialRunSetup, tensorflow::PartialRunSetupRequest(),
                 tensorflow::PartialRunSetupResponse());
  expect_refused(&Stub::MakeCallable, tensorflow::MakeCallableRequest(),
                 tensorflow::MakeCallableResponse());
  expect_refused(&Stub::RunCallable, tensorflow::RunCallableRequest(),
                 tensorflow::RunCallableResponse());
  expect_refused(&Stub::ReleaseCallable, tensorflow::ReleaseCallableRequest(),
                 tensorflow::ReleaseCallableResponse());
}

TEST_F(StepServiceTest, BytesThatAreNoRequestAreRefused) {
  const std::string step = FedStep().SerializeAsString();
  std::vector<std::string> all = {"\xff\xff\xff\xff", "\x12\x7f", std::string(100'000, '\xff')};
  for (size_t length = 1; length < step.size(); ++length) all.push_back(step.substr(0, length));
  for (const std::string& bytes : all) {
    for (const char* method : {"RunStep", "RunCallable"}) {
      const grpc::Status status = client_.SendBytes(method, bytes);
      const int code = status.error_code();
      // A prefix of a request may be a valid message that lacks the handle of the session or of the
      // callable.
      EXPECT_TRUE(code == grpc::INVALID_ARGUMENT || code == grpc::ABORTED || code == grpc::OK)
          << method << ": " << status.error_message();
    }
  }
  EXPECT_EQ(client_.SendBytes("RunStep", "\xff\xff\xff\xff").error_message(), "malformed message");
  EXPECT_EQ(client_.SendBytes("RunCallable", "\x12\x7f").error_message(), "malformed message");
}

TEST_F(StepServiceTest, FeedsThatAreNoTensorsAreRefusedByName) {
  using tensorflow::TensorProto;
  const std::function<void(TensorProto*)> changes[] = {
      [](TensorProto* t) { t->clear_dtype(); },
      [](TensorProto* t) { t->set_dtype(static_cast<tensorflow::DataType>(999)); },
      [](TensorProto* t) { t->set_dtype(static_cast<tensorflow::DataType>(-1)); },
      [](TensorProto* t) { t->set_dtype(tensorflow::DT_FLOAT_REF); },
      [](TensorProto* t) { t->set_dtype(tensorflow::DT_RESOURCE); },
      [](TensorProto* t) { t->set_dtype(tensorflow::DT_STRING); },
      [](TensorProto* t) { t->mutable_tensor_shape()->add_dim()->set_size(-2); },
      [](TensorProto* t) { t->mutable_tensor_shape()->add_dim()->set_size(-1); },
      [](TensorProto* t) { t->mutable_tensor_shape()->set_unknown_rank(true); },
      [](TensorProto* t) {
        for (int i = 0; i < 4; ++i) t->mutable_tensor_shape()->add_dim()->set_size(1 << 30);
      },
      [](TensorProto* t) {
        for (int i = 0; i < 1'000; ++i) t->mutable_tensor_shape()->add_dim()->set_size(1);
      },
      [](TensorProto* t) { t->set_tensor_content("123"); },
      [](TensorProto* t) { t->set_tensor_content(std::string(100'000, 'x')); },
  };
  int index = 0;
  for (const auto& change : changes) {
    tensorflow::RunStepRequest request = FedStep();
    change(request.mutable_feed(0)->mutable_tensor());
    SCOPED_TRACE(index++);
    ExpectRefused(request, INVALID_ARGUMENT, "'Placeholder:0'");
  }
}

TEST_F(StepServiceTest, AFeedHasATensor) {
  tensorflow::RunStepRequest request = FedStep();
  request.mutable_feed(0)->clear_tensor();
  ExpectRefused(request, INVALID_ARGUMENT, "feed 'Placeholder:0': there is no tensor");
}

TEST_F(StepServiceTest, FeedsOfAnotherTypeAreRefused) {
  tensorflow::RunStepRequest request = FedStep();
  request.mutable_feed(0)->mutable_tensor()->set_dtype(tensorflow::DT_INT32);
  request.mutable_feed(0)->mutable_tensor()->add_int_val(1);
  ExpectRefused(request, INVALID_ARGUMENT, "'Placeholder:0'");
}

TEST_F(StepServiceTest, ATensorIsFedOnce) {
  tensorflow::RunStepRequest request = FedStep();
  SetFeed(x_.name(), request.add_feed());
  ExpectRefused(request, INVALID_ARGUMENT, "Placeholder:0");
  request.mutable_feed(1)->set_name("Placeholder");
  ExpectRefused(request, INVALID_ARGUMENT, "Placeholder");
}

TEST_F(StepServiceTest, ErrorsQuoteUnknownNames) {
  for (const std::string name :
       {"nope", "nope:0", "Placeholder:1", "Placeholder:-1", "Placeholder:99999999999999999999",
        "Placeholder:0:0", "^Placeholder", ":0", " "}) {
    SCOPED_TRACE(name);
    tensorflow::RunStepRequest request = FedStep();
    request.add_fetch(name);
    Run(request);
    EXPECT_NE(answer_.status_code(), 0);
    EXPECT_THAT(answer_.status_error_message(), HasSubstr(name));

    request = FedStep();
    SetFeed(name, request.add_feed());
    Run(request);
    EXPECT_NE(answer_.status_code(), 0);
    EXPECT_THAT(answer_.status_error_message(), HasSubstr(name));
  }
  for (const std::string name : {"nope", "Placeholder:7", "^nope", ":0", " "}) {
    SCOPED_TRACE(name);
    tensorflow::RunStepRequest request = FedStep();
    request.add_target(name);
    Run(request);
    EXPECT_NE(answer_.status_code(), 0);
    EXPECT_THAT(answer_.status_error_message(), HasSubstr(name));
  }
}

TEST_F(StepServiceTest, AStepWithoutFetchesAndTargetsIsRefused) {
  ExpectRefused(client_.Step(""), INVALID_ARGUMENT, "");
}

TEST_F(StepServiceTest, AFetchMayBeAskedForTwice) {
  tensorflow::RunStepRequest request = FedStep();
  request.add_fetch(sum_.name());
  Run(request);
  EXPECT_EQ(answer_.status_code(), 0) << answer_.status_error_message();
  EXPECT_EQ(answer_.tensor_size(), 2);
}

// There are more fetches than a polling thread writes itself.
TEST_F(StepServiceTest, ThousandsOfFetchesAreAnswered) {
  tensorflow::RunStepRequest request = FedStep();
  for (int i = 1; i < 3'000; ++i) request.add_fetch(sum_.name());
  Run(request);
  EXPECT_EQ(answer_.status_code(), 0) << answer_.status_error_message();
  EXPECT_EQ(answer_.tensor_size(), 3'000);
}

TEST_F(StepServiceTest, UnknownOptionsAreIgnored) {
  tensorflow::RunStepRequest request = FedStep();
  request.mutable_options()->set_trace_level(static_cast<tensorflow::RunOptions::TraceLevel>(77));
  const auto* const reflection = request.options().GetReflection();
  reflection->MutableUnknownFields(request.mutable_options())->AddVarint(12'345, 1);
  Run(request);
  EXPECT_EQ(answer_.status_code(), 0) << answer_.status_error_message();
  request.clear_options();
  Run(request);
  EXPECT_EQ(answer_.status_code(), 0) << answer_.status_error_message();
}

}  // namespace
}  // namespace penstock
