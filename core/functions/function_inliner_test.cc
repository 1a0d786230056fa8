// SPDX-License-Identifier: Apache-2.0
#include "core/functions/function_inliner.h"

#include <string>

#include "core/graph/testing/test_ops.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

tensorflow::GraphDef FromText(const std::string& text) {
  tensorflow::GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def)) << text;
  return def;
}

// Returns "name = Op(inputs)" lines, or the error.
std::string Inline(const std::string& text, int64_t nodes_max = 1000,
                   int64_t bytes_max = int64_t{1} << 30) {
  tensorflow::GraphDef out;
  const Status status = InlineFunctions(FromText(text), TestOps(), nodes_max, bytes_max, &out);
  if (!status.ok()) return std::string(status.message());
  std::string printed;
  for (const tensorflow::NodeDef& node : out.node()) {
    StrAppend(&printed, node.name(), " = ", node.op(), "(");
    for (int i = 0; i < node.input_size(); ++i) {
      StrAppend(&printed, i == 0 ? "" : ", ", node.input(i));
    }
    StrAppend(&printed, ")\n");
  }
  return printed;
}

// f(x) = x + x, which also runs a node with a side effect.
const char kDouble[] = R"(
  function {
    signature {
      name: 'double'
      input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT }
    }
    node_def { name: 'sum' op: 'AddV2' input: 'x' input: 'x' input: '^effect'
               attr { key: 'T' value { type: DT_FLOAT } } }
    node_def { name: 'effect' op: 'NoOp' }
    ret { key: 'y' value: 'sum:z:0' }
    control_ret { key: 'effect' value: 'effect' }
  })";
std::string Library(const std::string& functions) { return "library {" + functions + "}"; }
const char kX[] = "node { name: 'x' op: 'Placeholder' }";
const char kCall[] = R"(
  node { name: 'call' op: 'PartitionedCall' input: 'x' input: '^before'
         attr { key: 'f' value { func { name: 'double' } } } })";

TEST(InlineFunctions, ReplacesACallByItsBody) {
  EXPECT_EQ(Inline(std::string(kX) + kCall + Library(kDouble)),
            "x = Placeholder()\n"
            "call/sum = AddV2(x, x, ^call/effect)\n"
            "call/effect = NoOp(^before)\n"
            "call = IdentityN(call/sum:0, ^before, ^call/effect)\n");
}

TEST(InlineFunctions, ReplacesCallsInCallsAndByName) {
  const std::string twice = R"(
    function {
      signature {
        name: 'twice'
        input_arg { name: 'x' type_attr: 'T' } output_arg { name: 'y' type_attr: 'T' }
        attr { name: 'T' type: 'type' }
      }
      node_def { name: 'a' op: 'double' input: 'x' }
      node_def { name: 'b' op: 'PartitionedCall' input: 'a:y:0'
                 attr { key: 'f' value { func { name: 'double' } } } }
      ret { key: 'y' value: 'b:output:0' }
    })";
  EXPECT_EQ(Inline(std::string(kX) + R"(node { name: 'c' op: 'twice' input: 'x'
                     attr { key: 'T' value { type: DT_FLOAT } } })" +
                   Library(kDouble + twice)),
            "x = Placeholder()\n"
            "c/a/sum = AddV2(x, x, ^c/a/effect)\n"
            "c/a/effect = NoOp()\n"
            "c/a = IdentityN(c/a/sum:0, ^c/a/effect)\n"
            "c/b/sum = AddV2(c/a:0, c/a:0, ^c/b/effect)\n"
            "c/b/effect = NoOp()\n"
            "c/b = IdentityN(c/b/sum:0, ^c/b/effect)\n"
            "c = IdentityN(c/b:0)\n");
}

