// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/timeline_label.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr char kPs[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:0/device:GPU:1";

// Writes `written` as a label, and returns the NodeStats that ParseTimelineLabel reads from it.
NodeStats Read(const NodeStats& written) {
  NodeStats read{.node = written.node};
  ParseTimelineLabel(TimelineLabel(written), &read);
  return read;
}

TEST(TimelineLabelTest, ParseInvertsIt) {
  const int control = NodeStats::Input::kControl;
  const std::vector<NodeStats> rows = {
      {.node = "sum", .op = "AddV2", .inputs = {{"a"}, {"scope/b_1", 2}, {"init", control}}},
      {.node = "c", .op = "Const"},
      {.node = "_send_w_0",
       .op = "_Send",
       .inputs = {{"w"}, {"after", control}},
       .transfer = {{.edge = "edge_12_w:0", .from = "", .to = kWorker}}},
      {.node = "_recv_w_0",
       .op = "_Recv",
       .transfer = {{.edge = "edge_12_w:0", .from = "", .to = kWorker}}},
      {.node = kTransferStats, .transfer = {{.edge = "edge_3_^w", .from = kPs, .to = kWorker}}},
      {.node = "of another program"},
  };
  for (const NodeStats& row : rows) {
    const NodeStats read = Read(row);
    EXPECT_EQ(read.op, row.op) << row.node;
    EXPECT_EQ(read.inputs, row.inputs) << row.node;
    EXPECT_EQ(read.transfer, row.transfer) << row.node;
  }
}

TEST(TimelineLabelTest, HasTheFormsOfTensorFlow) {
  const int control = NodeStats::Input::kControl;
  EXPECT_EQ(TimelineLabel({.node = "y", .op = "Mul", .inputs = {{"a"}, {"b", 1}, {"c", control}}}),
            "y = Mul(a, b:1, ^c)");
  EXPECT_EQ(TimelineLabel({.node = "s",
                           .op = "_Send",
                           .inputs = {{"w"}, {"c", control}},
                           .transfer = {{.edge = "edge_1_w:0", .from = "", .to = kPs}}}),
            "s = _Send(w, edge_1_w:0 @/job:ps/replica:0/task:0/device:CPU:0, ^c)");
  EXPECT_EQ(TimelineLabel({.node = kTransferStats,
                           .transfer = {{.edge = "edge_1_w:0", .from = "a", .to = "b"}},
                           .outputs = {{.bytes = 8}}}),
            "[8B] edge_1_w:0 from a to b");
}

TEST(TimelineLabelTest, LabelsOfOtherFormsSayNothing) {
  for (const char* label : {"", "y", "y = Mul", "[8B] edge_1_w:0", "[8B] x from a", " from  to "}) {
    for (const char* node : {"y", kTransferStats}) {
      NodeStats row{.node = node};
      ParseTimelineLabel(label, &row);
      EXPECT_EQ(row.op, "") << label;
      EXPECT_TRUE(row.inputs.empty()) << label;
      EXPECT_FALSE(row.transfer.has_value()) << label;
    }
  }
}

}  // namespace
}  // namespace penstock
