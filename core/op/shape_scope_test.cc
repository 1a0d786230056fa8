// SPDX-License-Identifier: Apache-2.0
#include "core/op/shape_scope.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

const PartialShape kUnknown;

TEST(Broadcast, Table) {
  const struct {
    PartialShape a, b;
    const char* result;  // "": an error
  } cases[] = {
      {{2, 3}, {2, 3}, "[2,3]"},
      {{2, 3}, {3}, "[2,3]"},
      {{2, 3}, PartialShape::Scalar(), "[2,3]"},
      {{2, 1}, {1, 3}, "[2,3]"},
      {{5, 1, 3}, {4, 1}, "[5,4,3]"},
      {{0}, {1}, "[0]"},
      {{2, -1}, {1, 3}, "[2,3]"},
      {{-1}, {1}, "[?]"},
      {{-1}, {-1}, "[?]"},
      {{-1}, {0}, "[0]"},
      {{-1, 3}, {3}, "[?,3]"},
      {{2, 3}, kUnknown, "?"},
      {{2}, {3}, ""},
      {{0}, {2}, ""},
      {{2, 3}, {2}, ""},
  };
  for (const auto& c : cases) {
    for (const auto& [a, b] : {std::pair(c.a, c.b), std::pair(c.b, c.a)}) {
      const StatusOr<PartialShape> result = Broadcast(a, b);
      EXPECT_EQ(result.ok() ? result->ToString() : "", c.result);
    }
  }
  EXPECT_EQ(Broadcast({2, 3}, {4, 3}).status(),
            InvalidArgument("shapes [2,3] and [4,3] cannot be broadcast together"));
}

class ShapeScopeTest : public ::testing::Test {
 protected:
  ShapeScope Scope(std::vector<ShapeScope::Input> inputs, int num_outputs = 1) {
    return ShapeScope(op_, attrs_, std::move(inputs), num_outputs);
  }
  const OpDef op_ = {.name = "Op", .inputs = {{"x", "float"}, {"xs", Repeat("N", "float")}}};
  const Attrs attrs_ = {{"shape", PartialShape({7})}, {"n", 3}};
};

TEST_F(ShapeScopeTest, SharedFunctions) {
  ShapeScope same = Scope({{.shape = {2, 3}}}, 2);
  ASSERT_TRUE(SameShape(same).ok());
  EXPECT_EQ(same.outputs(), (std::vector<PartialShape>{{2, 3}, {2, 3}}));

  ShapeScope scalar = Scope({{.shape = {2, 3}}});
  ASSERT_TRUE(ScalarShape(scalar).ok());
  EXPECT_EQ(scalar.output(0), PartialShape::Scalar());

  ShapeScope broadcast = Scope({{.shape = {2, 1}}, {.shape = {3}}});
  ASSERT_TRUE(BroadcastShape(broadcast).ok());
  EXPECT_EQ(broadcast.output(0), PartialShape({2, 3}));

  ShapeScope unknown = Scope({{.shape = {2, 3}}});
  unknown.set_output(0, {1});
  ASSERT_TRUE(UnknownShape(unknown).ok());
  EXPECT_EQ(unknown.output(0), kUnknown);

  ShapeScope from_attr = Scope({});
  ASSERT_TRUE(ShapeFromAttr(from_attr).ok());
  EXPECT_EQ(from_attr.output(0), PartialShape({7}));
  EXPECT_EQ(from_attr.attr<int64_t>("n"), 3);

  ShapeScope none = Scope({}, 0);
  EXPECT_TRUE(NoOutputs(none).ok());
}

TEST_F(ShapeScopeTest, Ranks) {
  const ShapeScope s = Scope({{.shape = {2, 3}}, {.shape = kUnknown}, {.shape = {4}}});
  EXPECT_EQ(*s.WithRank(0, 2), PartialShape({2, 3}));
  EXPECT_EQ(*s.WithRank(1, 2), PartialShape({-1, -1}));
  EXPECT_EQ(s.WithRank(0, 3).status(),
            InvalidArgument("input 'x' must have rank 3, has shape [2,3]"));
  // After a list argument, only the position is shown.
  EXPECT_EQ(s.WithRank(2, 2).status(), InvalidArgument("input 2 must have rank 2, has shape [4]"));
  EXPECT_EQ(*s.WithRankAtLeast(0, 1), PartialShape({2, 3}));
  EXPECT_EQ(*s.WithRankAtLeast(1, 5), kUnknown);
  EXPECT_EQ(s.WithRankAtLeast(0, 3).status(),
            InvalidArgument("input 'x' must have rank at least 3, has shape [2,3]"));
}

TEST_F(ShapeScopeTest, ConstantInts) {
  const Tensor vector = Tensor::Vector<int32_t>({1, -2}), scalar = Tensor::Scalar<int64_t>(5);
  const Tensor floats = Tensor::Scalar(1.0f), matrix = Tensor::Of<int32_t>({1, 1}, {1});
  const ShapeScope s = Scope({{.constant = &vector},
                              {.constant = &scalar},
                              {.constant = &floats},
                              {.constant = &matrix},
                              {}});
  std::vector<int64_t> values;
  EXPECT_TRUE(s.ConstantInts(0, &values));
  EXPECT_EQ(values, (std::vector<int64_t>{1, -2}));
  EXPECT_TRUE(s.ConstantInts(1, &values));
  EXPECT_EQ(values, (std::vector<int64_t>{5}));
  for (int i : {2, 3, 4}) EXPECT_FALSE(s.ConstantInts(i, &values));
}

TEST_F(ShapeScopeTest, ElementsOfHandles) {
  const ResourceHandle::Element element = {DType::kFloat, {2}};
  ShapeScope s = Scope({{.element = &element}}, 2);
  EXPECT_EQ(*s.element(0), element);
  s.set_output_element(1, {DType::kInt32, {3}});
  EXPECT_EQ(s.output_elements()[1].dtype, DType::kInt32);
  EXPECT_EQ(s.output_elements()[0].dtype, DType::kInvalid);
}

}  // namespace
}  // namespace penstock
