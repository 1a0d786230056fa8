// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph_proto.h"

#include <random>
#include <string>
#include <vector>

#include "core/graph/testing/test_ops.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

tensorflow::GraphDef FromText(const std::string& text) {
  tensorflow::GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def)) << text;
  return def;
}

// Returns the text of a NodeDef. `more` is the text of its attributes.
std::string NodeText(const std::string& name, const std::string& op,
                     const std::vector<std::string>& inputs = {}, const std::string& more = "") {
  std::string text = StrCat("node { name: '", name, "' op: '", op, "' ");
  for (const std::string& input : inputs) StrAppend(&text, "input: '", input, "' ");
  return text + more + " }\n";
}
std::string Attr(const std::string& name, const std::string& value) {
  return StrCat(" attr { key: '", name, "' value { ", value, " } }");
}
const std::string kFloatT = Attr("T", "type: DT_FLOAT");
const std::string kX = NodeText("x", "Placeholder", {}, Attr("dtype", "type: DT_FLOAT"));
const std::string kI = NodeText("i", "Placeholder", {}, Attr("dtype", "type: DT_INT32"));

std::string ErrorOf(const std::string& text, const ImportLimits& limits = {}) {
  Graph graph(TestOps());
  EXPECT_TRUE(ImportGraph(FromText(NodeText("old", "NoOp")), &graph).ok());
  const Status status = ImportGraph(FromText(text), &graph, limits);
  EXPECT_FALSE(status.ok()) << text;
  // A failed import leaves the graph unchanged.
  EXPECT_EQ(Print(graph), "old = NoOp()\n") << text;
  EXPECT_EQ(graph.max_id(), 1);
  EXPECT_TRUE(graph.Validate().ok());
  EXPECT_TRUE(ImportGraph(FromText(kX), &graph).ok());
  return std::string(status.message());
}

std::string Import(const std::string& text) {
  Graph graph(TestOps());
  const Status status = ImportGraph(FromText(text), &graph);
  EXPECT_TRUE(status.ok()) << status << "\n" << text;
  EXPECT_TRUE(graph.Validate().ok());
  return Print(graph);
}

TEST(ImportGraph, AcceptsAnyOrderAndEveryWayToNameAnInput) {
  EXPECT_EQ(
      Import(NodeText("sum", "AddV2", {"two:1", "x:0", "^n", "^i"}, kFloatT) +
             NodeText("two", "Two", {"x"}, kFloatT) + kX + NodeText("n", "NoOp", {"^x"}) + kI),
      "sum = AddV2(two:1, x, ^n, ^i)\ntwo = Two(x)\nx = Placeholder()\nn = NoOp(^x)\n"
      "i = Placeholder()\n");
}

TEST(ImportGraph, KeepsLoops) {
  const std::string loop =
      kX + NodeText("enter", "Enter", {"x"}, kFloatT + Attr("frame_name", "s: 'f'")) +
      NodeText("merge", "Merge", {"enter", "next:0"}, kFloatT + Attr("N", "i: 2")) +
      NodeText("body", "Identity", {"merge"}, kFloatT) +
      NodeText("next", "NextIteration", {"body"}, kFloatT) +
      NodeText("exit", "Exit", {"merge"}, kFloatT);
  EXPECT_THAT(Import(loop), HasSubstr("merge = Merge(enter, next)\n"));
}

