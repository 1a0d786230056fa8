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

Tensor Key(int32_t i) { return Tensor::Scalar(i); }
Tensor Vector(const std::vector<float>& values) { return Tensor::Vector(values); }

// Runs a call whose shape function knows nothing, so that the kernel has to find errors.
StatusOr<Tensor> CallMap(const char* op, const std::vector<Tensor>& inputs,
                         const Attrs& attrs = {}) {
  OpRunner run(op);
  run.SetKnownInputs(OpRunner::Known::kNothing);
  for (const Tensor& input : inputs) run.In(input);
  for (const auto& [name, value] : attrs) run.Attr(name, value);
  return run.Run1();
}

std::string MapText(const StatusOr<Tensor>& result) {
  return result.ok() ? result->ToString() : std::string(result.status().message());
}

Tensor EmptyMap() { return *CallMap("EmptyTensorMap", {}); }
Tensor Insert(const Tensor& map, const Tensor& key, const Tensor& value) {
  return *CallMap("TensorMapInsert", {map, key, value});
}
std::string Lookup(const Tensor& map, const Tensor& key, DType dtype = DType::kFloat) {
  return MapText(CallMap("TensorMapLookup", {map, key}, {{"value_dtype", dtype}}));
}
StatusOr<Tensor> Erase(const Tensor& map, const Tensor& key) {
  return CallMap("TensorMapErase", {map, key}, {{"value_dtype", DType::kFloat}});
}
std::string Keys(const Tensor& map, DType dtype = DType::kInt32) {
  return MapText(CallMap("TensorMapStackKeys", {map}, {{"key_dtype", dtype}}));
}
int32_t Size(const Tensor& map) { return CallMap("TensorMapSize", {map})->scalar<int32_t>(); }
bool Has(const Tensor& map, const Tensor& key) {
  return CallMap("TensorMapHasKey", {map, key})->scalar<bool>();
}

TEST(TensorMap, EntriesOfSeveralTypes) {
  const Tensor one = Insert(EmptyMap(), Key(1), Vector({1, 2}));
  const Tensor two = Insert(one, Key(5), Key(3));
  EXPECT_EQ(Size(EmptyMap()), 0);
  EXPECT_EQ(Size(one), 1);  // the op has not changed its input
  EXPECT_EQ(Size(two), 2);
  EXPECT_EQ(Lookup(two, Key(1)), "float[2] 1 2");
  EXPECT_EQ(Lookup(two, Key(5), DType::kInt32), "int32[] 3");
  EXPECT_EQ(Lookup(Insert(two, Key(1), Vector({9})), Key(1)), "float[1] 9");
  EXPECT_TRUE(Has(two, Key(5)));
  EXPECT_FALSE(Has(two, Key(9)));
  EXPECT_FALSE(Has(two, Tensor::Scalar<int64_t>(5)));
  EXPECT_EQ(Keys(two), "int32[2] 1 5");
  EXPECT_EQ(Size(*Erase(two, Key(1))), 1);
}

TEST(TensorMap, KeysOfAnyShape) {
  const Tensor map = Insert(EmptyMap(), Tensor::Vector<int32_t>({1, 2}), Key(1));
  EXPECT_TRUE(Has(map, Tensor::Vector<int32_t>({1, 2})));
  EXPECT_FALSE(Has(map, Tensor::Of<int32_t>({1, 2}, {1, 2})));
  EXPECT_EQ(Keys(map), "int32[1,2] 1 2");
  const Tensor text = Insert(EmptyMap(), Tensor::Scalar<std::string>("a"), Vector({2}));
  EXPECT_EQ(Lookup(text, Tensor::Scalar<std::string>("a")), "float[1] 2");
  EXPECT_FALSE(Has(text, Tensor::Scalar<std::string>("aa")));
}

