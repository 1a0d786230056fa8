// SPDX-License-Identifier: Apache-2.0
//
// Tests calls of functions with branches and loops made of Switch and Enter, as TensorFlow 1's
// Defun writes them.
#include <string>

#include "core/functions/function_inliner.h"
#include "core/graph/testing/test_ops.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

// Expands a graph with the nodes `nodes`, which may use the node `x`, and one function `f` with the
// body `body`. Returns the resulting nodes as lines "name = Op(inputs)"; for an Enter also the name
// of its frame.
std::string Expand(const std::string& nodes, const std::string& body) {
  const std::string text = "node { name: 'x' op: 'Placeholder' }" + nodes + R"(library { function {
      signature { name: 'f' input_arg { name: 'x' type: DT_FLOAT }
                  output_arg { name: 'y' type: DT_FLOAT } }
      node_def { name: 'var' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } }
                 attr { key: 'shape' value { shape {} } } })" +
                           body + "ret { key: 'y' value: 'x' } } }";
  tensorflow::GraphDef graph, out;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph)) << text;
  const Status status = InlineFunctions(graph, TestOps(), 1000, 1 << 20, &out);
  if (!status.ok()) return std::string(status.message());
  std::string printed;
  for (const tensorflow::NodeDef& node : out.node()) {
    StrAppend(&printed, node.name(), " = ", node.op(), "(");
    for (int i = 0; i < node.input_size(); ++i) {
      StrAppend(&printed, i == 0 ? "" : ", ", node.input(i));
    }
    const auto frame = node.attr().find("frame_name");
    StrAppend(&printed, ")", frame == node.attr().end() ? "" : " of " + frame->second.s(), "\n");
  }
  return printed;
}

const char kCallF[] = "node { name: 'c' op: 'f' input: 'x' }";
const char kBranch[] = R"(
    node_def { name: 's' op: 'Switch' input: 'x' input: 'x'
               attr { key: 'T' value { type: DT_FLOAT } } }
    node_def { name: 'assign' op: 'Assign' input: 'var:ref:0' input: 's:output_true:0' })";

TEST(FunctionEffects, ACallWaitsForBranches) {
  EXPECT_EQ(Expand(kCallF, kBranch),
            "x = Placeholder()\n"
            "c/var = VariableV2()\n"
            "c/s = Switch(x, x)\n"
            "c/assign = Assign(c/var:0, c/s:1)\n"
            "c/_effects = ControlTrigger(^c/assign)\n"
            "c = IdentityN(x, ^c/var, ^c/_effects)\n");
}

// A ControlTrigger runs even if all its inputs are dead.
TEST(FunctionEffects, ACallOnABranchIsDeadWithIt) {
  const std::string expanded = Expand(R"(node { name: 't' op: 'Switch' input: 'x' input: 'x'
                                                attr { key: 'T' value { type: DT_FLOAT } } }
                                         node { name: 'c' op: 'f' input: 't:1' })",
                                      kBranch);
  EXPECT_THAT(expanded, HasSubstr("c/_begins = Identity(t:1)\n"));
  EXPECT_THAT(expanded, HasSubstr("c = IdentityN(t:1, ^c/var, ^c/_begins, ^c/_effects)\n"));
}

// Returns the nodes of a loop with the frame `name` around `value`, and an assignment in its body.
std::string LoopOf(const std::string& name, const std::string& value, const std::string& inside) {
  const auto node = [&](const std::string& part, const std::string& op, const std::string& inputs,
                        const std::string& attrs = "") {
    return StrCat("node_def { name: '", name, part, "' op: '", op, "' ", inputs,
                  " attr { key: 'T' value { type: DT_FLOAT } } ", attrs, "} ");
  };
  const auto in = [&](const std::string& part) { return StrCat("input: '", name, part, "' "); };
  return StrCat(
      node("e", "Enter", StrCat("input: '", value, "'"),
           StrCat("attr { key: 'frame_name' value { s: '", name, "' } }")),
      node("m", "Merge", in("e:output:0") + in("n:output:0"), "attr { key: 'N' value { i: 2 } }"),
      node("l", "LoopCond", in("m:output:0")),
      node("s", "Switch", in("m:output:0") + in("l:output:0")),
      node("n", "NextIteration", in("s:output_true:0")), node("x", "Exit", in("s:output_false:0")),
      inside);
}

std::string AssignIn(const std::string& loop) {
  return "node_def { name: '" + loop + "a' op: 'Assign' input: 'var:ref:0' input: '" + loop +
         "s:output_true:0' }";
}

TEST(FunctionEffects, ACallWaitsForAllIterations) {
  const std::string expanded = Expand(kCallF, LoopOf("w", "x", AssignIn("w")));
  EXPECT_THAT(expanded, HasSubstr("c/_effects_1/enter = Enter(x) of c/w\n"
                                  "c/_effects_1/merge = Merge(c/_effects_1/enter, "
                                  "c/_effects_1/next)\n"
                                  "c/_effects_1/trigger = ControlTrigger(^c/wa)\n"
                                  "c/_effects_1/switch = Switch(c/_effects_1/merge, c/wl, "
                                  "^c/_effects_1/trigger)\n"
                                  "c/_effects_1/next = NextIteration(c/_effects_1/switch:1)\n"
                                  "c/_effects_1/exit = Exit(c/_effects_1/switch)\n"
                                  "c/_effects = ControlTrigger(^c/_effects_1/exit)\n"
                                  "c = IdentityN(x, ^c/var, ^c/_effects)\n"));
}

TEST(FunctionEffects, AnOuterLoopWaitsForTheInnerOne) {
  const std::string expanded =
      Expand(kCallF, LoopOf("w", "x", LoopOf("i", "ws:output_true:0", AssignIn("i"))));
  EXPECT_THAT(expanded, HasSubstr("c/_effects_2/enter = Enter(c/ws:1) of c/i\n"));
  EXPECT_THAT(expanded, HasSubstr("c/_effects_2/trigger = ControlTrigger(^c/ia)\n"));
  EXPECT_THAT(expanded, HasSubstr("c/_effects_1/trigger = ControlTrigger(^c/_effects_2/exit)\n"));
  EXPECT_THAT(expanded, HasSubstr("c/_effects = ControlTrigger(^c/_effects_1/exit)\n"));
}

TEST(FunctionEffects, EachCallHasItsOwnLoops) {
  const std::string expanded = Expand(StrCat(kCallF, "node { name: 'd' op: 'f' input: 'x' }"),
                                      LoopOf("w", "x", AssignIn("w")));
  EXPECT_THAT(expanded, HasSubstr("c/we = Enter(x) of c/w\n"));
  EXPECT_THAT(expanded, HasSubstr("d/we = Enter(x) of d/w\n"));
}

TEST(FunctionEffects, AnEnterWithoutATypeIsAnError) {
  std::string loop = LoopOf("w", "x", AssignIn("w"));
  const std::string type = "attr { key: 'T' value { type: DT_FLOAT } }";
  loop.erase(loop.find(type), type.size());  // the Enter is the first node
  const std::string named = "we:output:0";   // to find an output by its name takes the attributes
  loop.replace(loop.find(named), named.size(), "we:0");
  EXPECT_THAT(Expand(kCallF, loop), HasSubstr("node 'c/we' has no attribute 'T'"));
}

TEST(FunctionEffects, LoopsWithoutEffectsAreAsTheyWere) {
  EXPECT_THAT(Expand(kCallF, LoopOf("w", "x", "")), Not(HasSubstr("_effects")));
}

}  // namespace
}  // namespace penstock
