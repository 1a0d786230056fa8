// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph_pieces.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph_proto.h"
#include "core/graph/testing/test_ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

// Constants of 400 and 1200 bytes are sent in pieces of 500 bytes.
constexpr PieceLimits kSmall = {
    .whole_bytes_max = 1500, .piece_bytes_max = 500, .constant_bytes_min = 300};

Node* AddConstant(Graph* graph, const std::string& name, int64_t count) {
  Tensor value(DType::kFloat, Shape({count}));
  for (int64_t i = 0; i < count; ++i) value.mutable_data<float>()[i] = static_cast<float>(i) / 3;
  const auto node = graph->AddNode(
      {.name = name, .op = "Const", .attrs = {{"dtype", DType::kFloat}, {"value", value}}});
  CHECK_OK(node.status());
  return *node;
}

Graph LargeGraph() {
  Graph graph(TestOps());
  AddConstant(&graph, "small", 10);
  Node* const a = AddConstant(&graph, "a", 100);
  Node* const b = AddConstant(&graph, "b", 300);
  CHECK_OK(graph
               .AddNode({.name = "sum",
                         .op = "AddN",
                         .inputs = {{a, 0}, {b, 0}},
                         .control_inputs = {a},
                         .attrs = {{"N", int64_t{2}}, {"T", DType::kFloat}}})
               .status());
  return graph;
}

std::vector<tensorflow::GraphDef> DefsOf(const Graph& graph, const PieceLimits& limits) {
  std::vector<tensorflow::GraphDef> defs;
  GraphPieces pieces(graph, 0, limits);
  tensorflow::GraphDef def;
  while (pieces.Next(&def)) defs.push_back(std::move(def));
  return defs;
}

Status ImportPlainly(const tensorflow::GraphDef& def, Graph* graph) {
  return ImportGraph(def, graph);
}

// Returns the graph that the messages make; the first error if there is one.
StatusOr<Graph> Assemble(std::vector<tensorflow::GraphDef> defs) {
  ConstantPieces constants;
  Graph graph(TestOps());
  for (tensorflow::GraphDef& def : defs) {
    RETURN_IF_ERROR(ConstantPieces::IsPiece(def)
                        ? constants.Add("s", def)
                        : constants.Import("s", &def, &graph, ImportPlainly));
  }
  return graph;
}

std::string ErrorOfAssembly(std::vector<tensorflow::GraphDef> defs) {
  return std::string(Assemble(std::move(defs)).status().message());
}

void ExpectSame(const Graph& a, const Graph& b) {
  tensorflow::GraphDef of_a, of_b;
  ExportGraph(a, &of_a);
  ExportGraph(b, &of_b);
  ASSERT_EQ(of_a.node_size(), of_b.node_size());
  for (int i = 0; i < of_a.node_size(); ++i) {
    EXPECT_EQ(of_a.node(i).DebugString(), of_b.node(i).DebugString());
  }
}

TEST(GraphPiecesTest, ASmallGraphIsOneGraphDef) {
  const Graph graph = LargeGraph();
  const auto defs = DefsOf(graph, {.whole_bytes_max = 1640, .constant_bytes_min = 300});
  ASSERT_EQ(defs.size(), 1u);
  tensorflow::GraphDef whole;
  ExportGraph(graph, &whole);
  EXPECT_EQ(defs[0].ShortDebugString(), whole.ShortDebugString());
  EXPECT_TRUE(GraphPieces(graph, 0, {}).whole());
}

TEST(GraphPiecesTest, LargeConstantsTravelInPieces) {
  const Graph graph = LargeGraph();
  const auto defs = DefsOf(graph, kSmall);
  ASSERT_EQ(defs.size(), 5u) << "a, three pieces of b, and the nodes";
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ConstantPieces::IsPiece(defs[i]));
  for (const auto& def : defs) EXPECT_LT(def.ByteSizeLong(), 1100u);
  const StatusOr<Graph> again = Assemble(defs);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->Validate().ok());
  ExpectSame(*again, graph);
}

TEST(GraphPiecesTest, OnlyNewNodesAreSent) {
  const Graph graph = LargeGraph();
  EXPECT_TRUE(GraphPieces(graph, graph.FindNode("sum")->id(), kSmall).whole());
  GraphPieces later(graph, graph.FindNode("b")->id(), {.whole_bytes_max = 0});
  EXPECT_TRUE(later.whole()) << "b is smaller than constant_bytes_min";
}

