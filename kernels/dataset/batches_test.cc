// SPDX-License-Identifier: Apache-2.0
//
// Tests the datasets that batch or group elements, and SleepDataset. The expected elements are
// those of TensorFlow 2.21.
#include <functional>
#include <string>
#include <vector>

#include "core/functions/embedded_functions.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "kernels/dataset/testing/iterate.h"
#include "kernels/sparse/tensor_value.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor Batch(int64_t count, int64_t size) {
  return Must(DatasetRunner("BatchDataset").In(Range(count)).In(Int(size)).Run1());
}
StatusOr<Tensor> Rebatch(std::vector<int64_t> sizes, bool drop_remainder) {
  return DatasetRunner("RebatchDatasetV2")
      .In(Batch(7, 3))
      .In(Tensor::Vector(sizes))
      .In(Tensor::Scalar(drop_remainder))
      .Run1();
}
StatusOr<Tensor> ForReplicas(const Tensor& input, int64_t replicas) {
  return DatasetRunner("RebatchDataset").In(input).In(Int(replicas)).Run1();
}
StatusOr<Tensor> Sleep(int64_t micros) {
  return DatasetRunner("SleepDataset").In(Range(3)).In(Int(micros)).Run1();
}
StatusOr<Tensor> DenseToSparse(int64_t size, std::vector<int64_t> row_shape) {
  return DatasetRunner("DenseToSparseBatchDataset")
      .In(Batch(5, 2))
      .In(Int(size))
      .In(Tensor::Vector(row_shape))
      .Run1();
}

// key(x) = (7 - x) mod 3, init(key) = 100 key, reduce(s, x) = s + x, finalize(s) = s + s.
constexpr char kLibrary[] = R"(
  function { signature { name: 'key' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 } }
    node_def { name: 'seven' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 7 } } } }
    node_def { name: 'three' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 3 } } } }
    node_def { name: 'less' op: 'Sub' input: 'seven:output:0' input: 'x'
      attr { key: 'T' value { type: DT_INT64 } } }
    node_def { name: 'rest' op: 'FloorMod' input: 'less:z:0' input: 'three:output:0'
      attr { key: 'T' value { type: DT_INT64 } } }
    ret { key: 'y' value: 'rest:z:0' } }
  function { signature { name: 'init' input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 } }
    node_def { name: 'hundred' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
      attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: 100 } } } }
    node_def { name: 'product' op: 'Mul' input: 'x' input: 'hundred:output:0'
      attr { key: 'T' value { type: DT_INT64 } } }
    ret { key: 'y' value: 'product:z:0' } }
  function { signature { name: 'reduce' input_arg { name: 's' type: DT_INT64 }
                         input_arg { name: 'x' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 } }
    node_def { name: 'sum' op: 'AddV2' input: 's' input: 'x'
      attr { key: 'T' value { type: DT_INT64 } } }
    ret { key: 'y' value: 'sum:z:0' } }
  function { signature { name: 'finalize' input_arg { name: 's' type: DT_INT64 }
                         output_arg { name: 'y' type: DT_INT64 } }
    node_def { name: 'sum' op: 'AddV2' input: 's' input: 's'
      attr { key: 'T' value { type: DT_INT64 } } }
    ret { key: 'y' value: 'sum:z:0' } })";

Tensor GroupByReducer(int64_t count) {
  tensorflow::FunctionDefLibrary library;
  CHECK(google::protobuf::TextFormat::ParseFromString(kLibrary, &library));
  OpRunner run = DatasetRunner("GroupByReducerDataset");
  for (const char* function : {"key", "init", "reduce", "finalize"}) {
    run.Attr(StrCat(function, "_func"),
             FunctionName{.name = function, .attrs = std::make_shared<Attrs>()});
  }
  run.Attr(kFunctionsAttr, library.SerializeAsString()).Device("CPU").In(Range(count));
  for (int i = 0; i < 4; ++i) run.InList({});
  return Must(run.Run1());
}

TEST(Rebatch, CutsBatchesToOtherSizes) {
  EXPECT_THAT(All(Must(Rebatch({2, 0}, false))),
              ElementsAre("0 1", "", "2 3", "", "4 5", "", "6", "end"));
  EXPECT_THAT(All(Must(Rebatch({2, 0}, true))),
              ElementsAre("0 1", "", "2 3", "", "4 5", "", "end"));
  EXPECT_THAT(All(Must(Rebatch({3, 1}, true))), ElementsAre("0 1 2", "3", "4 5 6", "end"));
  EXPECT_THAT(All(Must(Rebatch({0, 4}, false))), ElementsAre("", "0 1 2 3", "", "4 5 6", "end"));
  for (const auto& sizes : {std::vector<int64_t>{}, {0}, {2, -1}}) {
    EXPECT_THAT(std::string(Rebatch(sizes, true).status().message()),
                HasSubstr("batch_sizes must be >= 0, and one of them > 0"));
  }
}

