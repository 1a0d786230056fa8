// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/testing/world.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(DropControlsTest, DropsWhatADataEdgeSays) {
  World w;
  Node* x = w.Add("x", "Noise");
  Node* other = w.Add("other", "Noise");
  w.Add("y", "Sum2", {{x, 0}, {x, 0}}, {.after = {x, other}});
  ASSERT_TRUE(w.Compile({}, {"y:0"}).ok());
  EXPECT_EQ(w.After("partition").FindNode("y")->control_inputs().size(), 2u);
  const Node* const y = w.After("controls").FindNode("y");
  ASSERT_EQ(y->control_inputs().size(), 1u);
  EXPECT_EQ(y->control_inputs()[0]->name(), "other");
}

// A Merge waits for one of its inputs only.
TEST(DropControlsTest, AMergeKeepsItsOrder) {
  World w;
  Node* x = w.Add("x", "Noise");
  Node* p = w.Add("p", "Noise");
  Node* branches = w.Add("branches", "Switch", {{x, 0}, {p, 0}});
  Node* yes = w.Add("yes", "Heavy", {{branches, 1}});
  w.Add("y", "Merge", {{branches, 0}, {yes, 0}}, {.after = {yes}});
  ASSERT_TRUE(w.Compile({}, {"y:0"}).ok());
  EXPECT_EQ(w.After("controls").FindNode("y")->control_inputs().size(), 1u);
}

// A control edge between devices needs a message of its own, so it stays even beside a data edge.
TEST(DropControlsTest, AnOrderBetweenDevicesStays) {
  World w;
  Node* x = w.Add("x", "Noise", {}, {.device = kPs});
  Node* z = w.Add("z", "Noise", {}, {.device = kPs});
  w.Add("y", "Heavy", {{x, 0}}, {.device = kWorker, .after = {z}});
  const auto partitions = w.Compile({}, {"y:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  EXPECT_EQ(w.After("controls").FindNode("y")->control_inputs().size(), 1u);
}

}  // namespace
}  // namespace penstock