TEST(GraphPiecesTest, APieceMustContinueItsConstant) {
  const auto good = DefsOf(LargeGraph(), kSmall);
  auto defs = good;
  std::swap(defs[1], defs[2]);
  EXPECT_THAT(ErrorOfAssembly(defs), HasSubstr("out of order"));
  defs = good;
  defs.erase(defs.begin() + 3);
  EXPECT_THAT(ErrorOfAssembly(defs), HasSubstr("'b': the value of the constant has not arrived"));
  defs = good;
  defs[3].mutable_node(0)->mutable_attr()->at("bytes").set_s(std::string(201, 'x'));
  EXPECT_THAT(ErrorOfAssembly(defs), HasSubstr("a piece of 201 bytes does not fit"));
  defs = good;
  defs[3].mutable_node(0)->mutable_attr()->at("dtype").set_type(tensorflow::DT_INT32);
  EXPECT_THAT(ErrorOfAssembly(defs), HasSubstr("does not fit"));
  defs = good;
  defs[0].mutable_node(0)->mutable_attr()->erase("shape");
  EXPECT_THAT(ErrorOfAssembly(defs), HasSubstr("lacks an attribute"));
  defs = good;
  defs[0].mutable_node(0)->mutable_attr()->at("dtype").set_type(tensorflow::DT_STRING);
  EXPECT_THAT(ErrorOfAssembly(defs), HasSubstr("a piece of a constant of type"));
  defs = good;
  (*defs[4].mutable_node(1)->mutable_attr())["value"].mutable_tensor()->set_dtype(
      tensorflow::DT_INT32);
  EXPECT_THAT(ErrorOfAssembly(defs), HasSubstr("of another type"));
}

TEST(GraphPiecesTest, OnlyConstantsComeInPieces) {
  const auto good = DefsOf(LargeGraph(), kSmall);
  auto defs = good;
  for (const char* op : {"AddN", "NoSuchOp"}) {
    defs[4].mutable_node(1)->set_op(op);
    EXPECT_EQ(Assemble(defs).status().code(), StatusCode::kInvalidArgument) << op;
    EXPECT_THAT(ErrorOfAssembly(defs), HasSubstr("'a': only the value of a constant")) << op;
  }
  defs = good;
  auto& attrs = *defs[0].mutable_node(0)->mutable_attr();
  attrs.at("shape").mutable_shape()->mutable_dim(0)->set_size(0);
  attrs.at("bytes").clear_s();
  EXPECT_THAT(ErrorOfAssembly(defs), HasSubstr("a constant of 0 bytes"));
}

TEST(GraphPiecesTest, AConstantThatIsNotImportedIsRefused) {
  auto defs = DefsOf(LargeGraph(), kSmall);
  ConstantPieces constants;
  Graph graph(TestOps());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(constants.Add("s", defs[i]).ok());
  const auto nothing = [](const tensorflow::GraphDef&, Graph*) { return OkStatus(); };
  const Status status = constants.Import("s", &defs[4], &graph, nothing);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'a': the constant is not in the graph"));
}

// A client whose call has failed sends the constant again from its beginning.
TEST(GraphPiecesTest, AFirstPieceBeginsAnew) {
  auto defs = DefsOf(LargeGraph(), kSmall);
  defs.insert(defs.begin() + 3, {defs[1], defs[2]});
  const StatusOr<Graph> again = Assemble(defs);
  ASSERT_TRUE(again.ok()) << again.status();
  ExpectSame(*again, LargeGraph());
}

TEST(GraphPiecesTest, AConstantTooLargeIsRefused) {
  auto defs = DefsOf(LargeGraph(), kSmall);
  ConstantPieces constants(/*bytes_max=*/1500);
  EXPECT_TRUE(constants.Add("s", defs[0]).ok());
  EXPECT_EQ(constants.Add("s", defs[1]).code(), StatusCode::kResourceExhausted);
  constants.Forget("s");
  EXPECT_TRUE(constants.Add("s", defs[1]).ok());
  auto* const dims = (*defs[0].mutable_node(0)->mutable_attr())["shape"].mutable_shape();
  dims->mutable_dim(0)->set_size(int64_t{1} << 62);
  EXPECT_EQ(constants.Add("s", defs[0]).code(), StatusCode::kResourceExhausted);
}

