// SPDX-License-Identifier: Apache-2.0
//
// Tests the steps of a client's session: the requests, and the results of each kind of
// answer. Callables and partial runs are in remote_session_callable_test.cc.
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <semaphore>
#include <thread>

#include "absl/strings/cord.h"
#include "core/wire/tensor_proto.h"
#include "distributed/calls/status_proto.h"
#include "distributed/rpc/testing/scripted_master.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using tensorflow::RunStepRequest;
using tensorflow::RunStepResponse;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::chrono::seconds kRunSoon(30);
constexpr char kOf[] = ", running a step of ";

void AddTensor(const std::string& name, float value, RunStepResponse* response) {
  tensorflow::NamedTensorProto* const tensor = response->add_tensor();
  tensor->set_name(name);
  CHECK_OK(TensorToProto(Tensor::Scalar(value), tensor->mutable_tensor()));
}

class RemoteSessionRunTest : public testing::Test {
 protected:
  Status Run(const std::vector<std::string>& fetches, const RunOptions& options = {},
             RunMetadata* metadata = nullptr) {
    return session_->Run(options, {}, fetches, {}, &outputs_, metadata);
  }
  // Returns the timeout that the client gives the server for a step.
  std::chrono::milliseconds TimeGiven(const RunOptions& options) {
    std::chrono::milliseconds given(0);
    master_.run_step.Do([&](grpc::ServerContext& context, auto&, auto*) {
      given = std::chrono::duration_cast<std::chrono::milliseconds>(
          context.deadline() - std::chrono::system_clock::now());
      return grpc::Status::OK;
    });
    EXPECT_EQ(Run({}, options), OkStatus());
    return given;
  }

  ScriptedMaster master_;
  std::unique_ptr<SessionInterface> session_ = master_.NewSession();
  std::vector<Tensor> outputs_;
};

