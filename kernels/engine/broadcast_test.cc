// SPDX-License-Identifier: Apache-2.0
#include "kernels/engine/broadcast.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "core/base/thread_pool.h"

namespace penstock {
namespace {

// Returns the index of the operand's element for output element `index`, by the definition of
// broadcasting.
int64_t ExpectedIndex(const Shape& output, const Shape& shape, int64_t index) {
  int64_t offset = 0, stride = 1;
  for (int i = 1; i <= output.rank(); ++i) {
    const int64_t at = index % output.dim(output.rank() - i);
    index /= output.dim(output.rank() - i);
    if (i > shape.rank()) continue;
    const int64_t size = shape.dim(shape.rank() - i);
    if (size != 1) offset += at * stride;
    stride *= size;
  }
  return offset;
}

// Walks the plan and compares each step with the definition; returns false if an output element is
// missed or visited twice.
bool Walks(std::vector<Shape> shapes) {
  ThreadPool threads("test", 2);
  const auto plan = shapes.size() == 2 ? BroadcastPlan::Make({&shapes[0], &shapes[1]})
                                       : BroadcastPlan::Make({&shapes[0], &shapes[1], &shapes[2]});
  CHECK_OK(plan.status());
  std::vector<std::atomic<int>> met(plan->output().num_elements());
  std::atomic<bool> right = true;
  plan->ForEachPanel(threads, 100, [&](const BroadcastPanel& p) {
    for (int64_t r = 0; r < p.rows; ++r) {
      for (int64_t i = 0; i < p.n; ++i) {
        const int64_t out = p.out + r * p.n + i;
        met[out] += 1;
        for (size_t k = 0; k < shapes.size(); ++k) {
          const int64_t at = p.offset[k] + r * p.row_step[k] + (p.repeats[k] ? 0 : i);
          if (at != ExpectedIndex(plan->output(), shapes[k], out)) right = false;
        }
      }
    }
  });
  for (const auto& m : met) right = right && m == 1;
  return right;
}

TEST(BroadcastPlan, WalksAsTheRulesSay) {
  EXPECT_TRUE(Walks({Shape{}, Shape{}}));
  EXPECT_TRUE(Walks({Shape{7}, Shape{7}}));
  EXPECT_TRUE(Walks({Shape{1}, Shape{1, 1, 1}}));
  EXPECT_TRUE(Walks({Shape{3, 4}, Shape{4}}));
  EXPECT_TRUE(Walks({Shape{3, 1}, Shape{1, 4}}));
  EXPECT_TRUE(Walks({Shape{2, 1, 5, 1, 3}, Shape{4, 1, 6, 1}}));
  EXPECT_TRUE(Walks({Shape{2, 3, 4}, Shape{2, 1, 1}, Shape{1, 3, 4}}));
  EXPECT_TRUE(Walks({Shape{0, 3}, Shape{1, 3}}));
  EXPECT_TRUE(Walks({Shape{5, 1}, Shape{5, 0}}));
  // Larger than one block, so that panels are cut by rows and by columns.
  EXPECT_TRUE(Walks({Shape{3, 10000}, Shape{3, 1}}));
  EXPECT_TRUE(Walks({Shape{5000, 3}, Shape{3}}));
  EXPECT_TRUE(Walks({Shape{7, 2, 1000}, Shape{7, 1, 1000}}));
  EXPECT_TRUE(Walks({Shape{1, 4097}, Shape{3, 4097}}));
}

TEST(BroadcastPlan, JoinsDimensions) {
  const Shape a{2, 3, 4, 5}, b{2, 3, 4, 5}, row{4, 5}, column{2, 3, 1, 1};
  EXPECT_EQ(BroadcastPlan::Make({&a, &b})->rank(), 1);
  EXPECT_EQ(BroadcastPlan::Make({&a, &row})->rank(), 2);
  EXPECT_EQ(BroadcastPlan::Make({&a, &column})->rank(), 2);
  EXPECT_EQ(BroadcastPlan::Make({&row, &column})->rank(), 2);
}

TEST(BroadcastPlan, Errors) {
  const Shape a{2, 3}, b{2, 4}, none{0};
  EXPECT_EQ(BroadcastPlan::Make({&a, &b}).status().message(),
            "Incompatible shapes: [2,3] vs. [2,4]");
  EXPECT_FALSE(BroadcastPlan::Make({&a, &none}).ok());
  // Each shape is small; the number of elements of their broadcast overflows.
  Shape tall{int64_t{1} << 40, 1}, wide{1, int64_t{1} << 40};
  EXPECT_FALSE(BroadcastPlan::Make({&tall, &wide}).ok());
}

}  // namespace
}  // namespace penstock
