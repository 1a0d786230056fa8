// SPDX-License-Identifier: Apache-2.0
//
// Tests maps of tensors, op by op. Expected values and error texts are TensorFlow's.
#include "kernels/tensor_list/tensor_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/op/testing/op_runner.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

Tensor Int(int32_t i) { return Tensor::Scalar(i); }
Tensor Floats(const std::vector<float>& values) { return Tensor::Vector(values); }

// Runs a call whose shape function knows nothing, so that the kernel has to find errors.
StatusOr<Tensor> Call(const char* op, const std::vector<Tensor>& inputs, const Attrs& attrs = {}) {
  OpRunner run(op);
  run.ShapesKnow(OpRunner::Known::kNothing);
  for (const Tensor& input : inputs) run.In(input);
  for (const auto& [name, value] : attrs) run.Attr(name, value);
  return run.Run1();
}

std::string Text(const StatusOr<Tensor>& result) {
  return result.ok() ? result->ToString() : std::string(result.status().message());
}

Tensor Empty() { return *Call("EmptyTensorMap", {}); }
Tensor Insert(const Tensor& map, const Tensor& key, const Tensor& value) {
  return *Call("TensorMapInsert", {map, key, value});
}
std::string Lookup(const Tensor& map, const Tensor& key, DType dtype = DType::kFloat) {
  return Text(Call("TensorMapLookup", {map, key}, {{"value_dtype", dtype}}));
}
StatusOr<Tensor> Erase(const Tensor& map, const Tensor& key) {
  return Call("TensorMapErase", {map, key}, {{"value_dtype", DType::kFloat}});
}
std::string Keys(const Tensor& map, DType dtype = DType::kInt32) {
  return Text(Call("TensorMapStackKeys", {map}, {{"key_dtype", dtype}}));
}
int32_t Size(const Tensor& map) { return Call("TensorMapSize", {map})->scalar<int32_t>(); }
bool Has(const Tensor& map, const Tensor& key) {
  return Call("TensorMapHasKey", {map, key})->scalar<bool>();
}

TEST(TensorMap, EntriesOfSeveralTypes) {
  const Tensor one = Insert(Empty(), Int(1), Floats({1, 2}));
  const Tensor two = Insert(one, Int(5), Int(3));
  EXPECT_EQ(Size(Empty()), 0);
  EXPECT_EQ(Size(one), 1);  // the op has not changed its input
  EXPECT_EQ(Size(two), 2);
  EXPECT_EQ(Lookup(two, Int(1)), "float[2] 1 2");
  EXPECT_EQ(Lookup(two, Int(5), DType::kInt32), "int32[] 3");
  EXPECT_EQ(Lookup(Insert(two, Int(1), Floats({9})), Int(1)), "float[1] 9");
  EXPECT_TRUE(Has(two, Int(5)));
  EXPECT_FALSE(Has(two, Int(9)));
  EXPECT_FALSE(Has(two, Tensor::Scalar<int64_t>(5)));
  EXPECT_EQ(Keys(two), "int32[2] 1 5");
  EXPECT_EQ(Size(*Erase(two, Int(1))), 1);
}

TEST(TensorMap, KeysOfAnyShape) {
  const Tensor map = Insert(Empty(), Tensor::Vector<int32_t>({1, 2}), Int(1));
  EXPECT_TRUE(Has(map, Tensor::Vector<int32_t>({1, 2})));
  EXPECT_FALSE(Has(map, Tensor::Of<int32_t>({1, 2}, {1, 2})));
  EXPECT_EQ(Keys(map), "int32[1,2] 1 2");
  const Tensor text = Insert(Empty(), Tensor::Scalar<std::string>("a"), Floats({2}));
  EXPECT_EQ(Lookup(text, Tensor::Scalar<std::string>("a")), "float[1] 2");
  EXPECT_FALSE(Has(text, Tensor::Scalar<std::string>("aa")));
}

