// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/checkpoint_state.h"
#include "core/checkpoint/checkpoints.h"
#include "core/checkpoint/merge_bundles.h"
#include "core/checkpoint/testing/test_tensors.h"

namespace penstock {
namespace {

Env& env = Env::Real();

std::string Prefix(const std::string& name) {
  return StrCat(testing::TempDir(), "/",
                testing::UnitTest::GetInstance()->current_test_info()->name(), "/", name);
}

std::unique_ptr<BundleWriter> NewWriter(const std::string& prefix) {
  auto writer = BundleWriter::Create(env, prefix);
  CHECK_OK(writer.status());
  return *std::move(writer);
}

std::unique_ptr<BundleReader> OpenReader(const std::string& prefix) {
  auto reader = BundleReader::Open(env, prefix);
  CHECK_OK(reader.status());
  return *std::move(reader);
}

void SaveModel(const std::string& prefix) {
  auto writer = NewWriter(prefix);
  CHECK_OK(writer->Add("w", Counting<float>({100})));
  CHECK_OK(writer->Finish());
}

std::string Message(const Status& status) { return std::string(status.message()); }

TEST(SliceText, RoundTrips) {
  for (const char* text : {"", "-", "0,2:-", "3,4:5,6:-"}) {
    const auto slice = TensorSlice::Parse(text);
    ASSERT_EQ(slice.status(), OkStatus());
    EXPECT_EQ(slice->ToString(), text);
  }
  for (const char* text : {"1", "1,", ",1", "-:", "1,2,3", "-1,2", "0,0", "a,b", "0,-1"}) {
    EXPECT_FALSE(TensorSlice::Parse(text).ok()) << text;
  }
  for (const char* text :
       {"", "5", "5 3,3", "5 6 0,2", "x 0,2", "-5 -", "4611686018427387904 4 -:-", "5 5,1"}) {
    EXPECT_FALSE(ShapeAndSlice::Parse(text).ok()) << text;
  }
  const auto part = ShapeAndSlice::Parse("5 4 1,2:-");
  ASSERT_EQ(part.status(), OkStatus());
  EXPECT_EQ(part->shape, Shape({5, 4}));
  EXPECT_EQ(part->slice.Within(part->shape)->shape(), Shape({2, 4}));
}

TEST(SliceKey, IsOrderPreservingCode) {
  using namespace std::string_literals;
  // The key is 0, then "w" and its terminator, then rank 2, then start and length of each
  // dimension.
  EXPECT_EQ(SliceKey("w", *TensorSlice::Parse("0,2:-")), "\0w\0\x01\x01\x02\x80\x82\x80\x7f"s);
  EXPECT_EQ(SliceKey("\xff\0"s, {}), "\0\xff\0\0\xff\0\x01\0"s);
  const struct {
    int64_t value;
    std::string code;
  } cases[] = {{63, "\xbf"s},
               {64, "\xc0\x40"s},
               {8191, "\xdf\xff"s},
               {8192, "\xe0\x20\x00"s},
               {int64_t{1} << 55, "\xff\x80\x80\0\0\0\0\0\0"s},
               {std::numeric_limits<int64_t>::max(), "\xff\xc0\x7f\xff\xff\xff\xff\xff\xff\xff"s}};
  for (const auto& c : cases) {
    EXPECT_EQ(SliceKey("", {{{c.value, 1}}}), "\0\0\x01\x01\x01"s + c.code + "\x81") << c.value;
  }
}

TEST(Bundle, StreamsLargeTensorsAndReadsAnyPart) {
  const Tensor large = Counting<int32_t>({3000, 1001});  // 12 MB: several pieces
  const std::string prefix = Prefix("m");
  auto writer = NewWriter(prefix);
  ASSERT_EQ(writer->Add("large", large), OkStatus());
  ASSERT_EQ(writer->Finish(), OkStatus());
  const auto reader = OpenReader(prefix);
  EXPECT_TRUE(SameTensor(*reader->Read("large"), large));
  EXPECT_NE(Message(reader->Read("larger").status()).find("; did you mean 'large'?"),
            std::string::npos);
  EXPECT_TRUE(SameTensor(*reader->ReadSlice("large", *TensorSlice::Parse("1000,1500:-")),
                         large.Slice(1000, 2500)));
  const auto columns = reader->ReadSlice("large", *TensorSlice::Parse("-:1000,1"));
  ASSERT_EQ(columns.status(), OkStatus());
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(columns->flat<int32_t>()[i], 1001 * i + 1000);
}

TEST(Bundle, ManyTensorsTakeManyIndexBlocks) {
  constexpr int kTensors = 20'000;
  const std::string prefix = Prefix("m");
  auto writer = NewWriter(prefix);
  for (int i = 0; i < kTensors; ++i) {
    ASSERT_EQ(writer->Add(StrCat("layers/", i, "/weights"), Tensor::Scalar<int32_t>(i)),
              OkStatus());
  }
  ASSERT_EQ(writer->Finish(), OkStatus());
  EXPECT_GT((*env.OpenFile(IndexPath(prefix)))->size(), 2 * 256 << 10);
  const auto reader = OpenReader(prefix);
  EXPECT_EQ(reader->tensors().size(), kTensors);
  for (int i = 0; i < kTensors; ++i) {
    ASSERT_EQ(reader->Read(StrCat("layers/", i, "/weights"))->scalar<int32_t>(), i);
  }
}

// Reads any box of any partition of a tensor, and compares it with a copy made element by element.
TEST(Bundle, AnyPartOfAnyPartition) {
  std::mt19937 random(3);
  const auto cut = [&](int64_t size) { return static_cast<int64_t>(random() % (size + 1)); };
  for (int round = 0; round < 200; ++round) {
    Shape shape;
    const int rank = 1 + static_cast<int>(random() % 4);
    for (int d = 0; d < rank; ++d) shape.AddDim(1 + static_cast<int64_t>(random() % 5));
    const bool strings = round % 4 == 0;
    Tensor whole = Counting<int32_t>(shape);
    if (strings) {
      whole = Tensor(DType::kString, shape);
      for (int64_t i = 0; i < whole.num_elements(); ++i) {
        whole.mutable_flat<std::string>()[i] = StrCat("s", i);
      }
    }
    // Copies a box out of `whole` element by element.
    const auto box_of = [&](const TensorSlice& box) {
      Tensor out(whole.dtype(), box.shape());
      for (int64_t i = 0; i < out.num_elements(); ++i) {
        int64_t rest = i, from = 0, stride = 1;
        for (int d = rank - 1; d >= 0; --d) {
          from += (rest % box.extents[d].length + box.extents[d].start) * stride;
          rest /= box.extents[d].length;
          stride *= shape.dim(d);
        }
        if (strings) {
          out.mutable_flat<std::string>()[i] = whole.flat<std::string>()[from];
        } else {
          out.mutable_flat<int32_t>()[i] = whole.flat<int32_t>()[from];
        }
      }
      return out;
    };
    // Saves a grid of slices with one cut in every dimension.
    const std::string prefix = Prefix(StrCat("m", round));
    auto writer = NewWriter(prefix);
    std::vector<int64_t> cuts;
    for (int d = 0; d < rank; ++d) cuts.push_back(cut(shape.dim(d)));
    for (int corner = 0; corner < 1 << rank; ++corner) {
      TensorSlice box;
      for (int d = 0; d < rank; ++d) {
        const bool high = (corner >> d & 1) != 0;
        box.extents.push_back({high ? cuts[d] : 0, high ? shape.dim(d) - cuts[d] : cuts[d]});
      }
      if (box.shape().num_elements() == 0) continue;
      ASSERT_EQ(writer->AddSlice("w", shape, box, box_of(box)), OkStatus());
    }
    ASSERT_EQ(writer->Finish(), OkStatus());
    const auto reader = OpenReader(prefix);
    EXPECT_EQ(reader->Verify("w"), OkStatus());
    EXPECT_TRUE(SameTensor(*reader->Read("w"), whole));
    for (int i = 0; i < 10; ++i) {
      TensorSlice box;
      for (int d = 0; d < rank; ++d) {
        const int64_t start = static_cast<int64_t>(random() % shape.dim(d));
        box.extents.push_back({start, 1 + cut(shape.dim(d) - start - 1)});
      }
      const auto read = reader->ReadSlice("w", box);
      ASSERT_EQ(read.status(), OkStatus());
      EXPECT_TRUE(SameTensor(*read, box_of(box)));
    }
  }
}

TEST(Bundle, MisuseIsAnError) {
  auto writer = NewWriter(Prefix("m"));
  const Tensor two = Counting<float>({2});
  const TensorSlice first{{{0, 2}}}, second{{{2, 2}}};
  EXPECT_EQ(writer->Add("w", two), OkStatus());
  EXPECT_EQ(Message(writer->Add("w", two)), "tensor 'w' is saved twice");
  EXPECT_FALSE(writer->Add("", two).ok());
  EXPECT_EQ(writer->Add("r", Tensor(DType::kResource, {})).code(), StatusCode::kUnimplemented);
  EXPECT_FALSE(writer->AddSlice("w", {4}, first, two).ok());
  EXPECT_EQ(writer->AddSlice("p", {4}, first, two), OkStatus());
  EXPECT_FALSE(writer->AddSlice("p", {4}, first, two).ok());
  EXPECT_FALSE(writer->AddSlice("p", {5}, second, two).ok());
  EXPECT_FALSE(writer->AddSlice("p", {4}, second, Counting<int32_t>({2})).ok());
  EXPECT_FALSE(writer->AddSlice("p", {4}, second, Counting<float>({1})).ok());
  EXPECT_FALSE(writer->AddSlice("p", {4}, {{{3, 2}}}, two).ok());
  EXPECT_FALSE(writer->Add("p", two).ok());
  EXPECT_EQ(writer->Finish(), OkStatus());

  const auto reader = OpenReader(Prefix("m"));
  EXPECT_EQ(reader->tensors().size(), 2);
  EXPECT_EQ(reader->Read("nothing").status().code(), StatusCode::kNotFound);
  EXPECT_NE(Message(reader->Read("nothing").status()).find("Key nothing not found in checkpoint"),
            std::string::npos);
  EXPECT_EQ(Message(reader->Read("nothing").status()).find("did you mean"), std::string::npos);
  EXPECT_TRUE(SameTensor(*reader->ReadSlice("p", first), two));
  EXPECT_EQ(reader->Read("p").status().code(), StatusCode::kNotFound);  // only half of it was saved
  EXPECT_FALSE(reader->ReadSlice("w", {{{1, 2}}}).ok());
  EXPECT_FALSE(reader->ReadSlice("w", {}).ok());
  EXPECT_EQ(BundleReader::Open(env, Prefix("none")).status().code(), StatusCode::kNotFound);
}

// If a writer gets names or slices that readers reject, it publishes nothing.
TEST(Bundle, WhatNoReaderUnderstandsIsNotPublished) {
  const Tensor two = Counting<float>({2});
  const struct {
    std::string what;
    std::function<Status(BundleWriter&)> add;
  } cases[] = {
      {"overlap",
       [&](BundleWriter& writer) {
         RETURN_IF_ERROR(writer.AddSlice("p", {3}, {{{0, 2}}}, two));
         return writer.AddSlice("p", {3}, {{{1, 2}}}, two);
       }},
      {"a key has",
       [&](BundleWriter& writer) { return writer.Add(std::string(70'000, 'n'), two); }},
  };
  for (const auto& c : cases) {
    SaveModel(Prefix("m"));
    {
      auto writer = NewWriter(Prefix("m"));
      ASSERT_EQ(c.add(*writer), OkStatus());
      const Status status = writer->Finish();
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_NE(Message(status).find(c.what), std::string::npos) << status;
    }
    EXPECT_EQ(VerifyCheckpoint(env, Prefix("m")), OkStatus()) << "the one before is whole";
  }
  EXPECT_FALSE(NewWriter(Prefix("z"))->Add(std::string("\0w", 2), two).ok());
}

TEST(Bundle, AnUnfinishedOneLeavesNothing) {
  {
    auto writer = NewWriter(Prefix("m"));
    ASSERT_EQ(writer->Add("w", Counting<float>({2})), OkStatus());
  }
  EXPECT_EQ(*env.ListDirectory(DirectoryOf(Prefix("m"))), std::vector<std::string>());
}

TEST(Merge, RefusesWhatDoesNotFitAndLeavesItAlone) {
  const std::vector<std::string> parts = {Prefix("t/a"), Prefix("t/b")};
  for (const std::string& part : parts) {
    auto writer = NewWriter(part);
    ASSERT_EQ(writer->Add("same", Counting<float>({2})), OkStatus());
    ASSERT_EQ(writer->Finish(), OkStatus());
  }
  EXPECT_FALSE(MergeBundles(env, parts, Prefix("m")).ok());
  EXPECT_FALSE(MergeBundles(env, {parts[0], parts[0]}, Prefix("m")).ok());
  EXPECT_FALSE(MergeBundles(env, {parts[0], Prefix("t/c")}, Prefix("m")).ok());
  EXPECT_FALSE(MergeBundles(env, {}, Prefix("m")).ok());
  std::vector<std::string> overlapping = {Prefix("o/a"), Prefix("o/b")};
  for (int64_t start = 0; start < 2; ++start) {
    auto writer = NewWriter(overlapping[start]);
    ASSERT_EQ(writer->AddSlice("p", {3}, {{{start, 2}}}, Counting<float>({2})), OkStatus());
    ASSERT_EQ(writer->Finish(), OkStatus());
  }
  EXPECT_FALSE(MergeBundles(env, overlapping, Prefix("m")).ok());
  for (const std::string& part : overlapping) EXPECT_EQ(VerifyCheckpoint(env, part), OkStatus());
  EXPECT_EQ(MergeBundles(env, {Prefix("t/c")}, Prefix("m"), {.allow_missing = true}).code(),
            StatusCode::kNotFound);
  EXPECT_EQ(VerifyCheckpoint(env, parts[0]), OkStatus());
  EXPECT_FALSE(env.FileExists(IndexPath(Prefix("m"))));
  EXPECT_EQ(MergeBundles(env, {parts[1], Prefix("t/c")}, Prefix("m"), {.allow_missing = true}),
            OkStatus());
  EXPECT_EQ(VerifyCheckpoint(env, Prefix("m")), OkStatus());
  // MergeBundles removes a source's directory only if it is empty: this one still had parts[0].
  EXPECT_EQ(VerifyCheckpoint(env, parts[0]), OkStatus());
}

TEST(Checkpoints, GoOnFromTheNewestGoodOne) {
  const std::string directory = DirectoryOf(Prefix("x"));
  for (const int step : {9, 10, 100, 200}) SaveModel(Prefix(StrCat("model-", step)));
  const auto prefix = [](int step) { return Prefix(StrCat("model-", step)); };
  const std::vector<std::string> by_number = {prefix(200), prefix(100), prefix(10), prefix(9)};
  EXPECT_EQ(*ListCheckpoints(env, directory), by_number);

  // Checkpoints in the state file come first, then the others.
  ASSERT_EQ(WriteCheckpointState(env, directory,
                                 {.latest = "model-100", .all = {"model-9", prefix(100)}}),
            OkStatus());
  const std::vector<std::string> recorded = {prefix(100), prefix(9), prefix(200), prefix(10)};
  EXPECT_EQ(*ListCheckpoints(env, directory), recorded);
  EXPECT_EQ(FindNewestGood(env, directory)->prefix, prefix(100));

  // One checkpoint of the state file is damaged, and one does not exist.
  const std::string data = DataPath(prefix(100), 0, 1);
  std::string bytes = *env.ReadFile(data);
  bytes[17] ^= 1;
  ASSERT_EQ(env.WriteFileAtomically(data, bytes), OkStatus());
  ASSERT_EQ(env.RemoveFile(IndexPath(prefix(9))), OkStatus());
  const auto newest = FindNewestGood(env, directory);
  ASSERT_EQ(newest.status(), OkStatus());
  EXPECT_EQ(newest->prefix, prefix(200));
  ASSERT_EQ(newest->skipped.size(), 2);
  EXPECT_EQ(newest->skipped[0].why.code(), StatusCode::kDataLoss);
  EXPECT_NE(Message(newest->skipped[0].why).find("tensor 'w'"), std::string::npos);
  EXPECT_EQ(newest->skipped[1].why.code(), StatusCode::kNotFound);

  // An unreadable state file must not hide the checkpoints.
  ASSERT_EQ(env.WriteFileAtomically(directory + "/checkpoint", "model_checkpoint_path: "),
            OkStatus());
  EXPECT_EQ(ReadCheckpointState(env, directory).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(FindNewestGood(env, directory)->prefix, prefix(200));
}

TEST(Checkpoints, StateFileIsTensorFlows) {
  const std::string directory = DirectoryOf(Prefix("x"));
  ASSERT_EQ(env.CreateDirectories(directory), OkStatus());
  const CheckpointState state{.latest = "m-2",
                              .all = {"m-1", "m-2"},
                              .timestamps = {1.5, 2.5},
                              .last_preserved_timestamp = 0.5};
  ASSERT_EQ(WriteCheckpointState(env, directory, state), OkStatus());
  EXPECT_EQ(*env.ReadFile(directory + "/checkpoint"),
            "model_checkpoint_path: \"m-2\"\n"
            "all_model_checkpoint_paths: \"m-1\"\n"
            "all_model_checkpoint_paths: \"m-2\"\n"
            "all_model_checkpoint_timestamps: 1.5\n"
            "all_model_checkpoint_timestamps: 2.5\n"
            "last_preserved_timestamp: 0.5\n");
  const auto read = ReadCheckpointState(env, directory);
  ASSERT_EQ(read.status(), OkStatus());
  EXPECT_EQ(read->latest, state.latest);
  EXPECT_EQ(read->all, state.all);
  EXPECT_EQ(read->timestamps, state.timestamps);
  EXPECT_EQ(read->last_preserved_timestamp, 0.5);
}

}  // namespace
}  // namespace penstock
