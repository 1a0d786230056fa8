// SPDX-License-Identifier: Apache-2.0
//
// Tests how a worker answers messages, including messages that no real master sends.
#include "distributed/rpc/worker_service.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

#include "core/base/testing/eventually.h"
#include "core/graph/builder.h"
#include "core/graph/graph_proto.h"
#include "distributed/calls/testing/call_bytes.h"
#include "distributed/rpc/protocol.h"
#include "distributed/rpc/testing/serving_worker.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WorkerServiceTest : public testing::Test {
 protected:
  using Stub = wire::Worker::Stub;

  template <class Request, class Response>
  grpc::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    SetDeadline(&context);
    return (stub_.get()->*method)(&context, request, response);
  }
  static void SetDeadline(grpc::ClientContext* context) {
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  }
  grpc::Status Create(const std::string& session, uint64_t incarnation = TestWorker::kIncarnation) {
    wire::CreateSessionRequest request;
    request.set_session_handle(session);
    request.set_incarnation(incarnation);
    wire::CreateSessionResponse response;
    return Call(&Stub::CreateSession, request, &response);
  }
  // Registers the partitions as graph 1 of session "s".
  grpc::Status Register(std::vector<Partition> partitions,
                        const std::function<void(wire::RegisterGraphRequest*)>& change = nullptr) {
    wire::RegisterGraphRequest request;
    request.set_session_handle("s");
    request.set_incarnation(TestWorker::kIncarnation);
    request.set_graph_handle(1);
    for (const Partition& partition : partitions) {
      wire::Partition* const added = request.add_partition();
      added->set_device(partition.device);
      ExportGraph(partition.graph, added->mutable_graph());
    }
    if (change != nullptr) change(&request);
    wire::RegisterGraphResponse response;
    return Call(&Stub::RegisterGraph, request, &response);
  }
  wire::RunGraphRequest Step(uint64_t step_id) {
    wire::RunGraphRequest request;
    request.set_session_handle("s");
    request.set_incarnation(TestWorker::kIncarnation);
    request.set_graph_handle(1);
    request.set_step_id(step_id);
    return request;
  }
  // Runs the steps on one stream until each is answered; returns the answers by step.
  std::map<uint64_t, wire::RunGraphResponse> Run(const std::vector<wire::RunGraphRequest>& steps) {
    grpc::ClientContext context;
    SetDeadline(&context);
    const auto stream = stub_->RunGraphs(&context);
    wire::RunGraphRequests requests;
    for (const wire::RunGraphRequest& step : steps) *requests.add_run() = step;
    EXPECT_TRUE(stream->Write(requests));
    std::map<uint64_t, wire::RunGraphResponse> answers;
    wire::RunGraphResponses some;
    while (answers.size() < steps.size() && stream->Read(&some)) {
      for (const auto& answer : some.ended()) answers[answer.step_id()] = answer;
    }
    return answers;
  }

  ServingWorker serving_;
  Worker& worker_ = *serving_.worker();
  std::unique_ptr<Stub> stub_ =
      wire::Worker::NewStub(serving_.host().host().channels->To(serving_.host().address()));
};

constexpr char kRestarted[] = "/job:ps/replica:0/task:0 at here:1 has restarted";

// All calls except GetStatus and Shutdown have to name the incarnation that they address.
TEST_F(WorkerServiceTest, CallsNameAnIncarnation) {
  grpc::Status status = Create("s", 0);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "the call does not name an incarnation");
  status = Create("s", 4);
  EXPECT_EQ(status.error_code(), grpc::ABORTED);
  EXPECT_EQ(status.error_message(), kRestarted);
  EXPECT_FALSE(worker_.has_sessions());

  ASSERT_TRUE(Create("s").ok());
  ASSERT_TRUE(Register(TestWorker::PlusOne()).ok());
  const auto expect_refused = [&](auto method, auto request, auto response) {
    request.set_incarnation(4);
    EXPECT_EQ(Call(method, request, &response).error_code(), grpc::ABORTED);
    request.set_incarnation(0);
    EXPECT_EQ(Call(method, request, &response).error_code(), grpc::INVALID_ARGUMENT);
  };
  wire::DeleteSessionRequest remove;
  remove.set_session_handle("s");
  expect_refused(&Stub::DeleteSession, remove, wire::DeleteSessionResponse());
  wire::DeregisterGraphRequest deregister;
  deregister.set_session_handle("s");
  deregister.set_graph_handle(1);
  expect_refused(&Stub::DeregisterGraph, deregister, wire::DeregisterGraphResponse());
  expect_refused(&Stub::AbortStep, wire::AbortStepRequest(), wire::AbortStepResponse());
  expect_refused(&Stub::Reset, wire::ResetRequest(), wire::ResetResponse());
  expect_refused(&Stub::RegisterGraph, wire::RegisterGraphRequest(), wire::RegisterGraphResponse());
  EXPECT_TRUE(worker_.FindGraph("s", 1).ok());
  wire::ShutdownRequest shutdown;
  shutdown.set_incarnation(4);
  wire::ShutdownResponse none;
  EXPECT_EQ(Call(&Stub::Shutdown, shutdown, &none).error_code(), grpc::ABORTED);
}

