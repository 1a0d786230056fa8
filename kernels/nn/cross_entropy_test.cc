// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include "core/op/testing/op_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

std::vector<double> SoftmaxOf(const std::vector<double>& x) {
  double total = 0;
  for (double v : x) total += std::exp(v);
  std::vector<double> y;
  for (double v : x) y.push_back(std::exp(v) / total);
  return y;
}

TEST(SoftmaxTest, MatchesTheDefinitionForLongRowsToo) {
  for (int n : {1, 3, 10, 129, 1000}) {
    std::vector<double> row(n);
    for (int i = 0; i < n; ++i) row[i] = std::sin(i * 1.7) * 3;
    const std::vector<double> want = SoftmaxOf(row);
    const Tensor x = Tensor::Of<float>({1, n}, std::vector<float>(row.begin(), row.end()));
    const auto y = OpRunner("Softmax").In(x).Run1();
    const auto log_y = OpRunner("LogSoftmax").In(x).Run1();
    ASSERT_TRUE(y.ok() && log_y.ok());
    for (int i = 0; i < n; ++i) {
      EXPECT_NEAR(y->flat<float>()[i], want[i], 1e-6);
      EXPECT_NEAR(log_y->flat<float>()[i], std::log(want[i]), 1e-5);
    }
  }
}

TEST(SoftmaxTest, LargeLogitsDoNotOverflow) {
  const auto y = OpRunner("Softmax").In(Tensor::Of<float>({1, 2}, {1e4f, 0})).Run1();
  EXPECT_EQ(y->flat<float>()[0], 1);
  EXPECT_EQ(y->flat<float>()[1], 0);
  const auto l = OpRunner("LogSoftmax").In(Tensor::Of<float>({1, 2}, {1e4f, 0})).Run1();
  EXPECT_EQ(l->flat<float>()[1], -1e4f);
  EXPECT_EQ(OpRunner("Softmax").In(Tensor(DType::kFloat, Shape({3, 0}))).Run1()->num_elements(), 0);
}

TEST(CrossEntropyTest, SparseEqualsDenseWithOneHotLabels) {
  const Tensor logits = Tensor::Of<double>({2, 3}, {1, 2, 3, -1, 0.5, 0});
  const auto dense = OpRunner("SoftmaxCrossEntropyWithLogits")
                         .In(logits)
                         .In(Tensor::Of<double>({2, 3}, {0, 0, 1, 1, 0, 0}))
                         .Run();
  const auto sparse = OpRunner("SparseSoftmaxCrossEntropyWithLogits")
                          .In(logits)
                          .In(Tensor::Vector<int32_t>({2, 0}))
                          .Run();
  ASSERT_TRUE(dense.ok()) << dense.status();
  ASSERT_TRUE(sparse.ok()) << sparse.status();
  const std::vector<double> p = SoftmaxOf({1, 2, 3}), q = SoftmaxOf({-1, 0.5, 0});
  const std::vector<double> loss = {-std::log(p[2]), -std::log(q[0])};
  const std::vector<double> backprop = {p[0], p[1], p[2] - 1, q[0] - 1, q[1], q[2]};
  for (const auto& found : {*dense, *sparse}) {
    for (int i = 0; i < 2; ++i) EXPECT_NEAR(found[0].flat<double>()[i], loss[i], 1e-12);
    for (int i = 0; i < 6; ++i) EXPECT_NEAR(found[1].flat<double>()[i], backprop[i], 1e-12);
  }
}

TEST(CrossEntropyTest, LabelsBroadcast) {
  const auto found = OpRunner("SoftmaxCrossEntropyWithLogits")
                         .In(Tensor::Of<double>({2, 2}, {0, 0, 0, 0}))
                         .In(Tensor::Of<double>({1, 2}, {0.25, 0.75}))
                         .Run();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_NEAR((*found)[0].flat<double>()[1], std::log(2), 1e-12);
  EXPECT_NEAR((*found)[1].flat<double>()[3], -0.25, 1e-12);
}

TEST(CrossEntropyTest, ZeroLabelAgainstInfiniteLogitCostsNothing) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto found = OpRunner("SoftmaxCrossEntropyWithLogits")
                         .In(Tensor::Of<float>({1, 2}, {-inf, 0}))
                         .In(Tensor::Of<float>({1, 2}, {0, 1}))
                         .Run();
  EXPECT_EQ((*found)[0].flat<float>()[0], 0);
}

TEST(CrossEntropyTest, MistakesAreNamed) {
  const Tensor logits = Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto sparse = [&](const Tensor& labels) {
    return std::string(OpRunner("SparseSoftmaxCrossEntropyWithLogits")
                           .In(logits)
                           .In(labels)
                           .Run()
                           .status()
                           .message());
  };
  EXPECT_THAT(sparse(Tensor::Vector<int64_t>({0, 3})), HasSubstr("label value of 3"));
  EXPECT_THAT(sparse(Tensor::Vector<int64_t>({-1, 0})), HasSubstr("label value of -1"));
  EXPECT_THAT(sparse(Tensor::Vector<int64_t>({0})), HasSubstr("[1]"));
  EXPECT_FALSE(OpRunner("SoftmaxCrossEntropyWithLogits")
                   .In(logits)
                   .In(Tensor::Of<float>({2, 2}, {0, 0, 0, 0}))
                   .Run()
                   .ok());
}

}  // namespace
}  // namespace penstock
