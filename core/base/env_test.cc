// SPDX-License-Identifier: Apache-2.0
#include "core/base/env.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include "core/base/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EnvTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/env_test.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  std::string Path(string_view name) { return StrCat(directory_, "/", name); }

  Env& env_ = Env::Real();
  std::string directory_;
};

TEST_F(EnvTest, ClocksAndRandomness) {
  const int64_t start = env_.NowNanos();
  env_.SleepForNanos(2'000'000);
  EXPECT_GE(env_.NowNanos() - start, 2'000'000);
  env_.SleepForNanos(-5);
  EXPECT_GT(env_.WallMicros(), int64_t{1'600'000'000} * 1'000'000);
  std::set<uint64_t> numbers;
  for (int i = 0; i < 100; ++i) numbers.insert(env_.RandomU64());
  EXPECT_EQ(numbers.size(), 100);
}

TEST_F(EnvTest, WritesAndReads) {
  auto file = env_.NewWritableFile(Path("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->Append("hello ").ok());
  EXPECT_TRUE((*file)->Append(std::string(1 << 20, 'x')).ok());
  EXPECT_TRUE((*file)->Append("").ok());
  EXPECT_TRUE((*file)->Sync().ok());
  EXPECT_TRUE((*file)->Close().ok());
  EXPECT_EQ((*file)->Append("late").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ((*file)->Sync().code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE((*file)->Close().ok());

  const StatusOr<std::string> contents = env_.ReadFile(Path("a"));
  ASSERT_TRUE(contents.ok());
  EXPECT_EQ(*contents, "hello " + std::string(1 << 20, 'x'));

  auto reader = env_.OpenFile(Path("a"));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->size(), 6 + (1 << 20));
  char buffer[5];
  EXPECT_TRUE((*reader)->Read(1, 5, buffer).ok());
  EXPECT_EQ(std::string(buffer, 5), "ello ");
  EXPECT_TRUE((*reader)->Read((*reader)->size(), 0, buffer).ok());
}

TEST_F(EnvTest, ReadsOutOfRange) {
  ASSERT_TRUE(env_.WriteFileAtomically(Path("a"), "12345").ok());
  auto reader = env_.OpenFile(Path("a"));
  ASSERT_TRUE(reader.ok());
  char buffer[16];
  struct {
    int64_t offset, count;
  } const cases[] = {{0, 6}, {5, 1}, {6, 0}, {-1, 2}, {1, -1}, {INT64_MAX, 2}, {2, INT64_MAX}};
  for (const auto& c : cases) {
    const Status status = (*reader)->Read(c.offset, c.count, buffer);
    EXPECT_EQ(status.code(), StatusCode::kOutOfRange) << c.offset << " " << c.count;
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path("a")));
  }
}

TEST_F(EnvTest, ReadsWhatWasAppendedAfterTheFileWasOpened) {
  auto file = env_.NewWritableFile(Path("a"));
  ASSERT_TRUE(file.ok());
  auto reader = env_.OpenFile(Path("a"));
  ASSERT_TRUE(reader.ok());
  ASSERT_TRUE(env_.RemoveFile(Path("a")).ok());
  ASSERT_TRUE((*file)->Append("hello").ok());
  char buffer[6] = {};
  ASSERT_TRUE((*reader)->Read(1, 4, buffer).ok());
  EXPECT_STREQ(buffer, "ello");
  const Status past = (*reader)->Read(1, 5, buffer);
  EXPECT_EQ(past.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(past.message()), HasSubstr("it ends at 5"));
  EXPECT_TRUE((*file)->Close().ok());
}

TEST_F(EnvTest, FileCutBetweenOpenAndRead) {
  ASSERT_TRUE(env_.WriteFileAtomically(Path("a"), "12345").ok());
  auto reader = env_.OpenFile(Path("a"));
  ASSERT_TRUE(reader.ok());
  auto cut = env_.NewWritableFile(Path("a"));
  ASSERT_TRUE(cut.ok());
  ASSERT_TRUE((*cut)->Append("12").ok());
  ASSERT_TRUE((*cut)->Close().ok());
  char buffer[5];
  EXPECT_EQ((*reader)->Read(0, 5, buffer).code(), StatusCode::kOutOfRange);
}

TEST_F(EnvTest, ErrorsNameThePathAndTheReason) {
  const Status missing = env_.ReadFile(Path("none")).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr(Path("none")));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("No such file"));

  EXPECT_EQ(env_.OpenFile(Path("none")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(env_.NewWritableFile(Path("no/such")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(env_.RemoveFile(Path("none")).code(), StatusCode::kNotFound);
  EXPECT_EQ(env_.Rename(Path("none"), Path("b")).code(), StatusCode::kNotFound);
  EXPECT_EQ(env_.ListDirectory(Path("none")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(env_.SyncDirectory(Path("none")).code(), StatusCode::kNotFound);
  EXPECT_FALSE(env_.OpenFile(directory_).ok());
  EXPECT_FALSE(env_.ReadFile(directory_).ok());
}

// Each operation would wait for the other end of the FIFO, and nothing could end that wait.
TEST_F(EnvTest, WhatIsNoRegularFileIsRefusedInsteadOfWaitedFor) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  const Status statuses[] = {env_.ReadFile(Path("fifo")).status(),
                             env_.OpenFile(Path("fifo")).status()};
  for (const Status& status : statuses) {
    EXPECT_EQ(status, FailedPrecondition("cannot open '", Path("fifo"),
                                         "': it is a FIFO, expected a regular file"));
  }
  EXPECT_FALSE(env_.NewWritableFile(Path("fifo")).ok());
  const int reader = open(Path("fifo").c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_EQ(env_.NewWritableFile(Path("fifo")).status(),
            FailedPrecondition("cannot create '", Path("fifo"),
                               "': it is a FIFO, expected a regular file"));
  close(reader);
}

// Reading /dev/zero would never end.
TEST_F(EnvTest, DevicesAreNotRead) {
  EXPECT_EQ(env_.ReadFile("/dev/zero").status(),
            FailedPrecondition(
                "cannot open '/dev/zero': it is a character device, expected a regular file"));
}

TEST_F(EnvTest, FilesOfProcAreReadWhole) {  // although the system reports a size of 0
  const StatusOr<std::string> contents = env_.ReadFile("/proc/self/stat");
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_GT(contents->size(), 10);
}

TEST_F(EnvTest, WriteErrorsStay) {
  auto full = env_.NewWritableFile("/dev/full");  // every write fails: no space is left
  ASSERT_TRUE(full.ok());
  EXPECT_EQ((*full)->Append("x").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ((*full)->Append("").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ((*full)->Close().code(), StatusCode::kResourceExhausted);
}

// Lowers the limit for file sizes, and restores it.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    CHECK(getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() { CHECK(setrlimit(RLIMIT_FSIZE, &before_) == 0); }

 private:
  rlimit before_;
};

TEST_F(EnvTest, ALimitForTheSizeOfFilesFailsTheWriteNotTheProcess) {
  ASSERT_TRUE(env_.WriteFileAtomically(Path("state"), "old").ok());
  const std::string large(100'000, 'x');
  const FileSizeLimit limit(50'000);
  const Status status = env_.WriteFileAtomically(Path("state"), large);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("state")));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("at most 50000 bytes: raise the limit with `ulimit -f`"));
  EXPECT_EQ(*env_.ReadFile(Path("state")), "old");
  EXPECT_THAT(*env_.ListDirectory(directory_), ElementsAre("state"));
}

TEST_F(EnvTest, Directories) {
  EXPECT_TRUE(env_.CreateDirectories(Path("x/y/z")).ok());
  EXPECT_TRUE(env_.CreateDirectories(Path("x/y/z/")).ok());
  EXPECT_TRUE(env_.FileExists(Path("x/y/z")));
  ASSERT_TRUE(env_.WriteFileAtomically(Path("x/y/b"), "").ok());
  ASSERT_TRUE(env_.WriteFileAtomically(Path("x/y/a"), "").ok());
  EXPECT_THAT(*env_.ListDirectory(Path("x/y")), ElementsAre("a", "b", "z"));

  const Status blocked = env_.CreateDirectories(Path("x/y/a/w"));
  EXPECT_FALSE(blocked.ok());
  EXPECT_THAT(std::string(blocked.message()), HasSubstr(Path("x/y/a")));

  EXPECT_FALSE(env_.RemoveDirectory(Path("x/y")).ok());  // not empty
  EXPECT_TRUE(env_.RemoveDirectory(Path("x/y/z")).ok());
  EXPECT_TRUE(env_.RemoveFile(Path("x/y/a")).ok());
  EXPECT_FALSE(env_.FileExists(Path("x/y/a")));
}

TEST_F(EnvTest, AtomicWriteReplacesAndLeavesNothingBehind) {
  ASSERT_TRUE(env_.WriteFileAtomically(Path("state"), "old").ok());
  ASSERT_TRUE(env_.WriteFileAtomically(Path("state"), "new").ok());
  EXPECT_EQ(*env_.ReadFile(Path("state")), "new");
  EXPECT_THAT(*env_.ListDirectory(directory_), ElementsAre("state"));

  ASSERT_TRUE(env_.CreateDirectories(Path("taken/x")).ok());
  EXPECT_FALSE(env_.WriteFileAtomically(Path("taken"), "file over directory").ok());
  EXPECT_THAT(*env_.ListDirectory(directory_), ElementsAre("state", "taken"));
}

TEST_F(EnvTest, ReadsFilesThatHideTheirSize) {
  const StatusOr<std::string> status = env_.ReadFile("/proc/self/status");
  ASSERT_TRUE(status.ok());
  EXPECT_THAT(*status, HasSubstr("Threads:"));
}

}  // namespace
}  // namespace penstock
