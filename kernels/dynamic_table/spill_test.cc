// SPDX-License-Identifier: Apache-2.0
//
// Tests tables with rows in files: compares random operations with a map; files that fail,
// checkpoints, changes, replay, limits.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/forwarding_env.h"
#include "core/op/state_replay.h"
#include "core/op/testing/recording_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/dynamic_table/dynamic_table.h"
#include "kernels/dynamic_table/testing/table.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

std::string SpillDirectory() {
  const char* const root = std::getenv("TEST_TMPDIR");
  return StrCat(root != nullptr ? root : "/tmp", "/spill/",
                ::testing::UnitTest::GetInstance()->current_test_info()->name());
}

// Real files, whose operations fail as the test requests.
class FaultyFiles final : public ForwardingEnv {
 public:
  FaultyFiles() : ForwardingEnv(Env::Real()) {}
  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override {
    if (Fails()) return ResourceExhausted("cannot create '", path, "': a fault");
    ++made;
    ASSIGN_OR_RETURN(auto file, Env::Real().NewWritableFile(path));
    return std::make_unique<Writer>(*this, std::move(file));
  }
  StatusOr<std::unique_ptr<RandomAccessFile>> OpenFile(const std::string& path) override {
    if (Fails()) return ResourceExhausted("cannot open '", path, "': a fault");
    ASSIGN_OR_RETURN(auto file, Env::Real().OpenFile(path));
    return std::make_unique<Reader>(*this, std::move(file));
  }

  bool full = false, damaged = false, cut = false;
  int made = 0;
  int fail_one_in = 0;  // operations that make, open or write a file; 0: none
  int faults = 0;

 private:
  bool Fails() {
    const bool fails = fail_one_in > 0 && random_() % fail_one_in == 0;
    faults += fails ? 1 : 0;
    return fails;
  }

  class Writer final : public WritableFile {
   public:
    Writer(FaultyFiles& env, std::unique_ptr<WritableFile> file)
        : env_(env), file_(std::move(file)) {}
    Status Append(string_view data) override {
      if (!env_.full && !env_.Fails()) return file_->Append(data);
      CHECK_OK(file_->Append(data.substr(0, env_.random_() % data.size())));
      return ResourceExhausted("No space left on device");
    }
    Status Sync() override { return file_->Sync(); }
    Status Close() override { return file_->Close(); }

   private:
    FaultyFiles& env_;
    const std::unique_ptr<WritableFile> file_;
  };
  class Reader final : public RandomAccessFile {
   public:
    Reader(const FaultyFiles& env, std::unique_ptr<RandomAccessFile> file)
        : env_(env), file_(std::move(file)) {}
    int64_t size() const override { return file_->size(); }
    Status Read(int64_t offset, int64_t count, char* buffer) const override {
      if (env_.cut) return file_->Read(int64_t{1} << 40, count, buffer);
      RETURN_IF_ERROR(file_->Read(offset, count, buffer));
      if (env_.damaged) buffer[count - 1] ^= 1;
      return OkStatus();
    }

   private:
    const FaultyFiles& env_;
    const std::unique_ptr<RandomAccessFile> file_;
  };

  std::mt19937_64 random_{1};
};

constexpr int64_t kMemoryRows = 8, kSegmentRecords = 16;

TableSpec SmallSpec() {
  return {.width = 3,
          .slots = {0.5f},
          .max_rows = TableSpec::kShards * kMemoryRows,
          .spill_directory = SpillDirectory()};
}

// One shard, and a model: the rows that the shard should have.
struct ShardAndModel {
  explicit ShardAndModel(const TableSpec& its) : spec(its) {}

