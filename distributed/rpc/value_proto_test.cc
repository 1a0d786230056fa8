// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/value_proto.h"

#include "gtest/gtest.h"
#include "proto/penstock/worker.pb.h"
#include "proto/tensorflow/cluster.pb.h"
#include "proto/tensorflow/step_stats.pb.h"

namespace penstock {
namespace {

TEST(ValueProtoTest, StatsSayWhichOutputHeldWhat) {
  tensorflow::StepStats proto;
  // Output 0 had no value.
  const NodeStats::Out out = {.index = 1, .dtype = DType::kFloat, .shape = {2}, .bytes = 8};
  ToProto(std::vector<DeviceStats>{{"/job:a/replica:0/task:0/device:CPU:0",
                                    {{.node = "n", .start_ns = 5, .end_ns = 9, .outputs = {out}}}}},
          &proto);
  const auto stats = FromProto(proto);
  ASSERT_TRUE(stats.ok()) << stats.status();
  const NodeStats& node = stats->at(0).nodes.at(0);
  EXPECT_EQ(node.end_ns - node.start_ns, 4);
  ASSERT_EQ(node.outputs.size(), 1u);
  EXPECT_EQ(node.outputs[0].index, 1);
  EXPECT_EQ(node.outputs[0].bytes, 8);
}

TEST(ValueProtoTest, StatsSayWhatANodeIsAndWhatWasTransferred) {
  const std::string ps = "/job:ps/replica:0/task:0/device:CPU:0";
  const std::string worker = "/job:worker/replica:0/task:0/device:CPU:0";
  const NodeStats sum{.node = "sum",
                      .op = "AddV2",
                      .inputs = {{"a"}, {"b", 1}, {"init", NodeStats::Input::kControl}}};
  const NodeStats transfer{.node = kTransferStats,
                           .transfer = {{.edge = "edge_12_w:0", .from = ps, .to = worker}},
                           .outputs = {{.dtype = DType::kFloat, .shape = {2}, .bytes = 8}}};
  tensorflow::StepStats proto;
  ToProto(std::vector<DeviceStats>{{worker, {sum, transfer}}}, &proto);
  EXPECT_EQ(proto.dev_stats(0).node_stats(0).timeline_label(), "sum = AddV2(a, b:1, ^init)");
  const auto stats = FromProto(proto);
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->at(0).nodes.at(0).op, sum.op);
  EXPECT_EQ(stats->at(0).nodes.at(0).inputs, sum.inputs);
  EXPECT_EQ(stats->at(0).nodes.at(1).transfer, transfer.transfer);
}

TEST(ValueProtoTest, CostGraphsComeBackInMicroseconds) {
  tensorflow::CostGraphDef proto;
  ToProto(std::vector<CostNode>{{.name = "a", .device = "d", .nanos = 1},
                                {.name = "b",
                                 .device = "d",
                                 .id = 1,
                                 .inputs = {{0, 2}},
                                 .control_inputs = {0},
                                 .outputs = {{.bytes = 8,
                                              .alias_input = 0,
                                              .dtype = DType::kFloat,
                                              .shape = PartialShape({2})}},
                                 .nanos = 5000,
                                 .temporary_bytes = 3,
                                 .persistent_bytes = 4,
                                 .is_send = true}},
          &proto);
  EXPECT_EQ(proto.node(0).compute_cost(), 1) << "it ran";
  const auto nodes = FromProto(proto);
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  ASSERT_EQ(nodes->size(), 2u);
  const CostNode& b = nodes->at(1);
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.id, 1);
  EXPECT_EQ(b.nanos, 5000);
  EXPECT_EQ(b.inputs.at(0).output, 2);
  EXPECT_EQ(b.control_inputs, std::vector<int>{0});
  EXPECT_EQ(b.outputs.at(0).bytes, 8);
  EXPECT_EQ(b.outputs.at(0).alias_input, 0);
  EXPECT_EQ(b.outputs.at(0).shape, PartialShape({2}));
  EXPECT_EQ(b.temporary_bytes, 3);
  EXPECT_EQ(b.persistent_bytes, 4);
  EXPECT_TRUE(b.is_send);
}

TEST(ValueProtoTest, ADeviceHasTheRatesOfItsType) {
  for (const char* type : {"CPU", "GPU"}) {
    tensorflow::DeviceAttributes proto;
    const std::string name = StrCat("/job:a/replica:0/task:0/device:", type, ":0");
    ToProto({.name = *DeviceName::Parse(name), .incarnation = 3}, &proto);
    const StatusOr<DeviceInfo> device = FromProto(proto);
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ(device->name.ToString(), name);
    EXPECT_EQ(device->incarnation, 3);
    EXPECT_EQ(device->rates.flops_per_ns, DefaultRates(type).flops_per_ns);
  }
  EXPECT_GT(DefaultRates("GPU").flops_per_ns, DefaultRates("CPU").flops_per_ns);
}

TEST(ValueProtoTest, TrainingProgramsComeBackWithinLimits) {
  TrainingProgram program{.updates = {{.node = "train", .hash = 1}},
                          .nodes = {{.hash = ~uint64_t{0}, .text = "'a' (Relu)"}}};
  wire::TrainingProgram proto;
  ToProto(program, &proto);
  EXPECT_EQ(FromProto(proto), program);
  for (size_t i = 0; i < TrainingProgram::kNodesMax; ++i) proto.add_node()->set_hash(i);
  EXPECT_EQ(FromProto(proto).nodes.size(), TrainingProgram::kNodesMax);
  proto.mutable_node(0)->set_text(std::string(TrainingProgram::kTextMax + 1, 'x'));
  EXPECT_LT(FromProto(proto).nodes[0].text.size(), TrainingProgram::kTextMax);
}

}  // namespace
}  // namespace penstock
