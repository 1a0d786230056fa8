// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/shape.h"

#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kHuge = int64_t{1} << 32;

TEST(CheckedProduct, Table) {
  const struct {
    std::vector<int64_t> dims;
    int64_t product;  // -1: expects an error
  } cases[] = {
      {{}, 1},
      {{7}, 7},
      {{2, 3, 4}, 24},
      {{0}, 0},
      {{5, 0, 3}, 0},
      {{INT64_MAX}, INT64_MAX},
      {{INT64_MAX, 1, 1}, INT64_MAX},
      {{kHuge, kHuge / 4}, int64_t{1} << 62},
      {{kHuge, kHuge / 2}, -1},
      {{kHuge, kHuge}, -1},
      {{3, INT64_MAX}, -1},
      {{-1}, -1},
      {{0, -1}, -1},
      {{INT64_MIN, 2}, -1},
      {{kHuge, kHuge, 0}, -1},  // two of the dimensions overflow
      {{0, kHuge, kHuge}, -1},
  };
  for (const auto& c : cases) {
    const StatusOr<int64_t> product = CheckedProduct(c.dims);
    EXPECT_EQ(product.ok() ? *product : -1, c.product) << product.status();
    EXPECT_EQ(Shape::Make(c.dims).ok(), c.product >= 0);
  }
  EXPECT_EQ(CheckedProduct({2, -3}).status().message(),
            "Dimension -3 must be >= 0: shape [2,?] has the negative dimension -3");
}

TEST(Shape, Basics) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.num_elements(), 1);
  EXPECT_EQ(scalar.ToString(), "[]");
  Shape shape = {2, 3};
  EXPECT_EQ(shape.ToString(), "[2,3]");
  EXPECT_EQ(shape.num_elements(), 6);
  shape.set_dim(0, 4);
  shape.AddDim(5);
  shape.InsertDim(1, 7);
  EXPECT_EQ(shape, (Shape{4, 7, 3, 5}));
  EXPECT_EQ(shape.num_elements(), 420);
  shape.RemoveDim(2);
  EXPECT_EQ(shape, (Shape{4, 7, 5}));
  EXPECT_EQ(shape.num_elements(), 140);
  // More dimensions than a Shape stores inside the object.
  shape = Shape{1, 2, 3, 4, 5, 6};
  const Shape copy = shape;
  EXPECT_EQ(copy, shape);
  EXPECT_EQ(copy.num_elements(), 720);
}

TEST(Shape, RankIsLimited) {
  EXPECT_TRUE(Shape::Make(std::vector<int64_t>(kMaxRank, 1)).ok());
  EXPECT_FALSE(Shape::Make(std::vector<int64_t>(kMaxRank + 1, 1)).ok());
  EXPECT_FALSE(PartialShape::Make(std::vector<int64_t>(kMaxRank + 1, -1)).ok());
}

TEST(ShapeDeathTest, OurOwnMistakes) {
  EXPECT_DEATH(Shape({-1}), "negative");
  EXPECT_DEATH(Shape({kHuge, kHuge}), "int64");
  EXPECT_DEATH(PartialShape({-2}), "dimension -2");
}

TEST(PartialShape, Basics) {
  const PartialShape unknown;
  EXPECT_FALSE(unknown.known_rank());
  EXPECT_EQ(unknown.rank(), -1);
  EXPECT_EQ(unknown.ToString(), "?");
  const PartialShape half_known = {2, -1};
  EXPECT_EQ(half_known.ToString(), "[2,?]");
  EXPECT_FALSE(half_known.fully_known());
  EXPECT_EQ(PartialShape::Scalar().ToString(), "[]");
  EXPECT_TRUE(PartialShape::Scalar().fully_known());
  EXPECT_EQ(PartialShape({2, 3}).ToShape(), (Shape{2, 3}));
  EXPECT_EQ(PartialShape(Shape{2, 3}), (PartialShape{2, 3}));
  EXPECT_NE(unknown, PartialShape::Scalar());
  EXPECT_EQ(PartialShape::UnknownOfRank(2), (PartialShape{-1, -1}));
}

TEST(PartialShape, ForeignDimensions) {
  EXPECT_EQ(PartialShape::Make({3, -2}).status().message(),
            "dimension 1 of a shape is -2; expected a size, or -1 for an unknown one");
  EXPECT_FALSE(PartialShape::Make({kHuge, -1, kHuge}).ok());
  EXPECT_TRUE(PartialShape::Make({kHuge, -1}).ok());
}

TEST(PartialShape, Merge) {
  const PartialShape any;
  const struct {
    PartialShape a, b;
    const char* merged;  // "" if the two shapes contradict each other
  } cases[] = {
      {any, any, "?"},
      {any, {2, -1}, "[2,?]"},
      {{2, -1}, {-1, 3}, "[2,3]"},
      {{2, -1}, {2, -1}, "[2,?]"},
      {{2, -1}, {3, -1}, ""},
      {{2}, {2, -1}, ""},
      {PartialShape::Scalar(), {-1}, ""},
      {PartialShape::Scalar(), any, "[]"},
  };
  for (const auto& c : cases) {
    for (const auto& [a, b] : {std::pair(c.a, c.b), std::pair(c.b, c.a)}) {
      const StatusOr<PartialShape> merged = a.Merge(b);
      EXPECT_EQ(merged.ok() ? merged->ToString() : "", c.merged);
      EXPECT_EQ(a.Compatible(b), merged.ok());
    }
  }
  EXPECT_EQ(PartialShape({2}).Merge({3}).status().message(),
            "shapes [2] and [3] contradict each other");
}

// Inference may combine dimensions that no tensor can have; this must not end the process.
TEST(PartialShape, OverflowIsNotFullyKnown) {
  const StatusOr<PartialShape> merged = PartialShape({kHuge, -1}).Merge({-1, kHuge});
  ASSERT_TRUE(merged.ok());
  EXPECT_FALSE(merged->fully_known());
  const Dims joined = {kHuge, kHuge};
  EXPECT_FALSE(PartialShape(joined).fully_known());
}

TEST(PartialShape, MoreDimensionsThanAreIsNotFullyKnown) {
  PartialShape shape = PartialShape::Scalar();
  for (int i = 0; i <= kMaxRank; ++i) shape.AddDim(1);
  EXPECT_FALSE(shape.fully_known());
  EXPECT_FALSE(PartialShape(shape.dims()).fully_known());
  EXPECT_FALSE(PartialShape::UnknownOfRank(kMaxRank + 1).known_rank());
}

}  // namespace
}  // namespace penstock