  static void Add(int64_t key, float* row) {
    for (int i = 0; i < 6; ++i) row[i] += static_cast<float>(key % 7 + i);
  }
  // Calls fn with the keys as a shard takes them.
  template <class Fn>
  static auto WithKeys(const std::vector<int64_t>& keys, Fn fn) {
    std::vector<uint64_t> hashes;
    for (const int64_t key : keys) hashes.push_back(HashKey(key));
    std::vector<int32_t> positions(keys.size());
    std::iota(positions.begin(), positions.end(), 0);
    return fn(ShardKeys{keys.data(), hashes.data(), positions});
  }
  Status Push(const std::vector<int64_t>& keys, int64_t step = 0) {
    const auto update = [&](int32_t position, float* row, int64_t) { Add(keys[position], row); };
    RETURN_IF_ERROR(WithKeys(keys, [&](const ShardKeys& own) {
      return shard.Push(CpuAllocator(), own, step, update, nullptr);
    }));
    shard.Evict(CpuAllocator(), 16);
    for (const int64_t key : keys) {
      const auto [it, made] = model.try_emplace(key);
      if (made) it->second = {0, 0, 0, 0.5f, 0.5f, 0.5f};
      Add(key, it->second.data());
    }
    return OkStatus();
  }
  void Erase(const std::vector<int64_t>& keys) {
    WithKeys(keys, [&](const ShardKeys& own) { shard.Erase(own); });
    for (const int64_t key : keys) model.erase(key);
  }
  Status Pull(const std::vector<int64_t>& keys, std::vector<float>* rows) {
    rows->assign(keys.size() * 3, -1);
    return WithKeys(keys, [&](const ShardKeys& own) { return shard.Pull(own, rows->data()); });
  }
  // Returns all rows, with their slots.
  std::map<int64_t, std::vector<float>> All() {
    std::map<int64_t, std::vector<float>> all;
    std::vector<float> scratch(6);
    shard.ForEachRow([&](int32_t row) {
      const auto values = shard.Values(row, scratch.data());
      CHECK_OK(values.status());
      all[shard.header(row).key].assign(*values, *values + 6);
    });
    return all;
  }

  FaultyFiles files;
  const TableSpec spec;
  TableEpochs epochs;
  TableShard shard{spec, epochs, files, kSegmentRecords* SpillSegments::RecordBytes(6)};
  std::map<int64_t, std::vector<float>> model;
};

std::vector<int64_t> SomeKeys(std::mt19937_64& random, int64_t most, int64_t below) {
  std::vector<int64_t> keys(random() % most);
  for (int64_t& key : keys) key = static_cast<int64_t>(random() % below);
  return keys;
}

TEST(Spill, IsAMap) {
  ShardAndModel both(SmallSpec());
  std::mt19937_64 random(1);
  int64_t most_spilled = 0;
  for (int i = 0; i < 4000; ++i) {
    const Status pushed = both.Push(SomeKeys(random, 12, 300));
    ASSERT_TRUE(pushed.ok()) << pushed;
    if (i % 3 == 0) both.Erase(SomeKeys(random, i % 50 == 0 ? 200 : 8, 300));
    ASSERT_LE(both.shard.memory_rows(), kMemoryRows);
    ASSERT_EQ(both.shard.size(), std::ssize(both.model));
    most_spilled = std::max(most_spilled, both.shard.spilled_rows());
    const std::vector<int64_t> asked = SomeKeys(random, 20, 300);
    std::vector<float> rows;
    ASSERT_TRUE(both.Pull(asked, &rows).ok());
    for (size_t k = 0; k < asked.size(); ++k) {
      const auto it = both.model.find(asked[k]);
      ASSERT_EQ(rows[3 * k], it == both.model.end() ? 0 : it->second[0]) << asked[k];
    }
    if (i % 100 == 0) {
      ASSERT_EQ(both.All(), both.model);
    }
  }
  EXPECT_EQ(both.All(), both.model);
  EXPECT_GT(most_spilled, 150);
  EXPECT_GT(both.files.made, 100);
  // Mostly free files are compacted, so they are bounded.
  const int64_t bound = 2 * most_spilled + 2 * kSegmentRecords;
  EXPECT_LE(both.shard.file_bytes(), bound * SpillSegments::RecordBytes(6));
  // The files have no names, so the directory is empty.
  EXPECT_THAT(*Env::Real().ListDirectory(SpillDirectory()), ::testing::IsEmpty());
  both.shard.Clear();
  EXPECT_EQ(both.shard.file_bytes(), 0);
  both.model.clear();
  ASSERT_TRUE(both.Push({1, 2, 3}).ok());
  EXPECT_EQ(both.All(), both.model);
}

