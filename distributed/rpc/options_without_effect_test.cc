// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/options_without_effect.h"

#include "distributed/rpc/session_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/config.pb.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(OptionsWithoutEffectTest, OptionsOfASession) {
  tensorflow::ConfigProto config;
  ToProto({.operation_timeout_ms = 7,
           .allow_soft_placement = true,
           .log_device_placement = true,
           .optimize = false,
           .disabled_passes = {"merge"},
           .bfloat16_transfers = true,
           .placement = "auto",
           .isolate_state = true,
           .device_filters = {"/job:ps"}},
          &config);
  EXPECT_THAT(OptionsWithoutEffect(config), IsEmpty());
  auto& graph = *config.mutable_graph_options();
  graph.set_enable_recv_scheduling(true);
  graph.mutable_optimizer_options()->set_do_constant_folding(true);
  graph.mutable_optimizer_options()->set_global_jit_level(tensorflow::OptimizerOptions::ON_1);
  (*config.mutable_device_count())["CPU"] = 2;
  config.mutable_gpu_options();  // empty: nothing is set
  EXPECT_THAT(OptionsWithoutEffect(config),
              ElementsAre("device_count", "graph_options.enable_recv_scheduling",
                          "graph_options.optimizer_options.global_jit_level"));
}

TEST(OptionsWithoutEffectTest, RewritesOneByOne) {
  tensorflow::ConfigProto config;
  auto& rewrites = *config.mutable_graph_options()->mutable_rewrite_options();
  rewrites.set_constant_folding(tensorflow::RewriterConfig::OFF);
  rewrites.set_arithmetic_optimization(tensorflow::RewriterConfig::OFF);
  rewrites.set_remapping(tensorflow::RewriterConfig::ON);
  EXPECT_THAT(OptionsWithoutEffect(config), IsEmpty());
  rewrites.set_shape_optimization(tensorflow::RewriterConfig::OFF);
  rewrites.set_min_graph_nodes(-1);
  rewrites.mutable_auto_parallel()->set_num_replicas(2);
  rewrites.add_optimizers("pruning");
  auto& ours = *rewrites.add_custom_optimizers();
  ours.set_name("penstock");
  (*ours.mutable_parameter_map())["placement"].set_s("auto");
  (*ours.mutable_parameter_map())["memory_limits"].set_i(1);
  rewrites.add_custom_optimizers()->set_name("elsewhere");
  EXPECT_THAT(
      OptionsWithoutEffect(config),
      ElementsAre("graph_options.rewrite_options.auto_parallel.num_replicas",
                  "graph_options.rewrite_options.shape_optimization",
                  "graph_options.rewrite_options.min_graph_nodes",
                  "graph_options.rewrite_options.optimizers",
                  "graph_options.rewrite_options.custom_optimizers['penstock'].parameter_map["
                  "'memory_limits']",
                  "graph_options.rewrite_options.custom_optimizers['elsewhere']"));
}

// A later version of the protocol may have more fields.
TEST(OptionsWithoutEffectTest, FieldsThatAreNotKnown) {
  tensorflow::ConfigProto config;
  const auto add = [](google::protobuf::Message* message, int number) {
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(number, 1);
  };
  add(&config, 901);
  add(config.mutable_graph_options()->mutable_rewrite_options(), 902);
  add(config.mutable_graph_options()->mutable_rewrite_options(), 902);
  EXPECT_THAT(OptionsWithoutEffect(config),
              ElementsAre("graph_options.rewrite_options.field 902", "field 901"));
}

TEST(OptionsWithoutEffectTest, OptionsOfAStep) {
  tensorflow::RunOptions options;
  options.set_trace_level(tensorflow::RunOptions::FULL_TRACE);
  options.set_timeout_in_ms(5);
  options.set_output_partition_graphs(true);
  EXPECT_THAT(OptionsWithoutEffect(options), IsEmpty());
  options.set_inter_op_thread_pool(-1);
  options.set_report_tensor_allocations_upon_oom(true);
  options.mutable_experimental()->set_use_run_handler_pool(true);
  EXPECT_THAT(OptionsWithoutEffect(options),
              ElementsAre("inter_op_thread_pool", "report_tensor_allocations_upon_oom",
                          "experimental.use_run_handler_pool"));
}

TEST(OptionsWithoutEffectTest, OptionsOfACallable) {
  tensorflow::CallableOptions options;
  options.add_feed("x:0");
  options.add_fetch("y:0");
  options.add_target("z");
  options.mutable_run_options()->set_timeout_in_ms(5);
  EXPECT_THAT(OptionsWithoutEffect(options), IsEmpty());
  options.mutable_run_options()->set_inter_op_thread_pool(1);
  (*options.mutable_feed_devices())["x:0"] = "/device:GPU:0";
  options.set_fetch_skip_sync(true);
  EXPECT_THAT(OptionsWithoutEffect(options),
              ElementsAre("run_options.inter_op_thread_pool", "feed_devices", "fetch_skip_sync"));
}

}  // namespace
}  // namespace penstock
