// SPDX-License-Identifier: Apache-2.0
//
// Tests RunGraphStream with workers that give the answers the test chooses. The worker's end is in
// run_graph_sink_test.cc.
#include "distributed/rpc/run_graph_stream.h"

#include <chrono>
#include <functional>
#include <future>
#include <semaphore>
#include <vector>

#include "distributed/calls/status_proto.h"
#include "distributed/calls/testing/test_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::StartsWith;
using testing::UnorderedElementsAre;
using Steps = std::vector<uint64_t>;
using WorkerEnd = grpc::ServerReaderWriter<wire::RunGraphResponses, wire::RunGraphRequests>;

constexpr std::chrono::seconds kStreamSoon(30);

// Reads until `count` steps have arrived, or the stream has ended.
Steps TakeSteps(WorkerEnd& stream, size_t count) {
  Steps steps;
  wire::RunGraphRequests requests;
  while (steps.size() < count && stream.Read(&requests)) {
    for (const wire::RunGraphRequest& run : requests.run()) steps.push_back(run.step_id());
  }
  return steps;
}

// Sends all answers in one message. Each step fails with its own id, so that a test can tell
// the answers apart.
void Answer(WorkerEnd& stream, const Steps& steps) {
  wire::RunGraphResponses responses;
  for (const uint64_t step : steps) {
    wire::RunGraphResponse* const response = responses.add_ended();
    response->set_step_id(step);
    ToProto(OutOfRange(step), response->mutable_error());
  }
  EXPECT_TRUE(stream.Write(responses));
}

// Waits until the stream has ended.
grpc::Status AwaitEnd(WorkerEnd& stream) {
  EXPECT_THAT(TakeSteps(stream, 1), ElementsAre());
  return grpc::Status::OK;
}

class ScriptedWorker final : public wire::Worker::Service {
 public:
  std::function<grpc::Status(WorkerEnd&)> talk;

  grpc::Status RunGraphs(grpc::ServerContext*, WorkerEnd* stream) override { return talk(*stream); }
};

class RunGraphStreamTest : public testing::Test {
 protected:
  ~RunGraphStreamTest() override {
    loop_.Stop();
    host_.Stop();
  }
  // Starts a worker that runs `talk` for each stream.
  void Serve(std::function<grpc::Status(WorkerEnd&)> talk) {
    worker_.talk = std::move(talk);
    host_.host().builder->RegisterService(&worker_);
    host_.Start();
    stream_ = StreamTo(host_.address());
  }
  std::shared_ptr<RunGraphStream> StreamTo(const std::string& address) {
    return std::make_shared<RunGraphStream>(
        wire::Worker::NewStub(host_.host().channels->To(address)), loop_, "ps 0");
  }
  // Runs the step and returns its status in a future. If the step ended twice, the promise would
  // throw and end the test.
  std::future<Status> Run(uint64_t step_id) {
    auto end = std::make_shared<std::promise<Status>>();
    EXPECT_TRUE(TryRun(step_id, [end](const Status& status) { end->set_value(status); }));
    return end->get_future();
  }
  bool TryRun(uint64_t step_id, std::function<void(const Status&)> end) {
    wire::RunGraphRequest request;
    request.set_step_id(step_id);
    RunGraphStream::Ended ended = [end](const Status& status, wire::RunGraphResponse& response) {
      end(status.ok() ? FromProto(response.error()) : status);
    };
    const bool begun = stream_->Run(std::move(request), &ended);
    EXPECT_NE(begun, ended != nullptr) << "`ended` is the caller's where nothing has begun";
    return begun;
  }
  // Runs steps that the worker does not answer.
  std::vector<std::future<Status>> RunForEver(uint64_t count) {
    Serve([this, count](WorkerEnd& stream) {
      TakeSteps(stream, count);
      came_.release();
      return AwaitEnd(stream);
    });
    stream_->Open();
    std::vector<std::future<Status>> steps;
    for (uint64_t id = 1; id <= count; ++id) steps.push_back(Run(id));
    EXPECT_TRUE(came_.try_acquire_for(kStreamSoon));
    return steps;
  }
  static Status Get(std::future<Status> ended) {
    if (ended.wait_for(kStreamSoon) != std::future_status::ready) return Internal("has not ended");
    return ended.get();
  }

  ScriptedWorker worker_;
  TestHost host_;
  CompletionLoop loop_{std::make_unique<grpc::CompletionQueue>(), 2};
  std::shared_ptr<RunGraphStream> stream_;
  std::binary_semaphore came_{0};
};

TEST_F(RunGraphStreamTest, AnswersFindTheirStepsInAnyOrder) {
  Serve([](WorkerEnd& stream) {
    EXPECT_THAT(TakeSteps(stream, 3), UnorderedElementsAre(1, 2, 3));
    Answer(stream, {3});
    Answer(stream, {1, 2});
    return AwaitEnd(stream);
  });
  stream_->Open();
  auto first = Run(1), second = Run(2), third = Run(3);
  EXPECT_EQ(Get(std::move(first)), OutOfRange(1));
  EXPECT_EQ(Get(std::move(second)), OutOfRange(2));
  EXPECT_EQ(Get(std::move(third)), OutOfRange(3));
}

