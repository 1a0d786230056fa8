// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/tensor/memory_limit.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Writes a fake /proc and /sys.
class ControlGroups : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  const std::string root_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ControlGroups, VersionTwoTakesTheLeastOfAllGroupsAbove) {
  Write("/proc/self/cgroup", "0::/pod/container\n");
  Write("/sys/fs/cgroup/pod/container/memory.max", "max\n");
  Write("/sys/fs/cgroup/pod/memory.max", "104857600\n");
  EXPECT_EQ(AvailableMemoryBytes(root_), 100 * kMiB);
  Write("/sys/fs/cgroup/memory.max", "52428800\n");
  EXPECT_EQ(AvailableMemoryBytes(root_), 50 * kMiB);
}

TEST_F(ControlGroups, VersionOne) {
  Write("/proc/self/cgroup", "5:cpu,memory:/a\n3:pids:/b\n0::/\n");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "209715200\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(AvailableMemoryBytes(root_), 200 * kMiB);
}

// In a container the path is that of the host, but the container's group is mounted at the top.
TEST_F(ControlGroups, ThoseMountedAtTheTop) {
  Write("/proc/self/cgroup", "4:memory:/docker/0123\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "314572800\n");
  EXPECT_EQ(AvailableMemoryBytes(root_), 300 * kMiB);
}

TEST_F(ControlGroups, WithoutAnyItIsTheMachines) {
  EXPECT_GT(AvailableMemoryBytes(root_), 100 * kMiB);
}

TEST(MemoryLimit, AddressSpaceCountsToo) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit less = before;
  less.rlim_cur = 7 * kMiB * 1024;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &less), 0);
  EXPECT_LE(AvailableMemoryBytes("/nowhere"), 7 * kMiB * 1024);
  setrlimit(RLIMIT_AS, &before);
}

TEST(MemoryLimit, LeavesRoomForTheProgram) {
  EXPECT_EQ(DefaultMemoryLimitOf(1024 * kMiB), 896 * kMiB);
  EXPECT_EQ(DefaultMemoryLimitOf(256 * kMiB), 192 * kMiB);
  EXPECT_EQ(DefaultMemoryLimitOf(64 * kMiB), 32 * kMiB);
  EXPECT_EQ(DefaultMemoryLimitOf(1024 * 1024 * kMiB), 1022 * 1024 * kMiB);
}

}  // namespace
}  // namespace penstock
