// SPDX-License-Identifier: Apache-2.0
//
// Tests damaged files: every flipped bit, every truncation, and random pieces copied to other
// places. Reading must return an error or the right values.
#include <gtest/gtest.h>

#include <random>

#include "core/base/crc32c.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/table.h"
#include "core/checkpoint/testing/crash_env.h"
#include "core/checkpoint/testing/damage.h"
#include "core/checkpoint/testing/test_tensors.h"
#include "core/checkpoint/testing/test_variant.h"
#include "core/checkpoint/varint.h"

namespace penstock {
namespace {

constexpr char kPrefix[] = "/m";

std::vector<std::pair<std::string, Tensor>> Tensors() {
  return {{"weights", Counting<float>({5, 7})},
          {"names", Tensor::Vector<std::string>({"a", "", "long enough to be seen"})},
          {"flags", Tensor::Vector<bool>({true, false})},
          {"step", Tensor::Scalar<int64_t>(7)},
          {"state", Tensor::Vector<Variant>({TestVariant::Of("t", {Counting<int32_t>({3})}),
                                             TestVariant::Of("", {}), Variant()})}};
}

Status Save(Env& env) {
  ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(env, kPrefix));
  for (const auto& [name, tensor] : Tensors()) RETURN_IF_ERROR(writer->Add(name, tensor));
  for (int64_t row : {0, 2}) {
    RETURN_IF_ERROR(
        writer->AddSlice("sliced", {4, 3}, {{{row, 2}, {}}}, Counting<int32_t>({2, 3}, 3.0 * row)));
  }
  return writer->Finish();
}

Status WriteFile(Env& env, const std::string& path, string_view contents) {
  ASSIGN_OR_RETURN(const auto file, env.NewWritableFile(path));
  RETURN_IF_ERROR(file->Append(contents));
  return file->Close();
}

// Returns OK if every tensor can be read and its checksum is right, else the first error. A wrong
// value fails the test.
Status ReadAll(Env& env) {
  ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(env, kPrefix));
  const auto expect = [&](const std::string& name, const Tensor& expected) -> Status {
    ASSIGN_OR_RETURN(const Tensor tensor, reader->Read(name));
    EXPECT_TRUE(SameTensor(tensor, expected)) << name << " is " << tensor.ToString();
    return reader->Verify(name);
  };
  for (const auto& [name, tensor] : Tensors()) RETURN_IF_ERROR(expect(name, tensor));
  return expect("sliced", Counting<int32_t>({4, 3}));
}

class CorruptionTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_EQ(Save(env_), OkStatus());
    ASSERT_EQ(ReadAll(env_), OkStatus());
    contents_ = *env_.ReadFile(GetParam());
  }
  Status ReadWith(const std::string& contents) {
    EXPECT_EQ(WriteFile(env_, GetParam(), contents), OkStatus());
    return ReadAll(env_);
  }
  CrashEnv env_;
  std::string contents_;
};

TEST_P(CorruptionTest, EveryFlippedBitIsDetected) {
  ExpectFlippedBitsAreDetected(contents_,
                               [this](const std::string& damaged) { return ReadWith(damaged); });
}

TEST_P(CorruptionTest, EveryTruncationIsDetected) {
  ExpectTruncationsAreDetected(contents_,
                               [this](const std::string& damaged) { return ReadWith(damaged); });
}

TEST_P(CorruptionTest, PiecesCopiedAboutAreDetected) {
  ExpectCopiedPiecesAreDetected(contents_,
                                [this](const std::string& damaged) { return ReadWith(damaged); });
}

INSTANTIATE_TEST_SUITE_P(Files, CorruptionTest,
                         testing::Values(IndexPath(kPrefix), DataPath(kPrefix, 0, 1)),
                         [](const auto& info) { return info.index == 0 ? "Index" : "Data"; });

// Damages an index and makes its checksums match: a hostile file.
class HostileIndexTest : public testing::Test {
 protected:
  // Reads the checkpoint that Save has written, after one change to its index's table.
  Status ReadWith(const std::function<void(std::map<std::string, std::string>&)>& change) {
    EXPECT_EQ(Save(env_), OkStatus());
    std::map<std::string, std::string> entries;
    EXPECT_EQ(VisitTable(*env_.ReadFile(IndexPath(kPrefix)),
                         [&](string_view key, string_view value) {
                           entries.emplace(key, value);
                           return OkStatus();
                         }),
              OkStatus());
    change(entries);
    EXPECT_EQ(WriteFile(env_, IndexPath(kPrefix), *BuildTable(entries)), OkStatus());
    return ReadAll(env_);
  }
  Status ReadWithEntry(const std::string& name, const std::function<void(BundleEntry&)>& change) {
    return ReadWith([&](auto& entries) {
      BundleEntry entry = *ParseBundleEntry(entries.at(name));
      change(entry);
      entries[name] = SerializeBundleEntry(entry);
    });
  }
  CrashEnv env_;
};

