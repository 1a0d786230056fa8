// SPDX-License-Identifier: Apache-2.0
//
// Tests steps that are fed and fetched in instalments, across tasks.
#include <thread>

#include "core/base/testing/eventually.h"
#include "distributed/testing/two_tasks.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// a and b are fed at the worker. The ps computes a + 1, and adds it to `count`; the worker
// computes (a + 1) * b.
struct InPieces {
  explicit InPieces(GraphBuilder& g) {
    a = Placeholder(g);
    b = Placeholder(g);
    {
      const auto ps = g.DeviceScope(kPs);
      sum = a + 1.0;
      count = CallIn(g, "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({})}});
      Call("Assign", {count, Constant(g, Tensor::Scalar(0.0f))});
      counted = Call("AssignAdd", {count, sum});
    }
    const auto worker = g.DeviceScope(kWorker);
    product = sum * b;
  }
  static Output Placeholder(GraphBuilder& g) {
    const auto worker = g.DeviceScope(kWorker);
    return CallIn(g, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape()}});
  }
  CallableSpec All() const {
    return {.feeds = {a.name(), b.name()},
            .fetches = {sum.name(), product.name()},
            .targets = {"AssignAdd"}};
  }
  Output a, b, sum, product, count, counted;
};

class PartialRunsTest : public TwoTasksTest {};
INSTANTIATE_TEST_SUITE_P(Network, PartialRunsTest, AllNetworks(), NameOf);

TEST_P(PartialRunsTest, StepsInInstalments) {
  auto session = cluster_->NewSession();
  GraphBuilder g;
  const InPieces p(g);
  ASSERT_TRUE(Run(*session, g, {}, {}, {"Assign"}).ok());
  for (int i = 1; i <= 3; ++i) {
    const auto handle = session->SetUpPartialRun(p.All());
    ASSERT_TRUE(handle.ok()) << handle.status();
    Status status = session->RunPartial(*handle, {}, {{p.a.name(), Tensor::Scalar(2.0f)}},
                                        {p.sum.name()}, &out);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(out.size(), 1);
    EXPECT_EQ(out[0].scalar<float>(), 3);
    // The value of the second feed is the first fetch.
    status = session->RunPartial(*handle, {}, {{p.b.name(), out[0]}}, {p.product.name()}, &out);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(out[0].scalar<float>(), 9);
    // After this last instalment the target has run, and the step has ended.
    ASSERT_TRUE(Run(*session, g, {}, {p.count.name()}).ok());
    EXPECT_EQ(out[0].scalar<float>(), 3 * i);
    status = session->RunPartial(*handle, {}, {}, {p.sum.name()}, &out);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("Must run PartialRunSetup"));
  }
}

