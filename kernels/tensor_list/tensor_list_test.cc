// SPDX-License-Identifier: Apache-2.0
//
// Tests lists and optionals, op by op. Expected values and error texts are TensorFlow's.
#include "kernels/tensor_list/tensor_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/op/testing/op_runner.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

Tensor Floats(const std::vector<float>& values) { return Tensor::Vector(values); }
Tensor Ints(const std::vector<int32_t>& values) { return Tensor::Vector(values); }
Tensor Longs(const std::vector<int64_t>& values) { return Tensor::Vector(values); }
Tensor Int(int32_t i) { return Tensor::Scalar(i); }
const Tensor kUnknown = Int(-1);

// Runs an op whose shape function knows nothing of its inputs, so that the kernel has to find
// errors.
StatusOr<std::vector<Tensor>> Call(const char* op, const std::vector<Tensor>& inputs,
                                   const Attrs& attrs = {}) {
  OpRunner run(op);
  run.SetKnownInputs(OpRunner::Known::kNothing);
  for (const Tensor& input : inputs) run.In(input);
  for (const auto& [name, value] : attrs) run.Attr(name, value);
  return run.Run();
}

Tensor Call1(const char* op, const std::vector<Tensor>& inputs, const Attrs& attrs = {}) {
  const auto outputs = Call(op, inputs, attrs);
  EXPECT_TRUE(outputs.ok()) << op << ": " << outputs.status();
  return outputs.ok() ? (*outputs)[0] : Tensor();
}

void ExpectError(const char* words, const char* op, const std::vector<Tensor>& inputs,
                 const Attrs& attrs = {}) {
  EXPECT_THAT(std::string(Call(op, inputs, attrs).status().message()), HasSubstr(words)) << op;
}

const Attrs kFloats = {{"element_dtype", DType::kFloat}};

Tensor Empty(Tensor element_shape, int32_t max = -1, DType dtype = DType::kFloat) {
  return Call1("EmptyTensorList", {element_shape, Int(max)}, {{"element_dtype", dtype}});
}
Tensor Reserve(Tensor element_shape, int32_t size, DType dtype = DType::kFloat) {
  return Call1("TensorListReserve", {element_shape, Int(size)}, {{"element_dtype", dtype}});
}
Tensor Push(Tensor list, Tensor element) { return Call1("TensorListPushBack", {list, element}); }
Tensor Set(Tensor list, int32_t index, Tensor element) {
  return Call1("TensorListSetItem", {list, Int(index), element});
}
std::string Get(Tensor list, int32_t index, Tensor shape = kUnknown) {
  return Call1("TensorListGetItem", {list, Int(index), shape}, kFloats).ToString();
}
int32_t Length(Tensor list) { return Call1("TensorListLength", {list}).scalar<int32_t>(); }
std::string Stack(Tensor list, Tensor shape = kUnknown) {
  return Call1("TensorListStack", {list, shape}, kFloats).ToString();
}

TEST(TensorList, IsAStack) {
  const Tensor empty = Empty(kUnknown);
  const Tensor one = Push(empty, Floats({1, 2}));
  const Tensor two = Push(one, Floats({3}));
  EXPECT_EQ(Length(empty), 0);  // ops on a copy leave the original unchanged
  EXPECT_EQ(Length(two), 2);
  const auto popped = Call("TensorListPopBack", {two, kUnknown}, kFloats);
  ASSERT_TRUE(popped.ok()) << popped.status();
  EXPECT_EQ((*popped)[1].ToString(), "float[1] 3");
  EXPECT_EQ(Length((*popped)[0]), 1);
  EXPECT_EQ(Length(two), 2);
  ExpectError("Trying to pop from an empty list", "TensorListPopBack", {empty, kUnknown}, kFloats);
  ExpectError("op elements int32 but list elements float", "TensorListPushBack", {one, Ints({1})});
  ExpectError("not of the element_shape [7]", "TensorListPopBack", {two, Ints({7})}, kFloats);
}

TEST(TensorList, HoldsElementsToItsShape) {
  const Tensor list = Empty(Ints({2, -1}));
  ExpectError("shape: [3,1] list shape: [2,?]", "TensorListPushBack",
              {list, Tensor(DType::kFloat, {3, 1})});
  EXPECT_EQ(Length(Push(list, Tensor(DType::kFloat, {2, 5}))), 1);
  const Attrs ints = {{"shape_type", DType::kInt32}}, longs = {{"shape_type", DType::kInt64}};
  EXPECT_EQ(Call1("TensorListElementShape", {list}, ints).ToString(), "int32[2] 2 -1");
  EXPECT_EQ(Call1("TensorListElementShape", {list}, longs).ToString(), "int64[2] 2 -1");
  EXPECT_EQ(Call1("TensorListElementShape", {Empty(kUnknown)}, ints).ToString(), "int32[] -1");
  const Tensor wide = Empty(Longs({int64_t{1} << 40}));
  ExpectError("does not fit in int32", "TensorListElementShape", {wide}, ints);
}

