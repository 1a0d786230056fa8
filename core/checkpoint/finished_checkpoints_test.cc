// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/finished_checkpoints.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using absl::StrCat;

TEST(FinishedCheckpointsTest, KeepsTheLastOfEachName) {
  Env& env = Env::Real();
  const int64_t begun_ns = env.NowNanos();
  NoteFinishedCheckpoint("run/model.ckpt-5", env);
  NoteFinishedCheckpoint("run/best", env);
  NoteFinishedCheckpoint("run/model.ckpt-120", env);
  NoteFinishedCheckpoint("run/model.ckpt-130_temp_7/part-00000-of-00002", env);
  const std::vector<FinishedCheckpoint> last = LastCheckpoints();
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[0].path, "run/model.ckpt-120");
  EXPECT_EQ(last[0].step, 120);
  EXPECT_GE(last[0].finished_ns, begun_ns);
  EXPECT_EQ(last[1].path, "run/best");
  EXPECT_EQ(last[1].step, -1);
}

TEST(FinishedCheckpointsTest, NamesMayBeAnything) {
  for (const std::string name : {"", "-", "a-", "-7", "a--7", "a-99999999999999999999", "a-7b"}) {
    NoteFinishedCheckpoint(name, Env::Real());
    EXPECT_EQ(LastCheckpoints()[0].path, name);
  }
  EXPECT_EQ(LastCheckpoints()[0].step, -1);
  for (int i = 0; i < 100; ++i) NoteFinishedCheckpoint(StrCat("run", i, "/x"), Env::Real());
  EXPECT_EQ(LastCheckpoints().size(), 8u);
  EXPECT_EQ(LastCheckpoints()[0].path, "run99/x");
}

TEST(FailedSavesTest, LastUntilASaveOfThatPathSucceeds) {
  Env& env = Env::Real();
  const Status full = ResourceExhausted("No space left on device");
  NoteFailedSave("disk/a.ckpt-5_temp_7/part-00000-of-00002", "save/SaveV2", full, env);
  NoteFailedSave("disk/b.ckpt-1", "save/SaveV2", full, env);
  NoteFailedSave("disk/a.ckpt-10_temp_8/part-00000-of-00002", "save/SaveV2_1", full, env);
  NoteFailedSave("disk/c.ckpt-1", "save/SaveV2", Cancelled("given up"), env);
  std::vector<FailedSave> failed = FailedSaves();
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed[0].path, "disk/a.ckpt-10");
  EXPECT_EQ(failed[0].step, 10);
  EXPECT_EQ(failed[0].node, "save/SaveV2_1");
  EXPECT_EQ(failed[0].status, full);
  EXPECT_EQ(failed[0].times, 2);
  EXPECT_LE(failed[0].first_failed_ns, failed[0].failed_ns);
  EXPECT_EQ(failed[1].path, "disk/b.ckpt-1");
  NoteFinishedCheckpoint("disk/a.ckpt-20_temp_9/part-00000-of-00002", env);
  NoteFinishedCheckpoint("disk/b.ckpt-2", env);
  EXPECT_TRUE(FailedSaves().empty());
}

}  // namespace
}  // namespace penstock
