// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/server.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <thread>

#include "core/graph/builder.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

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
  ServerOptions rdma = At("127.0.0.1:0");
  rdma.task.protocol = "rdma";
  const std::pair<ServerOptions, std::string> cases[] = {
      {rdma, "--protocol: 'rdma' is not known; write one of grpc, local"},
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

TEST(ServerTest, TheClusterMustNameTheServer) {
  auto server = Server::Create(At("127.0.0.1:0"));
  ASSERT_TRUE(server.ok());
  ClusterSpec other;
  CHECK_OK(other.AddTask("ps", 0, "127.0.0.1:1"));
  EXPECT_EQ((*server)->SetCluster(other).code(), StatusCode::kInvalidArgument);
}

TEST(ServerTest, TasksOfOneClusterUseOneProtocol) {
  ServerOptions options[2] = {At("127.0.0.1:0"), At("127.0.0.1:0")};
  options[1].task = {.job = "worker", .protocol = "local"};
  CHECK_OK(options[1].task.cluster.AddTask("worker", 0, "127.0.0.1:0"));
  auto ps = Server::Create(options[0]);
  auto worker = Server::Create(options[1]);
  ASSERT_TRUE(ps.ok() && worker.ok());
  ClusterSpec cluster;
  CHECK_OK(cluster.AddTask("ps", 0, (*ps)->address()));
  CHECK_OK(cluster.AddTask("worker", 0, (*worker)->address()));
  for (Server* server : {ps->get(), worker->get()}) {
    ASSERT_TRUE(server->SetCluster(cluster).ok());
    ASSERT_TRUE(server->Start().ok());
  }
  auto session = NewRemoteSession((*worker)->target(), {});
  ASSERT_TRUE(session.ok()) << session.status();
  GraphBuilder g;
  CallIn(g, "NoOp", {});
  const Status status = (*session)->Extend(g.graph());
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(StrCat("/job:ps/replica:0/task:0 at ", (*ps)->address(),
                               " moves tensors by protocol 'grpc', /job:worker/replica:0/task:0 "
                               "at ",
                               (*worker)->address(), " by 'local'")));
}

TEST(ServerTest, AProtocolMayNeedTasksOfOneHost) {
  ServerOptions options = At("127.0.0.1:0");
  options.task.protocol = "local";
  auto server = Server::Create(options);
  ASSERT_TRUE(server.ok()) << server.status();
  ClusterSpec cluster;
  CHECK_OK(cluster.AddTask("ps", 0, (*server)->address()));
  CHECK_OK(cluster.AddTask("worker", 3, "another-host:2222"));
  ASSERT_TRUE((*server)->SetCluster(cluster).ok());
  const Status status = (*server)->Start();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("--protocol: 'local' joins tasks of one host; /job:worker/task:3 is at "
                        "another-host:2222"));
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
