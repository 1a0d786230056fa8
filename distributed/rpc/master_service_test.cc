// SPDX-License-Identifier: Apache-2.0
//
// Tests what a TensorFlow client sees on the wire, call by call.
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/graph/builder.h"
#include "core/graph/graph_proto.h"
#include "core/wire/tensor_proto.h"
#include "distributed/rpc/testing/master_client.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/master_service.grpc.pb.h"

namespace penstock {
namespace {

using testing::HasSubstr;

class MasterServiceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = new TestCluster({{"ps", 1}, {"worker", 1}}); }
  static void TearDownTestSuite() { delete cluster_; }

  void SetUp() override {
    client_ = std::make_unique<MasterClient>(cluster_->target());
    {
      const auto ps = g_.DeviceScope("/job:ps/task:0");
      CallIn(g_, "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({})}});
      CallIn(g_, "TestFail", {Outputs{}}, {{"message", std::string(5000, 'e')}});
      CallIn(g_, "TestStall", {Outputs{}});
    }
    const auto worker = g_.DeviceScope("/job:worker/task:0");
    const Output x =
        CallIn(g_, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape()}});
    const Output sum = x + 1.0;
    Call("Identity", {sum});
    sum_ = sum.name().substr(0, sum.name().find(':'));
    CHECK_OK(g_.status());
  }

  grpc::Status Create(const tensorflow::ConfigProto& config = {}) {
    return client_->Create(g_.graph(), config);
  }
  tensorflow::RunStepRequest Step(const std::string& fetch) { return client_->Step(fetch); }
  // Returns a step with a feed in a typed field, as TensorFlow clients send small constants.
  tensorflow::RunStepRequest FedStep(const std::string& fetch) {
    tensorflow::RunStepRequest request = Step(fetch);
    tensorflow::NamedTensorProto* const feed = request.add_feed();
    feed->set_name("Placeholder:0");
    feed->mutable_tensor()->set_dtype(tensorflow::DT_FLOAT);
    feed->mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(2);
    feed->mutable_tensor()->add_float_val(41);
    return request;
  }

  using Stub = MasterClient::Stub;
  template <class... Args>
  grpc::Status Send(const Args&... args) {
    return client_->Send(args...);
  }

  static TestCluster* cluster_;
  std::unique_ptr<MasterClient> client_;
  GraphBuilder g_;
  std::string sum_;  // the name of a node
  tensorflow::RunStepResponse answer_;
};
TestCluster* MasterServiceTest::cluster_ = nullptr;

TEST_F(MasterServiceTest, FetchesHaveTheNamesOfTheRequest) {
  ASSERT_TRUE(Create().ok());
  tensorflow::RunStepRequest request = FedStep("Identity:0");
  request.add_fetch(sum_);
  ASSERT_TRUE(Send(&Stub::RunStep, request, &answer_).ok());
  ASSERT_EQ(answer_.status_code(), 0) << answer_.status_error_message();
  ASSERT_EQ(answer_.tensor_size(), 2);
  EXPECT_EQ(answer_.tensor(0).name(), "Identity:0");
  EXPECT_EQ(answer_.tensor(1).name(), sum_);
  const auto value = TensorFromProto(answer_.tensor(0).tensor());
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(AttrValue(*value), AttrValue(Tensor::Vector<float>({42, 42})));
}

TEST_F(MasterServiceTest, ErrorsOfStepsAreInTheBody) {
  ASSERT_TRUE(Create().ok());
  ASSERT_TRUE(Send(&Stub::RunStep, Step("TestFail:0"), &answer_).ok());
  EXPECT_EQ(answer_.status_code(), tensorflow::error::INVALID_ARGUMENT);
  EXPECT_THAT(answer_.status_error_message(), HasSubstr("\n\t [[{{node TestFail}}]]"));
  EXPECT_GT(answer_.status_error_message().size(), 5000);
  EXPECT_EQ(answer_.tensor_size(), 0);
  // If the client asks for errors in the trailers, they are truncated, because trailers have
  // limited space.
  tensorflow::RunStepRequest request = Step("TestFail:0");
  request.set_store_errors_in_response_body(false);
  const grpc::Status status = Send(&Stub::RunStep, request, &answer_);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr(" ... [truncated]"));
  EXPECT_LT(status.error_message().size(), 3200);
}

