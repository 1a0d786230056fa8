// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/grpc_worker_client.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include "core/base/join.h"
#include "core/base/testing/eventually.h"
#include "core/base/thread_pool.h"
#include "core/graph/builder.h"
#include "distributed/rpc/testing/serving_worker.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr CallOptions kCall = {.incarnation = TestWorker::kIncarnation, .timeout_ms = 30'000};

// Waits for the end of a call.
class Ended {
 public:
  explicit Ended(Scheduler& threads) : wait_(threads, "a call of a worker") {}
  Done done() { return wait_.done(); }
  Status Get() { return wait_.Get(); }

 private:
  Wait wait_;
};

StatusOr<TaskStatus> Ask(WorkerClient& client, const WorkerClient::StatusQuestion& question,
                         const CallOptions& options) {
  StatusOr<TaskStatus> answer = Internal("the call has not ended");
  Ended ended(Scheduler::Real());
  client.GetStatus(question, options, [&answer, done = ended.done()](auto got) mutable {
    answer = std::move(got);
    std::move(done)(OkStatus());
  });
  (void)ended.Get();
  return answer;
}

class GrpcWorkerClientTest : public testing::Test {
 protected:
  GrpcWorkerClientTest() : client_(ClientOf(serving_.host().address())) {}

  std::unique_ptr<WorkerClient> ClientOf(const std::string& address) {
    return ClientOf(address, GraphUpload::kLimits, serving_.threads());
  }
  std::unique_ptr<WorkerClient> ClientOf(const std::string& address, const PieceLimits& limits,
                                         Scheduler& threads) {
    return NewGrpcWorkerClient({.name = TestWorker::kTask, .address = address},
                               *serving_.host().host().channels, Env::Real(), threads,
                               serving_.host().loop(), nullptr, limits);
  }
  // Begins a call with `start`, waits for its end, and returns its status.
  Status Call(const std::function<void(Done)>& start) {
    Ended ended(serving_.threads());
    start(ended.done());
    return ended.Get();
  }
  Status Create(const std::string& session, const CallOptions& options = kCall) {
    return Call(
        [&](Done done) { client_->CreateSession({.handle = session}, options, std::move(done)); });
  }
  Status Register(std::vector<Partition> partitions) {
    return Call([&](Done done) {
      client_->RegisterGraph("s", 1, std::move(partitions), {}, kCall, std::move(done));
    });
  }
  RunGraphArgs Step(int64_t id) { return {.session = "s", .graph = 1, .step_id = id}; }
  Status Run(const RunGraphArgs& args) {
    return Call([&](Done done) { client_->RunGraph(args, kCall, std::move(done)); });
  }
  static std::vector<Partition> Sum() {
    TestGraph g;
    g.AddSum("TestSum", {});
    return TestWorker::OnCpu(g.Take());
  }
  void AwaitRunning(int64_t count) {
    StepTable& steps = serving_.worker()->steps();
    EXPECT_TRUE(Eventually([&] { return steps.counts().running == count; })) << count;
  }

  ServingWorker serving_;
  std::unique_ptr<WorkerClient> client_;
};

TEST_F(GrpcWorkerClientTest, EveryFieldOfTheStatusIsSent) {
  ASSERT_EQ(Create("s"), OkStatus());
  const auto status = Ask(*client_, {.sessions = {"s", "t"}, .want_devices = true}, kCall);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->self, serving_.worker()->self());
  EXPECT_TRUE(status->serving);
  EXPECT_THAT(status->unknown_sessions, ElementsAre("t"));
  ASSERT_EQ(status->devices.size(), 1);
  EXPECT_EQ(status->devices[0].name.ToString(), TestWorker::kDevice);
  EXPECT_EQ(client_->in_process(), nullptr);
}

