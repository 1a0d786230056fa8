// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/client_port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/check.h"
#include "core/base/testing/eventually.h"
#include "distributed/calls/testing/call_bytes.h"
#include "distributed/security/credentials.h"
#include "distributed/security/peer_user.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr uid_t kNobody = 65534;
constexpr int kNoOtherUser = 3;  // an exit code

class Connection {
 public:
  explicit Connection(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0, "cannot connect");
    sockaddr_in own = {};
    socklen_t size = sizeof(own);
    CHECK(getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &size) == 0);
    port_ = ntohs(own.sin_port);
  }
  ~Connection() { close(fd_); }
  int port() const { return port_; }
  // Returns whether the other side has closed the connection, or closes it within `ms`.
  bool Closed(int ms) {
    pollfd event = {.fd = fd_, .events = POLLIN, .revents = 0};
    char bytes[256];
    while (poll(&event, 1, ms) > 0) {
      if (read(fd_, bytes, sizeof(bytes)) <= 0) return true;
    }
    return false;
  }

 private:
  const int fd_;
  int port_ = 0;
};

grpc::Status Call(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return CallBytes(Credentials::None()->NewChannel(address, arguments), "/a.B/C");
}

// A server whose only port is the client port, without a service.
class Served {
 public:
  explicit Served(ClientPort::PeerCheck check = nullptr)
      : port_(*ClientPort::Listen("localhost:0")) {
    grpc::ServerBuilder builder;
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    poller_ = std::thread([this] {
      void* tag = nullptr;
      bool ok = false;
      while (queue_->Next(&tag, &ok)) {
      }
    });
    if (check == nullptr) {
      port_->Serve(*server_);
    } else {
      port_->Serve(*server_, std::move(check));
    }
  }
  ~Served() {
    port_->Stop();
    server_->Shutdown(std::chrono::system_clock::now());
    queue_->Shutdown();
    poller_.join();
  }
  const std::string& address() const { return port_->address(); }
  size_t connected() { return port_->Connected().size(); }
  int port() const { return HostPort::Parse(address())->port; }

 private:
  std::unique_ptr<ClientPort> port_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::thread poller_;
};

TEST(ClientPortTest, ServesItsOwnUser) {
  const Served served;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Call(served.address()).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  }
}

TEST(ClientPortTest, KnowsWhoIsConnected) {
  Served served;
  const auto has = [&](size_t wanted) {
    return Eventually([&] { return served.connected() == wanted; });
  };
  EXPECT_TRUE(has(0));
  {
    const Connection first(served.port()), second(served.port());
    EXPECT_TRUE(has(2));
  }
  EXPECT_TRUE(has(0));
}

// These clients never send anything, so there is no call that could be answered.
TEST(ClientPortTest, RefusedConnectionsAreFewAndClosed) {
  Served served([](const HostPort&, const HostPort&) { return PermissionDenied("a stranger"); });
  std::vector<std::unique_ptr<Connection>> strangers;
  for (size_t i = 0; i < ClientPort::kRefusedMax + 8; ++i) {
    strangers.push_back(std::make_unique<Connection>(served.port()));
  }
  for (size_t i = ClientPort::kRefusedMax; i < strangers.size(); ++i) {
    EXPECT_TRUE(strangers[i]->Closed(1'000)) << i;
  }
  EXPECT_EQ(served.connected(), 0u);
  for (size_t i = 0; i < ClientPort::kRefusedMax; ++i) {
    EXPECT_TRUE(strangers[i]->Closed((2 * ClientPort::kRefusedSeconds + 2) * 1'000)) << i;
  }
  EXPECT_EQ(Call(served.address()).error_code(), grpc::StatusCode::PERMISSION_DENIED)
      << "there is room for the next one";
}

constexpr char kAskAt[] = "PENSTOCK_TEST_ASK_AT";

// RefusesOtherUsers runs this test in a process of another user.
TEST(ClientPortTest, AsksForOthers) {
  const char* const address = std::getenv(kAskAt);
  if (address == nullptr) GTEST_SKIP() << "another test runs this one";
  ASSERT_EQ(geteuid(), kNobody);
  for (int i = 0; i < 3; ++i) {
    const grpc::Status status = Call(address);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_THAT(status.error_message(),
                HasSubstr("serves only processes of the task's own user (0) and root"));
  }
}

TEST(ClientPortTest, RefusesOtherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "takes root, to become another user";
  const Served served;
  const std::string variable = StrCat(kAskAt, "=", served.address());
  // The other user may not have access to the program's folder, so the program is opened here.
  const int program = open("/proc/self/exe", O_RDONLY);
  const pid_t child = fork();
  if (child == 0) {
    // Only system calls are allowed here, because fork has not copied the other threads.
    if (setuid(kNobody) != 0) _exit(kNoOtherUser);
    char name[] = "test", filter[] = "--gtest_filter=ClientPortTest.AsksForOthers";
    char* const arguments[] = {name, filter, nullptr};
    char* const variables[] = {const_cast<char*>(variable.c_str()), nullptr};
    fexecve(program, arguments, variables);
    _exit(4);
  }
  close(program);
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  if (WIFEXITED(ended) && WEXITSTATUS(ended) == kNoOtherUser) {
    GTEST_SKIP() << "the user namespace, that of a sandbox, has no other user";
  }
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(Call(served.address()).error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST(PeerUserTest, FindsTheConnectionAndNoOther) {
  const Served served;
  const Connection connection(served.port());
  EXPECT_EQ(LoopbackPeerUser("127.0.0.1", connection.port(), "127.0.0.1", served.port())
                .value_or(kNobody),
            geteuid());
  EXPECT_TRUE(CheckLoopbackPeer("127.0.0.1", connection.port(), "127.0.0.1", served.port()).ok());
  EXPECT_EQ(
      LoopbackPeerUser("127.0.0.2", connection.port(), "127.0.0.1", served.port()).status().code(),
      StatusCode::kNotFound);
  // A connection from the same port to another address of this host does not match.
  EXPECT_EQ(
      LoopbackPeerUser("127.0.0.1", connection.port(), "127.0.0.5", served.port()).status().code(),
      StatusCode::kNotFound);
  EXPECT_EQ(LoopbackPeerUser("127.0.0.1", connection.port(), "127.0.0.1", 1).status().code(),
            StatusCode::kNotFound);
  EXPECT_FALSE(CheckLoopbackPeer("::1", connection.port(), "127.0.0.1", served.port()).ok());
  EXPECT_FALSE(CheckLoopbackPeer("localhost", connection.port(), "127.0.0.1", served.port()).ok());
}

TEST(ClientPortTest, IsOnTheLoopbackInterface) {
  for (const std::string wrong :
       {"0.0.0.0:0", "[::]:0", "localhost", "10.0.0.1:2300", "x.invalid:1"}) {
    const Status status = ClientPort::Listen(wrong).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(StrCat("--insecure_client_address: '", wrong, "'")));
  }
  const auto taken = *ClientPort::Listen("127.0.0.1:0");
  EXPECT_THAT(std::string(ClientPort::Listen(taken->address()).status().message()),
              HasSubstr("Address already in use"));
}

}  // namespace
}  // namespace penstock