TEST_F(RemoteSessionRunTest, ARequestHasTheNamesAndOptionsOfTheStep) {
  ASSERT_EQ(session_->Run({.timeout_ms = 1'234, .trace = true, .partition_graphs = true},
                          {{"x:0", Tensor::Scalar(3.0f)}, {"y", Tensor::Vector<float>({1, 2})}}, {},
                          {"init", "train"}, &outputs_, nullptr),
            OkStatus());
  const RunStepRequest request = master_.run_step.request(0);
  EXPECT_EQ(request.session_handle(), ScriptedMaster::kHandle);
  ASSERT_EQ(request.feed_size(), 2);
  EXPECT_EQ(request.feed(0).name(), "x:0");
  EXPECT_EQ(TensorFromProto(request.feed(0).tensor())->scalar<float>(), 3);
  EXPECT_EQ(request.feed(1).name(), "y");
  EXPECT_EQ(TensorFromProto(request.feed(1).tensor())->flat<float>()[1], 2);
  EXPECT_THAT(request.target(), ElementsAre("init", "train"));
  EXPECT_EQ(request.options().timeout_in_ms(), 1'234);
  EXPECT_EQ(request.options().trace_level(), tensorflow::RunOptions::FULL_TRACE);
  EXPECT_TRUE(request.options().output_partition_graphs());
  EXPECT_EQ(request.partial_run_handle(), "");
}

// A master recognises a repeated request by its request id.
TEST_F(RemoteSessionRunTest, EachStepHasAnIdOfItsOwn) {
  ASSERT_EQ(Run({}), OkStatus());
  ASSERT_EQ(Run({}), OkStatus());
  EXPECT_NE(master_.run_step.request(0).request_id(), 0);
  EXPECT_NE(master_.run_step.request(0).request_id(), master_.run_step.request(1).request_id());
}

TEST_F(RemoteSessionRunTest, OutputsComeInTheOrderOfTheFetches) {
  RunStepResponse response;
  AddTensor("b:0", 2, &response);
  AddTensor("a", 1, &response);
  master_.run_step.Say(response);
  ASSERT_EQ(Run({"b:0", "a"}), OkStatus());
  EXPECT_THAT(master_.run_step.request(0).fetch(), ElementsAre("b:0", "a"));
  ASSERT_EQ(outputs_.size(), 2u);
  EXPECT_EQ(outputs_[0].scalar<float>(), 2);
  EXPECT_EQ(outputs_[1].scalar<float>(), 1);
}

TEST_F(RemoteSessionRunTest, ALargeTensorIsFedAndFetched) {
  constexpr int64_t kElements = 4 << 20;
  Tensor large = *Tensor::Make(CpuAllocator(), DType::kFloat, *Shape::Make({kElements}));
  std::iota(large.mutable_flat<float>().begin(), large.mutable_flat<float>().end(), 0.0f);
  master_.run_step.Do([](auto&, const RunStepRequest& request, RunStepResponse* response) {
    *response->add_tensor() = request.feed(0);
    return grpc::Status::OK;
  });
  ASSERT_EQ(session_->Run({}, {{"x:0", large}}, {"x:0"}, {}, &outputs_, nullptr), OkStatus());
  ASSERT_EQ(outputs_.size(), 1u);
  ASSERT_EQ(outputs_[0].bytes(), large.bytes());
  EXPECT_EQ(std::memcmp(outputs_[0].raw_data(), large.raw_data(), large.bytes()), 0);
}

TEST_F(RemoteSessionRunTest, AnErrorInTheBodyIsTheSteps) {
  RunStepResponse response;
  response.set_status_code(tensorflow::error::OUT_OF_RANGE);
  response.set_status_error_message("end of input");
  AddTensor("a:0", 1, &response);
  master_.run_step.Say(response);
  EXPECT_EQ(Run({"a:0"}), OutOfRange("end of input")) << "word for word";
  EXPECT_TRUE(master_.run_step.request(0).store_errors_in_response_body());
  EXPECT_TRUE(outputs_.empty());
}

TEST_F(RemoteSessionRunTest, PayloadsOfAnErrorComeInTheTrailers) {
  Status failed = OutOfRange("end of input");
  failed.SetPayload("node", absl::Cord("read"));
  master_.run_step.Do([&](grpc::ServerContext& context, auto&, RunStepResponse* response) {
    context.AddTrailingMetadata(kPayloadsKey, PayloadBytes(failed));
    response->set_status_code(tensorflow::error::OUT_OF_RANGE);
    response->set_status_error_message("end of input");
    return grpc::Status::OK;
  });
  EXPECT_EQ(Run({"a:0"}), failed);
}

TEST_F(RemoteSessionRunTest, AnErrorOfTheCallNamesTheMasterAndTheStep) {
  master_.run_step.Fail(grpc::UNAVAILABLE, "reset");
  EXPECT_EQ(Run({"a:0", "b:0"}), Unavailable(master_.target(), kOf, "'a:0', 'b:0': reset"));
  EXPECT_EQ(session_->Run({}, {}, {"a:0", "b:0"}, {"init", "train"}, &outputs_, nullptr),
            Unavailable(master_.target(), kOf, "'a:0', 'b:0', 'init' and 1 more: reset"));
  EXPECT_EQ(Run({}), Unavailable(master_.target(), ": reset"));
}

TEST_F(RemoteSessionRunTest, AnUnknownStatusCodeIsAnError) {
  RunStepResponse response;
  response.set_status_code(static_cast<tensorflow::error::Code>(-7));
  master_.run_step.Say(response);
  EXPECT_EQ(Run({}).code(), StatusCode::kUnknown);
}

TEST_F(RemoteSessionRunTest, AnAnswerThatDoesNotFitIsTheMastersFault) {
  struct Case {
    std::function<void(RunStepResponse*)> change;
    std::string text;
  };
  const Case cases[] = {
      {[](auto* r) { r->clear_tensor(); }, "asked for 2 tensors, got 0"},
      {[](auto* r) { r->mutable_tensor()->RemoveLast(); }, "asked for 2 tensors, got 1"},
      {[](auto* r) { AddTensor("c:0", 3, r); }, "asked for 2 tensors, got 3"},
      {[](auto* r) { r->mutable_tensor()->SwapElements(0, 1); }, "asked for 'a:0', got 'b:0'"},
      {[](auto* r) {
         r->mutable_tensor(1)->mutable_tensor()->set_dtype(static_cast<tensorflow::DataType>(999));
       },
       "fetch 'b:0'"},
      {[](auto* r) { r->mutable_tensor(1)->mutable_tensor()->set_tensor_content("123"); },
       "fetch 'b:0'"},
      {[](auto* r) { r->GetReflection()->MutableUnknownFields(r)->AddLengthDelimited(1, "\xff"); },
       "malformed message"},
  };
  for (const Case& c : cases) {
    RunStepResponse response;
    AddTensor("a:0", 1, &response);
    AddTensor("b:0", 2, &response);
    c.change(&response);
    master_.run_step.Say(response);
    const Status status = Run({"a:0", "b:0"});
    EXPECT_EQ(status.code(), StatusCode::kInternal) << c.text << ": " << status;
    EXPECT_THAT(std::string(status.message()),
                StartsWith(master_.target() + ": the answer is broken: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.text));
    EXPECT_TRUE(outputs_.empty());
  }
}

// The master may know ops that this process does not.
TEST_F(RemoteSessionRunTest, AnUnreadableGraphFailsOnlyStepsThatAskForGraphs) {
  RunStepResponse response;
  response.mutable_metadata()->add_partition_graphs()->add_node()->set_op("NoSuchOp");
  master_.run_step.Say(response);
  EXPECT_EQ(Run({}), OkStatus());
  RunMetadata metadata;
  const std::string text(Run({}, {}, &metadata).message());
  EXPECT_THAT(text, StartsWith(master_.target() + ": metadata: "));
  EXPECT_THAT(text, HasSubstr("NoSuchOp"));
}

TEST_F(RemoteSessionRunTest, MetadataIsThatOfTheLastStep) {
  RunStepResponse response;
  response.mutable_metadata()->mutable_step_stats()->add_dev_stats()->set_device("/device:CPU:0");
  response.mutable_metadata()->add_partition_graphs();
  master_.run_step.Say(response);
  RunMetadata metadata;
  ASSERT_EQ(Run({}, {}, &metadata), OkStatus());
  ASSERT_EQ(metadata.step_stats.size(), 1u);
  EXPECT_EQ(metadata.step_stats[0].device, "/device:CPU:0");
  EXPECT_EQ(metadata.partition_graphs.size(), 1u);
  master_.run_step.Say({});
  ASSERT_EQ(Run({}, {}, &metadata), OkStatus());
  EXPECT_TRUE(metadata.step_stats.empty());
  EXPECT_TRUE(metadata.partition_graphs.empty());
}

// The timeout of the call is three seconds longer than the timeout of the step, so that the master
// has time to report how the step has ended.
TEST_F(RemoteSessionRunTest, ACallMayTakeALittleLongerThanItsStep) {
  using std::chrono::hours, std::chrono::seconds;
  const auto given = TimeGiven({.timeout_ms = 20'000});
  EXPECT_GT(given, seconds(22));
  EXPECT_LE(given, seconds(24));
  EXPECT_GT(TimeGiven({}), hours(23)) << "a day, if nothing was said";
  session_ = master_.NewSession({.operation_timeout_ms = 40'000});
  const auto by_session = TimeGiven({});
  EXPECT_GT(by_session, seconds(42));
  EXPECT_LE(by_session, seconds(44));
  EXPECT_EQ(master_.run_step.request(-1).options().timeout_in_ms(), 40'000);
}

TEST_F(RemoteSessionRunTest, AStepThatIsCancelledBeforeItBeginsHasNoResult) {
  Cancellation cancellation;
  cancellation.Cancel(Cancelled("had enough"));
  EXPECT_EQ(Run({}, {.cancellation = &cancellation}), Cancelled("had enough"));
}

// The master answers steps only when the test releases them.
class HeldStepTest : public RemoteSessionRunTest {
 protected:
  HeldStepTest() {
    master_.run_step.Do([this](auto&, auto&, auto*) {
      came_.release();
      EXPECT_TRUE(released_.try_acquire_for(kRunSoon));
      return grpc::Status::OK;
    });
  }
  // Runs a step, calls `end` while the master holds it, and returns the step's status.
  Status RunUntil(const RunOptions& options, const std::function<void()>& end) {
    Status status;
    std::thread client([&] { status = Run({"a:0"}, options); });
    EXPECT_TRUE(came_.try_acquire_for(kRunSoon));
    end();
    client.join();
    released_.release();
    return status;
  }

  std::counting_semaphore<> came_{0}, released_{0};
};

TEST_F(HeldStepTest, ACancellationEndsTheCallWithItsReason) {
  Cancellation cancellation;
  EXPECT_EQ(RunUntil({.cancellation = &cancellation},
                     [&] { cancellation.Cancel(Aborted("had enough")); }),
            Aborted("had enough"));
}

TEST_F(HeldStepTest, AMasterThatIsLostIsNamed) {
  std::thread stopper;
  const Status status = RunUntil({}, [&] { stopper = std::thread([&] { master_.Stop(); }); });
  stopper.join();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith(master_.target() + kOf + "'a:0': "));
}

}  // namespace
}  // namespace penstock