TEST(ImportGraph, FillsInDefaultsAndKeepsWhatItDoesNotKnow) {
  Graph graph(TestOps());
  ASSERT_TRUE(ImportGraph(FromText(NodeText(
                              "a", "Any", {},
                              Attr("Tout", "list { type: DT_INT32 }") + Attr("sizes", "list { }") +
                                  Attr("Tin", "list { }") + Attr("_class", "list { s: 'loc:@b' }") +
                                  Attr("future", "i: 3") + Attr("unreadable", "") +
                                  Attr("newer_type", "type: 31"))),
                          &graph)
                  .ok());
  const Node* a = graph.FindNode("a");
  EXPECT_EQ(*a->attr<std::string>("mode"), "fast");
  EXPECT_EQ(*a->attr<float>("ratio"), 0.5f);
  EXPECT_TRUE(a->attr<std::vector<int64_t>>("sizes")->empty());
  EXPECT_EQ(*a->attr<int64_t>("future"), 3);
  EXPECT_EQ(a->attr<std::vector<std::string>>("_class")->at(0), "loc:@b");
  EXPECT_EQ(a->FindAttr("unreadable"), nullptr);
  EXPECT_EQ(a->FindAttr("newer_type"), nullptr);
}

TEST(ImportGraph, ExtendsAGraph) {
  Graph graph(TestOps());
  ASSERT_TRUE(ImportGraph(FromText(kX), &graph).ok());
  ASSERT_TRUE(ImportGraph(FromText(NodeText("y", "Identity", {"x"}, kFloatT)), &graph).ok());
  EXPECT_EQ(Print(graph), "x = Placeholder()\ny = Identity(x)\n");
  EXPECT_THAT(std::string(ImportGraph(FromText(kI + kX), &graph).message()),
              HasSubstr("node 'x': the graph already has a node of this name"));
  EXPECT_EQ(graph.num_nodes(), 2);
}

TEST(ImportGraph, IgnoresVersionsUnknownFieldsAndUncalledFunctions) {
  auto def = FromText(kX +
                      "versions { producer: 2500 min_consumer: 12 bad_consumers: 1 }"
                      "library { function { signature { name: 'F' } } }");
  def.mutable_node(0)->GetReflection()->MutableUnknownFields(def.mutable_node(0))->AddVarint(77, 1);
  Graph graph(TestOps());
  EXPECT_TRUE(ImportGraph(def, &graph).ok());
}

