// SPDX-License-Identifier: Apache-2.0
//
// Tests that large constants with a single value stay small until they run: in import, shape
// inference and export of graphs.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "core/graph/graph_proto.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

constexpr char kFilled[] = R"(
  node {
    name: 'large' op: 'Const'
    attr { key: 'dtype' value { type: DT_FLOAT } }
    attr {
      key: 'value'
      value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 400000000000 } } float_val: 2 } }
    }
  })";

tensorflow::GraphDef FromText(const std::string& text) {
  tensorflow::GraphDef def;
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &def));
  return def;
}

// The constant is larger than any machine's memory, so its value must not be made before it runs.
TEST(FilledConst, ALargeConstantOfOneValueStaysSmall) {
  const tensorflow::GraphDef def = FromText(kFilled);
  Graph graph(Registry::Global());
  ASSERT_EQ(ImportGraph(def, &graph), OkStatus());
  const Node& node = *graph.FindNode("large");
  EXPECT_EQ(node.op_name(), "_FilledConst");
  EXPECT_EQ(node.attr<Tensor>("value")->ToString(), "float[] 2");
  const auto shapes = InferShapes(graph);
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_EQ((*shapes)[node.id()][0], PartialShape({400'000'000'000}));
  tensorflow::GraphDef written;
  ExportGraph(graph, &written);
  EXPECT_EQ(written.node(0).DebugString(), def.node(0).DebugString());
}

TEST(FilledConst, OthersAreConstants) {
  for (const char* value : {"tensor_shape { dim { size: 4 } } float_val: 2",
                            "tensor_shape { dim { size: 5000000 } } float_val: 2 float_val: 3"}) {
    std::string text = kFilled;
    const size_t begin = text.find("tensor_shape"), end = text.find("float_val: 2") + 12;
    text.replace(begin, end - begin, value);
    Graph graph(Registry::Global());
    ASSERT_EQ(ImportGraph(FromText(text), &graph), OkStatus());
    EXPECT_EQ(graph.FindNode("large")->op_name(), "Const") << value;
  }
}

}  // namespace
}  // namespace penstock