TEST_F(WorkerServiceTest, TellsItsStatus) {
  ASSERT_TRUE(Create("s").ok());
  wire::GetStatusRequest request;
  request.add_session_handle("s");
  request.add_session_handle("t");
  request.set_want_devices(true);
  wire::GetStatusResponse status;
  ASSERT_TRUE(Call(&Stub::GetStatus, request, &status).ok());
  EXPECT_EQ(status.self().task(), TestWorker::kTask);
  EXPECT_EQ(status.self().address(), "here:1");
  EXPECT_EQ(status.self().incarnation(), TestWorker::kIncarnation);
  EXPECT_TRUE(status.serving());
  EXPECT_EQ(status.protocol_version(), kProtocolVersion);
  EXPECT_THAT(status.unknown_session(), ElementsAre("t"));
  ASSERT_EQ(status.device_size(), 1);
  EXPECT_EQ(status.device(0).name(), TestWorker::kDevice);
  request.set_incarnation(4);
  EXPECT_EQ(Call(&Stub::GetStatus, request, &status).error_message(), kRestarted);
}

TEST_F(WorkerServiceTest, ASessionHasAHandle) {
  const grpc::Status status = Create("");
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "a session without a handle");
}

TEST_F(WorkerServiceTest, ALeaseOfAnyLengthIsALease) {
  for (const int64_t lease_ms :
       {int64_t{-1}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    wire::CreateSessionRequest request;
    request.set_session_handle(StrCat("s", lease_ms));
    request.set_incarnation(TestWorker::kIncarnation);
    request.set_lease_ms(lease_ms);
    wire::CreateSessionResponse response;
    ASSERT_TRUE(Call(&Stub::CreateSession, request, &response).ok());
    worker_.DeleteExpiredSessions();
    EXPECT_THAT(worker_.RenewLeases({StrCat("s", lease_ms)}), ElementsAre());
  }
}

TEST_F(WorkerServiceTest, GraphsThatAreWrongAreRefused) {
  EXPECT_EQ(Register(TestWorker::PlusOne()).error_code(), grpc::ABORTED) << "there is no session";
  ASSERT_TRUE(Create("s").ok());
  EXPECT_EQ(Register({}).error_code(), grpc::INVALID_ARGUMENT);
  const auto first = [](wire::RegisterGraphRequest* request) {
    return request->mutable_partition(0);
  };
  grpc::Status status = Register(TestWorker::PlusOne(), [&](auto* request) {
    first(request)->mutable_graph()->mutable_node(0)->set_op("NoSuchOp");
  });
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.error_message(), HasSubstr("NoSuchOp"));
  status = Register(TestWorker::PlusOne(), [&](auto* request) {
    first(request)->set_device("/job:ps/replica:0/task:0/device:GPU:7");
  });
  EXPECT_THAT(status.error_message(), HasSubstr("GPU:7"));
  status = Register(TestWorker::PlusOne(), [&](auto* request) {
    for (auto& node : *first(request)->mutable_graph()->mutable_node()) node.clear_input();
  });
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(worker_.FindGraph("s", 1).ok());
  EXPECT_TRUE(Register(TestWorker::PlusOne()).ok()) << "the worker goes on";
}

constexpr PieceLimits kPartsOf100KiB = {
    .whole_bytes_max = 0, .piece_bytes_max = 100 << 10, .constant_bytes_min = 64 << 10};

