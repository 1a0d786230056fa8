// SPDX-License-Identifier: Apache-2.0
//
// Tests fractional pooling. The expected numbers are those of TensorFlow 2.21.
#include <cmath>

#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

Attrs Options(bool pseudo_random, bool overlapping, int64_t seed, int64_t seed2) {
  return {{"pooling_ratio", std::vector<float>{1, 1.44f, 1.73f, 1}},
          {"pseudo_random", pseudo_random},
          {"overlapping", overlapping},
          {"deterministic", true},
          {"seed", seed},
          {"seed2", seed2}};
}

TEST(FractionalPool, RegionsAreTensorFlows) {
  const struct {
    bool pseudo_random;
    int64_t seed, seed2, height, width;
    std::vector<int64_t> rows, columns;
  } cases[] = {
      {true, 1, 0, 5, 7, {0, 2, 4, 5}, {0, 2, 4, 5, 7}},
      {true, 1, 0, 10, 13, {0, 2, 4, 5, 7, 9, 10}, {0, 2, 4, 6, 8, 9, 11, 13}},
      {true, 1, 0, 9, 20, {0, 2, 3, 5, 6, 8, 9}, {0, 2, 4, 6, 7, 9, 11, 13, 15, 16, 18, 20}},
      {true, 5, 7, 5, 7, {0, 2, 4, 5}, {0, 2, 4, 6, 7}},
      {true, 5, 7, 10, 13, {0, 2, 4, 5, 7, 9, 10}, {0, 2, 4, 6, 8, 10, 11, 13}},
      {true, 5, 7, 9, 20, {0, 2, 3, 5, 6, 8, 9}, {0, 2, 4, 6, 8, 9, 11, 13, 15, 17, 18, 20}},
      {true, 0, 9, 5, 7, {0, 2, 4, 5}, {0, 2, 4, 6, 7}},
      {true, 0, 9, 10, 13, {0, 2, 4, 5, 7, 9, 10}, {0, 2, 4, 6, 8, 10, 12, 13}},
      {true, 0, 9, 9, 20, {0, 2, 4, 5, 7, 8, 9}, {0, 2, 4, 6, 8, 10, 11, 13, 15, 17, 19, 20}},
      {false, 1, 0, 5, 7, {0, 2, 4, 5}, {0, 1, 3, 5, 7}},
      {false, 1, 0, 10, 13, {0, 1, 3, 5, 7, 8, 10}, {0, 1, 3, 5, 7, 9, 11, 13}},
      {false, 1, 0, 9, 20, {0, 1, 3, 5, 7, 8, 9}, {0, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 20}},
      {false, 5, 7, 5, 7, {0, 2, 3, 5}, {0, 1, 3, 5, 7}},
      {false, 5, 7, 10, 13, {0, 1, 3, 4, 6, 8, 10}, {0, 2, 4, 6, 8, 9, 11, 13}},
      {false, 5, 7, 9, 20, {0, 1, 3, 4, 6, 7, 9}, {0, 2, 4, 6, 8, 10, 11, 13, 15, 17, 19, 20}},
      {false, 0, 9, 5, 7, {0, 2, 3, 5}, {0, 2, 3, 5, 7}},
      {false, 0, 9, 10, 13, {0, 2, 4, 5, 6, 8, 10}, {0, 2, 4, 6, 8, 9, 11, 13}},
      {false, 0, 9, 9, 20, {0, 1, 3, 4, 5, 7, 9}, {0, 2, 4, 6, 7, 9, 10, 12, 14, 16, 18, 20}},
  };
  for (const auto& c : cases) {
    const Tensor image(DType::kFloat, {1, c.height, c.width, 1});
    for (const char* op : {"FractionalMaxPool", "FractionalAvgPool"}) {
      const auto pooled =
          OpCall{op, {image}, Options(c.pseudo_random, false, c.seed, c.seed2)}.Run();
      ASSERT_EQ(pooled.size(), 3);
      EXPECT_TRUE(SameTensor(pooled[1], Longs(c.rows))) << pooled[1].ToString();
      EXPECT_TRUE(SameTensor(pooled[2], Longs(c.columns))) << pooled[2].ToString();
    }
  }
}

// Return 0, 1, 2, ... and their sines.
Tensor Counting() {
  Tensor x(DType::kFloat, {1, 5, 7, 1});
  for (int i = 0; i < 35; ++i) x.mutable_flat<float>()[i] = static_cast<float>(i);
  return x;
}
Tensor Sines() {
  Tensor x = Counting();
  for (float& v : x.mutable_flat<float>()) v = std::sin(v);
  return x;
}
const Tensor kRows = L({4}, {0, 1, 3, 5}), kColumns = L({5}, {0, 2, 4, 6, 7});

