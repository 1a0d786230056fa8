// SPDX-License-Identifier: Apache-2.0
#include "core/gradients/gradients.h"

#include <string>
#include <vector>

#include "core/graph/testing/test_ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class GradientsTest : public ::testing::Test {
 protected:
  Output Placeholder(const std::string& name, DType dtype = DType::kFloat,
                     PartialShape shape = {2}) {
    return {&b_,
            b_.AddNode("Placeholder", {}, {{"dtype", dtype}, {"shape", std::move(shape)}}, name),
            0};
  }
  std::vector<Gradient> Gradients(const Outputs& ys, const Outputs& xs, const Outputs& dys = {}) {
    auto result = AddGradients(b_, ys, xs, dys);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(b_.graph().Validate().ok());
    return result.ok() ? *result : std::vector<Gradient>(xs.size());
  }
  std::string ErrorOf(const Outputs& ys, const Outputs& xs, const Outputs& dys = {}) {
    return std::string(AddGradients(b_, ys, xs, dys).status().message());
  }
  // Returns `output` as an expression that ends at nodes without inputs.
  std::string Text(Output output) {
    if (!output.valid()) return "none";
    const Node* node = b_.NodeOf(output);
    const std::string suffix = output.index == 0 ? "" : StrCat(":", output.index);
    if (node->num_inputs() == 0) return node->name() + suffix;
    std::string text = node->op_name() + "(";
    for (const Endpoint& input : node->inputs()) {
      if (text.back() != '(') text += ", ";
      text += Text(b_.OutputOf(input.node, input.index));
    }
    return text + ")" + suffix;
  }
  std::string Text(const Gradient& gradient) {
    if (!gradient.sparse()) return Text(gradient.values);
    return StrCat("rows[", Text(gradient.indices), "] = ", Text(gradient.values), " of ",
                  Text(gradient.dense_shape));
  }

  GraphBuilder b_{TestOps()};
};

TEST_F(GradientsTest, AChain) {
  const Output x = Placeholder("x"), w = Placeholder("w"), dy = Placeholder("dy");
  const Output y = Identity(x * w);
  const auto g = Gradients({y}, {x, w}, {dy});
  EXPECT_EQ(Text(g[0]), "Mul(dy, w)");
  EXPECT_EQ(Text(g[1]), "Mul(dy, x)");
  EXPECT_EQ(g[0].values.name(), "gradients/Mul_grad/Mul:0");
  EXPECT_EQ(Text(Gradients({y}, {x})[0]), "Mul(OnesLike(Identity(Mul(x, w))), w)");
}

TEST_F(GradientsTest, PathsAreSummed) {
  const Output x = Placeholder("x"), dy = Placeholder("dy");
  EXPECT_EQ(Text(Gradients({x * x}, {x}, {dy})[0]), "AddN(Mul(dy, x), Mul(dy, x))");
  // A diamond: the node where both paths meet is visited once, after both of its consumers.
  const Output middle = Identity(x);
  const Output y = (middle + middle) * middle;
  EXPECT_EQ(Text(Gradients({y}, {x}, {dy})[0]),
            "AddN(Mul(dy, AddV2(Identity(x), Identity(x))), Mul(dy, Identity(x)), "
            "Mul(dy, Identity(x)))");
}

TEST_F(GradientsTest, SeveralYsAndDys) {
  const Output x = Placeholder("x"), a = Placeholder("a"), da = Placeholder("da"),
               db = Placeholder("db");
  const Output p = x * a;
  const Output q = Identity(p);
  const auto g = Gradients({p, q}, {x, p}, {da, db});
  EXPECT_EQ(Text(g[1]), "AddN(da, db)");
  EXPECT_EQ(Text(g[0]), "Mul(AddN(da, db), a)");
  // A y may also be an x, and an x or a y may be given twice.
  EXPECT_EQ(Text(Gradients({x}, {x, x}, {da})[1]), "da");
  EXPECT_EQ(Text(Gradients({x, x}, {x}, {da, db})[0]), "AddN(da, db)");
  // For a missing dy, ones are used.
  EXPECT_EQ(Text(Gradients({x, x}, {x}, {Output(), db})[0]), "AddN(OnesLike(x), db)");
}

