// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/partition/control_loops.h"

#include <string>

#include "core/compiler/testing/test_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

TEST(ControlLoopsTest, ALoopOnTwoDevicesIsDrivenOnBoth) {
  LoopTestProgram p;
  const auto partitions = p.Compile({}, {"exit:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_EQ(partitions->size(), 2);
  EXPECT_EQ(p.DeviceOf("next"), kWorker) << "a loop-carried value stays with its Merge";
  const Partition& ps = (*partitions)[0];
  ASSERT_EQ(ps.device, kPs);
  EXPECT_EQ(CountOps(ps.graph, "Enter"), 2) << "the control loop's and k's";
  for (const char* op : {"Merge", "Switch", "NextIteration"})
    EXPECT_EQ(CountOps(ps.graph, op), 1) << op;
  EXPECT_EQ(CountOps((*partitions)[1].graph, "Merge"), 2);
  int in_loop = 0;
  for (const Node* node : ps.graph.nodes()) {
    if (node->op_name() != "_Recv") continue;
    const bool of_k = *node->attr<std::string>("tensor_name") ==
                      StrCat("edge_", p.graph.FindNode("k")->id(), "_k:0");
    if (of_k || node->control_inputs().empty()) continue;
    ++in_loop;
    EXPECT_EQ(node->control_inputs()[0]->op_name(), "Merge");
  }
  EXPECT_EQ(in_loop, 2) << "the condition and x: in each iteration; k once, outside of the loop";
  EXPECT_EQ(CountOps(ps.graph, "_Recv"), 3);
}

void PlaceAsRequested(Graph& graph) {
  for (Node* node : graph.nodes()) graph.set_assigned_device(node, node->requested_device());
}

TEST(ControlLoopsTest, ALoopOnOneDeviceNeedsNone) {
  LoopTestProgram p;
  for (Node* node : p.graph.nodes()) p.graph.set_assigned_device(node, kWorker);
  const int before = p.graph.num_nodes();
  const auto loops = AddControlLoops(&p.graph);
  ASSERT_TRUE(loops.ok()) << loops.status();
  EXPECT_TRUE(loops->iterations.empty());
  EXPECT_EQ(p.graph.num_nodes(), before);
}

TEST(ControlLoopsTest, ASpreadLoopWithoutLoopCondIsRefused) {
  TestProgram p;
  const Attrs frame = {{"frame_name", "f"}};
  Node* x = p.Add("x", "Input", {}, {.device = kWorker});
  Node* enter = p.Add("enter", "Enter", {{x, 0}}, {.device = kWorker, .attrs = frame});
  p.Add("far", "Heavy", {{enter, 0}}, {.device = kPs});
  PlaceAsRequested(p.graph);
  const Status status = AddControlLoops(&p.graph).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("loop 'f' is spread over several devices"));
}

}  // namespace
}  // namespace penstock
