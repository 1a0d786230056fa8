// SPDX-License-Identifier: Apache-2.0
//
// Tests the consumer's end with a simple producer, a service that implements TensorExchange.
#include "distributed/transport/grpc/grpc_transport.h"

#include <deque>
#include <optional>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "distributed/calls/testing/test_host.h"
#include "distributed/transport/testing/recording_steps.h"
#include "distributed/transport/transport_factory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// A producer that records the requests, and answers each with the next answer that the test has
// prepared, if there is one.
class Producer final : public wire::TensorExchange::Service {
 public:
  struct Answer {
    std::optional<wire::TensorBatch> batch;
    grpc::Status end = grpc::Status::OK;  // the stream's final status, used if there is no batch
  };

  Producer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Producer() override { server_->Shutdown(std::chrono::system_clock::now()); }
  TaskId id(uint64_t incarnation = 7) const {
    return {.name = "/job:ps/replica:0/task:0",
            .address = StrCat("127.0.0.1:", port_),
            .incarnation = incarnation};
  }
  // Return the first requests of all streams, and all subscribed steps, once there are `count`.
  std::vector<wire::ExchangeRequest> WaitForStreams(size_t count) {
    MutexLock lock(mu_);
    while (streams_.size() < count) CHECK(changed_.WaitFor(mu_, std::chrono::seconds(30)));
    return streams_;
  }
  std::vector<uint64_t> WaitForSteps(size_t count) {
    MutexLock lock(mu_);
    while (steps_.size() < count) CHECK(changed_.WaitFor(mu_, std::chrono::seconds(30)));
    return steps_;
  }
  void Prepare(Answer answer) {
    MutexLock lock(mu_);
    answers_.push_back(std::move(answer));
  }

 private:
  grpc::Status Exchange(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<wire::TensorBatch, wire::ExchangeRequest>* stream) override {
    wire::ExchangeRequest request;
    for (bool first = true; stream->Read(&request); first = false) {
      std::optional<Answer> answer;
      {
        MutexLock lock(mu_);
        if (first) streams_.push_back(request);
        steps_.insert(steps_.end(), request.subscribe().begin(), request.subscribe().end());
        changed_.NotifyAll();
        if (!answers_.empty()) {
          answer = std::move(answers_.front());
          answers_.pop_front();
        }
      }
      if (!answer.has_value()) continue;
      if (!answer->batch.has_value()) return answer->end;
      stream->Write(*answer->batch);
    }
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  Mutex mu_;
  CondVar changed_;
  std::vector<wire::ExchangeRequest> streams_;
  std::vector<uint64_t> steps_;
  std::deque<Answer> answers_;
};

class GrpcTransportTest : public testing::Test {
 protected:
  GrpcTransportTest() {
    host.Start();
    CHECK_OK(transport.Serve(
        {.name = "/job:worker/replica:0/task:0", .address = host.address(), .incarnation = 9},
        steps));
  }
  ~GrpcTransportTest() override {
    transport.Stop();
    host.Stop();
  }

  Producer producer;
  RecordingSteps steps;
  TestHost host;
  GrpcTransport transport{host.host()};
};

TEST_F(GrpcTransportTest, StepsShareOneStream) {
  transport.Subscribe(producer.id(), 1);
  EXPECT_EQ(producer.WaitForSteps(1), (std::vector<uint64_t>{1}));
  transport.Subscribe(producer.id(), 2);
  transport.Subscribe(producer.id(), 3);
  EXPECT_EQ(producer.WaitForSteps(3), (std::vector<uint64_t>{1, 2, 3}));
  const auto streams = producer.WaitForStreams(1);
  ASSERT_EQ(streams.size(), 1);
  EXPECT_EQ(streams[0].consumer().task(), "/job:worker/replica:0/task:0");
  EXPECT_EQ(streams[0].consumer().address(), host.address());
  EXPECT_EQ(streams[0].consumer().incarnation(), 9);
  EXPECT_EQ(streams[0].incarnation(), 7);
}

TEST_F(GrpcTransportTest, AnotherIncarnationHasAStreamOfItsOwn) {
  transport.Subscribe(producer.id(7), 1);
  producer.WaitForStreams(1);
  transport.Subscribe(producer.id(8), 2);
  const auto streams = producer.WaitForStreams(2);
  EXPECT_EQ(streams[0].incarnation(), 7);
  EXPECT_EQ(streams[1].incarnation(), 8);
}

TEST_F(GrpcTransportTest, AStreamThatEndsFailsItsStepsAndIsOpenedAgain) {
  producer.Prepare({.end = grpc::Status(grpc::StatusCode::INTERNAL, "out of order")});
  transport.Subscribe(producer.id(), 1);
  EXPECT_EQ(steps.WaitForFailure(1),
            Unavailable("lost the connection to ", producer.id().ToString(), ": out of order"));
  transport.Subscribe(producer.id(), 2);
  EXPECT_EQ(producer.WaitForStreams(2)[1].subscribe(0), 2);
  EXPECT_FALSE(steps.has_failed(2));
}

TEST_F(GrpcTransportTest, AnAbortKeepsItsCode) {
  producer.Prepare({.end = grpc::Status(grpc::StatusCode::ABORTED, "it has restarted")});
  transport.Subscribe(producer.id(), 1);
  EXPECT_EQ(steps.WaitForFailure(1).code(), StatusCode::kAborted);
}

TEST_F(GrpcTransportTest, AMessageThatCannotBeUnderstoodEndsTheStream) {
  wire::TensorBatch batch;
  batch.mutable_header()->add_part()->set_key(5);  // a number that was never assigned
  batch.set_body("x");
  producer.Prepare({.batch = batch});
  transport.Subscribe(producer.id(), 1);
  const Status why = steps.WaitForFailure(1);
  EXPECT_EQ(why.code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(why.message()), HasSubstr("key 5 has no name"));
  EXPECT_THAT(std::string(why.message()), HasSubstr(producer.id().ToString()));
}

TEST_F(GrpcTransportTest, NeedsAServer) {
  EXPECT_EQ(TransportFactory::Global().Make("grpc", {}).status().code(),
            StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace penstock