TEST_F(GradientsTest, SeveralOutputsOfOneNode) {
  const Output x = Placeholder("x"), dy = Placeholder("dy");
  const Output two = Call("Two", {x});
  EXPECT_EQ(Text(Gradients({two}, {x}, {dy})[0]), "dy");
  EXPECT_EQ(Text(Gradients({two * two.Sibling(1)}, {x}, {dy})[0]),
            "AddV2(Mul(dy, Two(x):1), Mul(dy, Two(x)))");
  EXPECT_TRUE(Gradients({two}, {two.Sibling(1)}, {dy})[0].none());
}

TEST_F(GradientsTest, StopsWhereNothingFlows) {
  const Output x = Placeholder("x"), z = Placeholder("z"), dy = Placeholder("dy");
  EXPECT_TRUE(Gradients({z}, {x}, {dy})[0].none());                // unrelated
  EXPECT_TRUE(Gradients({StopGradient(x)}, {x}, {dy})[0].none());  // StopGradient ends gradients
  EXPECT_EQ(Text(Gradients({StopGradient(x) * x}, {x}, {dy})[0]), "Mul(dy, StopGradient(x))");
  const Output i = Cast(Cast(x, DType::kInt32), DType::kFloat);
  EXPECT_TRUE(Gradients({i}, {x}, {dy})[0].none());  // integers
  const Output blocked = StopGradient(Call("Opaque", {x}));
  EXPECT_TRUE(Gradients({blocked}, {x}, {dy})[0].none());  // its gradient function is never called
  EXPECT_EQ(Text(Gradients({Call("Opaque", {z}) * x}, {x}, {dy})[0]), "Mul(dy, Opaque(z))");
}

TEST_F(GradientsTest, IntegerXsHaveNone) {
  const Output i = Placeholder("i", DType::kInt32);
  EXPECT_TRUE(Gradients({Cast(i, DType::kFloat)}, {i})[0].none());
}

