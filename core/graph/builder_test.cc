// SPDX-License-Identifier: Apache-2.0
#include "core/graph/builder.h"

#include <string>
#include <vector>

#include "core/graph/testing/test_ops.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BuilderTest : public ::testing::Test {
 protected:
  Output Placeholder(PartialShape shape = {}, DType dtype = DType::kFloat,
                     const std::string& name = "") {
    const int node =
        b_.AddNode("Placeholder", {}, {{"dtype", dtype}, {"shape", std::move(shape)}}, name);
    return {&b_, node, 0};
  }
  Output NoOp(const std::string& name = "") { return {&b_, b_.AddNode("NoOp", {}, {}, name), 0}; }
  std::string NameOf(Output output) { return b_.NodeOf(output)->name(); }
  std::string DeviceOf(Output output) { return b_.NodeOf(output)->requested_device(); }
  std::string Error() const { return std::string(b_.status().message()); }

  GraphBuilder b_{TestOps()};
};

TEST_F(BuilderTest, InfersAttributesTypesAndShapes) {
  const Output x = Placeholder({2, -1});
  const Output y = Placeholder({-1, 3});
  const Output z = MatMul(x, y);
  ASSERT_TRUE(b_.status().ok()) << b_.status();
  EXPECT_EQ(z.dtype(), DType::kFloat);
  EXPECT_EQ(z.shape(), PartialShape({2, 3}));
  EXPECT_EQ(z.name(), "MatMul:0");
  const Output sum = AddN({x, x, x});
  EXPECT_EQ(*b_.NodeOf(sum)->attr<int64_t>("N"), 3);
  const Outputs any = CallN("Any", {Outputs{x, Cast(y, DType::kInt32)}},
                            {{"Tout", std::vector<DType>{DType::kString, DType::kBool}}});
  ASSERT_TRUE(b_.status().ok()) << b_.status();
  EXPECT_EQ(any.size(), 2);
  EXPECT_EQ(any[1].dtype(), DType::kBool);
  EXPECT_EQ(any[1].name(), "Any:1");
  EXPECT_TRUE(b_.graph().Validate().ok());
}

TEST_F(BuilderTest, TheFirstErrorSticksAndNamesTheNode) {
  const Output x = Placeholder({2, 3});
  Output bad = MatMul(x, x);
  EXPECT_EQ(Error(), "node 'MatMul': inner dimensions 3 and 2 differ");
  EXPECT_FALSE(bad.valid());
  EXPECT_EQ(b_.graph().FindNode("MatMul"), nullptr);
  EXPECT_FALSE((bad * 2.0 + x).valid());
  EXPECT_FALSE(Placeholder().valid());
  EXPECT_EQ(Error(), "node 'MatMul': inner dimensions 3 and 2 differ");
  EXPECT_EQ(b_.graph().num_nodes(), 1);
}

TEST(BuilderErrors, AreClear) {
  GraphBuilder other(TestOps());
  const Output foreign = {&other, other.AddNode("Placeholder", {}, {{"dtype", DType::kFloat}}, ""),
                          0};
  const auto error_of = [](const std::function<void(GraphBuilder&, Output x)>& build) {
    GraphBuilder b(TestOps());
    const Output x = {&b, b.AddNode("Placeholder", {}, {{"dtype", DType::kFloat}}, "x"), 0};
    build(b, x);
    EXPECT_TRUE(b.graph().Validate().ok());
    return std::string(b.status().message());
  };
  using B = GraphBuilder;
  EXPECT_THAT(error_of([](B& b, Output x) { b.AddNode("Nope", {x}, {}, "n"); }),
              HasSubstr("node 'n' (op Nope): there is no op 'Nope'"));
  EXPECT_THAT(error_of([](B& b, Output x) { b.AddNode("AddV2", {x}, {}, "n"); }),
              HasSubstr("node 'n' (op AddV2)"));
  EXPECT_THAT(error_of([](B& b, Output x) {
                b.AddNode("AddV2", {x, Outputs{x}}, {}, "n");
              }),
              HasSubstr("is one tensor, a list was given"));
  EXPECT_THAT(error_of([&](B& b, Output x) {
                b.AddNode("AddV2", {x, foreign}, {}, "n");
              }),
              HasSubstr("argument 1 is of another graph"));
  EXPECT_THAT(error_of([](B& b, Output x) {
                b.AddNode("AddV2", {x, Output()}, {}, "n");
              }),
              HasSubstr("argument 1 is not a tensor"));
  EXPECT_THAT(error_of([](B& b, Output x) {
                b.AddNode("AddV2", {x, x.Sibling(4)}, {}, "n");
              }),
              HasSubstr("argument 1 is output 4 of node 0, which does not exist"));
  EXPECT_THAT(error_of([](B& b, Output x) { b.AddNode("Placeholder", {}, {}, "n"); }),
              HasSubstr("node 'n': attribute 'dtype'"));
  EXPECT_THAT(error_of([](B& b, Output x) { b.AddNode("NoOp", {}, {}, "a b"); }),
              HasSubstr("'a b' is not a valid node name"));
  EXPECT_THAT(error_of([](B& b, Output x) { (void)b.DeviceScope("/job:"); }),
              HasSubstr("device scope: device '/job:'"));
  EXPECT_THAT(error_of([&](B& b, Output x) { (void)b.ControlDependencies({foreign}); }),
              HasSubstr("control dependency"));
}

