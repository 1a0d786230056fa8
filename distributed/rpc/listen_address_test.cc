// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/listen_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

// Returns the address at which a task listens, or the error message; `own` is the task's address in
// the cluster.
std::string Find(const std::string& own, const std::string& listen_address) {
  const auto found = FindListenAddress(*HostPort::Parse(own), listen_address);
  return found.ok() ? found->ToString() : std::string(found.status().message());
}

TEST(FindListenAddressTest, AllInterfacesIfTheAddressIsNotThisHosts) {
  for (const std::string own : {"ps-0.invalid:2222", "203.0.113.7:2222", "[2001:db8::1]:2222",
                                "localhost.invalid:2222", "0.0.0.0:2222"}) {
    EXPECT_THAT(Find(own, ""), AnyOf("[::]:2222", "0.0.0.0:2222")) << own;
  }
  for (const std::string own :
       {"127.0.0.1:2222", "127.255.0.3:2222", "[::1]:2222", "localhost:2222", "LocalHost:2222"}) {
    EXPECT_EQ(Find(own, ""), own);
  }
}

// Tests the addresses of this host that other hosts can reach. In a sandbox without a network there
// are none.
TEST(FindListenAddressTest, OnlyTheAddressOfTheClusterIfItIsThisHosts) {
  ifaddrs* list = nullptr;
  ASSERT_EQ(getifaddrs(&list), 0);
  int seen = 0;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN];
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(*entry->ifa_addr);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    EXPECT_EQ(Find(StrCat(text, ":2222"), ""), StrCat(text, ":2222"));
    ++seen;
  }
  freeifaddrs(list);
  EXPECT_GE(seen, 1) << "the loopback interface has an address, too";
}

TEST(FindListenAddressTest, ThePortIsTheClustersUnlessOneIsGiven) {
  EXPECT_EQ(Find("a:2222", "10.0.0.1"), "10.0.0.1:2222");
  EXPECT_EQ(Find("a:2222", "10.0.0.1:3333"), "10.0.0.1:3333");
  EXPECT_EQ(Find("a:2222", "[::1]"), "[::1]:2222");
  EXPECT_EQ(Find("a:2222", "[::1]:3333"), "[::1]:3333");
  EXPECT_EQ(Find("127.0.0.1:2222", "0.0.0.0"), "0.0.0.0:2222");
  EXPECT_EQ(Find("a:0", "10.0.0.1:0"), "10.0.0.1:0") << "any free one";
}

TEST(FindListenAddressTest, MistakesNameTheFlag) {
  for (const std::string wrong :
       {"::1", "eth 0", "a:b", "a:", ":1", "a:65536", "[::1", "http://a", "[]:1", "a,b", "a:-1"}) {
    const Status status = FindListenAddress({.host = "a", .port = 1}, wrong).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(StrCat("--listen_address: '", wrong, "' is neither HOST nor HOST:PORT")));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  }
  EXPECT_EQ(Find("a:2222", "b:0"),
            "--listen_address: 'b:0' leaves the port open, but peers call this task at a:2222; "
            "give the port that leads there");
}

// A port of 127.0.0.1 on which this process listens.
class TakenPort {
 public:
  TakenPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    CHECK(bind(fd_, any, length) == 0 && listen(fd_, 1) == 0 && getsockname(fd_, any, &length) == 0,
          "no port for the test");
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { close(fd_); }
  int port() const { return port_; }

 private:
  const int fd_;
  int port_ = 0;
};

TEST(CheckListenAddressTest, SaysWhyNot) {
  const auto error = [](const std::string& host, int port) {
    return std::string(CheckListenAddress({.host = host, .port = port}).message());
  };
  int free_again = 0;
  {
    const TakenPort taken;
    free_again = taken.port();
    EXPECT_EQ(error("127.0.0.1", taken.port()),
              StrCat("cannot listen on 127.0.0.1:", taken.port(),
                     ": Address already in use; is this task running already?"));
  }
  EXPECT_EQ(error("127.0.0.1", free_again), "") << "it holds the port no longer than it looks";
  EXPECT_EQ(error("127.0.0.1", free_again), "");
  EXPECT_EQ(error("127.0.0.1", 0), "");
  EXPECT_EQ(error("192.0.2.1", 2222),
            "cannot listen on 192.0.2.1:2222: Cannot assign requested address; give "
            "--listen_address an address of this host");
  EXPECT_THAT(error("no-such-host.invalid", 2222),
              testing::MatchesRegex("cannot listen on no-such-host.invalid:2222: .*; give "
                                    "--listen_address an address of this host"));
}

}  // namespace
}  // namespace penstock
