// SPDX-License-Identifier: Apache-2.0
//
// Tests the parts of a shard separately: compares random operations on the index with a std::map,
// and approximate counts of keys with exact counts; initial values; lack of memory.
#include "kernels/dynamic_table/table_shard.h"

#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(KeyIndex, IsAMap) {
  std::mt19937_64 random(1);
  KeyIndex index;
  std::map<int64_t, int32_t> model;
  const int64_t kSpecial[] = {0, -1, INT64_MIN, INT64_MAX};
  for (int i = 0; i < 200'000; ++i) {
    const int64_t key =
        random() % 50 == 0 ? kSpecial[random() % 4] : static_cast<int64_t>(random() % 3000) - 1000;
    const auto it = model.find(key);
    ASSERT_EQ(index.Find(key, HashKey(key)), it == model.end() ? KeyIndex::kNone : it->second);
    if (it == model.end() && random() % 3 != 0) {
      ASSERT_TRUE(index.Reserve(CpuAllocator(), index.size() + 1).ok());
      index.Insert(key, HashKey(key), i);
      model[key] = i;
    } else if (it != model.end() && random() % 3 == 0) {
      index.Erase(key, HashKey(key));
      model.erase(it);
    }
    ASSERT_EQ(index.size(), std::ssize(model));
  }
  for (const auto& [key, row] : model) EXPECT_EQ(index.Find(key, HashKey(key)), row);
  index.Clear();
  EXPECT_EQ(index.Find(0, HashKey(0)), KeyIndex::kNone);
}

TEST(KeyIndex, ManyKeysOfOneHashBucket) {
  // Keys whose searches begin at the last two entries of the smallest index, so that they wrap
  // around.
  std::vector<int64_t> keys;
  for (int64_t key = 0; keys.size() < 40; ++key) {
    if ((HashKey(key) & 63) >= 62) keys.push_back(key);
  }
  KeyIndex index;
  ASSERT_TRUE(index.Reserve(CpuAllocator(), 48).ok());
  for (size_t i = 0; i < keys.size(); ++i) index.Insert(keys[i], HashKey(keys[i]), i);
  for (size_t i = 0; i < keys.size(); i += 2) index.Erase(keys[i], HashKey(keys[i]));
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(index.Find(keys[i], HashKey(keys[i])), i % 2 == 0 ? KeyIndex::kNone : int32_t(i));
  }
}

TEST(AdmissionFilter, AdmitsTheThirdTime) {
  AdmissionFilter filter(3, 1 << 12);
  ASSERT_TRUE(filter.Reserve(CpuAllocator()).ok());
  std::map<int64_t, int> counts;
  std::mt19937_64 random(2);
  int wrong = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto key = static_cast<int64_t>(random() % 500);
    const bool admitted = filter.Admit(HashKey(key));
    const bool expected = ++counts[key] == 3;
    if (expected) counts[key] = 0;  // the filter subtracts the count, too
    wrong += admitted != expected ? 1 : 0;
  }
  EXPECT_LT(wrong, 150);  // at most 5 % of the answers are wrong
}