TEST_F(BuilderTest, NameScopesNestAndAreUnique) {
  EXPECT_EQ(NameOf(NoOp("a")), "a");
  EXPECT_EQ(NameOf(NoOp("a")), "a_1");
  EXPECT_EQ(NameOf(NoOp()), "NoOp");
  std::string outer;
  {
    const auto layer = b_.NameScope("layer");
    outer = b_.name_scope();
    EXPECT_EQ(NameOf(NoOp("a")), "layer/a");
    const auto inner = b_.NameScope("inner");
    EXPECT_EQ(NameOf(NoOp("a")), "layer/inner/a");
    {
      const auto root = b_.NameScope("");
      EXPECT_EQ(NameOf(NoOp("a")), "a_2");
    }
    EXPECT_EQ(b_.name_scope(), "layer/inner/");
  }
  EXPECT_EQ(b_.name_scope(), "");
  {
    const auto again = b_.NameScope("layer");
    EXPECT_EQ(NameOf(NoOp("a")), "layer_1/a");
  }
  {
    const auto back = b_.NameScope(outer);
    EXPECT_EQ(NameOf(NoOp("b")), "layer/b");
    EXPECT_EQ(NameOf(NoOp("a")), "layer/a_1");
  }
  // Nodes and scopes share one set of names.
  EXPECT_EQ(NameOf(NoOp("layer")), "layer_2");
  const auto scope = b_.NameScope("a");
  EXPECT_EQ(NameOf(NoOp("x")), "a_3/x");
}

TEST_F(BuilderTest, DeviceScopesMergeInnerFirst) {
  EXPECT_EQ(DeviceOf(NoOp()), "");
  const auto job = b_.DeviceScope("/job:ps/device:CPU:0");
  EXPECT_EQ(DeviceOf(NoOp()), "/job:ps/device:CPU:0");
  {
    const auto task = b_.DeviceScope("/task:3");
    EXPECT_EQ(DeviceOf(NoOp()), "/job:ps/task:3/device:CPU:0");
    const auto gpu = b_.DeviceScope("/job:worker/gpu:1");
    EXPECT_EQ(DeviceOf(NoOp()), "/job:worker/task:3/device:GPU:1");
    const auto nothing = b_.DeviceScope("");
    EXPECT_EQ(DeviceOf(NoOp()), "/job:worker/task:3/device:GPU:1");
  }
  EXPECT_EQ(DeviceOf(NoOp()), "/job:ps/device:CPU:0");
}

