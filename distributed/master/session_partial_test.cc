// SPDX-License-Identifier: Apache-2.0
//
// Tests how a session runs steps in instalments, with a worker that runs them.
#include "distributed/master/testing/sim_master_test.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::HasSubstr;

class SessionPartialTest : public SimMasterTest {
 protected:
  // Sets up a partial run that feeds both placeholders and fetches both identities.
  static std::string Begin(const Session& session) {
    const auto handle = session->SetUpPartialRun(
        {.feeds = {"Placeholder:0", "Placeholder_1:0"}, .fetches = {"Identity:0", "Identity_1:0"}});
    CHECK_OK(handle.status());
    return *handle;
  }
  Status Feed(const Session& session, const std::string& handle, const std::string& suffix,
              float value, const RunOptions& options = {}) {
    return session->RunPartial(handle, options,
                               {{"Placeholder" + suffix + ":0", Tensor::Scalar(value)}},
                               {"Identity" + suffix + ":0"}, &outputs_);
  }
  static Status Unknown(const std::string& handle) {
    return InvalidArgument("Must run PartialRunSetup before performing partial runs: '", handle,
                           "' is no partial run, or one that has ended");
  }

  std::vector<Tensor> outputs_;
};

TEST_F(SessionPartialTest, InInstalments) {
  Serving([&] {
    const Session session = NewSession("");
    const std::string handle = Begin(session);
    EXPECT_EQ(running_steps(), 1);
    ASSERT_EQ(Feed(session, handle, "_1", 5), OkStatus());
    EXPECT_EQ(outputs_[0].scalar<float>(), 5);
    EXPECT_EQ(running_steps(), 1);
    ASSERT_EQ(Feed(session, handle, "", 6), OkStatus());
    EXPECT_EQ(outputs_[0].scalar<float>(), 6);
    Pass(1);
    EXPECT_EQ(running_steps(), 0) << "all was fed and fetched";
    EXPECT_EQ(Feed(session, handle, "", 7), Unknown(handle));
  });
}

TEST_F(SessionPartialTest, PartialRunsAreIndependent) {
  Serving([&] {
    const Session session = NewSession("");
    const std::string a = Begin(session), b = Begin(session);
    EXPECT_NE(a, b);
    ASSERT_EQ(Feed(session, a, "", 1), OkStatus());
    ASSERT_EQ(Feed(session, b, "", 2), OkStatus());
    EXPECT_EQ(outputs_[0].scalar<float>(), 2);
  });
}

TEST_F(SessionPartialTest, AHandleThatIsNoPartialRun) {
  Serving([&] {
    const Session session = NewSession("");
    EXPECT_EQ(Feed(session, "nope", "", 1), Unknown("nope"));
  });
}

TEST_F(SessionPartialTest, AMistakeChangesNothing) {
  Serving([&] {
    const Session session = NewSession("");
    const std::string handle = Begin(session);
    ASSERT_EQ(Feed(session, handle, "", 1), OkStatus());
    const Status twice = Feed(session, handle, "", 1);
    EXPECT_EQ(twice.code(), StatusCode::kInvalidArgument) << twice;
    EXPECT_TRUE(outputs_.empty());
    EXPECT_EQ(Feed(session, handle, "_1", 2), OkStatus());
  });
}

TEST_F(SessionPartialTest, TracesAreRefused) {
  Serving([&] {
    const Session session = NewSession("");
    const std::string handle = Begin(session);
    for (const RunOptions& options :
         {RunOptions{.trace = true}, RunOptions{.partition_graphs = true}}) {
      EXPECT_EQ(Feed(session, handle, "", 1, options).code(), StatusCode::kUnimplemented);
    }
    EXPECT_EQ(Feed(session, handle, "", 1), OkStatus());
  });
}

TEST_F(SessionPartialTest, ACancelledInstalmentEndsTheRun) {
  Serving([&] {
    const Session session = NewSession("");
    const std::string handle = Begin(session);
    Cancellation cancellation;
    cancellation.Cancel(Cancelled("had enough"));
    (void)Feed(session, handle, "", 1, {.cancellation = &cancellation});
    Pass(10);
    EXPECT_EQ(running_steps(), 0);
    const Status after = Feed(session, handle, "_1", 2);
    EXPECT_FALSE(after.ok());
  });
}

TEST_F(SessionPartialTest, PartialRunsEndWithTheSession) {
  Serving([&] {
    const Session session = NewSession("");
    const std::string handle = Begin(session);
    ASSERT_EQ(session->Close(), OkStatus());
    EXPECT_EQ(running_steps(), 0);
    EXPECT_EQ(Feed(session, handle, "", 1), FailedPrecondition("Session is closed."));
  });
}

// The client is connected, but the answer with the handle was never read.
TEST_F(SessionPartialTest, OneThatIsNeverUsedEndsAfterAnHour) {
  Serving([&] {
    const Session session = NewSession("ipv4:10.0.0.1:1"), here = NewSession("");
    const std::string handle = Begin(session);
    Begin(here);
    const auto after = [&](int64_t ms) {
      Pass(ms);
      master_->CloseIdleSessions({"ipv4:10.0.0.1:1"});
      Pass(1);
    };
    after(kHourMs - 10);
    EXPECT_EQ(running_steps(), 2);
    after(20);
    EXPECT_EQ(running_steps(), 1) << "the one of the client in this process";
    EXPECT_EQ(Feed(session, handle, "", 1).code(), StatusCode::kDeadlineExceeded);
    EXPECT_EQ(Feed(session, handle, "", 1), Unknown(handle));
  });
}

TEST_F(SessionPartialTest, TooManyAreRefused) {
  Serving([&] {
    const Session session = NewSession("");
    const CallableSpec spec = {.feeds = {"Placeholder:0"}, .fetches = {"Identity:0"}};
    for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(session->SetUpPartialRun(spec).ok()) << i;
    const Status refused = session->SetUpPartialRun(spec).status();
    EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("has 10000 partial runs"));
    EXPECT_EQ(running_steps(), 10'000);
  });
}

}  // namespace
}  // namespace penstock