TEST_F(HostileIndexTest, EntriesThatLieAreErrors) {
  constexpr int64_t kHuge = int64_t{1} << 60;
  const std::vector<std::function<void(BundleEntry&)>> lies = {
      [](BundleEntry& e) { e.shape = Shape({kHuge}); },
      [](BundleEntry& e) { e.size = kHuge; },
      [](BundleEntry& e) { e.size = -1; },
      [](BundleEntry& e) { e.offset = -1; },
      [](BundleEntry& e) { e.offset = std::numeric_limits<int64_t>::max(); },
      [](BundleEntry& e) { e.shard = 1; },
      [](BundleEntry& e) { e.shard = -1; },
      [](BundleEntry& e) { e.dtype = DType::kInvalid; },
      [](BundleEntry& e) { e.dtype = DType::kVariant; },
      [](BundleEntry& e) { e.dtype = DType::kResource; },
      [](BundleEntry& e) { e.dtype = DType::kString; },
      [](BundleEntry& e) {
        e.shape = Shape({kHuge / 4});
        e.size = kHuge;
      },
  };
  for (size_t i = 0; i < lies.size(); ++i) {
    EXPECT_FALSE(ReadWithEntry("weights", lies[i]).ok()) << i;
    EXPECT_FALSE(ReadWithEntry("names", lies[i]).ok() && i != 10) << i;
    EXPECT_FALSE(ReadWithEntry(SliceKey("sliced", {{{2, 2}, {}}}), lies[i]).ok()) << i;
  }
}

TEST_F(HostileIndexTest, SlicesThatLieAreErrors) {
  const std::vector<std::function<void(BundleEntry&)>> lies = {
      [](BundleEntry& e) { e.slices.pop_back(); },              // part of the tensor is missing
      [](BundleEntry& e) { e.slices.push_back(e.slices[0]); },  // twice
      [](BundleEntry& e) {
        e.slices[1] = {{{1, 2}, {}}};
      },  // does not exist
      [](BundleEntry& e) {
        e.shape = Shape({int64_t{1} << 50, 3});
      },  // only a small part exists
      [](BundleEntry& e) { e.dtype = DType::kFloat; },
      [](BundleEntry& e) { e.slices.clear(); },
  };
  for (size_t i = 0; i < lies.size(); ++i) {
    EXPECT_FALSE(ReadWithEntry("sliced", lies[i]).ok()) << i;
  }
}

// If slices could share bytes, a file of a megabyte could hold a tensor of any size.
TEST_F(HostileIndexTest, SlicesThatShareBytesAreErrors) {
  const Status status = ReadWith([](auto& entries) {
    const std::string first = SliceKey("sliced", {{{0, 2}, {}}});
    entries[SliceKey("sliced", {{{2, 2}, {}}})] = entries.at(first);
  });
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("two of its slices share byte"), std::string::npos) << status;
}

TEST_F(HostileIndexTest, HeadersThatLieAreErrors) {
  for (const int shards : {0, -1, 1 << 30}) {
    EXPECT_FALSE(
        ReadWith([&](auto& entries) { entries[""] = SerializeBundleHeader(shards); }).ok());
  }
  EXPECT_FALSE(ReadWith([](auto& entries) { entries.erase(""); }).ok());
  EXPECT_FALSE(ReadWith([](auto& entries) { entries[""] = "\x10\x01"; }).ok());  // big-endian
  EXPECT_FALSE(ReadWith([](auto& entries) { entries["weights"] = "\xff\xff"; }).ok());
}

// Because keys share prefixes, a small file could need unlimited memory for its keys.
TEST(HostileTable, ExpandingKeysAreBounded) {
  std::string block;
  const auto add = [&](uint64_t shared, const std::string& suffix) {
    AppendVarint(shared, &block);
    AppendVarint(suffix.size(), &block);
    AppendVarint(0, &block);
    block += suffix;
  };
  add(0, std::string(60000, 'a'));
  for (int i = 0; i < 1000000; ++i) {
    std::string suffix = {static_cast<char>(i >> 16), static_cast<char>(i >> 8),
                          static_cast<char>(i)};
    add(60000, "b" + suffix);
  }
  block += std::string("\0\0\0\0\1\0\0\0", 8);
  std::string file;
  const auto put_block = [&](const std::string& contents) {
    std::string handle;
    AppendVarint(file.size(), &handle);
    AppendVarint(contents.size(), &handle);
    file += contents + '\0';
    const uint32_t crc = MaskCrc(Crc32c(contents + '\0'));
    file.append(reinterpret_cast<const char*>(&crc), 4);
    return handle;
  };
  const std::string data = put_block(block);
  const std::string none("\0\0\0\0\1\0\0\0", 8);
  std::string index;
  AppendVarint(0, &index);
  AppendVarint(1, &index);
  AppendVarint(data.size(), &index);
  index += "z" + data + none;
  std::string footer = put_block(none) + put_block(index);
  footer.resize(40);
  file += footer + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
  size_t bytes = 0;
  const Status status = VisitTable(file, [&](string_view key, string_view) {
    bytes += key.size();
    return OkStatus();
  });
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
  EXPECT_LT(bytes, 65 * file.size());
}

TEST(HostileTable, RandomBytesEndInErrors) {
  std::mt19937 random(7);
  for (int i = 0; i < 100000; ++i) {
    std::string file(random() % 200, '\0');
    for (char& c : file) c = static_cast<char>(random());
    if (i % 2 == 0) file += "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
    EXPECT_FALSE(VisitTable(file, [](string_view, string_view) { return OkStatus(); }).ok());
  }
}

}  // namespace
}  // namespace penstock
