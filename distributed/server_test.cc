// SPDX-License-Identifier: Apache-2.0
#include "distributed/server.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <thread>

#include "distributed/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/master_service.grpc.pb.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

ServerOptions At(const std::string& address) {
  ServerOptions options = TestCluster::Quick();
  options.task = {.job = "ps"};
  CHECK_OK(options.task.cluster.AddTask("ps", 0, address));
  return options;
}

TEST(ServerTest, AFreePortIsChosenAndSaid) {
  auto server = Server::Create(At("127.0.0.1:0"));
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT((*server)->target(), testing::MatchesRegex("grpc://127.0.0.1:[1-9][0-9]*"));
  EXPECT_EQ((*server)->task(), "/job:ps/replica:0/task:0");
  EXPECT_NE((*server)->incarnation(), 0);
}

TEST(ServerTest, MistakesAreOneLine) {
  auto first = Server::Create(At("127.0.0.1:0"));
  ASSERT_TRUE(first.ok());
  ServerOptions unknown = At("127.0.0.1:0");
  unknown.task.task = 3;
  const std::pair<ServerOptions, std::string> cases[] = {
      {At((*first)->address()), "Address already in use; is this task running already?"},
      {At("no-such-host.invalid:1"), "cannot listen on no-such-host.invalid:1: "},
      {At("192.0.2.1:2222"), "cannot listen on 192.0.2.1:2222: Cannot assign requested address"},
      {unknown, "/job:ps/replica:0/task:3 has no address in the cluster"},
  };
  for (const auto& [options, text] : cases) {
    const Status status = Server::Create(options).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  }
}

TEST(ServerTest, JoinEndsWithAShutdownCall) {
  auto server = Server::Create(At("127.0.0.1:0"));
  ASSERT_TRUE(server.ok());
  ClusterSpec cluster;
  CHECK_OK(cluster.AddTask("ps", 0, (*server)->address()));
  ASSERT_TRUE((*server)->SetCluster(cluster).ok());
  ASSERT_TRUE((*server)->Start().ok());
  std::thread joiner([&] { (*server)->Join(); });
  EXPECT_TRUE(ShutdownTask((*server)->address(), "the chief is done", 2000).ok());
  joiner.join();
  EXPECT_EQ((*server)->shutdown_reason(), "the chief is done");
}

// A client that makes a session and goes, without closing it.
TEST(ServerTest, SessionsOfClientsThatHaveGoneAreClosed) {
  ServerOptions options = TestCluster::Quick();
  options.session_idle_timeout_ms = 500;
  TestCluster cluster({{"worker", 1}}, options);
  const auto connect = [&] {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return tensorflow::MasterService::NewStub(grpc::CreateCustomChannel(
        cluster.target().substr(7), grpc::InsecureChannelCredentials(), own));
  };
  const auto create = [](tensorflow::MasterService::Stub& stub) {
    grpc::ClientContext context;
    tensorflow::CreateSessionResponse created;
    EXPECT_TRUE(stub.CreateSession(&context, {}, &created).ok());
    return created.session_handle();
  };
  const auto silent = connect();
  auto gone = connect();
  const std::string kept = create(*silent), left = create(*gone);
  const auto other = connect();
  const auto is_open = [&](const std::string& handle) {
    grpc::ClientContext context;
    tensorflow::ExtendSessionRequest extend;  // of a version that it does not have: changes nothing
    extend.set_session_handle(handle);
    extend.set_current_graph_version(7);
    tensorflow::ExtendSessionResponse extended;
    return other->ExtendSession(&context, extend, &extended).error_message().find("not found") ==
           std::string::npos;
  };
  gone = nullptr;
  Env::Real().SleepForNanos(12'000'000'000);  // sessions are looked at every 5 s
  EXPECT_FALSE(is_open(left));
  EXPECT_TRUE(is_open(kept));
}

TEST(ServerTest, TheClusterMustNameTheServer) {
  auto server = Server::Create(At("127.0.0.1:0"));
  ASSERT_TRUE(server.ok());
  ClusterSpec other;
  CHECK_OK(other.AddTask("ps", 0, "127.0.0.1:1"));
  EXPECT_EQ((*server)->SetCluster(other).code(), StatusCode::kInvalidArgument);
}

// grpc.health.v1 by hand: the answer's field 1 is 1 when serving.
TEST(ServerTest, TellsWhetherItServes) {
  TestCluster cluster({{"worker", 1}});
  const auto channel =
      grpc::CreateChannel(cluster.target().substr(7), grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  for (const std::string service : {"", "tensorflow.MasterService", "penstock.wire.Worker"}) {
    const std::string request =
        service.empty() ? "" : StrCat("\x0a", std::string(1, service.size()), service);
    const grpc::Slice slice(request);
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                      grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    ASSERT_TRUE(status.ok()) << status.error_message();
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(answer.Dump(&slices).ok());
    ASSERT_EQ(slices.size(), 1);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(slices[0].begin()), slices[0].size()),
              "\x08\x01");
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
  }
}

}  // namespace
}  // namespace penstock
