// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/swapped_stacks.h"

#include <gtest/gtest.h>

#include <string>

#include "core/op/registry.h"

namespace penstock {
namespace {

const Registry& Ops() {
  static const Registry& registry = *[] {
    std::vector<OpDef> ops = {
        {.name = "Input", .outputs = {{"y", "float"}}, .stateful = true},
        {.name = "Stack",
         .outputs = {{"handle", "float"}},
         .stateful = true,
         .stack = StackOp::kMake},
        {.name = "StackPushV2",
         .inputs = {{"handle", "float"}, {"elem", "float"}},
         .outputs = {{"output", "float"}},
         .attrs = {{"swap_memory", false}},
         .stack = StackOp::kPush},
        {.name = "StackPopV2",
         .inputs = {{"handle", "float"}},
         .outputs = {{"elem", "float"}},
         .stack = StackOp::kPop},
        {.name = "Merge",
         .inputs = {{"inputs", Repeat("N", "float")}},
         .outputs = {{"output", "float"}, {"value_index", "int32"}},
         .attrs = {{"N", Ints{}}},
         .flow = FlowOp::kMerge},
        {.name = "Switch",
         .inputs = {{"data", "float"}, {"pred", "float"}},
         .outputs = {{"no", "float"}, {"yes", "float"}},
         .flow = FlowOp::kSwitch},
        {.name = "Enter",
         .inputs = {{"x", "float"}},
         .outputs = {{"y", "float"}},
         .flow = FlowOp::kEnter},
        {.name = "NextIteration",
         .inputs = {{"x", "float"}},
         .outputs = {{"y", "float"}},
         .flow = FlowOp::kNextIteration},
    };
    return new Registry(std::move(ops), {});
  }();
  return registry;
}

class SwappedStacksTest : public testing::Test {
 protected:
  Node* Add(const std::string& op, std::vector<Endpoint> inputs = {}, Attrs attrs = {}) {
    StatusOr<Node*> node = graph_.AddNode({.name = graph_.UniqueName(op),
                                           .op = op,
                                           .inputs = std::move(inputs),
                                           .attrs = std::move(attrs)});
    CHECK_OK(node.status());
    return *node;
  }
  Node* Push(Node* stack, Node* element, bool swap) {
    return Add("StackPushV2", {{stack, 0}, {element, 0}}, {{"swap_memory", swap}});
  }
  bool IsSwapped(const Node* user) { return SwappedStacks::Find(graph_).IsUsedBy(*user); }

  Graph graph_{Ops()};
  Node* const input_ = Add("Input");
};

TEST_F(SwappedStacksTest, OnlyTheStackThatIsAskedFor) {
  Node *const swapped = Add("Stack"), *const other = Add("Stack");
  Node* const push = Push(swapped, input_, true);
  Node* const other_push = Push(other, push, false);
  EXPECT_TRUE(IsSwapped(push));
  EXPECT_TRUE(IsSwapped(Add("StackPopV2", {{swapped, 0}})));
  EXPECT_FALSE(IsSwapped(other_push));
  EXPECT_FALSE(IsSwapped(Add("StackPopV2", {{other, 0}})));
  EXPECT_FALSE(IsSwapped(swapped));
}

TEST_F(SwappedStacksTest, HandlesAreLedIntoLoopsAndBranches) {
  Node *const stack = Add("Stack"), *const other = Add("Stack");
  Push(stack, input_, true);
  // Two Switches with a common condition do not make their values equal.
  Node* const led = Add("Switch", {{Add("Enter", {{stack, 0}}), 0}, {input_, 0}});
  Node* const other_led = Add("Switch", {{Add("Enter", {{other, 0}}), 0}, {input_, 0}});
  EXPECT_TRUE(IsSwapped(Add("StackPopV2", {{led, 1}})));
  EXPECT_FALSE(IsSwapped(Add("StackPopV2", {{other_led, 1}})));
}

TEST_F(SwappedStacksTest, HandlesAreKeptOnStacks) {
  Node *const inner = Add("Stack"), *const outer = Add("Stack");
  Push(inner, input_, true);
  Node* const push = Push(outer, inner, false);
  Node* const handle = Add("StackPopV2", {{outer, 0}});
  EXPECT_TRUE(IsSwapped(Add("StackPopV2", {{handle, 0}})));
  EXPECT_TRUE(IsSwapped(Add("StackPopV2", {{push, 0}}))) << "a push gives what it was given";
  EXPECT_FALSE(IsSwapped(handle));
}

// The loop-carried value is the first input of the Merge.
TEST_F(SwappedStacksTest, HandlesThatGoAroundALoop) {
  Node* const stack = Add("Stack");
  Node* const merge = Add("Merge", {{}, {stack, 0}}, {{"N", 2}});
  Node* const around = Add("NextIteration", {{merge, 0}});
  ASSERT_TRUE(graph_.SetInput(merge, 0, {around, 0}).ok());
  Node* const pop = Add("StackPopV2", {{around, 0}});
  EXPECT_FALSE(IsSwapped(pop));
  Push(stack, input_, true);
  EXPECT_TRUE(IsSwapped(pop));
}

TEST_F(SwappedStacksTest, AStackOnItself) {
  Node* const stack = Add("Stack");
  Push(stack, stack, true);
  Node* handle = stack;
  for (int i = 0; i < 100'000; ++i) handle = Add("StackPopV2", {{handle, 0}});
  EXPECT_TRUE(IsSwapped(handle));
}

}  // namespace
}  // namespace penstock
