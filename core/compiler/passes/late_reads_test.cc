// SPDX-License-Identifier: Apache-2.0
//
// Tests which consumers of a variable's value are connected to the variable itself.
#include <string>
#include <utility>
#include <vector>

#include "core/compiler/passes/passes.h"
#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

class LateReadsTest : public testing::Test {
 protected:
  Node* Add(const std::string& name, const std::string& op, std::vector<Endpoint> inputs = {},
            std::vector<Node*> after = {}, const char* device = kPs, Attrs attrs = {}) {
    return p_.Add(name, op, std::move(inputs),
                  {.device = device, .attrs = std::move(attrs), .after = std::move(after)});
  }

  Status Compiled() {
    std::vector<std::string> targets;
    for (const Node* node : p_.graph.nodes()) {
      const bool last = node->out_edges().empty() && node->control_outputs().empty();
      if (last) targets.push_back(node->name());
    }
    return p_.Compile({}, {}, targets).status();
  }

  // Returns the first input of `node` after the pass, as OP or OP:INDEX.
  std::string SourceOf(const std::string& node) {
    const Status status = Compiled();
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) return "";
    const Endpoint in = p_.After("read").FindNode(node)->input(0);
    EXPECT_EQ(in.node->assigned_device(), kPs);
    return StrCat(in.node->op_name(), in.index > 0 ? StrCat(":", in.index) : "");
  }

  TestProgram p_;
};

TEST_F(LateReadsTest, AfterAnUpdateTheVariableIsReadAgain) {
  Node* const v = Add("v", "Var");
  Node* const read = Add("read", "Identity", {{v, 0}});
  Node* const update = Add("update", "Bump", {{v, 0}});
  Add("after", "Use", {{read, 0}}, {update});
  Node* const between = Add("between", "Use", {{update, 0}});
  Add("long_after", "Use", {{read, 0}}, {between});
  Add("unordered", "Use", {{read, 0}});
  Add("after_by_itself", "Use", {{Add("read2", "Identity", {{v, 0}}, {update}), 0}});
  Add("elsewhere", "Use", {{read, 0}}, {update}, kWorker);
  EXPECT_EQ(SourceOf("after"), "RefIdentity");
  EXPECT_EQ(SourceOf("long_after"), "RefIdentity");
  EXPECT_EQ(SourceOf("unordered"), "Identity");
  EXPECT_EQ(SourceOf("after_by_itself"), "Identity");
  EXPECT_EQ(SourceOf("elsewhere"), "Identity");
}

TEST_F(LateReadsTest, AnotherVariablesUpdateChangesNothing) {
  Node* const v = Add("v", "Var");
  Node* const read = Add("read", "Identity", {{v, 0}});
  Node* const update = Add("update", "Bump", {{Add("w", "Var"), 0}});
  Add("v_update", "Bump", {{v, 0}});
  Add("after", "Use", {{read, 0}}, {update});
  EXPECT_EQ(SourceOf("after"), "Identity");
}

TEST_F(LateReadsTest, OneUpdateAfterTheOther) {
  Node* const v = Add("v", "Var");
  Node* const first = Add("first", "Bump", {{v, 0}});
  Node* const read = Add("read", "Identity", {{first, 0}});
  Node* const second = Add("second", "Bump", {{first, 0}}, {read});
  Add("after", "Use", {{read, 0}}, {second});
  EXPECT_EQ(SourceOf("after"), "RefIdentity");
}

TEST_F(LateReadsTest, ThroughBranchesAndOtherOpsThatPassOn) {
  Node* const v = Add("v", "Var");
  Node* const read = Add("read", "PreventGradient", {{v, 0}});
  Node* const choice = Add("choice", "Switch", {{read, 0}, {Add("pred", "Input"), 0}});
  Node* const same = Add("same", "Identity", {{choice, 1}});
  Node* const update = Add("update", "Bump", {{v, 0}});
  Add("after", "Use", {{same, 0}}, {update});
  Add("after_choice", "Use", {{choice, 1}}, {update});
  Add("before", "Use", {{choice, 1}});
  EXPECT_EQ(SourceOf("after"), "RefIdentity");
  EXPECT_EQ(SourceOf("after_choice"), "RefSwitch:1");
  EXPECT_EQ(SourceOf("before"), "Switch:1");
}

// The back edge is the first input of the Merge.
TEST_F(LateReadsTest, ReferencesThatGoAroundALoop) {
  Node* const enter =
      Add("enter", "RefEnter", {{Add("v", "Var"), 0}}, {}, kPs, {{"frame_name", "loop"}});
  Node* const merge = Add("merge", "RefMerge", {{}, {enter, 0}}, {}, kPs, {{"N", 2}});
  Node* const around = Add("around", "RefNextIteration", {{merge, 0}});
  ASSERT_TRUE(p_.graph.SetInput(merge, 0, {around, 0}).ok());
  Node* const read = Add("read", "Identity", {{merge, 0}});
  Node* const update = Add("update", "Bump", {{merge, 0}});
  Add("exit", "Exit", {{Add("after", "Use", {{read, 0}}, {update}), 0}});
  EXPECT_EQ(SourceOf("after"), "RefIdentity");
}

// One walk per update would visit 30,000 times 120,000 nodes.
TEST_F(LateReadsTest, ManyVariablesOneAfterTheOther) {
  Node* last = Add("first", "Input");
  std::vector<Node*> uses;
  for (int i = 0; i < 30'000; ++i) {
    Node* const v = Add(StrCat("v", i), "Var", {}, {last});
    Node* const read = Add(StrCat("read", i), "Identity", {{v, 0}});
    Node* const update = Add(StrCat("update", i), "Bump", {{v, 0}}, {read});
    last = Add(StrCat("use", i), "Use", {{read, 0}}, {i % 2 == 0 ? update : read});
    uses.push_back(last);
  }
  for (Node* node : p_.graph.nodes()) p_.graph.set_assigned_device(node, kPs);
  CompileReport report;
  PassContext context{.program = p_.graph,
                      .devices = p_.devices,
                      .options = p_.options,
                      .report = report,
                      .graph = &p_.graph};
  ASSERT_TRUE(ReadVariablesLate(context).ok());
  for (size_t i = 0; i < uses.size(); ++i) {
    ASSERT_EQ(uses[i]->input(0).node->op_name(), i % 2 == 0 ? "RefIdentity" : "Identity") << i;
  }
}

TEST_F(LateReadsTest, AReferenceToNothing) {
  Node* const merge = Add("merge", "RefMerge", {{}}, {}, kPs, {{"N", 1}});
  Node* const around = Add("around", "RefNextIteration", {{merge, 0}});
  ASSERT_TRUE(p_.graph.SetInput(merge, 0, {around, 0}).ok());
  Node* const read = Add("read", "Identity", {{merge, 0}});
  Add("after", "Use", {{read, 0}}, {Add("update", "Bump", {{merge, 0}})});
  EXPECT_EQ(Compiled().code(), absl::StatusCode::kInvalidArgument) << Compiled();
}

}  // namespace
}  // namespace penstock
