// SPDX-License-Identifier: Apache-2.0
#include "distributed/calls/channel.h"

#include <grpcpp/client_context.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>

#include <chrono>
#include <limits>

#include "core/base/status.h"
#include "gtest/gtest.h"
#include "proto/penstock/worker.grpc.pb.h"

namespace penstock {
namespace {

// A service that answers with the name of the session in the request.
class Echo final : public wire::Worker::Service {
  grpc::Status GetStatus(grpc::ServerContext*, const wire::GetStatusRequest* request,
                         wire::GetStatusResponse* response) override {
    response->add_unknown_session(request->session_handle(0));
    return grpc::Status::OK;
  }
};

// Starts a server at `*port`, or at a free port if `*port` is 0, and stores the port in `*port`.
// Returns null if the port is in use.
std::unique_ptr<grpc::Server> Serve(Echo* echo, int* port) {
  grpc::ServerBuilder builder;
  SetServerArguments({}, &builder);
  builder.AddListeningPort(StrCat("127.0.0.1:", *port), grpc::InsecureServerCredentials(), port);
  builder.RegisterService(echo);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  return *port == 0 ? nullptr : std::move(server);
}

grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& text,
                  std::string* echoed) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  wire::GetStatusRequest request;
  request.add_session_handle(text);
  wire::GetStatusResponse response;
  const grpc::Status status =
      wire::Worker::NewStub(channel)->GetStatus(&context, request, &response);
  if (status.ok()) *echoed = response.unknown_session(0);
  return status;
}

TEST(ChannelTest, MessagesMayBeLong) {
  Echo echo;
  int port = 0;
  const auto server = Serve(&echo, &port);
  const std::string text(20'000'000, 'x');
  std::string echoed;
  EXPECT_TRUE(Call(NewChannel(StrCat("127.0.0.1:", port), {}), text, &echoed).ok());
  EXPECT_TRUE(echoed == text);
}

TEST(ChannelTest, ARestartedPeerIsFoundWithinSeconds) {
  Echo echo;
  int port = 0;
  auto server = Serve(&echo, &port);
  const auto channel = NewChannel(StrCat("127.0.0.1:", port), {});
  std::string echoed;
  ASSERT_TRUE(Call(channel, "first", &echoed).ok());
  server->Shutdown();
  server = nullptr;
  EXPECT_EQ(Call(channel, "second", &echoed).error_code(), grpc::StatusCode::UNAVAILABLE);
  Echo again;
  server = Serve(&again, &port);
  ASSERT_NE(server, nullptr);
  const auto start = std::chrono::steady_clock::now();
  while (!Call(channel, "third", &echoed).ok() &&
         std::chrono::steady_clock::now() - start < std::chrono::seconds(20)) {
  }
  EXPECT_EQ(echoed, "third");
}

TEST(ChannelTest, APortIsNotShared) {
  Echo first, second;
  int port = 0;
  const auto server = Serve(&first, &port);
  ASSERT_NE(server, nullptr);
  int taken = port;
  EXPECT_EQ(Serve(&second, &taken), nullptr);
}

// A timeout may have any length, even one that would overflow a deadline.
TEST(ChannelsTest, ConnectsWithinItsTimeout) {
  Echo echo;
  int port = 0;
  const auto server = Serve(&echo, &port);
  for (const int64_t timeout_ms : {int64_t{30'000}, std::numeric_limits<int64_t>::max()}) {
    Channels channels({});
    std::string mismatch;
    const auto channel = channels.Connect(StrCat("127.0.0.1:", port), timeout_ms, &mismatch);
    EXPECT_EQ(channel->GetState(false), GRPC_CHANNEL_READY) << timeout_ms;
  }
  Channels channels({});
  std::string mismatch;
  const auto channel = channels.Connect("127.0.0.1:1", 0, &mismatch);
  EXPECT_EQ(mismatch, "");
  EXPECT_NE(channel->GetState(false), GRPC_CHANNEL_READY);
}

TEST(ChannelsTest, KeepsOneChannelPerAddress) {
  Channels channels({});
  const auto a = channels.To("127.0.0.1:1");
  EXPECT_EQ(channels.To("127.0.0.1:1"), a);
  EXPECT_NE(channels.To("127.0.0.1:2"), a);
}

}  // namespace
}  // namespace penstock