TEST(TensorMap, MistakesAreNamed) {
  const Tensor map = Insert(Insert(EmptyMap(), Key(1), Vector({1})), Key(5), Vector({1}));
  EXPECT_EQ(Lookup(map, Key(1), DType::kInt32), "Type mismatch: actual float vs. expect int32");
  EXPECT_THAT(Lookup(map, Key(2)), HasSubstr("Trying to lookup non-existent key"));
  EXPECT_THAT(MapText(Erase(map, Key(7))), HasSubstr("Trying to erase non-existent item"));
  EXPECT_EQ(Keys(map, DType::kInt64), "Key does not match requested dtype.");
  EXPECT_EQ(Keys(EmptyMap()), "TensorMapStackKeys cannot be called on empty map.");
  EXPECT_EQ(Keys(Insert(map, Tensor::Vector<int32_t>({1}), Key(1))),
            "Keys must all have the same shape.");
  EXPECT_THAT(MapText(CallMap("TensorMapInsert", {EmptyMap(), map, Key(1)})),
              HasSubstr("key must not have type variant"));
  EXPECT_FALSE(Has(map, map));
  EXPECT_THAT(MapText(CallMap("TensorMapSize", {Tensor(DType::kVariant, {})})),
              HasSubstr("Input handle is not a map. Saw: 'nothing'"));
  EXPECT_THAT(MapText(CallMap("TensorMapSize", {Tensor(DType::kVariant, {2})})),
              HasSubstr("Input handle must be a scalar"));
}

// The depth of nested maps is limited, so that code may recurse into them.
TEST(TensorMap, MapsInMaps) {
  Tensor map = EmptyMap();
  for (int depth = 1; depth < kVariantDepthMax; ++depth) map = Insert(EmptyMap(), Key(0), map);
  EXPECT_FALSE(CallMap("TensorMapInsert", {EmptyMap(), Key(0), map}).ok());
}

TEST(TensorMap, ZerosAndSums) {
  const Tensor a = Insert(Insert(EmptyMap(), Key(1), Vector({1, 2})), Key(2), Vector({5}));
  const Tensor b = Insert(Insert(EmptyMap(), Key(1), Vector({3, 4})), Key(3), Vector({6}));
  EXPECT_EQ(Size(*CallMap("ZerosLike", {a})), 0);
  OpRunner add("AddN");
  const Tensor sum = *add.InList({a, b}).Run1();
  EXPECT_EQ(Lookup(sum, Key(1)), "float[2] 4 6");
  EXPECT_EQ(Lookup(sum, Key(2)), "float[1] 5");
  EXPECT_EQ(Lookup(sum, Key(3)), "float[1] 6");
  EXPECT_EQ(Lookup(a, Key(1)), "float[2] 1 2");
}

TEST(TensorMap, TravelsBetweenTasks) {
  const Tensor map = Insert(Insert(EmptyMap(), Key(1), Vector({1, 2})), Key(5), Key(3));
  std::string metadata;
  std::vector<Tensor> tensors;
  const Variant& variant = map.scalar<Variant>();
  ASSERT_TRUE(variant.value->Encode(&metadata, &tensors).ok());
  EXPECT_EQ(tensors.size(), 4);
  StatusOr<Variant> decoded = DecodeVariant(TensorMapValue::kTypeName, metadata, tensors);
  ASSERT_TRUE(decoded.ok());
  const Tensor copy = Tensor::Scalar(*std::move(decoded));
  EXPECT_EQ(Lookup(copy, Key(1)), "float[2] 1 2");
  EXPECT_EQ(Keys(copy), "int32[2] 1 5");
  tensors.pop_back();
  EXPECT_FALSE(DecodeVariant(TensorMapValue::kTypeName, metadata, tensors).ok());
  EXPECT_FALSE(DecodeVariant(TensorMapValue::kTypeName, "x", {}).ok());
  EXPECT_FALSE(DecodeVariant(TensorMapValue::kTypeName, "", {map, Key(1)}).ok());
}

}  // namespace
}  // namespace penstock
