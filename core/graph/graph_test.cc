// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph.h"

#include <string>
#include <vector>

#include "core/graph/testing/test_ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class GraphTest : public ::testing::Test {
 protected:
  Node* Add(Graph::NodeSpec spec) {
    const StatusOr<Node*> node = graph_.AddNode(std::move(spec));
    EXPECT_TRUE(node.ok()) << node.status();
    return *node;
  }
  Node* Placeholder(const std::string& name, DType dtype = DType::kFloat) {
    return Add({.name = name, .op = "Placeholder", .attrs = {{"dtype", dtype}}});
  }
  Node* Binary(const std::string& op, const std::string& name, Node* x, Node* y) {
    return Add({.name = name,
                .op = op,
                .inputs = {{x, 0}, {y, 0}},
                .attrs = {{"T", x->output_type(0).dtype}}});
  }
  Node* Unary(const std::string& op, const std::string& name, Endpoint x) {
    return Add({.name = name, .op = op, .inputs = {x}, .attrs = {{"T", DType::kFloat}}});
  }
  Node* NoOp(const std::string& name, std::vector<Node*> after = {}) {
    return Add({.name = name, .op = "NoOp", .control_inputs = std::move(after)});
  }
  std::string Error(Graph::NodeSpec spec) {
    const int nodes = graph_.num_nodes();
    const std::string message(graph_.AddNode(std::move(spec)).status().message());
    EXPECT_EQ(graph_.num_nodes(), nodes);
    EXPECT_TRUE(graph_.Validate().ok());
    return message;
  }
  // Checks that every consumer knows its source and vice versa.
  void ExpectConsistent() {
    EXPECT_TRUE(graph_.Validate().ok()) << graph_.Validate();
    for (const Node* node : graph_.nodes()) {
      for (const OutEdge& edge : node->out_edges()) {
        const Endpoint back = edge.dst->input(edge.dst_index);
        EXPECT_TRUE(back.node == node && back.index == edge.src_index) << node->name();
      }
      for (Node* dst : node->control_outputs()) {
        EXPECT_THAT(dst->control_inputs(), ::testing::Contains(node));
      }
      for (Node* src : node->control_inputs()) {
        EXPECT_THAT(src->control_outputs(), ::testing::Contains(node));
      }
    }
  }

  Graph graph_{TestOps()};
};

TEST_F(GraphTest, DerivesTypesFromAttributes) {
  Node* x = Placeholder("x", DType::kDouble);
  EXPECT_EQ(x->output_type(0), (EdgeType{DType::kDouble, false}));
  Node* v = Add({.name = "v",
                 .op = "VariableV2",
                 .attrs = {{"dtype", DType::kDouble}, {"shape", PartialShape({2})}}});
  EXPECT_EQ(v->output_type(0), (EdgeType{DType::kDouble, true}));
  Node* any = Add({.name = "any",
                   .op = "Any",
                   .inputs = {{x, 0}, {v, 0}},
                   .attrs = {{"Tin", std::vector<DType>{DType::kDouble, DType::kDouble}},
                             {"Tout", std::vector<DType>{DType::kInt32, DType::kString}}}});
  EXPECT_EQ(any->num_outputs(), 2);
  EXPECT_EQ(any->output_type(1).dtype, DType::kString);
  EXPECT_EQ(*any->attr<std::string>("mode"), "fast");  // a default
  EXPECT_EQ(any->attr<int64_t>("mode"), nullptr);      // the attribute has another kind
  EXPECT_EQ(any->FindAttr("nothing"), nullptr);
  EXPECT_EQ(any->input(1).node, v);
  EXPECT_EQ(graph_.FindNode("any"), any);
  EXPECT_EQ(graph_.FindNode("an"), nullptr);
}

