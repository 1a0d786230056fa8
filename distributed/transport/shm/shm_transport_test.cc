// SPDX-License-Identifier: Apache-2.0
//
// Tests each end of a connection; the test itself acts as the other end, on a socket.
#include "distributed/transport/shm/shm_transport.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <cstring>
#include <fstream>
#include <optional>

#include "core/base/testing/eventually.h"
#include "core/op/attr.h"
#include "distributed/calls/testing/test_host.h"
#include "distributed/transport/records/tensor_record_writer.h"
#include "distributed/transport/shm/unix_socket.h"
#include "distributed/transport/testing/recording_steps.h"
#include "distributed/transport/testing/test_key.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

Tensor Megabytes(int64_t count, int32_t first = 0) {
  Tensor t(DType::kInt32, Shape({count << 18}));
  for (int32_t i = 0; i < count << 18; ++i) t.mutable_flat<int32_t>()[i] = first + i;
  return t;
}

// A task that has only the transport.
class Task {
 public:
  explicit Task(const std::string& name) : transport_(host_.host()) {
    host_.Start();
    id_ = {.name = name, .address = host_.address(), .incarnation = Env::Real().RandomU64() | 1};
    CHECK_OK(transport_.Serve(id_, steps_));
  }
  ~Task() { Stop(); }
  void Stop() {
    transport_.Stop();
    host_.Stop();
  }
  const TaskId& id() const { return id_; }
  ShmTransport& transport() { return transport_; }
  RecordingSteps& steps() { return steps_; }

 private:
  RecordingSteps steps_;
  TestHost host_;
  ShmTransport transport_;
  TaskId id_;
};

// Waits until the socket has a message, and returns it.
SocketMessage WaitForMessage(int socket) {
  std::optional<SocketMessage> message;
  const auto received = [&] {
    StatusOr<std::optional<SocketMessage>> next = ReceiveMessage(socket);
    CHECK_OK(next.status());
    message = *std::move(next);
    return message.has_value();
  };
  CHECK(Eventually(received), "waited in vain for a message");
  return *std::move(message);
}
bool WaitForEnd(int socket) {
  return Eventually([socket] { return !ReceiveMessage(socket).ok(); });
}

// A producer that answers Meet by itself; the test calls its other functions.
class Producer final : public wire::SharedMemory::Service {
 public:
  Producer() : identity_(*HostIdentity::Own()), listener_(*ListenAbstract(name_)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Producer() override { server_->Shutdown(std::chrono::system_clock::now()); }
  TaskId id() const {
    return {.name = "/job:ps/replica:0/task:0",
            .address = StrCat("127.0.0.1:", port_),
            .incarnation = 7};
  }
  HostIdentity& identity() { return identity_; }

  // Accepts the consumer's connection, and reads its Hello.
  void Accept() {
    const auto accepted = [this] {
      socket_ = AcceptConnection(listener_.get());
      return socket_.valid();
    };
    CHECK(Eventually(accepted), "nobody connects");
    CHECK_OK(Hello::Parse(WaitForMessage(socket_.get()).bytes).status());
  }
  // Accepts the connection, and sends the segment.
  void Welcome() {
    Accept();
    segment_ = *SharedSegment::Create();
    CHECK_OK(SendMessage(socket_.get(), WelcomeBytes(OkStatus()), segment_->fd()));
    writer_.emplace(segment_->tensors());
  }
  void Ring() { (void)SendMessage(socket_.get(), "!"); }
  void Close() { socket_.Close(); }
  int socket() const { return socket_.get(); }
  SharedSegment& segment() { return *segment_; }
  TensorRecordWriter& writer() { return *writer_; }

 private:
  grpc::Status Meet(grpc::ServerContext*, const wire::MeetRequest*,
                    wire::MeetResponse* response) override {
    response->set_boot_id(identity_.boot_id);
    response->set_network_namespace(identity_.network_namespace);
    response->set_socket(name_);
    return grpc::Status::OK;
  }

  const std::string name_ = StrCat("penstock-test-", Env::Real().RandomU64());
  HostIdentity identity_;
  UniqueFd listener_;
  UniqueFd socket_;
  std::shared_ptr<SharedSegment> segment_;
  std::optional<TensorRecordWriter> writer_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class ConsumerTest : public testing::Test {
 protected:
  Status WaitForFailure() {
    worker.transport().Subscribe(ps.id(), 1);
    return worker.steps().WaitForFailure(1);
  }
  Producer ps;
  Task worker{"/job:worker/replica:0/task:0"};
};

TEST_F(ConsumerTest, AProducerOnAnotherHost) {
  ps.identity().boot_id = "other";
  const Status why = WaitForFailure();
  EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(why.message(),
            StrCat("--protocol=shm: no shared memory with ", ps.id().ToString(),
                   ": it is on another host (boot id other, here ", HostIdentity::Own()->boot_id,
                   "); choose --protocol=auto or grpc in all tasks"));
}

TEST_F(ConsumerTest, AProducerInAnotherNetworkNamespace) {
  ps.identity().network_namespace = 5;
  const Status why = WaitForFailure();
  EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(why.message()), HasSubstr("in another network namespace of this host"));
}

TEST_F(ConsumerTest, AProducerWithoutMemory) {
  worker.transport().Subscribe(ps.id(), 1);
  ps.Accept();
  CHECK_OK(SendMessage(ps.socket(), WelcomeBytes(ResourceExhausted("no memory; raise the limit"))));
  const Status why = worker.steps().WaitForFailure(1);
  EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(why.message()), HasSubstr("no memory; raise the limit"));
}