// The node's kernel calls `twice`, which calls `double`, which has a registered gradient.
TEST(InlineFunctions, ANodeThatHoldsAFunctionCarriesAllThatItNeeds) {
  const std::string twice = R"(
    function {
      signature { name: 'twice' input_arg { name: 'x' type: DT_FLOAT }
                  output_arg { name: 'y' type: DT_FLOAT } }
      node_def { name: 'a' op: 'double' input: 'x' }
      ret { key: 'y' value: 'a:y:0' }
    }
    function { signature { name: 'slope' } }
    function { signature { name: 'unused' } }
    gradient { function_name: 'double' gradient_func: 'slope' }
    gradient { function_name: 'unused' gradient_func: 'slope' })";
  const tensorflow::GraphDef graph =
      FromText(std::string(kX) + R"(node { name: 'holds' op: 'NoOp' input: '^x'
                         attr { key: 'f' value { func { name: 'twice' } } } })" +
               Library(kDouble + twice));
  ASSERT_TRUE(CallsFunctions(graph));
  tensorflow::GraphDef out;
  ASSERT_TRUE(InlineFunctions(graph, TestOps(), 1000, 1 << 20, &out).ok());
  ASSERT_EQ(out.node_size(), 2);
  EXPECT_TRUE(out.node(0).attr().empty());
  tensorflow::FunctionDefLibrary carried;
  ASSERT_TRUE(carried.ParseFromString(out.node(1).attr().at("_functions").s()));
  ASSERT_EQ(carried.function_size(), 3);
  EXPECT_EQ(carried.function(0).signature().name(), "double");
  EXPECT_EQ(carried.function(1).signature().name(), "slope");
  EXPECT_EQ(carried.function(2).signature().name(), "twice");
  ASSERT_EQ(carried.gradient_size(), 1);
  EXPECT_EQ(carried.gradient(0).function_name(), "double");
  EXPECT_FALSE(CallsFunctions(out));
}

TEST(InlineFunctions, If) {
  const std::string text = R"(
    node { name: 'p' op: 'Placeholder' }
    node { name: 'if' op: 'StatelessIf' input: 'p' input: 'x'
           attr { key: 'Tcond' value { type: DT_BOOL } }
           attr { key: 'Tin' value { list { type: DT_FLOAT } } }
           attr { key: 'Tout' value { list { type: DT_FLOAT } } }
           attr { key: 'then_branch' value { func { name: 'double' } } }
           attr { key: 'else_branch' value { func { name: 'double' } } } })";
  EXPECT_EQ(Inline(kX + text + Library(kDouble)),
            "x = Placeholder()\n"
            "p = Placeholder()\n"
            "if/pred = Identity(p)\n"
            "if/pivot = Switch(if/pred, if/pred)\n"
            "if/switch_0 = Switch(x, if/pred)\n"
            "if/pivot_else = Identity(if/pivot:0)\n"
            "if/else/sum = AddV2(if/switch_0:0, if/switch_0:0, ^if/else/effect)\n"
            "if/else/effect = NoOp(^if/pivot_else)\n"
            "if/else = IdentityN(if/else/sum:0, ^if/pivot_else, ^if/else/effect)\n"
            "if/else_ended = Identity(if/pivot:0, ^if/else)\n"
            "if/pivot_then = Identity(if/pivot:1)\n"
            "if/then/sum = AddV2(if/switch_0:1, if/switch_0:1, ^if/then/effect)\n"
            "if/then/effect = NoOp(^if/pivot_then)\n"
            "if/then = IdentityN(if/then/sum:0, ^if/pivot_then, ^if/then/effect)\n"
            "if/then_ended = Identity(if/pivot:1, ^if/then)\n"
            "if/merge_0 = Merge(if/else/sum:0, if/then/sum:0)\n"
            "if/ended = Merge(if/else_ended, if/then_ended)\n"
            "if = IdentityN(if/merge_0, ^if/ended)\n");
}

