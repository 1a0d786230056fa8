// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/partition/partitioner.h"

#include "core/compiler/testing/test_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

TEST(PartitionTest, OnePairPerTensorAndDestination) {
  TestProgram p;
  Node* x = p.Add("x", "Input", {}, {.device = "/job:ps/task:0"});
  Node* a = p.Add("a", "Heavy", {{x, 0}}, {.device = "/job:worker/task:0"});
  Node* b = p.Add("b", "Heavy", {{x, 0}}, {.device = "/job:worker/task:0"});
  Node* c = p.Add("c", "Sum2", {{x, 0}, {x, 0}}, {.device = "/job:worker/task:1"});
  p.options.optimize = false;
  const auto partitions = p.Compile({}, {}, {a->name(), b->name(), c->name()});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_EQ(partitions->size(), 3u);
  EXPECT_EQ((*partitions)[0].device, kPs);
  EXPECT_EQ(CountOps((*partitions)[0].graph, "_Send"), 2) << "one for each destination";
  EXPECT_EQ(CountOps((*partitions)[1].graph, "_Recv"), 1);
  EXPECT_EQ(CountOps((*partitions)[2].graph, "_Recv"), 1);
  for (const Node* node : (*partitions)[1].graph.nodes()) {
    if (node->op_name() != "_Recv") continue;
    EXPECT_EQ(*node->attr<int64_t>("send_device_incarnation"), 11);
    EXPECT_EQ(*node->attr<std::string>("send_device"), kPs);
    EXPECT_EQ(*node->attr<std::string>("recv_device"), kWorker);
  }
}

TEST(PartitionTest, ControlEdgesCrossAsEmptyTensorsAndConstantsAreCopied) {
  TestProgram p;
  Node* before = p.Add("before", "Group", {}, {.device = "/job:ps/task:0"});
  Node* constant = p.Constant("k", {1});
  p.graph.set_requested_device(constant, "/job:ps/task:0");
  Node* after =
      p.Add("after", "Heavy", {{constant, 0}}, {.device = "/job:worker/task:0", .after = {before}});
  p.options.optimize = false;
  const auto partitions = p.Compile({}, {}, {after->name()});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_EQ(partitions->size(), 2u);
  const Partition& ps = (*partitions)[0];
  const Partition& worker = (*partitions)[1];
  EXPECT_EQ(CountOps(ps.graph, "_Send"), 1) << "the token only";
  EXPECT_EQ(CountOps(worker.graph, "Const"), 1);
  const Node* copy = worker.graph.FindNode("after");
  ASSERT_NE(copy, nullptr);
  ASSERT_EQ(copy->control_inputs().size(), 1u);
  EXPECT_EQ(copy->control_inputs()[0]->op_name(), "_Recv");
  EXPECT_EQ(copy->input(0).node->op_name(), "Const");
}

TEST(PartitionTest, AReferenceThatEntersOnceIsReadWhereItIs) {
  for (const bool constant : {true, false}) {
    LoopTestProgram p;
    Node* const var = p.Add("var", "Var", {}, {.device = kPs});
    Node* const enter =
        p.Add("enter_ref", "RefEnter", {{var, 0}},
              {.device = kPs, .attrs = {{"frame_name", "f"}, {"is_constant", constant}}});
    Node* const use = p.Add("use", "Heavy", {{enter, 0}}, {.device = kWorker});
    ASSERT_TRUE(p.graph.SetInput(p.graph.FindNode("plus"), 1, {use, 0}).ok());
    const Status status = p.Compile({}, {"exit:0"}).status();
    if (constant) {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("the value behind 'enter_ref' (RefEnter), on /job:ps/replica:0/task:0"));
  }
}

}  // namespace
}  // namespace penstock