TEST_P(PartialRunsTest, MistakesInInstalmentsChangeNothing) {
  auto session = cluster_->NewSession();
  GraphBuilder g;
  const InPieces p(g);
  ASSERT_TRUE(Run(*session, g, {}, {}, {"Assign"}).ok());
  const auto handle = session->SetUpPartialRun(p.All());
  ASSERT_TRUE(handle.ok()) << handle.status();
  const Feeds a = {{p.a.name(), Tensor::Scalar(2.0f)}}, b = {{p.b.name(), Tensor::Scalar(4.0f)}};
  const auto error = [&](const Feeds& feeds, const std::vector<std::string>& fetches) {
    const Status status = session->RunPartial(*handle, {}, feeds, fetches, &out);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(out.empty());
    return std::string(status.message());
  };
  EXPECT_THAT(error(a, {p.product.name()}),
              HasSubstr(StrCat("Fetch ", p.product.name(),
                               " can't be computed from the feeds that have been fed so far: it "
                               "needs ",
                               p.b.name())));
  EXPECT_THAT(error({}, {p.count.name()}), HasSubstr("was not specified in partial_run_setup."));
  EXPECT_THAT(error({{"nope:0", Tensor::Scalar(2.0f)}}, {}),
              HasSubstr("was not specified in partial_run_setup."));
  EXPECT_THAT(error({{p.a.name(), Tensor::Scalar<int64_t>(2)}}, {}), HasSubstr("expected float"));
  EXPECT_THAT(error({a[0], a[0]}, {}), HasSubstr("has already been fed."));
  ASSERT_TRUE(session->RunPartial(*handle, {}, a, {p.sum.name()}, &out).ok());
  EXPECT_THAT(error(a, {}), HasSubstr("has already been fed."));
  EXPECT_THAT(error(b, {p.sum.name()}), HasSubstr("has already been fetched."));
  // One instalment with feeds only, then one with fetches only.
  ASSERT_TRUE(session->RunPartial(*handle, {}, b, {}, &out).ok());
  ASSERT_TRUE(session->RunPartial(*handle, {}, {}, {p.product.name()}, &out).ok());
  EXPECT_EQ(out[0].scalar<float>(), 12);
  EXPECT_EQ(session->SetUpPartialRun({.fetches = {"nope:0"}}).status().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(session->RunPartial("nope", {}, {}, {}, &out).code(), StatusCode::kInvalidArgument);
}

TEST_P(PartialRunsTest, InstalmentsOfManySteps) {
  auto session = cluster_->NewSession();
  GraphBuilder g;
  const InPieces p(g);
  ASSERT_TRUE(Run(*session, g, {}, {}, {"Assign"}).ok());
  std::vector<std::string> handles;
  for (int i = 0; i < 20; ++i) handles.push_back(*session->SetUpPartialRun(p.All()));
  for (int i = 19; i >= 0; --i) {
    ASSERT_TRUE(
        session->RunPartial(handles[i], {}, {{p.a.name(), Tensor::Scalar(float(i))}}, {}, &out)
            .ok());
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&, i] {
      std::vector<Tensor> outputs;
      const Status status =
          session->RunPartial(handles[i], {}, {{p.b.name(), Tensor::Scalar(2.0f)}},
                              {p.product.name(), p.sum.name()}, &outputs);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(outputs[0].scalar<float>(), 2 * i + 2);
      EXPECT_EQ(outputs[1].scalar<float>(), i + 1);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_P(PartialRunsTest, AFailedStepAnswersItsInstalments) {
  auto session = cluster_->NewSession();
  GraphBuilder g;
  const Output x = InPieces::Placeholder(g);
  Output fail;
  {
    const auto ps = g.DeviceScope(kPs);
    fail = CallIn(g, "TestFail", {Outputs{}}, {{"message", "end of input"}});
  }
  const auto worker = g.DeviceScope(kWorker);
  const Output y = fail + 1.0, z = x + 1.0;
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  const auto handle =
      session->SetUpPartialRun({.feeds = {x.name()}, .fetches = {y.name(), z.name()}});
  ASSERT_TRUE(handle.ok()) << handle.status();
  Status status = session->RunPartial(*handle, {}, {}, {y.name()}, &out);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("From /job:ps/replica:0/task:0:\nend of input\n\t [[{{node TestFail}}]]"));
  status = session->RunPartial(*handle, {}, {}, {}, &out);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Must run PartialRunSetup"));
}

TEST_P(PartialRunsTest, UnfinishedInstalmentsEnd) {
  GraphBuilder g;
  const InPieces p(g);
  const auto block = [&] {
    const auto ps = g.DeviceScope(kPs);
    return CallIn(g, "TestStall", {Outputs{}});
  }();
  const CallableSpec all = {.feeds = {p.a.name()}, .fetches = {p.sum.name(), block.name()}};
  // A partial run ends when its session is closed.
  auto session = cluster_->NewSession();
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  std::string handle = *session->SetUpPartialRun(all);
  EXPECT_TRUE(session->Close().ok());
  EXPECT_TRUE(cluster_->Idle());
  EXPECT_EQ(session->RunPartial(handle, {}, {}, {}, &out).code(), StatusCode::kFailedPrecondition);
  // A partial run ends at the timeout of its session's operations.
  session = cluster_->NewSession({.operation_timeout_ms = 200});
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  handle = *session->SetUpPartialRun(all);
  EXPECT_TRUE(cluster_->Idle());
  Status status =
      session->RunPartial(handle, {}, {{p.a.name(), Tensor::Scalar(1.0f)}}, {p.sum.name()}, &out);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
  // A partial run ends at the timeout of an instalment.
  session = cluster_->NewSession();
  ASSERT_TRUE(session->Extend(g.graph()).ok());
  handle = *session->SetUpPartialRun(all);
  status = session->RunPartial(handle, {.timeout_ms = 100}, {}, {block.name()}, &out);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
  EXPECT_TRUE(cluster_->Idle());
  // A partial run ends when its client gives up.
  handle = *session->SetUpPartialRun(all);
  Cancellation cancellation;
  std::thread canceller([&] {
    // Wait until the instalment has probably been sent. The test cannot observe that: TestStall
    // runs already.
    Env::Real().SleepForNanos(50'000'000);
    cancellation.Cancel(Cancelled("had enough"));
  });
  EXPECT_EQ(session->RunPartial(handle, {.cancellation = &cancellation}, {}, {block.name()}, &out),
            Cancelled("had enough"));
  canceller.join();
  EXPECT_TRUE(cluster_->Idle());
}

// gRPC does not send the request of a call that is cancelled already.
TEST_P(PartialRunsTest, AnInstalmentThatIsCancelledBeforeItIsSentEndsTheRun) {
  GraphBuilder g;
  const InPieces p(g);
  auto session = cluster_->NewSession();
  ASSERT_TRUE(Run(*session, g, {}, {}, {"Assign"}).ok());
  const std::string handle = *session->SetUpPartialRun(p.All());
  EXPECT_TRUE(Eventually([&] { return cluster_->server("ps", 0).counts().running_steps == 1; }));
  Cancellation cancellation;
  cancellation.Cancel(Cancelled("had enough"));
  std::vector<Tensor> out;
  EXPECT_EQ(session->RunPartial(handle, {.cancellation = &cancellation},
                                {{p.a.name(), Tensor::Scalar(1.0f)}}, {p.sum.name()}, &out),
            Cancelled("had enough"));
  EXPECT_TRUE(cluster_->Idle());
  const Status after = session->RunPartial(handle, {}, {}, {p.sum.name()}, &out);
  EXPECT_THAT(std::string(after.message()), HasSubstr("Must run PartialRunSetup"));
  // Everything is fed, so the step may have ended well before the instalment is cancelled.
  const std::string fed = *session->SetUpPartialRun(p.All());
  ASSERT_TRUE(
      session
          ->RunPartial(fed, {},
                       {{p.a.name(), Tensor::Scalar(1.0f)}, {p.b.name(), Tensor::Scalar(2.0f)}}, {},
                       &out)
          .ok());
  EXPECT_EQ(session->RunPartial(fed, {.cancellation = &cancellation}, {}, {p.sum.name()}, &out),
            Cancelled("had enough"));
  EXPECT_TRUE(out.empty());
  EXPECT_TRUE(cluster_->Idle());
}

}  // namespace
}  // namespace penstock
