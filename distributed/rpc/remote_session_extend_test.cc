// SPDX-License-Identifier: Apache-2.0
//
// Tests how a client creates a session, and extends its graph.
#include <semaphore>
#include <thread>

#include "core/runtime/testing/test_ops.h"
#include "distributed/rpc/protocol.h"
#include "distributed/rpc/testing/scripted_master.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::chrono::seconds kSoon(30);

class RemoteSessionExtendTest : public testing::Test {
 protected:
  void AddNodes(int count) {
    for (int i = 0; i < count; ++i) graph_.AddSum("TestSum", {});
  }
  Status Extend(SessionInterface& session) { return session.Extend(graph_.graph()); }
  static std::vector<std::string> NamesIn(const tensorflow::GraphDef& graph) {
    std::vector<std::string> names;
    for (const auto& node : graph.node()) names.push_back(node.name());
    return names;
  }
  void SayVersion(int64_t version) {
    tensorflow::ExtendSessionResponse response;
    response.set_new_graph_version(version);
    master_.extend.Say(response);
  }

  ScriptedMaster master_;
  TestGraph graph_;
};

TEST_F(RemoteSessionExtendTest, TheFirstExtendBringsTheWholeGraphAndTheOptions) {
  AddNodes(2);
  auto session = master_.NewSession(
      {.operation_timeout_ms = 7'000, .isolate_state = true, .device_filters = {"/job:ps"}});
  ASSERT_EQ(Extend(*session), OkStatus());
  ASSERT_EQ(master_.create.calls(), 1);
  const tensorflow::CreateSessionRequest request = master_.create.request(0);
  EXPECT_THAT(NamesIn(request.graph_def()), ElementsAre("n0", "n1"));
  EXPECT_EQ(request.target(), master_.target());
  EXPECT_EQ(request.config().operation_timeout_in_ms(), 7'000);
  EXPECT_TRUE(request.config().isolate_session_state());
  EXPECT_THAT(request.config().device_filters(), ElementsAre("/job:ps"));
}

TEST_F(RemoteSessionExtendTest, SessionsOfOneProcessHaveTheirOwnOptions) {
  const auto patient = master_.NewSession({.operation_timeout_ms = 9'000});
  const auto other = master_.NewSession({.allow_soft_placement = true});
  ASSERT_EQ(Extend(*patient), OkStatus());
  ASSERT_EQ(Extend(*other), OkStatus());
  ASSERT_EQ(master_.create.calls(), 2);
  EXPECT_EQ(master_.create.request(0).config().operation_timeout_in_ms(), 9'000);
  EXPECT_FALSE(master_.create.request(0).config().allow_soft_placement());
  EXPECT_EQ(master_.create.request(1).config().operation_timeout_in_ms(), 0);
  EXPECT_TRUE(master_.create.request(1).config().allow_soft_placement());
}

TEST_F(RemoteSessionExtendTest, AnExtendSendsOnlyNewNodesWithTheVersionTheyExtend) {
  const auto session = master_.NewSession();
  AddNodes(2);
  ASSERT_EQ(Extend(*session), OkStatus());
  ASSERT_EQ(Extend(*session), OkStatus());
  EXPECT_EQ(master_.extend.calls(), 0) << "there is nothing new";
  AddNodes(1);
  SayVersion(17);
  ASSERT_EQ(Extend(*session), OkStatus());
  AddNodes(2);
  ASSERT_EQ(Extend(*session), OkStatus());
  ASSERT_EQ(master_.extend.calls(), 2);
  EXPECT_EQ(master_.extend.request(0).session_handle(), ScriptedMaster::kHandle);
  EXPECT_EQ(master_.extend.request(0).current_graph_version(), ScriptedMaster::kVersion);
  EXPECT_THAT(NamesIn(master_.extend.request(0).graph_def()), ElementsAre("n2"));
  EXPECT_EQ(master_.extend.request(1).current_graph_version(), 17);
  EXPECT_THAT(NamesIn(master_.extend.request(1).graph_def()), ElementsAre("n3", "n4"));
}

TEST_F(RemoteSessionExtendTest, AFailedBeginIsTriedAgainWithTheWholeGraph) {
  AddNodes(1);
  const auto session = master_.NewSession();
  tensorflow::CreateSessionResponse created;
  created.set_session_handle("another");
  master_.create.Fail(grpc::INVALID_ARGUMENT, "node 'n0' is odd");
  EXPECT_EQ(Extend(*session), InvalidArgument("node 'n0' is odd"));
  master_.create.Say(created);
  EXPECT_EQ(Extend(*session), OkStatus());
  ASSERT_EQ(master_.create.calls(), 2);
  EXPECT_THAT(NamesIn(master_.create.request(1).graph_def()), ElementsAre("n0"));
  EXPECT_EQ(master_.extend.calls(), 0);
}

TEST_F(RemoteSessionExtendTest, AFailedExtendIsReportedAndTheSameNodesAreSentAgain) {
  const auto session = master_.NewSession();
  ASSERT_EQ(Extend(*session), OkStatus());
  AddNodes(1);
  master_.extend.Fail(grpc::UNAVAILABLE, "later");
  EXPECT_EQ(Extend(*session), Unavailable(master_.target(), ": later"));
  AddNodes(1);
  SayVersion(11);
  EXPECT_EQ(Extend(*session), OkStatus());
  ASSERT_EQ(master_.extend.calls(), 2);
  EXPECT_EQ(master_.extend.request(1).current_graph_version(), ScriptedMaster::kVersion);
  EXPECT_THAT(NamesIn(master_.extend.request(1).graph_def()), ElementsAre("n0", "n1"));
}

TEST_F(RemoteSessionExtendTest, AGraphThatHasLostNodesIsRefused) {
  const auto session = master_.NewSession();
  AddNodes(2);
  ASSERT_EQ(Extend(*session), OkStatus());
  TestGraph smaller;
  smaller.AddSum("TestSum", {});
  const Status status = session->Extend(smaller.graph());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("fewer nodes"));
  EXPECT_EQ(master_.extend.calls(), 0);
}

// Calls Run before any Extend, from many threads, as a program without a graph might do.
TEST_F(RemoteSessionExtendTest, ConcurrentFirstCallsBeginOneSession) {
  const auto session = master_.NewSession();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      std::vector<Tensor> none;
      EXPECT_EQ(session->Run({}, {}, {}, {"n0"}, &none, nullptr), OkStatus());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(master_.create.calls(), 1);
  EXPECT_EQ(master_.create.request(0).graph_def().node_size(), 0);
  ASSERT_EQ(master_.run_step.calls(), 8);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(master_.run_step.request(i).session_handle(), ScriptedMaster::kHandle);
  }
}

TEST_F(RemoteSessionExtendTest, AnExtendDoesNotWaitForSteps) {
  const auto session = master_.NewSession();
  ASSERT_EQ(Extend(*session), OkStatus());
  std::counting_semaphore<> came(0), released(0);
  master_.run_step.Do([&](auto&, auto&, auto*) {
    came.release();
    EXPECT_TRUE(released.try_acquire_for(kSoon));
    return grpc::Status::OK;
  });
  std::vector<std::thread> steps;
  for (int i = 0; i < 3; ++i) {
    steps.emplace_back([&] {
      std::vector<Tensor> none;
      EXPECT_EQ(session->Run({}, {}, {}, {"n0"}, &none, nullptr), OkStatus());
    });
  }
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(came.try_acquire_for(kSoon));
  AddNodes(1);
  EXPECT_EQ(Extend(*session), OkStatus());
  EXPECT_EQ(master_.extend.calls(), 1);
  released.release(3);
  for (std::thread& step : steps) step.join();
}

TEST_F(RemoteSessionExtendTest, AMasterThatGivesNoHandleIsNamed) {
  master_.create.Say({});
  const auto session = master_.NewSession();
  EXPECT_EQ(Extend(*session),
            Internal(master_.target(), ": the server has made a session without a handle"));
}

TEST_F(RemoteSessionExtendTest, ErrorsNameTheTaskThatTheMasterSaysItIs) {
  master_.create.Do([](grpc::ServerContext& context, auto&, auto* response) {
    context.AddTrailingMetadata(kMasterTaskMetadata, "/job:worker/replica:0/task:3");
    response->set_session_handle("s");
    return grpc::Status::OK;
  });
  master_.extend.Fail(grpc::UNAVAILABLE, "gone");
  const auto session = master_.NewSession();
  ASSERT_EQ(Extend(*session), OkStatus());
  AddNodes(1);
  EXPECT_EQ(Extend(*session),
            Unavailable("the master /job:worker/replica:0/task:3 at ", master_.target(), ": gone"));
}

}  // namespace
}  // namespace penstock