TEST_F(ConsumerTest, AWelcomeWithoutItsMemory) {
  worker.transport().Subscribe(ps.id(), 1);
  ps.Accept();
  CHECK_OK(SendMessage(ps.socket(), WelcomeBytes(OkStatus())));
  EXPECT_EQ(worker.steps().WaitForFailure(1).code(), StatusCode::kDataLoss);
}

TEST_F(ConsumerTest, AProducerThatDiesWhileItWrites) {
  worker.transport().Subscribe(ps.id(), 1);
  ps.Welcome();
  const OutgoingTensor whole(1, TestKey("whole"), Tensor::Scalar(1.0f), false);
  ASSERT_TRUE(*ps.writer().Write(whole, Place::kInline));
  ps.Ring();
  EXPECT_EQ(worker.steps().WaitForTensors(1).size(), 1);
  // Leaves half a record in the ring, and half a tensor in the arena, to which no record
  // refers.
  const uint32_t half[] = {1, 1000, 7};
  ps.writer().ring().Append(half, sizeof(half));
  std::memset(ps.segment().arena(), 1, 4096);
  ps.Close();
  const Status why = worker.steps().WaitForFailure(1);
  EXPECT_EQ(why.code(), StatusCode::kUnavailable) << why;
  EXPECT_THAT(std::string(why.message()), HasSubstr(ps.id().ToString()));
  EXPECT_EQ(worker.steps().received().size(), 1);
}

TEST_F(ConsumerTest, WhatWasPublishedBeforeTheEndArrives) {
  worker.transport().Subscribe(ps.id(), 1);
  ps.Welcome();
  for (int i = 0; i < 1000; ++i) {
    const OutgoingTensor sent(1, TestKey("edge").In(1, 1 + i), Tensor::Scalar(i), false);
    ASSERT_TRUE(*ps.writer().Write(sent, Place::kInline));
  }
  ps.Close();
  EXPECT_EQ(worker.steps().WaitForFailure(1).code(), StatusCode::kUnavailable);
  EXPECT_EQ(worker.steps().received().size(), 1000);
}

TEST_F(ConsumerTest, AProducerThatWritesMalformedRecords) {
  worker.transport().Subscribe(ps.id(), 1);
  ps.Welcome();
  const uint32_t nonsense[] = {77, 0};
  ps.writer().ring().Append(nonsense, sizeof(nonsense));
  ps.writer().ring().Publish();
  ps.Ring();
  EXPECT_EQ(worker.steps().WaitForFailure(1).code(), StatusCode::kDataLoss);
  EXPECT_TRUE(WaitForEnd(ps.socket()));
}

TEST_F(ConsumerTest, TensorsOutliveTheConnectionAndTheTransport) {
  worker.transport().Subscribe(ps.id(), 1);
  ps.Welcome();
  const Tensor value = Megabytes(1);
  std::memcpy(ps.segment().arena(), value.raw_data(), value.bytes());
  const OutgoingTensor sent(1, TestKey("edge"), value, false);
  ASSERT_TRUE(*ps.writer().Write(sent, Place::kElsewhere));
  ps.Ring();
  Tensor received = worker.steps().WaitForTensors(1)[0].value;
  worker.steps().ForgetTensors();
  ps.Close();
  EXPECT_FALSE(worker.steps().WaitForFailure(1).ok());
  worker.Stop();
  EXPECT_EQ(AttrValue(received), AttrValue(value));
}

class ProducerTest : public testing::Test {
 protected:
  // Connects as a consumer does, and sends `hello`.
  UniqueFd Greet(const std::string& hello) {
    const auto channel = grpc::CreateChannel(ps.id().address, grpc::InsecureChannelCredentials());
    grpc::ClientContext context;
    wire::MeetRequest request;
    request.set_incarnation(ps.id().incarnation);
    wire::MeetResponse response;
    CHECK(wire::SharedMemory::NewStub(channel)->Meet(&context, request, &response).ok());
    UniqueFd socket = *ConnectAbstract(response.socket());
    CHECK_OK(SendMessage(socket.get(), hello));
    return socket;
  }
  std::string Hi(uint64_t incarnation) {
    return Hello{.consumer = "/job:worker/replica:0/task:0", .incarnation = incarnation}.ToBytes();
  }
  Task ps{"/job:ps/replica:0/task:0"};
};

TEST_F(ProducerTest, MalformedGreetings) {
  for (const std::string& hello : {std::string("!"), std::string(64, 'x'), Hi(1).substr(0, 24)}) {
    const UniqueFd socket = Greet(hello);
    EXPECT_TRUE(WaitForEnd(socket.get()));
  }
  const UniqueFd socket = Greet(Hi(1));
  EXPECT_EQ(ParseWelcome(WaitForMessage(socket.get()).bytes).code(), StatusCode::kAborted);
}

