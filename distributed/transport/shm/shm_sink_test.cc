// SPDX-License-Identifier: Apache-2.0
//
// Tests the producer's end of a connection without a loop and a clock: the test itself acts as the
// consumer at the other end of the socket, and passes times as arguments.
#include "distributed/transport/shm/shm_sink.h"

#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "distributed/transport/shm/handshake.h"
#include "distributed/transport/testing/recording_steps.h"
#include "distributed/transport/testing/test_key.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr int64_t kAcceptedNanos = 1000;

class ShmSinkTest : public testing::Test {
 protected:
  ShmSinkTest() {
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends) == 0, "no sockets");
    consumer_ = UniqueFd(ends[0]);
    sink_ = std::make_shared<ShmSink>(UniqueFd(ends[1]), self_, steps_, kAcceptedNanos);
  }
  ~ShmSinkTest() override { sink_->Close(); }

  void SayHello(uint64_t incarnation) {
    CHECK_OK(SendMessage(consumer_.get(),
                         Hello{.consumer = "worker", .incarnation = incarnation}.ToBytes()));
  }
  SocketMessage Answer() {
    auto message = ReceiveMessage(consumer_.get());
    CHECK_OK(message.status());
    CHECK(message->has_value(), "no answer");
    return **std::move(message);
  }
  // Completes the handshake.
  void Connect() {
    SayHello(self_.incarnation);
    ASSERT_TRUE(sink_->Receive());
    SocketMessage welcome = Answer();
    ASSERT_EQ(ParseWelcome(welcome.bytes), OkStatus());
    auto segment = SharedSegment::Open(std::move(welcome.fd));
    ASSERT_TRUE(segment.ok()) << segment.status();
    segment_ = *std::move(segment);
  }
  void Send(Tensor value, int64_t step_id = 1) {
    sink_->Send(step_id, TestKey("x:0"), std::move(value), false, [this] { ++handed_over_; });
  }
  // Returns whether there are records that the consumer has not read.
  bool HasRecords() { return RingReader(segment_->tensors()).HasMore(); }

  RecordingSteps steps_;
  const TaskId self_ = {.name = "/job:ps/replica:0/task:0", .address = "host:1", .incarnation = 77};
  UniqueFd consumer_;
  std::shared_ptr<ShmSink> sink_;
  std::shared_ptr<SharedSegment> segment_;
  int handed_over_ = 0;
};

TEST_F(ShmSinkTest, GreetsAConsumerOfThisIncarnation) { Connect(); }

TEST_F(ShmSinkTest, RefusesAConsumerOfAnEarlierIncarnation) {
  SayHello(76);
  EXPECT_FALSE(sink_->Receive());
  const Status refused = ParseWelcome(Answer().bytes);
  EXPECT_EQ(refused.code(), StatusCode::kAborted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("has restarted"));
}

TEST_F(ShmSinkTest, RefusesAMalformedGreeting) {
  CHECK_OK(SendMessage(consumer_.get(), "hi"));
  EXPECT_FALSE(sink_->Receive());
  EXPECT_FALSE(ParseWelcome(Answer().bytes).ok());
}

TEST_F(ShmSinkTest, AConsumerHasLimitedTimeToGreet) {
  EXPECT_TRUE(sink_->Receive()) << "nothing has come yet";
  EXPECT_TRUE(sink_->Tick(kAcceptedNanos + kHandshakeNanosMax - 1));
  EXPECT_FALSE(sink_->Tick(kAcceptedNanos + kHandshakeNanosMax));
}

TEST_F(ShmSinkTest, AGreetedConsumerMayBeSilent) {
  Connect();
  EXPECT_TRUE(sink_->Tick(kAcceptedNanos + 10 * kHandshakeNanosMax));
}

TEST_F(ShmSinkTest, NoticesThatTheConsumerHasGone) {
  Connect();
  consumer_.Close();
  EXPECT_FALSE(sink_->Receive());
}

TEST_F(ShmSinkTest, WritesATensorAtOnceAndWakesASleepingConsumer) {
  Connect();
  Send(Tensor::Scalar(1.f));
  EXPECT_EQ(handed_over_, 1);
  EXPECT_TRUE(HasRecords());
  EXPECT_FALSE(ReceiveMessage(consumer_.get())->has_value()) << "an awake consumer looks itself";
  segment_->state().consumer_sleeps.Raise();
  Send(Tensor::Scalar(2.f));
  EXPECT_TRUE(ReceiveMessage(consumer_.get())->has_value());
}

// The consumer does not read, so the sink copies only up to its limit. The other tensors wait until
// Drop.
TEST_F(ShmSinkTest, LargeTensorsWaitForTheConsumer) {
  Connect();
  constexpr int kCount = 12;
  for (int i = 0; i < kCount; ++i) Send(Tensor(DType::kFloat, Shape({1 << 20})));  // 4 MiB each
  EXPECT_GE(handed_over_, static_cast<int>(kUnreadBytesMax >> 22));
  EXPECT_LT(handed_over_, kCount);
  sink_->Drop(2);
  EXPECT_LT(handed_over_, kCount) << "of another step";
  sink_->Drop(1);
  EXPECT_EQ(handed_over_, kCount);
}

TEST_F(ShmSinkTest, CloseHandsOverWhatWaits) {
  Connect();
  for (int i = 0; i < 12; ++i) Send(Tensor(DType::kFloat, Shape({1 << 20})));
  ASSERT_LT(handed_over_, 12);
  sink_->Close();
  EXPECT_EQ(handed_over_, 12);
  Send(Tensor::Scalar(1.f));
  EXPECT_EQ(handed_over_, 13) << "nothing is kept after the end";
}

// An invalid command breaks the connection, and the consumer is told why.
TEST_F(ShmSinkTest, AnInvalidCommandEndsTheConnection) {
  Connect();
  RingWriter commands(segment_->commands());
  const uint32_t nonsense[] = {77, 0};
  commands.Append(nonsense, sizeof(nonsense));
  commands.Publish();
  EXPECT_FALSE(sink_->Advance());
  EXPECT_FALSE(ParseWelcome(Answer().bytes).ok());
  Send(Tensor::Scalar(1.f));
  EXPECT_EQ(handed_over_, 1);
}

}  // namespace
}  // namespace penstock