std::vector<int64_t> Upto(int64_t count, int64_t first = 0) {
  std::vector<int64_t> keys(count);
  std::iota(keys.begin(), keys.end(), first);
  return keys;
}

TEST(Spill, AFullDiskLosesNothing) {
  ShardAndModel both(SmallSpec());
  ASSERT_TRUE(both.Push(Upto(20)).ok());
  EXPECT_EQ(both.shard.spilled_rows(), 12);
  both.files.full = true;
  // This push succeeds, and its rows stay in memory.
  ASSERT_TRUE(both.Push(Upto(5, 20)).ok());
  EXPECT_EQ(both.shard.memory_rows(), kMemoryRows + 5);
  for (int i = 0; i < 3; ++i) {
    const Status pushed = both.Push({1, 21, 100});
    EXPECT_EQ(pushed.code(), StatusCode::kResourceExhausted) << pushed;
    EXPECT_THAT(std::string(pushed.message()), HasSubstr(SpillDirectory()));
    EXPECT_THAT(std::string(pushed.message()), HasSubstr("No space left on device"));
    EXPECT_EQ(both.All(), both.model);
  }
  both.files.full = false;
  ASSERT_TRUE(both.Push({1, 21, 100}).ok());
  EXPECT_EQ(both.shard.memory_rows(), kMemoryRows);
  EXPECT_EQ(both.All(), both.model);
}

TEST(Spill, RandomFaultsLoseNothing) {
  ShardAndModel both(SmallSpec());
  both.files.fail_one_in = 5;
  std::mt19937_64 random(2);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    // The push changes all of its rows or none.
    const Status pushed = both.Push(SomeKeys(random, 12, 200));
    if (!pushed.ok()) {
      EXPECT_EQ(pushed.code(), StatusCode::kResourceExhausted) << pushed;
      ++refused;
    }
    if (i % 5 == 0) both.Erase(SomeKeys(random, 12, 200));
    ASSERT_EQ(both.All(), both.model);
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(both.files.faults, 200);
  EXPECT_THAT(*Env::Real().ListDirectory(SpillDirectory()), ::testing::IsEmpty());
}

TEST(Spill, SaysWhichRowIsDamaged) {
  ShardAndModel both(SmallSpec());
  ASSERT_TRUE(both.Push(Upto(20)).ok());
  std::vector<float> rows;
  for (bool* const fault : {&both.files.damaged, &both.files.cut}) {
    *fault = true;
    for (const Status& status : {both.Pull({19, 3}, &rows), both.Push({19, 3})}) {
      EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(fault == &both.files.cut ? "the row of key 3 is missing"
                                                     : "the row of key 3 was damaged"));
      EXPECT_THAT(std::string(status.message()), HasSubstr(SpillDirectory()));
    }
    EXPECT_TRUE(both.Pull({19, 18}, &rows).ok());  // in memory
    *fault = false;
    EXPECT_EQ(both.All(), both.model);
  }
  // A segment that cannot be read is not compacted, but other segments still are.
  both.files.damaged = true;
  std::vector<int64_t> most = Upto(11);
  both.Erase(most);
  ASSERT_TRUE(both.Push(Upto(40, 100)).ok());
  both.files.damaged = false;
  EXPECT_EQ(both.All(), both.model);
}

