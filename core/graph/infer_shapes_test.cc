// SPDX-License-Identifier: Apache-2.0
//
// Tests the inference of shapes of a graph to which nodes are added: small integer values, errors,
// and deep graphs. client/loop_shapes_test.cc tests loops.
#include "core/graph/infer_shapes.h"

#include <string>

#include "core/base/check.h"
#include "core/graph/testing/test_ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class InferShapesTest : public testing::Test {
 protected:
  Node* Add(Graph::NodeSpec spec) {
    StatusOr<Node*> node = graph_.AddNode(std::move(spec));
    CHECK_OK(node.status());
    return *node;
  }
  Node* Placeholder(const std::string& name, const PartialShape& shape) {
    return Add(
        {.name = name, .op = "Placeholder", .attrs = {{"dtype", DType::kFloat}, {"shape", shape}}});
  }
  Node* ShapeOf(const std::string& name, Node* of) {
    return Add({.name = name, .op = "Shape", .inputs = {{of, 0}}, .attrs = {{"T", DType::kFloat}}});
  }
  Node* Reshape(const std::string& name, Node* x, Node* shape) {
    return Add({.name = name,
                .op = "Reshape",
                .inputs = {{x, 0}, {shape, 0}},
                .attrs = {{"T", DType::kFloat}, {"Tshape", DType::kInt32}}});
  }

  Graph graph_{TestOps()};
};

TEST_F(InferShapesTest, FollowsTheShapeOfATensorAsAValue) {
  Node* const x = Placeholder("x", PartialShape({2, 3}));
  Node* const y = Placeholder("y", PartialShape({-1}));
  Node* const known = Reshape("known", y, ShapeOf("shape_x", x));
  Node* const unknown = Reshape("unknown", x, ShapeOf("shape_y", y));
  ShapeInference inference(graph_);
  ASSERT_EQ(inference.Update(), OkStatus());
  EXPECT_EQ(inference.shape(known->id(), 0), PartialShape({2, 3}));
  EXPECT_FALSE(inference.shape(unknown->id(), 0).fully_known());
  const Tensor* const value = inference.ConstantOf({graph_.FindNode("shape_x"), 0});
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->ToString(), Tensor::Vector<int32_t>({2, 3}).ToString());
  EXPECT_EQ(inference.ConstantOf({graph_.FindNode("shape_y"), 0}), nullptr);
}

TEST_F(InferShapesTest, GoesOnWithTheNodesThatWereAdded) {
  Node* const x = Placeholder("x", PartialShape({4}));
  ShapeInference inference(graph_);
  ASSERT_EQ(inference.Update(), OkStatus());
  const int seen = inference.num_seen();
  Node* const y =
      Add({.name = "y", .op = "Identity", .inputs = {{x, 0}}, .attrs = {{"T", DType::kFloat}}});
  ASSERT_EQ(inference.Update(), OkStatus());
  EXPECT_GT(inference.num_seen(), seen);
  EXPECT_EQ(inference.shape(y->id(), 0), PartialShape({4}));
}

TEST_F(InferShapesTest, AnErrorNamesItsNodeAndTheOthersAreInferred) {
  Node* const a = Placeholder("a", PartialShape({2, 3}));
  Node* const bad = Add(
      {.name = "bad", .op = "MatMul", .inputs = {{a, 0}, {a, 0}}, .attrs = {{"T", DType::kFloat}}});
  Node* const good =
      Add({.name = "good", .op = "Identity", .inputs = {{a, 0}}, .attrs = {{"T", DType::kFloat}}});
  ShapeInference inference(graph_);
  const Status status = inference.Update();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("bad"));
  EXPECT_FALSE(inference.shape(bad->id(), 0).known_rank());
  EXPECT_EQ(inference.shape(good->id(), 0), PartialShape({2, 3}));
  EXPECT_EQ(inference.Update(), OkStatus()) << "the next call continues behind the node";
}

TEST_F(InferShapesTest, TakesTheShapesThatTheCallerKnows) {
  Node* const x = Placeholder("x", PartialShape({-1, 3}));
  Node* const y =
      Add({.name = "y", .op = "Identity", .inputs = {{x, 0}}, .attrs = {{"T", DType::kFloat}}});
  const StatusOr<ShapeMap> shapes = InferShapesWith(graph_, {{x->id(), PartialShape({5, 3})}});
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_EQ((*shapes)[y->id()][0], PartialShape({5, 3}));
}

// The graph is so deep that a recursive inference would need more stack than a thread has.
TEST_F(InferShapesTest, AGraphMayBeDeep) {
  Node* node = Placeholder("x", PartialShape({1}));
  // The node that depends on all others has the lowest id, so that its inference must first infer
  // all its sources.
  Node* const last =
      Add({.name = "last", .op = "Identity", .inputs = {{}}, .attrs = {{"T", DType::kFloat}}});
  for (int i = 0; i < 100'000; ++i) {
    node = Add({.name = StrCat("n", i),
                .op = "Identity",
                .inputs = {{node, 0}},
                .attrs = {{"T", DType::kFloat}}});
  }
  CHECK_OK(graph_.SetInput(last, 0, {node, 0}));
  const StatusOr<ShapeMap> shapes = InferShapes(graph_);
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_EQ((*shapes)[last->id()][0], PartialShape({1}));
}

}  // namespace
}  // namespace penstock