TEST_F(GradientsTest, ErrorsNameTheNode) {
  const Output x = Placeholder("x"), i = Placeholder("i", DType::kInt32);
  const Output opaque = Call("Opaque", {x});
  EXPECT_EQ(AddGradients(b_, {opaque * 2.0}, {x}).status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(ErrorOf({opaque}, {x}), HasSubstr("node 'Opaque': op Opaque has no gradient"));
  EXPECT_THAT(ErrorOf({i}, {x}), HasSubstr("y 'i:0' is int32"));
  EXPECT_THAT(ErrorOf({x}, {x}, {x, x}), HasSubstr("1 ys but 2 dys"));
  EXPECT_THAT(ErrorOf({x}, {x}, {i}), HasSubstr("dy 'i:0' is int32, y 'x:0' is float"));
  EXPECT_THAT(ErrorOf({x}, {Output()}), HasSubstr("not a tensor"));
  EXPECT_THAT(ErrorOf({Call("WrongCount", {x})}, {x}), HasSubstr("gave 3 values for 1 inputs"));
  EXPECT_THAT(ErrorOf({Call("WrongShape", {x})}, {x}),
              HasSubstr("node 'WrongShape' (op WrongShape) for input 0 has shape [7], the input "
                        "has [2]"));
  EXPECT_TRUE(b_.status().ok());
}

TEST_F(GradientsTest, LoopsOfAnotherFormAreRefused) {
  const Output x = Placeholder("x");
  const Output enter = Call("Enter", {x}, {{"frame_name", "f"}});
  Graph& graph = b_.mutable_graph();
  Node* merge = *graph.AddNode({.name = "merge",
                                .op = "Merge",
                                .inputs = {{b_.NodeOf(enter), 0}, {}},
                                .attrs = {{"T", DType::kFloat}, {"N", 2}}});
  const Output next = Call("NextIteration", {b_.OutputOf(merge) * b_.OutputOf(merge)});
  ASSERT_TRUE(graph.SetInput(merge, 1, {b_.NodeOf(next), 0}).ok());
  const Output exit = Call("Exit", {b_.OutputOf(merge)});
  EXPECT_THAT(ErrorOf({exit}, {x}), HasSubstr("takes 'merge', the variable of a loop"));
  EXPECT_TRUE(Gradients({x * x}, {x})[0].values.valid());  // loops in other places do not matter
}

TEST_F(GradientsTest, VariablesOfBothKinds) {
  const Output v =
      CallIn(b_, "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({2})}});
  const Output dy = Placeholder("dy");
  EXPECT_EQ(Text(Gradients({Identity(v) * v}, {v}, {dy})[0]),
            "AddN(Mul(dy, Identity(VariableV2)), Mul(dy, VariableV2))");
  const Output h =
      CallIn(b_, "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({2})}});
  const Output value = Call("ReadVariableOp", {h}, {{"dtype", DType::kFloat}});
  EXPECT_EQ(Text(Gradients({value * 3.0}, {h}, {dy})[0]), "Mul(dy, Const)");
}

TEST_F(GradientsTest, SparseGradientsAreJoinedOrMadeDense) {
  const Output h =
      CallIn(b_, "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({9, 2})}});
  const Output i = Placeholder("i", DType::kInt32), j = Placeholder("j", DType::kInt32),
               da = Placeholder("da", DType::kFloat, {}), db = Placeholder("db", DType::kFloat, {});
  const auto rows = [&h](Output at) {
    return Call("ResourceGather", {h, at}, {{"dtype", DType::kFloat}});
  };
  EXPECT_EQ(Text(Gradients({rows(i)}, {h}, {da})[0]), "rows[i] = da of VariableShape(VarHandleOp)");
  const Gradient both = Gradients({rows(i), rows(j)}, {h}, {da, db})[0];
  EXPECT_THAT(Text(both), HasSubstr("rows[ConcatV2(i, j, gradients"));
  EXPECT_THAT(Text(both), HasSubstr("] = ConcatV2(da, db, gradients"));
  const Output whole = Call("ReadVariableOp", {h}, {{"dtype", DType::kFloat}});
  const Gradient mixed = Gradients({rows(i), whole}, {h}, {da, db})[0];
  EXPECT_FALSE(mixed.sparse());
  EXPECT_THAT(Text(mixed), HasSubstr("UnsortedSegmentSum(da, i, GatherV2(VariableShape("));
  EXPECT_THAT(Text(Dense(both)), HasSubstr("UnsortedSegmentSum(ConcatV2(da, db"));
  EXPECT_EQ(Dense(Gradient(da)), da);
  EXPECT_FALSE(Dense(Gradient()).valid());
  EXPECT_TRUE(b_.status().ok()) << b_.status();
}

TEST_F(GradientsTest, SecondOrderIsCallingTwice) {
  const Output x = Placeholder("x"), w = Placeholder("w"), dy = Placeholder("dy");
  const Output first = Gradients({x * x * w}, {x}, {dy})[0].values;
  const auto second = Gradients({first}, {x, dy}, {w});
  EXPECT_FALSE(second[0].none());
  EXPECT_FALSE(second[1].none());
  EXPECT_THAT(second[0].values.name(), HasSubstr("gradients_1/"));
}

TEST_F(GradientsTest, LongChainsAreLinear) {
  Output x = Placeholder("x"), y = x;
  for (int i = 0; i < 20'000; ++i) y = Identity(y);
  EXPECT_EQ(Text(Gradients({y}, {x}, {x})[0]), "x");
}

}  // namespace
}  // namespace penstock