TEST(Spill, DirectoryThatCannotBeMade) {
  TableSpec spec = SmallSpec();
  spec.spill_directory = "/proc/none/such";
  ShardAndModel both(spec);
  ASSERT_TRUE(both.Push(Upto(20)).ok());
  const Status pushed = both.Push({1});
  EXPECT_FALSE(pushed.ok());
  EXPECT_THAT(std::string(pushed.message()), HasSubstr("spill_directory '/proc/none/such'"));
  EXPECT_EQ(both.All(), both.model);
}

TEST(Spill, WithinItsLimitAndAge) {
  TableSpec spec = SmallSpec();
  spec.spill_max_bytes = TableSpec::kShards * 10 * SpillSegments::RecordBytes(6);
  spec.max_age = 100;
  ShardAndModel both(spec);
  for (int64_t key = 0; key < 50; ++key) ASSERT_TRUE(both.Push({key}, key).ok());
  EXPECT_EQ(both.shard.size(), kMemoryRows + 10);
  EXPECT_FALSE(both.shard.Has(31));
  EXPECT_TRUE(both.shard.Has(32));
  ASSERT_TRUE(both.Push({49}, 141).ok());  // the rows of the steps before 41 are too old
  EXPECT_FALSE(both.shard.Has(40));
  EXPECT_TRUE(both.shard.Has(41));
  EXPECT_EQ(both.shard.size(), 9);
}

Attrs SpillingAttrs(int64_t memory_rows = 2) {
  Attrs attrs = Uniform(3, {0.1f});
  attrs["max_rows"] = 16 * memory_rows;
  attrs["spill_directory"] = SpillDirectory();
  return attrs;
}

// Returns the rows of a table with their keys and slots, sorted by key.
std::map<int64_t, std::string> RowsOf(const TestTable& table) {
  const auto tensors = table.Export(1, {0});
  std::map<int64_t, std::string> rows;
  for (int64_t i = 0; i < tensors[0].dim(0); ++i) {
    std::string& text = rows[tensors[0].data<int64_t>()[i]];
    for (size_t t = 1; t < tensors.size(); ++t) {
      StrAppend(&text, tensors[t].Slice(i, i + 1).ToString(), "\n");
    }
  }
  return rows;
}

int64_t SpilledRowsOf(const TestTable& table) {
  const auto found = table.store()->Lookup("", "t");
  CHECK_OK(found.status());
  return static_cast<const DynamicTable&>(**found).spilled_rows();
}

void Train(const TestTable& table, uint64_t seed, int rounds, int64_t below = 400) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < rounds; ++round) {
    std::vector<int64_t> ids(60);
    for (int64_t& id : ids) id = static_cast<int64_t>(random() % below);
    CHECK_OK(table.Apply("Adagrad", ids, Gradients(random, 60, 3), {0.1f}, round));
  }
}

TEST(Spill, TrainsAsInMemory) {
  const TestTable spilling(SpillingAttrs()), memory(Uniform(3, {0.1f}));
  for (const TestTable* table : {&spilling, &memory}) Train(*table, 1, 40);
  EXPECT_GT(SpilledRowsOf(spilling), 300);
  EXPECT_EQ(RowsOf(spilling), RowsOf(memory));
  EXPECT_EQ(spilling.Pull(Upto(450)).ToString(1 << 20), memory.Pull(Upto(450)).ToString(1 << 20));
  EXPECT_THAT(spilling.Do("DynamicTableErase", {Ids(Upto(100))}).status().ToString(), "OK");
  EXPECT_EQ(spilling.Size(), std::ssize(RowsOf(spilling)));
}