TEST_F(MasterServiceTest, ErrorsOfUninitializedVariablesSayUninitialized) {
  ASSERT_TRUE(Create().ok());
  ASSERT_TRUE(Send(&Stub::RunStep, Step("VariableV2:0"), &answer_).ok());
  EXPECT_EQ(answer_.status_code(), tensorflow::error::FAILED_PRECONDITION);
  EXPECT_THAT(answer_.status_error_message(),
              HasSubstr("Attempting to use uninitialized value VariableV2"));
}

TEST_F(MasterServiceTest, UnknownSessions) {
  tensorflow::RunStepRequest run = Step("Identity:0");
  run.set_session_handle("nope");
  ASSERT_TRUE(Send(&Stub::RunStep, run, &answer_).ok());
  EXPECT_EQ(answer_.status_code(), tensorflow::error::ABORTED);
  EXPECT_EQ(answer_.status_error_message(), "Session nope is not found.");
  tensorflow::CloseSessionRequest close;
  close.set_session_handle("nope");
  tensorflow::CloseSessionResponse closed;
  EXPECT_EQ(Send(&Stub::CloseSession, close, &closed).error_code(), grpc::ABORTED);
  tensorflow::ListDevicesRequest list;
  list.set_session_handle("nope");
  tensorflow::ListDevicesResponse listed;
  EXPECT_EQ(Send(&Stub::ListDevices, list, &listed).error_code(), grpc::INVALID_ARGUMENT);
}

