// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/own_ranks.h"

#include <vector>

#include "gtest/gtest.h"

namespace penstock::collective {
namespace {

CollectiveCall CallOf(CollectiveKind kind, const std::vector<float>& values) {
  CollectiveCall call{.kind = kind, .dtype = DType::kFloat};
  call.input = Tensor::Vector<float>(values);
  call.shape = call.input.shape();
  return call;
}

std::vector<float> Values(const Tensor& tensor) {
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values.push_back(tensor.flat<float>()[i]);
  return values;
}

TEST(OwnRanksTest, AllReduceAddsInputs) {
  const std::vector<CollectiveCall> calls = {CallOf(CollectiveKind::kAllReduce, {1, 2}),
                                             CallOf(CollectiveKind::kAllReduce, {10, 20})};
  const auto merged = MergeInputs(calls);
  ASSERT_TRUE(merged.ok()) << merged.status().message();
  EXPECT_EQ(Values(*merged), (std::vector<float>{11, 22}));
  EXPECT_EQ(ResultElements(calls, 4), 2);
  EXPECT_EQ(Values(ResultOf(calls[1], 1, 4, *merged)), (std::vector<float>{11, 22}));
}

TEST(OwnRanksTest, AllGatherPutsInputsOneAfterTheOther) {
  const std::vector<CollectiveCall> calls = {CallOf(CollectiveKind::kAllGather, {1, 2}),
                                             CallOf(CollectiveKind::kAllGather, {10, 20})};
  const auto merged = MergeInputs(calls);
  ASSERT_TRUE(merged.ok()) << merged.status().message();
  EXPECT_EQ(Values(*merged), (std::vector<float>{1, 2, 10, 20}));
  EXPECT_EQ(ResultElements(calls, 2), 4);
  EXPECT_EQ(ResultOf(calls[0], 0, 2, *merged).shape(), Shape({4}));
}

TEST(OwnRanksTest, ReduceScatterGivesEachRankItsRows) {
  const std::vector<CollectiveCall> calls = {CallOf(CollectiveKind::kReduceScatter, {1, 2, 3, 4}),
                                             CallOf(CollectiveKind::kReduceScatter, {1, 1, 1, 1})};
  EXPECT_EQ(ResultElements(calls, 4), 2);  // this task has two of four ranks
  const Tensor result = Tensor::Vector<float>({7, 8});
  EXPECT_EQ(Values(ResultOf(calls[0], 0, 4, result)), (std::vector<float>{7}));
  EXPECT_EQ(Values(ResultOf(calls[1], 1, 4, result)), (std::vector<float>{8}));
}

TEST(OwnRanksTest, BroadcastTakesTheInputOfTheSource) {
  CollectiveCall receiver = CallOf(CollectiveKind::kBroadcast, {0, 0});
  receiver.input = Tensor();
  CollectiveCall source = CallOf(CollectiveKind::kBroadcast, {5, 6});
  source.is_source = true;
  const auto merged = MergeInputs({receiver, source});
  ASSERT_TRUE(merged.ok()) << merged.status().message();
  EXPECT_EQ(Values(*merged), (std::vector<float>{5, 6}));
  const auto none = MergeInputs({receiver, receiver});
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_FALSE(none->valid());
}

TEST(OwnRanksTest, TypeThatCannotBeAdded) {
  CollectiveCall call{.kind = CollectiveKind::kAllReduce, .dtype = DType::kBool};
  call.input = Tensor::Vector<bool>({true});
  call.shape = call.input.shape();
  EXPECT_EQ(MergeInputs({call, call}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::collective
