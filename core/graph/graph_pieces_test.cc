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

// Constants of 400 and 1200 bytes are written in pieces of 500 bytes.
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
  GraphPieces pieces(graph, limits);
  tensorflow::GraphDef def;
  while (pieces.Next(&def)) defs.push_back(std::move(def));
  return defs;
}

// Returns the graph that the GraphDefs make; the first error if there is one.
StatusOr<Graph> Assemble(std::vector<tensorflow::GraphDef> defs) {
  ConstantPieces constants(/*bytes_max=*/10'000);
  Graph graph(TestOps());
  for (tensorflow::GraphDef& def : defs) {
    RETURN_IF_ERROR(ConstantPieces::IsPiece(def) ? constants.Add(def)
                                                 : constants.Import(&def, &graph));
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
  EXPECT_TRUE(GraphPieces(graph, {}).whole());
}

TEST(GraphPiecesTest, LargeConstantsAreWrittenInPieces) {
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

TEST(GraphPiecesTest, APieceMustContinueItsConstant) {
  const auto good = DefsOf(LargeGraph(), kSmall);
  auto defs = good;
  std::swap(defs[1], defs[2]);
  EXPECT_THAT(ErrorOfAssembly(defs), HasSubstr("out of order"));
  defs = good;
  defs.erase(defs.begin() + 3);
  EXPECT_THAT(ErrorOfAssembly(defs), HasSubstr("'b': the value of the constant is incomplete"));
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

TEST(GraphPiecesTest, AConstantTooLargeIsRefused) {
  auto defs = DefsOf(LargeGraph(), kSmall);
  ConstantPieces constants(/*bytes_max=*/1500);
  EXPECT_TRUE(constants.Add(defs[0]).ok());
  EXPECT_EQ(constants.Add(defs[1]).code(), StatusCode::kDataLoss);
  auto* const dims = (*defs[1].mutable_node(0)->mutable_attr())["shape"].mutable_shape();
  dims->mutable_dim(0)->set_size(int64_t{1} << 62);
  EXPECT_THAT(ErrorOfAssembly(defs), HasSubstr("'b': the constants take more bytes than"));
}

TEST(GraphPiecesTest, BoolsAreMadeTrueBools) {
  Graph graph(TestOps());
  CHECK_OK(graph
               .AddNode({.name = "a",
                         .op = "Const",
                         .attrs = {{"dtype", DType::kBool},
                                   {"value", Tensor(DType::kBool, Shape({400}))}}})
               .status());
  auto defs = DefsOf(graph, {.whole_bytes_max = 0, .constant_bytes_min = 300});
  defs[0].mutable_node(0)->mutable_attr()->at("bytes").mutable_s()->at(7) = 2;
  const StatusOr<Graph> again = Assemble(defs);
  ASSERT_TRUE(again.ok()) << again.status();
  const Tensor& value = *again->FindNode("a")->attr<Tensor>("value");
  EXPECT_EQ(static_cast<const uint8_t*>(value.raw_data())[7], 1);
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
