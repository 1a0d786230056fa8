// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/task_probe.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "core/base/version.h"
#include "distributed/rpc/protocol.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using Outcome = TaskProbe::Outcome;

// A socket bound to a free loopback port. It accepts connections once it listens.
class Socket {
 public:
  Socket() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    CHECK(bind(fd_, any, size) == 0 && getsockname(fd_, any, &size) == 0);
    port_ = ntohs(address.sin_port);
  }
  ~Socket() { close(fd_); }
  std::string address() const { return StrCat("127.0.0.1:", port_); }
  void Listen() { CHECK(listen(fd_, 8) == 0); }
  int Accept() { return accept(fd_, nullptr, nullptr); }
  void Shutdown() { shutdown(fd_, SHUT_RDWR); }

 private:
  const int fd_;
  int port_ = 0;
};

TaskProbe Probe(const std::string& address) { return ProbeTasks({address}, 3'000)[0]; }

TEST(ProbeTasksTest, ATaskTellsAboutItself) {
  TestCluster cluster({{"ps", 1}, {"worker", 2}});
  std::vector<std::string> addresses;
  for (const auto& [job, tasks] : cluster.spec().jobs()) {
    for (const auto& [index, address] : tasks) addresses.push_back(address);
  }
  ASSERT_EQ(addresses.size(), 3u);
  const std::vector<TaskProbe> probes = ProbeTasks(addresses, 20'000);
  ASSERT_EQ(probes.size(), 3u);
  for (const TaskProbe& probe : probes) {
    EXPECT_EQ(probe.outcome, Outcome::kServes) << probe.detail;
    EXPECT_EQ(probe.version, kVersion);
    EXPECT_EQ(probe.protocol_version, kProtocolVersion);
    EXPECT_EQ(probe.cluster, cluster.spec());
    EXPECT_LT(std::abs(probe.clock_ahead_s), 5);
  }
  EXPECT_EQ(probes[0].name, "/job:ps/replica:0/task:0");
  EXPECT_EQ(probes[2].name, "/job:worker/replica:0/task:1");
  EXPECT_EQ(probes[0].incarnation, cluster.server("ps", 0).incarnation());
}

TEST(ProbeTasksTest, NamesThatDoNotResolve) {
  EXPECT_EQ(Probe("no-such-host.invalid:2222").outcome, Outcome::kUnresolved);
  EXPECT_EQ(Probe("no port").outcome, Outcome::kUnresolved);
}

TEST(ProbeTasksTest, APortWhereNothingListens) {
  const Socket bound;
  EXPECT_EQ(Probe(bound.address()).outcome, Outcome::kRefused);
}

TEST(ProbeTasksTest, AProcessThatDoesNotAnswer) {
  Socket listening;
  listening.Listen();
  const TaskProbe probe = Probe(listening.address());
  EXPECT_EQ(probe.outcome, Outcome::kSilent) << probe.detail;
  EXPECT_THAT(probe.detail, HasSubstr("no answer for 1000 ms"));
}

TEST(ProbeTasksTest, AnotherProgram) {
  Socket listening;
  listening.Listen();
  std::thread other([&] {
    for (int fd = listening.Accept(); fd >= 0; fd = listening.Accept()) {
      const std::string greeting = "SSH-2.0-OpenSSH_9.2\r\n";
      EXPECT_EQ(write(fd, greeting.data(), greeting.size()), greeting.size());
      close(fd);
    }
  });
  const TaskProbe probe = Probe(listening.address());
  listening.Shutdown();
  other.join();
  EXPECT_EQ(probe.outcome, Outcome::kForeign) << probe.detail;
}

TEST(ProbeTasksTest, NoAddresses) { EXPECT_TRUE(ProbeTasks({}, 10).empty()); }

}  // namespace
}  // namespace penstock