TEST_F(GraphTest, RefusesWrongNodesAndNamesThem) {
  Node* f = Placeholder("f");
  Node* i = Placeholder("i", DType::kInt32);
  Node* v = Add({.name = "v",
                 .op = "VariableV2",
                 .attrs = {{"dtype", DType::kFloat}, {"shape", PartialShape({2})}}});
  const Attrs floats = {{"T", DType::kFloat}};
  EXPECT_THAT(Error({.name = "", .op = "NoOp"}), HasSubstr("'' is not a valid node name"));
  EXPECT_THAT(Error({.name = "a b", .op = "NoOp"}), HasSubstr("'a b' is not a valid node name"));
  EXPECT_THAT(Error({.name = "f", .op = "NoOp"}), HasSubstr("'f': the graph already has"));
  EXPECT_THAT(Error({.name = "a", .op = "NoOpp"}), HasSubstr("did you mean 'NoOp'"));
  EXPECT_THAT(Error({.name = "a", .op = "AddV2", .inputs = {{f, 0}}, .attrs = floats}),
              HasSubstr("node 'a': op AddV2 takes 2 inputs here, 1 given"));
  EXPECT_THAT(Error({.name = "a", .op = "AddV2", .inputs = {{f, 0}, {f, 0}}}),
              HasSubstr("node 'a': attribute 'T'"));
  EXPECT_THAT(Error({.name = "a", .op = "AddV2", .inputs = {{f, 0}, {i, 0}}, .attrs = floats}),
              HasSubstr("node 'a': input 1 ('y') must be float, 'i:0' is int32"));
  EXPECT_THAT(Error({.name = "a", .op = "AddV2", .inputs = {{f, 0}, {f, 1}}, .attrs = floats}),
              HasSubstr("node 'a': input 1 ('y') is output 1 of 'f', which has 1"));
  EXPECT_THAT(Error({.name = "a", .op = "AddV2", .inputs = {{f, -1}, {f, 0}}, .attrs = floats}),
              HasSubstr("output -1"));
  EXPECT_THAT(Error({.name = "a", .op = "Assign", .inputs = {{f, 0}, {f, 0}}, .attrs = floats}),
              HasSubstr("input 0 ('ref') must be float_ref, 'f:0' is float"));
  // A reference may be read as a value.
  Binary("AddV2", "sum", f, v);
}

TEST_F(GraphTest, ErrorsNameTheArgumentBehindALongList) {
  Node* f = Placeholder("f");
  const StatusOr<Node*> node =
      graph_.AddNode({.name = "c",
                      .op = "ConcatV2",
                      .inputs = {{f, 0}, {f, 0}, {f, 0}},
                      .attrs = {{"T", DType::kFloat}, {"Tidx", DType::kInt32}, {"N", 2}}});
  EXPECT_THAT(std::string(node.status().message()), HasSubstr("input 2 ('axis') must be int32"));
}

TEST_F(GraphTest, ChangesEdges) {
  Node* a = Placeholder("a");
  Node* b = Placeholder("b");
  Node* i = Placeholder("i", DType::kInt32);
  Node* sum = Binary("AddV2", "sum", a, a);
  Node* product = Binary("Mul", "product", a, sum);
  ExpectConsistent();
  EXPECT_TRUE(graph_.SetInput(sum, 0, {b, 0}).ok());
  ExpectConsistent();
  EXPECT_EQ(a->out_edges().size(), 2);
  EXPECT_THAT(std::string(graph_.SetInput(sum, 0, {i, 0}).message()), HasSubstr("'i:0' is int32"));
  EXPECT_THAT(std::string(graph_.SetInput(sum, 2, {a, 0}).message()), HasSubstr("no input 2"));
  EXPECT_TRUE(graph_.ReplaceUses({a, 0}, {b, 0}).ok());
  EXPECT_TRUE(a->out_edges().empty());
  EXPECT_EQ(b->out_edges().size(), 3);
  EXPECT_FALSE(graph_.ReplaceUses({b, 0}, {i, 0}).ok());
  EXPECT_EQ(b->out_edges().size(), 3);  // all edges move or no edge moves
  ExpectConsistent();
  graph_.RemoveNode(a);
  graph_.RemoveNode(product);
  ExpectConsistent();
  EXPECT_EQ(graph_.node(0), nullptr);
  EXPECT_EQ(graph_.num_nodes(), 3);
  EXPECT_EQ(Print(graph_), "b = Placeholder()\ni = Placeholder()\nsum = AddV2(b, b)\n");
  EXPECT_EQ(Placeholder("a")->id(), 5);  // ids are not reused
}

