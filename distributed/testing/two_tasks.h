// SPDX-License-Identifier: Apache-2.0
//
// TwoTasksTest: the fixture for tests of a ps and two workers, which run once for each NetworkUse.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/builder.h"
#include "distributed/testing/test_cluster.h"
#include "gtest/gtest.h"

namespace penstock {

inline constexpr char kPs[] = "/job:ps/task:0";
inline constexpr char kWorker[] = "/job:worker/task:0";

// Says whether sessions, tensors or both use the network.
enum NetworkUse { kForAll, kForTensors, kForSessions };
class TwoTasksTest : public testing::TestWithParam<NetworkUse> {
 protected:
  static void SetUpTestSuite() {
    for (const NetworkUse network : {kForAll, kForTensors, kForSessions}) {
      ServerOptions options = network == kForTensors ? TestCluster::Direct() : TestCluster::Quick();
      if (network == kForSessions) options.task.protocol = "local";
      clusters_[network] = new TestCluster({{"ps", 1}, {"worker", 2}}, options);
    }
  }
  static void TearDownTestSuite() {
    for (TestCluster* cluster : clusters_) delete cluster;
  }
  void SetUp() override { cluster_ = clusters_[GetParam()]; }
  void TearDown() override {
    EXPECT_TRUE(cluster_->Idle());
    EXPECT_TRUE(ResetCluster(cluster_->target(), {}, {}).ok());
  }
  // Runs a step with all nodes of `g`.
  Status Run(SessionInterface& session, const GraphBuilder& g, const Feeds& feeds,
             const std::vector<std::string>& fetches, const std::vector<std::string>& targets = {},
             const RunOptions& options = {}) {
    RETURN_IF_ERROR(g.status());
    RETURN_IF_ERROR(session.Extend(g.graph()));
    return session.Run(options, feeds, fetches, targets, &out, nullptr);
  }
  static inline TestCluster* clusters_[3] = {};
  TestCluster* cluster_ = nullptr;
  std::vector<Tensor> out;
};
inline std::string NameOf(const testing::TestParamInfo<NetworkUse>& info) {
  const char* const names[] = {"ForAll", "ForTensors", "ForSessions"};
  return names[info.param];
}

inline auto AllNetworks() { return testing::Values(kForAll, kForTensors, kForSessions); }

}  // namespace penstock
