// SPDX-License-Identifier: Apache-2.0
//
// Kills a process while it writes tensors into shared memory. The other end must notice within a
// second, deliver only complete tensors, and free all resources of the connection.
#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "core/base/testing/eventually.h"
#include "distributed/transport/testing/test_key.h"
#include "gtest/gtest.h"
#include "tests/transport/test_task.h"

namespace penstock {
namespace {

constexpr int kRounds = 12;
constexpr int64_t kNoticedNanosMax = 1'000'000'000;

std::set<std::string> SharedMemoryFiles() {
  std::set<std::string> names;
  DIR* const folder = opendir("/dev/shm");
  if (folder == nullptr) return names;
  while (const dirent* const entry = readdir(folder)) names.insert(entry->d_name);
  closedir(folder);
  return names;
}

// Returns the number of connections whose memory this process maps.
int Mappings() {
  int count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    count += line.find("penstock-tensors") != std::string::npos;
  }
  return count;
}

// A process that has been forked and waits until it may begin.
struct Producer {
  pid_t pid = -1;
  int start = -1;  // a byte written to this pipe starts the process
  FILE* from = nullptr;
};

// Waits for a byte from `start`, then sends tensors without end. All elements of a tensor are its
// sequence number, so that the consumer detects a part of another tensor. Small tensors are sent
// through the ring, large ones through the arena.
[[noreturn]] void SendForEver(int start, int to) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  char none = 0;
  if (read(start, &none, 1) != 1) _exit(0);
  TestTask task("shm", "ps");
  const std::string line = StrCat(task.id().address, " ", task.id().incarnation, "\n");
  CHECK(write(to, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  const auto sink = task.steps().WaitForSink("/job:worker/replica:0/task:0", 1);
  std::atomic<int> pending = 0;
  for (int32_t i = 1;; ++i) {
    while (pending > 16) Env::Real().SleepForNanos(100'000);
    Tensor value(DType::kInt32, Shape({i % 2 == 0 ? 1 << 10 : 1 << 20}));
    for (int32_t& x : value.mutable_flat<int32_t>()) x = i;
    ++pending;
    sink->Send(1, TestKey("edge", static_cast<uint64_t>(i)), value, false,
               [&pending] { --pending; });
  }
}

std::vector<Producer> ForkProducers() {
  std::vector<Producer> producers;
  for (int i = 0; i < kRounds; ++i) {
    int start[2], from[2];
    CHECK(pipe(start) == 0 && pipe(from) == 0);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      close(start[1]);
      SendForEver(start[0], from[1]);
    }
    close(start[0]);
    close(from[1]);
    producers.push_back({pid, start[1], fdopen(from[0], "r")});
  }
  return producers;
}

TaskId Begin(const Producer& producer) {
  CHECK(write(producer.start, "!", 1) == 1);
  char address[256];
  unsigned long long incarnation = 0;
  CHECK(std::fscanf(producer.from, "%255s %llu", address, &incarnation) == 2);
  return {"/job:ps/replica:0/task:0", address, incarnation};
}

void ExpectWholeTensors(const std::vector<RecordingSteps::Received>& received) {
  for (const auto& r : received) {
    const auto number = static_cast<int32_t>(r.key.iteration());
    const auto elements = r.value.flat<int32_t>();
    ASSERT_EQ(elements.size(), number % 2 == 0 ? 1 << 10 : 1 << 20);
    for (const int32_t x : elements) ASSERT_EQ(x, number);
  }
}

TEST(ShmFaultsTest, AProducerThatIsKilledWhileItWrites) {
  // Forks before this process has threads.
  const std::vector<Producer> producers = ForkProducers();
  const std::set<std::string> before = SharedMemoryFiles();
  for (int round = 0; round < kRounds; ++round) {
    TestTask worker("shm", "worker");
    const TaskId ps = Begin(producers[round]);
    worker.transport().Subscribe(ps, 1);
    worker.steps().WaitForTensors(4);
    Env::Real().SleepForNanos(round * 1'700'000);  // a different moment in each round
    ASSERT_EQ(kill(producers[round].pid, SIGKILL), 0);
    const int64_t begin = Env::Real().NowNanos();
    const Status why = worker.steps().WaitForFailure(1);
    EXPECT_LT(Env::Real().NowNanos() - begin, kNoticedNanosMax) << "round " << round;
    EXPECT_EQ(why.code(), StatusCode::kUnavailable) << why;
    EXPECT_NE(why.message().find(ps.ToString()), string_view::npos) << why;
    ExpectWholeTensors(worker.steps().received());
    worker.steps().ForgetTensors();
    waitpid(producers[round].pid, nullptr, 0);
    close(producers[round].start);
    std::fclose(producers[round].from);
    EXPECT_TRUE(Eventually([] { return Mappings() == 0; })) << "round " << round;
  }
  EXPECT_EQ(SharedMemoryFiles(), before);
}

}  // namespace
}  // namespace penstock