TEST(TensorList, IsFullAtItsMaximum) {
  const Tensor list = Push(Empty(kUnknown, 1), Floats({1}));
  ExpectError("full list. list size: 1 max_num_elements: 1", "TensorListPushBack",
              {list, Floats({1})});
}

TEST(TensorList, HasPlacesThatNobodyHasSet) {
  const Tensor list = Set(Reserve(kUnknown, 3), 1, Floats({1, 2}));
  EXPECT_EQ(Get(list, 1), "float[2] 1 2");
  EXPECT_EQ(Get(list, 0), "float[2] 0 0");  // zeros with the shape of the other elements
  EXPECT_EQ(Stack(list), "float[3,2] 0 0 1 2 0 0");
  EXPECT_EQ(Stack(Reserve(Ints({2}), 2)), "float[2,2] 0 0 0 0");
  EXPECT_EQ(Stack(Reserve(kUnknown, 1), Ints({1, 1})), "float[1,1,1] 0");
  ExpectError("element_shape is not fully defined: ?", "TensorListGetItem",
              {Reserve(kUnknown, 3), Int(0), kUnknown}, kFloats);
  ExpectError("Trying to access element 3 in a list with 3 elements", "TensorListGetItem",
              {list, Int(3), kUnknown}, kFloats);
  ExpectError("Trying to access element -1", "TensorListGetItem", {list, Int(-1), kUnknown},
              kFloats);
  ExpectError("Trying to modify element 3 in a list with 3", "TensorListSetItem",
              {list, Int(3), Floats({1, 2})});
  const Attrs resize = {{"resize_if_index_out_of_bounds", true}};
  EXPECT_EQ(Length(Call1("TensorListSetItem", {list, Int(5), Floats({1, 2})}, resize)), 6);
  ExpectError("non negative number, but got -1", "TensorListReserve", {kUnknown, Int(-1)}, kFloats);
  ExpectError("can be made", "TensorListReserve", {kUnknown, Int(2147483647)}, kFloats);
}

TEST(TensorList, GrowsAndShrinks) {
  const Tensor list = Push(Push(Empty(kUnknown), Floats({1})), Floats({2}));
  const auto resize = [&](int32_t size) { return Call1("TensorListResize", {list, Int(size)}); };
  EXPECT_EQ(Stack(resize(1)), "float[1,1] 1");
  EXPECT_EQ(Stack(resize(3)), "float[3,1] 1 2 0");
  ExpectError("non-negative. Got: -2", "TensorListResize", {list, Int(-2)});
}

TEST(TensorList, FromATensorAndBack) {
  const Tensor tensor = Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor list = Call1("TensorListFromTensor", {tensor, Ints({2})});
  EXPECT_EQ(Length(list), 3);
  EXPECT_EQ(Get(list, 2), "float[2] 5 6");
  EXPECT_EQ(Stack(list), tensor.ToString());
  EXPECT_EQ(Call1("TensorListGather", {list, Ints({2, 0, 2}), kUnknown}, kFloats).ToString(),
            "float[3,2] 5 6 1 2 5 6");
  EXPECT_EQ(Call1("TensorListGather", {list, Ints({}), Ints({2})}, kFloats).ToString(),
            "float[0,2]");
  ExpectError("a list with shape [3] from a tensor with shape [2]", "TensorListFromTensor",
              {tensor, Ints({3})});
  ExpectError("a list with shape [3] from a tensor with shape [2]", "TensorListFromTensor",
              {Tensor(DType::kFloat, {0, 2}), Ints({3})});
  ExpectError("must be at least a vector", "TensorListFromTensor",
              {Tensor::Scalar<float>(1), kUnknown});
  ExpectError("gather element 3 in a list with 3", "TensorListGather", {list, Ints({3}), kUnknown},
              kFloats);
  ExpectError("expected a list with 4 elements but got a list with 3", "TensorListStack",
              {list, kUnknown}, {{"element_dtype", DType::kFloat}, {"num_elements", 4}});
  ExpectError("unequal shapes: [2] vs [1]", "TensorListStack",
              {Push(Push(Empty(kUnknown), Floats({1, 2})), Floats({1})), kUnknown}, kFloats);
  ExpectError("empty list with non-fully-defined element_shape: [?]", "TensorListStack",
              {Empty(Ints({-1})), kUnknown}, kFloats);
}