TEST(GraphPiecesTest, ScopesAreApart) {
  const auto defs = DefsOf(LargeGraph(), kSmall);
  ConstantPieces constants;
  for (int i = 0; i < 4; ++i) {
    for (const char* scope : {"1/a", "1/b", "2/a"}) ASSERT_TRUE(constants.Add(scope, defs[i]).ok());
  }
  constants.Forget("1/");
  for (const auto& [scope, kept] : {std::pair("1/b", false), std::pair("2/a", true)}) {
    Graph graph(TestOps());
    tensorflow::GraphDef last = defs[4];
    EXPECT_EQ(constants.Import(scope, &last, &graph, ImportPlainly).ok(), kept) << scope;
    EXPECT_EQ(graph.num_nodes(), kept ? 4 : 0);
  }
}

TEST(GraphPiecesTest, AFileOfPiecesRoundTrips) {
  const Graph graph = LargeGraph();
  const std::string path = testing::TempDir() + "/pieces.pb";
  ASSERT_TRUE(WriteGraphFile(Env::Real(), graph, path, kSmall).ok());
  const std::string bytes = *Env::Real().ReadFile(path);
  EXPECT_THAT(bytes.substr(0, 16), "PenstockGraph 1\n");
  const StatusOr<Graph> again = ReadGraphFile(Env::Real(), path, TestOps());
  ASSERT_TRUE(again.ok()) << again.status();
  ExpectSame(*again, graph);
  ASSERT_TRUE(WriteGraphFile(Env::Real(), *again, path, kSmall).ok());
  EXPECT_EQ(*Env::Real().ReadFile(path), bytes);
  const Status text = WriteGraphFile(Env::Real(), graph, path + ".pbtxt", kSmall);
  EXPECT_THAT(std::string(text.message()), HasSubstr("only a binary file can hold it"));
}

TEST(GraphPiecesTest, AFileIsWholeIfOneMessageHoldsIt) {
  const Graph graph = LargeGraph();
  tensorflow::GraphDef whole;
  ExportGraph(graph, &whole);
  const auto size = static_cast<int64_t>(whole.ByteSizeLong());
  ASSERT_GT(size, 1640) << "the bytes of the tensors";
  const std::string path = testing::TempDir() + "/whole.pb";
  for (const int64_t bytes_max : {size, size - 1, int64_t{1640}}) {
    SCOPED_TRACE(bytes_max);
    const PieceLimits limits = {.whole_bytes_max = bytes_max, .constant_bytes_min = 300};
    ASSERT_TRUE(WriteGraphFile(Env::Real(), graph, path, limits).ok());
    const std::string bytes = *Env::Real().ReadFile(path);
    EXPECT_EQ(bytes.starts_with("PenstockGraph 1\n"), bytes_max < size);
    const StatusOr<Graph> again = ReadGraphFile(Env::Real(), path, TestOps());
    ASSERT_TRUE(again.ok()) << again.status();
    ExpectSame(*again, graph);
  }
}

TEST(GraphPiecesTest, DamagedFilesAreRefused) {
  const std::string path = testing::TempDir() + "/damaged.pb";
  ASSERT_TRUE(WriteGraphFile(Env::Real(), LargeGraph(), path, kSmall).ok());
  const std::string good = *Env::Real().ReadFile(path);
  const auto error_of = [&](const std::string& bytes) {
    EXPECT_TRUE(Env::Real().WriteFileAtomically(path, bytes).ok());
    return ReadGraphFile(Env::Real(), path, TestOps()).status();
  };
  for (size_t at = 16; at < good.size(); at += 7) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    EXPECT_EQ(error_of(bad).code(), StatusCode::kDataLoss) << at;
  }
  for (size_t size = 16; size < good.size(); size += 50) {
    EXPECT_EQ(error_of(good.substr(0, size)).code(), StatusCode::kDataLoss) << size;
  }
  EXPECT_EQ(error_of(good + "x").code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(error_of(good + "x").message()), HasSubstr("damaged.pb'"));
}

}  // namespace
}  // namespace penstock
