// SPDX-License-Identifier: Apache-2.0
#include "client/tensor_array.h"

#include "client/testing/flow_test_program.h"

namespace penstock::client {
namespace {

class TensorArrays : public FlowTest {
 protected:
  Output Int(int32_t value) { return Constant(program_, Tensor::Scalar(value)); }
  Output Ints(const std::vector<int32_t>& v) { return Constant(program_, Tensor::Vector(v)); }
};

TEST_F(TensorArrays, WriteAndRead) {
  const Output x = Input({1, 2});
  const TensorArray a = TensorArray(program_, Int(3), DType::kDouble, {.clear_after_read = false})
                            .Write(Int(2), x)
                            .Write(Int(0), x * 2)
                            .Write(Int(1), x * x);
  EXPECT_EQ(Text(a.Read(Int(0))), "double[2] 2 4");
  EXPECT_EQ(Text(a.Stack()), "double[3,2] 2 4 1 4 1 2");
  EXPECT_EQ(Text(a.Concat()), "double[6] 2 4 1 4 1 2");
  EXPECT_EQ(Text(a.Size()), "int32[] 3");
  CheckGradients(a.Read(Int(1)) + a.Read(Int(0)), {x});
  CheckGradients(a.Stack(), {x});
  CheckGradients(a.Concat(), {x});
}

TEST_F(TensorArrays, ScatterGatherSplit) {
  const Output x = Input(Tensor::Of<double>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const TensorArray a =
      TensorArray(program_, Int(4), DType::kDouble, {.element_shape = PartialShape({2})})
          .Scatter(Ints({3, 1, 0}), Square(x));
  const Output some = a.Gather(Ints({1, 2, 3}));
  EXPECT_EQ(some.shape().ToString(), "[3,2]");
  EXPECT_EQ(Text(some), "double[3,2] 9 16 0 0 1 4");
  CheckGradients(some * some, {x});
  const Output lengths = Constant(program_, Tensor::Vector<int64_t>({1, 0, 2}));
  const TensorArray b = TensorArray(program_, Int(3), DType::kDouble).Split(Square(x), lengths);
  EXPECT_EQ(Text(b.Read(Int(2))), "double[2,2] 9 16 25 36");
  CheckGradients(b.Read(Int(2)), {x});
}

TEST_F(TensorArrays, ReadersOfOneArrayAddUp) {
  const Output x = Input({1, 2, 3});
  const TensorArray a = TensorArray::Unstack(program_, x * x, {.clear_after_read = false});
  CheckGradients(Total(a.Stack()) + a.Read(Int(1)) * 3 + a.Read(Int(1)), {x});
}

TEST_F(TensorArrays, GradientsOfTwoCallsAreApart) {
  const Output x = Input({1, 2, 3});
  const TensorArray a = TensorArray::Unstack(program_, x);
  const Output y = Total(Square(a.Stack()));
  const Output first = Gradients(program_, {y}, {x})[0].values;
  const Output second =
      Gradients(program_, {y}, {x}, {Constant(program_, Tensor::Scalar(10.0))})[0].values;
  const Output third = Gradients(program_, {y * 2}, {x}, {Total(first)})[0].values;
  const auto values = Run({first, second, third});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].ToString(), "double[3] 2 4 6");
  EXPECT_EQ((*values)[1].ToString(), "double[3] 20 40 60");
  EXPECT_EQ((*values)[2].ToString(), "double[3] 48 96 144");
}

TEST_F(TensorArrays, SecondDerivatives) {
  const Output x = Input({1, 2});
  const TensorArray a = TensorArray::Unstack(program_, x * x * x);
  const Output dx = Gradients(program_, {a.Stack()}, {x})[0].values;
  CheckGradients(dx, {x});
}

// Tests the older versions of the ops, whose handles are refs to strings, or strings.
class Generations : public TensorArrays, public testing::WithParamInterface<const char*> {};

TEST_P(Generations, DoTheSame) {
  const auto op = [](const char* name) { return StrCat("TensorArray", name, GetParam()); };
  const Output x = Input(Tensor::Of<double>({2, 2}, {1, 2, 3, 4}));
  const Attrs dtype = {{"dtype", DType::kDouble}};
  Attrs kept = dtype;
  kept["clear_after_read"] = false;
  const Output handle = Call(op(""), {Int(3)}, kept);
  Output flow = Constant(program_, Tensor::Scalar(0.0f));
  flow = Call(op("Write"), {handle, Int(2), Gather(x, Int(0), Int(0)), flow});
  flow = Call(op("Scatter"), {handle, Ints({1, 0}), x * x, flow});
  const Output read = Call(op("Read"), {handle, Int(2), flow}, dtype);
  const Output gathered = Call(op("Gather"), {handle, Ints({0, 1}), flow}, dtype);
  EXPECT_EQ(Text(read), "double[2] 1 2");
  EXPECT_EQ(Text(gathered), "double[2,2] 9 16 1 4");
  EXPECT_EQ(Text(Call(op("Size"), {handle, flow})), "int32[] 3");
  CheckGradient(Total(Call("Reshape", {gathered, Ints({4})})), x,
                Gradients(program_, {gathered}, {x})[0].values);
  const Output both = CallN(op("Concat"), {handle, flow}, dtype)[0];
  EXPECT_EQ(Text(both), "double[6] 9 16 1 4 1 2");
  const Output dx = Gradients(program_, {both}, {x})[0].values;
  EXPECT_EQ(Text(dx), "double[2,2] 3 5 6 8");
  const Output closed = Call(op("Close"), {handle});
  EXPECT_TRUE(session_->Execute(closed).ok());
}

INSTANTIATE_TEST_SUITE_P(All, Generations, testing::Values("", "V2"));

TEST_F(TensorArrays, PackAndUnpackOfTheFirstGeneration) {
  const Output x = Input({1, 2, 3});
  const Output handle = Call("TensorArray", {Int(3)}, {{"dtype", DType::kDouble}});
  const Output flow =
      Call("TensorArrayUnpack", {handle, Square(x), Constant(program_, Tensor::Scalar(0.0f))});
  const Output packed = Call("TensorArrayPack", {handle, flow}, {{"dtype", DType::kDouble}});
  EXPECT_EQ(Text(packed), "double[3] 1 4 9");
  EXPECT_EQ(Text(Gradients(program_, {packed}, {x})[0].values), "double[3] 2 4 6");
}

TEST_F(TensorArrays, StacksOfTheFirstGeneration) {
  const Output x = Input({1, 2});
  const Output handle = CallIn(program_, "Stack", {}, {{"elem_type", DType::kDouble}});
  const Output push = Call("StackPush", {handle, x});
  const auto after = program_.ControlDependencies({push});
  EXPECT_EQ(Text(Call("StackPop", {handle}, {{"elem_type", DType::kDouble}})), "double[2] 1 2");
}

}  // namespace
}  // namespace penstock::client
