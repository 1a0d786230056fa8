// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/in_process_master.h"

#include <thread>

#include "core/base/thread_pool.h"
#include "core/graph/builder.h"
#include "distributed/master/testing/sim_master_test.h"
#include "distributed/session/in_process_sessions.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr char kAddress[] = "here:1";

class InProcessMasterTest : public SimMasterTest {
 protected:
  void Serving(const std::function<void()>& body) {
    SimMasterTest::Serving([&] {
      direct_.emplace(kAddress, *master_, scheduler_);
      body();
      direct_.reset();
    });
  }
  // Runs a step that fetches the fed value.
  static Status Step(SessionInterface& session, float value) {
    std::vector<Tensor> out;
    RETURN_IF_ERROR(
        session.Run({}, {{"Placeholder", Tensor::Scalar(value)}}, {"Identity"}, {}, &out, nullptr));
    EXPECT_EQ(out[0].scalar<float>(), value);
    return OkStatus();
  }

  std::optional<InProcessMaster> direct_;
};

TEST_F(InProcessMasterTest, ASessionBeginsWithItsFirstCall) {
  Serving([&] {
    const auto session = direct_->NewSession({});
    EXPECT_FALSE((*worker_)->has_sessions());
    EXPECT_EQ(Step(*session, 1).code(), StatusCode::kNotFound) << "its graph is empty";
    EXPECT_TRUE((*worker_)->has_sessions());
    ASSERT_EQ(session->Extend(g_.graph()), OkStatus());
    EXPECT_EQ(Step(*session, 2), OkStatus());
    EXPECT_EQ(session->ListDevices()->size(), 1u);
  });
}

TEST_F(InProcessMasterTest, AGraphOnlyGrows) {
  Serving([&] {
    const auto session = direct_->NewSession({});
    ASSERT_EQ(session->Extend(g_.graph()), OkStatus());
    EXPECT_EQ(session->Extend(Graph(Registry::Global())),
              InvalidArgument("Extend: the graph has fewer nodes than the session has seen"));
    EXPECT_EQ(Step(*session, 3), OkStatus());
  });
}

TEST_F(InProcessMasterTest, AClosedSessionSaysSo) {
  Serving([&] {
    const auto session = direct_->NewSession({});
    ASSERT_EQ(session->Extend(g_.graph()), OkStatus());
    EXPECT_EQ(session->Close(), OkStatus());
    EXPECT_FALSE((*worker_)->has_sessions());
    const Status closed = FailedPrecondition("Session is closed.");
    EXPECT_EQ(Step(*session, 1), closed);
    EXPECT_EQ(session->Extend(g_.graph()), closed);
    EXPECT_EQ(session->ListDevices().status(), closed);
    EXPECT_EQ(session->MakeCallable({}).status(), closed);
    EXPECT_EQ(session->SetUpPartialRun({}).status(), closed);
    EXPECT_EQ(session->Close(), OkStatus());
  });
}

TEST_F(InProcessMasterTest, DestroyingASessionClosesIt) {
  Serving([&] {
    auto session = direct_->NewSession({});
    ASSERT_EQ(session->Extend(g_.graph()), OkStatus());
    EXPECT_TRUE((*worker_)->has_sessions());
    session = nullptr;
    EXPECT_FALSE((*worker_)->has_sessions());
  });
}

TEST_F(InProcessMasterTest, IsFoundByItsAddressUntilItRefuses) {
  Serving([&] {
    EXPECT_EQ(InProcessSessions::New(kAddress, {}), nullptr) << "not published yet";
    direct_->Publish();
    const auto session = InProcessSessions::New(kAddress, {});
    ASSERT_NE(session, nullptr);
    ASSERT_EQ(session->Extend(g_.graph()), OkStatus());
    direct_->Refuse();
    EXPECT_EQ(InProcessSessions::New(kAddress, {}), nullptr);
    EXPECT_EQ(Step(*session, 1), Unavailable("the server at here:1 has been stopped"));
    direct_->Refuse();
  });
}

// A session may outlive the master.
TEST_F(InProcessMasterTest, SessionsOutliveTheMaster) {
  std::unique_ptr<SessionInterface> session;
  Serving([&] {
    session = direct_->NewSession({});
    ASSERT_EQ(session->Extend(g_.graph()), OkStatus());
  });
  EXPECT_EQ(Step(*session, 1), Unavailable("the server at here:1 has been stopped"));
  EXPECT_EQ(session->Close(), Unavailable("the server at here:1 has been stopped"));
}

TEST_F(InProcessMasterTest, CloseWaitsForTheCallsUnderWay) {
  const Output stall = CallIn(g_, "TestStall", {Outputs{}});
  ASSERT_EQ(g_.status(), OkStatus());
  Serving([&] {
    const auto session = direct_->NewSession({});
    ASSERT_EQ(session->Extend(g_.graph()), OkStatus());
    Status ran;
    const auto caller = scheduler_.StartThread("caller", [&] {
      std::vector<Tensor> out;
      ran = session->Run({.timeout_ms = 1'000}, {}, {stall.name()}, {}, &out, nullptr);
    });
    Pass(1);
    direct_->Refuse();
    EXPECT_EQ(Step(*session, 1).code(), StatusCode::kUnavailable);
    direct_->Close();
    EXPECT_EQ(ran.code(), StatusCode::kDeadlineExceeded) << ran;
    EXPECT_GE(NowMs(), 1'000);
  });
}

// Uses real threads: either of the two first calls may be the one that creates the session.
TEST(InProcessMasterThreadsTest, TwoFirstCallsBeginOneSession) {
  ThreadPool threads("test", 2);
  TestWorker worker(Env::Real(), threads, DeadlineTimer::Real());
  Master::Options options{
      .worker = &*worker,
      .services = {.env = &Env::Real(), .timer = &DeadlineTimer::Real(), .threads = &threads},
      .registry = &Registry::Global()};
  ASSERT_EQ(options.cluster.AddTask("ps", 0, kAddress), OkStatus());
  Master master(std::move(options));
  InProcessMaster direct(kAddress, master, threads);
  GraphBuilder g;
  CallIn(g, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({})}});
  for (int i = 0; i < 300; ++i) {
    const auto session = direct.NewSession({});
    std::thread other([&] {
      const auto devices = session->ListDevices();
      EXPECT_TRUE(devices.ok()) << devices.status();
    });
    EXPECT_EQ(session->Extend(g.graph()), OkStatus());
    other.join();
  }
}

}  // namespace
}  // namespace penstock
