// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/client_limits.h"

#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(ClientLimitsTest, CountsSessionsByClient) {
  ClientLimits limits({.max_sessions_per_client = 2});
  ClientLimits::Permit first = *limits.AddSession("10.0.0.7");
  const ClientLimits::Permit second = *limits.AddSession("10.0.0.7");
  EXPECT_TRUE(limits.AddSession("10.0.0.8").ok());
  const Status refused = limits.AddSession("10.0.0.7").status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "--max_sessions_per_client=2: the client at 10.0.0.7 has 2 sessions with this task; "
            "close one of them");
  first = nullptr;
  EXPECT_TRUE(limits.AddSession("10.0.0.7").ok());
}

TEST(ClientLimitsTest, CountsStepsBySession) {
  ClientLimits limits({.max_steps_in_flight = 1});
  ClientLimits::Permit step = *limits.AddStep("s");
  EXPECT_TRUE(limits.AddStep("t").ok());
  const Status refused = limits.AddStep("s").status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "--max_steps_in_flight=1: session s has 1 steps in flight; wait until one has ended");
  step = nullptr;
  EXPECT_TRUE(limits.AddStep("s").ok());
}

TEST(ClientLimitsTest, WithoutLimitsNothingIsCounted) {
  ClientLimits limits({});
  std::vector<ClientLimits::Permit> permits;
  for (int i = 0; i < 1000; ++i) {
    permits.push_back(*limits.AddSession("10.0.0.7"));
    permits.push_back(*limits.AddStep("s"));
  }
}

TEST(ClientLimitsTest, PermitsMayOutliveTheLimits) {
  ClientLimits::Permit permit;
  {
    ClientLimits limits({.max_sessions_per_client = 1});
    permit = *limits.AddSession("10.0.0.7");
  }
  permit = nullptr;
}

}  // namespace
}  // namespace penstock