TEST(TensorList, Scatters) {
  const Tensor rows = Tensor::Of<float>({2, 1}, {1, 2});
  EXPECT_EQ(Stack(Call1("TensorListScatter", {rows, Ints({3, 1}), kUnknown})),
            "float[4,1] 0 2 0 1");
  const auto scatter = [&](int32_t size) {
    return std::vector<Tensor>{rows, Ints({1, 0}), kUnknown, Int(size)};
  };
  EXPECT_EQ(Length(Call1("TensorListScatterV2", scatter(-1))), 2);
  EXPECT_EQ(Length(Call1("TensorListScatterV2", scatter(5))), 5);
  ExpectError("at least 2, one more than the largest index; it is 1", "TensorListScatterV2",
              scatter(1));
  const Tensor list = Call1("TensorListFromTensor", {Floats({7, 8}), Ints({})});
  EXPECT_EQ(Stack(Call1("TensorListScatterIntoExistingList", {list, Floats({1, 2}), Ints({3, 0})})),
            "float[4] 2 8 0 1");
  EXPECT_EQ(Stack(list), "float[2] 7 8");
  ExpectError("non-negative, one is -1", "TensorListScatter", {rows, Ints({0, -1}), kUnknown});
  ExpectError("Expected: 1 Actual: 2", "TensorListScatter", {rows, Ints({0}), kUnknown});
  ExpectError("can be made", "TensorListScatter", {rows, Ints({0, 2147483647}), kUnknown});
}

TEST(TensorList, PiecesOfATensor) {
  const Tensor tensor = Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor list = Call1("TensorListSplit", {tensor, Ints({-1, 2}), Longs({1, 0, 2})});
  EXPECT_EQ(Get(list, 1), "float[0,2]");
  EXPECT_EQ(Get(list, 2), "float[2,2] 3 4 5 6");
  const auto joined = Call("TensorListConcat", {list}, kFloats);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ((*joined)[0].ToString(), tensor.ToString());
  EXPECT_EQ((*joined)[1].ToString(), "int64[3] 1 0 2");
  ExpectError("add up to the 3 rows", "TensorListSplit", {tensor, kUnknown, Longs({1, 1})});
  ExpectError("add up to the 3 rows", "TensorListSplit", {tensor, kUnknown, Longs({4, -1})});

  const Tensor gaps = Set(Reserve(kUnknown, 2), 1, Tensor::Of<float>({1, 2}, {8, 9}));
  EXPECT_EQ(Call1("TensorListConcatV2", {gaps, Ints({-1, 2}), Longs({2, 1})}, kFloats).ToString(),
            "float[3,2] 0 0 0 0 8 9");
  EXPECT_EQ(Call1("TensorListConcatV2", {gaps, Ints({1, 2}), Longs({})}, kFloats).ToString(),
            "float[2,2] 0 0 8 9");
  ExpectError("no leading dim for element 0", "TensorListConcatV2", {gaps, kUnknown, Longs({})},
              kFloats);
  ExpectError("found scalars", "TensorListConcat", {Empty(Ints({}))}, kFloats);
  ExpectError(
      "unequal shapes: element 1 has [1,3]", "TensorListConcat",
      {Push(Push(Empty(kUnknown), Tensor(DType::kFloat, {1, 2})), Tensor(DType::kFloat, {1, 3}))},
      kFloats);
  ExpectError("concating an empty tensor list", "TensorListConcat", {Empty(kUnknown)}, kFloats);
  EXPECT_EQ(
      Call1("TensorListConcatV2", {Empty(kUnknown), Ints({-1, 2}), Longs({})}, kFloats).ToString(),
      "float[0,2]");
}

TEST(TensorList, SeveralAtATime) {
  const Tensor lists = Tensor::Of<Variant>(
      {2},
      {Push(Empty(kUnknown), Floats({1})).scalar<Variant>(), Empty(kUnknown).scalar<Variant>()});
  const Tensor pushed =
      Call1("TensorListPushBackBatch", {lists, Tensor::Of<float>({2, 1}, {5, 6})});
  const auto at = [](const Tensor& t, int i) { return Tensor::Scalar(t.flat<Variant>()[i]); };
  EXPECT_EQ(Stack(at(pushed, 0)), "float[2,1] 1 5");
  EXPECT_EQ(Stack(at(pushed, 1)), "float[1,1] 6");
  const Tensor joined = Call1("TensorListConcatLists", {pushed, lists}, kFloats);
  EXPECT_EQ(Stack(at(joined, 0)), "float[3,1] 1 5 1");
  ExpectError("but saw [3,1] and [2]", "TensorListPushBackBatch",
              {lists, Tensor(DType::kFloat, {3, 1})});
  ExpectError("not identical: [1] and [2]", "TensorListConcatLists",
              {Empty(Ints({1})), Empty(Ints({2}))}, kFloats);
}

