// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/client_limits.h"

#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(ClientLimitsTest, CountsSessionsByClient) {
  ClientLimits limits({.max_sessions_per_client = 2});
  ClientLimits::Place first = *limits.AddSession("10.0.0.7");
  const ClientLimits::Place second = *limits.AddSession("10.0.0.7");
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
  ClientLimits::Place step = *limits.AddStep("s");
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
  std::vector<ClientLimits::Place> places;
  for (int i = 0; i < 1000; ++i) {
    places.push_back(*limits.AddSession("10.0.0.7"));
    places.push_back(*limits.AddStep("s"));
  }
}

TEST(ClientLimitsTest, PlacesMayOutliveTheLimits) {
  ClientLimits::Place place;
  {
    ClientLimits limits({.max_sessions_per_client = 1});
    place = *limits.AddSession("10.0.0.7");
  }
  place = nullptr;
}

}  // namespace
}  // namespace penstock