TEST_F(GraphTest, ControlEdgesAreKeptOnce) {
  Node* a = NoOp("a");
  Node* b = NoOp("b");
  Node* c = NoOp("c", {a, b, a});
  EXPECT_EQ(Print(*c), "NoOp(^a, ^b)");
  graph_.AddControlEdge(a, c);
  EXPECT_EQ(Print(*c), "NoOp(^a, ^b)");
  Node* d = NoOp("d", {a, b, c});
  graph_.RemoveControlEdge(a, d);
  ExpectConsistent();
  graph_.RemoveControlEdge(a, d);  // removed already
  EXPECT_EQ(Print(*d), "NoOp(^c, ^b)");
  EXPECT_EQ(Print(*c), "NoOp(^a, ^b)");
  graph_.RemoveNode(b);
  ExpectConsistent();
  EXPECT_EQ(Print(graph_), "a = NoOp()\nc = NoOp(^a)\nd = NoOp(^c)\n");
}

TEST_F(GraphTest, CloneIsIndependent) {
  Node* a = Placeholder("a");
  Node* gone = Placeholder("gone");
  Node* sum = Binary("AddV2", "sum", a, a);
  NoOp("end", {sum, a});
  graph_.RemoveNode(gone);
  graph_.UniqueName("a");
  const std::string before = Print(graph_);
  Graph copy = graph_.Clone();
  EXPECT_EQ(Print(copy), before);
  EXPECT_TRUE(copy.Validate().ok());
  EXPECT_EQ(copy.max_id(), graph_.max_id());
  EXPECT_NE(copy.FindNode("sum"), sum);
  EXPECT_EQ(copy.FindNode("sum")->id(), sum->id());
  copy.RemoveNode(copy.FindNode("end"));
  copy.RemoveNode(copy.FindNode("sum"));
  copy.RemoveNode(copy.FindNode("a"));
  EXPECT_EQ(Print(graph_), before);
  ExpectConsistent();
}

TEST_F(GraphTest, NamesAreMadeUnique) {
  EXPECT_EQ(graph_.UniqueName("x"), "x");
  Placeholder("x");
  EXPECT_EQ(graph_.UniqueName("x"), "x_1");
  Placeholder("x_2");
  EXPECT_EQ(graph_.UniqueName("x"), "x_3");
  EXPECT_EQ(graph_.UniqueName("x_2"), "x_2_1");
}

TEST_F(GraphTest, TopologicalOrderGoesForward) {
  Node* a = Placeholder("a");
  Node* late = Unary("Identity", "late", {});
  Node* early = Unary("Identity", "early", {a, 0});
  EXPECT_TRUE(graph_.SetInput(late, 0, {early, 0}).ok());
  graph_.AddControlEdge(late, NoOp("end"));
  std::vector<std::string> names;
  const StatusOr<std::vector<Node*>> order = graph_.TopologicalOrder();
  for (const Node* node : *order) names.push_back(node->name());
  EXPECT_THAT(names, ::testing::ElementsAre("a", "early", "late", "end"));
}

TEST_F(GraphTest, LoopsAreLegalOnlyThroughNextIteration) {
  Node* enter = Add({.name = "enter",
                     .op = "Enter",
                     .inputs = {{Placeholder("x"), 0}},
                     .attrs = {{"T", DType::kFloat}, {"frame_name", "loop"}}});
  Node* merge = Add({.name = "merge",
                     .op = "Merge",
                     .inputs = {{enter, 0}, {}},
                     .attrs = {{"T", DType::kFloat}, {"N", 2}}});
  EXPECT_THAT(std::string(graph_.Validate().message()),
              HasSubstr("node 'merge': input 1 is not connected"));
  Node* body = Unary("Identity", "body", {merge, 0});
  Node* next = Unary("NextIteration", "next", {body, 0});
  EXPECT_TRUE(graph_.SetInput(merge, 1, {next, 0}).ok());
  EXPECT_TRUE(graph_.Validate().ok()) << graph_.Validate();
  EXPECT_TRUE(InferShapes(graph_).ok());

  EXPECT_TRUE(graph_.SetInput(merge, 1, {body, 0}).ok());
  EXPECT_EQ(std::string(graph_.Validate().message()),
            "the graph has a cycle of 2 nodes: 'merge' -> 'body' -> 'merge'");
  EXPECT_TRUE(InferShapes(graph_).ok());  // must not loop for ever
}

