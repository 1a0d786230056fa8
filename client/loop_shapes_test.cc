// SPDX-License-Identifier: Apache-2.0
//
// Tests shape inference for loop variables, and for the nodes after a loop, in complete graphs, as
// the compiler sees them and as other clients send them.
#include "client/control_flow.h"
#include "client/testing/flow_test_program.h"
#include "core/graph/flow_context.h"

namespace penstock::client {
namespace {

class LoopShapes : public FlowTest {
 protected:
  // Returns the result of a loop that applies x = body(x) ten times.
  Output Loop(const std::string& frame, Output x, const std::function<Output(Output)>& body) {
    const auto enter = [&](Output value) {
      return Call("Enter", {value}, {{"frame_name", frame}});
    };
    const auto begin = [&](Output value) {
      const Output entered = enter(value);
      return CallN("Merge", {Outputs{entered, entered}})[0];
    };
    const auto close = [&](Output merge, Output next) {
      const Output around = Call("NextIteration", {next});
      CHECK_OK(program_.status());
      CHECK_OK(program_.mutable_graph().SetInput(program_.NodeOf(merge), 1,
                                                 {program_.NodeOf(around), 0}));
    };
    const Output i = begin(ConstantIn(x, 0)), v = begin(x);
    const Output goes_on = Call("LoopCond", {Less(i, ConstantIn(i, 10))});
    const Outputs number = AddSwitch(i, goes_on), sides = AddSwitch(v, goes_on);
    close(i, number[1] + ConstantIn(number[1], 1));
    close(v, body(sides[1]));
    return Call("Exit", {sides[0]});
  }
  // Returns a constant inside the loop that contains `after`.
  Output ConstantIn(Output after, int32_t value) {
    const auto there = program_.ControlDependencies({after});
    return Constant(program_, Tensor::Scalar(value));
  }
  Output Stacked(Output a, Output b, int32_t axis) { return ConcatV2({a, b}, ConstantIn(a, axis)); }
  // Infers the shape of `output` in the current graph.
  std::string Shape(Output output) {
    const StatusOr<ShapeMap> shapes = InferShapes(program_.graph());
    EXPECT_TRUE(shapes.ok()) << shapes.status();
    return shapes.ok() ? (*shapes)[output.node][output.index].ToString() : "";
  }
};

TEST_F(LoopShapes, AVariableThatKeepsItsShape) {
  const Output x = Input(Tensor(DType::kDouble, {2, 3}));
  const Output last = Loop("f", x, [](Output v) { return Sin(v) * v; });
  EXPECT_EQ(Shape(last), "[2,3]");
  EXPECT_EQ(Shape(Call("MatMul", {last, Input(Tensor(DType::kDouble, {3, 4}))})), "[2,4]");
}

TEST_F(LoopShapes, OneThatGrows) {
  const Output x = Input(Tensor(DType::kDouble, {1, 3}));
  const Output last = Loop("f", x, [&](Output v) { return Stacked(v, v, 0); });
  EXPECT_EQ(Shape(last), "[?,3]");
  EXPECT_EQ(Shape(Call("MatMul", {last, Input(Tensor(DType::kDouble, {3, 4}))})), "[?,4]");
  EXPECT_EQ(Value(last).shape(), penstock::Shape({1024, 3}));
}

TEST_F(LoopShapes, OneThatChangesItsRank) {
  const Output x = Input(Tensor(DType::kDouble, {1, 3}));
  const Output last = Loop("f", x, [&](Output v) { return ExpandDims(v, ConstantIn(v, 0)); });
  EXPECT_EQ(Shape(last), PartialShape().ToString());
}

TEST_F(LoopShapes, ALoopInALoop) {
  const Output x = Input(Tensor(DType::kDouble, {2, 1}));
  const Output last = Loop("outer", x, [&](Output v) {
    const Output wide = Loop("inner", v, [&](Output u) { return Stacked(u, u, 1); });
    const Output same = Loop("same", v, [&](Output u) { return Sin(u); });
    return Stacked(Call("MatMul", {wide, wide}, {{"transpose_b", true}}), same, 1);
  });
  EXPECT_EQ(Shape(last), "[2,?]");
}

// A size that is known only in the first iteration must not be inferred for all iterations.
TEST_F(LoopShapes, SizesOfWhatGrows) {
  const Output x = Input(Tensor(DType::kDouble, {1}));
  Output filled;
  Loop("f", x, [&](Output v) {
    filled = Fill(ShapeOf(v, DType::kInt32), ConstantIn(v, 7));
    return Stacked(v, v, 0);
  });
  EXPECT_EQ(Shape(filled), "[?]");
}

// The body is not valid for the shape that the variable has in the first iteration. Then no shape
// is inferred, because the invalid node may be in a branch that this iteration does not take.
TEST_F(LoopShapes, WhereTheFirstIterationDoesNotFitNothingIsKnown) {
  const Output any = CallIn(program_, "Placeholder", {}, {{"dtype", DType::kDouble}});
  const Output w = Input(Tensor(DType::kDouble, {4, 3}));
  const Output last = Loop("f", any, [&](Output v) {
    const Output entered = Call("Enter", {w}, {{"frame_name", "f"}, {"is_constant", true}});
    return Call("MatMul", {v, entered});
  });
  const Output x = Input(Tensor(DType::kDouble, {1, 3}));
  ASSERT_TRUE(program_.status().ok()) << program_.status();
  for (Node* const node : program_.mutable_graph().nodes()) {
    if (node->op_name() != "Enter" || node->input(0).node != program_.NodeOf(any)) continue;
    ASSERT_TRUE(program_.mutable_graph().SetInput(node, 0, {program_.NodeOf(x), 0}).ok());
  }
  EXPECT_EQ(Shape(last), PartialShape().ToString());
}

}  // namespace
}  // namespace penstock::client