TEST_F(BuilderTest, DeviceFunctionsSeeTheNode) {
  int next = 0;
  const auto job = b_.DeviceScope("/job:worker/task:7");
  const auto spread = b_.DeviceFunctionScope([&next](const Graph::NodeSpec& spec) {
    if (spec.op != "VariableV2") return spec.device;
    return StrCat("/job:ps/task:", next++);
  });
  const auto variable = [this] {
    return Output{
        &b_,
        b_.AddNode("VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({1})}}, "v"),
        0};
  };
  EXPECT_EQ(DeviceOf(variable()), "/job:ps/task:0");
  EXPECT_EQ(DeviceOf(variable()), "/job:ps/task:1");
  EXPECT_EQ(DeviceOf(NoOp()), "/job:worker/task:7");
  const auto inner = b_.DeviceScope("/device:CPU:0");
  EXPECT_EQ(DeviceOf(NoOp()), "/job:worker/task:7/device:CPU:0");
  EXPECT_EQ(DeviceOf(variable()), "/job:ps/task:2");
}

TEST_F(BuilderTest, ControlDependenciesAccumulate) {
  const Output a = NoOp("a"), b = NoOp("b");
  {
    const auto first = b_.ControlDependencies({a});
    EXPECT_EQ(Print(*b_.NodeOf(NoOp())), "NoOp(^a)");
    const auto second = b_.ControlDependencies({b, a});
    EXPECT_EQ(Print(*b_.NodeOf(NoOp())), "NoOp(^a, ^b)");
    {
      const auto none = b_.ClearControlDependencies();
      EXPECT_EQ(Print(*b_.NodeOf(NoOp())), "NoOp()");
      const auto third = b_.ControlDependencies({b});
      EXPECT_EQ(Print(*b_.NodeOf(NoOp())), "NoOp(^b)");
    }
    EXPECT_EQ(Print(*b_.NodeOf(NoOp())), "NoOp(^a, ^b)");
  }
  EXPECT_EQ(Print(*b_.NodeOf(NoOp())), "NoOp()");
}

TEST_F(BuilderTest, ColocationNamesTheGroup) {
  const auto group = [this](Output output) {
    return *b_.NodeOf(output)->attr<std::vector<std::string>>("_class");
  };
  Output v, w;
  {
    const auto ps = b_.DeviceScope("/job:ps/task:1");
    v = NoOp("v");
  }
  {
    const auto worker = b_.DeviceScope("/job:worker");
    const auto with_v = b_.ColocateWith(v);
    w = NoOp("w");
    EXPECT_THAT(group(w), ElementsAre("loc:@v"));
    EXPECT_EQ(DeviceOf(w), "/job:ps/task:1");
    const auto gpu = b_.DeviceScope("/gpu:0");
    EXPECT_EQ(DeviceOf(NoOp()), "/job:ps/task:1/device:GPU:0");
  }
  const auto with_w = b_.ColocateWith(w);  // colocated with v, too
  EXPECT_THAT(group(NoOp()), ElementsAre("loc:@v"));
  const auto also = b_.ColocateWith(NoOp("free"));
  EXPECT_THAT(group(NoOp()), ElementsAre("loc:@v"));
}

TEST_F(BuilderTest, AnInnerColocationTakesThePlaceOfTheOuter) {
  const auto placed = [this](const char* name, const char* device) {
    const auto scope = b_.DeviceScope(device);
    return NoOp(name);
  };
  const Output gradient = placed("gradient", "/job:worker"), table = placed("table", "/job:ps");
  const auto outer = b_.ColocateWith(gradient);
  {
    const auto inner = b_.ColocateWith(table);
    const Node* update = b_.NodeOf(NoOp("update"));
    EXPECT_THAT(*update->attr<std::vector<std::string>>("_class"), ElementsAre("loc:@table"));
    EXPECT_EQ(update->requested_device(), "/job:ps");
  }
  const Node* rows = b_.NodeOf(NoOp("rows"));
  EXPECT_THAT(*rows->attr<std::vector<std::string>>("_class"), ElementsAre("loc:@gradient"));
  EXPECT_EQ(rows->requested_device(), "/job:worker");
}

TEST_F(BuilderTest, FollowsConstantsAndHandles) {
  const Output x = Placeholder({4, 5});
  const Output shape = ShapeOf(x, DType::kInt64);
  EXPECT_EQ(Reshape(Placeholder(), shape).shape(), PartialShape({4, 5}));
  EXPECT_EQ(Reshape(Placeholder(), Identity(shape)).shape(), PartialShape({4, 5}));
  const Output two = Constant(b_, Tensor::Scalar<int32_t>(2));
  const Output packed = Pack({two, Constant(b_, Tensor::Scalar<int32_t>(-1))});
  EXPECT_EQ(Reshape(x, packed).shape(), PartialShape({2, -1}));
  EXPECT_EQ(Reshape(x, ShapeOf(Placeholder({-1}))).shape(), PartialShape());
  const Output handle =
      CallIn(b_, "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({3})}});
  EXPECT_EQ(Call("ReadVariableOp", {handle}, {{"dtype", DType::kFloat}}).shape(),
            PartialShape({3}));
  EXPECT_TRUE(b_.status().ok()) << b_.status();
}

TEST_F(BuilderTest, UnderstandsNodesAddedBehindItsBack) {
  Graph graph(TestOps());
  ASSERT_TRUE(graph
                  .AddNode({.name = "x",
                            .op = "Placeholder",
                            .attrs = {{"dtype", DType::kFloat}, {"shape", PartialShape({2})}}})
                  .ok());
  GraphBuilder b(std::move(graph));
  const Output x = b.OutputOf(b.graph().FindNode("x"));
  EXPECT_EQ(x.shape(), PartialShape({2}));
  // Adds the later node first, as imports may.
  Node* second = *b.mutable_graph().AddNode(
      {.name = "second", .op = "Identity", .inputs = {{}}, .attrs = {{"T", DType::kFloat}}});
  Node* first = *b.mutable_graph().AddNode({.name = "first",
                                            .op = "Identity",
                                            .inputs = {{b.NodeOf(x), 0}},
                                            .attrs = {{"T", DType::kFloat}}});
  ASSERT_TRUE(b.mutable_graph().SetInput(second, 0, {first, 0}).ok());
  const Output sum = b.OutputOf(second) + x;
  EXPECT_EQ(sum.shape(), PartialShape({2}));
  EXPECT_TRUE(b.status().ok()) << b.status();
}

TEST_F(BuilderTest, DeepGraphsDoNotOverflowTheStack) {
  Graph graph(TestOps());
  constexpr int kDepth = 100'000;
  std::vector<Node*> nodes;
  for (int i = 0; i < kDepth; ++i) {
    nodes.push_back(*graph.AddNode({.name = StrCat("n", i),
                                    .op = "Identity",
                                    .inputs = {{}},
                                    .attrs = {{"T", DType::kFloat}}}));
  }
  for (int i = 0; i + 1 < kDepth; ++i) {
    ASSERT_TRUE(graph.SetInput(nodes[i], 0, {nodes[i + 1], 0}).ok());
  }
  EXPECT_TRUE(InferShapes(graph).ok());
  EXPECT_TRUE(graph.TopologicalOrder().ok());
}

}  // namespace
}  // namespace penstock
