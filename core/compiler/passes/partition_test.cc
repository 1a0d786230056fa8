// SPDX-License-Identifier: Apache-2.0
//
// Tests how the pass uses the partitioner; core/compiler/partition tests the partitioner itself.
#include "core/compiler/passes/passes.h"
#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

struct PlacedProgram : TestProgram {
  Node* AddOn(const std::string& device, const std::string& name, const std::string& op,
              std::vector<Endpoint> inputs = {}) {
    Node* const node = Add(name, op, std::move(inputs));
    graph.set_assigned_device(node, device);
    return node;
  }
  PassContext Context() {
    return {.program = graph,
            .devices = devices,
            .options = options,
            .report = report,
            .graph = &graph};
  }
};

// The pass moves a graph for one device: a copy would take as long as all other passes together.
TEST(PartitionPassTest, AGraphOfOneDeviceIsMoved) {
  PlacedProgram p;
  Node* const x = p.AddOn(kWorker, "x", "Input");
  const Node* const y = p.AddOn(kWorker, "y", "Heavy", {{x, 0}});
  PassContext context = p.Context();
  ASSERT_TRUE(MakePartitions(context).ok());
  ASSERT_EQ(context.partitions.size(), 1u);
  EXPECT_EQ(context.partitions[0].device, kWorker);
  EXPECT_EQ(context.partitions[0].graph.FindNode("y"), y) << "the same object";
}

TEST(PartitionPassTest, AGraphOfTwoDevicesIsCut) {
  PlacedProgram p;
  Node* const x = p.AddOn(kPs, "x", "Input");
  p.AddOn(kWorker, "y", "Heavy", {{x, 0}});
  PassContext context = p.Context();
  ASSERT_TRUE(MakePartitions(context).ok());
  ASSERT_EQ(context.partitions.size(), 2u);
  EXPECT_EQ(context.partitions[0].device, kPs) << "in order of name";
  EXPECT_EQ(CountOps(context.partitions[0].graph, "_Send"), 1);
  EXPECT_EQ(CountOps(context.partitions[1].graph, "_Recv"), 1);
}

TEST(PartitionPassTest, UrgencyOrdersTheNodesThatWaitForNothing) {
  PlacedProgram p;
  Node* const a = p.AddOn(kPs, "a", "Input");
  Node* const b = p.AddOn(kPs, "b", "Input");
  p.AddOn(kWorker, "y", "Sum2", {{a, 0}, {b, 0}});
  PassContext context = p.Context();
  context.urgency = {1, 2, 0};
  ASSERT_TRUE(MakePartitions(context).ok());
  const Graph& ps = context.partitions[0].graph;
  EXPECT_LT(ps.FindNode("b")->id(), ps.FindNode("a")->id());
}

// Without the check here, the executor would report the error later, and could not name the nodes
// of the program.
TEST(PartitionPassTest, AWrongLoopOfOneDeviceIsAnError) {
  PlacedProgram p;
  Node* const x = p.AddOn(kWorker, "x", "Input");
  p.AddOn(kWorker, "exit", "Exit", {{x, 0}});
  PassContext context = p.Context();
  EXPECT_FALSE(MakePartitions(context).ok());
  EXPECT_TRUE(context.partitions.empty());
}

}  // namespace
}  // namespace penstock
