// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/session_config.h"

#include <string>

#include "core/compiler/compile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/config.pb.h"

namespace penstock {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(SessionConfigTest, ComesBackAsItWas) {
  tensorflow::ConfigProto config;
  ToProto({.operation_timeout_ms = 7,
           .allow_soft_placement = true,
           .log_device_placement = true,
           .optimize = false,
           .disabled_passes = {"merge", "sweep"},
           .bfloat16_transfers = true,
           .placement = "auto",
           .memory_limit = 1 << 20,
           .build_cost_model = 5,
           .build_cost_model_after = 2,
           .isolate_state = true,
           .device_filters = {"/job:ps"}},
          &config);
  const SessionOptions options = FromProto(config);
  EXPECT_EQ(options.operation_timeout_ms, 7);
  EXPECT_TRUE(options.allow_soft_placement);
  EXPECT_TRUE(options.log_device_placement);
  EXPECT_FALSE(options.optimize);
  EXPECT_THAT(options.disabled_passes, ElementsAre("merge", "sweep"));
  EXPECT_TRUE(options.bfloat16_transfers);
  EXPECT_TRUE(config.graph_options().enable_bfloat16_sendrecv());
  EXPECT_EQ(options.placement, "auto");
  EXPECT_EQ(options.memory_limit, 1 << 20);
  EXPECT_EQ(options.build_cost_model, 5);
  EXPECT_EQ(options.build_cost_model_after, 2);
  EXPECT_TRUE(options.isolate_state);
  EXPECT_THAT(options.device_filters, ElementsAre("/job:ps"));
}

TEST(SessionConfigTest, PlacementIsSentAndReadBack) {
  tensorflow::ConfigProto config;
  EXPECT_EQ(FromProto(config).placement, "client");
  EXPECT_FALSE(FromProto(config).bfloat16_transfers);
  ToProto({.placement = "auto"}, &config);
  EXPECT_EQ(FromProto(config).placement, "auto");
  EXPECT_THAT(FromProto(config).disabled_passes, IsEmpty());
}

TEST(SessionConfigTest, AMemoryLimitIsAnInt) {
  tensorflow::ConfigProto config;
  EXPECT_EQ(FromProto(config).memory_limit, 0);
  ToProto({.memory_limit = 512 << 20}, &config);
  EXPECT_EQ(FromProto(config).memory_limit, 512 << 20);
  auto* const client =
      config.mutable_graph_options()->mutable_rewrite_options()->add_custom_optimizers();
  client->set_name("penstock");
  (*client->mutable_parameter_map())["memory_limit"].set_s("512m");
  EXPECT_LT(FromProto(config).memory_limit, 0) << "which no session accepts";
}

TEST(SessionConfigTest, TogglesOfRewritesDisablePasses) {
  tensorflow::ConfigProto config;
  EXPECT_THAT(FromProto(config).disabled_passes, IsEmpty());
  auto& rewrites = *config.mutable_graph_options()->mutable_rewrite_options();
  rewrites.set_constant_folding(tensorflow::RewriterConfig::OFF);
  rewrites.add_custom_optimizers()->set_name("elsewhere");
  EXPECT_THAT(FromProto(config).disabled_passes, ElementsAre("fold"));
  rewrites.set_constant_folding(tensorflow::RewriterConfig::ON);
  rewrites.set_common_subgraph_elimination(tensorflow::RewriterConfig::OFF);
  EXPECT_THAT(FromProto(config).disabled_passes, ElementsAre("merge"));
  rewrites.set_arithmetic_optimization(tensorflow::RewriterConfig::OFF);
  rewrites.set_remapping(tensorflow::RewriterConfig::OFF);
  EXPECT_THAT(FromProto(config).disabled_passes, ElementsAre("merge", "simplify", "fuse"));
  EXPECT_TRUE(CheckDisabledPasses(FromProto(config).disabled_passes).ok());
}

TEST(SessionConfigTest, SwitchesOfPassesApplyAtLevelZero) {
  tensorflow::ConfigProto config;
  auto& optimizer = *config.mutable_graph_options()->mutable_optimizer_options();
  optimizer.set_do_constant_folding(true);
  EXPECT_TRUE(FromProto(config).optimize);
  EXPECT_THAT(FromProto(config).disabled_passes, IsEmpty()) << "level 1 has all";
  optimizer.set_opt_level(tensorflow::OptimizerOptions::L0);
  const SessionOptions folds = FromProto(config);
  EXPECT_TRUE(folds.optimize);
  EXPECT_THAT(folds.disabled_passes, Contains("merge"));
  EXPECT_THAT(folds.disabled_passes, Contains("sweep"));
  EXPECT_THAT(folds.disabled_passes, Not(Contains("fold")));
  EXPECT_TRUE(CheckDisabledPasses(folds.disabled_passes).ok());
  optimizer.set_do_common_subexpression_elimination(true);
  EXPECT_THAT(FromProto(config).disabled_passes, Not(Contains("merge")));
  optimizer.clear_do_constant_folding();
  EXPECT_THAT(FromProto(config).disabled_passes, Contains("fold"));
  optimizer.clear_do_common_subexpression_elimination();
  EXPECT_FALSE(FromProto(config).optimize);
  auto& rewrites = *config.mutable_graph_options()->mutable_rewrite_options();
  rewrites.set_constant_folding(tensorflow::RewriterConfig::ON);
  EXPECT_THAT(FromProto(config).disabled_passes, Not(Contains("fold")));
  EXPECT_THAT(FromProto(config).disabled_passes, Contains("merge"));
  rewrites.set_common_subgraph_elimination(tensorflow::RewriterConfig::AGGRESSIVE);
  EXPECT_THAT(FromProto(config).disabled_passes, Not(Contains("merge")));
}

TEST(SessionConfigTest, RewritesSwitchPassesOnAtLevelZero) {
  tensorflow::ConfigProto config;
  auto& graph = *config.mutable_graph_options();
  graph.mutable_optimizer_options()->set_opt_level(tensorflow::OptimizerOptions::L0);
  graph.mutable_rewrite_options()->set_arithmetic_optimization(tensorflow::RewriterConfig::ON);
  EXPECT_TRUE(FromProto(config).optimize);
  EXPECT_THAT(FromProto(config).disabled_passes, Not(Contains("simplify")));
  EXPECT_THAT(FromProto(config).disabled_passes, Contains("fuse"));
  graph.mutable_rewrite_options()->set_remapping(tensorflow::RewriterConfig::AGGRESSIVE);
  EXPECT_THAT(FromProto(config).disabled_passes, Not(Contains("fuse")));
}

TEST(SessionConfigTest, DisabledPassesAreAList) {
  tensorflow::ConfigProto config;
  auto* const ours =
      config.mutable_graph_options()->mutable_rewrite_options()->add_custom_optimizers();
  ours->set_name("penstock");
  auto& passes = (*ours->mutable_parameter_map())["disabled_passes"];
  const auto expect_refused = [&] {
    const Status refused = CheckParameters(config);
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("disabled_passes: must be a list of"));
  };
  passes.set_s("fold");
  expect_refused();
  passes.mutable_list()->add_i(1);
  expect_refused();
  passes.mutable_list()->add_s("fold");
  expect_refused();
  passes.mutable_list()->clear_i();
  EXPECT_TRUE(CheckParameters(config).ok());
  EXPECT_THAT(FromProto(config).disabled_passes, ElementsAre("fold"));
  passes.mutable_list()->clear_s();
  EXPECT_TRUE(CheckParameters(config).ok()) << "no passes";
}

TEST(SessionConfigTest, TheLargerThreadCountIsTheServers) {
  const auto threads = [](const std::string& config) { return NumThreadsOf(config); };
  EXPECT_EQ(*threads(""), 0);
  EXPECT_EQ(*threads("intra_op_parallelism_threads: 2"), 0) << "a thread per core between nodes";
  EXPECT_EQ(*threads("intra_op_parallelism_threads: 2 inter_op_parallelism_threads: 3"), 3);
  EXPECT_EQ(*threads("intra_op_parallelism_threads: 1 inter_op_parallelism_threads: -1"), 1);
  const Status many = threads("inter_op_parallelism_threads: 5000").status();
  EXPECT_EQ(many.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(many.message()), HasSubstr("inter_op_parallelism_threads: expected at"));
  EXPECT_EQ(threads("threads?").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
