// SPDX-License-Identifier: Apache-2.0
//
// Reads V1 checkpoints that TensorFlow 2.21 has written, and checks that Penstock writes the same
// bytes for the same tensors. Damaged and hostile files must give errors.
#include <gtest/gtest.h>
#include <snappy.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "core/base/crc32c.h"
#include "core/checkpoint/table.h"
#include "core/checkpoint/testing/crash_env.h"
#include "core/checkpoint/testing/damage.h"
#include "core/checkpoint/testing/golden_tensors.h"
#include "core/checkpoint/v1_reader.h"
#include "core/checkpoint/v1_writer.h"
#include "core/checkpoint/varint.h"
#include "proto/tensorflow/checkpoint.pb.h"

namespace penstock {
namespace {

constexpr char kGolden[] = "core/checkpoint/testdata/v1";
constexpr char kShardedPath[] = "core/checkpoint/testdata/v1_shards-\?\?\?\?\?-of-00002";

// The tensors of the types that the format supports.
std::vector<Saved> V1Tensors() {
  std::vector<Saved> tensors = GoldenTensors();
  std::erase_if(tensors, [](const Saved& saved) {
    const DType dtype = saved.tensor.dtype();
    return dtype == DType::kUint32 || dtype == DType::kUint64 || dtype == DType::kBfloat16;
  });
  // TensorFlow sorted the tensors by name when it saved them, which swapped these two.
  const auto grid = std::find_if(tensors.begin(), tensors.end(),
                                 [](const Saved& saved) { return saved.name == "grid"; });
  std::iter_swap(grid, grid + 1);
  return tensors;
}

TEST(V1, GoldenIsRead) {
  const auto reader = OpenCheckpoint(Env::Real(), kGolden);
  ASSERT_EQ(reader.status(), OkStatus());
  const std::vector<Saved> tensors = V1Tensors();
  EXPECT_EQ((*reader)->names().size(), tensors.size() - 2);  // two have two slices each
  ExpectHolds(**reader, tensors);
  ExpectHolds(**reader, {{"part", Counting<float>({5, 3}), ""},
                         {"part", Tensor::Of<float>({2, 1}, {4, 7}), "5 3 1,2:1,1"},
                         {"whole_as_slice", Tensor::Vector<float>({1, 2}), ""},
                         {"scalar", Tensor::Scalar<int64_t>(42), ""}});
}

TEST(V1, GoldenIsWrittenByteForByte) {
  const std::string path = testing::TempDir() + "/v1";
  V1Writer writer(Env::Real(), path);
  ASSERT_EQ(SaveAll(writer, V1Tensors()), OkStatus());
  ExpectSameFile(path, kGolden);
}

TEST(V1, ShardsAreOneCheckpoint) {
  const auto reader = OpenCheckpoint(Env::Real(), kShardedPath);
  ASSERT_EQ(reader.status(), OkStatus());
  ExpectHolds(**reader, {{"part", Counting<float>({5, 3}), ""},
                         {"a", Tensor::Vector<float>({1, 2}), ""},
                         {"b", Tensor::Vector<std::string>({"b"}), ""}});
  const auto second = V1Reader::Open(Env::Real(), kShardedPath, 1);
  ASSERT_EQ(second.status(), OkStatus());
  EXPECT_EQ((*second)->names(), (std::vector<std::string>{"b", "part"}));
  EXPECT_EQ((*second)->ReadSlice("part", TensorSlice::Whole(2)).status().code(),
            StatusCode::kNotFound);
}

TEST(V1, WhatTheFormatCannotHoldIsRefused) {
  V1Writer writer(Env::Real(), testing::TempDir() + "/refused");
  EXPECT_EQ(writer.Add("a", Tensor::Vector<uint32_t>({1})).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(writer.Add("", Tensor::Vector<float>({1})).code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(writer.Add("a", Tensor::Vector<float>({1})), OkStatus());
  EXPECT_EQ(writer.Add("a", Tensor::Vector<float>({1})).code(), StatusCode::kInvalidArgument);
  const TensorSlice first = {{{0, 1}}}, second = {{{1, 1}}};
  EXPECT_EQ(writer.AddSlice("b", {2}, first, Tensor::Vector<float>({1, 2})).code(),
            StatusCode::kInvalidArgument);
  ASSERT_EQ(writer.AddSlice("b", {2}, first, Tensor::Vector<float>({1})), OkStatus());
  EXPECT_EQ(writer.AddSlice("b", {2}, second, Tensor::Vector<int32_t>({1})).code(),
            StatusCode::kInvalidArgument);
}

TEST(V1, WhatNoReaderTakesReplacesNothing) {
  CrashEnv env;
  ASSERT_EQ(env.WriteFileAtomically("/v1", "before"), OkStatus());
  V1Writer overlapping(env, "/v1");
  const TensorSlice two = {{{0, 2}}}, three = {{{1, 2}}};
  ASSERT_EQ(overlapping.AddSlice("w", {3}, two, Tensor::Vector<float>({1, 2})), OkStatus());
  ASSERT_EQ(overlapping.AddSlice("w", {3}, three, Tensor::Vector<float>({2, 3})), OkStatus());
  EXPECT_EQ(overlapping.Finish(), InvalidArgument("tensor 'w': slices '0,2' and '1,2' overlap"));
  V1Writer long_named(env, "/v1");
  ASSERT_EQ(long_named.Add(std::string(70'000, 'n'), Tensor::Vector<float>({1})), OkStatus());
  EXPECT_EQ(long_named.Finish().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(*env.ReadFile("/v1"), "before");
}

class DamagedV1Test : public testing::Test {
 protected:
  static constexpr char kPath[] = "/v1";
  static std::vector<Saved> Tensors() {
    return {{"flags", Tensor::Vector<bool>({true, false}), ""},
            {"names", Tensor::Vector<std::string>({"a", "", "long enough to be seen"}), ""},
            {"sliced", Counting<int32_t>({2, 3}), "4 3 0,2:-"},
            {"sliced", Counting<int32_t>({2, 3}, 6), "4 3 2,2:-"},
            {"weights", Counting<float>({5, 7}), ""}};
  }

  void SetUp() override {
    V1Writer writer(env_, kPath);
    ASSERT_EQ(SaveAll(writer, Tensors()), OkStatus());
    contents_ = *env_.ReadFile(kPath);
    ASSERT_EQ(ReadWith(contents_), OkStatus());
  }
  // Returns OK if every tensor can be read with the right value, else the error. A wrong value
  // fails the test.
  Status ReadWith(const std::string& contents) {
    EXPECT_EQ(env_.WriteFileAtomically(kPath, contents), OkStatus());
    ASSIGN_OR_RETURN(const auto reader, V1Reader::Open(env_, kPath));
    std::vector<Saved> wanted = Tensors();
    wanted.push_back({"sliced", Counting<int32_t>({4, 3}), ""});
    for (const Saved& saved : wanted) {
      ASSIGN_OR_RETURN(const Tensor read, reader->ReadAs(saved.tensor.dtype(), saved.name,
                                                         saved.slice, CpuAllocator()));
      EXPECT_TRUE(SameTensor(read, saved.tensor)) << saved.name << " is " << read.ToString();
    }
    return OkStatus();
  }
  std::map<std::string, std::string> Entries() {
    std::map<std::string, std::string> entries;
    EXPECT_EQ(VisitTable(contents_,
                         [&](string_view key, string_view value) {
                           entries.emplace(key, value);
                           return OkStatus();
                         }),
              OkStatus());
    return entries;
  }
  // Reads a file with one entry changed, with checksums that match.
  Status ReadWithEntry(const std::string& key,
                       const std::function<void(tensorflow::SavedTensorSlices&)>& change) {
    std::map<std::string, std::string> entries = Entries();
    tensorflow::SavedTensorSlices proto;
    EXPECT_TRUE(proto.ParseFromString(entries.at(key)));
    change(proto);
    entries[key] = proto.SerializeAsString();
    return ReadWith(*BuildTable(entries));
  }

  CrashEnv env_;
  std::string contents_;
};

TEST_F(DamagedV1Test, EveryFlippedBitIsDetected) {
  ExpectFlippedBitsAreDetected(contents_,
                               [this](const std::string& damaged) { return ReadWith(damaged); });
}

TEST_F(DamagedV1Test, EveryTruncationIsDetected) {
  ExpectTruncationsAreDetected(contents_,
                               [this](const std::string& damaged) { return ReadWith(damaged); });
}

TEST_F(DamagedV1Test, PiecesCopiedAboutAreDetected) {
  ExpectCopiedPiecesAreDetected(contents_,
                                [this](const std::string& damaged) { return ReadWith(damaged); });
}

TEST_F(DamagedV1Test, ListsThatLieAreErrors) {
  using Slices = tensorflow::SavedTensorSlices;
  const auto tensor = [](Slices& slices, int i) {
    return slices.mutable_meta()->mutable_tensor(i);
  };
  const std::vector<std::function<void(Slices&)>> lies = {
      [&](Slices& s) { s.mutable_meta()->mutable_versions()->set_min_consumer(2); },
      [&](Slices& s) { s.mutable_meta()->clear_tensor(); },
      [&](Slices& s) { tensor(s, 3)->set_type(tensorflow::DT_INT32); },
      [&](Slices& s) { tensor(s, 3)->set_type(tensorflow::DT_VARIANT); },
      [&](Slices& s) { tensor(s, 3)->set_type(static_cast<tensorflow::DataType>(99)); },
      [&](Slices& s) { tensor(s, 3)->mutable_shape()->mutable_dim(0)->set_size(1LL << 50); },
      [&](Slices& s) { tensor(s, 3)->mutable_shape()->mutable_dim(0)->set_size(-1); },
      [&](Slices& s) { tensor(s, 3)->mutable_shape()->mutable_dim(0)->set_size(6); },
      [&](Slices& s) { tensor(s, 3)->mutable_shape()->set_unknown_rank(true); },
      [&](Slices& s) { tensor(s, 3)->clear_slice(); },
      [&](Slices& s) { tensor(s, 3)->set_name("heights"); },
      [&](Slices& s) { *s.mutable_meta()->add_tensor() = s.meta().tensor(3); },
      [&](Slices& s) { tensor(s, 2)->mutable_slice()->RemoveLast(); },
      [&](Slices& s) { tensor(s, 2)->mutable_slice(1)->mutable_extent(0)->set_start(1); },
      [&](Slices& s) { tensor(s, 2)->mutable_slice(1)->mutable_extent(0)->set_length(3); },
      [&](Slices& s) { tensor(s, 2)->mutable_slice(1)->add_extent(); },
  };
  for (size_t i = 0; i < lies.size(); ++i) EXPECT_FALSE(ReadWithEntry("", lies[i]).ok()) << i;
}

TEST_F(DamagedV1Test, ValuesThatLieAreErrors) {
  using Slices = tensorflow::SavedTensorSlices;
  const auto data = [](Slices& slices) { return slices.mutable_data()->mutable_data(); };
  const std::vector<std::function<void(Slices&)>> lies = {
      [&](Slices& s) { s.mutable_data()->set_name("flags"); },
      [&](Slices& s) { s.clear_data(); },
      [&](Slices& s) { data(s)->add_float_val(1); },
      [&](Slices& s) { data(s)->mutable_float_val()->RemoveLast(); },
      [&](Slices& s) { data(s)->clear_float_val(); },
  };
  const std::string key = SliceKey("weights", TensorSlice::Whole(2));
  for (size_t i = 0; i < lies.size(); ++i) EXPECT_FALSE(ReadWithEntry(key, lies[i]).ok()) << i;
  std::map<std::string, std::string> entries = Entries();
  entries[key] = "\xff\xff";
  EXPECT_FALSE(ReadWith(*BuildTable(entries)).ok());
  entries.erase(key);
  EXPECT_FALSE(ReadWith(*BuildTable(entries)).ok());
  entries.erase("");
  EXPECT_FALSE(ReadWith(*BuildTable(entries)).ok());
}

// Builds a table with one data block, `stored`, as it is in the file.
std::string TableOf(const std::string& stored, char kind) {
  std::string file;
  const auto put_block = [&](const std::string& contents, char block_kind) {
    std::string handle;
    AppendVarint(file.size(), &handle);
    AppendVarint(contents.size(), &handle);
    file += contents + block_kind;
    const uint32_t crc = MaskCrc(Crc32c(contents + block_kind));
    file.append(reinterpret_cast<const char*>(&crc), sizeof crc);
    return handle;
  };
  const std::string data = put_block(stored, kind);
  const std::string none("\0\0\0\0\1\0\0\0", 8);
  std::string index;
  AppendVarint(0, &index);
  AppendVarint(1, &index);
  AppendVarint(data.size(), &index);
  index += "z" + data + none;
  std::string footer = put_block(none, 0);
  footer += put_block(index, 0);
  footer.resize(40);
  return file + footer + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
}

TEST_F(DamagedV1Test, SnappyBlocksAreRead) {
  // The golden table has one data block, at the beginning of the file.
  std::string plain;
  for (const auto& [key, value] : Entries()) {
    AppendVarint(0, &plain);
    AppendVarint(key.size(), &plain);
    AppendVarint(value.size(), &plain);
    plain += key + value;
  }
  plain += std::string("\0\0\0\0\1\0\0\0", 8);
  std::string packed;
  snappy::Compress(plain.data(), plain.size(), &packed);
  ASSERT_LT(packed.size(), plain.size());
  EXPECT_EQ(ReadWith(TableOf(packed, 1)), OkStatus());
  for (size_t byte = 0; byte < packed.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = packed;  // with a matching checksum: must not crash
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
      EXPECT_EQ(env_.WriteFileAtomically(kPath, TableOf(damaged, 1)), OkStatus());
      const auto reader = V1Reader::Open(env_, kPath);
      if (!reader.ok()) continue;
      for (const std::string& name : (*reader)->names()) {
        const auto saved = (*reader)->Describe(name);
        (*reader)->ReadSlice(name, TensorSlice::Whole(saved->shape.rank())).status().IgnoreError();
      }
    }
  }
  // A block of a few bytes whose header claims four gigabytes.
  EXPECT_EQ(ReadWith(TableOf(std::string("\xff\xff\xff\xff\x0f", 5), 1)).code(),
            StatusCode::kDataLoss);
}

}  // namespace
}  // namespace penstock
