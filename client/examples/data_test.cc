// SPDX-License-Identifier: Apache-2.0
//
// Tests reading of valid and damaged IDX files, and batches.
#include <zlib.h>

#include <set>

#include "client/examples/fashion_mnist_data.h"
#include "client/examples/idx.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::examples {
namespace {

using testing::HasSubstr;

std::string Write(const std::string& name, const std::string& bytes) {
  const std::string path = StrCat(testing::TempDir(), "/", name);
  CHECK_OK(Env::Real().WriteFileAtomically(path, bytes));
  return path;
}

std::string Zip(const std::string& bytes) {
  const std::string path = testing::TempDir() + "/zipped.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  return *Env::Real().ReadFile(path);
}

std::string U32(uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8),
          static_cast<char>(v)};
}

std::string Idx(const std::vector<uint32_t>& dims, const std::string& data) {
  std::string bytes = U32(0x800 + static_cast<uint32_t>(dims.size()));
  for (const uint32_t d : dims) bytes += U32(d);
  return bytes + data;
}

TEST(IdxTest, PlainAndCompressed) {
  const std::string bytes = Idx({2, 3}, std::string("\x01\x02\x03\x04\x05\xff"));
  for (const std::string& stored : {bytes, Zip(bytes)}) {
    const auto tensor = ReadIdx(Env::Real(), Write("good", stored));
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->shape(), Shape({2, 3}));
    EXPECT_EQ(tensor->flat<uint8_t>()[5], 255);
  }
}

TEST(IdxTest, BrokenFilesSayWhatIsWrong) {
  const std::string good = Idx({2, 3}, "123456");
  std::string truncated = Zip(good);
  truncated.resize(truncated.size() - 6);
  const struct {
    const char* name;
    std::string bytes;
    const char* error;
  } cases[] = {
      {"empty", "", "too short for an IDX header"},
      {"header", good.substr(0, 9), "too short for its 2 dimensions"},
      {"short", good.substr(0, 15), "has 3 bytes of data, its header [2,3] says 6"},
      {"long", good + "7", "has 7 bytes of data"},
      {"floats", U32(0xD01) + U32(1) + "1234", "expected an IDX file of unsigned bytes"},
      {"huge", Idx({0xffffffff, 0xffffffff, 0xffffffff}, ""), "more elements than an int64"},
      {"truncated", truncated, "not a whole gzip file"},
      {"bomb", Zip(Idx({1 << 22}, std::string(1 << 22, 'x'))), "unpacks to more than"},
  };
  for (const auto& c : cases) {
    const std::string path = Write(c.name, c.bytes);
    const auto tensor = ReadIdx(Env::Real(), path, /*bytes_max=*/1 << 20);
    EXPECT_EQ(tensor.status().code(), StatusCode::kInvalidArgument) << c.name;
    EXPECT_THAT(std::string(tensor.status().message()), HasSubstr(c.error)) << c.name;
    EXPECT_THAT(std::string(tensor.status().message()), HasSubstr(path)) << c.name;
  }
  EXPECT_EQ(ReadIdx(Env::Real(), "/no/such/file").status().code(), StatusCode::kNotFound);
}

TEST(FashionMnistTest, AMissingDirectoryIsExplained) {
  const auto data = ReadFashionMnist(Env::Real(), "/nowhere");
  EXPECT_EQ(data.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(data.status().message()), HasSubstr("dataset-fashion-mnist"));
}

// Returns pictures in which picture k is filled with k and has the label k.
Pictures Numbered(int64_t count) {
  Pictures pictures{Tensor(DType::kUint8, {count, 28, 28}), Tensor(DType::kUint8, {count})};
  for (int64_t k = 0; k < count; ++k) {
    pictures.labels.mutable_flat<uint8_t>()[k] = static_cast<uint8_t>(k);
    for (int64_t p = 0; p < 784; ++p) {
      pictures.images.mutable_flat<uint8_t>()[k * 784 + p] = static_cast<uint8_t>(k);
    }
  }
  return pictures;
}

TEST(BatchesTest, AnEpochShowsEveryPictureOnceAndEachInAnotherOrder) {
  Batches batches(Numbered(22), 5, 1);  // an epoch is four batches; two pictures are dropped
  std::vector<uint8_t> orders[2];
  int64_t number = 0;
  for (auto& order : orders) {
    for (int b = 0; b < 4; ++b) {
      const Pictures batch = batches.Get(number++);
      for (int i = 0; i < 5; ++i) {
        order.push_back(batch.labels.flat<uint8_t>()[i]);
        EXPECT_EQ(batch.images.flat<uint8_t>()[i * 784 + 783], order.back());
      }
    }
    EXPECT_EQ(std::set<uint8_t>(order.begin(), order.end()).size(), 20u);
  }
  EXPECT_NE(orders[0], orders[1]);
}

TEST(BatchesTest, ABatchDependsOnSeedAndNumberAlone) {
  const auto get = [](uint64_t seed, const std::vector<int64_t>& numbers) {
    Batches batches(Numbered(50), 20, seed);
    std::string last;
    for (const int64_t number : numbers) last = batches.Get(number).labels.ToString(20);
    return last;
  };
  EXPECT_EQ(get(7, {9}), get(7, {0, 1, 2, 3, 9}));
  EXPECT_NE(get(7, {9}), get(8, {9}));
  EXPECT_NE(get(7, {9}), get(7, {8}));
}

}  // namespace
}  // namespace penstock::examples