TEST(ImportGraph, RefusesMalformedGraphsAndSaysWhy) {
  const struct {
    std::string text;
    const char* want;
  } kCases[] = {
      {NodeText("a", "Nope"), "node 'a': there is no op 'Nope'"},
      {NodeText("a", "noop"), "did you mean 'NoOp'"},
      {NodeText("a", ""), "node 'a': there is no op ''"},
      {NodeText("a", "F", {"old"}) + "library { function { signature { name: 'F' } } }",
       "node 'a': function 'F' takes 0 inputs, the call has 1"},
      {NodeText("", "NoOp"), "'' is not a valid node name"},
      {NodeText("a:0", "NoOp"), "'a:0' is not a valid node name"},
      {NodeText("^a", "NoOp"), "'^a' is not a valid node name"},
      {NodeText("a b", "NoOp"), "'a b' is not a valid node name"},
      {NodeText("a", "NoOp") + NodeText("a", "NoOp"), "node 'a': the graph already has"},
      {NodeText("old", "NoOp"), "node 'old': the graph already has"},

      // Mistakes in the inputs of nodes.
      {NodeText("a", "Identity", {"gone"}, kFloatT), "node 'a': its input 'gone' does not exist"},
      {NodeText("a", "NoOp", {"^gone"}), "node 'a': its input 'gone' does not exist"},
      {NodeText("a", "Identity", {""}, kFloatT), "node 'a': '' is not a tensor name"},
      {NodeText("a", "Identity", {"^"}, kFloatT), "node 'a': '^' is not a tensor name"},
      {NodeText("a", "Identity", {"x:"}, kFloatT) + kX, "'x:' is not a tensor name"},
      {NodeText("a", "Identity", {"x:-1"}, kFloatT) + kX, "'x:-1' is not a tensor name"},
      {NodeText("a", "Identity", {"x:4294967296"}, kFloatT) + kX, "is not a tensor name"},
      {NodeText("a", "Identity", {"x:0:0"}, kFloatT) + kX, "'x:0:0' is not a tensor name"},
      {kX + NodeText("a", "Identity", {"x:1"}, kFloatT),
       "input 0 ('x') is output 1 of 'x', which has 1"},
      {NodeText("a", "Identity", {"x:1"}, kFloatT) + kX,
       "input 0 ('x') is output 1 of 'x', which has 1"},
      {kX + NodeText("a", "Identity", {}, kFloatT),
       "node 'a': op Identity takes 1 inputs here, 0 given"},
      {kX + NodeText("a", "Identity", {"x", "x"}, kFloatT), "takes 1 inputs here, 2 given"},
      {kX + NodeText("a", "NoOp", {"x"}), "node 'a': op NoOp takes 0 inputs here, 1 given"},
      {kX + NodeText("a", "AddV2", {"x", "^x", "x"}, kFloatT),
       "input 'x' stands after a control input"},
      {kI + NodeText("a", "Identity", {"i"}, kFloatT),
       "input 0 ('x') must be float, 'i:0' is int32"},
      {NodeText("a", "Identity", {"i"}, kFloatT) + kI,
       "input 0 ('x') must be float, 'i:0' is int32"},
      {kX + NodeText("a", "Assign", {"x", "x"}, kFloatT), "must be float_ref, 'x:0' is float"},
      {NodeText("a", "Assign", {"x", "x"}, kFloatT) + kX, "must be float_ref, 'x:0' is float"},

      // Cycles that are not loops.
      {NodeText("a", "Identity", {"a"}, kFloatT), "cycle of 1 nodes: 'a' -> 'a'"},
      {NodeText("a", "NoOp", {"^a"}), "cycle of 1 nodes: 'a' -> 'a'"},
      {NodeText("a", "Identity", {"b"}, kFloatT) + NodeText("b", "Identity", {"c"}, kFloatT) +
           NodeText("c", "Identity", {"a"}, kFloatT),
       "cycle of 3 nodes: 'a' -> 'c' -> 'b' -> 'a'"},
      {kX + NodeText("m", "Merge", {"x", "b"}, kFloatT + Attr("N", "i: 2")) +
           NodeText("b", "Identity", {"m"}, kFloatT),
       "cycle of 2 nodes"},

      // Mistakes in attributes.
      {kX + NodeText("a", "Identity", {"x"}), "node 'a': attribute 'T'"},
      {kX + NodeText("a", "Identity", {"x"}, Attr("T", "i: 1")), "node 'a': attribute 'T'"},
      {kX + NodeText("a", "Identity", {"x"}, Attr("T", "type: 77")), "node 'a': attribute 'T': "},
      {kX + NodeText("a", "Identity", {"x"}, Attr("T", "type: 101")), "node 'a': attribute 'T'"},
      {kX + NodeText("a", "Identity", {"x"}, Attr("T", "type: 0")), "node 'a': attribute 'T'"},
      {kX + NodeText("a", "Identity", {"x"}, Attr("T", "")), "attribute 'T': no value"},
      {kX + NodeText("a", "Identity", {"x"}, Attr("T", "placeholder: 'T'")), "placeholder 'T'"},
      {kX + NodeText("a", "Identity", {"x"}, Attr("T", "list { type: DT_FLOAT }")),
       "attribute 'T'"},
      {NodeText("a", "Const", {}, Attr("dtype", "type: DT_INT32")), "attribute 'value'"},
      {NodeText("a", "Const", {},
                Attr("dtype", "type: DT_INT32") +
                    Attr("value", "tensor { dtype: DT_INT32 tensor_content: 'ab' }")),
       "node 'a': attribute 'value': tensor_content has 2 bytes"},
      {kX + NodeText("a", "AddN", {"x"}, kFloatT + Attr("N", "i: 0")), "attribute 'N'"},
      {kX + NodeText("a", "AddN", {"x"}, kFloatT + Attr("N", "i: -5")), "attribute 'N'"},
      {kX + NodeText("a", "AddN", {"x"}, kFloatT + Attr("N", "i: 2")),
       "takes 2 inputs here, 1 given"},
      {kX + NodeText("a", "AddN", {"x"}, kFloatT + Attr("N", "i: 9000000000000")), "node 'a'"},
      {NodeText("a", "Any", {}, Attr("Tin", "list { }") + Attr("Tout", "list { }")),
       "attribute 'Tout'"},
      {NodeText("a", "Any", {},
                Attr("Tin", "list { }") + Attr("Tout", "list { type: DT_FLOAT }") +
                    Attr("mode", "s: 'other'")),
       "attribute 'mode'"},
      {NodeText("a", "Any", {},
                Attr("Tin", "list { i: 1 }") + Attr("Tout", "list { type: DT_FLOAT }")),
       "attribute 'Tin'"},
      {NodeText("a", "Placeholder", {},
                Attr("dtype", "type: DT_FLOAT") + Attr("shape", "shape { dim { size: -9 } }")),
       "node 'a': attribute 'shape': "},
  };
  for (const auto& c : kCases) EXPECT_THAT(ErrorOf(c.text), HasSubstr(c.want)) << c.text;
}

