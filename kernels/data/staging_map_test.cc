// SPDX-License-Identifier: Apache-2.0
//
// Tests staging maps: their ops, and their records in a StateLog.
#include <gtest/gtest.h>

#include <future>

#include "absl/strings/match.h"
#include "core/base/cancellation.h"
#include "core/op/testing/op_runner.h"
#include "core/op/testing/recording_log.h"
#include "kernels/data/staging_map.h"

namespace penstock {
namespace {

Tensor Indices(const std::vector<int32_t>& numbers) {
  return Tensor::Vector<int32_t>(numbers);
}

// Tuples of a float and a string.
class StagingMapTest : public testing::TestWithParam<const char*> {
 protected:
  OpRunner Op(const char* op) {
    OpRunner run(StrCat(GetParam(), op), resources_);
    run.Attr("capacity", capacity_).Attr("memory_limit", memory_limit_).Attr("shared_name", "map");
    return run;
  }
  std::string Stage(int64_t key, const std::vector<int32_t>& indices, std::vector<Tensor> values) {
    OpRunner run = Op("Stage");
    run.Attr("dtypes", kTypes).In(Tensor::Scalar(key)).In(Indices(indices)).InList(values);
    return std::string(run.Run().status().message());
  }
  std::string Stage(int64_t key, float x, const std::string& name) {
    return Stage(key, {0, 1}, {Tensor::Scalar(x), Tensor::Scalar(name)});
  }
  // Returns the outputs, separated by spaces, or the error.
  std::string Get(const char* op, std::optional<int64_t> key,
                  const std::vector<int32_t>& indices = {0, 1}) {
    OpRunner run = Op(op);
    if (key) run.In(Tensor::Scalar(*key));
    std::vector<DType> types;
    for (const int32_t i : indices) types.push_back(i < 2 ? kTypes[i] : DType::kFloat);
    const auto outputs = run.In(Indices(indices)).Attr("dtypes", types).Run();
    if (!outputs.ok()) return std::string(outputs.status().message());
    std::string text;
    for (const Tensor& output : *outputs) {
      StrAppend(&text, text.empty() ? "" : " ");
      if (output.dtype() == DType::kInt64) StrAppend(&text, output.scalar<int64_t>());
      if (output.dtype() == DType::kFloat) StrAppend(&text, output.scalar<float>());
      if (output.dtype() == DType::kString) StrAppend(&text, output.scalar<std::string>());
    }
    return text;
  }
  // Returns the numbers of complete and of incomplete tuples, such as "2, 1".
  std::string Sizes() {
    const auto size = [&](const char* op) {
      return Op(op).Attr("dtypes", kTypes).Run1()->scalar<int32_t>();
    };
    return StrCat(size("Size"), ", ", size("IncompleteSize"));
  }
  void Clear() { EXPECT_TRUE(Op("Clear").Attr("dtypes", kTypes).Run().ok()); }