TEST(TensorMap, MistakesAreNamed) {
  const Tensor map = Insert(Insert(Empty(), Int(1), Floats({1})), Int(5), Floats({1}));
  EXPECT_EQ(Lookup(map, Int(1), DType::kInt32), "Type mismatch: actual float vs. expect int32");
  EXPECT_THAT(Lookup(map, Int(2)), HasSubstr("Trying to lookup non-existent key"));
  EXPECT_THAT(Text(Erase(map, Int(7))), HasSubstr("Trying to erase non-existent item"));
  EXPECT_EQ(Keys(map, DType::kInt64), "Key does not match requested dtype.");
  EXPECT_EQ(Keys(Empty()), "TensorMapStackKeys cannot be called on empty map.");
  EXPECT_EQ(Keys(Insert(map, Tensor::Vector<int32_t>({1}), Int(1))),
            "Keys must all have the same shape.");
  EXPECT_THAT(Text(Call("TensorMapInsert", {Empty(), map, Int(1)})),
              HasSubstr("key must not have type variant"));
  EXPECT_FALSE(Has(map, map));
  EXPECT_THAT(Text(Call("TensorMapSize", {Tensor(DType::kVariant, {})})),
              HasSubstr("Input handle is not a map. Saw: 'nothing'"));
  EXPECT_THAT(Text(Call("TensorMapSize", {Tensor(DType::kVariant, {2})})),
              HasSubstr("Input handle must be a scalar"));
}

// The depth of nested maps is limited, because code that recurses could not walk deeper ones.
TEST(TensorMap, MapsInMaps) {
  Tensor map = Empty();
  for (int depth = 1; depth < kVariantDepthMax; ++depth) map = Insert(Empty(), Int(0), map);
  EXPECT_FALSE(Call("TensorMapInsert", {Empty(), Int(0), map}).ok());
}

TEST(TensorMap, ZerosAndSums) {
  const Tensor a = Insert(Insert(Empty(), Int(1), Floats({1, 2})), Int(2), Floats({5}));
  const Tensor b = Insert(Insert(Empty(), Int(1), Floats({3, 4})), Int(3), Floats({6}));
  EXPECT_EQ(Size(*Call("ZerosLike", {a})), 0);
  OpRunner add("AddN");
  const Tensor sum = *add.InList({a, b}).Run1();
  EXPECT_EQ(Lookup(sum, Int(1)), "float[2] 4 6");
  EXPECT_EQ(Lookup(sum, Int(2)), "float[1] 5");
  EXPECT_EQ(Lookup(sum, Int(3)), "float[1] 6");
  EXPECT_EQ(Lookup(a, Int(1)), "float[2] 1 2");
}

TEST(TensorMap, TravelsBetweenTasks) {
  const Tensor map = Insert(Insert(Empty(), Int(1), Floats({1, 2})), Int(5), Int(3));
  std::string metadata;
  std::vector<Tensor> tensors;
  const Variant& variant = map.scalar<Variant>();
  ASSERT_TRUE(variant.value->Encode(&metadata, &tensors).ok());
  EXPECT_EQ(tensors.size(), 4);
  StatusOr<Variant> decoded = DecodeVariant(TensorMapValue::kTypeName, metadata, tensors);
  ASSERT_TRUE(decoded.ok());
  const Tensor copy = Tensor::Scalar(*std::move(decoded));
  EXPECT_EQ(Lookup(copy, Int(1)), "float[2] 1 2");
  EXPECT_EQ(Keys(copy), "int32[2] 1 5");
  tensors.pop_back();
  EXPECT_FALSE(DecodeVariant(TensorMapValue::kTypeName, metadata, tensors).ok());
  EXPECT_FALSE(DecodeVariant(TensorMapValue::kTypeName, "x", {}).ok());
  EXPECT_FALSE(DecodeVariant(TensorMapValue::kTypeName, "", {map, Int(1)}).ok());
}

}  // namespace
}  // namespace penstock
