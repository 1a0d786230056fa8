// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "core/compiler/testing/test_program.h"
#include "core/op/private_attrs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Returns "source -> device" for each value that the pass rounds.
std::vector<std::string> Rounded(const TestProgram& p) {
  std::vector<std::string> found;
  for (const Node* node : p.After("compress").nodes()) {
    if (node->op_name() != "Cast" || node->output_type(0).dtype != DType::kFloat) continue;
    const Node& to = *node->input(0).node;
    EXPECT_EQ(to.output_type(0).dtype, DType::kBfloat16);
    const Endpoint source = to.input(0);
    EXPECT_EQ(to.assigned_device(), source.node->assigned_device());
    for (const OutEdge& use : node->out_edges()) {
      EXPECT_EQ(use.dst->assigned_device(), node->assigned_device());
    }
    const std::string output = source.index == 0 ? "" : StrCat(":", source.index);
    found.push_back(StrCat(source.node->name(), output, " -> ", node->assigned_device()));
  }
  return found;
}

struct CompressProgram : TestProgram {
  CompressProgram() { options.bfloat16_transfers = true; }
  Node* OnPs(const std::string& name, const std::string& op, std::vector<Endpoint> inputs = {}) {
    return Add(name, op, std::move(inputs), {.device = kPs});
  }
  Node* Move(const std::string& name, Node* x, const std::string& device) {
    return Add(name, "Move", {{x, 0}}, {.device = device, .attrs = {{"T", DType::kFloat}}});
  }
  Node* OnWorker(const std::string& name, const std::string& op,
                 std::vector<Endpoint> inputs = {}) {
    return Add(name, op, std::move(inputs), {.device = kWorker});
  }
};

TEST(CompressTransfersTest, RoundsOncePerSourceAndWidensOncePerDevice) {
  CompressProgram p;
  Node* const x = p.OnPs("x", "Input");
  Node* const a = p.OnWorker("a", "Heavy", {{x, 0}});
  Node* const b = p.OnWorker("b", "Sum2", {{x, 0}, {a, 0}});
  Node* const c = p.Add("c", "Heavy", {{x, 0}}, {.device = kWorker1});
  const auto partitions = p.Compile({}, {}, {b->name(), c->name()});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  EXPECT_THAT(Rounded(p),
              UnorderedElementsAre(StrCat("x -> ", kWorker), StrCat("x -> ", kWorker1)));
  EXPECT_EQ(CountOps((*partitions)[0].graph, "Cast"), 1);
  for (const Partition& partition : *partitions) {
    for (const Node* node : partition.graph.nodes()) {
      if (node->op_name() != "_Recv") continue;
      EXPECT_EQ(node->output_type(0).dtype, DType::kBfloat16) << node->name();
    }
  }
}

TEST(CompressTransfersTest, NothingUnlessAsked) {
  CompressProgram p;
  p.options.bfloat16_transfers = false;
  Node* const x = p.OnPs("x", "Input");
  p.OnWorker("a", "Heavy", {{x, 0}});
  ASSERT_TRUE(p.Compile({}, {}, {"a"}).ok());
  EXPECT_EQ(CountOps(p.After("compress"), "Cast"), 0);
}

TEST(CompressTransfersTest, ANodeMayChooseForItself) {
  for (const bool option : {false, true}) {
    CompressProgram p;
    p.options.bfloat16_transfers = option;
    const auto as = [](const char* type) {
      return NodeOptions{.device = kPs, .attrs = {{kSendAsAttr, std::string(type)}}};
    };
    Node* const rounded = p.Add("rounded", "Input", {}, as("bfloat16"));
    Node* const exact = p.Add("exact", "Input", {}, as("float"));
    p.OnWorker("sum", "Sum2", {{rounded, 0}, {exact, 0}});
    ASSERT_TRUE(p.Compile({}, {}, {"sum"}).ok());
    EXPECT_THAT(Rounded(p), UnorderedElementsAre(StrCat("rounded -> ", kWorker)));
  }
  CompressProgram p;
  Node* const x = p.Add("x", "Input", {}, {.device = kPs, .attrs = {{kSendAsAttr, "int8"}}});
  p.OnWorker("a", "Heavy", {{x, 0}});
  EXPECT_THAT(std::string(p.Compile({}, {}, {"a"}).status().message()),
              HasSubstr("node 'x': attribute _send_as must be \"bfloat16\" or \"float\""));
}

TEST(CompressTransfersTest, GradientsAreRoundedAndAssignedValuesAreNot) {
  CompressProgram p;
  Node* const var = p.OnPs("var", "Var");
  Node* const gradient = p.OnWorker("gradient", "Input");
  Node* const rate = p.OnWorker("rate", "Input");
  Node* const value = p.OnWorker("value", "Input");
  p.OnPs("train", "Train", {{var, 0}, {rate, 0}, {gradient, 0}});
  p.OnPs("assign", "Update", {{var, 0}, {value, 0}});
  ASSERT_TRUE(p.Compile({}, {}, {"train", "assign"}).ok());
  EXPECT_THAT(Rounded(p), UnorderedElementsAre(StrCat("gradient -> ", kPs)));
}