TEST_F(ProducerTest, InvalidCommandsEndTheConnection) {
  const Command cases[] = {
      {Command::kDone, 0},
      {Command::kDone, SharedSegment::kArenaBytes},
      {Command::kDone, ~uint64_t{0}},
      {9, 0},
  };
  for (const Command& command : cases) {
    const UniqueFd socket = Greet(Hi(ps.id().incarnation));
    SocketMessage welcome = WaitForMessage(socket.get());
    CHECK_OK(ParseWelcome(welcome.bytes));
    const auto segment = *SharedSegment::Open(std::move(welcome.fd));
    RingWriter commands(segment->commands());
    commands.Append(&command, sizeof(command));
    commands.Publish();
    CHECK_OK(SendMessage(socket.get(), "!"));
    EXPECT_EQ(ParseWelcome(WaitForMessage(socket.get()).bytes).code(), StatusCode::kDataLoss);
    EXPECT_TRUE(WaitForEnd(socket.get()));
  }
}

TEST_F(ProducerTest, AConsumerThatDiesGivesTheTensorsBack) {
  UniqueFd socket = Greet(Hi(ps.id().incarnation));
  SocketMessage welcome = WaitForMessage(socket.get());
  const auto segment = *SharedSegment::Open(std::move(welcome.fd));
  RingWriter commands(segment->commands());
  const Command subscribe = {Command::kSubscribe, 1};
  commands.Append(&subscribe, sizeof(subscribe));
  commands.Publish();
  CHECK_OK(SendMessage(socket.get(), "!"));
  const auto sink = ps.steps().WaitForSink("/job:worker/replica:0/task:0", 1);
  constexpr int kTensors = 64;
  std::atomic<int> handed_over = 0;
  const Tensor value = Megabytes(1);
  for (int i = 0; i < kTensors; ++i) {
    sink->Send(1, TestKey(StrCat("t", i)), value, false, [&] { ++handed_over; });
  }
  EXPECT_LT(handed_over, kTensors);
  socket.Close();
  EXPECT_TRUE(Eventually([&] { return handed_over == kTensors; })) << handed_over;
  EXPECT_TRUE(value.unique());
}

// The resources that this process uses for connections.
struct Held {
  int sockets_and_memory = 0;
  int mappings = 0;
};
Held CountHeld() {
  Held held;
  const auto descriptors = Env::Real().ListDirectory("/proc/self/fd");
  CHECK_OK(descriptors.status());
  held.sockets_and_memory = static_cast<int>(descriptors->size());
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    held.mappings += line.find("penstock-tensors") != std::string::npos;
  }
  return held;
}

TEST(ShmTest, ConnectionsLeaveNothingBehind) {
  Task ps("/job:ps/replica:0/task:0");
  Held before;
  for (int round = 0; round < 4; ++round) {
    {
      Task worker("/job:worker/replica:0/task:0");
      worker.transport().Subscribe(ps.id(), round);
      const auto sink = ps.steps().WaitForSink(worker.id().name, round);
      sink->Send(round, TestKey("edge"), Megabytes(1), false, [] {});
      worker.steps().WaitForTensors(1);
      EXPECT_GE(CountHeld().mappings, 2);
      worker.steps().ForgetTensors();
    }
    ps.steps().ForgetSinks();
    // After the first round gRPC keeps some resources, and others may still be closed later,
    // so that round only sets the baseline.
    const auto left = [&] {
      const Held held = CountHeld();
      return held.mappings > 0 ||
             (round > 0 && held.sockets_and_memory > before.sockets_and_memory);
    };
    EXPECT_TRUE(Eventually([&] { return !left(); })) << "round " << round;
    if (round == 0) before = CountHeld();
  }
}

TEST(ShmTest, ConsumersMayHoldMoreThanTheArena) {
  Task ps("/job:ps/replica:0/task:0");
  Task worker("/job:worker/replica:0/task:0");
  worker.transport().Subscribe(ps.id(), 1);
  const auto sink = ps.steps().WaitForSink(worker.id().name, 1);
  const Tensor value = Megabytes(200);
  constexpr int kTensors = 6;
  static_assert(kTensors * (200ull << 20) > SharedSegment::kArenaBytes);
  for (int i = 0; i < kTensors; ++i) sink->Send(1, TestKey(StrCat("t", i)), value, false, [] {});
  int elsewhere = 0;
  for (const auto& r : worker.steps().WaitForTensors(kTensors)) {
    EXPECT_EQ(std::memcmp(r.value.raw_data(), value.raw_data(), value.bytes()), 0);
    elsewhere += r.value.buffer()->allocator() == &CpuAllocator();
  }
  EXPECT_EQ(elsewhere, 1);
  worker.steps().ForgetTensors();
  // The memory of the arena is used again.
  sink->Send(1, TestKey("last"), value, false, [] {});
  EXPECT_NE(worker.steps().WaitForTensors(1)[0].value.buffer()->allocator(), &CpuAllocator());
}

}  // namespace
}  // namespace penstock