  const std::vector<DType> kTypes = {DType::kFloat, DType::kString};
  const std::shared_ptr<ResourceStore> resources_ = std::make_shared<ResourceStore>();
  int64_t capacity_ = 0, memory_limit_ = 0;
};

TEST_P(StagingMapTest, TuplesByKey) {
  EXPECT_EQ(Stage(7, 1, "a"), "");
  EXPECT_EQ(Stage(-3, 2, "b"), "");
  EXPECT_EQ(Stage(5, 3, "c"), "");
  EXPECT_EQ(Sizes(), "3, 0");
  EXPECT_EQ(Get("Peek", 7), "1 a");
  EXPECT_EQ(Get("Unstage", 7), "1 a");
  EXPECT_EQ(Get("UnstageNoKey", {}), "-3 2 b");
  EXPECT_EQ(Get("UnstageNoKey", {}), "5 3 c");
  EXPECT_EQ(Sizes(), "0, 0");
}

TEST_P(StagingMapTest, TuplesInPieces) {
  EXPECT_EQ(Stage(1, {1}, {Tensor::Scalar<std::string>("a")}), "");
  EXPECT_EQ(Sizes(), "0, 1");
  EXPECT_EQ(Stage(1, {1}, {Tensor::Scalar<std::string>("b")}),
            "The tensor for index '1' for key '1' was already initialized '2'.");
  EXPECT_EQ(Stage(1, {0}, {Tensor::Scalar(2.0f)}), "");
  EXPECT_EQ(Sizes(), "1, 0");
  EXPECT_EQ(Get("Unstage", 1, {1}), "a");
  EXPECT_EQ(Sizes(), "1, 0");
  EXPECT_EQ(Get("Peek", 1, {1}), "Tensor at index '1' for key '1' has already been removed.");
  EXPECT_EQ(Get("UnstageNoKey", {}, {0}), "1 2");
  EXPECT_EQ(Sizes(), "0, 0");
}

TEST_P(StagingMapTest, TheFirstTupleOfAKeyStays) {
  memory_limit_ = 72;  // a tuple has 36 bytes
  EXPECT_EQ(Stage(1, 1, "a"), "");
  EXPECT_EQ(Stage(1, 2, "b"), "");
  EXPECT_EQ(Stage(1, {0}, {Tensor::Scalar(3.0f)}), "");
  EXPECT_EQ(Stage(1, {1}, {Tensor::Scalar<std::string>("c")}), "");
  EXPECT_EQ(Sizes(), "1, 0");
  EXPECT_EQ(Stage(2, 2, "b"), "");  // the dropped tuples take no memory
  EXPECT_EQ(Get("Unstage", 1), "1 a");
}

TEST_P(StagingMapTest, FullMapsMakeWait) {
  capacity_ = 1;
  EXPECT_EQ(Stage(1, {0}, {Tensor::Scalar(1.0f)}), "");
  EXPECT_EQ(Stage(2, 2, "b"), "");
  auto third = std::async([this] { return Stage(3, 3, "c"); });
  EXPECT_EQ(Get("Unstage", 2), "2 b");
  EXPECT_EQ(third.get(), "");
  // A piece completes its tuple although the map is full.
  EXPECT_EQ(Stage(1, {1}, {Tensor::Scalar<std::string>("a")}), "");
  auto fourth = std::async([this] { return Stage(4, 4, "d"); });
  Clear();
  EXPECT_EQ(fourth.get(), "");
  EXPECT_EQ(Get("UnstageNoKey", {}), "4 4 d");
}

TEST_P(StagingMapTest, MemoryIsLimited) {
  memory_limit_ = 40;
  EXPECT_EQ(Stage(1, 1, "a"), "");
  auto second = std::async([this] { return Stage(2, 2, "b"); });
  EXPECT_EQ(Get("Unstage", 1), "1 a");
  EXPECT_EQ(second.get(), "");
  EXPECT_TRUE(absl::StrContains(Stage(3, {0}, {Tensor(DType::kFloat, {11})}),
                                "combined size of '44' bytes"));
}

// Two steps wait for different keys; the first wait does not delay the second.
TEST_P(StagingMapTest, EachWaitsForItsKey) {
  auto one = std::async([this] { return Get("Unstage", 1); });
  auto two = std::async([this] { return Get("Unstage", 2); });
  auto seen = std::async([this] { return Get("Peek", 3); });
  EXPECT_EQ(Stage(3, 3, "c"), "");
  EXPECT_EQ(seen.get(), "3 c");
  EXPECT_EQ(Stage(2, 2, "b"), "");
  EXPECT_EQ(two.get(), "2 b");
  EXPECT_EQ(Stage(1, 1, "a"), "");
  EXPECT_EQ(one.get(), "1 a");
}

TEST_P(StagingMapTest, MistakesAreNamed) {
  const Tensor x = Tensor::Scalar(1.0f), s = Tensor::Scalar<std::string>("a");
  EXPECT_EQ(Stage(1, {1, 0}, {s, x}), "Indices are not strictly ordered");
  EXPECT_EQ(Stage(1, {0, 0}, {x, x}), "Indices are not strictly ordered");
  EXPECT_EQ(Stage(1, {}, {x}), "Indices are empty");
  EXPECT_EQ(Stage(1, {5}, {x}), "Index '5' for key '1' was out of bounds '2'.");
  EXPECT_EQ(Stage(1, {-1}, {x}), "Index '-1' for key '1' was out of bounds '2'.");
  EXPECT_EQ(Stage(1, {0, 1}, {x}), "there are 2 indices and 1 values");
  EXPECT_EQ(Stage(1, {1}, {x}), "value 0 has type float, dtypes says string for index 1");
  EXPECT_EQ(Sizes(), "0, 0");
  EXPECT_EQ(Stage(1, 1, "a"), "");
  EXPECT_EQ(Get("Unstage", 1, {2}), "Index '2' for key '1' was out of bounds '2'.");
  EXPECT_EQ(Get("Unstage", 1, {1, 0}), "Indices are not strictly ordered");
  EXPECT_EQ(Sizes(), "1, 0");
  capacity_ = 3;
  EXPECT_TRUE(absl::StrContains(Stage(1, 1, "a"), "exists already, with capacity 0"));
}

INSTANTIATE_TEST_SUITE_P(Maps, StagingMapTest, testing::Values("Map", "OrderedMap"));

class StagingMapLog : public testing::Test {
 protected:
  StagingMapLog() { CHECK_OK(store_.AttachLog(&log_)); }