TEST(CompressTransfersTest, WeightsAreRoundedUnlessTheyAreKept) {
  CompressProgram p;
  Node* const var = p.OnPs("var", "Var");
  Node* const read = p.OnPs("read", "Identity", {{var, 0}});
  Node* const used = p.OnWorker("used", "Heavy", {{read, 0}});
  Node* const other = p.OnPs("other", "Var");
  Node* const moved = p.Move("moved", other, kWorker);
  Node* const again = p.OnWorker("again", "Identity", {{moved, 0}});
  Node* const also_used = p.OnWorker("also_used", "Heavy", {{other, 0}});
  p.OnWorker("save", "Use", {{again, 0}});
  ASSERT_TRUE(p.Compile({}, {}, {used->name(), also_used->name(), "save"}).ok());
  // `other` is saved on the worker, so it is sent exactly, once for all consumers.
  EXPECT_THAT(Rounded(p), UnorderedElementsAre(StrCat("read -> ", kWorker)));
}

TEST(CompressTransfersTest, FeedsFetchesAndConstantsStayExact) {
  CompressProgram p;
  Node* const fed = p.OnWorker("fed", "Ask");
  Node* const constant = p.Constant("constant", std::vector<float>(300, 1), {.device = kWorker});
  Node* const sum = p.OnPs("sum", "Sum2", {{fed, 0}, {constant, 0}});
  p.Move("moved", sum, kPs);
  ASSERT_TRUE(p.Compile({"fed:0"}, {"moved:0"}).ok());
  EXPECT_THAT(Rounded(p), IsEmpty());
}

TEST(CompressTransfersTest, WhatIsKnownToBeSmallStaysExact) {
  CompressProgram p;
  p.options.optimize = false;  // else the sums would be folded
  for (const int size : {255, 256}) {
    Node* const x = p.Constant(StrCat("constant", size), std::vector<float>(size, 1));
    Node* const sum = p.OnPs(StrCat("sum", size), "Sum2", {{x, 0}, {x, 0}});
    p.OnWorker(StrCat("used", size), "Heavy", {{sum, 0}});
  }
  ASSERT_TRUE(p.Compile({}, {}, {"used255", "used256"}).ok());
  EXPECT_THAT(Rounded(p), UnorderedElementsAre(StrCat("sum256 -> ", kWorker)));
}

TEST(CompressTransfersTest, DevicesOfOneTaskShareExactValues) {
  CompressProgram p;
  const std::string gpu = "/job:ps/replica:0/task:0/device:GPU:0";
  p.devices.push_back({.name = *DeviceName::Parse(gpu), .incarnation = 12});
  Node* const x = p.OnPs("x", "Input");
  p.Add("a", "OnGpu", {{x, 0}}, {.device = gpu});
  ASSERT_TRUE(p.Compile({}, {}, {"a"}).ok());
  EXPECT_THAT(Rounded(p), IsEmpty());
}

TEST(CompressTransfersTest, BranchesAreRoundedOutputByOutput) {
  CompressProgram p;
  Node* const x = p.OnPs("x", "Input");
  Node* const choice = p.OnPs("choice", "Switch", {{x, 0}, {x, 0}});
  Node* const no = p.OnWorker("no", "Heavy", {{choice, 0}});
  Node* const yes = p.OnWorker("yes", "Heavy", {{choice, 1}});
  Node* const both = p.OnPs("both", "Merge", {{no, 0}, {yes, 0}});
  p.OnPs("end", "Heavy", {{both, 0}});
  ASSERT_TRUE(p.Compile({}, {}, {"end"}).ok());
  EXPECT_THAT(Rounded(p),
              UnorderedElementsAre(StrCat("choice -> ", kWorker), StrCat("choice:1 -> ", kWorker),
                                   StrCat("no -> ", kPs), StrCat("yes -> ", kPs)));
}

// Only a NextIteration may lead back to a Merge, and initial values are sent before they enter the
// loop. The placer has colocated the NextIteration with its Merge.
TEST(CompressTransfersTest, LoopsStayLoops) {
  LoopTestProgram p;
  p.options.bfloat16_transfers = true;
  p.Add("used", "Heavy", {{p.graph.FindNode("exit"), 0}}, {.device = kWorker});
  const auto partitions = p.Compile({}, {}, {"used"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  EXPECT_THAT(Rounded(p),
              UnorderedElementsAre(StrCat("switch:1 -> ", kPs), StrCat("plus -> ", kWorker)));
}

}  // namespace
}  // namespace penstock
