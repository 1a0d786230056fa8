// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "core/base/check.h"
#include "core/base/status.h"
#include "distributed/calls/channel.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// A name server that answers "there is no such name" to the first questions for addresses of
// "late", and then 127.0.0.1.
class NameServer {
 public:
  explicit NameServer(int refusals) : refusals_(refusals) {
    CHECK(fd_ >= 0);
    sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    CHECK(bind(fd_, generic, size) == 0 && getsockname(fd_, generic, &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~NameServer() {
    stop_ = true;
    shutdown(fd_, SHUT_RDWR);  // ends the receive call
    thread_.join();
    close(fd_);
  }
  int port() const { return port_; }
  int questions() const { return questions_; }

 private:
  static constexpr size_t kHeader = 12;

  void Serve() {
    char message[512];
    while (!stop_) {
      sockaddr_in from;
      socklen_t size = sizeof(from);
      auto* const generic = reinterpret_cast<sockaddr*>(&from);
      const ssize_t count = recvfrom(fd_, message, sizeof(message), 0, generic, &size);
      if (count < static_cast<ssize_t>(kHeader)) continue;
      const std::string answer = Answer(std::string(message, count));
      (void)sendto(fd_, answer.data(), answer.size(), 0, generic, size);
    }
  }

  std::string Answer(const std::string& query) {
    const size_t name_end = query.find('\0', kHeader);
    const std::string name = query.substr(kHeader, name_end - kHeader);
    const std::string question = query.substr(kHeader, name_end + 5 - kHeader);
    const bool wants_v4 = query[name_end + 2] == 1;
    const bool wanted = wants_v4 && name == "\4late";
    if (wanted) ++questions_;
    const bool known = name == "\4late" && questions_ > refusals_;
    const char answers = wanted && known ? 1 : 0;
    const std::string flags = {'\x81', known ? '\x80' : '\x83'};
    std::string answer = StrCat(query.substr(0, 2), flags, std::string{0, 1, 0, answers},
                                std::string(4, '\0'), question);
    if (answers == 0) return answer;
    // Appends the answer's record: a pointer to the name in the question, type A, class IN, a time
    // to live of 0, and the four bytes of the address.
    return answer + std::string{'\xc0', kHeader, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1};
  }

  const int refusals_;
  const int fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int port_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<int> questions_{0};
  std::thread thread_;
};

// A plain gRPC channel would send its sixth question after 12 s at the earliest.
TEST(ChannelsTest, ANameIsLookedUpAgainAndAgain) {
  grpc::CallbackGenericService any_call;
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&any_call);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  NameServer names(/*refusals=*/5);
  Channels channels{KeepaliveOptions()};
  const std::string address = StrCat("dns://127.0.0.1:", names.port(), "/late.:", port);
  std::string mismatch;
  const auto channel = channels.Connect(address, 10'000, &mismatch);
  EXPECT_EQ(channel->GetState(false), GRPC_CHANNEL_READY);
  // On a busy machine gRPC may repeat a question whose answer is late.
  EXPECT_GE(names.questions(), 6);
  EXPECT_EQ(channels.To(address), channel);
}

TEST(ChannelsTest, ConnectEndsAtItsTimeout) {
  Channels channels{KeepaliveOptions()};
  std::string mismatch;
  const auto channel = channels.Connect("no-such-host.invalid:1", 300, &mismatch);
  EXPECT_NE(channel->GetState(false), GRPC_CHANNEL_READY);
}

}  // namespace
}  // namespace penstock
