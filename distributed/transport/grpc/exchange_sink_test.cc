// SPDX-License-Identifier: Apache-2.0
//
// Tests the sink with a simple consumer, a client of the TensorExchange service.
#include "distributed/transport/grpc/exchange_sink.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <atomic>
#include <thread>

#include "core/base/testing/eventually.h"
#include "distributed/calls/testing/test_host.h"
#include "distributed/transport/testing/recording_steps.h"
#include "distributed/transport/testing/test_key.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr char kConsumer[] = "/job:worker/replica:0/task:0";

// A consumer that the test drives call by call.
class Consumer {
 public:
  explicit Consumer(const std::string& address) {
    grpc::ChannelArguments args;
    args.SetMaxReceiveMessageSize(-1);
    args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = wire::TensorExchange::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), args));
    stream_ = stub_->Exchange(&context_);
  }
  ~Consumer() {
    context_.TryCancel();
    if (!finished_) (void)End();
  }
  void Subscribe(const std::vector<uint64_t>& steps, const std::string& name = kConsumer,
                 uint64_t incarnation = 7) {
    wire::ExchangeRequest request;
    request.mutable_consumer()->set_task(name);
    request.set_incarnation(incarnation);
    for (const uint64_t step_id : steps) request.add_subscribe(step_id);
    ASSERT_TRUE(stream_->Write(request));
  }
  wire::TensorBatch Read() {
    wire::TensorBatch batch;
    CHECK(stream_->Read(&batch), "the stream has ended");
    return batch;
  }
  grpc::Status End() {
    wire::TensorBatch batch;
    while (stream_->Read(&batch)) {
    }
    finished_ = true;
    return stream_->Finish();
  }
  void Cancel() { context_.TryCancel(); }

 private:
  std::unique_ptr<wire::TensorExchange::Stub> stub_;
  grpc::ClientContext context_;
  bool finished_ = false;
  std::unique_ptr<grpc::ClientReaderWriter<wire::ExchangeRequest, wire::TensorBatch>> stream_;
};

class ExchangeSinkTest : public testing::Test {
 protected:
  ExchangeSinkTest() {
    host.host().builder->RegisterService(&service);
    host.Start();
    ExchangeSink::Listen(std::make_shared<const ExchangeSink::Endpoint>(ExchangeSink::Endpoint{
        .service = &service,
        .loop = host.host().loop,
        .queue = host.host().queue,
        .steps = &steps,
        .self = {
            .name = "/job:ps/replica:0/task:0", .address = host.address(), .incarnation = 7}}));
    consumer.emplace(host.address());
  }
  ~ExchangeSinkTest() override {
    consumer.reset();
    host.Stop();
  }
  std::shared_ptr<TensorSink> Connect(int64_t step_id) {
    consumer->Subscribe({static_cast<uint64_t>(step_id)});
    return steps.WaitForSink(kConsumer, step_id);
  }
  void Send(TensorSink& sink, const std::string& key, Tensor value) {
    sink.Send(1, TestKey(key), std::move(value), false, [this] { ++handed_over; });
  }
  bool HandedOver(int count) {
    return Eventually([&] { return handed_over == count; });
  }

  ExchangeService service;
  RecordingSteps steps;
  TestHost host;
  std::optional<Consumer> consumer;
  std::atomic<int> handed_over = 0;
};

TEST_F(ExchangeSinkTest, SubscriptionsReachTheSteps) {
  consumer->Subscribe({1, 2});
  consumer->Subscribe({3});
  for (const int64_t step_id : {1, 2, 3}) {
    EXPECT_NE(steps.WaitForSink(kConsumer, step_id), nullptr);
  }
}

TEST_F(ExchangeSinkTest, RefusesConsumersOfAnotherIncarnation) {
  consumer->Subscribe({1}, kConsumer, 8);
  const grpc::Status ended = consumer->End();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(ended.error_message(),
            StrCat("/job:ps/replica:0/task:0 at ", host.address(), " has restarted"));
}

TEST_F(ExchangeSinkTest, RefusesConsumersWithoutAName) {
  consumer->Subscribe({1}, "");
  const grpc::Status ended = consumer->End();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ended.error_message(), "a consumer without a name");
}

TEST_F(ExchangeSinkTest, SmallTensorsGatherWhileAMessageIsOnItsWay) {
  constexpr int kTensors = 1000;
  const auto sink = Connect(1);
  for (int i = 0; i < kTensors; ++i) Send(*sink, StrCat("t", i), Tensor::Scalar<int32_t>(i));
  int tensors = 0, messages = 0;
  for (; tensors < kTensors; ++messages) tensors += consumer->Read().header().part_size();
  EXPECT_EQ(tensors, kTensors);
  EXPECT_LT(messages, kTensors / 2);
  EXPECT_TRUE(HandedOver(kTensors));
}

TEST_F(ExchangeSinkTest, SmallTensorsOvertakeLargeOnes) {
  const auto sink = Connect(1);
  Send(*sink, "large", Tensor(DType::kFloat, Shape({32 << 18})));  // 32 MiB
  Send(*sink, "small", Tensor::Scalar(1.0f));
  uint64_t large_bytes = 0;
  bool small = false;
  while (!small) {
    const wire::TensorBatch batch = consumer->Read();
    for (const wire::TensorPart& part : batch.header().part()) {
      small |= part.total_bytes() == 4;
      if (!small) large_bytes += part.bytes();
    }
  }
  EXPECT_GT(large_bytes, 0);
  EXPECT_LT(large_bytes, 32 << 20);
}

TEST_F(ExchangeSinkTest, DropsWhatWaits) {
  const auto sink = Connect(1);
  const Tensor large(DType::kFloat, Shape({32 << 18}));
  for (int i = 0; i < 4; ++i) Send(*sink, StrCat("large", i), large);
  EXPECT_LT(handed_over, 4);  // the consumer does not read
  sink->Drop(1);
  EXPECT_TRUE(HandedOver(4));
  Send(*sink, "small", Tensor::Scalar(1.0f));
  uint64_t large_bytes = 0;
  for (bool small = false; !small;) {
    const wire::TensorBatch batch = consumer->Read();
    for (const wire::TensorPart& part : batch.header().part()) {
      small |= part.total_bytes() == 4;
      large_bytes += part.bytes();
    }
  }
  EXPECT_LT(large_bytes, uint64_t{128} << 20);
}

TEST_F(ExchangeSinkTest, RefusalsTravelWithTensors) {
  const auto sink = Connect(1);
  sink->Refuse(1, Aborted("it did not begin"));
  const wire::TensorBatch batch = consumer->Read();
  ASSERT_EQ(batch.header().refusal_size(), 1);
  EXPECT_EQ(batch.header().refusal(0).step_id(), 1);
  EXPECT_EQ(batch.header().refusal(0).cause().message(), "it did not begin");
}

TEST_F(ExchangeSinkTest, WhatIsSentToAConsumerThatHasGoneIsHandedOver) {
  const auto sink = Connect(1);
  for (int i = 0; i < 4; ++i) Send(*sink, "large", Tensor(DType::kFloat, Shape({32 << 18})));
  consumer->Cancel();
  EXPECT_TRUE(HandedOver(4));
  Send(*sink, "small", Tensor::Scalar(1.0f));
  EXPECT_TRUE(HandedOver(5));
}

}  // namespace
}  // namespace penstock