TEST(AdmissionFilter, OldCountsFade) {
  AdmissionFilter filter(200, 64);
  ASSERT_TRUE(filter.Reserve(CpuAllocator()).ok());
  for (int64_t key = 0; key < 100'000; ++key) ASSERT_FALSE(filter.Admit(HashKey(key))) << key;
}

TEST(AdmissionFilter, OneAdmitsAll) {
  AdmissionFilter filter(1, 1 << 12);
  EXPECT_TRUE(filter.Admit(5));
}

TEST(RowInitializer, DependsOnSeedAndKeyAlone) {
  using Kind = RowInitializer::Kind;
  const auto fill = [](Kind kind, int64_t seed, int64_t key, int64_t count) {
    std::vector<float> values(count);
    RowInitializer{.kind = kind, .a = 1, .b = 3, .seed = seed}.Fill(key, values.data(), count);
    return values;
  };
  EXPECT_EQ(fill(Kind::kConstant, 5, 7, 3), std::vector<float>(3, 1));
  for (const Kind kind : {Kind::kUniform, Kind::kNormal}) {
    const auto row = fill(kind, 5, 7, 9);
    EXPECT_EQ(row, fill(kind, 5, 7, 9));
    EXPECT_NE(row, fill(kind, 5, 8, 9));
    EXPECT_NE(row, fill(kind, 6, 7, 9));
    double sum = 0, squares = 0;
    constexpr int kKeys = 2000, kWidth = 5;
    for (int64_t key = 0; key < kKeys; ++key) {
      for (const float x : fill(kind, 5, key, kWidth)) {
        if (kind == Kind::kUniform) {
          ASSERT_TRUE(x >= 1 && x < 3) << x;
        }
        sum += x;
        squares += x * x;
      }
    }
    const double mean = sum / kKeys / kWidth;
    const double deviation = std::sqrt(squares / kKeys / kWidth - mean * mean);
    EXPECT_NEAR(mean, kind == Kind::kUniform ? 2 : 1, 0.1);
    EXPECT_NEAR(deviation, kind == Kind::kUniform ? 1 / std::sqrt(3.0) : 3, 0.1);
  }
}

TEST(RowInitializer, UniformNumbersStayBelowTheBound) {
  // Half of the random numbers would be rounded up to the bound b.
  const float a = 1 << 24, b = a + 2;
  const RowInitializer uniform{.kind = RowInitializer::Kind::kUniform, .a = a, .b = b};
  std::vector<float> row(100);
  uniform.Fill(1, row.data(), std::ssize(row));
  for (const float x : row) EXPECT_TRUE(x >= a && x < b) << x;
}

TEST(RowBlocks, RowsStayWhereTheyAre) {
  for (const int64_t floats : {1, 500, 200'000}) {  // 256, 128 and 1 rows per block
    RowBlocks rows(floats);
    constexpr int kRows = 300;
    std::vector<float*> places;
    for (int i = 0; i < kRows; ++i) {
      ASSERT_TRUE(rows.Reserve(CpuAllocator(), 1).ok());
      const int32_t row = rows.Take();
      ASSERT_EQ(row, i);
      places.push_back(rows.values(row));
      rows.header(row) = {.key = i};
      places[i][0] = places[i][floats - 1] = static_cast<float>(i);
      if (floats == 200'000 && i == 20) break;
    }
    for (int32_t i = 0; i < rows.end(); ++i) {
      EXPECT_EQ(rows.header(i).key, i);
      EXPECT_EQ(rows.values(i), places[i]);
      EXPECT_EQ(rows.values(i)[0], i);
      EXPECT_EQ(rows.values(i)[floats - 1], i);
    }
    rows.Release(7);
    rows.Release(3);
    EXPECT_EQ(rows.Take(), 3);
    EXPECT_EQ(rows.Take(), 7);
    const int32_t end = rows.end();
    EXPECT_EQ(rows.Take(), end);
  }
}

// An allocator with `left` bytes of memory.
class SmallMemory final : public Allocator {
 public:
  const std::string& name() const override { return name_; }
  void* Allocate(size_t bytes) override {
    if (static_cast<int64_t>(bytes) > left) return nullptr;
    left -= static_cast<int64_t>(bytes);
    return CpuAllocator().Allocate(bytes);
  }
  void Deallocate(void* pointer, size_t bytes) override {
    left += static_cast<int64_t>(bytes);
    CpuAllocator().Deallocate(pointer, bytes);
  }
  AllocatorStats stats() const override { return {}; }

  int64_t left = 0;

 private:
  const std::string name_ = "small";
};

// A shard, and pushes that add 1 to the first float of each row.
struct Pushes {
  explicit Pushes(const TableSpec& its) : spec(its), shard(spec, epochs, Env::Real()) {}
  Status operator()(const std::vector<int64_t>& keys, int64_t step = 0) {
    std::vector<uint64_t> hashes;
    for (const int64_t key : keys) hashes.push_back(HashKey(key));
    std::vector<int32_t> positions(keys.size());
    std::iota(positions.begin(), positions.end(), 0);
    const auto add = [](int32_t, float* values, int64_t) { values[0] += 1; };
    return shard.Push(memory, {keys.data(), hashes.data(), positions}, step, add, nullptr);
  }

  SmallMemory memory;
  const TableSpec spec;
  TableEpochs epochs;
  TableShard shard;
};

std::vector<int64_t> Numbers(int64_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(TableShard, ChangesNothingWithoutMemory) {
  for (const int64_t admit_after : {1, 2}) {
    Pushes push({.width = 4, .admit_after = admit_after, .filter_counters = 16 << 16});
    const auto keys = Numbers(300);
    // Makes each allocation of the first pushes fail once: those of the rows, the index and the
    // filter.
    int refused = 0;
    for (int64_t bytes = 0; push.shard.size() == 0; bytes += 4096) {
      push.memory.left += 4096;
      for (int i = 0; i < admit_after; ++i) {
        const Status pushed = push(keys);
        if (pushed.ok()) continue;
        EXPECT_EQ(pushed.code(), StatusCode::kResourceExhausted) << pushed;
        EXPECT_EQ(push.shard.size(), 0);
        ++refused;
        break;
      }
      ASSERT_LT(bytes, 1 << 20);
    }
    EXPECT_GT(refused, 5);
    EXPECT_EQ(push.shard.size(), 300);
  }
}

TEST(TableShard, TakesNoMemoryForKeysThatHaveRows) {
  Pushes push({.width = 4});
  push.memory.left = 1 << 20;
  const auto keys = Numbers(256);
  ASSERT_TRUE(push(keys).ok());
  push.memory.left = 0;
  EXPECT_TRUE(push(keys).ok());
  EXPECT_FALSE(push({1000}).ok());
  push.shard.Clear();
  EXPECT_GT(push.memory.left, 10'000);
  EXPECT_TRUE(push({1000}).ok());
  EXPECT_EQ(push.shard.size(), 1);
}

TEST(TableShard, AgesOfAnyStepsAreCompared) {
  Pushes push({.width = 4, .max_age = INT64_MAX});
  push.memory.left = 1 << 20;
  ASSERT_TRUE(push.shard.Reserve(push.memory, 1).ok());
  ASSERT_NE(push.shard.Put(1, 1, INT64_MIN), nullptr);
  EXPECT_EQ(push.shard.Put(1, 1, INT64_MIN), nullptr);
  ASSERT_TRUE(push({2}, INT64_MAX).ok());
  push.shard.Evict(push.memory, 10);
  EXPECT_EQ(push.shard.size(), 1);
  push.shard.Evict(push.memory, 10);
  EXPECT_EQ(push.shard.size(), 1);
}

TEST(TableSpec, SaysWhichLimitIsWrong) {
  const auto message = [](const TableSpec& spec) { return std::string(spec.Check().message()); };
  EXPECT_EQ(message({.width = 4}), "");
  EXPECT_EQ(message({.width = 0}), "width must be from 1 to 1048576, is 0");
  EXPECT_EQ(message({.max_rows = -1}), "max_rows must be 0 (no limit), or 16 and more; is -1");
  EXPECT_EQ(message({.max_rows = 15}), "max_rows must be 0 (no limit), or 16 and more; is 15");
  EXPECT_EQ(message({.max_bytes = 100}),
            "max_bytes must be 0 (no limit), or 1536 and more, which are 16 rows; is 100");
  EXPECT_EQ(message({.max_age = -2}), "max_age must be 0 (no limit) or a number of steps, is -2");
  EXPECT_EQ(message({.admit_after = 0}), "admit_after must be from 1 to 255, is 0");
  EXPECT_EQ(message({.admit_after = 256}), "admit_after must be from 1 to 255, is 256");
  EXPECT_EQ(message({.slots = {NAN}}), "slots must be finite numbers");
  EXPECT_EQ(message({.initializer = {.kind = RowInitializer::Kind::kUniform, .a = 2, .b = 2}}),
            "a uniform initializer needs a < b, and b - a must be finite; has a = 2 and b = 2");
}

TEST(TableSpec, TheTighterLimitCounts) {
  const TableSpec spec{.width = 64, .slots = {0}, .max_rows = 1600};
  EXPECT_EQ(spec.row_bytes(), 32 + 512 + 32);
  EXPECT_EQ(spec.shard_rows_max(), 100);
  TableSpec bytes = spec;
  bytes.max_bytes = 16 * 50 * spec.row_bytes();
  EXPECT_EQ(bytes.shard_rows_max(), 50);
  bytes.max_rows = 0;
  EXPECT_EQ(bytes.shard_rows_max(), 50);
}

}  // namespace
}  // namespace penstock