TEST(InlineFunctions, While) {
  const std::string test = R"(
    function {
      signature { name: 'test' input_arg { name: 'x' type: DT_FLOAT }
                  output_arg { name: 'y' type: DT_BOOL } }
      node_def { name: 'always' op: 'Const'
                 attr { key: 'dtype' value { type: DT_BOOL } }
                 attr { key: 'value' value { tensor { dtype: DT_BOOL tensor_shape {} } } } }
      ret { key: 'y' value: 'always:output:0' }
    })";
  const std::string text = R"(
    node { name: 'w' op: 'While' input: 'x'
           attr { key: 'T' value { list { type: DT_FLOAT } } }
           attr { key: 'cond' value { func { name: 'test' } } }
           attr { key: 'body' value { func { name: 'double' } } } })";
  EXPECT_EQ(Inline(kX + text + Library(kDouble + test)),
            "x = Placeholder()\n"
            "w/enter_0 = Enter(x)\n"
            "w/merge_0 = Merge(w/enter_0, w/next_0)\n"
            "w/cond/always = Const(^w/merge_0)\n"
            "w/cond = IdentityN(w/cond/always:0, ^w/merge_0)\n"
            "w/loop_cond = LoopCond(w/cond)\n"
            "w/switch_0 = Switch(w/merge_0, w/loop_cond)\n"
            "w/exit_0 = Exit(w/switch_0)\n"
            "w/pivot = Identity(w/switch_0:1)\n"
            "w/body/sum = AddV2(w/switch_0:1, w/switch_0:1, ^w/body/effect)\n"
            "w/body/effect = NoOp(^w/pivot)\n"
            "w/body = IdentityN(w/body/sum:0, ^w/pivot, ^w/body/effect)\n"
            "w/next_0 = NextIteration(w/body:0)\n"
            "w = IdentityN(w/exit_0)\n");
}

// s(h, x) = x also assigns x to h. It has no control_ret, as TF1's Defun writes functions. t calls
// s without using the result.
const char kAssigns[] = R"(
  function {
    signature { name: 's' is_stateful: true input_arg { name: 'h' type: DT_FLOAT }
                input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } }
    node_def { name: 'var' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } }
               attr { key: 'shape' value { shape {} } } }
    node_def { name: 'first' op: 'Assign' input: 'var:ref:0' input: 'x' }
    node_def { name: 'then' op: 'Assign' input: 'var:ref:0' input: 'x' input: '^first' }
    ret { key: 'y' value: 'x' }
  }
  function {
    signature { name: 't' input_arg { name: 'h' type: DT_FLOAT }
                input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } }
    node_def { name: 'call' op: 's' input: 'h' input: 'x' }
    ret { key: 'y' value: 'x' }
  }
  function {
    signature { name: 'only' input_arg { name: 'h' type: DT_FLOAT }
                input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } }
    node_def { name: 'unused' op: 'AddV2' input: 'h' input: 'x' }
    ret { key: 'y' value: 'x' }
  })";

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(InlineFunctions, ACallRunsStatefulNodesThatNothingUses) {
  EXPECT_EQ(Inline(kX + std::string("node { name: 'c' op: 't' input: 'x' input: 'x' }") +
                   Library(kAssigns)),
            "x = Placeholder()\n"
            "c/call/var = VariableV2()\n"
            "c/call/first = Assign(c/call/var:0, x)\n"
            "c/call/then = Assign(c/call/var:0, x, ^c/call/first)\n"
            "c/call = IdentityN(x, ^c/call/var, ^c/call/first, ^c/call/then)\n"
            "c = IdentityN(x, ^c/call)\n");
  EXPECT_TRUE(
      Contains(Inline(kX + std::string("node { name: 'c' op: 'only' input: 'x' input: 'x' }") +
                      Library(kAssigns)),
               "c = IdentityN(x)\n"));
}

// Returns the text of a node `n` of `op`, If or While, with the attributes `functions` and `attrs`.
std::string InFlow(const std::string& op, const std::string& functions, const std::string& attrs) {
  const std::string types = "{ list { type: DT_FLOAT type: DT_FLOAT } }";
  return kX + std::string("node { name: 'n' op: '") + op + "' input: 'x' input: 'x' " +
         (op == "If" ? "input: 'x' " : "") + "attr { key: 'Tin' value " + types + " }" +
         "attr { key: 'T' value " + types + " }" +
         "attr { key: 'Tout' value { list { type: DT_FLOAT } } }" +
         "attr { key: 'Tcond' value { type: DT_BOOL } }" + functions + attrs + "}";
}