TEST(Rebatch, CutsBatchesForReplicas) {
  EXPECT_THAT(All(Must(ForReplicas(Batch(10, 4), 3))),
              ElementsAre("0 1", "2 3", "", "4 5", "6 7", "", "8", "9", "", "end"));
  EXPECT_THAT(std::string(ForReplicas(Range(3), 0).status().message()), HasSubstr("num_replicas"));
  EXPECT_THAT(All(Must(ForReplicas(Range(1), 2))),
              ElementsAre("Input element must have a non-scalar value in each component.", "end"));
}

TEST(GroupByReducer, ReducesEachGroup) {
  EXPECT_THAT(All(GroupByReducer(10)), ElementsAre("24", "236", "430", "end"));
  EXPECT_THAT(All(GroupByReducer(0)), ElementsAre("end"));
}

TEST(DenseToSparseBatch, HasThePlacesOfAllElements) {
  Place place;
  const IteratorPtr iterator = NewIterator(place, Must(DenseToSparse(2, {-1})));
  const auto next = [&] {
    Element element;
    bool end = false;
    CHECK_OK(iterator->GetNext(place.Context(), &element, &end));
    std::vector<std::string> parts;
    if (end) return parts;
    for (const Variant& part : element[0].flat<Variant>()) {
      parts.push_back(dynamic_cast<const TensorValue&>(*part.value).tensor().ToString());
    }
    return parts;
  };
  EXPECT_THAT(next(),
              ElementsAre("int64[4,2] 0 0 0 1 1 0 1 1", "int64[4] 0 1 2 3", "int64[2] 2 2"));
  EXPECT_THAT(next(), ElementsAre("int64[1,2] 0 0", "int64[1] 4", "int64[2] 1 1"));
  EXPECT_THAT(next(), ElementsAre());
}

TEST(DenseToSparseBatch, ChecksItsRows) {
  const auto first = [](std::vector<int64_t> row_shape) {
    Place place;
    return Next(place, *NewIterator(place, Must(DenseToSparse(2, row_shape))));
  };
  EXPECT_THAT(first({1}), HasSubstr("Input element had shape ([2]) that is larger"));
  EXPECT_THAT(first({2, 2}), HasSubstr("Input element had shape ([2]) that is incompatible"));
  EXPECT_THAT(std::string(DenseToSparse(0, {2}).status().message()), HasSubstr("Batch size"));
  EXPECT_FALSE(DenseToSparse(1, {-2}).ok());
}

TEST(Sleep, WaitsUnlessTheStepIsCancelled) {
  const int64_t begin = Env::Real().NowNanos();
  EXPECT_THAT(All(Must(Sleep(2000))), ElementsAre("0", "1", "2", "end"));
  EXPECT_GE(Env::Real().NowNanos() - begin, 3 * 2'000'000);
  EXPECT_THAT(std::string(Sleep(-1).status().message()), HasSubstr("`sleep_microseconds`"));
  Place place;
  const IteratorPtr iterator = NewIterator(place, Must(Sleep(INT64_MAX)));
  auto canceller = Scheduler::Real().StartThread(
      "cancel", [&] { place.cancellation.Cancel(Cancelled("enough")); });
  EXPECT_EQ(Next(place, *iterator), "enough");
}

std::vector<std::function<Tensor()>> Saveable() {
  return {
      [] {
        return Must(Rebatch({2, 0, 1}, false));
      },
      [] { return Must(ForReplicas(Batch(7, 3), 2)); },
      [] { return GroupByReducer(8); },
      [] { return Must(Sleep(0)); },
  };
}

TEST(Batches, GoOnFromASavedState) {
  for (const auto& make : Saveable()) {
    for (int taken = 0; taken < 7; ++taken) {
      Place place;
      const IteratorPtr first = NewIterator(place, make());
      for (int i = 0; i < taken; ++i) Next(place, *first);
      StateReader reader(Save(place, *first));
      const IteratorPtr second = NewIterator(place, make());
      ASSERT_TRUE(second->Restore(place.Context(), &reader).ok());
      EXPECT_TRUE(reader.AtEnd().ok());
      EXPECT_EQ(Rest(place, *second), Rest(place, *first)) << taken;
    }
  }
}

TEST(Batches, SurviveStatesThatDoNotFit) {
  Place place;
  for (const auto& make : Saveable()) {
    const IteratorPtr saved = NewIterator(place, make());
    Next(place, *saved);
    const std::vector<Tensor> state = Save(place, *saved);
    for (size_t i = 0; i < state.size(); ++i) {
      if (state[i].dtype() != DType::kInt64 || state[i].rank() != 0) continue;
      for (const int64_t number : {INT64_MIN, int64_t{-1}, int64_t{1} << 40, INT64_MAX}) {
        std::vector<Tensor> changed = state;
        changed[i] = Int(number);
        StateReader reader(changed);
        const IteratorPtr iterator = NewIterator(place, make());
        if (!iterator->Restore(place.Context(), &reader).ok()) continue;
        for (int k = 0; k < 3; ++k) Next(place, *iterator);  // the iterator must not crash
      }
    }
  }
}

}  // namespace
}  // namespace penstock
