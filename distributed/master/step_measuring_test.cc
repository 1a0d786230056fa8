// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/step_measuring.h"

#include "distributed/master/testing/fake_tasks_test.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// `step_` is a prepared step of the target "both", with parts in two tasks.
class StepMeasuringTest : public FakeTasksTest {
 protected:
  void WithStep(const std::function<void()>& body) {
    Simulate([&] {
      const auto tasks = std::make_shared<SessionTasks>();
      tasks->list = tasks_;
      const auto steps = std::make_shared<SessionSteps>(SessionSteps::Options{
          .session = "s",
          .services = {.env = &env_, .timer = timer_.get(), .threads = &scheduler_},
          .activity = std::make_shared<ClientActivity>(env_)});
      const auto graph = std::make_shared<SessionGraph>(
          SessionGraph::Options{.registry = &Registry::Global(),
                                .task = kWorker,
                                .devices = {tasks_[0].devices[0], tasks_[1].devices[0]},
                                .env = &env_,
                                .threads = &scheduler_});
      CHECK_OK(graph->Extend(0, Whole).status());
      const auto prepared = std::make_shared<PreparedSteps>(PreparedSteps::Options{
          .session = "s", .tasks = tasks, .graph = graph, .steps = steps, .threads = &scheduler_});
      step_ = prepared->cache().Get({}, {}, {"both"});
      prepared->Await(step_, {}, Done([](const Status& status) { CHECK_OK(status); }));
      measuring_.emplace(StepMeasuring::Options{.session = "s",
                                                .build_cost_model = 2,
                                                .build_cost_model_after = 1,
                                                .env = &env_,
                                                .recorder = recorder_,
                                                .graph = graph,
                                                .prepared = prepared});
      body();
      tasks->session_deleted = true;  // nothing to deregister
      measuring_.reset();
      step_ = nullptr;
    });
  }
  // Ends an execution that began with `reasons`.
  Status End(const StepMeasuring::Reasons& reasons, const Status& status,
             const RunOptions& options = {}) {
    StepStatsCollector stats;
    return measuring_->End(step_, options, status, reasons, reasons.any() ? &stats : nullptr,
                           &outputs_, &metadata_);
  }

  const std::shared_ptr<StepRecorder> recorder_ = std::make_shared<StepRecorder>(scheduler_);
  std::optional<StepMeasuring> measuring_;
  std::shared_ptr<PreparedStep> step_;
  std::vector<Tensor> outputs_;
  RunMetadata metadata_;
};

TEST_F(StepMeasuringTest, EveryOtherExecutionAfterTheFirstGetsACostGraph) {
  WithStep([&] {
    std::vector<int> with_cost_graph;
    for (int i = 0; i < 6; ++i) {
      const StepMeasuring::Reasons reasons = measuring_->Begin(step_.get());
      EXPECT_EQ(reasons.any(), reasons.cost_graph);
      ASSERT_EQ(End(reasons, OkStatus()), OkStatus());
      EXPECT_EQ(metadata_.cost_graph.empty(), !reasons.cost_graph) << i;
      if (reasons.cost_graph) with_cost_graph.push_back(i);
    }
    EXPECT_THAT(with_cost_graph, ElementsAre(2, 4));
    EXPECT_EQ(step_->executions, 6);
  });
}

TEST_F(StepMeasuringTest, AnOperatorsRecordingGetsTheStep) {
  WithStep([&] {
    const auto recording = *recorder_->Begin({.steps = 1});
    const StepMeasuring::Reasons reasons = measuring_->Begin(step_.get());
    EXPECT_TRUE(reasons.any());
    Pass(20);
    ASSERT_EQ(End(reasons, OkStatus()), OkStatus());
    const std::vector<RecordedStep> steps = recording->TakeSteps();
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].session, "s");
    EXPECT_THAT(steps[0].targets, ElementsAre("both"));
    EXPECT_EQ(steps[0].end_ns - steps[0].start_ns, 20'000'000);
    recorder_->End(recording);
  });
}

TEST_F(StepMeasuringTest, AFailedExecutionLeavesNothing) {
  WithStep([&] {
    const auto recording = *recorder_->Begin({.steps = 1});
    const StepMeasuring::Reasons reasons = measuring_->Begin(step_.get());
    outputs_.resize(1);
    EXPECT_EQ(End(reasons, Aborted("the end")), Aborted("the end"));
    EXPECT_THAT(outputs_, IsEmpty());
    EXPECT_EQ(recording->under_way(), 0);
    EXPECT_THAT(recording->TakeSteps(), IsEmpty());
    recorder_->End(recording);
  });
}

TEST_F(StepMeasuringTest, ShowsTheGraphsOfThePartitions) {
  WithStep([&] {
    ASSERT_EQ(End(measuring_->Begin(step_.get()), OkStatus(), {.partition_graphs = true}),
              OkStatus());
    ASSERT_EQ(metadata_.partition_graphs.size(), 2u);
    EXPECT_NE(metadata_.partition_graphs[0].second.FindNode("there"), nullptr);
    EXPECT_NE(metadata_.partition_graphs[1].second.FindNode("both"), nullptr);
  });
}

}  // namespace
}  // namespace penstock
