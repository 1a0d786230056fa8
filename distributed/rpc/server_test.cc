// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/server.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/graph/builder.h"
#include "distributed/calls/testing/call_bytes.h"
#include "distributed/rpc/ask_cluster.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/master_service.grpc.pb.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

ServerOptions At(const std::string& address) {
  ServerOptions options = TestCluster::Quick();
  options.task = {.job = "ps"};
  CHECK_OK(options.task.cluster.AddTask("ps", 0, address));
  return options;
}

ServerOptions ListeningAt(const std::string& address, const std::string& listen_address) {
  ServerOptions options = At(address);
  options.task.listen_address = listen_address;
  return options;
}

int PortOf(const Server& server) { return HostPort::Parse(server.address())->port; }

TEST(ServerTest, AFreePortIsChosenAndReported) {
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
      {rdma, "--protocol: 'rdma' is not known; write one of auto, grpc, local, shm, verbs"},
      {At((*first)->address()), "Address already in use; is this task running already?"},
      {ListeningAt("a:2222", "no-such-host.invalid"), "cannot listen on no-such-host.invalid:2222"},
      {ListeningAt("a:2222", "192.0.2.1"),
       "cannot listen on 192.0.2.1:2222: Cannot assign requested address; give --listen_address"},
      {ListeningAt("a:2222", "eth 0"), "--listen_address: 'eth 0' is neither HOST nor HOST:PORT"},
      {ListeningAt("a:2222", "::1"), "--listen_address: '::1' is neither HOST nor HOST:PORT"},
      {ListeningAt("a:2222", "127.0.0.1:0"), "but peers call this task at a:2222"},
      {unknown, "/job:ps/replica:0/task:3 has no address in the cluster"},
  };
  for (const auto& [options, text] : cases) {
    const Status status = Server::Create(options).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  }
}

// A task's host in the cluster's specification may be a gateway's address, or a name that resolves
// later: only peers use it.
TEST(ServerTest, ListensWhateverTheClusterCallsItsHost) {
  for (const std::string host : {"203.0.113.7", "no-such-host.invalid"}) {
    auto server = Server::Create(At(host + ":0"));
    ASSERT_TRUE(server.ok()) << server.status();
    ASSERT_TRUE((*server)->Start().ok());
    const int port = PortOf(**server);
    EXPECT_EQ((*server)->target(), StrCat("grpc://", host, ":", port));
    EXPECT_THAT((*server)->listens_at(),
                testing::AnyOf(StrCat("[::]:", port), StrCat("0.0.0.0:", port)));
    auto session = NewRemoteSession(StrCat("grpc://127.0.0.1:", port), {});
    EXPECT_TRUE((*session)->ListDevices().ok());
  }
}

TEST(ServerTest, ListensAtItsListenAddress) {
  const std::pair<ServerOptions, std::string> cases[] = {
      {At("127.0.0.1:0"), "127.0.0.1:"},  // a loopback address, which no other host can reach
      {At("localhost:0"), "localhost:"},
      {ListeningAt("ps-0.invalid:0", "127.0.0.1"), "127.0.0.1:"},
      {ListeningAt("127.0.0.1:0", "0.0.0.0:0"), "0.0.0.0:"},
  };
  for (const auto& [options, host] : cases) {
    auto server = Server::Create(options);
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_EQ((*server)->listens_at(), StrCat(host, PortOf(**server)));
  }
}

// The number of threads of the server follows from both counts together.
TEST(ServerTest, OneCountOfThreadsAloneIsNamedAsWithoutEffect) {
  for (const bool both : {false, true}) {
    ServerOptions options = At("127.0.0.1:0");
    options.default_session_config = "intra_op_parallelism_threads: 2";
    if (both) options.default_session_config += " inter_op_parallelism_threads: 3";
    testing::internal::CaptureStderr();
    {
      auto server = Server::Create(options);
      ASSERT_TRUE(server.ok()) << server.status();
      ASSERT_TRUE((*server)->Start().ok());
    }
    const auto named = HasSubstr("no effect here (docs/session_options.md): intra_op_parallelism");
    const std::string log = testing::internal::GetCapturedStderr();
    if (both) {
      EXPECT_THAT(log, Not(named));
    } else {
      EXPECT_THAT(log, named);
    }
  }
}

// The port that a server listens at may differ from its port in the cluster, for example behind a
// gateway that maps ports.
TEST(ServerTest, ThePortMayDifferFromTheOneInTheCluster) {
  auto first = Server::Create(At("127.0.0.1:0"));
  ASSERT_TRUE(first.ok());
  const int port = PortOf(**first);
  first->reset();
  auto server = Server::Create(ListeningAt("203.0.113.7:2222", StrCat("127.0.0.1:", port)));
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ((*server)->address(), "203.0.113.7:2222");
  EXPECT_EQ((*server)->listens_at(), StrCat("127.0.0.1:", port));
}

TEST(ServerTest, AHostThatDoesNotResolveIsWaitedForAndNamed) {
  ServerOptions options = At("127.0.0.1:0");
  CHECK_OK(options.task.cluster.AddTask("worker", 0, "late-peer.invalid:2222"));
  auto server = Server::Create(options);
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_TRUE((*server)->Start().ok());
  auto session = NewRemoteSession((*server)->target(), {});
  const Status status = (*session)->ListDevices().status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no answer within 2000 ms from /job:worker/replica:0/task:0 at "
                        "late-peer.invalid:2222 ("));
  auto alone = NewRemoteSession((*server)->target(), {.device_filters = {"/job:ps"}});
  EXPECT_TRUE((*alone)->ListDevices().ok());
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

