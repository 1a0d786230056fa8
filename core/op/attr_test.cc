// SPDX-License-Identifier: Apache-2.0
#include "core/op/attr.h"

#include <utility>

#include "core/tensor/resource_handle.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

FunctionName Function(std::string name, Attrs attrs) {
  return {std::move(name), std::make_shared<const Attrs>(std::move(attrs))};
}

// Returns values of all kinds, each with the kind() and ToString() that it must have.
std::vector<std::pair<AttrValue, std::pair<const char*, const char*>>> Samples() {
  return {
      {AttrValue(), {"nothing", "nothing"}},
      {7, {"int", "7"}},
      {int64_t{-7}, {"int", "-7"}},
      {1.5, {"float", "1.5"}},
      {true, {"bool", "true"}},
      {"a\"b", {"string", "\"a\\\"b\""}},
      {DType::kFloat, {"type", "float"}},
      {EdgeType{DType::kFloat, true}, {"type", "float_ref"}},
      {PartialShape({2, -1}), {"shape", "[2,?]"}},
      {Shape({2, 3}), {"shape", "[2,3]"}},
      {Tensor::Vector<int32_t>({1, 2}), {"tensor", "<int32[2] 1 2>"}},
      {Function("f", {{"T", DType::kInt32}}), {"func", "f[T=int32]"}},
      {FunctionName{"g", nullptr}, {"func", "g"}},
      {std::vector<int64_t>{1, 2}, {"list(int)", "[1, 2]"}},
      {std::vector<float>{0.5}, {"list(float)", "[0.5]"}},
      {std::vector<bool>{true, false}, {"list(bool)", "[true, false]"}},
      {std::vector<std::string>{"a"}, {"list(string)", "[\"a\"]"}},
      {std::vector<DType>{DType::kInt8}, {"list(type)", "[int8]"}},
      {std::vector<PartialShape>{{}}, {"list(shape)", "[?]"}},
      {std::vector<Tensor>{Tensor::Scalar(1.0f)}, {"list(tensor)", "[<float[] 1>]"}},
      {std::vector<FunctionName>{{"h", nullptr}}, {"list(func)", "[h]"}},
      {EmptyList(), {"empty list", "[]"}},
      {std::vector<int64_t>{}, {"list(int)", "[]"}},
  };
}

TEST(AttrValue, KindsAndText) {
  for (const auto& [value, expected] : Samples()) {
    EXPECT_STREQ(value.kind(), expected.first);
    EXPECT_EQ(value.ToString(), expected.second);
  }
}

TEST(AttrValue, EqualsItselfAndNothingElse) {
  const auto samples = Samples();
  const auto copies = Samples();
  for (size_t i = 0; i < samples.size(); ++i) {
    for (size_t j = 0; j < samples.size(); ++j) {
      const bool both_empty = samples[i].first.ToString() == "[]" &&  //
                              samples[j].first.ToString() == "[]";
      EXPECT_EQ(samples[i].first == copies[j].first, i == j || both_empty) << i << " " << j;
    }
  }
}

TEST(AttrValue, EmptyListEqualsEmptyListsOfAnyKind) {
  EXPECT_EQ(AttrValue(EmptyList()), AttrValue(std::vector<std::string>{}));
  EXPECT_EQ(AttrValue(std::vector<Tensor>{}), AttrValue(EmptyList()));
  EXPECT_FALSE(AttrValue(EmptyList()) == AttrValue(std::vector<std::string>{""}));
  EXPECT_FALSE(AttrValue(std::vector<float>{}) == AttrValue(std::vector<int64_t>{}));
}

TEST(AttrValue, TensorsCompareByContent) {
  const auto equal = [](Tensor a, Tensor b) {
    return AttrValue(std::move(a)) == AttrValue(std::move(b));
  };
  EXPECT_TRUE(equal(Tensor::Vector<float>({1, 2}), Tensor::Vector<float>({1, 2})));
  EXPECT_FALSE(equal(Tensor::Vector<float>({1, 2}), Tensor::Vector<float>({1, 3})));
  EXPECT_FALSE(equal(Tensor::Vector<float>({1, 2}), Tensor::Of<float>({2, 1}, {1, 2})));
  EXPECT_FALSE(equal(Tensor::Vector<float>({0}), Tensor::Vector<int32_t>({0})));
  EXPECT_TRUE(equal(Tensor::Vector<std::string>({"a"}), Tensor::Vector<std::string>({"a"})));
  EXPECT_FALSE(equal(Tensor::Vector<std::string>({"a"}), Tensor::Vector<std::string>({"b"})));
  EXPECT_TRUE(equal(Tensor::Scalar<ResourceHandle>({.name = "w"}),
                    Tensor::Scalar<ResourceHandle>({.name = "w"})));
  EXPECT_FALSE(equal(Tensor::Scalar<ResourceHandle>({.name = "w"}),
                     Tensor::Scalar<ResourceHandle>({.name = "v"})));
  EXPECT_TRUE(equal(Tensor(), Tensor()));
}

TEST(FunctionName, NoAttributesAreTheSameAsNone) {
  EXPECT_EQ(Function("f", {}), (FunctionName{"f", nullptr}));
  EXPECT_FALSE(Function("f", {{"N", 1}}) == Function("f", {{"N", 2}}));
}

}  // namespace
}  // namespace penstock