TEST_F(RunGraphStreamTest, StepsFromBeforeOpenAreSentTogether) {
  Serve([](WorkerEnd& stream) {
    EXPECT_THAT(TakeSteps(stream, 1), ElementsAre(7, 8, 9)) << "one message";
    Answer(stream, {7, 8, 9});
    return AwaitEnd(stream);
  });
  auto first = Run(7), second = Run(8), third = Run(9);
  stream_->Open();
  EXPECT_EQ(Get(std::move(first)), OutOfRange(7));
  EXPECT_EQ(Get(std::move(second)), OutOfRange(8));
  EXPECT_EQ(Get(std::move(third)), OutOfRange(9));
}

TEST_F(RunGraphStreamTest, EveryStepOfABrokenStreamEndsWithTheTasksName) {
  grpc::StatusCode code = grpc::OK;
  Serve([&](WorkerEnd& stream) {
    TakeSteps(stream, 3);
    return grpc::Status(code, "broken");
  });
  for (const auto why : {grpc::UNAVAILABLE, grpc::INTERNAL, grpc::UNIMPLEMENTED, grpc::UNKNOWN}) {
    code = why;
    stream_ = StreamTo(host_.address());
    stream_->Open();
    std::future<Status> steps[] = {Run(1), Run(2), Run(3)};
    for (auto& step : steps) {
      EXPECT_EQ(Get(std::move(step)), Status(static_cast<StatusCode>(why), "ps 0: broken"));
    }
  }
}

TEST_F(RunGraphStreamTest, AWorkerThatEndsTheStreamIsShuttingDown) {
  Serve([](WorkerEnd& stream) {
    TakeSteps(stream, 1);
    return grpc::Status::OK;
  });
  stream_->Open();
  EXPECT_EQ(Get(Run(1)), Unavailable("ps 0 is shutting down"));
}

TEST_F(RunGraphStreamTest, ALostConnectionEndsEveryStep) {
  auto steps = RunForEver(2);
  host_.Stop();
  for (auto& step : steps) {
    const Status status = Get(std::move(step));
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), StartsWith("ps 0: "));
  }
}

TEST_F(RunGraphStreamTest, NobodyIsThere) {
  stream_ = StreamTo("127.0.0.1:1");
  auto ended = Run(1);
  stream_->Open();
  const Status status = Get(std::move(ended));
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith("ps 0: "));
}

TEST_F(RunGraphStreamTest, NothingBeginsOnAStreamThatHasEnded) {
  Serve([](WorkerEnd& stream) {
    TakeSteps(stream, 1);
    return grpc::Status::OK;
  });
  stream_->Open();
  (void)Get(Run(1));
  EXPECT_FALSE(TryRun(2, [](const Status&) { ADD_FAILURE() << "was never begun"; }));
}

TEST_F(RunGraphStreamTest, AnswersForOtherStepsAreIgnored) {
  Serve([](WorkerEnd& stream) {
    TakeSteps(stream, 2);
    Answer(stream, {99, 1, 1});
    Answer(stream, {1});
    Answer(stream, {0, 2});
    return AwaitEnd(stream);
  });
  stream_->Open();
  auto first = Run(1), second = Run(2);
  EXPECT_EQ(Get(std::move(first)), OutOfRange(1));
  EXPECT_EQ(Get(std::move(second)), OutOfRange(2));
}

TEST_F(RunGraphStreamTest, AnAbandonedStepEndsAtOnceAndItsAnswerIsIgnored) {
  std::binary_semaphore abandoned(0);
  Serve([&](WorkerEnd& stream) {
    TakeSteps(stream, 2);
    EXPECT_TRUE(abandoned.try_acquire_for(kStreamSoon));
    Answer(stream, {1});
    Answer(stream, {2});
    return AwaitEnd(stream);
  });
  stream_->Open();
  auto first = Run(1), second = Run(2);
  stream_->Abandon(3);
  stream_->Abandon(1);
  EXPECT_EQ(Get(std::move(first)), Cancelled("ps 0 is not waited for any more"));
  stream_->Abandon(1);
  abandoned.release();
  EXPECT_EQ(Get(std::move(second)), OutOfRange(2));
}

// The answers to steps 1 and 2 come in one message, right before the end of the stream. The stream
// ends while the callback of step 1 runs.
TEST_F(RunGraphStreamTest, AnAnswerBeforeTheEndOfTheStreamCounts) {
  std::binary_semaphore lost(0);
  Serve([](WorkerEnd& stream) {
    TakeSteps(stream, 3);
    Answer(stream, {1, 2});
    return grpc::Status::OK;
  });
  EXPECT_TRUE(TryRun(1, [&](const Status&) { EXPECT_TRUE(lost.try_acquire_for(kStreamSoon)); }));
  auto second = Run(2);
  EXPECT_TRUE(TryRun(3, [&](const Status&) { lost.release(); }));
  stream_->Open();
  EXPECT_EQ(Get(std::move(second)), OutOfRange(2));
}

TEST_F(RunGraphStreamTest, AMasterThatShutsDownEndsItsSteps) {
  auto steps = RunForEver(2);
  loop_.Stop();
  for (auto& step : steps) EXPECT_EQ(Get(std::move(step)).code(), StatusCode::kCancelled);
  stream_ = StreamTo(host_.address());
  auto late = Run(3);
  stream_->Open();
  EXPECT_EQ(Get(std::move(late)), Cancelled("this process is shutting down"));
}

}  // namespace
}  // namespace penstock
