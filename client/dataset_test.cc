// SPDX-License-Identifier: Apache-2.0
//
// Tests the elements of datasets against plain loops, and their types and shapes.
#include "client/dataset.h"

#include <algorithm>

#include "client/program.h"
#include "client/testing/dataset_elements.h"
#include "core/base/env.h"
#include "core/op/gradient.h"
#include "core/record/record_writer.h"
#include "gmock/gmock.h"

namespace penstock::client {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::UnorderedElementsAreArray;

std::vector<std::string> NumberTexts(const std::vector<int64_t>& numbers) {
  std::vector<std::string> texts;
  for (const int64_t n : numbers) texts.push_back(Tensor::Scalar(n).ToString());
  return texts;
}

TEST(Dataset, Ranges) {
  const struct {
    int64_t start, stop, step;
  } kCases[] = {{0, 5, 1}, {3, 20, 4}, {5, -6, -2}, {4, 4, 1}, {0, 5, -1}};
  for (const auto& c : kCases) {
    Program p;
    std::vector<int64_t> expected;
    for (int64_t i = c.start; c.step > 0 ? i < c.stop : i > c.stop; i += c.step) {
      expected.push_back(i);
    }
    EXPECT_EQ(DatasetElements(Dataset::Range(p, c.start, c.stop, c.step)), NumberTexts(expected));
  }
}

TEST(Dataset, TensorsAndTheirSlices) {
  Program p;
  const Output x = Constant(p, Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const Output y = Constant(p, Tensor::Vector<std::string>({"a", "b", "c"}));
  const Dataset whole = Dataset::Tensors(p, {x, y});
  EXPECT_THAT(whole.shapes(), ElementsAre(PartialShape({3, 2}), PartialShape({3})));
  EXPECT_THAT(DatasetElements(whole),
              ElementsAre("float[3,2] 1 2 3 4 5 6; string[3] \"a\" \"b\" \"c\""));
  const Dataset rows = Dataset::TensorSlices(p, {x, y});
  EXPECT_THAT(rows.types(), ElementsAre(DType::kFloat, DType::kString));
  EXPECT_THAT(rows.shapes(), ElementsAre(PartialShape({2}), PartialShape::Scalar()));
  EXPECT_THAT(DatasetElements(rows),
              ElementsAre("float[2] 1 2; string[] \"a\"", "float[2] 3 4; string[] \"b\"",
                          "float[2] 5 6; string[] \"c\""));
}

TEST(Dataset, Files) {
  const std::string base = StrCat(testing::TempDir(), "/dataset_", Env::Real().RandomU64());
  std::vector<std::string> records, expected;
  for (int f = 0; f < 2; ++f) {
    records.push_back(StrCat(base, "_", f, ".gz"));
    auto writer = RecordWriter::Create(Env::Real(), records.back(), Compression::kGzip);
    for (int i = 0; i < 20; ++i) {
      CHECK_OK((*writer)->Write(StrCat(f, "-", i)));
      expected.push_back(Tensor::Scalar<std::string>(StrCat(f, "-", i)).ToString());
    }
    CHECK_OK((*writer)->Close());
  }
  CHECK_OK(Env::Real().WriteFileAtomically(base, "HEADab\ncdef"));
  Program p;
  EXPECT_EQ(DatasetElements(Dataset::TFRecords(p, records, {.compression = "GZIP"})), expected);
  EXPECT_THAT(DatasetElements(Dataset::TextLines(p, {base})),
              ElementsAre("string[] \"HEADab\"", "string[] \"cdef\""));
  const FixedLengthOptions options{.header_bytes = 4, .footer_bytes = 1};
  EXPECT_THAT(DatasetElements(Dataset::FixedLengthRecords(p, {base}, 2, options)),
              ElementsAre("string[] \"ab\"", "string[] \"\\nc\"", "string[] \"de\""));
}

TEST(Dataset, Batches) {
  for (const bool drop : {false, true}) {
    Program p;
    const Dataset batches = Dataset::Range(p, 0, 7).Batch(3, {.drop_remainder = drop});
    EXPECT_THAT(batches.shapes(), ElementsAre(PartialShape({drop ? 3 : -1})));
    std::vector<std::string> expected = {"int64[3] 0 1 2", "int64[3] 3 4 5"};
    if (!drop) expected.push_back("int64[1] 6");
    EXPECT_EQ(DatasetElements(batches), expected);
  }
}

Dataset CountingTo(Program& p, int64_t stop) {
  return Dataset::Range(p, 0, stop).Map([&](const Outputs& x) {
    return Outputs{Range(Int64(p, 0), x[0], Int64(p, 1)), x[0]};
  });
}

TEST(Dataset, PaddedBatches) {
  Program p;
  const Dataset padded = CountingTo(p, 4).PaddedBatch(2);
  EXPECT_THAT(padded.shapes(), ElementsAre(PartialShape({-1, -1}), PartialShape({-1})));
  EXPECT_THAT(DatasetElements(padded),
              ElementsAre("int64[2,1] 0 0; int64[2] 0 1", "int64[2,3] 0 1 0 0 1 2; int64[2] 2 3"));
  const Dataset fixed = CountingTo(p, 3).PaddedBatch(
      2, {.shapes = {{3}, PartialShape::Scalar()},
          .values = {Tensor::Scalar<int64_t>(-1), Tensor::Scalar<int64_t>(0)},
          .drop_remainder = true});
  EXPECT_THAT(fixed.shapes(), ElementsAre(PartialShape({2, 3}), PartialShape({2})));
  EXPECT_THAT(DatasetElements(fixed), ElementsAre("int64[2,3] -1 -1 -1 0 -1 -1; int64[2] 0 1"));
}

// Each round has all elements, in another order; the same seed gives the same rounds.
TEST(Dataset, ShufflesAndRepeats) {
  std::vector<std::vector<std::string>> runs;
  for (const int64_t seed : {5, 5, 6}) {
    Program p;
    runs.push_back(DatasetElements(Dataset::Range(p, 0, 30).Shuffle(10, seed).Repeat(2)));
    ASSERT_EQ(runs.back().size(), 60u);
    const std::vector<std::string> first(runs.back().begin(), runs.back().begin() + 30);
    const std::vector<std::string> second(runs.back().begin() + 30, runs.back().end());
    EXPECT_NE(first, second);
    EXPECT_THAT(first, UnorderedElementsAreArray(second));
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST(Dataset, Parts) {
  Program p;
  const Dataset ten = Dataset::Range(p, 0, 10);
  EXPECT_EQ(DatasetElements(ten.Take(3)), NumberTexts({0, 1, 2}));
  EXPECT_EQ(DatasetElements(ten.Skip(7)), NumberTexts({7, 8, 9}));
  EXPECT_EQ(DatasetElements(ten.Shard(4, 1)), NumberTexts({1, 5, 9}));
  EXPECT_EQ(DatasetElements(ten.Take(2).Repeat().Take(5)), NumberTexts({0, 1, 0, 1, 0}));
  EXPECT_EQ(DatasetElements(ten.Prefetch(2).Take(2)), NumberTexts({0, 1}));
}

TEST(Dataset, SeveralDatasets) {
  Program p;
  const Dataset two = Dataset::Range(p, 0, 2), three = Dataset::Range(p, 5, 8);
  EXPECT_THAT(DatasetElements(Dataset::Zip(p, {two, three})),
              ElementsAre("int64[] 0; int64[] 5", "int64[] 1; int64[] 6"));
  EXPECT_EQ(DatasetElements(two.Concatenate(three)), NumberTexts({0, 1, 5, 6, 7}));
  const Dataset both =
      two.Batch(2, {.drop_remainder = true}).Concatenate(three.Batch(3, {.drop_remainder = true}));
  EXPECT_THAT(both.shapes(), ElementsAre(PartialShape({-1})));
  EXPECT_THAT(DatasetElements(both), ElementsAre("int64[2] 0 1", "int64[3] 5 6 7"));
}

// All datasets of a pipeline are on the device of its source, whatever scope is open later.
TEST(Dataset, ADeviceForAPipeline) {
  Program p;
  std::vector<Dataset> sources;
  {
    const auto device = p.DeviceScope("/job:worker/task:1");
    sources = {Dataset::Range(p, 0, 3), Dataset::Range(p, 5, 9)};
  }
  const auto elsewhere = p.DeviceScope("/job:worker/task:0");
  const Dataset zipped = Dataset::Zip(p, sources), batches = zipped.Batch(2);
  const Iterator iterator(batches);
  for (const Output& output : {zipped.variant(), batches.variant(), iterator.handle()}) {
    EXPECT_EQ(p.NodeOf(output)->requested_device(), "/job:worker/task:1") << output.name();
  }
}

TEST(Dataset, CachedElements) {
  Program p;
  const Dataset random = Dataset::Range(p, 0, 4).Map([&](const Outputs& x) {
    const Output shape = Constant(p, Tensor::Vector<int32_t>({2}));
    return Outputs{CallIn(p, "RandomUniform", {shape}, {{"dtype", DType::kFloat}, {"seed", 3}})};
  });
  const std::vector<std::string> cached = DatasetElements(random.Cache().Repeat(2));
  ASSERT_EQ(cached.size(), 8u);
  EXPECT_TRUE(std::equal(cached.begin(), cached.begin() + 4, cached.begin() + 4));
  const std::vector<std::string> drawn = DatasetElements(random.Repeat(2));
  EXPECT_TRUE(std::equal(drawn.begin(), drawn.begin() + 4, cached.begin()));
  EXPECT_NE(drawn[0], drawn[4]);
}

// After the initializer for another dataset, the iterator reads that one. After its own
// initializer, it reads its own dataset from the beginning.
TEST(Iterator, IsInitialisedAgain) {
  Program p;
  const Iterator iterator(Dataset::Range(p, 0, 10).Batch(2));
  const Output other = iterator.InitializerFor(Dataset::Range(p, 50, 60).Batch(3));
  const Output next = iterator.GetNext()[0];
  EXPECT_EQ(next.shape(), PartialShape({-1}));
  const auto session = Session::New(p);
  EXPECT_EQ((*session)->Fetch(next).status().code(), StatusCode::kFailedPrecondition);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE((*session)->Execute(iterator.initializer()).ok());
    EXPECT_EQ((*session)->Fetch(next)->ToString(), "int64[2] 0 1");
    EXPECT_EQ((*session)->Fetch(next)->ToString(), "int64[2] 2 3");
    ASSERT_TRUE((*session)->Execute(other).ok());
    EXPECT_EQ((*session)->Fetch(next)->ToString(), "int64[3] 50 51 52");
  }
}

// Two sessions of one program read independently.
TEST(Iterator, BelongsToItsSession) {
  Program p;
  const Iterator iterator(Dataset::Range(p, 0, 10));
  const Output next = iterator.GetNext()[0];
  const auto a = Session::New(p), b = Session::New(p);
  for (const auto* session : {&a, &b}) {
    ASSERT_TRUE((**session)->Execute(iterator.initializer()).ok());
    EXPECT_EQ((**session)->Fetch(next)->ToString(), "int64[] 0");
  }
  EXPECT_EQ((*a)->Fetch(next)->ToString(), "int64[] 1");
}

}  // namespace
}  // namespace penstock::client
