// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/prepared_steps.h"

#include "distributed/master/testing/fake_tasks_test.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::ElementsAre;

class PreparedStepsTest : public FakeTasksTest {
 protected:
  void WithSteps(const std::function<void()>& body) {
    Simulate([&] {
      const auto tasks = std::make_shared<SessionTasks>();
      tasks->list = tasks_;
      steps_ = std::make_shared<SessionSteps>(SessionSteps::Options{
          .session = "s",
          .services = {.env = &env_, .timer = timer_.get(), .threads = &scheduler_},
          .activity = std::make_shared<ClientActivity>(env_)});
      graph_ = std::make_shared<SessionGraph>(
          SessionGraph::Options{.registry = &Registry::Global(),
                                .task = kWorker,
                                .devices = {tasks->list[0].devices[0], tasks->list[1].devices[0]},
                                .env = &env_,
                                .threads = &scheduler_});
      CHECK_OK(graph_->Extend(0, Whole).status());
      prepared_ = std::make_shared<PreparedSteps>(PreparedSteps::Options{.session = "s",
                                                                         .tasks = tasks,
                                                                         .graph = graph_,
                                                                         .steps = steps_,
                                                                         .threads = &scheduler_,
                                                                         .memory_limit = 1'000});
      body();
      tasks->session_deleted = true;  // nothing to deregister
      prepared_ = nullptr;
      graph_ = nullptr;
      steps_ = nullptr;
    });
  }
  std::shared_ptr<PreparedStep> Get(const std::string& target) {
    return prepared_->cache().Get({}, {}, {target});
  }
  // Calls Await; the status with which the step was prepared is stored in `ended_`.
  void Await(const std::shared_ptr<PreparedStep>& step) {
    ended_.reset();
    prepared_->Await(step, {}, Done([this](const Status& status) { ended_ = status; }));
  }

  std::shared_ptr<SessionSteps> steps_;
  std::shared_ptr<SessionGraph> graph_;
  std::shared_ptr<PreparedSteps> prepared_;
  std::optional<Status> ended_;
};

TEST_F(PreparedStepsTest, AStepIsCompiledAndRegisteredOnce) {
  WithSteps([&] {
    const auto step = Get("both");
    for (int i = 0; i < 2; ++i) {
      Await(step);
      EXPECT_EQ(ended_, OkStatus());
    }
    EXPECT_TRUE(step->ready());
    EXPECT_EQ(step->session, "s");
    ASSERT_EQ(step->parts.size(), 2u);
    EXPECT_EQ(step->parts[0].task->id.name, kPs);
    EXPECT_EQ(step->parts[1].task->id.name, kWorker) << "the master's own comes last";
    EXPECT_THAT(ps_->log, ElementsAre("RegisterGraph s 1"));
    EXPECT_THAT(worker_->log, ElementsAre("RegisterGraph s 2"));
    EXPECT_EQ(Get("both"), step);
  });
}

TEST_F(PreparedStepsTest, ThePoolPreparesForAThreadThatMustNotBlock) {
  WithSteps([&] {
    const auto step = Get("there");
    std::vector<Status> ended;
    for (int i = 0; i < 2; ++i) {
      prepared_->AwaitOnPool(step, {},
                             Done([&](const Status& status) { ended.push_back(status); }));
    }
    EXPECT_THAT(ended, ElementsAre());
    EXPECT_THAT(ps_->log, ElementsAre());
    Pass(1);
    EXPECT_THAT(ended, ElementsAre(OkStatus(), OkStatus()));
    EXPECT_THAT(ps_->log, ElementsAre("RegisterGraph s 1"));
  });
}

TEST_F(PreparedStepsTest, AStepThatFailsIsDropped) {
  WithSteps([&] {
    ps_->register_answer = ResourceExhausted("no memory for the graph");
    const auto step = Get("there");
    Await(step);
    EXPECT_EQ(ended_, ResourceExhausted("no memory for the graph"));
    EXPECT_FALSE(step->ready());
    const auto again = Get("there");
    EXPECT_NE(again, step);
    ps_->register_answer = OkStatus();
    Await(again);
    EXPECT_EQ(ended_, OkStatus());
  });
}

// Large constants take time to send.
TEST_F(PreparedStepsTest, ATaskHasMoreTimeToTakeALargeGraph) {
  WithSteps([&] {
    Await(Get("here"));
    EXPECT_EQ(worker_->register_timeout_ms, 60'000);
    CHECK_OK(graph_
                 ->Extend(-1,
                          [](Graph* graph) {
                            graph->set_attr(graph->FindNode("there"), "_large",
                                            Tensor(DType::kUint8, Shape({64 << 20})));
                            return OkStatus();
                          })
                 .status());
    Await(Get("there"));
    EXPECT_EQ(ended_, OkStatus());
    EXPECT_EQ(ps_->register_timeout_ms, 63'750);
  });
}

TEST_F(PreparedStepsTest, NothingIsPreparedAfterClose) {
  WithSteps([&] {
    ASSERT_TRUE(steps_->Close());
    Await(Get("there"));
    EXPECT_EQ(ended_, FailedPrecondition("Session is closed."));
    EXPECT_THAT(ps_->log, ElementsAre());
  });
}

TEST_F(PreparedStepsTest, AStepForLargerFeedsTakesThePlaceOfTheOld) {
  WithSteps([&] {
    const auto step = Get("there");
    Await(step);
    prepared_->callables().Add({step, {}});
    EXPECT_THAT(prepared_->List(), ElementsAre(step, step));
    StatusOr<std::shared_ptr<PreparedStep>> larger = Internal("not called");
    prepared_->PrepareLarger(step, {}, [&](auto next) { larger = std::move(next); });
    EXPECT_THAT(prepared_->List(), ElementsAre(step, step)) << "until the new one is ready";
    Pass(1);
    ASSERT_TRUE(larger.ok()) << larger.status();
    EXPECT_NE(*larger, step);
    EXPECT_TRUE((*larger)->ready());
    EXPECT_THAT(prepared_->List(), ElementsAre(*larger, *larger));
  });
}

TEST_F(PreparedStepsTest, TheOldStepStaysIfTheLargerOneFails) {
  WithSteps([&] {
    const auto step = Get("there");
    Await(step);
    ps_->register_answer = ResourceExhausted("no memory for the graph");
    StatusOr<std::shared_ptr<PreparedStep>> larger = Internal("not called");
    prepared_->PrepareLarger(step, {}, [&](auto next) { larger = std::move(next); });
    Pass(1);
    EXPECT_EQ(larger.status(), ResourceExhausted("no memory for the graph"));
    EXPECT_EQ(Get("there"), step);
  });
}

TEST_F(PreparedStepsTest, LargerFeedsOutgrowAStepWithALimit) {
  WithSteps([&] {
    const auto step = prepared_->cache().Get({{"fed:0", Tensor()}}, {}, {"here"});
    const Tensor scalar = Tensor::Scalar(1.0f);
    prepared_->Await(step, {scalar}, Done([](const Status& status) { CHECK_OK(status); }));
    EXPECT_FALSE(prepared_->Outgrows(*step, {scalar}));
    EXPECT_TRUE(prepared_->Outgrows(*step, {Tensor::Vector<float>({1, 2})}));
  });
}

}  // namespace
}  // namespace penstock
