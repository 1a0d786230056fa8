// SPDX-License-Identifier: Apache-2.0
//
// Tests graphs that are uploaded in parts, with limits of some kilobytes: from a client to its
// master, and from there to another task.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "core/base/testing/eventually.h"
#include "core/graph/builder.h"
#include "core/tensor/memory_account.h"
#include "distributed/rpc/graph_upload.h"
#include "distributed/rpc/remote_session.h"
#include "distributed/rpc/testing/master_client.h"
#include "distributed/rpc/testing/scripted_master.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr PieceLimits kLargeGraphKilobytes = {
    .whole_bytes_max = 100 << 10, .piece_bytes_max = 64 << 10, .constant_bytes_min = 32 << 10};

Tensor Numbers(int64_t count) {
  Tensor value(DType::kFloat, Shape({count}));
  for (int64_t i = 0; i < count; ++i) value.mutable_data<float>()[i] = static_cast<float>(i % 1000);
  return value;
}

std::unique_ptr<SessionInterface> UploadingSession(const std::string& target,
                                                   const SessionOptions& options = {}) {
  auto session = NewRemoteSession(target, options, Env::Real(), kLargeGraphKilobytes);
  CHECK_OK(session.status());
  return *std::move(session);
}

class LargeGraphClientTest : public testing::Test {
 protected:
  LargeGraphClientTest() {
    Constant(g_, Numbers(50'000));
    tensorflow::ExtendSessionResponse response;
    response.set_new_graph_version(20);
    master_.extend.Say(response);
  }
  Status Extend(SessionInterface& session) { return session.Extend(g_.graph()); }

  ScriptedMaster master_;
  GraphBuilder g_;
};

TEST_F(LargeGraphClientTest, AClientSendsPartsOneByOne) {
  const auto session = UploadingSession(master_.target());
  ASSERT_EQ(Extend(*session), OkStatus());
  EXPECT_EQ(master_.create.calls(), 1);
  EXPECT_EQ(master_.create.request(0).graph_def().node_size(), 0);
  ASSERT_EQ(master_.extend.calls(), 5) << "four pieces of 200,000 bytes, and the node";
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(master_.extend.request(i).current_graph_version(), ScriptedMaster::kVersion);
    EXPECT_TRUE(GraphUploads::IsPart(master_.extend.request(i).graph_def()));
    EXPECT_LT(master_.extend.request(i).ByteSizeLong(), 70'000u);
  }
  ASSERT_EQ(Extend(*session), OkStatus());
  EXPECT_EQ(master_.extend.calls(), 5) << "there is nothing new";
  // A small extension travels as always.
  Constant(g_, Numbers(10));
  ASSERT_EQ(Extend(*session), OkStatus());
  ASSERT_EQ(master_.extend.calls(), 6);
  EXPECT_FALSE(GraphUploads::IsPart(master_.extend.request(5).graph_def()));
  EXPECT_EQ(master_.extend.request(5).graph_def().node_size(), 1);
  EXPECT_EQ(master_.extend.request(5).current_graph_version(), 20);
}

// The tensors would fit into a message, but not together with the names.
TEST_F(LargeGraphClientTest, TheLimitIsForTheWholeMessage) {
  GraphBuilder g;
  Constant(g, Numbers(25'000));
  for (int i = 0; i < 100; ++i) {
    const auto scope = g.NameScope(std::string(100, 'n'));
    Constant(g, Tensor::Vector<float>({1}));
  }
  const auto session = UploadingSession(master_.target());
  ASSERT_EQ(session->Extend(g.graph()), OkStatus());
  ASSERT_EQ(master_.extend.calls(), 3) << "two pieces of 100,000 bytes, and the nodes";
  EXPECT_EQ(master_.extend.request(2).graph_def().node_size(), 102) << "and the stamp";
}

TEST_F(LargeGraphClientTest, GraphsWithoutLargeConstantsAreOneMessage) {
  const auto session = master_.NewSession();
  ASSERT_EQ(Extend(*session), OkStatus());
  EXPECT_EQ(master_.create.request(0).graph_def().node_size(), 1);
  EXPECT_EQ(master_.extend.calls(), 0);
}

TEST_F(LargeGraphClientTest, AFailedUploadBeginsAgain) {
  const auto session = UploadingSession(master_.target());
  master_.extend.Do([&](auto&, auto&, auto* response) {
    response->set_new_graph_version(20);
    return master_.extend.calls() == 3 ? grpc::Status(grpc::UNAVAILABLE, "later")
                                       : grpc::Status::OK;
  });
  EXPECT_EQ(Extend(*session), Unavailable(master_.target(), ": later"));
  EXPECT_EQ(master_.extend.calls(), 3);
  EXPECT_EQ(Extend(*session), OkStatus());
  EXPECT_EQ(master_.extend.calls(), 8);
  EXPECT_EQ(master_.create.calls(), 1);
}

TEST_F(LargeGraphClientTest, TheOperationTimeoutIsForTheWholeUpload) {
  master_.extend.Do([](auto&, auto&, auto*) {
    std::this_thread::sleep_for(std::chrono::milliseconds(80));
    return grpc::Status::OK;
  });
  const auto session = UploadingSession(master_.target(), {.operation_timeout_ms = 200});
  const Status status = Extend(*session);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
  EXPECT_LT(master_.extend.calls(), 5);
}

// An operation timeout is for the session and the upload together.
TEST_F(LargeGraphClientTest, CreatingTheSessionTakesTimeFromTheUpload) {
  master_.create.Do([](auto&, auto&, auto* response) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    response->set_session_handle(ScriptedMaster::kHandle);
    return grpc::Status::OK;
  });
  const auto session = UploadingSession(master_.target(), {.operation_timeout_ms = 200});
  const Status status = Extend(*session);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
  EXPECT_EQ(master_.extend.calls(), 0);
}

TEST_F(LargeGraphClientTest, CloseEndsAnUpload) {
  const auto session = UploadingSession(master_.target());
  std::thread closes;
  master_.extend.Do([&](auto&, auto&, auto*) {
    closes = std::thread([&] { EXPECT_EQ(session->Close(), OkStatus()); });
    EXPECT_TRUE(Eventually([&] { return master_.close.calls() == 1; }));
    return grpc::Status(grpc::ABORTED, "Session session 1 is not found.");
  });
  EXPECT_EQ(Extend(*session), FailedPrecondition("Session is closed."));
  closes.join();
  EXPECT_EQ(master_.extend.calls(), 1);
}

TEST_F(LargeGraphClientTest, StepsRunDuringAnUpload) {
  const auto session = UploadingSession(master_.target());
  std::vector<Tensor> out;
  master_.extend.Do([&](auto&, auto&, auto*) {
    EXPECT_EQ(session->Run({}, {}, {}, {"n"}, &out, nullptr), OkStatus());
    return grpc::Status::OK;
  });
  EXPECT_EQ(Extend(*session), OkStatus());
  EXPECT_EQ(master_.run_step.calls(), 5);
}

// A graph with a constant of 4 MB on each of two tasks, of which the step fetches two elements.
class LargeGraphClusterTest : public testing::Test {
 protected:
  LargeGraphClusterTest() {
    for (const char* device : {"/job:ps/task:0", "/job:worker/task:0"}) {
      const auto scope = g_.DeviceScope(device);
      const Output large = Constant(g_, Numbers(1'000'000));
      const Output at = Call("Slice", {large, Constant(g_, Tensor::Vector<int32_t>({999'998})),
                                       Constant(g_, Tensor::Vector<int32_t>({2}))});
      fetches_.push_back(at.name());
    }
    CHECK_OK(g_.status());
  }
  // The constants are larger than the requests that the tasks accept.
  static ServerOptions SmallMessages() {
    ServerOptions options = TestCluster::Quick();
    options.max_message_bytes = 2 << 20;
    return options;
  }
  // The optimizer would replace the slices by their values.
  static SessionOptions NotOptimized() { return {.optimize = false}; }
  void ExpectValues(SessionInterface& session, const std::vector<std::string>& fetches) {
    std::vector<Tensor> out;
    const Status ran = session.Run({}, {}, fetches, {}, &out, nullptr);
    ASSERT_TRUE(ran.ok()) << ran;
    EXPECT_EQ(AttrValue(out[0]), AttrValue(Tensor::Vector<float>({998, 999})));
  }

  TestCluster cluster_{{{"ps", 1}, {"worker", 1}}, SmallMessages()};
  GraphBuilder g_;
  std::vector<std::string> fetches_;
};

TEST_F(LargeGraphClusterTest, ConstantsArriveAtAllTasks) {
  const auto session = UploadingSession(cluster_.target(), NotOptimized());
  ASSERT_EQ(session->Extend(g_.graph()), OkStatus());
  // Each step registers a graph of its own.
  ExpectValues(*session, fetches_);
  ExpectValues(*session, {fetches_[0]});
  // The graph grows in parts, too.
  const Output more = Constant(g_, Numbers(1'000'000));
  const Output at = Call("Slice", {more, Constant(g_, Tensor::Vector<int32_t>({998})),
                                   Constant(g_, Tensor::Vector<int32_t>({2}))});
  ASSERT_EQ(session->Extend(g_.graph()), OkStatus());
  ExpectValues(*session, {at.name()});
}

TEST_F(LargeGraphClusterTest, ARestartedTaskIsNamed) {
  const auto session = UploadingSession(cluster_.target(), NotOptimized());
  ASSERT_EQ(session->Extend(g_.graph()), OkStatus());
  cluster_.Restart("ps", 0);
  std::vector<Tensor> out;
  const Status ran = session->Run({}, {}, {fetches_[0]}, {}, &out, nullptr);
  EXPECT_FALSE(ran.ok());
  EXPECT_THAT(std::string(ran.message()), HasSubstr("/job:ps/replica:0/task:0"));
  const auto next = UploadingSession(cluster_.target(), NotOptimized());
  ASSERT_EQ(next->Extend(g_.graph()), OkStatus());
  ExpectValues(*next, fetches_);
}

TEST_F(LargeGraphClusterTest, ARestartedMasterDoesNotKnowTheSession) {
  const auto session = UploadingSession(cluster_.target(), NotOptimized());
  ASSERT_EQ(session->Extend(Graph(Registry::Global())), OkStatus());
  cluster_.Restart("worker", 0);
  const Status status = session->Extend(g_.graph());
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("is not found"));
}

TEST_F(LargeGraphClusterTest, TheMasterRefusesPartsOutOfOrderAndOfUnknownSessions) {
  MasterClient client(cluster_.target());
  ASSERT_TRUE(client.Create(Graph(Registry::Global())).ok());
  GraphUpload upload(g_.graph(), kLargeGraphKilobytes, 1);
  tensorflow::ExtendSessionRequest request;
  tensorflow::ExtendSessionResponse response;
  request.set_session_handle(client.handle());
  request.set_current_graph_version(client.version());
  const auto send = [&] {
    return client.Send(&MasterClient::Stub::ExtendSession, request, &response);
  };
  ASSERT_TRUE(upload.Next(request.mutable_graph_def()));
  EXPECT_TRUE(send().ok());
  EXPECT_EQ(response.new_graph_version(), client.version());
  ASSERT_TRUE(upload.Next(request.mutable_graph_def()));
  ASSERT_TRUE(upload.Next(request.mutable_graph_def()));
  const grpc::Status missing = send();
  EXPECT_EQ(missing.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(missing.error_message(), HasSubstr("part 1 of a graph is missing"));
  request.set_session_handle("unknown");
  EXPECT_EQ(send().error_code(), grpc::ABORTED);
}

// Begins uploads of a session, each of which takes 4 MB in this process until it is dropped.
class LargeGraphSessionTest : public LargeGraphClusterTest {
 protected:
  LargeGraphSessionTest() : client_(cluster_.target()) {
    CHECK(client_.Create(Graph(Registry::Global())).ok());
    before_ = MemoryAccount::Task().in_use();
  }
  // Sends the first part of the graph for a version of the session.
  grpc::Status Begin(int64_t version) {
    GraphUpload upload(g_.graph(), kLargeGraphKilobytes, 1);
    tensorflow::ExtendSessionRequest request;
    tensorflow::ExtendSessionResponse response;
    request.set_session_handle(client_.handle());
    request.set_current_graph_version(version);
    upload.Next(request.mutable_graph_def());
    return client_.Send(&MasterClient::Stub::ExtendSession, request, &response);
  }
  bool Receiving() const { return MemoryAccount::Task().in_use() > before_ + 3'000'000; }

  MasterClient client_;
  int64_t before_ = 0;
};

TEST_F(LargeGraphSessionTest, APartForAnOldVersionIsRefused) {
  const grpc::Status old = Begin(client_.version() + 7);
  EXPECT_EQ(old.error_code(), grpc::ABORTED);
  EXPECT_EQ(old.error_message(), StrCat("Current version is ", client_.version(),
                                        " but caller expected ", client_.version() + 7, "."));
  EXPECT_FALSE(Receiving());
  EXPECT_TRUE(Begin(client_.version()).ok());
  EXPECT_TRUE(Begin(-1).ok()) << "-1: any version";
  EXPECT_TRUE(Receiving());
}

TEST_F(LargeGraphSessionTest, ANewVersionDropsUploads) {
  ASSERT_TRUE(Begin(client_.version()).ok());
  EXPECT_TRUE(Receiving());
  tensorflow::ExtendSessionRequest request;
  tensorflow::ExtendSessionResponse response;
  request.set_session_handle(client_.handle());
  request.set_current_graph_version(client_.version());
  ASSERT_TRUE(client_.Send(&MasterClient::Stub::ExtendSession, request, &response).ok());
  EXPECT_FALSE(Receiving());
}

TEST_F(LargeGraphSessionTest, ClosingTheSessionDropsUploads) {
  ASSERT_TRUE(Begin(client_.version()).ok());
  EXPECT_TRUE(Receiving());
  tensorflow::CloseSessionRequest request;
  tensorflow::CloseSessionResponse response;
  request.set_session_handle(client_.handle());
  ASSERT_TRUE(client_.Send(&MasterClient::Stub::CloseSession, request, &response).ok());
  EXPECT_FALSE(Receiving());
}

// Reset closes all sessions of the master. The task's housekeeping drops their uploads.
TEST_F(LargeGraphSessionTest, UploadsOfSessionsThatHaveEndedAreDroppedSoon) {
  ASSERT_TRUE(Begin(client_.version()).ok());
  EXPECT_TRUE(Receiving());
  tensorflow::ResetResponse response;
  ASSERT_TRUE(
      client_.Send(&MasterClient::Stub::Reset, tensorflow::ResetRequest(), &response).ok());
  EXPECT_TRUE(Eventually([&] { return !Receiving(); }));
}

}  // namespace
}  // namespace penstock
