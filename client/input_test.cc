// SPDX-License-Identifier: Apache-2.0
//
// Tests input pipelines and their threads, from the first record to the last.
#include "client/input.h"

#include <algorithm>

#include "client/testing/pipeline.h"
#include "core/base/env.h"
#include "core/op/gradient.h"
#include "core/record/record_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

TEST(Input, ProducersEndAfterTheirEpochs) {
  Pipeline p;
  const Output queue =
      StringInputProducer(p.runners(), {"a", "b", "c"}, {.num_epochs = 2, .shuffle = false});
  const Output name = Take(queue, DType::kString);
  EXPECT_EQ(name.shape(), PartialShape::Scalar());
  p.Start();
  EXPECT_THAT(p.All({name}), ElementsAre("string[] \"a\"", "string[] \"b\"", "string[] \"c\"",
                                         "string[] \"a\"", "string[] \"b\"", "string[] \"c\""));
}

// The same seed gives the same order, which differs between epochs. Each epoch has every element
// once.
TEST(Input, ShuffledEpochs) {
  std::vector<std::vector<std::string>> runs;
  for (const int64_t seed : {7, 7, 8}) {
    Pipeline p;
    const Output queue = RangeInputProducer(p.runners(), 20, {.num_epochs = 2, .seed = seed});
    const Output number = Take(queue, DType::kInt32);
    p.Start();
    runs.push_back(p.All({number}));
    ASSERT_EQ(runs.back().size(), 40u);
    std::vector<std::string> first(runs.back().begin(), runs.back().begin() + 20);
    std::vector<std::string> second(runs.back().begin() + 20, runs.back().end());
    EXPECT_NE(first, second);
    EXPECT_THAT(first, UnorderedElementsAreArray(second));
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST(Input, Slices) {
  Pipeline p;
  const Output x = Constant(p.program(), Tensor::Of<float>({2, 2}, {1, 2, 3, 4}));
  const Output y = Constant(p.program(), Tensor::Vector<std::string>({"a", "b"}));
  const Outputs slices =
      SliceInputProducer(p.runners(), {x, y}, {.num_epochs = 1, .shuffle = false});
  p.Start();
  EXPECT_THAT(p.All(slices),
              ElementsAre("float[2] 1 2; string[] \"a\"", "float[2] 3 4; string[] \"b\""));
}

TEST(Input, Batches) {
  for (const bool smaller : {false, true}) {
    Pipeline p;
    const Output number = Take(
        RangeInputProducer(p.runners(), 7, {.num_epochs = 1, .shuffle = false}), DType::kInt32);
    const Outputs batch = Batch(p.runners(), {number, number * number}, 3,
                                {.capacity = 5, .allow_smaller_final_batch = smaller});
    EXPECT_EQ(batch[1].shape(), PartialShape({smaller ? -1 : 3}));
    p.Start();
    std::vector<std::string> expected = {"int32[3] 0 1 2; int32[3] 0 1 4",
                                         "int32[3] 3 4 5; int32[3] 9 16 25"};
    if (smaller) expected.push_back("int32[1] 6; int32[1] 36");
    EXPECT_EQ(p.All(batch), expected);
  }
}

TEST(Input, ShuffledBatchesOfRecordsFromFiles) {
  std::vector<std::string> files, expected, seen;
  for (int f = 0; f < 3; ++f) {
    files.push_back(StrCat(testing::TempDir(), "/input_", f));
    auto writer = RecordWriter::Create(Env::Real(), files.back());
    for (int i = 0; i < 50; ++i) {
      const std::string record = StrCat(f, "-", i);
      CHECK_OK((*writer)->Write(record));
      for (int epoch = 0; epoch < 2; ++epoch) expected.push_back(record);
    }
    CHECK_OK((*writer)->Close());
  }
  Pipeline p;
  const Output queue = StringInputProducer(p.runners(), files, {.num_epochs = 2});
  const Output reader = CallIn(p.program(), "TFRecordReaderV2", {});
  const Output record = ReadRecord(reader, queue).value;
  const Outputs batch = ShuffleBatch(
      p.runners(), {record}, 32,
      {.threads = 4, .capacity = 100, .min_after_dequeue = 50, .allow_smaller_final_batch = true});
  p.Start();
  while (true) {
    const auto tensors = p.Next(batch);
    if (!tensors.ok()) {
      p.coordinator().RequestStop(tensors.status());
      break;
    }
    for (const std::string& s : (*tensors)[0].flat<std::string>()) seen.push_back(s);
  }
  EXPECT_TRUE(p.coordinator().Join().ok());
  EXPECT_NE(seen, expected);
  EXPECT_THAT(seen, UnorderedElementsAreArray(expected));
}

TEST(Input, PaddedBatches) {
  Pipeline p;
  const Output number =
      Take(RangeInputProducer(p.runners(), 4, {.num_epochs = 1, .shuffle = false}), DType::kInt32);
  const Output zero = Constant(p.program(), Tensor::Scalar<int32_t>(0));
  const Output counted = Range(zero, number, zero + 1.0) + 1;  // 1, ..., number
  const Outputs batch = Batch(p.runners(), {counted}, 2, {.dynamic_pad = true});
  p.Start();
  EXPECT_THAT(p.All(batch), ElementsAre("int32[2,1] 0 1", "int32[2,3] 1 2 0 1 2 3"));
}

// Buckets group sentences of similar length, so there is less padding than without them.
TEST(Input, BucketsByLength) {
  Pipeline p;
  const Output number =
      Take(RangeInputProducer(p.runners(), 24, {.num_epochs = 1, .shuffle = false}), DType::kInt32);
  const Output length = Call("FloorMod", {number * 7, Constant(p.program(), Tensor::Scalar(12))});
  const Output zero = Constant(p.program(), Tensor::Scalar<int32_t>(0));
  const Output sentence = Range(zero, length, zero + 1.0);
  const BucketedBatch batch = BucketBySequenceLength(p.runners(), length, {sentence}, 4, {4, 8},
                                                     {.allow_smaller_final_batch = true});
  EXPECT_EQ(batch.tensors[0].shape().rank(), 2);
  p.Start();
  int elements = 0, padding = 0;
  for (;;) {
    const auto tensors = p.Next({batch.lengths, batch.tensors[0]});
    if (!tensors.ok()) {
      p.coordinator().RequestStop(tensors.status());
      break;
    }
    const auto lengths = (*tensors)[0].flat<int32_t>();
    const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
    EXPECT_EQ(*least / 4, *most / 4);
    EXPECT_EQ((*tensors)[1].shape(), Shape({static_cast<int64_t>(lengths.size()), *most}));
    for (const int32_t n : lengths) padding += *most - n;
    elements += static_cast<int>(lengths.size());
  }
  EXPECT_TRUE(p.coordinator().Join().ok());
  EXPECT_EQ(elements, 24);
  EXPECT_LE(padding, 24 * 3 / 2);  // batches of random lengths would have 24 * 5.5
}

TEST(Input, MistakesAreTheProgramsError) {
  {
    Program program;
    QueueRunners runners(program);
    StringInputProducer(runners, {});
    EXPECT_THAT(std::string(program.status().message()), HasSubstr("no rows"));
  }
  Program program;
  QueueRunners runners(program);
  const Output x =
      CallIn(program, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({-1})}});
  Batch(runners, {x}, 2);
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("must be known"));
}

}  // namespace
}  // namespace penstock::client
