// SPDX-License-Identifier: Apache-2.0
#include "client/program.h"

#include "gtest/gtest.h"

namespace penstock::client {
namespace {

TEST(ProgramTest, Collections) {
  Program program;
  Variable w(program, "w", {2}, Zeros());
  Variable fixed(program, "fixed", {2}, Zeros(), {.trainable = false});
  Variable mine(program, "mine", {2}, Zeros(), {.local = true});
  const Variable step = program.GlobalStep();
  const auto names = [](const std::vector<Variable>& variables) {
    std::string joined;
    for (const Variable& v : variables) joined += v.name() + " ";
    return joined;
  };
  EXPECT_EQ(names(program.globals()), "w fixed global_step ");
  EXPECT_EQ(names(program.trainable()), "w ");
  EXPECT_EQ(names(program.locals()), "mine ");
  EXPECT_EQ(step.dtype(), DType::kInt64);
  EXPECT_EQ(program.GlobalStep().handle(), step.handle()) << "made once";
}

TEST(ProgramTest, AGroupHasOneNodePerDevice) {
  Program program;
  Outputs ops;
  for (int i = 0; i < 6; ++i) {
    const auto device = program.DeviceScope(StrCat("/job:ps/task:", i % 2));
    ops.push_back(CallIn(program, "NoOp", {}, {}));
  }
  const Node* group = program.NodeOf(program.Group(ops, "all"));
  ASSERT_EQ(group->control_inputs().size(), 2u);
  for (const Node* part : group->control_inputs()) {
    EXPECT_EQ(part->control_inputs().size(), 3u);
    for (const Node* op : part->control_inputs()) {
      EXPECT_EQ(op->requested_device(), part->requested_device());
    }
  }
  // An empty group is valid.
  EXPECT_TRUE(program.NodeOf(program.Group({}, "nothing"))->control_inputs().empty());
}

}  // namespace
}  // namespace penstock::client
