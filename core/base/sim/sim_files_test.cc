// SPDX-License-Identifier: Apache-2.0
#include "core/base/sim/sim_files.h"

#include <functional>
#include <set>

#include "gtest/gtest.h"

namespace penstock {
namespace {

// Runs `body` with a new disk.
void With(uint64_t seed, const std::function<void(SimFiles&, SimScheduler&)>& body) {
  SimScheduler scheduler({.seed = seed});
  SimFiles files(scheduler);
  EXPECT_EQ(scheduler.Run([&] {
    EXPECT_EQ(files.CreateDirectories("/d"), OkStatus());
    body(files, scheduler);
  }),
            OkStatus());
}

void Write(SimFiles& files, const std::string& path, const std::string& data, bool sync) {
  auto file = files.NewWritableFile(path);
  ASSERT_EQ(file.status(), OkStatus());
  EXPECT_EQ((*file)->Append(data), OkStatus());
  if (sync) {
    EXPECT_EQ((*file)->Sync(), OkStatus());
  }
  EXPECT_EQ((*file)->Close(), OkStatus());
}

// Returns the contents of the file; "-" if it does not exist.
std::string Read(SimFiles& files, const std::string& path) {
  const auto file = files.OpenFile(path);
  if (!file.ok()) return "-";
  std::string data((*file)->size(), '?');
  EXPECT_EQ((*file)->Read(0, (*file)->size(), data.data()), OkStatus());
  return data;
}

TEST(SimFilesTest, WhatWasSyncedSurvivesALossOfPower) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    With(seed, [](SimFiles& files, SimScheduler&) {
      Write(files, "/d/a.tmp", "all of it", /*sync=*/true);
      EXPECT_EQ(files.Rename("/d/a.tmp", "/d/a"), OkStatus());
      EXPECT_EQ(files.SyncDirectory("/d"), OkStatus());
      files.LosePower();
      EXPECT_EQ(Read(files, "/d/a"), "all of it");
      EXPECT_EQ(Read(files, "/d/a.tmp"), "-");
    });
  }
}

TEST(SimFilesTest, WhatWasNotSyncedIsKeptInPart) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    With(seed, [&](SimFiles& files, SimScheduler&) {
      Write(files, "/d/a", "ab", /*sync=*/false);
      EXPECT_EQ(files.SyncDirectory("/d"), OkStatus());
      files.LosePower();
      seen.insert(Read(files, "/d/a"));
    });
  }
  EXPECT_EQ(seen,
            (std::set<std::string>{"", "a", "ab", std::string(1, '\0'), std::string(2, '\0')}));
}

TEST(SimFilesTest, RenamesAreKeptInTheirOrder) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    With(seed, [&](SimFiles& files, SimScheduler&) {
      Write(files, "/d/a", "1", true);
      Write(files, "/d/b", "2", true);
      EXPECT_EQ(files.SyncDirectory("/d"), OkStatus());
      EXPECT_EQ(files.Rename("/d/a", "/d/c"), OkStatus());
      EXPECT_EQ(files.Rename("/d/b", "/d/c"), OkStatus());
      files.LosePower();
      seen.insert(Read(files, "/d/a") + Read(files, "/d/b") + Read(files, "/d/c"));
    });
  }
  EXPECT_EQ(seen, (std::set<std::string>{"12-", "-21", "--2"}));
}

TEST(SimFilesTest, OperationsFailForAWhile) {
  With(1, [](SimFiles& files, SimScheduler& scheduler) {
    files.FailUntil(scheduler.now_ns() + 1'000'000'000, 1);
    const Status failed = files.SyncDirectory("/d");
    EXPECT_NE(failed.message().find(SimFiles::kInjected), string_view::npos) << failed;
    EXPECT_EQ(files.injected_errors(), 1);
    scheduler.SleepUntil(scheduler.now_ns() + 1'000'000'000);
    EXPECT_EQ(files.SyncDirectory("/d"), OkStatus());
  });
}

}  // namespace
}  // namespace penstock