TEST(ImportGraph, HoldsItsLimits) {
  EXPECT_THAT(ErrorOf(kX + kI, {.nodes_max = 1}), HasSubstr("has 2 nodes, at most 1"));
  const std::string constant =
      Attr("dtype", "type: DT_FLOAT") +
      Attr("value", "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 100 } } }");
  const std::string two =
      NodeText("a", "Const", {}, constant) + NodeText("b", "Const", {}, constant);
  EXPECT_THAT(ErrorOf(two, {.tensor_bytes_max = 799}),
              HasSubstr("node 'b': attribute 'value': a float tensor of shape [100] takes 400 "
                        "bytes, at most 399"));
  Graph graph(TestOps());
  EXPECT_TRUE(ImportGraph(FromText(two), &graph, {.tensor_bytes_max = 800}).ok());
}

// Damaged bytes are rejected or accepted, but never do harm.
TEST(ImportGraph, SurvivesMutatedBytes) {
  const std::string good =
      FromText(kX + NodeText("two", "Two", {"x"}, kFloatT) +
               NodeText("sum", "AddN", {"two:1", "x", "^two"}, kFloatT + Attr("N", "i: 2")) +
               NodeText("c", "Const", {},
                        Attr("dtype", "type: DT_STRING") +
                            Attr("value",
                                 "tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } } "
                                 "tensor_content: '\\1\\1ab' }")))
          .SerializeAsString();
  const google::protobuf::LogSilencer quiet;
  std::mt19937 random(17);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int k = 0; k < changes; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    tensorflow::GraphDef def;
    if (!def.ParseFromString(bytes)) continue;
    Graph graph(TestOps());
    if (ImportGraph(def, &graph, {.tensor_bytes_max = 1 << 20}).ok()) {
      ++accepted;
      EXPECT_TRUE(graph.Validate().ok());
    } else {
      EXPECT_EQ(graph.num_nodes(), 0);
    }
  }
  EXPECT_GT(accepted, 10);
}

std::string Bytes(const Graph& graph, const std::string& path) {
  EXPECT_TRUE(WriteGraphFile(Env::Real(), graph, path).ok());
  return *Env::Real().ReadFile(path);
}

Graph SomeGraph() {
  Graph graph(TestOps());
  const Status status = ImportGraph(
      FromText(
          NodeText("sum", "AddN", {"x", "two:1", "two", "^n", "^i"}, kFloatT + Attr("N", "i: 3")) +
          NodeText("two", "Two", {"x"}, kFloatT + " device: '/job:ps/task:1'") + kX + kI +
          NodeText("n", "NoOp", {"^x"}, Attr("_class", "list { s: 'loc:@x' }")) +
          NodeText("c", "Const", {},
                   Attr("dtype", "type: DT_HALF") +
                       Attr("value", "tensor { dtype: DT_HALF half_val: 15360 }"))),
      &graph);
  EXPECT_TRUE(status.ok()) << status;
  return graph;
}

