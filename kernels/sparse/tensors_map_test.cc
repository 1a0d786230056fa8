// SPDX-License-Identifier: Apache-2.0
//
// Tests maps of sparse tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/op/resource.h"
#include "core/op/testing/op_runner.h"
#include "core/op/testing/recording_log.h"

namespace penstock {
namespace {

using testing::HasSubstr;

Tensor Longs(const Shape& shape, const std::vector<int64_t>& values) {
  return Tensor::Of<int64_t>(shape, values);
}

// The ops on one map.
class Map {
 public:
  explicit Map(std::shared_ptr<ResourceStore> store = std::make_shared<ResourceStore>())
      : store_(std::move(store)) {}

  StatusOr<Tensor> Add(const char* op, const Tensor& indices, const Tensor& values,
                       const Tensor& shape) {
    return OpRunner(op, store_).Attr("shared_name", "m").In(indices).In(values).In(shape).Run1();
  }
  // Adds a 3 x 4 matrix whose second row is empty.
  StatusOr<Tensor> AddMatrix() {
    return Add("AddManySparseToTensorsMap", Longs({3, 2}, {0, 1, 2, 0, 2, 3}),
               Tensor::Vector<float>({1, 2, 3}), Longs({2}, {3, 4}));
  }
  StatusOr<std::vector<Tensor>> Take(std::vector<int64_t> numbers, DType dtype = DType::kFloat) {
    return OpRunner("TakeManySparseFromTensorsMap", store_)
        .Attr("shared_name", "m")
        .Attr("dtype", dtype)
        .In(Tensor::Vector<int64_t>(numbers))
        .Run();
  }
  static std::string Text(const StatusOr<std::vector<Tensor>>& sparse) {
    if (!sparse.ok()) return std::string(sparse.status().message());
    return StrCat((*sparse)[0].ToString(), (*sparse)[1].ToString(), (*sparse)[2].ToString());
  }

 private:
  const std::shared_ptr<ResourceStore> store_;
};

TEST(SparseTensorsMap, StacksWhatItTakes) {
  Map map;
  const auto numbers = map.AddMatrix();
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(numbers->ToString(), Longs({3}, {0, 1, 2}).ToString());
  // A row of another length.
  const auto number = map.Add("AddSparseToTensorsMap", Longs({1, 1}, {6}),
                              Tensor::Vector<float>({9}), Longs({1}, {7}));
  ASSERT_TRUE(number.ok()) << number.status();
  EXPECT_EQ(number->scalar<int64_t>(), 3);
  const auto taken = map.Take({2, 3, 1});
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ((*taken)[0].ToString(), Longs({3, 2}, {0, 0, 0, 3, 1, 6}).ToString());
  EXPECT_EQ((*taken)[1].ToString(), Tensor::Vector<float>({2, 3, 9}).ToString());
  EXPECT_EQ((*taken)[2].ToString(), Longs({2}, {3, 7}).ToString());
  EXPECT_THAT(Map::Text(map.Take({3})), HasSubstr("Unable to find SparseTensor: 3 in map: m"));
  EXPECT_TRUE(map.Take({0}).ok());
}

TEST(SparseTensorsMap, HoldsStrings) {
  Map map;
  const auto number = map.Add("AddSparseToTensorsMap", Longs({2, 2}, {0, 0, 1, 2}),
                              Tensor::Vector<std::string>({"a", "b"}), Longs({2}, {2, 3}));
  ASSERT_TRUE(number.ok()) << number.status();
  const auto taken = map.Take({number->scalar<int64_t>()}, DType::kString);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ((*taken)[0].ToString(), Longs({2, 3}, {0, 0, 0, 0, 1, 2}).ToString());
  EXPECT_EQ((*taken)[1].ToString(), Tensor::Vector<std::string>({"a", "b"}).ToString());
  EXPECT_EQ((*taken)[2].ToString(), Longs({3}, {1, 2, 3}).ToString());
}

TEST(SparseTensorsMap, Mistakes) {
  Map map;
  const Tensor one = Tensor::Vector<float>({1});
  EXPECT_THAT(map.Add("AddManySparseToTensorsMap", Longs({1, 1}, {0}), one, Longs({1}, {4}))
                  .status()
                  .message(),
              HasSubstr("Rank of input SparseTensor should be > 1, but saw rank: 1"));
  EXPECT_THAT(map.Add("AddManySparseToTensorsMap", Longs({1, 2}, {5, 0}), one, Longs({2}, {2, 2}))
                  .status()
                  .message(),
              HasSubstr("out of bounds"));
  EXPECT_THAT(map.Add("AddManySparseToTensorsMap", Longs({1, 2}, {0, 0}), one,
                      Longs({2}, {int64_t{1} << 40, 2}))
                  .status()
                  .message(),
              HasSubstr("sparse_shape[0] must be at most"));
  ASSERT_TRUE(map.AddMatrix().ok());
  EXPECT_THAT(Map::Text(map.Take({0, 0})),
              HasSubstr("SparseTensor 0 of map 'm' is asked for twice"));
  EXPECT_THAT(Map::Text(map.Take({})), HasSubstr("Must have at least 1 serialized SparseTensor"));
  EXPECT_THAT(Map::Text(map.Take({0, 7})), HasSubstr("Unable to find SparseTensor: 7"));
  EXPECT_THAT(Map::Text(map.Take({0}, DType::kInt32)),
              HasSubstr("Requested SparseTensor of type int32 but SparseTensor[0].values.dtype() "
                        "== float"));
  ASSERT_TRUE(
      map.Add("AddSparseToTensorsMap", Longs({1, 2}, {0, 0}), one, Longs({2}, {1, 1})).ok());
  EXPECT_THAT(Map::Text(map.Take({1, 3})), HasSubstr("Inconsistent rank across SparseTensors"));
}

TEST(SparseTensorsMap, ReplayMakesTheSameMap) {
  RecordingLog log;
  const auto store = std::make_shared<ResourceStore>(), replica = std::make_shared<ResourceStore>();
  ASSERT_TRUE(store->AttachLog(&log).ok());
  Map original(store), copy(replica);
  ASSERT_TRUE(original.AddMatrix().ok());
  ASSERT_TRUE(original.Take({1}).ok());
  ASSERT_TRUE(original.AddMatrix().ok());
  const Status replayed = log.ReplayOn(*replica);
  ASSERT_TRUE(replayed.ok()) << replayed;
  EXPECT_THAT(Map::Text(copy.Take({1})), HasSubstr("Unable to find"));
  EXPECT_EQ(Map::Text(copy.Take({5, 2, 0})), Map::Text(original.Take({5, 2, 0})));
  EXPECT_EQ(copy.AddMatrix()->ToString(), original.AddMatrix()->ToString());
}

}  // namespace
}  // namespace penstock
