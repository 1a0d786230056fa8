// SPDX-License-Identifier: Apache-2.0
//
// Simulates concurrent steps on a table with rows in files, whose files take time.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/base/forwarding_env.h"
#include "core/base/sim/sim_files.h"
#include "core/base/sim/sim_scheduler.h"
#include "core/tensor/allocator.h"
#include "gtest/gtest.h"
#include "kernels/dynamic_table/dynamic_table.h"

namespace penstock {
namespace {

constexpr int64_t kKeys = 300, kWidth = 2, kIds = 40;

// The simulated disk.
class DiskEnv final : public ForwardingEnv {
 public:
  DiskEnv(SimScheduler& scheduler, SimFiles& files)
      : ForwardingEnv(Env::Real()), scheduler_(scheduler), files_(files) {}

  uint64_t RandomU64() override { return scheduler_.Random(); }
  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override {
    return files_.NewWritableFile(path);
  }
  StatusOr<std::unique_ptr<RandomAccessFile>> OpenFile(const std::string& path) override {
    return files_.OpenFile(path);
  }
  Status CreateDirectories(const std::string& path) override {
    return files_.CreateDirectories(path);
  }
  Status RemoveFile(const std::string& path) override { return files_.RemoveFile(path); }

 private:
  SimScheduler& scheduler_;
  SimFiles& files_;
};

TableSpec SpillingSpec() {
  return {
      .width = kWidth, .slots = {}, .max_rows = 2 * TableSpec::kShards, .spill_directory = "/d"};
}

std::vector<int64_t> RandomIds(std::mt19937_64& random) {
  std::vector<int64_t> ids(kIds);
  for (int64_t& id : ids) id = static_cast<int64_t>(random() % kKeys);
  return ids;
}

// Adds 1 to the rows of `ids`.
void AddOne(DynamicTable& table, const std::vector<int64_t>& ids,
            const DynamicTable::Caller& caller) {
  const auto update = [](int32_t, float* row, int64_t) {
    for (int64_t i = 0; i < kWidth; ++i) row[i] += 1;
  };
  EXPECT_EQ(table.Push(Tensor::Vector(ids), /*step=*/0, /*row_nanos=*/10, update, caller),
            OkStatus());
}

// Checks that no row of `ids` is half updated.
void ExpectWholeRows(const DynamicTable& table, const std::vector<int64_t>& ids,
                     const DynamicTable::Caller& caller) {
  const auto rows = table.Pull(Tensor::Vector(ids), caller);
  ASSERT_EQ(rows.status(), OkStatus());
  const float* const row = rows->data<float>();
  for (int64_t i = 0; i < kIds; ++i) EXPECT_EQ(row[kWidth * i], row[kWidth * i + 1]);
}

// Two steps train, one pulls, one exports, and one reads the size. The simulation fails if one of
// them waits for ever.
void Simulate(uint64_t seed) {
  SimScheduler scheduler({.seed = seed});
  SimFiles files(scheduler);
  DiskEnv env(scheduler, files);
  const DynamicTable::Caller caller{CpuAllocator(), scheduler, {}};
  std::vector<float> expected(kKeys), found(kKeys);
  int64_t spilled = 0, waits = 0;
  const Status run = scheduler.Run([&] {
    const auto table = *DynamicTable::Make("t", SpillingSpec(), env);
    const auto trainer = [&](uint64_t number) {
      return scheduler.StartThread("trainer", [&, number] {
        std::mt19937_64 random(number);
        for (int i = 0; i < 10; ++i) {
          const std::vector<int64_t> ids = RandomIds(random);
          const int64_t start = scheduler.now_ns();
          AddOne(*table, ids, caller);
          waits += scheduler.now_ns() > start ? 1 : 0;
          for (const int64_t id : ids) ++expected[id];
          ExpectWholeRows(*table, RandomIds(random), caller);
        }
      });
    };
    std::vector<std::unique_ptr<Thread>> threads;
    threads.push_back(trainer(1));
    threads.push_back(trainer(2));
    threads.push_back(scheduler.StartThread("reader", [&] {
      std::mt19937_64 random(3);
      for (int i = 0; i < 50; ++i) {
        ExpectWholeRows(*table, RandomIds(random), caller);
        scheduler.SleepUntil(scheduler.now_ns() + 100'000);
      }
    }));
    threads.push_back(scheduler.StartThread("exporter", [&] {
      for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(table->ExportChanges({0}, 1, "mark", "mark", caller).status(), OkStatus());
        EXPECT_NE(table->DebugString(), "");
        scheduler.SleepUntil(scheduler.now_ns() + 500'000);
      }
    }));
    threads.clear();  // waits for their ends
    std::vector<int64_t> all(kKeys);
    for (int64_t i = 0; i < kKeys; ++i) all[i] = i;
    const auto rows = *table->Pull(Tensor::Vector(all), caller);
    for (int64_t i = 0; i < kKeys; ++i) found[i] = rows.data<float>()[kWidth * i];
    spilled = table->spilled_rows();
    EXPECT_EQ(table->size(), kKeys - std::count(expected.begin(), expected.end(), 0.0f));
  });
  EXPECT_EQ(run, OkStatus());
  EXPECT_EQ(found, expected);
  EXPECT_GT(spilled, 100);
  EXPECT_GT(waits, 10);
}

TEST(SimulatedSpill, ConcurrentStepsWaitForEachOther) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Simulate(seed);
  }
}

}  // namespace
}  // namespace penstock