// The client makes a session, and disconnects without closing it.
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
  // Counts the sessions by a report of the cluster, because calls to the sessions would keep them
  // alive.
  const auto open_sessions = [&] {
    std::vector<std::string> handles;
    const auto report = AskCluster(cluster.target());
    CHECK_OK(report.status());
    for (const auto& session : report->task(0).report().session()) {
      handles.push_back(session.handle());
    }
    return handles;
  };
  EXPECT_THAT(open_sessions(), UnorderedElementsAre(kept, left));
  gone = nullptr;
  // The server checks both sessions together, every 5 s.
  for (int i = 0; i < 600 && open_sessions().size() == 2; ++i) {
    Env::Real().SleepForNanos(50'000'000);
  }
  EXPECT_THAT(open_sessions(), ElementsAre(kept));
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
                               " moves tensors by protocol 'auto', /job:worker/replica:0/task:0 "
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

// Calls grpc.health.v1 without generated code: the answer's field 1 is 1 when serving.
TEST(ServerTest, TellsWhetherItServes) {
  TestCluster cluster({{"worker", 1}});
  const auto channel =
      grpc::CreateChannel(cluster.target().substr(7), grpc::InsecureChannelCredentials());
  for (const std::string service : {"", "tensorflow.MasterService", "penstock.wire.Worker"}) {
    const std::string request =
        service.empty() ? "" : StrCat("\x0a", std::string(1, service.size()), service);
    std::string answer;
    const grpc::Status status =
        CallBytes(channel, "/grpc.health.v1.Health/Check", request, &answer);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(answer, "\x08\x01");
  }
}

TEST(ServerTest, DoesNotServeBeforeItsStart) {
  auto server = Server::Create(At("127.0.0.1:0"));
  ASSERT_TRUE(server.ok()) << server.status();
  const auto channel =
      grpc::CreateChannel((*server)->address(), grpc::InsecureChannelCredentials());
  std::string answer;
  const grpc::Status status = CallBytes(channel, "/grpc.health.v1.Health/Check", "", &answer);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(answer, "\x08\x02");
}

// gRPC starts threads of this name for services of its callback interface. They would receive the
// calls of all services, and wake the server's own thread for each.
TEST(ServerTest, OnlyItsOwnThreadPollsItsConnections) {
  TestCluster cluster({{"worker", 1}});
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(thread.path() / "comm"), name);  // empty if it has just ended
    EXPECT_NE(name, "nexting_thread");
  }
}

// TensorFlow's eager runtime and its servers call methods of these services.
TEST(ServerTest, SaysWhatItServesIfAMethodIsUnknown) {
  TestCluster cluster({{"worker", 1}});
  const auto channel =
      grpc::CreateChannel(cluster.target().substr(7), grpc::InsecureChannelCredentials());
  for (int round = 0; round < 2; ++round) {
    for (const char* method :
         {"/tensorflow.eager.EagerService/CreateContext",
          "/tensorflow.CoordinationService/RegisterTask", "/tensorflow.WorkerService/GetStatus"}) {
      const grpc::Status status = CallBytes(channel, method, std::string(100, 'x'));
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
      EXPECT_THAT(status.error_message(), HasSubstr("tf.compat.v1.Session"));
      EXPECT_THAT(status.error_message(), HasSubstr(method));
    }
  }
  const grpc::Status other = CallBytes(channel, "/a.B/C");
  EXPECT_EQ(other.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(other.error_message(), "this server, a task of Penstock, has no method '/a.B/C'");
}

// Encodes a field that has a length: a string, or a message.
std::string Field(char number, const std::string& value) {
  CHECK(value.size() < 128);
  return StrCat(std::string{static_cast<char>(number << 3 | 2), static_cast<char>(value.size())},
                value);
}

// Returns the values of all fields with this number. The test parses messages by hand, because it
// has no generated code for grpc.reflection.v1alpha.
std::vector<std::string> Fields(const std::string& message, int number) {
  google::protobuf::UnknownFieldSet fields;
  CHECK(fields.ParseFromString(message));
  std::vector<std::string> values;
  for (int i = 0; i < fields.field_count(); ++i) {
    if (fields.field(i).number() == number) values.push_back(fields.field(i).length_delimited());
  }
  return values;
}

// Returns the answer to one question of ServerReflectionInfo.
std::string Reflect(grpc::GenericStub& stub, const std::string& question) {
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  CHECK(next());
  const grpc::Slice slice(question);
  call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  CHECK(next());
  grpc::ByteBuffer bytes;
  call->Read(&bytes, nullptr);
  CHECK(next());
  grpc::Slice answer;
  CHECK(bytes.DumpToSingleSlice(&answer).ok());
  context.TryCancel();
  queue.Shutdown();
  while (next()) {
  }
  return std::string(answer.begin(), answer.end());
}

// Tools like grpcurl ask for these descriptions.
TEST(ServerTest, DescribesItsServices) {
  TestCluster cluster({{"worker", 1}});
  grpc::GenericStub stub(
      grpc::CreateChannel(cluster.target().substr(7), grpc::InsecureChannelCredentials()));
  for (const std::string service : {"tensorflow.MasterService", "penstock.wire.Worker"}) {
    const std::string answer = Reflect(stub, Field(4, service));  // file_containing_symbol
    const auto files = Fields(answer, 4);
    ASSERT_EQ(files.size(), 1) << service << " is not described";
    google::protobuf::FileDescriptorProto file;
    ASSERT_TRUE(file.ParseFromString(Fields(files[0], 1).at(0)));
    ASSERT_EQ(file.service_size(), 1);
    EXPECT_EQ(StrCat(file.package(), ".", file.service(0).name()), service);
    EXPECT_GT(file.service(0).method_size(), 5);
  }
}

}  // namespace
}  // namespace penstock
