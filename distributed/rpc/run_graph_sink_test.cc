// SPDX-License-Identifier: Apache-2.0
//
// Tests RunGraphSink. The test itself acts as the master, and as the worker that runs the steps.
#include <chrono>
#include <utility>
#include <vector>

#include "core/base/cond_var.h"
#include "distributed/calls/status_proto.h"
#include "distributed/calls/testing/test_host.h"
#include "distributed/rpc/run_graph_stream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using MasterEnd = grpc::ClientReaderWriter<wire::RunGraphRequests, wire::RunGraphResponses>;

constexpr std::chrono::seconds kSinkSoon(30);

class RunGraphSinkTest : public testing::Test {
 protected:
  RunGraphSinkTest() {
    host_.host().builder->RegisterService(&service_);
    host_.Start();
    RunGraphSink::Listen(std::make_shared<const RunGraphSink::Endpoint>(RunGraphSink::Endpoint{
        .service = &service_,
        .loop = &host_.loop(),
        .queue = host_.host().queue,
        .run =
            [this](const wire::RunGraphRequest& request, RunGraphSink::Answer answer) {
              MutexLock lock(mu_);
              EXPECT_TRUE(answers_.emplace(request.step_id(), std::move(answer)).second);
              changed_.NotifyAll();
            },
        .abort =
            [this](int64_t step_id) {
              MutexLock lock(mu_);
              aborted_.push_back(step_id);
              changed_.NotifyAll();
            }}));
    stub_ = wire::Worker::NewStub(host_.host().channels->To(host_.address()));
  }
  ~RunGraphSinkTest() override { Stop(); }
  void Stop() {
    host_.Stop();
    MutexLock lock(mu_);
    answers_.clear();
  }

  // The master's end of one stream.
  struct Stream {
    grpc::ClientContext context;
    std::unique_ptr<MasterEnd> calls;
  };
  std::unique_ptr<Stream> Open() {
    auto stream = std::make_unique<Stream>();
    stream->context.set_deadline(std::chrono::system_clock::now() + kSinkSoon);
    stream->calls = stub_->RunGraphs(&stream->context);
    return stream;
  }
  // Sends requests for these steps, and waits until the worker runs them.
  void Run(Stream& stream, const std::vector<uint64_t>& steps) {
    wire::RunGraphRequests requests;
    for (const uint64_t step : steps) requests.add_run()->set_step_id(step);
    ASSERT_TRUE(stream.calls->Write(requests));
    MutexLock lock(mu_);
    for (const uint64_t step : steps) {
      while (answers_.count(step) == 0) ASSERT_TRUE(changed_.WaitFor(mu_, kSinkSoon));
    }
  }
  // Ends a step of the worker.
  void End(uint64_t step, const Status& status = OkStatus()) {
    RunGraphSink::Answer answer;
    {
      MutexLock lock(mu_);
      answer = std::move(answers_.at(step));
      answers_.erase(step);
    }
    wire::RunGraphResponse response;
    if (!status.ok()) ToProto(status, response.mutable_error());
    answer(std::move(response));
  }
  // Returns the next answers that the master reads, as (step, error).
  static std::vector<std::pair<uint64_t, Status>> Read(Stream& stream) {
    wire::RunGraphResponses responses;
    EXPECT_TRUE(stream.calls->Read(&responses));
    std::vector<std::pair<uint64_t, Status>> ended;
    for (const auto& r : responses.ended()) ended.emplace_back(r.step_id(), FromProto(r.error()));
    return ended;
  }
  std::vector<int64_t> AwaitAborted(size_t count) {
    MutexLock lock(mu_);
    while (aborted_.size() < count && changed_.WaitFor(mu_, kSinkSoon)) {
    }
    return aborted_;
  }

  WorkerGrpcService service_;
  TestHost host_;
  std::unique_ptr<wire::Worker::Stub> stub_;
  Mutex mu_;
  CondVar changed_;
  std::map<uint64_t, RunGraphSink::Answer> answers_ ABSL_GUARDED_BY(mu_);  // of running steps
  std::vector<int64_t> aborted_ ABSL_GUARDED_BY(mu_);
};

TEST_F(RunGraphSinkTest, AnswersNameTheirStepInAnyOrder) {
  const auto stream = Open();
  Run(*stream, {1, 2});
  Run(*stream, {uint64_t{1} << 63});
  End(2, OutOfRange("end of input"));
  EXPECT_THAT(Read(*stream), ElementsAre(std::pair(2, OutOfRange("end of input"))));
  End(uint64_t{1} << 63);
  EXPECT_THAT(Read(*stream), ElementsAre(std::pair(uint64_t{1} << 63, OkStatus())));
  End(1);
  EXPECT_THAT(Read(*stream), ElementsAre(std::pair(1, OkStatus())));
}

TEST_F(RunGraphSinkTest, AMasterThatIsLostHasItsStepsAborted) {
  const auto stream = Open();
  Run(*stream, {1, 2, 3});
  End(2);
  ASSERT_EQ(Read(*stream).size(), 1u);
  stream->context.TryCancel();
  EXPECT_THAT(AwaitAborted(2), UnorderedElementsAre(1, 3)) << "2 had ended";
  // The steps end nevertheless, but their answers are dropped.
  End(1, Cancelled("aborted"));
  End(3, Cancelled("aborted"));
}

TEST_F(RunGraphSinkTest, AMasterThatHasNoMoreStepsEndsThoseThatRun) {
  const auto stream = Open();
  Run(*stream, {1});
  EXPECT_TRUE(stream->calls->WritesDone());
  EXPECT_THAT(AwaitAborted(1), ElementsAre(1));
  End(1);
  wire::RunGraphResponses none;
  EXPECT_FALSE(stream->calls->Read(&none)) << "the stream has ended";
  EXPECT_TRUE(stream->calls->Finish().ok());
}

TEST_F(RunGraphSinkTest, StreamsAreIndependent) {
  const auto first = Open(), second = Open();
  Run(*first, {1});
  Run(*second, {2});
  first->context.TryCancel();
  EXPECT_THAT(AwaitAborted(1), ElementsAre(1));
  End(2);
  EXPECT_THAT(Read(*second), ElementsAre(std::pair(2, OkStatus())));
}

// Answers that are ready while a message is being written share the next message; none is lost.
TEST_F(RunGraphSinkTest, ManyStepsAreAnsweredEachOnce) {
  constexpr uint64_t kSteps = 500;
  const auto stream = Open();
  std::vector<uint64_t> steps;
  for (uint64_t step = 1; step <= kSteps; ++step) steps.push_back(step);
  Run(*stream, steps);
  for (const uint64_t step : steps) End(step);
  std::vector<uint64_t> answered;
  while (answered.size() < kSteps) {
    const auto some = Read(*stream);
    ASSERT_FALSE(some.empty());
    for (const auto& [step, status] : some) answered.push_back(step);
  }
  EXPECT_EQ(answered, steps);
}

TEST_F(RunGraphSinkTest, AWorkerThatShutsDownAbortsWhatRuns) {
  const auto stream = Open();
  Run(*stream, {1, 2});
  Stop();
  EXPECT_THAT(AwaitAborted(2), UnorderedElementsAre(1, 2));
  EXPECT_FALSE(stream->calls->Finish().ok());
}

}  // namespace
}  // namespace penstock