TEST_F(MasterServiceTest, ExtensionsNameTheVersionTheyExtend) {
  ASSERT_TRUE(Create().ok());
  const int sent = g_.graph().max_id();
  const Output more = Call("Neg", {g_.OutputOf(g_.graph().FindNode("Identity"))});
  tensorflow::ExtendSessionRequest request;
  request.set_session_handle(client_->handle());
  request.set_current_graph_version(client_->version());
  ExportGraph(g_.graph(), request.mutable_graph_def(), sent);
  tensorflow::ExtendSessionResponse response;
  ASSERT_TRUE(Send(&Stub::ExtendSession, request, &response).ok());
  EXPECT_EQ(response.new_graph_version(), client_->version() + 1);
  ASSERT_TRUE(Send(&Stub::RunStep, FedStep(more.name()), &answer_).ok());
  EXPECT_EQ(answer_.status_code(), 0) << answer_.status_error_message();
  // Sends the same request again: the version is old, and the nodes exist already.
  EXPECT_EQ(Send(&Stub::ExtendSession, request, &response).error_code(), grpc::ABORTED);
  request.set_current_graph_version(client_->version() + 1);
  const grpc::Status twice = Send(&Stub::ExtendSession, request, &response);
  EXPECT_EQ(twice.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(twice.error_message(), HasSubstr("Neg"));
}

TEST_F(MasterServiceTest, ARepeatedRequestIsRefused) {
  ASSERT_TRUE(Create().ok());
  tensorflow::RunStepRequest request = FedStep("Identity:0");
  request.set_request_id(12345);
  ASSERT_TRUE(Send(&Stub::RunStep, request, &answer_).ok());
  EXPECT_EQ(answer_.status_code(), 0);
  ASSERT_TRUE(Send(&Stub::RunStep, request, &answer_).ok());
  EXPECT_EQ(answer_.status_code(), tensorflow::error::ABORTED);
  EXPECT_THAT(answer_.status_error_message(), HasSubstr("received twice"));
}

TEST_F(MasterServiceTest, TimeoutsEndSteps) {
  ASSERT_TRUE(Create().ok());
  tensorflow::RunStepRequest request = Step("TestStall:0");
  request.mutable_options()->set_timeout_in_ms(50);
  ASSERT_TRUE(Send(&Stub::RunStep, request, &answer_).ok());
  EXPECT_EQ(answer_.status_code(), tensorflow::error::DEADLINE_EXCEEDED);
  // The session's timeout applies, too.
  tensorflow::ConfigProto config;
  config.set_operation_timeout_in_ms(50);
  ASSERT_TRUE(Create(config).ok());
  ASSERT_TRUE(Send(&Stub::RunStep, Step("TestStall:0"), &answer_).ok());
  EXPECT_EQ(answer_.status_code(), tensorflow::error::DEADLINE_EXCEEDED);
}

TEST_F(MasterServiceTest, TimeoutsOfAnyLength) {
  constexpr int64_t kLongest = std::numeric_limits<int64_t>::max();
  for (const int64_t ms : {kLongest, kLongest / 1'000'000 + 1, int64_t{-1}, -kLongest - 1}) {
    tensorflow::ConfigProto config;
    config.set_operation_timeout_in_ms(ms);
    const grpc::Status created = Create(config);
    ASSERT_TRUE(created.ok()) << ms << ": " << created.error_message();
    tensorflow::RunStepRequest request = FedStep("Identity:0");
    ASSERT_TRUE(Send(&Stub::RunStep, request, &answer_).ok());
    EXPECT_EQ(answer_.status_code(), 0) << ms << ": " << answer_.status_error_message();
    request.mutable_options()->set_timeout_in_ms(ms);
    ASSERT_TRUE(Send(&Stub::RunStep, request, &answer_).ok());
    EXPECT_EQ(answer_.status_code(), 0) << ms << ": " << answer_.status_error_message();
    tensorflow::CloseSessionRequest close;
    close.set_session_handle(client_->handle());
    tensorflow::CloseSessionResponse closed;
    EXPECT_TRUE(Send(&Stub::CloseSession, close, &closed).ok());
  }
}

// More clients wait than there are threads that create sessions.
TEST_F(MasterServiceTest, ClientsThatWaitForATaskDoNotKeepOthersWaiting) {
  ServerOptions options = TestCluster::Quick();
  options.create_session_timeout_ms = 60'000;
  TestCluster cluster({{"ps", 1}, {"worker", 1}}, options);
  cluster.Stop("ps", 0);
  client_ = std::make_unique<MasterClient>(cluster.target());
  struct Waiting {
    grpc::ClientContext context;
    tensorflow::CreateSessionResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<tensorflow::CreateSessionResponse>> reader;
  };
  tensorflow::CreateSessionRequest request;
  ExportGraph(g_.graph(), request.mutable_graph_def());
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Waiting>> waiting;
  for (int i = 0; i < 100; ++i) {
    waiting.push_back(std::make_unique<Waiting>());
    Waiting& w = *waiting.back();
    w.reader = client_->stub().AsyncCreateSession(&w.context, request, &queue);
    w.reader->Finish(&w.response, &w.status, &w);
  }
  tensorflow::ConfigProto config;
  config.add_device_filters("/job:worker");
  for (int i = 0; i < 20; ++i) {  // some of the steps run before all clients wait, some after
    const int64_t begin_ns = Env::Real().NowNanos();
    const grpc::Status created = Create(config);
    ASSERT_TRUE(created.ok()) << created.error_message();
    EXPECT_LT(Env::Real().NowNanos() - begin_ns, 5'000'000'000);
    Env::Real().SleepForNanos(50'000'000);
  }
  // Some clients give up; the others get their sessions when the task comes.
  constexpr int kGaveUp = 30;
  for (int i = 0; i < kGaveUp; ++i) waiting[i]->context.TryCancel();
  cluster.Restart("ps", 0);
  int created = 0;
  void* tag = nullptr;
  bool ok = false;
  for (size_t i = 0; i < waiting.size(); ++i) {
    ASSERT_TRUE(queue.Next(&tag, &ok));
    if (static_cast<Waiting*>(tag)->status.ok()) ++created;
  }
  EXPECT_EQ(created, static_cast<int>(waiting.size()) - kGaveUp);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

TEST_F(MasterServiceTest, AClientThatHangsUpEndsItsStep) {
  ASSERT_TRUE(Create().ok());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
  const grpc::Status status = client_->stub().RunStep(&context, Step("TestStall:0"), &answer_);
  EXPECT_EQ(status.error_code(), grpc::DEADLINE_EXCEEDED);
  EXPECT_TRUE(cluster_->Idle());
}

TEST_F(MasterServiceTest, WhatIsNotSupportedSaysSo) {
  tensorflow::ConfigProto config;
  config.set_use_per_session_threads(true);
  const grpc::Status threads = Create(config);
  EXPECT_EQ(threads.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(threads.error_message(),
            "Distributed session does not support session thread pool options.");
  config.Clear();
  auto& ours = *config.mutable_graph_options()->mutable_rewrite_options()->add_custom_optimizers();
  ours.set_name("penstock");
  (*ours.mutable_parameter_map())["disabled_passes"].set_s("fold");
  const grpc::Status passes = Create(config);
  EXPECT_EQ(passes.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(passes.error_message(), HasSubstr("disabled_passes: must be a list of strings"));
  config.Clear();
  (*config.mutable_cluster_def()->add_job()->mutable_tasks())[0] = "other:1";
  config.mutable_cluster_def()->mutable_job(0)->set_name("ps");
  EXPECT_EQ(Create(config).error_code(), grpc::UNIMPLEMENTED);
  config.Clear();
  config.add_device_filters("/job:[");
  EXPECT_EQ(Create(config).error_code(), grpc::INVALID_ARGUMENT);
}

TEST_F(MasterServiceTest, BadGraphsAndFeedsAreRefused) {
  tensorflow::CreateSessionRequest create;
  create.mutable_graph_def()->add_node()->set_name("n");
  create.mutable_graph_def()->mutable_node(0)->set_op("NoSuchOp");
  tensorflow::CreateSessionResponse created;
  const grpc::Status status = Send(&Stub::CreateSession, create, &created);
  EXPECT_NE(status.error_code(), grpc::OK);
  EXPECT_THAT(status.error_message(), HasSubstr("NoSuchOp"));

  ASSERT_TRUE(Create().ok());
  tensorflow::RunStepRequest request = FedStep("Identity:0");
  request.mutable_feed(0)->mutable_tensor()->set_tensor_content("123");
  ASSERT_TRUE(Send(&Stub::RunStep, request, &answer_).ok());
  EXPECT_EQ(answer_.status_code(), tensorflow::error::INVALID_ARGUMENT);
  EXPECT_THAT(answer_.status_error_message(), HasSubstr("feed 'Placeholder:0'"));
}

TEST_F(MasterServiceTest, Callables) {
  ASSERT_TRUE(Create().ok());
  tensorflow::MakeCallableRequest make;
  make.set_session_handle(client_->handle());
  make.mutable_options()->add_feed("Placeholder:0");
  make.mutable_options()->add_fetch("Identity:0");
  tensorflow::MakeCallableResponse made;
  ASSERT_TRUE(Send(&Stub::MakeCallable, make, &made).ok());
  tensorflow::RunCallableRequest run;
  run.set_session_handle(client_->handle());
  run.set_handle(made.handle());
  *run.add_feed() = FedStep("").feed(0).tensor();
  tensorflow::RunCallableResponse ran;
  ASSERT_TRUE(Send(&Stub::RunCallable, run, &ran).ok());
  ASSERT_EQ(ran.fetch_size(), 1);
  EXPECT_EQ(TensorFromProto(ran.fetch(0))->flat<float>()[1], 42);
  tensorflow::ReleaseCallableRequest release;
  release.set_session_handle(client_->handle());
  release.set_handle(made.handle());
  tensorflow::ReleaseCallableResponse released;
  EXPECT_TRUE(Send(&Stub::ReleaseCallable, release, &released).ok());
  EXPECT_EQ(Send(&Stub::RunCallable, run, &ran).error_code(), grpc::INVALID_ARGUMENT);
}

TEST_F(MasterServiceTest, TracesAndGraphs) {
  ASSERT_TRUE(Create().ok());
  tensorflow::RunStepRequest request = FedStep("Identity:0");
  request.mutable_options()->set_trace_level(tensorflow::RunOptions::FULL_TRACE);
  request.mutable_options()->set_output_partition_graphs(true);
  ASSERT_TRUE(Send(&Stub::RunStep, request, &answer_).ok());
  const auto& stats = answer_.metadata().step_stats();
  bool found_sum = false;
  ASSERT_EQ(stats.dev_stats_size(), 1);
  EXPECT_EQ(stats.dev_stats(0).device(), "/job:worker/replica:0/task:0/device:CPU:0");
  for (const auto& node : stats.dev_stats(0).node_stats()) {
    EXPECT_THAT(node.timeline_label(), testing::MatchesRegex(".* = .*\\(.*\\)"));
    EXPECT_GT(node.all_start_micros(), 0);
    if (node.node_name() != sum_) continue;
    // Memory profilers read these fields. The node has allocated two floats, which are still
    // allocated when it ends.
    ASSERT_EQ(node.memory_size(), 1);
    EXPECT_GE(node.memory(0).total_bytes(), 8);
    EXPECT_GE(node.memory(0).peak_bytes(), 8);
    EXPECT_GE(node.memory(0).live_bytes(), 8);
    ASSERT_EQ(node.output_size(), 1);
    const auto& memory = node.output(0).tensor_description().allocation_description();
    EXPECT_EQ(memory.requested_bytes(), 8);
    EXPECT_EQ(memory.allocated_bytes(), 8);
    EXPECT_EQ(memory.allocator_name(), node.memory(0).allocator_name());
    EXPECT_NE(memory.ptr(), 0);
    found_sum = true;
  }
  EXPECT_TRUE(found_sum);
  EXPECT_EQ(answer_.metadata().partition_graphs_size(), 1);
}

TEST_F(MasterServiceTest, PartialRuns) {
  ASSERT_TRUE(Create().ok());
  tensorflow::PartialRunSetupRequest setup;
  setup.set_session_handle(client_->handle());
  const tensorflow::RunStepRequest all = FedStep("Identity:0");
  for (const auto& feed : all.feed()) setup.add_feed(feed.name());
  setup.add_fetch("Identity:0");
  setup.add_target("Identity");
  setup.set_request_id(Env::Real().RandomU64() | 1);
  tensorflow::PartialRunSetupResponse begun;
  ASSERT_TRUE(Send(&Stub::PartialRunSetup, setup, &begun).ok());
  // Repeats the call.
  EXPECT_EQ(Send(&Stub::PartialRunSetup, setup, &begun).error_code(), grpc::ABORTED);

  tensorflow::RunStepRequest fetch = Step("Identity:0");
  fetch.set_partial_run_handle(begun.partial_run_handle());
  ASSERT_TRUE(Send(&Stub::RunStep, fetch, &answer_).ok());
  EXPECT_EQ(answer_.status_code(), tensorflow::error::INVALID_ARGUMENT);
  EXPECT_THAT(answer_.status_error_message(), HasSubstr("can't be computed from the feeds"));
  tensorflow::RunStepRequest feed = all;
  feed.clear_fetch();
  feed.set_partial_run_handle(begun.partial_run_handle());
  feed.add_target("Identity");
  ASSERT_TRUE(Send(&Stub::RunStep, feed, &answer_).ok());
  EXPECT_THAT(answer_.status_error_message(), HasSubstr("belong to PartialRunSetup"));
  feed.clear_target();
  ASSERT_TRUE(Send(&Stub::RunStep, feed, &answer_).ok());
  ASSERT_EQ(answer_.status_code(), 0) << answer_.status_error_message();
  EXPECT_EQ(answer_.tensor_size(), 0);
  ASSERT_TRUE(Send(&Stub::RunStep, fetch, &answer_).ok());
  ASSERT_EQ(answer_.status_code(), 0) << answer_.status_error_message();
  ASSERT_EQ(answer_.tensor_size(), 1);
  EXPECT_EQ(answer_.tensor(0).name(), "Identity:0");
  ASSERT_TRUE(Send(&Stub::RunStep, fetch, &answer_).ok());
  EXPECT_EQ(answer_.status_code(), tensorflow::error::INVALID_ARGUMENT);
  EXPECT_THAT(answer_.status_error_message(),
              HasSubstr("Must run PartialRunSetup before performing partial runs"));
}

// Returns the lines of standard error, written while `body` ran, that name options without effect.
std::vector<std::string> LinesOfOptions(const std::function<void()>& body) {
  testing::internal::CaptureStderr();
  body();
  std::vector<std::string> lines = absl::StrSplit(testing::internal::GetCapturedStderr(), '\n');
  std::erase_if(lines, [](const std::string& line) {
    return line.find("has no effect here") == std::string::npos;
  });
  return lines;
}

TEST_F(MasterServiceTest, OptionsWithoutEffectAreNamedInOneLine) {
  tensorflow::ConfigProto config;
  config.set_intra_op_parallelism_threads(3);
  config.mutable_graph_options()->mutable_rewrite_options()->set_min_graph_nodes(-1);
  for (int session = 0; session < 2; ++session) {
    const auto lines = LinesOfOptions([&] { ASSERT_TRUE(Create(config).ok()); });
    ASSERT_EQ(lines.size(), 1u) << "for each session";
    EXPECT_THAT(lines[0], HasSubstr("a client's ConfigProto sets what has no effect here"));
    EXPECT_THAT(lines[0], HasSubstr("intra_op_parallelism_threads, "
                                    "graph_options.rewrite_options.min_graph_nodes"));
  }
  tensorflow::RunStepRequest request = FedStep("Identity:0");
  request.mutable_options()->set_inter_op_thread_pool(1);
  const auto run = [&] { ASSERT_TRUE(Send(&Stub::RunStep, request, &answer_).ok()); };
  const auto lines = LinesOfOptions(run);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("RunOptions set what has no effect here"));
  EXPECT_THAT(lines[0], HasSubstr("inter_op_thread_pool"));
  EXPECT_TRUE(LinesOfOptions(run).empty()) << "once, not with each step";
}

}  // namespace
}  // namespace penstock
