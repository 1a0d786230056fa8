// SPDX-License-Identifier: Apache-2.0
#include "core/op/edge_name.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(EdgeNameTest, ParseInvertsToString) {
  for (const EdgeName& edge :
       {EdgeName{.id = 12, .node = "w"}, EdgeName{.id = 0, .node = "edge_1_tower/w_0", .output = 3},
        EdgeName{.id = 7, .node = "init", .output = EdgeName::kControl}}) {
    EXPECT_EQ(EdgeName::Parse(edge.ToString()), edge) << edge.ToString();
  }
  EXPECT_EQ((EdgeName{.id = 12, .node = "w"}).ToString(), "edge_12_w:0");
  EXPECT_EQ((EdgeName{.id = 12, .node = "w", .output = EdgeName::kControl}).ToString(),
            "edge_12_^w");
}

TEST(EdgeNameTest, OtherNamesAreNotEdges) {
  for (const char* text : {"", "w:0", "edge_", "edge_12", "edge_12_", "edge_12_w", "edge_x_w:0",
                           "edge_12_:0", "edge_12_w:", "edge_12_w:-1", "edge_12_^"}) {
    EXPECT_EQ(EdgeName::Parse(text), std::nullopt) << text;
  }
}

TEST(EdgeNameTest, TensorsAreNamedAsInTheGraph) {
  EXPECT_EQ(TensorOf("edge_12_layer_1/w:0"), "layer_1/w:0");
  EXPECT_EQ(TensorOf("edge_12_^init"), "^init");
  EXPECT_EQ(TensorOf("another"), "another");
}

}  // namespace
}  // namespace penstock