TEST(InlineFunctions, AConditionalRunsStatefulNodesOfItsBranches) {
  const std::string branches = R"(attr { key: 'then_branch' value { func { name: 't' } } }
                                  attr { key: 'else_branch' value { func { name: 'only' } } })";
  const auto apart = [&](const std::string& attrs) {
    tensorflow::GraphDef out;
    const tensorflow::GraphDef graph = FromText(InFlow("If", branches, attrs) + Library(kAssigns));
    EXPECT_TRUE(InlineFunctions(graph, TestOps(), 1000, 1 << 20, &out).ok());
    return out.node(out.node_size() - 1).attr().contains("_results_apart");
  };
  EXPECT_FALSE(apart("")) << "a step that needs a result must run the assignment";
  EXPECT_TRUE(Contains(Inline(InFlow("If", branches, "") + Library(kAssigns)),
                       "n/then = IdentityN(n/switch_1:1, ^n/pivot_then, ^n/then/call)\n"));
  // The branches of tf.cond behave like nodes of the graph: only the nodes that a step needs run.
  const std::string lowered = "attr { key: '_lower_using_switch_merge' value { b: true } }";
  EXPECT_TRUE(apart(lowered));
  EXPECT_TRUE(Contains(Inline(InFlow("If", branches, lowered) + Library(kAssigns)),
                       "n/then = IdentityN(n/switch_1:1, ^n/pivot_then)\n"));
}

TEST(InlineFunctions, ALoopRunsStatefulNodesOfItsBody) {
  const std::string functions = R"(attr { key: 'cond' value { func { name: 'only' } } }
                                   attr { key: 'body' value { func { name: 'both' } } })";
  const std::string both = R"(
    function {
      signature { name: 'both' input_arg { name: 'h' type: DT_FLOAT }
                  input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'a' type: DT_FLOAT }
                  output_arg { name: 'b' type: DT_FLOAT } }
      node_def { name: 'call' op: 't' input: 'h' input: 'x' }
      ret { key: 'a' value: 'h' } ret { key: 'b' value: 'x' }
    })";
  const std::string loop = Inline(InFlow("While", functions, "") + Library(kAssigns + both));
  EXPECT_TRUE(Contains(loop,
                       "n/body = IdentityN(n/switch_0:1, n/switch_1:1, ^n/pivot, ^n/body/call)\n"
                       "n/next_0 = NextIteration(n/body:0)\n"))
      << loop;
  EXPECT_TRUE(Contains(loop,
                       "n/to_bool = ToBool(n/cond)\n"
                       "n/loop_cond = LoopCond(n/to_bool)\n"))
      << "the condition is a number";
  EXPECT_EQ(Inline(InFlow("While",
                          "attr { key: 'cond' value { func { name: 'only' } } }"
                          "attr { key: 'body' value { func { name: 't' } } }",
                          "") +
                   Library(kAssigns)),
            "node 'n': T names 2 types, and the function 't' returns 1 tensors");
  EXPECT_EQ(Inline(InFlow("While",
                          "attr { key: 'cond' value { func { name: 'both' } } }"
                          "attr { key: 'body' value { func { name: 'both' } } }",
                          "") +
                   Library(kAssigns + both)),
            "node 'n': the function 'both' must return one condition, returns 2 tensors");
}

TEST(InlineFunctions, ALoopMayHaveNoVariables) {
  const std::string functions = R"(
    function {
      signature { name: 'test' output_arg { name: 'y' type: DT_BOOL } }
      node_def { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_BOOL } } }
      ret { key: 'y' value: 'p:output:0' }
    }
    function {
      signature { name: 'body' }
      node_def { name: 'effect' op: 'NoOp' }
      control_ret { key: 'e' value: 'effect' }
    })";
  EXPECT_EQ(Inline(R"(node { name: 'w' op: 'While' input: '^before'
                      attr { key: 'cond' value { func { name: 'test' } } }
                      attr { key: 'body' value { func { name: 'body' } } } })" +
                   Library(functions)),
            "w/token = Const(^before)\n"
            "w/enter_0 = Enter(w/token, ^before)\n"
            "w/merge_0 = Merge(w/enter_0, w/next_0)\n"
            "w/cond/p = Placeholder(^w/merge_0)\n"
            "w/cond = IdentityN(w/cond/p:0, ^w/merge_0)\n"
            "w/loop_cond = LoopCond(w/cond)\n"
            "w/switch_0 = Switch(w/merge_0, w/loop_cond)\n"
            "w/exit_0 = Exit(w/switch_0)\n"
            "w/pivot = Identity(w/switch_0:1)\n"
            "w/body/effect = NoOp(^w/pivot)\n"
            "w/body = NoOp(^w/pivot, ^w/body/effect)\n"
            "w/turned = Identity(w/pivot, ^w/body)\n"
            "w/next_0 = NextIteration(w/turned)\n"
            "w = NoOp(^w/exit_0)\n");
}

