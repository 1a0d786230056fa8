// SPDX-License-Identifier: Apache-2.0
//
// Tests how a session prepares the steps that it is to run.
#include "distributed/master/testing/fake_tasks_test.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SessionPrepareTest : public FakeTasksTest {
 protected:
  Status Run(const Feeds& feeds, const std::vector<std::string>& fetches,
             const std::vector<std::string>& targets) {
    std::vector<Tensor> outputs;
    return session_->Run({}, feeds, fetches, targets, &outputs, nullptr);
  }
};

TEST_F(SessionPrepareTest, EachTaskRegistersItsPart) {
  InSession([&] {
    worker_->log.clear();
    ps_->log.clear();
    const auto step = Begin({"both"});
    EXPECT_THAT(ps_->log, ElementsAre("RegisterGraph s 1"));
    EXPECT_THAT(worker_->log, ElementsAre("RegisterGraph s 2")) << "the master's own comes last";
    ASSERT_EQ(ps_->run_calls.size(), 1u);
    EXPECT_EQ(ps_->run_calls[0].args.graph, 1u);
    EXPECT_EQ(worker_->run_calls[0].args.graph, 2u);
    End(*ps_);
    End(*worker_);
    EXPECT_EQ(step->ended, OkStatus());
  });
}

TEST_F(SessionPrepareTest, TasksWithoutAPartAreLeftAlone) {
  InSession([&] {
    worker_->log.clear();
    Begin({"there"});
    End(*ps_);
    EXPECT_THAT(worker_->log, ElementsAre());
    EXPECT_TRUE(worker_->run_calls.empty());
  });
}

TEST_F(SessionPrepareTest, AStepIsPreparedOnce) {
  InSession([&] {
    ps_->log.clear();
    for (int i = 0; i < 3; ++i) {
      Begin({"there"});
      End(*ps_);
    }
    EXPECT_THAT(ps_->log, ElementsAre("RegisterGraph s 1"));
    EXPECT_EQ(ps_->run_calls.size(), 3u);
  });
}

TEST_F(SessionPrepareTest, NamesThatAreNotThere) {
  InSession([&] {
    const Tensor one = Tensor::Scalar(1.0f);
    EXPECT_EQ(Run({{"nope:0", one}}, {}, {"here"}),
              NotFound("FeedInputs: unable to find feed output nope:0"));
    EXPECT_THAT(std::string(Run({{"fedd:0", one}}, {}, {"here"}).message()),
                HasSubstr("fedd:0; did you mean 'fed'"));
    EXPECT_EQ(Run({{"fed:1", one}}, {}, {"here"}),
              NotFound("FeedInputs: unable to find feed output fed:1"));
    EXPECT_THAT(std::string(Run({}, {"nope:0"}, {}).message()), HasSubstr("nope"));
    EXPECT_THAT(std::string(Run({}, {}, {"nope"}).message()), HasSubstr("nope"));
    EXPECT_EQ(Run({}, {"^here"}, {}), InvalidArgument("fetch '^here' is not a tensor"));
    EXPECT_TRUE(worker_->run_calls.empty());
  });
}

TEST_F(SessionPrepareTest, FeedsMustHaveThePromisedTypeAndShape) {
  InSession([&] {
    const Status type = Run({{"fed:0", Tensor::Scalar<int32_t>(1)}}, {}, {"here"});
    EXPECT_EQ(type.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(type.message()), HasSubstr("feed 'fed:0': expected float"));
  });
}

TEST_F(SessionPrepareTest, AFailureIsForgotten) {
  InSession([&] {
    const auto early = Begin({"late"});
    ASSERT_TRUE(early->ended.has_value());
    EXPECT_EQ(early->ended->code(), StatusCode::kNotFound) << *early->ended;
    const auto add = [](Graph* graph) {
      return graph->AddNode({.name = "late", .op = "NoOp", .device = kPs}).status();
    };
    ASSERT_TRUE(session_->Extend(-1, add).ok());
    const auto late = Begin({"late"});
    End(*ps_);
    EXPECT_EQ(late->ended, OkStatus());
  });
}

TEST_F(SessionPrepareTest, AFailedRegistrationIsTriedAgain) {
  InSession([&] {
    ps_->register_answer = ResourceExhausted("no memory for the graph");
    EXPECT_EQ(Begin({"both"})->ended, ResourceExhausted("no memory for the graph"));
    EXPECT_TRUE(ps_->run_calls.empty());
    ps_->register_answer = OkStatus();
    const auto again = Begin({"both"});
    End(*ps_);
    End(*worker_);
    EXPECT_EQ(again->ended, OkStatus());
  });
}

TEST_F(SessionPrepareTest, TheCompiledGraphsCanBeSeen) {
  InSession([&] {
    const auto step = Begin({"both"}, {.partition_graphs = true});
    End(*ps_);
    End(*worker_);
    ASSERT_EQ(step->ended, OkStatus());
    const auto& graphs = step->run.metadata.partition_graphs;
    ASSERT_EQ(graphs.size(), 2u);
    EXPECT_EQ(graphs[0].first, std::string(kPs) + "/device:CPU:0");
    EXPECT_NE(graphs[0].second.FindNode("there"), nullptr);
    EXPECT_EQ(graphs[0].second.FindNode("both"), nullptr);
    EXPECT_NE(graphs[1].second.FindNode("both"), nullptr);
  });
}

}  // namespace
}  // namespace penstock