TEST(Spill, CheckpointsHaveAllRows) {
  const TestTable table(SpillingAttrs());
  Train(table, 2, 40);
  const auto saved = table.Export(4, {0, 1, 2, 3});
  std::vector<std::vector<Tensor>> lists(5);
  for (size_t i = 0; i < saved.size(); ++i) lists[i / 4].push_back(saved[i]);
  const TestTable memory(Uniform(3, {0.1f})), smaller(SpillingAttrs(1));
  ASSERT_TRUE(memory.Import(lists).ok());
  ASSERT_TRUE(smaller.Import(lists).ok());
  EXPECT_EQ(RowsOf(memory), RowsOf(table));
  EXPECT_EQ(RowsOf(smaller), RowsOf(table));
  EXPECT_EQ(SpilledRowsOf(smaller), table.Size() - 16);
  for (const TestTable* each : {&table, &memory, &smaller}) Train(*each, 3, 20);
  EXPECT_EQ(RowsOf(smaller), RowsOf(memory));
  EXPECT_EQ(RowsOf(table), RowsOf(memory));
}

TEST(Spill, ChangesIncludeRowsInFiles) {
  const TestTable table(SpillingAttrs()), copy(SpillingAttrs(1));
  Train(table, 4, 40);
  const std::vector<int64_t> wanted = {0, 1, 2};
  ASSERT_TRUE(copy.Merge(3, wanted, table.ExportChanges(3, wanted, "a", "")).ok());
  EXPECT_EQ(RowsOf(copy), RowsOf(table));
  Train(table, 5, 3);
  ASSERT_TRUE(table.Do("DynamicTableErase", {Ids({1, 2, 3, 4, 5})}).ok());
  const auto changes = table.ExportChanges(3, wanted, "b", "a");
  const int64_t changed = changes[0].dim(0) + changes[1].dim(0) + changes[2].dim(0);
  EXPECT_GT(changed, 40);
  EXPECT_LT(changed, 200);
  ASSERT_TRUE(copy.Merge(3, wanted, changes).ok());
  EXPECT_EQ(RowsOf(copy), RowsOf(table));
}

TEST(Spill, ReplayMakesTheSameTable) {
  RecordingLog log;
  const auto store = std::make_shared<ResourceStore>(), replica = std::make_shared<ResourceStore>();
  ASSERT_TRUE(store->AttachLog(&log).ok());
  Attrs attrs = SpillingAttrs();
  attrs["spill_max_bytes"] = 16 * 12 * SpillSegments::RecordBytes(6);
  attrs["max_age"] = int64_t{15};
  const TestTable table(attrs, store);
  Train(table, 6, 30);
  const Status replayed = log.ReplayOn(*replica);
  ASSERT_TRUE(replayed.ok()) << replayed;
  const TestTable copy(attrs, replica);
  ASSERT_TRUE(copy.status().ok()) << copy.status();
  EXPECT_GT(SpilledRowsOf(table), 50);
  EXPECT_EQ(SpilledRowsOf(copy), SpilledRowsOf(table));  // a follower has the same limits
  EXPECT_EQ(RowsOf(copy), RowsOf(table));
  for (const TestTable* each : {&table, &copy}) Train(*each, 7, 40);
  EXPECT_EQ(RowsOf(copy), RowsOf(table));
  EXPECT_EQ(SpilledRowsOf(copy), SpilledRowsOf(table));
}

TEST(Spill, SaysWhichAttributeIsWrong) {
  const auto message = [](const TableSpec& spec) { return std::string(spec.Check().message()); };
  EXPECT_EQ(message({.spill_directory = "/tmp"}),
            "spill_directory needs max_rows or max_bytes: the limit beyond which rows go to files");
  EXPECT_EQ(message({.spill_max_bytes = 5}), "spill_max_bytes needs a spill_directory, is 5");
  EXPECT_EQ(message({.max_rows = 16, .spill_directory = "/tmp", .spill_max_bytes = 5}),
            "spill_max_bytes must be 0 (no limit), or 320 and more, which are 16 rows; is 5");
  TestTable table(SpillingAttrs());
  Attrs other = SpillingAttrs();
  other["spill_directory"] = "/elsewhere";
  EXPECT_THAT(std::string(TestTable(other, table.store()).status().message()),
              HasSubstr("another initializer, admission or limit"));
}

}  // namespace
}  // namespace penstock