TEST_F(GraphTest, CyclesAreNamed) {
  Node* a = Placeholder("a");
  Node* b = Unary("Identity", "b", {a, 0});
  Node* c = Unary("Identity", "c", {b, 0});
  Unary("Identity", "after", {c, 0});
  graph_.AddControlEdge(c, b);
  EXPECT_EQ(std::string(graph_.TopologicalOrder().status().message()),
            "the graph has a cycle of 2 nodes: 'b' -> 'c' -> 'b'");
  graph_.RemoveControlEdge(c, b);
  EXPECT_TRUE(graph_.Validate().ok());
  graph_.AddControlEdge(b, b);
  EXPECT_EQ(std::string(graph_.TopologicalOrder().status().message()),
            "the graph has a cycle of 1 nodes: 'b' -> 'b'");
  graph_.RemoveControlEdge(b, b);
  ExpectConsistent();
}

TEST_F(GraphTest, ValidateLooksAtChangedAttributes) {
  Node* a = Placeholder("a");
  Node* b = Unary("Identity", "b", {a, 0});
  graph_.set_attr(b, "_note", "kept");
  EXPECT_TRUE(graph_.Validate().ok());
  graph_.set_attr(b, "T", 7);
  EXPECT_THAT(std::string(graph_.Validate().message()), HasSubstr("node 'b': attribute 'T'"));
  graph_.set_attr(b, "T", DType::kInt32);
  EXPECT_THAT(std::string(graph_.Validate().message()), HasSubstr("other types than its edges"));
}

TEST_F(GraphTest, RemoveNodesFromUndoesWhateverWasAdded) {
  Node* a = Placeholder("a");
  NoOp("n", {a});
  const std::string before = Print(graph_);
  const int first = graph_.max_id();
  Node* b = Unary("Identity", "b", {a, 0});
  Node* c = Unary("Identity", "c", {b, 0});
  EXPECT_TRUE(graph_.SetInput(b, 0, {c, 0}).ok());  // makes a cycle, which can be removed, too
  NoOp("end", {b, c, a});
  graph_.RemoveNodesFrom(first);
  EXPECT_EQ(Print(graph_), before);
  EXPECT_EQ(graph_.max_id(), first);
  ExpectConsistent();
}

TEST(TensorName, ParsesAndPrints) {
  const struct {
    const char* text;
    const char* want;  // or a substring of the error
  } kCases[] = {
      {"a", "a:0"},
      {"a:0", "a:0"},
      {"a/b_1.c-d>e:12", "a/b_1.c-d>e:12"},
      {"a\\b", "a\\b:0"},
      {"_internal", "_internal:0"},
      {"^a/b", "^a/b"},
      {"", "not a valid node name"},
      {"^", "not a valid node name"},
      {":0", "not a valid node name"},
      {"a:", "the number of an output"},
      {"a:-1", "the number of an output"},
      {"a:+1", "the number of an output"},
      {"a: 1", "the number of an output"},
      {"a:x", "the number of an output"},
      {"a:99999999999", "the number of an output"},
      {"^a:0", "not a valid node name"},
      {"a:0:0", "not a valid node name"},
      {"/a", "not a valid node name"},
      {"-a", "not a valid node name"},
      {"a b", "not a valid node name"},
      {"\xc3\xa4", "not a valid node name"},
  };
  for (const auto& c : kCases) {
    const StatusOr<TensorName> name = TensorName::Parse(c.text);
    const std::string got = name.ok() ? name->ToString() : std::string(name.status().message());
    if (name.ok()) {
      EXPECT_EQ(got, c.want) << c.text;
      EXPECT_EQ(*TensorName::Parse(got), *name);
    } else {
      EXPECT_THAT(got, HasSubstr(c.want)) << c.text;
    }
  }
}

}  // namespace
}  // namespace penstock
