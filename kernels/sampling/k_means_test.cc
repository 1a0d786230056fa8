// SPDX-License-Identifier: Apache-2.0
//
// Tests the ops of k-means clustering.
#include <set>
#include <utility>

#include "core/op/testing/op_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor Number(int64_t value) { return Tensor::Scalar(value); }

StatusOr<Tensor> Centers(const Tensor& points, int64_t count, int64_t seed, int64_t retries) {
  return OpRunner("KmeansPlusPlusInitialization")
      .In(points)
      .In(Number(count))
      .In(Number(seed))
      .In(Number(retries))
      .Run1();
}

// Three pairs of points, far from each other.
Tensor Pairs() { return Tensor::Of<float>({6, 2}, {0, 0, 1, 0, 90, 90, 80, 90, -70, 50, -70, 40}); }

TEST(KMeans, CentersAreInDifferentGroups) {
  for (int64_t seed = 0; seed < 20; ++seed) {
    const auto centers = Centers(Pairs(), 3, seed, 5);
    ASSERT_TRUE(centers.ok()) << centers.status();
    std::set<int> groups;
    for (int i = 0; i < 3; ++i) {
      const float x = centers->data<float>()[2 * i];
      groups.insert(x < -10 ? 0 : x < 10 ? 1 : 2);
    }
    EXPECT_EQ(groups.size(), 3u) << seed;
    EXPECT_EQ(centers->ToString(), Centers(Pairs(), 3, seed, 5)->ToString());
  }
}

// Equal points have no distances that could be weights.
TEST(KMeans, EqualPointsCanAllBecomeCenters) {
  const Tensor points = Tensor::Of<float>({4, 1}, {3, 3, 3, 3});
  for (const int64_t retries : {-1, 0, 3}) {
    const auto centers = Centers(points, 4, 1, retries);
    ASSERT_TRUE(centers.ok()) << centers.status();
    EXPECT_THAT(centers->flat<float>(), ElementsAre(3, 3, 3, 3));
  }
}

TEST(KMeans, WrongNumbersAreErrors) {
  EXPECT_THAT(std::string(Centers(Pairs(), 7, 1, 0).status().message()), HasSubstr("7 vs 6"));
  EXPECT_THAT(std::string(Centers(Pairs(), 0, 1, 0).status().message()),
              HasSubstr("num_to_sample > 0"));
  EXPECT_FALSE(Centers(Tensor::Of<float>({0, 2}, {}), 1, 1, 0).ok());
}

// Such matrices take no memory, so a huge number of rows costs the client nothing.
TEST(KMeans, MatricesWithoutColumnsAreErrors) {
  const Tensor rows(DType::kFloat, {int64_t{1} << 32, 0}), one(DType::kFloat, {1, 0});
  EXPECT_EQ(Centers(rows, 1, 1, 0).status().code(), StatusCode::kInvalidArgument);
  for (const auto& [points, centers] : {std::pair(rows, one), {one, rows}, {rows, rows}}) {
    const auto nearest =
        OpRunner("NearestNeighbors").In(points).In(centers).In(Number(int64_t{1} << 40)).Run();
    EXPECT_EQ(nearest.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(nearest.status().message()), HasSubstr("should have columns"));
  }
}

TEST(KMeans, AChainMovesToFarCandidates) {
  const auto last = [](const std::vector<float>& distances) {
    return OpRunner("KMC2ChainInitialization")
        .In(Tensor::Vector(distances))
        .In(Number(4))
        .Run1()
        ->scalar<int64_t>();
  };
  EXPECT_EQ(last({1, 5, 2000, 0, 0}), 2);
  EXPECT_EQ(last({7}), 0);
  EXPECT_EQ(last({0, 0, 0}), 0);
}

TEST(NearestNeighbors, AreOrderedByDistance) {
  const auto nearest = [](int64_t k) {
    return *OpRunner("NearestNeighbors")
                .In(Tensor::Of<float>({2, 2}, {0, 0, 5, 5}))
                .In(Tensor::Of<float>({4, 2}, {3, 0, 0, 1, 5, 4, 0, -1}))
                .In(Number(k))
                .Run();
  };
  EXPECT_THAT(nearest(2)[0].flat<int64_t>(), ElementsAre(1, 3, 2, 0));
  EXPECT_THAT(nearest(2)[1].flat<float>(), ElementsAre(1, 1, 1, 29));
  EXPECT_THAT(nearest(1)[0].flat<int64_t>(), ElementsAre(1, 2));
  EXPECT_EQ(nearest(9)[0].shape(), Shape({2, 4}));
  EXPECT_EQ(nearest(0)[0].shape(), Shape({2, 0}));
}

}  // namespace
}  // namespace penstock
