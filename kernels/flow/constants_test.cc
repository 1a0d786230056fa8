// SPDX-License-Identifier: Apache-2.0
//
// Const, _FilledConst, Placeholder, PlaceholderV2, PlaceholderWithDefault.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <complex>

#include "core/graph/graph_proto.h"
#include "core/op/testing/op_runner.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

std::string ErrorOf(OpRunner& run) { return std::string(run.Run().status().message()); }

TEST(Const, IsItsAttribute) {
  const Tensor value = Tensor::Of<float>({2}, {1, 2});
  const auto y = OpRunner("Const").Attr("value", value).Attr("dtype", DType::kFloat).Run1();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_TRUE(y->SharesBufferWith(value));
  EXPECT_EQ(y->shape(), Shape({2}));
}

TEST(Const, RefusesTheWrongType) {
  OpRunner run("Const");
  run.Attr("value", Tensor::Scalar<float>(1)).Attr("dtype", DType::kInt32);
  EXPECT_NE(ErrorOf(run).find("attribute dtype is int32, attribute value is float"),
            std::string::npos);
}

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

// More than any machine has: it must not be made before it runs.
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

template <class T>
void ExpectFilled(T value) {
  const StatusOr<Tensor> y = OpRunner("_FilledConst")
                                 .Attr("value", Tensor::Scalar<T>(value))
                                 .Attr("shape", PartialShape({3, 2}))
                                 .Attr("dtype", kDTypeOf<T>)
                                 .Run1();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->shape(), Shape({3, 2}));
  for (const T element : y->flat<T>()) EXPECT_EQ(element, value);
}

TEST(FilledConst, HasItsValueEverywhere) {
  ExpectFilled<int8_t>(-7);
  ExpectFilled<half>(half(1.5f));
  ExpectFilled<float>(2.5f);
  ExpectFilled<int64_t>(int64_t{1} << 40);
  ExpectFilled<std::complex<double>>({1, -2});
}

TEST(Placeholder, MustBeFed) {
  OpRunner with_shape("Placeholder");
  with_shape.NodeName("x").Attr("dtype", DType::kFloat).Attr("shape", PartialShape({2, -1}));
  EXPECT_EQ(ErrorOf(with_shape),
            "You must feed a value for placeholder tensor 'x' with dtype float and shape [2,?]");
  OpRunner without("Placeholder");
  without.NodeName("x").Attr("dtype", DType::kInt64);
  EXPECT_EQ(ErrorOf(without), "You must feed a value for placeholder tensor 'x' with dtype int64");
  OpRunner second("PlaceholderV2");
  second.NodeName("x").Attr("dtype", DType::kString).Attr("shape", Shape({3}));
  EXPECT_EQ(ErrorOf(second),
            "You must feed a value for placeholder tensor 'x' with dtype string and shape [3]");
}

TEST(PlaceholderWithDefault, PassesItsInputOn) {
  const Tensor x = Tensor::Of<float>({2}, {1, 2});
  const auto y = OpRunner("PlaceholderWithDefault").In(x).Attr("shape", PartialShape({-1})).Run1();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_TRUE(y->SharesBufferWith(x));
  OpRunner wrong("PlaceholderWithDefault");
  wrong.In(x).Attr("shape", PartialShape({3}));
  EXPECT_EQ(ErrorOf(wrong), "the default has shape [2], the attribute says [3]");
}

}  // namespace
}  // namespace penstock