// for (int i = s; i < s; i += s) x = step(i, x).
const char kStep[] = R"(
  node { name: 's' op: 'Placeholder' }
  node { name: 'n' op: 'For' input: 's' input: 's' input: 's' input: 'x' input: '^before'
         attr { key: 'T' value { list { type: DT_FLOAT } } }
         attr { key: 'body' value { func { name: 'step' } } } }
  library { function {
    signature { name: 'step' input_arg { name: 'i' type: DT_INT32 }
                input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } }
    node_def { name: 'sum' op: 'AddV2' input: 'x' input: 'x' input: '^i'
               attr { key: 'T' value { type: DT_FLOAT } } }
    ret { key: 'y' value: 'sum:z:0' }
  } })";

TEST(InlineFunctions, For) {
  const std::string loop = Inline(std::string(kX) + kStep);
  for (const char* lines :
       {"n/range/check = Assert(n/range/valid:0, n/range/error:0, s, s, s)\n"
        "n/range/long_start = Cast(s, ^n/range/check)\n",
        "n/range = IdentityN(n/range/long_start:0, n/range/long_limit:0, n/range/long_delta:0, "
        "^before)\n"
        "n/loop/enter_0 = Enter(n/range:0, ^before)\n",
        "n/loop/enter_3 = Enter(x, ^before)\n",
        "n/loop/cond/goes_on = SelectV2(n/loop/cond/up:0, n/loop/cond/below:0, "
        "n/loop/cond/above:0)\n",
        "n/loop/body/number = Cast(n/loop/switch_0:1, ^n/loop/pivot)\n",
        "n/loop/body/call/sum = AddV2(n/loop/switch_3:1, n/loop/switch_3:1)\n",
        "n/loop/next_0 = NextIteration(n/loop/body:0)\n",
        "n/loop = IdentityN(n/loop/exit_0, n/loop/exit_1, n/loop/exit_2, n/loop/exit_3)\n"
        "n = IdentityN(n/loop:3, ^n/loop)\n"}) {
    EXPECT_TRUE(Contains(loop, lines)) << lines << loop;
  }
  std::string wrong = kStep;
  wrong.replace(wrong.find("input: 'x' "), 11, "");
  EXPECT_EQ(Inline(kX + wrong),
            "node 'n': T names 1 types, and there are 3 inputs, start, limit and delta among them");
  wrong = kStep;
  wrong.replace(wrong.find("type: DT_FLOAT"), 14, "type: DT_FLOAT type: DT_FLOAT");
  wrong.replace(wrong.find("input: 'x' "), 11, "input: 'x' input: 'x' ");
  EXPECT_EQ(Inline(kX + wrong),
            "node 'n': T names 2 types, and the function 'step' returns 1 tensors");
}

