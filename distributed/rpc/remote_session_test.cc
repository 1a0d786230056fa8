// SPDX-License-Identifier: Apache-2.0
//
// Tests how a client's session ends, and its calls that concern neither steps nor graphs.
#include "core/runtime/testing/test_ops.h"
#include "distributed/rpc/testing/scripted_master.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class RemoteSessionTest : public testing::Test {
 protected:
  static Status Extend(SessionInterface& session) {
    TestGraph graph;
    graph.AddSum("TestSum", {});
    return session.Extend(graph.graph());
  }

  ScriptedMaster master_;
};

TEST_F(RemoteSessionTest, NothingIsSentBeforeTheFirstCall) {
  auto session = master_.NewSession();
  EXPECT_EQ(session->Close(), OkStatus());
  session = nullptr;
  EXPECT_EQ(master_.create.calls(), 0);
  EXPECT_EQ(master_.close.calls(), 0);
}

TEST_F(RemoteSessionTest, CloseIsSentOnce) {
  auto session = master_.NewSession();
  ASSERT_EQ(Extend(*session), OkStatus());
  EXPECT_EQ(session->Close(), OkStatus());
  EXPECT_EQ(session->Close(), OkStatus());
  session = nullptr;
  ASSERT_EQ(master_.close.calls(), 1);
  EXPECT_EQ(master_.close.request(0).session_handle(), ScriptedMaster::kHandle);
}

TEST_F(RemoteSessionTest, ASessionThatIsDroppedIsClosed) {
  ASSERT_EQ(Extend(*master_.NewSession()), OkStatus());
  EXPECT_EQ(master_.close.calls(), 1);
}

TEST_F(RemoteSessionTest, AFailedCloseIsReportedAndTheSessionClosedNevertheless) {
  const auto session = master_.NewSession();
  ASSERT_EQ(Extend(*session), OkStatus());
  master_.close.Fail(grpc::ABORTED, "Session session 1 is not found.");
  EXPECT_EQ(session->Close(), Aborted("Session session 1 is not found."));
  EXPECT_EQ(session->Close(), OkStatus());
  EXPECT_EQ(Extend(*session), FailedPrecondition("Session is closed."));
}

TEST_F(RemoteSessionTest, AClosedSessionSendsNothing) {
  const auto session = master_.NewSession();
  const auto callable = session->MakeCallable({.targets = {"n0"}});
  ASSERT_TRUE(callable.ok());
  ASSERT_EQ(session->Close(), OkStatus());
  std::vector<Tensor> none;
  const Status closed = FailedPrecondition("Session is closed.");
  EXPECT_EQ(Extend(*session), closed);
  EXPECT_EQ(session->Run({}, {}, {}, {"n0"}, &none, nullptr), closed);
  EXPECT_EQ(session->MakeCallable({}).status(), closed);
  EXPECT_EQ(session->RunCallable(*callable, {}, {}, &none, nullptr), closed);
  EXPECT_EQ(session->ReleaseCallable(*callable), closed);
  EXPECT_EQ(session->SetUpPartialRun({}).status(), closed);
  EXPECT_EQ(session->RunPartial("p", {}, {}, {}, &none), closed);
  EXPECT_EQ(session->ListDevices().status(), closed);
  EXPECT_EQ(master_.create.calls(), 1);
  EXPECT_EQ(master_.run_step.calls() + master_.run_callable.calls(), 0);
}

TEST_F(RemoteSessionTest, DevicesOfTheMasterComeFirst) {
  tensorflow::ListDevicesResponse devices;
  devices.add_remote_device()->set_name("/job:ps/replica:0/task:0/device:CPU:0");
  devices.add_local_device()->set_name("/job:worker/replica:0/task:0/device:CPU:0");
  devices.mutable_local_device(0)->set_memory_limit(1 << 20);
  master_.list_devices.Say(devices);
  const auto listed = master_.NewSession()->ListDevices();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ((*listed)[0].name.job, "worker");
  EXPECT_EQ((*listed)[0].memory_limit, 1 << 20);
  EXPECT_EQ((*listed)[1].name.job, "ps");
}

TEST_F(RemoteSessionTest, ADeviceWithoutAProperNameIsTheMastersFault) {
  tensorflow::ListDevicesResponse devices;
  devices.add_local_device()->set_name("/job:ps/device:CPU:0");
  master_.list_devices.Say(devices);
  const Status status = master_.NewSession()->ListDevices().status();
  EXPECT_EQ(status.code(), StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()),
              StartsWith(master_.target() + ": the answer is broken: '/job:ps/device:CPU:0'"));
}

TEST_F(RemoteSessionTest, AResetNamesContainersAndFilters) {
  EXPECT_EQ(ResetCluster(master_.target(), {"a", "b"}, {.device_filters = {"/job:ps"}}),
            OkStatus());
  EXPECT_THAT(master_.reset.request(0).container(), ElementsAre("a", "b"));
  EXPECT_THAT(master_.reset.request(0).device_filters(), ElementsAre("/job:ps"));
  master_.reset.Fail(grpc::UNAVAILABLE, "ps 1 is gone");
  EXPECT_EQ(ResetCluster(master_.target(), {}, {}),
            Unavailable(master_.target(), ": ps 1 is gone"));
}

TEST_F(RemoteSessionTest, MalformedTargetsAreRefused) {
  for (const std::string target : {"", "127.0.0.1:1", "grpc://", "grpc://host", "http://host:1"}) {
    const Status status = NewRemoteSession(target, {}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << target;
    EXPECT_THAT(std::string(status.message()), HasSubstr(StrCat("target '", target, "'")));
    EXPECT_EQ(ResetCluster(target, {}, {}).code(), StatusCode::kInvalidArgument) << target;
  }
}

}  // namespace
}  // namespace penstock