// A partition with a constant of 200,000 bytes, which makes two pieces. Sends its parts.
class WorkerUploadTest : public WorkerServiceTest {
 protected:
  WorkerUploadTest() {
    Tensor value(DType::kFloat, Shape({50'000}));
    std::fill_n(value.mutable_data<float>(), 50'000, 1.0f);
    Constant(g_, std::move(value));
    CHECK_OK(g_.status());
    Begin();
  }
  // Begins with the first part.
  void Begin() { upload_.emplace(g_.graph(), kPartsOf100KiB, ++id_); }
  // Sends the next part as a request for graph 1 of session "s", after `change`.
  grpc::Status Send(const std::function<void(wire::RegisterGraphRequest*)>& change = nullptr) {
    return Register({}, [&](wire::RegisterGraphRequest* request) {
      wire::Partition* const partition = request->add_partition();
      partition->set_device(TestWorker::kDevice);
      CHECK(upload_->Next(partition->mutable_graph()), "there are no more parts");
      if (change) change(request);
    });
  }
  void ExpectRefused(const grpc::Status& status, grpc::StatusCode code, const std::string& text) {
    EXPECT_EQ(status.error_code(), code);
    EXPECT_THAT(status.error_message(), HasSubstr(text));
    EXPECT_EQ(serving_.uploads().size(), 0u);
    Begin();
  }

  GraphBuilder g_;
  uint64_t id_ = 0;
  std::optional<GraphUpload> upload_;
};

TEST_F(WorkerUploadTest, TheLastPartRegistersTheGraph) {
  ASSERT_TRUE(Create("s").ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(Send().ok());
    EXPECT_EQ(serving_.uploads().size(), 1u);
    EXPECT_FALSE(worker_.FindGraph("s", 1).ok());
  }
  const grpc::Status last = Send();
  EXPECT_TRUE(last.ok()) << last.error_message();
  EXPECT_TRUE(worker_.FindGraph("s", 1).ok());
  EXPECT_EQ(serving_.uploads().size(), 0u);
}

TEST_F(WorkerUploadTest, PartsThatAreWrongAreRefused) {
  ExpectRefused(Send(), grpc::ABORTED, "session s is not known");
  ASSERT_TRUE(Create("s").ok());
  const auto of_device = [](const std::string& device) {
    return [device](auto* request) { request->mutable_partition(0)->set_device(device); };
  };
  ExpectRefused(Send(of_device("/job:ps/replica:0/task:0/device:GPU:7")), grpc::INVALID_ARGUMENT,
                "GPU:7, which /job:ps/replica:0/task:0 does not have");
  ExpectRefused(Send(of_device(std::string(1'000'000, 'd'))), grpc::INVALID_ARGUMENT,
                "a partition for dddd");
  ExpectRefused(Send([](auto* request) { request->add_partition(); }), grpc::INVALID_ARGUMENT,
                "a part of a graph with 1 other partitions");
}

// A master deregisters a graph that it could not register.
TEST_F(WorkerUploadTest, DeregisteringAGraphDropsItsUploads) {
  ASSERT_TRUE(Create("s").ok());
  ASSERT_TRUE(Send().ok());
  EXPECT_EQ(serving_.uploads().size(), 1u);
  wire::DeregisterGraphRequest request;
  request.set_session_handle("s");
  request.set_incarnation(TestWorker::kIncarnation);
  request.set_graph_handle(2);
  wire::DeregisterGraphResponse response;
  ASSERT_TRUE(Call(&Stub::DeregisterGraph, request, &response).ok());
  EXPECT_EQ(serving_.uploads().size(), 1u);
  request.set_graph_handle(1);
  ASSERT_TRUE(Call(&Stub::DeregisterGraph, request, &response).ok());
  ExpectRefused(Send(), grpc::ABORTED, "does not have the earlier parts");
}

TEST_F(WorkerUploadTest, DeletingASessionDropsItsUploads) {
  ASSERT_TRUE(Create("s").ok());
  ASSERT_TRUE(Send().ok());
  wire::DeleteSessionRequest request;
  request.set_session_handle("s");
  request.set_incarnation(TestWorker::kIncarnation);
  wire::DeleteSessionResponse response;
  ASSERT_TRUE(Call(&Stub::DeleteSession, request, &response).ok());
  ExpectRefused(Send(), grpc::ABORTED, "session s is not known");
}

// Graphs are received as bytes, because parsing them takes too long for a polling thread.
TEST_F(WorkerServiceTest, BytesThatAreNoGraphAreRefused) {
  TestHost& host = serving_.host();
  const grpc::Status status = CallBytes(host.host().channels->To(host.address()),
                                        "/penstock.wire.Worker/RegisterGraph", "\xff\xff\xff\xff");
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "malformed message");
}

TEST_F(WorkerServiceTest, StepsOfOneStreamEndEachByItself) {
  ASSERT_TRUE(Create("s").ok());
  TestGraph g;
  g.AddSum("TestSum", {});
  ASSERT_TRUE(Register(TestWorker::OnCpu(g.Take())).ok());
  wire::RunGraphRequest traced = Step(2), unknown = Step(3), elsewhere = Step(4), hurried = Step(5);
  traced.set_want_step_stats(true);
  unknown.set_graph_handle(9);
  elsewhere.set_incarnation(4);
  hurried.set_deadline_ms(std::numeric_limits<int64_t>::max());
  const auto answers = Run({Step(1), traced, unknown, elsewhere, hurried});
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_FALSE(answers.at(1).has_error());
  EXPECT_FALSE(answers.at(1).has_step_stats());
  EXPECT_FALSE(answers.at(2).has_error());
  ASSERT_EQ(answers.at(2).step_stats().dev_stats_size(), 1);
  EXPECT_EQ(answers.at(2).step_stats().dev_stats(0).device(), TestWorker::kDevice);
  EXPECT_EQ(answers.at(3).error().code(), tensorflow::error::ABORTED);
  EXPECT_EQ(answers.at(4).error().code(), tensorflow::error::ABORTED);
  EXPECT_EQ(answers.at(4).error().message(), kRestarted);
  EXPECT_FALSE(answers.at(5).has_error()) << answers.at(5).error().message();
  EXPECT_EQ(worker_.steps().counts().running, 0);
}

TEST_F(WorkerServiceTest, TheWorkerEnforcesDeadlines) {
  ASSERT_TRUE(Create("s").ok());
  ASSERT_TRUE(Register(TestWorker::Stall()).ok());
  wire::RunGraphRequest request = Step(1);
  request.set_deadline_ms(50);
  const auto answers = Run({request});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers.at(1).error().code(), tensorflow::error::DEADLINE_EXCEEDED);
}

// If a master dies, its steps are aborted.
TEST_F(WorkerServiceTest, TheEndOfAStreamAbortsItsSteps) {
  ASSERT_TRUE(Create("s").ok());
  ASSERT_TRUE(Register(TestWorker::Stall()).ok());
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto stream = stub_->RunGraphs(&context);
  wire::RunGraphRequests requests;
  for (uint64_t id = 1; id <= 3; ++id) *requests.add_run() = Step(id);
  ASSERT_TRUE(stream->Write(requests));
  const auto await_running = [&](int64_t count) {
    return Eventually([&] { return worker_.steps().counts().running == count; });
  };
  EXPECT_TRUE(await_running(3));
  context.TryCancel();
  EXPECT_TRUE(await_running(0));
}

TEST_F(WorkerServiceTest, AnAbortWithoutACauseAbortsTheStep) {
  ASSERT_TRUE(Create("s").ok());
  ASSERT_TRUE(Register(TestWorker::PlusOne()).ok());
  wire::AbortStepRequest request;
  request.set_incarnation(TestWorker::kIncarnation);
  request.set_step_id(1);
  wire::AbortStepResponse response;
  ASSERT_TRUE(Call(&Stub::AbortStep, request, &response).ok());
  const auto answers = Run({Step(1)});
  EXPECT_EQ(answers.at(1).error().code(), tensorflow::error::ABORTED);
  EXPECT_THAT(answers.at(1).error().message(), HasSubstr("1"));
}

TEST_F(WorkerServiceTest, ShutdownPassesOnItsReason) {
  wire::ShutdownRequest request;
  request.set_reason("the chief is done");
  wire::ShutdownResponse response;
  EXPECT_TRUE(Call(&Stub::Shutdown, request, &response).ok());
  EXPECT_EQ(serving_.AwaitShutdown(), "the chief is done");
}

}  // namespace
}  // namespace penstock