TEST(InlineFunctions, RemoteCallsRunOnTheirTarget) {
  const auto text = [](const std::string& target, const std::string& device) {
    return std::string(kX) + "node { name: 't' op: 'Const' attr { key: 'value' value { tensor {" +
           " dtype: DT_STRING string_val: '" + target + "' } } } }" +
           "node { name: 'r' op: 'RemoteCall' input: 't' input: 'x' device: '" + device + "'" +
           "attr { key: 'f' value { func { name: 'double' } } } }" + Library(kDouble);
  };
  const auto device = [&](const std::string& target, const std::string& own) {
    tensorflow::GraphDef out;
    const Status status =
        InlineFunctions(FromText(text(target, own)), TestOps(), 1000, 1 << 20, &out);
    return status.ok() ? out.node(2).device() : std::string(status.message());
  };
  EXPECT_EQ(Inline(text("/gpu:1", "")),
            "x = Placeholder()\n"
            "t = Const()\n"
            "r/sum = AddV2(x, x, ^r/effect)\n"
            "r/effect = NoOp()\n"
            "r = IdentityN(r/sum:0, ^r/effect)\n");
  EXPECT_EQ(device("/gpu:1", ""), "/device:GPU:1");
  EXPECT_EQ(device("/cpu:0", "/job:ps/task:2"), "/job:ps/task:2/device:CPU:0");
  EXPECT_EQ(device("/job:w/task:1/cpu:0", "/job:ps/task:2"), "/job:w/task:1/device:CPU:0");
  EXPECT_TRUE(Contains(device("nowhere", ""), "node 'r': ")) << device("nowhere", "");
  std::string fed = text("/gpu:1", "");
  fed.replace(fed.find("op: 'Const'"), 11, "op: 'Placeholder'");
  EXPECT_EQ(Inline(fed),
            "node 'r': input 'target' must be a constant string, because functions are inlined "
            "before a step runs; it is 't'");
}

TEST(InlineFunctions, AConditionMayHaveAnyType) {
  const std::string text = R"(
    node { name: 'if' op: 'If' input: 'x' input: 'x' input: '^before'
           attr { key: 'Tcond' value { type: DT_FLOAT } }
           attr { key: 'Tin' value { list { type: DT_FLOAT } } }
           attr { key: 'Tout' value { list { type: DT_FLOAT } } }
           attr { key: 'then_branch' value { func { name: 'double' } } }
           attr { key: 'else_branch' value { func { name: 'double' } } } })";
  EXPECT_TRUE(Contains(Inline(kX + text + Library(kDouble)),
                       "if/to_bool = ToBool(x)\n"
                       "if/pred = Identity(if/to_bool, ^before)\n"
                       "if/pivot = Switch(if/pred, if/pred)\n"));
  std::string wrong = text;
  const size_t tout = wrong.find("DT_FLOAT", wrong.find("Tout"));
  wrong.replace(tout, 8, "DT_INT32");
  EXPECT_EQ(Inline(kX + wrong + Library(kDouble)),
            "node 'if': result 0 of the function 'double' has type DT_FLOAT, Tout names DT_INT32");
}

TEST(InlineFunctions, Case) {
  const std::string text = R"(
    node { name: 'i' op: 'Placeholder' }
    node { name: 'c' op: 'StatelessCase' input: 'i' input: 'x'
           attr { key: 'Tin' value { list { type: DT_FLOAT } } }
           attr { key: 'Tout' value { list { type: DT_FLOAT } } }
           attr { key: 'branches' value { list { func { name: 'g' } func { name: 'same' } } } } })";
  const std::string functions = R"(
    function {
      signature { name: 'g' input_arg { name: 'x' type: DT_FLOAT }
                  output_arg { name: 'y' type: DT_FLOAT } }
      node_def { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
                 attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape {} } } } }
      ret { key: 'y' value: 'one:output:0' }
    }
    function {
      signature { name: 'same' input_arg { name: 'x' type: DT_FLOAT }
                  output_arg { name: 'y' type: DT_FLOAT } }
      ret { key: 'y' value: 'x' }
    })";
  EXPECT_EQ(Inline(kX + text + Library(functions)),
            "x = Placeholder()\n"
            "i = Placeholder()\n"
            "c/pred = Identity(i)\n"
            "c/pivot = _SwitchN(c/pred, c/pred)\n"
            "c/switch_0 = _SwitchN(x, c/pred)\n"
            "c/pivot_branch_0 = Identity(c/pivot:0)\n"
            "c/branch_0/one = Const(^c/pivot_branch_0)\n"
            "c/branch_0 = IdentityN(c/branch_0/one:0, ^c/pivot_branch_0)\n"
            "c/branch_0_ended = Identity(c/pivot:0, ^c/branch_0)\n"
            "c/pivot_branch_1 = Identity(c/pivot:1)\n"
            "c/branch_1 = IdentityN(c/switch_0:1, ^c/pivot_branch_1)\n"
            "c/branch_1_ended = Identity(c/pivot:1, ^c/branch_1)\n"
            "c/merge_0 = Merge(c/branch_0/one:0, c/switch_0:1)\n"
            "c/ended = Merge(c/branch_0_ended, c/branch_1_ended)\n"
            "c = IdentityN(c/merge_0, ^c/ended)\n");
  EXPECT_EQ(Inline(kX + std::string("node { name: 'c' op: 'Case' input: 'x' }")),
            "node 'c': attribute 'branches' is no list of functions");
}

