// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(DropControlsTest, DropsWhatADataEdgeSays) {
  TestProgram program;
  Node* x = program.Add("x", "Noise");
  Node* other = program.Add("other", "Noise");
  program.Add("y", "Sum2", {{x, 0}, {x, 0}}, {.after = {x, other}});
  ASSERT_TRUE(program.Compile({}, {"y:0"}).ok());
  EXPECT_EQ(program.After("partition").FindNode("y")->control_inputs().size(), 2u);
  const Node* const y = program.After("controls").FindNode("y");
  ASSERT_EQ(y->control_inputs().size(), 1u);
  EXPECT_EQ(y->control_inputs()[0]->name(), "other");
}

// A Merge keeps its control edges, because it waits for only one of its data inputs.
TEST(DropControlsTest, AMergeKeepsItsOrder) {
  TestProgram program;
  Node* x = program.Add("x", "Noise");
  Node* p = program.Add("p", "Noise");
  Node* branches = program.Add("branches", "Switch", {{x, 0}, {p, 0}});
  Node* yes = program.Add("yes", "Heavy", {{branches, 1}});
  program.Add("y", "Merge", {{branches, 0}, {yes, 0}}, {.after = {yes}});
  ASSERT_TRUE(program.Compile({}, {"y:0"}).ok());
  EXPECT_EQ(program.After("controls").FindNode("y")->control_inputs().size(), 1u);
}

// A control edge between devices stays even beside a data edge.
TEST(DropControlsTest, AnOrderBetweenDevicesStays) {
  TestProgram program;
  Node* x = program.Add("x", "Noise", {}, {.device = kPs});
  Node* z = program.Add("z", "Noise", {}, {.device = kPs});
  program.Add("y", "Heavy", {{x, 0}}, {.device = kWorker, .after = {z}});
  const auto partitions = program.Compile({}, {"y:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  EXPECT_EQ(program.After("controls").FindNode("y")->control_inputs().size(), 1u);
}

}  // namespace
}  // namespace penstock