TEST_F(GrpcWorkerClientTest, AGraphIsRegisteredRunAndForgotten) {
  ASSERT_EQ(Create("s"), OkStatus());
  ASSERT_EQ(Register(Sum()), OkStatus());
  EXPECT_EQ(Run(Step(1)), OkStatus());
  StepStatsCollector stats;
  RunGraphArgs traced = Step(2);
  traced.stats = &stats;
  EXPECT_EQ(Run(traced), OkStatus());
  const std::vector<DeviceStats> devices = stats.Take();
  ASSERT_EQ(devices.size(), 1);
  EXPECT_EQ(devices[0].device, TestWorker::kDevice);
  EXPECT_EQ(Call([&](Done done) { client_->DeregisterGraph("s", 1, kCall, std::move(done)); }),
            OkStatus());
  EXPECT_EQ(Run(Step(3)).code(), StatusCode::kAborted);
  EXPECT_EQ(Call([&](Done done) { client_->DeleteSession("s", kCall, std::move(done)); }),
            OkStatus());
  EXPECT_FALSE(serving_.worker()->has_sessions());
}

TEST_F(GrpcWorkerClientTest, ErrorsKeepTheirCodeAndText) {
  const CallOptions another = {.incarnation = 4, .timeout_ms = 30'000};
  EXPECT_EQ(Create("s", another), Aborted(TestWorker::kName, " has restarted"));
  ASSERT_EQ(Create("s"), OkStatus());
  TestGraph g;
  g.AddSum("TestFail", {}, {{"message", "end of input"}});
  ASSERT_EQ(Register(TestWorker::OnCpu(g.Take())), OkStatus());
  const Status failed = Run(Step(1));
  EXPECT_THAT(std::string(failed.message()), HasSubstr("end of input\n\t [[{{node n0}}]]"));
}

TEST_F(GrpcWorkerClientTest, AnAbortReachesTheStep) {
  ASSERT_EQ(Create("s"), OkStatus());
  ASSERT_EQ(Register(TestWorker::Stall()), OkStatus());
  Ended step(serving_.threads());
  client_->RunGraph(Step(1), kCall, step.done());
  AwaitRunning(1);
  EXPECT_EQ(Call([&](Done done) {
              client_->AbortStep(1, Unavailable("ps 1 is gone"), kCall, std::move(done));
            }),
            OkStatus());
  EXPECT_EQ(step.Get(), Unavailable("ps 1 is gone"));
}

TEST_F(GrpcWorkerClientTest, AnAbandonedStepIsNotWaitedForButRunsOn) {
  ASSERT_EQ(Create("s"), OkStatus());
  ASSERT_EQ(Register(TestWorker::Stall()), OkStatus());
  Ended first(serving_.threads()), second(serving_.threads());
  client_->RunGraph(Step(1), kCall, first.done());
  client_->RunGraph(Step(2), kCall, second.done());
  AwaitRunning(2);
  client_->AbandonStep(3);
  client_->AbandonStep(1);
  const Status abandoned = first.Get();
  EXPECT_EQ(abandoned.code(), StatusCode::kCancelled);
  EXPECT_THAT(std::string(abandoned.message()), HasSubstr("is not waited for any more"));
  EXPECT_EQ(serving_.worker()->steps().counts().running, 2);
  // The late answer to step 1 is ignored.
  serving_.worker()->AbortStep(1, Cancelled("late"));
  serving_.worker()->AbortStep(2, Aborted("the other"));
  EXPECT_EQ(second.Get(), Aborted("the other"));
}

TEST_F(GrpcWorkerClientTest, ALostTaskEndsItsStepsAndIsNamed) {
  ServingWorker other;
  const auto client =
      NewGrpcWorkerClient({.name = TestWorker::kTask, .address = other.host().address()},
                          *serving_.host().host().channels, Env::Real(), serving_.threads(),
                          serving_.host().loop());
  client_ = nullptr;
  Ended step(serving_.threads()), created(serving_.threads()), registered(serving_.threads());
  client->CreateSession({.handle = "s"}, kCall, created.done());
  ASSERT_EQ(created.Get(), OkStatus());
  client->RegisterGraph("s", 1, TestWorker::Stall(), {}, kCall, registered.done());
  ASSERT_EQ(registered.Get(), OkStatus());
  client->RunGraph(Step(1), kCall, step.done());
  EXPECT_TRUE(Eventually([&] { return other.worker()->steps().counts().running == 1; }));
  other.host().Stop();
  const Status lost = step.Get();
  EXPECT_EQ(lost.code(), StatusCode::kUnavailable) << lost;
  EXPECT_THAT(std::string(lost.message()),
              HasSubstr(StrCat(TestWorker::kTask, " at ", other.host().address())));
}

TEST_F(GrpcWorkerClientTest, ATaskThatIsNotThereIsNamed) {
  const auto nobody = ClientOf("127.0.0.1:1");
  const auto status = Ask(*nobody, {}, {.timeout_ms = 5'000});
  EXPECT_EQ(status.status().code(), StatusCode::kUnavailable) << status.status();
  EXPECT_THAT(std::string(status.status().message()),
              HasSubstr("/job:ps/replica:0/task:0 at 127.0.0.1:1: "));
}

TEST_F(GrpcWorkerClientTest, AShutdownGivesItsReason) {
  EXPECT_EQ(Call([&](Done done) {
              client_->Shutdown("the end", {.timeout_ms = 30'000}, std::move(done));
            }),
            OkStatus());
  EXPECT_EQ(serving_.AwaitShutdown(), "the end");
}

constexpr PieceLimits kSmallParts = {
    .whole_bytes_max = 100 << 10, .piece_bytes_max = 64 << 10, .constant_bytes_min = 64 << 10};

// Returns two partitions for the device, each with a constant of 200,000 bytes: four pieces.
std::vector<Partition> LargePartitions() {
  std::vector<Partition> partitions;
  for (int i = 0; i < 2; ++i) {
    GraphBuilder g;
    Tensor value(DType::kFloat, Shape({50'000}));
    std::fill_n(value.mutable_data<float>(), 50'000, static_cast<float>(i));
    Constant(g, std::move(value));
    CHECK_OK(g.status());
    partitions.push_back({TestWorker::kDevice, std::move(g.mutable_graph())});
  }
  return partitions;
}

// Records the requests to register graphs, and answers each after `delay`.
class SlowRegistration final : public wire::Worker::Service {
 public:
  explicit SlowRegistration(std::chrono::milliseconds delay) : delay_(delay) {
    host_.host().builder->RegisterService(this);
    host_.Start();
  }
  ~SlowRegistration() override { host_.Stop(); }
  std::string address() const { return host_.address(); }
  std::vector<wire::RegisterGraphRequest> requests() {
    MutexLock lock(mu_);
    return requests_;
  }

 private:
  grpc::Status RegisterGraph(grpc::ServerContext*, const wire::RegisterGraphRequest* request,
                             wire::RegisterGraphResponse*) override {
    {
      MutexLock lock(mu_);
      requests_.push_back(*request);
    }
    std::this_thread::sleep_for(delay_);
    return grpc::Status::OK;
  }

  const std::chrono::milliseconds delay_;
  Mutex mu_;
  std::vector<wire::RegisterGraphRequest> requests_ ABSL_GUARDED_BY(mu_);
  TestHost host_;
};

TEST_F(GrpcWorkerClientTest, PartitionsTravelInParts) {
  SlowRegistration worker(std::chrono::milliseconds(0));
  client_ = ClientOf(worker.address(), kSmallParts, serving_.threads());
  ASSERT_EQ(Register(LargePartitions()), OkStatus());
  const auto requests = worker.requests();
  ASSERT_EQ(requests.size(), 9u);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(requests[i].graph_handle(), 1u);
    ASSERT_EQ(requests[i].partition_size(), 1);
    EXPECT_TRUE(ConstantPieces::IsPiece(requests[i].partition(0).graph()));
  }
  ASSERT_EQ(requests[8].partition_size(), 2);
  for (const auto& partition : requests[8].partition()) {
    EXPECT_EQ(partition.device(), TestWorker::kDevice);
    EXPECT_TRUE(GraphUploads::IsPart(partition.graph()));
  }
}

TEST_F(GrpcWorkerClientTest, AWorkerTakesPartsAndReportsErrors) {
  client_ = ClientOf(serving_.host().address(), kSmallParts, serving_.threads());
  std::vector<Partition> partitions = LargePartitions();
  partitions.pop_back();
  ASSERT_EQ(Create("s"), OkStatus());
  EXPECT_EQ(Register(std::move(partitions)), OkStatus());
  EXPECT_EQ(Run(Step(1)), OkStatus());
  EXPECT_EQ(serving_.uploads().size(), 0u);
  partitions = LargePartitions();
  partitions[1].device += "7";
  const Status refused = Register(std::move(partitions));
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("CPU:07"));
  EXPECT_EQ(serving_.uploads().size(), 1u) << "that of the first partition";
  EXPECT_EQ(Call([&](Done done) { client_->DeregisterGraph("s", 1, kCall, std::move(done)); }),
            OkStatus());
  EXPECT_EQ(serving_.uploads().size(), 0u);
}

TEST_F(GrpcWorkerClientTest, TheTimeoutOfARegistrationIsForAllParts) {
  SlowRegistration worker(std::chrono::milliseconds(80));
  client_ = ClientOf(worker.address(), kSmallParts, serving_.threads());
  const Status status = Call([&](Done done) {
    client_->RegisterGraph("s", 1, LargePartitions(), {},
                           {.incarnation = TestWorker::kIncarnation, .timeout_ms = 200},
                           std::move(done));
  });
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
  EXPECT_LT(worker.requests().size(), 5u);
}

// The polling thread must stay free, or heartbeats are not answered.
TEST_F(GrpcWorkerClientTest, PartsAreMadeOnThePool) {
  SlowRegistration worker(std::chrono::milliseconds(0));
  ThreadPool one("one", 1);
  std::promise<void> busy, free;
  one.Schedule([&] {
    busy.set_value();
    free.get_future().wait();
  });
  busy.get_future().wait();
  client_ = ClientOf(worker.address(), kSmallParts, one);
  Ended registered(serving_.threads());
  client_->RegisterGraph("s", 1, LargePartitions(), {}, kCall, registered.done());
  EXPECT_TRUE(Eventually([&] { return worker.requests().size() == 1; }));
  // The calls of another client end meanwhile, and no second part is made.
  const auto other = ClientOf(serving_.host().address());
  EXPECT_TRUE(Ask(*other, {}, kCall).ok());
  EXPECT_TRUE(Ask(*other, {}, kCall).ok());
  EXPECT_EQ(worker.requests().size(), 1u);
  free.set_value();
  EXPECT_EQ(registered.Get(), OkStatus());
  EXPECT_EQ(worker.requests().size(), 9u);
}

// A worker of another version, which reports its version.
class OtherVersion final : public wire::Worker::Service {
  grpc::Status GetStatus(grpc::ServerContext*, const wire::GetStatusRequest*,
                         wire::GetStatusResponse* response) override {
    response->mutable_self()->set_task("/job:ps/replica:0/task:0");
    response->mutable_self()->set_address("there:2");
    response->set_protocol_version(99);
    return grpc::Status::OK;
  }
};

TEST_F(GrpcWorkerClientTest, AnotherVersionOfTheProtocolIsRefused) {
  OtherVersion service;
  TestHost host;
  host.host().builder->RegisterService(&service);
  host.Start();
  const auto client = ClientOf(host.address());
  const auto status = Ask(*client, {}, {.timeout_ms = 30'000});
  EXPECT_EQ(status.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.status().message()),
              HasSubstr("/job:ps/replica:0/task:0 at there:2 speaks version 99 of the worker "
                        "protocol, this task "));
}

}  // namespace
}  // namespace penstock