TEST(InlineFunctions, SymbolicGradient) {
  const std::string gradient = R"(
    node { name: 'dy' op: 'Placeholder' }
    node { name: 'd' op: 'SymbolicGradient' input: 'x' input: 'dy' input: '^before'
           attr { key: 'Tin' value { list { type: DT_FLOAT type: DT_FLOAT } } }
           attr { key: 'Tout' value { list { type: DT_FLOAT } } }
           attr { key: 'f' value { func { name: 'double' } } } })";
  EXPECT_EQ(Inline(kX + gradient + Library(kDouble)),
            "x = Placeholder()\n"
            "dy = Placeholder()\n"
            "d/argument_0 = Identity(x)\n"
            "d/function/sum = AddV2(d/argument_0, d/argument_0, ^d/function/effect)\n"
            "d/function/effect = NoOp(^before)\n"
            "d/function = IdentityN(d/function/sum:0, ^before, ^d/function/effect)\n"
            "d = SymbolicGradient(d/function/sum:0, d/argument_0, dy, ^before)\n");
  // A function that a client has registered is called instead.
  const std::string registered = R"(
    function {
      signature { name: 'slope' input_arg { name: 'x' type: DT_FLOAT }
                  input_arg { name: 'dy' type: DT_FLOAT } output_arg { name: 'dx' type: DT_FLOAT } }
      ret { key: 'dx' value: 'dy' }
    }
    gradient { function_name: 'double' gradient_func: 'slope' })";
  EXPECT_EQ(Inline(kX + gradient + Library(kDouble + registered)),
            "x = Placeholder()\n"
            "dy = Placeholder()\n"
            "d = IdentityN(dy, ^before)\n");
  // The gradient of an outer function would ignore the gradient that a client has registered for an
  // inner one.
  const std::string outer = R"(
    function {
      signature { name: 'outer' input_arg { name: 'x' type: DT_FLOAT }
                  output_arg { name: 'y' type: DT_FLOAT } }
      node_def { name: 'inner' op: 'double' input: 'x' }
      ret { key: 'y' value: 'inner:y:0' }
    })";
  std::string of_outer = gradient;
  of_outer.replace(of_outer.find("'double'"), 8, "'outer'");
  EXPECT_EQ(Inline(kX + of_outer + Library(kDouble + registered + outer)),
            "node 'd': function 'outer' calls 'double', which has a gradient function of its own; "
            "give one to 'outer', too");
  std::string wrong = gradient;
  const size_t tin = wrong.find("type: DT_FLOAT type: DT_FLOAT");
  wrong.replace(tin, 29, "type: DT_FLOAT type: DT_INT32");
  EXPECT_EQ(Inline(kX + wrong + Library(kDouble)),
            "node 'd': result 0 of the function 'double' has type DT_FLOAT, Tin, behind the "
            "arguments, names DT_INT32");
  // A graph that lacks the function can be imported. The kernel later returns an error that names
  // the function.
  EXPECT_EQ(Inline(kX + gradient + Library("")),
            "x = Placeholder()\n"
            "dy = Placeholder()\n"
            "d = SymbolicGradient(x, dy, ^before)\n");
}