  static std::shared_ptr<StagingMap> In(ResourceStore& store) {
    const auto make = [] {
      return std::make_shared<StagingMap>(StagingMap::kType, "m", StagingArea::Limits());
    };
    return std::static_pointer_cast<StagingMap>(
        *store.LookupOrCreate("", "m", StagingMap::kType, make));
  }
  static void Stage(StagingMap& map, int64_t key, const std::vector<int64_t>& indices) {
    StagingMap::Piece piece{
        .key = key, .types = {DType::kInt64, DType::kInt64}, .indices = indices};
    for (const int64_t i : indices) piece.values.push_back(Tensor::Scalar(10 * key + i));
    map.Stage(std::move(piece), nullptr, Done([](Status status) { CHECK_OK(status); }));
  }
  // Begins to take components. The text that it returns is "waits" until a step has got them, then
  // the components or the error.
  static std::shared_ptr<std::string> Take(StagingMap& map, int64_t key,
                                           const std::vector<int64_t>& indices,
                                           Cancellation* cancellation = nullptr) {
    auto text = std::make_shared<std::string>("waits");
    StagingMap::Request request{.key = key,
                                .indices = indices,
                                .types = std::vector<DType>(indices.size(), DType::kInt64)};
    auto receive = [text](int64_t, const Element& values) {
      text->clear();
      for (const Tensor& value : values) StrAppend(text.get(), value.scalar<int64_t>(), ";");
    };
    map.Get(std::move(request), receive, cancellation, Done([text](const Status& status) {
              if (!status.ok()) *text = std::string(status.message());
            }));
    return text;
  }

  RecordingLog log_;
  ResourceStore store_;
};

TEST_F(StagingMapLog, AReplicaHasTheSameTuples) {
  const auto map = In(store_);
  Stage(*map, 1, {0, 1});
  Stage(*map, 2, {1});
  Stage(*map, 3, {0, 1});
  EXPECT_EQ(*Take(*map, 1, {0}), "10;");
  EXPECT_EQ(*Take(*map, 3, {0, 1}), "30;31;");
  ResourceStore replica;
  ASSERT_TRUE(log_.ReplayOn(replica).ok());
  const auto copy = In(replica);
  EXPECT_EQ(copy->DebugString(), "StagingMap 'm', 1 tuples, 1 incomplete");
  EXPECT_EQ(*Take(*copy, 1, {1}), "11;");
  Stage(*copy, 2, {0});
  EXPECT_EQ(*Take(*copy, 2, {0, 1}), "20;21;");
  map->Clear({});
  ResourceStore cleared;
  ASSERT_TRUE(log_.ReplayOn(cleared).ok());
  EXPECT_EQ(In(cleared)->DebugString(), "StagingMap 'm', 0 tuples, 0 incomplete");
}

TEST_F(StagingMapLog, RecordsThatDoNotFitAreRefused) {
  const auto map = In(store_);
  const auto replay = [&](const char* action, std::vector<Tensor> values) {
    const ResourceChange change{.resource = {"", "m", "StagingMap", 1},
                                .version = 1,
                                .action = action,
                                .values = values};
    return map->Replay(change, {}).ok();
  };
  const Tensor one = Tensor::Scalar<int64_t>(1), zero = Tensor::Vector<int64_t>({0});
  EXPECT_FALSE(replay("take", {one, zero}));
  EXPECT_FALSE(replay("stage", {one, zero}));
  EXPECT_FALSE(replay("stage", {one, Tensor::Vector<int64_t>({-5}), zero, one}));
  EXPECT_FALSE(replay("stage", {one, one, zero, one}));
  EXPECT_FALSE(replay("burn", {}));
}

TEST_F(StagingMapLog, ACancelledStepStopsWaiting) {
  const auto map = In(store_);
  Cancellation cancellation;
  const auto first = Take(*map, 1, {0, 1}, &cancellation), second = Take(*map, 1, {0, 1});
  cancellation.Cancel(Aborted("the step has failed"));
  EXPECT_EQ(*first, "the step has failed");
  Stage(*map, 1, {0, 1});
  EXPECT_EQ(*second, "10;11;");
}

}  // namespace
}  // namespace penstock
