// SPDX-License-Identifier: Apache-2.0
//
// Tests the table of passes, and the compiler that runs it.
#include "core/compiler/compile.h"

#include <string>
#include <vector>

#include "core/compiler/testing/test_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Ran(const CompileReport& report) {
  std::vector<std::string> names;
  for (const auto& [pass, nanos] : report.passes) {
    names.push_back(pass);
    EXPECT_GT(nanos, 0) << pass;
  }
  return names;
}

// a + a, twice: a graph with nodes to fold, to merge and to remove.
struct Sums : TestProgram {
  Sums() {
    Node* a = Add("a", "Input");
    Node* twice = Add("twice", "Sum2", {{a, 0}, {a, 0}});
    Node* again = Add("again", "Sum2", {{a, 0}, {a, 0}});
    Node* constant = Constant("constant", {1});
    Node* folded = Add("folded", "Sum2", {{constant, 0}, {constant, 0}});
    Node* both = Add("both", "Sum2", {{twice, 0}, {again, 0}});
    Add("all", "Sum2", {{both, 0}, {folded, 0}});
  }
};

TEST(CompileTest, EveryPassIsDumpedAndTimed) {
  TestProgram p;
  p.Add("x", "Input");
  std::vector<std::string> seen;
  p.options.fetches = {*TensorName::Parse("x:0")};
  p.options.dump = [&](string_view pass, const Graph&) { seen.emplace_back(pass); };
  CompileReport report;
  ASSERT_TRUE(Compile(p.graph, p.devices, p.options, &report).ok());
  EXPECT_EQ(seen, PassNames());
  EXPECT_EQ(Ran(report), PassNames());
}

TEST(CompileTest, StagesFollowEachOther) {
  for (size_t i = 1; i < Passes().size(); ++i) {
    EXPECT_LE(Passes()[i - 1].stage, Passes()[i].stage) << Passes()[i].name;
  }
}

TEST(CompileTest, OptionalPassesCanBeLeftOut) {
  {
    Sums p;
    ASSERT_TRUE(p.Compile({}, {"all:0"}).ok());
    EXPECT_EQ(CountOps(p.After("partition"), "Sum2"), 3);
  }
  {
    Sums p;
    p.options.disabled_passes = {"merge"};
    ASSERT_TRUE(p.Compile({}, {"all:0"}).ok());
    EXPECT_EQ(CountOps(p.After("partition"), "Sum2"), 4);
    EXPECT_THAT(Ran(p.report), ElementsAre("prune", "gradients", "fold", "simplify", "sweep",
                                           "gather", "place", "read", "compress", "fuse",
                                           "schedule", "memory", "partition", "controls"));
  }
  {
    Sums p;
    p.options.optimize = false;
    ASSERT_TRUE(p.Compile({}, {"all:0"}).ok());
    EXPECT_EQ(CountOps(p.After("partition"), "Sum2"), 5);
    EXPECT_THAT(Ran(p.report), ElementsAre("prune", "gradients", "place", "read", "compress",
                                           "memory", "partition"));
  }
}

TEST(CompileTest, OtherPassesCannot) {
  const auto error = [](const char* pass) {
    Sums p;
    p.options.disabled_passes = {"fold", pass};
    EXPECT_EQ(CheckDisabledPasses(p.options.disabled_passes), p.Compile({}, {"all:0"}).status());
    return std::string(p.Compile({}, {"all:0"}).status().message());
  };
  EXPECT_THAT(error("typo"),
              HasSubstr("there is no pass 'typo'. The passes are: prune, gradients, fold"));
  for (const char* required :
       {"prune", "gradients", "place", "read", "compress", "memory", "partition"}) {
    EXPECT_THAT(error(required),
                HasSubstr(StrCat("no step runs without the pass '", required,
                                 "'. These can be disabled: fold, simplify, merge, sweep")));
  }
}

Status RenameRequest(PassContext& context) {
  for (Node* node : context.graph->nodes()) context.graph->set_requested_device(node, "/job:seen");
  return context.Shapes().status();
}

TEST(CompileTest, AfterPartitionAPassSeesEachPartition) {
  std::vector<Pass> passes(Passes().begin(), Passes().end());
  passes.push_back({"last", Stage::kPartition, Pass::kOptional, RenameRequest});
  TestProgram p;
  Node* x = p.Add("x", "Input", {}, {.device = kPs});
  p.Add("y", "Heavy", {{x, 0}}, {.device = kWorker});
  p.options.fetches = {*TensorName::Parse("y:0")};
  int dumped = 0;
  p.options.dump = [&](string_view pass, const Graph&) { dumped += pass == "last"; };
  const auto partitions = RunPasses(passes, p.graph, p.devices, p.options, nullptr);
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_EQ(partitions->size(), 2u);
  EXPECT_EQ(dumped, 2);
  for (const Partition& partition : *partitions) {
    for (const Node* node : partition.graph.nodes()) {
      EXPECT_EQ(node->requested_device(), "/job:seen") << node->name();
    }
  }
}

Status Disconnect(PassContext& context) {
  for (Node* node : context.graph->nodes()) {
    if (node->num_inputs() > 0) return context.graph->SetInput(node, 0, {});
  }
  return OkStatus();
}

TEST(CompileTest, APassThatBreaksTheGraphIsNamed) {
  for (const Stage stage : {Stage::kGraph, Stage::kPartition}) {
    std::vector<Pass> passes(Passes().begin(), Passes().end());
    passes.insert(stage == Stage::kGraph ? passes.begin() + 1 : passes.end(),
                  {"wrong", stage, Pass::kOptional, Disconnect});
    Sums p;
    p.options.fetches = {*TensorName::Parse("all:0")};
    const Status status = RunPasses(passes, p.graph, p.devices, p.options, nullptr).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("after pass 'wrong'"));
    if (stage == Stage::kPartition) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(StrCat("partition of ", kWorker)));
    }
  }
}

}  // namespace
}  // namespace penstock
