// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <thread>

#include "core/base/env.h"
#include "core/graph/builder.h"
#include "core/runtime/testing/test_ops.h"
#include "distributed/session/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

Output Placeholder(GraphBuilder& g, const PartialShape& shape = PartialShape()) {
  return CallIn(g, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", shape}});
}

class LocalSessionTest : public testing::Test {
 protected:
  void SetUp() override { session = Make(); }
  static std::unique_ptr<SessionInterface> Make() {
    auto made = NewLocalSession({});
    CHECK_OK(made.status());
    return *std::move(made);
  }
  Status Run(const Feeds& feeds, const std::vector<std::string>& fetches,
             const std::vector<std::string>& targets = {}, const RunOptions& options = {}) {
    CHECK_OK(g.status());
    RETURN_IF_ERROR(session->Extend(g.graph()));
    return session->Run(options, feeds, fetches, targets, &out, nullptr);
  }
  float Value(const Feeds& feeds, const std::string& fetch) {
    const Status status = Run(feeds, {fetch});
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? out[0].scalar<float>() : -1;
  }

  GraphBuilder g;
  std::unique_ptr<SessionInterface> session;
  std::vector<Tensor> out;
};

TEST_F(LocalSessionTest, FeedsAndFetches) {
  const Output x = Placeholder(g);
  const Output y = x * 2 + 1;
  const Output z = y * y;
  ASSERT_TRUE(Run({{x.name(), Tensor::Scalar(3.0f)}}, {z.name(), y.name(), z.name()}).ok());
  ASSERT_EQ(out.size(), 3);
  EXPECT_EQ(out[0].scalar<float>(), 49);
  EXPECT_EQ(out[1].scalar<float>(), 7);
  EXPECT_EQ(out[2].scalar<float>(), 49);
  // Any tensor can be fed, also the result of an op.
  EXPECT_EQ(Value({{y.name(), Tensor::Scalar(2.0f)}}, z.name()), 4);
}

int64_t ResidentBytes() {
  const StatusOr<std::string> status = Env::Real().ReadFile("/proc/self/status");
  CHECK_OK(status.status());
  const size_t at = status->find("VmRSS:");
  CHECK(at != std::string::npos);
  return std::atoll(status->c_str() + at + 6) * 1024;
}

// A caller may keep a session object for a long time after it has closed the session.
TEST_F(LocalSessionTest, AClosedSessionKeepsNoMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(PENSTOCK_TSAN)
  GTEST_SKIP() << "sanitizers keep freed memory";
#endif
  const Output x = Placeholder(g);
  std::vector<std::string> targets;
  Output y = x;
  for (int i = 0; i < 30'000; ++i) {
    y = y + x;
    if (i % 100 == 0) targets.push_back(g.NodeOf(y)->name());
  }
  const int64_t before = ResidentBytes();
  ASSERT_TRUE(Run({{x.name(), Tensor::Scalar(1.0f)}}, {y.name()}, targets).ok());
  EXPECT_EQ(out[0].scalar<float>(), 30'001);
  const int64_t taken = ResidentBytes() - before;
  EXPECT_GT(taken, 30'000 * 500) << "the session's graph and the step's";
  ASSERT_TRUE(session->Close().ok());
  EXPECT_LT(ResidentBytes() - before, taken / 3);
  EXPECT_THAT(session->Run({}, {}, {y.name()}, {}, &out, nullptr).message(),
              HasSubstr("Session is closed"));
}

TEST_F(LocalSessionTest, ExtendAddsNodes) {
  const Output a = Constant(g, Tensor::Scalar(2.0f));
  EXPECT_EQ(Value({}, a.name()), 2);
  const Output b = a + 1.0;
  EXPECT_EQ(Value({}, b.name()), 3);
  EXPECT_EQ(Value({}, a.name()), 2);
}

TEST_F(LocalSessionTest, VariablesOutliveStepsAndAreTheSessions) {
  const Output v =
      CallIn(g, "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({})}});
  Call("Assign", {v, Constant(g, Tensor::Scalar(1.0f))});
  const Output add = Call("AssignAdd", {v, Constant(g, Tensor::Scalar(1.0f))});
  ASSERT_TRUE(Run({}, {}, {"Assign"}).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Run({}, {add.name()}).ok());
  EXPECT_EQ(out[0].scalar<float>(), 11);

  auto other = Make();
  ASSERT_TRUE(other->Extend(g.graph()).ok());
  const Status status = other->Run({}, {}, {v.name()}, {}, &out, nullptr);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("uninitialized"));
}

TEST_F(LocalSessionTest, ErrorsNameWhatIsWrongAndTheSessionGoesOn) {
  const Output x = Placeholder(g, PartialShape({-1, 2}));
  const Output y = x * 2;
  const Output fail = CallIn(g, "TestFail", {Outputs{}}, {{"message", "end of input"}});
  const Tensor good = Tensor::Of<float>({1, 2}, {1, 2});
  const struct {
    Feeds feeds;
    std::vector<std::string> fetches, targets;
    StatusCode code;
    const char* text;
  } cases[] = {
      {{}, {}, {}, StatusCode::kInvalidArgument, "Must specify at least one target"},
      {{}, {"nope:0"}, {}, StatusCode::kNotFound, "FetchOutputs node nope:0: not found"},
      {{}, {"mul:7"}, {}, StatusCode::kNotFound, "FetchOutputs node mul:7: not found"},
      {{}, {}, {"nope"}, StatusCode::kNotFound, "Some target nodes not found: nope"},
      {{{"nope:0", good}},
       {y.name()},
       {},
       StatusCode::kNotFound,
       "FeedInputs: unable to find feed output nope:0"},
      {{{x.name(), good}, {x.name(), good}}, {y.name()}, {}, StatusCode::kInvalidArgument, "fed"},
      {{{x.name(), Tensor::Scalar(1.0)}},
       {y.name()},
       {},
       StatusCode::kInvalidArgument,
       "feed 'Placeholder:0': expected float of shape [?,2], got double of shape []"},
      {{{x.name(), Tensor::Vector<float>({1, 2})}},
       {y.name()},
       {},
       StatusCode::kInvalidArgument,
       "feed 'Placeholder:0': expected float of shape [?,2], got float of shape [2]"},
      {{{x.name(), Tensor()}}, {y.name()}, {}, StatusCode::kInvalidArgument, "got no tensor"},
      {{},
       {y.name()},
       {},
       StatusCode::kInvalidArgument,
       "You must feed a value for placeholder tensor 'Placeholder'"},
      {{},
       {fail.name()},
       {},
       StatusCode::kInvalidArgument,
       "end of input\n\t [[{{node TestFail}}]]"},
  };
  for (const auto& c : cases) {
    const Status status = Run(c.feeds, c.fetches, c.targets);
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.text));
    EXPECT_TRUE(out.empty());
  }
  EXPECT_TRUE(Run({{x.name(), good}}, {y.name()}).ok());
}

TEST_F(LocalSessionTest, ManyThreadsRunAtOnce) {
  const Output x = Placeholder(g);
  const Output v =
      CallIn(g, "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({})}});
  Call("Assign", {v, Constant(g, Tensor::Scalar(0.0f))});
  const Output add = Call("AssignAdd", {v, x});
  ASSERT_TRUE(Run({}, {}, {"Assign"}).ok());
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        std::vector<Tensor> outputs;
        const Status status = session->Run({}, {{x.name(), Tensor::Scalar(1.0f)}}, {add.name()}, {},
                                           &outputs, nullptr);
        ASSERT_TRUE(status.ok()) << status;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(Value({}, v.name()), 2000);
}

TEST_F(LocalSessionTest, Callables) {
  const Output x = Placeholder(g);
  const Output y = x + 1.0;
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  const auto callable = session->MakeCallable({.feeds = {x.name()}, .fetches = {y.name()}});
  ASSERT_TRUE(callable.ok()) << callable.status();
  for (int i = 0; i < 5; ++i) {
    const Tensor feed = Tensor::Scalar(static_cast<float>(i));
    ASSERT_TRUE(session->RunCallable(*callable, {}, {&feed, 1}, &out, nullptr).ok());
    EXPECT_EQ(out[0].scalar<float>(), i + 1);
  }
  const Status few = session->RunCallable(*callable, {}, {}, &out, nullptr);
  EXPECT_EQ(few.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(session->ReleaseCallable(*callable).ok());
  EXPECT_EQ(session->ReleaseCallable(*callable).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(session->MakeCallable({.fetches = {"nope"}}).status().code(), StatusCode::kNotFound);
}

TEST_F(LocalSessionTest, ADeadlineEndsAStepAndSaysWhatItWaitedFor) {
  const Output block = CallIn(g, "TestStall", {Outputs{}});
  const Status status = Run({}, {block.name()}, {}, {.timeout_ms = 50});
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("TestStall"));
}

TEST_F(LocalSessionTest, TheCallerCanCancel) {
  const Output block = CallIn(g, "TestStall", {Outputs{}});
  Cancellation cancellation;
  std::thread canceller([&] {
    EXPECT_TRUE(AwaitStalled());
    cancellation.Cancel(Cancelled("had enough"));
  });
  EXPECT_EQ(Run({}, {block.name()}, {}, {.cancellation = &cancellation}), Cancelled("had enough"));
  canceller.join();
  // The step is cancelled before it begins.
  EXPECT_EQ(Run({}, {block.name()}, {}, {.cancellation = &cancellation}), Cancelled("had enough"));
}

TEST_F(LocalSessionTest, CloseCancelsRunningSteps) {
  const Output block = CallIn(g, "TestStall", {Outputs{}});
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  Status status;
  std::thread runner([&] {
    std::vector<Tensor> outputs;
    status = session->Run({}, {}, {block.name()}, {}, &outputs, nullptr);
  });
  EXPECT_TRUE(AwaitStalled());
  EXPECT_TRUE(session->Close().ok());
  runner.join();
  EXPECT_EQ(status, Cancelled("Step was cancelled by an explicit call to `Session::Close()`. It "
                              "was running a step of '",
                              block.name(), "'"));
  EXPECT_EQ(Run({}, {block.name()}), FailedPrecondition("Session is closed."));
  EXPECT_TRUE(session->Close().ok());
}

TEST_F(LocalSessionTest, TracesAndPartitions) {
  const Output x = Placeholder(g);
  const Output y = x + 1.0;
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  RunMetadata metadata;
  ASSERT_TRUE(session
                  ->Run({.trace = true, .partition_graphs = true},
                        {{x.name(), Tensor::Scalar(1.0f)}}, {y.name()}, {}, &out, &metadata)
                  .ok());
  ASSERT_EQ(metadata.step_stats.size(), 1);
  EXPECT_THAT(metadata.step_stats[0].device, HasSubstr("/device:CPU:0"));
  EXPECT_FALSE(metadata.step_stats[0].nodes.empty());
  ASSERT_EQ(metadata.partition_graphs.size(), 1);
  EXPECT_THAT(metadata.partition_graphs[0].first, HasSubstr("/device:CPU:0"));
}

TEST_F(LocalSessionTest, PassesThatAreDisabledLeaveTheGraphAlone) {
  const Output x = Placeholder(g);
  const Output y = (x + 1.0) * (x + 1.0);
  // "fuse" would hide the sums in one node.
  for (const std::vector<std::string>& disabled :
       {std::vector<std::string>{"fuse"}, std::vector<std::string>{"fuse", "merge"}}) {
    session = *NewLocalSession({.disabled_passes = disabled});
    ASSERT_TRUE(session->Extend(g.graph()).ok());
    RunMetadata metadata;
    const Feeds feeds = {{x.name(), Tensor::Scalar(1.0f)}};
    ASSERT_TRUE(
        session->Run({.partition_graphs = true}, feeds, {y.name()}, {}, &out, &metadata).ok());
    EXPECT_EQ(out[0].scalar<float>(), 4);
    int sums = 0;
    for (const Node* node : metadata.partition_graphs[0].second.nodes()) {
      sums += node->op_name() == "AddV2";
    }
    EXPECT_EQ(sums, static_cast<int>(disabled.size()));
  }
  const auto unknown = NewLocalSession({.disabled_passes = {"typo"}});
  EXPECT_EQ(unknown.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("there is no pass 'typo'"));
}

TEST_F(LocalSessionTest, ListsDevices) {
  const auto devices = session->ListDevices();
  ASSERT_TRUE(devices.ok());
  ASSERT_FALSE(devices->empty());
  EXPECT_EQ((*devices)[0].name.ToString(), "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_NE((*devices)[0].incarnation, 0);
}

TEST_F(LocalSessionTest, StepsInInstalments) {
  const Output a = Placeholder(g), b = Placeholder(g), unused = Placeholder(g);
  const Output sum = a + b, twice = a * 2, product = sum * twice;
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  const auto value = [](float v) { return Tensor::Scalar(v); };
  for (int i = 0; i < 3; ++i) {
    const auto handle = session->SetUpPartialRun(
        {.feeds = {a.name(), b.name(), unused.name()}, .fetches = {twice.name(), product.name()}});
    ASSERT_TRUE(handle.ok()) << handle.status();
    Status status = session->RunPartial(*handle, {}, {{a.name(), value(2)}}, {}, &out);
    ASSERT_TRUE(status.ok()) << status;
    status = session->RunPartial(*handle, {}, {}, {product.name()}, &out);
    EXPECT_THAT(std::string(status.message()), HasSubstr(StrCat("it needs ", b.name())));
    status = session->RunPartial(*handle, {}, {{b.name(), value(3)}}, {product.name()}, &out);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(out[0].scalar<float>(), 20);
    status = session->RunPartial(*handle, {}, {{unused.name(), value(0)}}, {twice.name()}, &out);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(out[0].scalar<float>(), 4);
    EXPECT_FALSE(session->RunPartial(*handle, {}, {}, {}, &out).ok());
  }
  // A partial run that is left unfinished ends with the session.
  const auto left = session->SetUpPartialRun({.feeds = {a.name()}, .fetches = {twice.name()}});
  ASSERT_TRUE(left.ok());
  EXPECT_TRUE(session->Close().ok());
  EXPECT_EQ(session->RunPartial(*left, {}, {}, {}, &out).code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace penstock