TEST(FractionalPool, PoolsAndItsGradient) {
  const struct {
    bool overlapping;
    std::vector<float> max, max_gradient, avg, avg_gradient;
  } cases[] = {
      {false,
       {0.841471f, 0.9092974f, -0.7568025f, -0.2794155f, 0.9906074f, 0.41211846f, 0.1498772f,
        0.9129453f, 0.8366556f, -0.40403765f, 0.99991184f, 0.95637596f},
       {0, 1, 2, 0, 3, 0, 4, 0, 0, 6,  0, 0, 0, 0,  5, 0,  0, 0,
        0, 7, 8, 9, 0, 0, 0, 0, 0, 12, 0, 0, 0, 10, 0, 11, 0},
       {0.5f, 2.5f, 4.5f, 6, 11, 13, 15, 16.5f, 25, 27, 29, 30.5f},
       {0.5f,  0.5f,  1,     1,     1.5f,  1.5f,  4,     1.25f, 1.25f, 1.5f,  1.5f,  1.75f,
        1.75f, 4,     1.25f, 1.25f, 1.5f,  1.5f,  1.75f, 1.75f, 4,     2.25f, 2.25f, 2.5f,
        2.5f,  2.75f, 2.75f, 6,     2.25f, 2.25f, 2.5f,  2.5f,  2.75f, 2.75f, 6}},
      {true,
       {0.98935825f, 0.9092974f, 0.42016706f, 0.42016706f, 0.9906074f, 0.41211846f, 0.95637596f,
        0.95637596f, 0.8366556f, 0.5514267f, 0.99991184f, 0.95637596f},
       {0, 0, 2, 0, 0, 0, 0, 0, 1, 6,  0, 0, 0, 7, 5,  0,  0, 0,
        0, 0, 0, 9, 0, 0, 0, 0, 0, 27, 0, 0, 0, 0, 10, 11, 0},
       {4.5f, 6.5f, 8.5f, 9.5f, 15, 17, 19, 20, 25.5f, 27.5f, 29.5f, 30.5f},
       {0.16666667f, 0.16666667f, 0.5f,       0.33333334f, 0.8333333f, 0.5f,       2.5f,
        0.7222222f,  0.7222222f,  1.7222222f, 1,           2.2777777f, 1.2777778f, 5.9444447f,
        0.5555556f,  0.5555556f,  1.2222222f, 0.6666667f,  1.4444444f, 0.7777778f, 3.4444444f,
        2.0555556f,  2.0555556f,  4.388889f,  2.3333333f,  4.9444447f, 2.6111112f, 11.277778f,
        1.5f,        1.5f,        3.1666667f, 1.6666666f,  3.5f,       1.8333334f, 7.8333335f}},
  };
  for (const auto& c : cases) {
    const Attrs options = Options(true, c.overlapping, 3, 1);
    const Tensor max = F({1, 3, 4, 1}, c.max);
    ExpectOutputs({"FractionalMaxPool", {Sines()}, options}, {max, kRows, kColumns}, 1e-6);
    ExpectOutputs({"FractionalAvgPool", {Counting()}, options},
                  {F({1, 3, 4, 1}, c.avg), kRows, kColumns}, 1e-6);
    Tensor dy(DType::kFloat, {1, 3, 4, 1});
    for (int i = 0; i < 12; ++i) dy.mutable_flat<float>()[i] = static_cast<float>(i + 1);
    const Attrs overlapping = {{"overlapping", c.overlapping}};
    ExpectOutputs({"FractionalMaxPoolGrad", {Sines(), max, dy, kRows, kColumns}, overlapping},
                  {F({1, 5, 7, 1}, c.max_gradient)}, 1e-6);
    ExpectOutputs(
        {"FractionalAvgPoolGrad", {L({4}, {1, 5, 7, 1}), dy, kRows, kColumns}, overlapping},
        {F({1, 5, 7, 1}, c.avg_gradient)}, 1e-6);
  }
}

TEST(FractionalPool, IntegersAreCutOff) {
  Tensor x(DType::kInt32, {1, 5, 7, 1});
  for (int i = 0; i < 35; ++i) x.mutable_flat<int32_t>()[i] = i;
  ExpectOutputs({"FractionalAvgPool", {x}, Options(true, true, 3, 1)},
                {I({1, 3, 4, 1}, {4, 6, 8, 9, 15, 17, 19, 20, 25, 27, 29, 30}), kRows, kColumns});
}

TEST(FractionalPool, Mistakes) {
  const auto pool = [](const std::vector<float>& ratio, bool deterministic, const Shape& shape) {
    return OpCall{"FractionalMaxPool",
                  {Tensor(DType::kFloat, shape)},
                  {{"pooling_ratio", ratio}, {"deterministic", deterministic}, {"seed", 3}}};
  };
  const Shape image = {1, 5, 7, 1};
  pool({1, 0.9f, 1, 1}, true, image).ExpectError("cannot be smaller than 1");
  pool({2, 1.5f, 1, 1}, true, image).ExpectError("batch nor channel");
  pool({1, 10, 1, 1}, true, image).ExpectError("higher than input dimension size for dimension 1");
  pool({1, 1.5f, 1}, true, image).ExpectError("must have 4 elements");
  pool({1, 1.5f, 1, 1}, false, image).ExpectError("should be 0 if deterministic is false");
  pool({1, 1.5f, 1, 1}, true, {5, 7, 1}).ExpectError("must be 4-dimensional");
  pool({1, 1.5f, 1, 1}, true, {1, 0, 7, 1}).ExpectError("rows and columns");
  const auto gradient = [](const std::vector<int64_t>& rows) {
    return OpCall{
        "FractionalAvgPoolGrad",
        {L({4}, {1, 4, 4, 1}), Tensor(DType::kFloat, {1, 2, 2, 1}), Longs(rows), Longs({0, 2, 4})}};
  };
  gradient({0, 5, 9}).ExpectError("must ascend");
  gradient({-1, 2, 4}).ExpectError("must ascend");
  gradient({0, 3, 2}).ExpectError("must ascend");
  gradient({0, 2}).ExpectError("must have 3 elements");
}

}  // namespace
}  // namespace penstock