TEST(GraphFile, RoundTripsByteForByte) {
  const Graph graph = SomeGraph();
  for (const char* extension : {".pb", ".pbtxt"}) {
    const std::string path = testing::TempDir() + "/graph" + extension;
    const std::string first = Bytes(graph, path);
    const StatusOr<Graph> again = ReadGraphFile(Env::Real(), path, TestOps());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(Print(*again), Print(graph));
    EXPECT_EQ(Bytes(*again, path), first);
    EXPECT_EQ(again->FindNode("two")->requested_device(), "/job:ps/task:1");
  }
}

TEST(GraphFile, WritesAssignedDevices) {
  Graph graph = SomeGraph();
  graph.set_assigned_device(graph.FindNode("x"), "/job:w/replica:0/task:0/device:CPU:0");
  tensorflow::GraphDef def;
  ExportGraph(graph, &def);
  EXPECT_EQ(def.node(0).device(), "");
  EXPECT_EQ(def.node(1).device(), "/job:ps/task:1");
  EXPECT_EQ(def.node(2).device(), "/job:w/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(def.node(0).input(1), "two:1");
  EXPECT_EQ(def.node(0).input(2), "two");
}

TEST(GraphFile, ErrorsNameTheFile) {
  const std::string path = testing::TempDir() + "/bad.pb";
  const auto error_of = [&path](const std::string& contents) {
    EXPECT_TRUE(Env::Real().WriteFileAtomically(path, contents).ok());
    return std::string(ReadGraphFile(Env::Real(), path, TestOps()).status().message());
  };
  EXPECT_THAT(error_of("node {\n  nome: 'x'\n}"), HasSubstr("bad.pb': is not a GraphDef in text"));
  EXPECT_THAT(error_of("node {\n  nome: 'x'\n}"), HasSubstr("line 2, column 7"));
  EXPECT_THAT(error_of(std::string("\x01\x02\x03")), HasSubstr("bad.pb': is not a GraphDef"));
  EXPECT_THAT(error_of("node { name: 'a' op: 'Nope' }"), HasSubstr("bad.pb': node 'a'"));
  EXPECT_EQ(error_of(""), "");  // no nodes
  EXPECT_FALSE(ReadGraphFile(Env::Real(), "/nowhere/graph.pb", TestOps()).ok());
}

// The SymbolicGradient's node stays in the graph beside the body of its function, and its attribute
// still names the function.
TEST(GraphProto, GradientsOfFunctionsAreImported) {
  const std::string types = Attr("Tin", "list { type: DT_FLOAT type: DT_FLOAT }") +
                            Attr("Tout", "list { type: DT_FLOAT }");
  const std::string gradient = kX + NodeText("d", "SymbolicGradient", {"x", "x"},
                                             types + Attr("f", "func { name: 'square' }"));
  const std::string library = R"(library { function {
      signature { name: 'square' input_arg { name: 'x' type: DT_FLOAT }
                  output_arg { name: 'y' type: DT_FLOAT } }
      node_def { name: 'product' op: 'Mul' input: 'x' input: 'x'
                 attr { key: 'T' value { type: DT_FLOAT } } }
      ret { key: 'y' value: 'product:z:0' } } })";
  Graph with(TestOps()), without(TestOps());
  const Status status = ImportGraph(FromText(gradient + library), &with);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Print(*with.FindNode("d")), "SymbolicGradient(d/function/product, d/argument_0, x)");
  ASSERT_TRUE(ImportGraph(FromText(gradient), &without).ok());
  EXPECT_EQ(Print(*without.FindNode("d")), "SymbolicGradient(x, x)");
}

}  // namespace
}  // namespace penstock