TEST(TensorList, OthersAreNoLists) {
  ExpectError("not a list. Saw: 'nothing'", "TensorListLength", {Tensor(DType::kVariant, {})});
  ExpectError("must be a scalar, has shape [2]", "TensorListLength",
              {Tensor(DType::kVariant, {2})});
  ExpectError("not a list. Saw: 'an empty optional'", "TensorListLength",
              {Call1("OptionalNone", {})});
}

TEST(TensorList, AddsUp) {
  const Tensor a = Set(Set(Reserve(kUnknown, 3), 0, Floats({1, 2})), 1, Floats({3}));
  const Tensor b = Set(Set(Reserve(kUnknown, 3), 1, Floats({10})), 2, Floats({20}));
  const auto sum = OpRunner("AddN").InList({a, b, b}).Run1();
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(Get(*sum, 0), "float[2] 1 2");
  EXPECT_EQ(Get(*sum, 1), "float[1] 23");
  EXPECT_EQ(Get(*sum, 2), "float[1] 40");
  EXPECT_EQ(Get(a, 1), "float[1] 3");
  const Tensor zeros = Call1("ZerosLike", {a});
  EXPECT_EQ(Get(zeros, 0), "float[2] 0 0");
  EXPECT_EQ(Get(zeros, 1), "float[1] 0");
  EXPECT_EQ(Get(zeros, 2, Ints({1})), "float[1] 0");  // the element is not set in the copy, either
  const auto error = [](const std::vector<Tensor>& xs) {
    return std::string(OpRunner("AddN").InList(xs).Run1().status().message());
  };
  EXPECT_THAT(error({a, Reserve(kUnknown, 2)}), HasSubstr("different lengths. One is size: 3"));
  EXPECT_THAT(error({a, Call1("OptionalNone", {})}), HasSubstr("have no sum"));
  EXPECT_THAT(error({a, Tensor(DType::kVariant, {})}), HasSubstr("that nobody has set"));
  EXPECT_THAT(error({a, Set(Reserve(kUnknown, 3), 1, Floats({1, 1}))}), HasSubstr("no sum of"));
}

TEST(TensorList, IsOnlySoDeep) {
  Tensor list = Empty(kUnknown);
  for (int depth = 1; depth < kVariantDepthMax; ++depth) {
    list = Push(Empty(kUnknown, -1, DType::kVariant), list);
  }
  ExpectError("more than 32 deep", "TensorListPushBack",
              {Empty(kUnknown, -1, DType::kVariant), list});
}

TEST(Optional, HasAValueOrNone) {
  const auto made = OpRunner("OptionalFromValue").InList({Floats({1, 2}), Int(3)}).Run1();
  ASSERT_TRUE(made.ok()) << made.status();
  const Tensor none = Call1("OptionalNone", {});
  EXPECT_TRUE(Call1("OptionalHasValue", {*made}).scalar<bool>());
  EXPECT_FALSE(Call1("OptionalHasValue", {none}).scalar<bool>());
  const Attrs attrs = {{"output_types", std::vector<DType>{DType::kFloat, DType::kInt32}},
                       {"output_shapes", std::vector<PartialShape>{{-1}, PartialShape::Scalar()}}};
  const auto values = Call("OptionalGetValue", {*made}, attrs);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].ToString(), "float[2] 1 2");
  EXPECT_EQ((*values)[1].ToString(), "int32[] 3");
  ExpectError("does not have a value", "OptionalGetValue", {none}, attrs);
  ExpectError("not an Optional", "OptionalGetValue", {Empty(kUnknown)}, attrs);
  Attrs other = attrs;
  other["output_shapes"] = std::vector<PartialShape>{{3}, PartialShape::Scalar()};
  ExpectError("Expected: float[3]. Actual: float[2].", "OptionalGetValue", {*made}, other);
  ExpectError("has 2 components, expected 1", "OptionalGetValue", {*made},
              {{"output_types", std::vector<DType>{DType::kFloat}},
               {"output_shapes", std::vector<PartialShape>{{}}}});
  const auto twice = OpRunner("AddN").InList({*made, *made}).Run1();
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_EQ((*Call("OptionalGetValue", {*twice}, attrs))[0].ToString(), "float[2] 2 4");
  EXPECT_EQ(Call1("OptionalGetValue", {Call1("ZerosLike", {*made})}, attrs).ToString(),
            "float[2] 0 0");
  EXPECT_THAT(std::string(OpRunner("AddN").InList({*made, none}).Run1().status().message()),
              HasSubstr("one has a value and the other doesn't"));
}

}  // namespace
}  // namespace penstock
