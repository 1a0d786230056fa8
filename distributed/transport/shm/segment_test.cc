// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

TEST(SegmentTest, BothEndsSeeTheSameBytes) {
  const auto producer = SharedSegment::Create();
  ASSERT_TRUE(producer.ok()) << producer.status();
  const auto consumer = SharedSegment::Open(UniqueFd(dup((*producer)->fd())));
  ASSERT_TRUE(consumer.ok()) << consumer.status();
  EXPECT_NE((*producer)->arena(), (*consumer)->arena());
  ASSERT_TRUE((*producer)->Reserve((*producer)->arena(), 3));
  std::memcpy((*producer)->arena(), "abc", 3);
  EXPECT_EQ(std::string((*consumer)->arena(), 3), "abc");
  RingWriter((*producer)->tensors()).Publish();
  EXPECT_EQ(*RingReader((*consumer)->tensors()).Readable(), 0);
  (*consumer)->state().producer_sleeps.Raise();
  EXPECT_TRUE((*producer)->state().producer_sleeps.LowerIfRaised());
  EXPECT_FALSE((*producer)->state().producer_sleeps.LowerIfRaised());
}

TEST(SegmentTest, MemoryOfTheArenaComesAndGoes) {
  const auto segment = *SharedSegment::Create();
  const auto kilobytes = [&] {
    struct stat found = {};
    EXPECT_EQ(fstat(segment->fd(), &found), 0);
    return found.st_blocks / 2;
  };
  EXPECT_LT(kilobytes(), 2 << 10);
  char* const part = segment->arena() + (5 << 20);
  ASSERT_TRUE(segment->Reserve(part, 8 << 20));
  EXPECT_GE(kilobytes(), 8 << 10);
  ASSERT_TRUE(segment->Discard(part, 8 << 20));
  EXPECT_LT(kilobytes(), 2 << 10);
  ASSERT_TRUE(segment->Reserve(part, 8 << 20));
  EXPECT_GE(kilobytes(), 8 << 10);
}

TEST(SegmentTest, MemoryThatItsOwnerCouldShortenIsRefused) {
  const auto segment = *SharedSegment::Create();
  struct stat found = {};
  ASSERT_EQ(fstat(segment->fd(), &found), 0);
  EXPECT_NE(ftruncate(segment->fd(), 4096), 0);
  for (const off_t bytes : {found.st_size, off_t{4096}}) {
    for (const int seals : {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL}) {
      UniqueFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      ASSERT_EQ(ftruncate(fd.get(), bytes), 0);
      ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
      const bool good = bytes == found.st_size && (seals & F_SEAL_SEAL) != 0;
      const auto opened = SharedSegment::Open(std::move(fd));
      EXPECT_EQ(opened.status().code(), good ? StatusCode::kOk : StatusCode::kDataLoss);
    }
  }
  UniqueFd no_memory(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(SharedSegment::Open(std::move(no_memory)).status().code(), StatusCode::kDataLoss);
}

TEST(SegmentTest, ALimitThatIsTooLowIsNamed) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status status = SharedSegment::Create().status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("(ulimit -n)"));
  EXPECT_TRUE(SharedSegment::Create().ok());
}

}  // namespace
}  // namespace penstock
