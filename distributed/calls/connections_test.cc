// SPDX-License-Identifier: Apache-2.0
#include "distributed/calls/connections.h"

#include <grpcpp/client_context.h>
#include <grpcpp/server.h>

#include <chrono>
#include <set>

#include "core/base/testing/eventually.h"
#include "distributed/calls/testing/test_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/penstock/worker.grpc.pb.h"

namespace penstock {
namespace {

using testing::Contains;

// A service that remembers the address of the last caller.
class Callee final : public wire::Worker::Service {
 public:
  grpc::Status Reset(grpc::ServerContext* context, const wire::ResetRequest*,
                     wire::ResetResponse*) override {
    peer = context->peer();
    return grpc::Status::OK;
  }
  std::string peer;
};

// Makes a call on `channel`; returns the caller's address that `callee` has seen.
std::string CallFrom(const std::shared_ptr<grpc::Channel>& channel, Callee& callee) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  wire::ResetResponse response;
  EXPECT_TRUE(wire::Worker::NewStub(channel)->Reset(&context, {}, &response).ok());
  return callee.peer;
}

TEST(ConnectedClientsTest, ListsClientsWithAConnection) {
  Callee callee;
  TestHost host;
  host.host().builder->RegisterService(&callee);
  host.Start();
  EXPECT_TRUE(ConnectedClients().empty());

  const auto stays = NewChannel(host.address(), {});
  auto goes = NewChannel(host.address(), {});
  const std::string staying = CallFrom(stays, callee), going = CallFrom(goes, callee);
  EXPECT_NE(staying, going);
  EXPECT_THAT(ConnectedClients(), testing::UnorderedElementsAre(staying, going));

  goes = nullptr;
  // gRPC closes the connection some time later.
  EXPECT_TRUE(Eventually([&] { return !ConnectedClients().contains(going); }));
  EXPECT_THAT(ConnectedClients(), Contains(staying));
}

// gRPC returns the list in pages of a few hundred entries.
TEST(ConnectedClientsTest, ListsThousandsOfClients) {
  Callee callee;
  TestHost host;
  host.host().builder->RegisterService(&callee);
  host.Start();
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  std::set<std::string> clients;
  for (int i = 0; i < 600; ++i) {
    channels.push_back(NewChannel(host.address(), {}));
    clients.insert(CallFrom(channels.back(), callee));
  }
  EXPECT_EQ(clients.size(), 600u);
  const auto connected = ConnectedClients();
  for (const std::string& client : clients) EXPECT_TRUE(connected.contains(client)) << client;
}

}  // namespace
}  // namespace penstock