// Functions whose results are constants: g(x) = 1 and h(x) = g(x + x).
const char kConstants[] = R"(
  function {
    signature { name: 'g' input_arg { name: 'x' type: DT_FLOAT }
                output_arg { name: 'y' type: DT_FLOAT } }
    node_def { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
               attr { key: 'value'
                      value { tensor { dtype: DT_FLOAT float_val: 1 tensor_shape {} } } } }
    ret { key: 'y' value: 'one:output:0' }
  }
  function {
    signature { name: 'h' input_arg { name: 'x' type: DT_FLOAT }
                output_arg { name: 'y' type: DT_FLOAT } }
    node_def { name: 'sum' op: 'AddV2' input: 'x' input: 'x'
               attr { key: 'T' value { type: DT_FLOAT } } }
    node_def { name: 'g' op: 'g' input: 'sum:z:0' }
    ret { key: 'y' value: 'g:y:0' }
  })";

TEST(InlineFunctions, ConstantsOfACallInALoopBelongToTheLoop) {
  const std::string test = R"(
    function {
      signature { name: 'test' input_arg { name: 'x' type: DT_FLOAT }
                  output_arg { name: 'y' type: DT_FLOAT } }
      ret { key: 'y' value: 'x' }
    })";
  const std::string loop = Inline(kX + std::string(R"(
    node { name: 'w' op: 'While' input: 'x'
           attr { key: 'T' value { list { type: DT_FLOAT } } }
           attr { key: 'cond' value { func { name: 'test' } } }
           attr { key: 'body' value { func { name: 'h' } } } })") +
                                  Library(kConstants + test));
  EXPECT_NE(loop.find("w/body/g/_begins = Identity(w/body/sum:0)\n"
                      "w/body/g/one = Const(^w/body/g/_begins)\n"),
            std::string::npos)
      << loop;
}

TEST(InlineFunctions, ConstantsOfACallBehindASwitchBelongToTheBranch) {
  const std::string branch = Inline(kX + std::string(R"(
    node { name: 's' op: 'Switch' input: 'x' input: 'x' }
    node { name: 'c' op: 'g' input: 's:1' }
    node { name: 'd' op: 'g' input: 'x' })") +
                                    Library(kConstants));
  EXPECT_EQ(branch,
            "x = Placeholder()\n"
            "s = Switch(x, x)\n"
            "c/_begins = Identity(s:1)\n"
            "c/one = Const(^c/_begins)\n"
            "c = IdentityN(c/one:0)\n"
            "d/one = Const()\n"
            "d = IdentityN(d/one:0)\n")
      << "nothing decides about d: its constants may be folded";
}

TEST(InlineFunctions, Mistakes) {
  const std::string call(kCall);
  EXPECT_EQ(Inline(kX + call), "node 'call': there is no function 'double' in the graph's library");
  EXPECT_EQ(Inline(call.substr(0, call.find("attr")) + "}" + Library(kDouble)),
            "node 'call': attribute 'f' is no function");
  const std::string endless = R"(
    function {
      signature { name: 'double' input_arg { name: 'x' type: DT_FLOAT } }
      node_def { name: 'again' op: 'double' input: 'x' }
    })";
  EXPECT_EQ(Inline(kX + call + Library(endless)),
            "node 'call': functions call functions more than 100 deep");
  const auto body = [&](const std::string& nodes) {
    return Inline(kX + call +
                  Library(R"(function {
      signature { name: 'double' input_arg { name: 'x' type: DT_FLOAT }
                  output_arg { name: 'y' type: DT_FLOAT } })" +
                          nodes + "}"));
  };
  EXPECT_EQ(body(""), "node 'call': function 'double' does not return 'y'");
  EXPECT_EQ(body("ret { key: 'y' value: 'sum:z:0' }"),
            "node 'call': function 'double' has no 'sum'");
  EXPECT_EQ(body("ret { key: 'y' value: 'x:a:b:c' }"),
            "node 'call': 'x:a:b:c' is no tensor of a function");
  EXPECT_EQ(body("node_def { name: 'n' op: 'NoOp' attr { key: 'T' value { placeholder: 'Q' } } }"),
            "node 'call': there is no value for parameter 'Q'");
  EXPECT_EQ(Inline(std::string(kX) + kCall + Library(kDouble), 3),
            "node 'call': with its functions the graph has more than 3 nodes");
  EXPECT_EQ(Inline(std::string(kX) + kCall + Library(kDouble), 1000, 300),
            "node 'call': with its functions the graph takes more than 300 bytes, 1 nodes so far");
}

}  // namespace
}  // namespace penstock
