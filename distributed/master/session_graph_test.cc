// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/session_graph.h"

#include "distributed/master/testing/fake_tasks_test.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::HasSubstr;

class SessionGraphTest : public FakeTasksTest {
 protected:
  SessionGraphTest() {
    SessionGraph::Options options{
        .registry = &Registry::Global(), .task = kWorker, .env = &env_, .threads = &scheduler_};
    for (const SessionTask& task : tasks_) options.devices.push_back(task.devices[0]);
    graph_.emplace(std::move(options));
    CHECK_OK(graph_->Extend(0, Whole).status());
  }
  // Compiles `step`, and stores the result in `compiled_`.
  Status Compile(PreparedStep& step) {
    auto compiled = graph_->Compile(&step);
    RETURN_IF_ERROR(compiled.status());
    compiled_ = *std::move(compiled);
    return OkStatus();
  }

  std::optional<SessionGraph> graph_;
  SessionGraph::Compiled compiled_;
};

TEST_F(SessionGraphTest, AChangeThatFailsMakesNoVersion) {
  EXPECT_EQ(graph_->version(), 1);
  EXPECT_EQ(graph_->Extend(-1, [](Graph*) { return InvalidArgument("no graph"); }).status(),
            InvalidArgument("no graph"));
  EXPECT_EQ(graph_->Extend(7, [](Graph*) { return OkStatus(); }).status(),
            Aborted("Current version is 1 but caller expected 7."));
  EXPECT_EQ(graph_->version(), 1);
}

TEST_F(SessionGraphTest, EachDeviceOfAStepGetsAPartition) {
  PreparedStep here(CallableSpec{.targets = {"here"}}), both(CallableSpec{.targets = {"both"}});
  ASSERT_EQ(Compile(here), OkStatus());
  ASSERT_EQ(compiled_.partitions.size(), 1u);
  EXPECT_EQ(compiled_.partitions[0].device, StrCat(kWorker, "/device:CPU:0"));
  ASSERT_EQ(Compile(both), OkStatus());
  EXPECT_EQ(compiled_.partitions.size(), 2u);
}

TEST_F(SessionGraphTest, AStepExpectsTheFedShapesThatTheGraphAllows) {
  const auto add = [](Graph* graph) {
    return graph
        ->AddNode({.name = "pair",
                   .op = "Placeholder",
                   .attrs = {{"dtype", DType::kFloat}, {"shape", PartialShape({2})}},
                   .device = kWorker})
        .status();
  };
  ASSERT_TRUE(graph_->Extend(-1, add).ok());
  PreparedStep step(CallableSpec{.feeds = {"pair:0", "fed:0"}, .targets = {"here"}});
  step.expected_shapes = {PartialShape({3}), PartialShape({3})};
  ASSERT_EQ(Compile(step), OkStatus());
  ASSERT_EQ(step.feeds.size(), 2u);
  EXPECT_EQ(step.feeds[0].name, "pair:0");
  EXPECT_EQ(step.feeds[0].dtype, DType::kFloat);
  EXPECT_EQ(step.expected_shapes[0], PartialShape({2})) << "the graph promises it";
  EXPECT_EQ(step.expected_shapes[1], PartialShape({3})) << "the graph promises no shape";
}

TEST_F(SessionGraphTest, AnErrorNamesWhatTheGraphLacks) {
  PreparedStep feed(CallableSpec{.feeds = {"fedd:0"}, .targets = {"here"}});
  EXPECT_THAT(std::string(Compile(feed).message()), HasSubstr("fedd:0; did you mean 'fed'"));
  PreparedStep output(CallableSpec{.feeds = {"fed:1"}, .targets = {"here"}});
  EXPECT_EQ(Compile(output), NotFound("FeedInputs: unable to find feed output fed:1"));
  PreparedStep fetch(CallableSpec{.fetches = {"^here"}});
  EXPECT_EQ(Compile(fetch), InvalidArgument("fetch '^here' is not a tensor"));
}

TEST_F(SessionGraphTest, KeptGraphsAreCompiledOnce) {
  PreparedStep step(CallableSpec{.targets = {"both"}});
  ASSERT_EQ(Compile(step), OkStatus());
  const auto graphs = graph_->KeptGraphs(step);
  ASSERT_NE(graphs, nullptr);
  EXPECT_EQ(graphs->size(), 2u);
  graph_->Clear();
  EXPECT_EQ(graph_->KeptGraphs(step), graphs);
  EXPECT_FALSE(graph_->PartitionGraphs(step).ok()) << "the graph is empty";
}

TEST_F(SessionGraphTest, PredictsWithoutMeasuredCosts) {
  PreparedStep step(CallableSpec{.targets = {"both"}});
  ASSERT_EQ(Compile(step), OkStatus());
  EXPECT_EQ(graph_->costs(), nullptr);
  CompileReport report;
  EXPECT_EQ(graph_->Predict(step, nullptr, &report), OkStatus());
  graph_->Clear();
  EXPECT_EQ(graph_->Predict(step, nullptr, &report).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace penstock
