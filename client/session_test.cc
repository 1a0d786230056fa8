// SPDX-License-Identifier: Apache-2.0
#include "client/session.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "client/program.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

Output Placeholder(Program& program, DType dtype) {
  return CallIn(program, "Placeholder", {}, {{"dtype", dtype}, {"shape", PartialShape()}});
}

TEST(SessionTest, FeedsFetchesAndTargets) {
  Program program;
  const Output x = Placeholder(program, DType::kFloat);
  Variable total(program, "total", {}, Zeros());
  const Output add = total.AssignAdd(x);
  const Output y = x * 3;
  auto session = Session::New(program);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Execute(total.initializer()).ok());

  const auto outputs = (*session)->Run({{x, Tensor::Scalar(2.0f)}}, {y, x}, {add});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].scalar<float>(), 6);
  EXPECT_EQ((*outputs)[1].scalar<float>(), 2);
  EXPECT_EQ((*session)->Fetch(total)->scalar<float>(), 2);
  // Fetch a tensor by name.
  EXPECT_EQ((*session)->Fetch(y.name(), {{"Placeholder", Tensor::Scalar(5.0f)}})->scalar<float>(),
            15);
}

TEST(SessionTest, SendsNewNodesByItself) {
  Program program;
  const Output a = Constant(program, Tensor::Scalar(2.0f));
  auto session = *Session::New(program);
  EXPECT_EQ(session->Fetch(a)->scalar<float>(), 2);
  const Output b = a + 1.0;
  EXPECT_EQ(session->Fetch(b)->scalar<float>(), 3);
  const Output c = b * b;
  EXPECT_EQ(session->Fetch(c)->scalar<float>(), 9);
}

TEST(SessionTest, AMistakeInTheProgramComesBackFromTheFirstCall) {
  Program program;
  const Output a = Constant(program, Tensor::Scalar(2.0f));
  const Output b = a + Constant(program, Tensor::Scalar(int32_t{1}));
  auto session = *Session::New(program);
  const auto value = session->Fetch(b);
  EXPECT_EQ(value.status().code(), StatusCode::kInvalidArgument) << value.status();
  EXPECT_EQ(value.status(), program.status());
}

TEST(SessionTest, TargetsAreChecked) {
  Program program;
  const auto session = Session::New(program, "localhost:2222");
  EXPECT_EQ(session.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(session.status().message(),
            "session target 'localhost:2222': expected \"grpc://host:port\", or \"\" for this "
            "process");
  EXPECT_EQ(Session::Reset("").code(), StatusCode::kInvalidArgument);
}

TEST(SessionTest, CallablesRunAgainAndAgain) {
  Program program;
  const Output x = Placeholder(program, DType::kFloat);
  auto session = *Session::New(program);
  auto square = session->MakeCallable({x}, {x * x});
  ASSERT_TRUE(square.ok()) << square.status();
  Callable moved = *std::move(square);
  for (float value = 0; value < 5; ++value) {
    const auto result = moved({Tensor::Scalar(value)});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ((*result)[0].scalar<float>(), value * value);
  }
}

TEST(SessionTest, ManyThreadsMayRunAtTheSameTime) {
  Program program;
  Variable counter(program, "counter", {}, Zeros(), {.dtype = DType::kInt64});
  const Output add = counter.AssignAdd(Constant(program, Tensor::Scalar(int64_t{1})));
  auto session = *Session::New(program);
  ASSERT_TRUE(session->Execute(counter.initializer()).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(session->Execute(add).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(session->Fetch(counter)->scalar<int64_t>(), 200);
}

TEST(SessionTest, AClosedSessionSaysSo) {
  Program program;
  const Output a = Constant(program, Tensor::Scalar(2.0f));
  auto session = *Session::New(program);
  EXPECT_TRUE(session->Fetch(a).ok());
  EXPECT_TRUE(session->Close().ok());
  EXPECT_EQ(session->Fetch(a).status().code(), StatusCode::kFailedPrecondition);
}

TEST(SessionTest, ATraceTellsWhatRan) {
  Program program;
  const Output a = Constant(program, Tensor::Scalar(2.0f));
  const Output b = Tanh(a);
  auto session = *Session::New(program, "", {.optimize = false});
  RunMetadata metadata;
  ASSERT_TRUE(session->Run({}, {b}, {}, {.trace = true}, &metadata).ok());
  bool found = false;
  for (const DeviceStats& device : metadata.step_stats) {
    for (const NodeStats& node : device.nodes) found |= node.node == "Tanh";
  }
  EXPECT_TRUE(found);
  const auto devices = session->ListDevices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_FALSE(devices->empty());
}

// Returns the times of the start of a step's first node and the end of its last one.
std::pair<int64_t, int64_t> Span(const RunMetadata& metadata) {
  int64_t start = INT64_MAX, end = 0;
  for (const DeviceStats& device : metadata.step_stats) {
    for (const NodeStats& node : device.nodes) {
      start = std::min(start, node.start_ns);
      end = std::max(end, node.end_ns);
    }
  }
  return {start, end};
}

// Two concurrent steps of one session wait for each other, so their traces must overlap.
TEST(SessionTest, ConcurrentStepsOverlapInTheirTraces) {
  Program program;
  const std::vector<DType> types = {DType::kFloat};
  const Output queues[] = {CallIn(program, "FIFOQueueV2", {}, {{"component_types", types}}),
                           CallIn(program, "FIFOQueueV2", {}, {{"component_types", types}})};
  const Output x = Constant(program, Tensor::Scalar(2.0f));
  Outputs steps;
  for (int i = 0; i < 2; ++i) {
    const auto after =
        program.ControlDependencies({Call("QueueEnqueueV2", {queues[i], Outputs{x}})});
    steps.push_back(Call("QueueDequeueV2", {queues[1 - i]}, {{"component_types", types}}));
  }
  auto session = *Session::New(program, "", {.operation_timeout_ms = 20'000});
  RunMetadata traces[2];
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      const auto got = session->Run({}, {steps[i]}, {}, {.trace = true}, &traces[i]);
      EXPECT_TRUE(got.ok()) << got.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto [start0, end0] = Span(traces[0]);
  const auto [start1, end1] = Span(traces[1]);
  EXPECT_LT(start0, end1);
  EXPECT_LT(start1, end0);
}

}  // namespace
}  // namespace penstock::client
