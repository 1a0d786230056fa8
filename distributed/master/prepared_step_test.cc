// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/prepared_step.h"

#include "distributed/worker/testing/fake_worker_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;

TEST(PreparedStepTest, TheFirstPreparesItAndTheOthersWait) {
  PreparedStep step({});
  std::vector<std::string> told;
  const auto note = [&](const char* who) {
    return Done([&told, who](const Status& s) { told.push_back(StrCat(who, " ", s.ToString())); });
  };
  EXPECT_TRUE(step.AwaitReady(note("a")));
  EXPECT_FALSE(step.AwaitReady(note("b")));
  EXPECT_FALSE(step.ready());
  EXPECT_THAT(told, ElementsAre());
  step.Finish(OkStatus());
  EXPECT_TRUE(step.ready());
  EXPECT_THAT(told, ElementsAre("a OK", "b OK"));
  EXPECT_FALSE(step.AwaitReady(note("c")));
  EXPECT_THAT(told, ElementsAre("a OK", "b OK", "c OK"));
}

TEST(PreparedStepTest, AFailureReachesAllCallers) {
  PreparedStep step({});
  std::vector<Status> told;
  const auto note = [&] { return Done([&](const Status& status) { told.push_back(status); }); };
  EXPECT_TRUE(step.AwaitReady(note()));
  step.Finish(NotFound("no such node"));
  EXPECT_FALSE(step.ready());
  EXPECT_FALSE(step.AwaitReady(note())) << "it is not prepared again";
  EXPECT_THAT(told, ElementsAre(NotFound("no such node"), NotFound("no such node")));
}

TEST(PreparedStepTest, KeepsItsGraphs) {
  PreparedStep step({});
  EXPECT_EQ(step.graphs(), nullptr);
  const auto graphs = std::make_shared<const PreparedStep::Graphs>();
  step.KeepGraphs(graphs);
  EXPECT_EQ(step.graphs(), graphs);
}

TEST(PreparedStepTest, FeedsMustFit) {
  PreparedStep step({});
  step.feeds = {{"x:0", DType::kFloat, PartialShape({-1, 2})},
                {"n:0", DType::kInt64, PartialShape()}};
  const Tensor matrix(DType::kFloat, Shape({3, 2})), number = Tensor::Scalar<int64_t>(1);
  EXPECT_EQ(step.CheckFeeds({matrix, number}), OkStatus());
  EXPECT_EQ(step.CheckFeeds({matrix}), InvalidArgument("expected 2 feeds, got 1"));
  EXPECT_EQ(step.CheckFeeds({number, number}),
            InvalidArgument("feed 'x:0': expected float of shape [?,2], got int64 of shape []"));
  EXPECT_EQ(step.CheckFeeds({Tensor(DType::kFloat, Shape({2, 3})), number}),
            InvalidArgument("feed 'x:0': expected float of shape [?,2], got float of shape [2,3]"));
  EXPECT_EQ(step.CheckFeeds({Tensor(DType::kFloat, Shape({2})), number}).code(),
            StatusCode::kInvalidArgument);
  const Status none = step.CheckFeeds({matrix, Tensor()});
  EXPECT_EQ(none.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(none.message()), testing::HasSubstr("feed 'n:0': expected int64"));
  EXPECT_THAT(std::string(none.message()), testing::HasSubstr("got no tensor"));
}

TEST(PreparedStepTest, LargerFeedsExceed) {
  PreparedStep step({});
  step.feeds = {{"x:0", DType::kFloat, PartialShape({-1, 2})},
                {"n:0", DType::kInt64, PartialShape()}};
  step.expected_shapes = {PartialShape({10, 2}), PartialShape({2})};
  const auto exceed = [&](int64_t rows, int64_t numbers) {
    return step.AnyFeedLarger(
        {Tensor(DType::kFloat, Shape({rows, 2})), Tensor(DType::kInt64, Shape({numbers}))});
  };
  EXPECT_TRUE(step.KnowsFeedSizes());
  EXPECT_FALSE(exceed(10, 2));
  EXPECT_FALSE(exceed(1, 1));
  EXPECT_TRUE(exceed(11, 2));
  EXPECT_TRUE(exceed(1, 3)) << "although both together are smaller";
  step.expected_shapes[0] = PartialShape({-1, 2});
  EXPECT_FALSE(step.KnowsFeedSizes());
  EXPECT_TRUE(exceed(1, 1)) << "of which nothing was known";
}

TEST(PreparedStepTest, TheFirstFeedsAreNotedIfNothingWasKnown) {
  const auto like = [](int64_t rows) { return Tensor(DType::kFloat, Shape({rows, 2})); };
  PreparedStep callable({});
  callable.feeds = {{"x:0", DType::kFloat, PartialShape({-1, 2})}};
  callable.expected_shapes = {PartialShape({-1, 2})};
  EXPECT_EQ(callable.LikelyShapes(), callable.expected_shapes);
  callable.NoteFeeds({like(7)});
  callable.NoteFeeds({like(9)});
  EXPECT_THAT(callable.LikelyShapes(), ElementsAre(PartialShape({7, 2})));
  PreparedStep step({});
  step.feeds = callable.feeds;
  step.expected_shapes = {PartialShape({3, 2})};
  step.NoteFeeds({like(7)});
  EXPECT_THAT(step.LikelyShapes(), ElementsAre(PartialShape({3, 2})));
}

TEST(PreparedStepTest, FeedsDifferIfTheyHaveTwiceTheBytes) {
  PreparedStep step({});
  step.feeds = {{"x:0", DType::kFloat, PartialShape({-1, 2})},
                {"n:0", DType::kInt64, PartialShape()}};
  step.expected_shapes = {PartialShape({10, 2}), PartialShape({2})};  // 96 bytes
  const Tensor number = Tensor::Scalar<int64_t>(1);
  const auto differ = [&](int64_t rows) {
    return step.FeedsDiffer({Tensor(DType::kFloat, Shape({rows, 2})), number});
  };
  EXPECT_FALSE(differ(10));
  EXPECT_FALSE(differ(23)) << "192 bytes";
  EXPECT_TRUE(differ(24));
  EXPECT_FALSE(differ(5)) << "48 bytes";
  EXPECT_TRUE(differ(4));
}

TEST(PreparedStepTest, AFetchWithoutAValueIsNamed) {
  const PreparedStep step({.fetches = {"a:0", "b:0"}});
  const Tensor value = Tensor::Scalar(1.0f);
  EXPECT_EQ(step.CheckFetches({value, value}), OkStatus());
  EXPECT_EQ(step.CheckFetches({value, Tensor()}),
            InvalidArgument("fetch 'b:0' has no value: it is on a branch that was not taken"));
}

class DeregisterTest : public testing::Test {
 protected:
  DeregisterTest() {
    for (int i = 0; i < 2; ++i) {
      clients_.push_back(std::make_shared<FakeWorkerClient>());
      tasks_->list.push_back(
          {.id = {.incarnation = static_cast<uint64_t>(i + 1)}, .client = clients_.back()});
    }
  }
  std::shared_ptr<PreparedStep> Make() {
    auto step = std::make_shared<PreparedStep>(CallableSpec{});
    step->session = "s";
    step->tasks = tasks_;
    step->parts = {{&tasks_->list[1], 8}, {&tasks_->list[0], 7}};
    return step;
  }
  std::vector<std::shared_ptr<FakeWorkerClient>> clients_;
  std::shared_ptr<SessionTasks> tasks_ = std::make_shared<SessionTasks>();
};

TEST_F(DeregisterTest, TheTasksForgetAStepThatIsDropped) {
  Make().reset();
  EXPECT_THAT(clients_[0]->log, ElementsAre("DeregisterGraph s 7"));
  EXPECT_THAT(clients_[1]->log, ElementsAre("DeregisterGraph s 8"));
}

TEST_F(DeregisterTest, NotAfterTheyHaveForgottenTheSession) {
  const auto step = Make();
  tasks_->session_deleted = true;
  Make().reset();
  EXPECT_THAT(clients_[0]->log, ElementsAre());
}

TEST(StepCacheTest, NamesTellStepsApart) {
  StepCache cache;
  const Tensor one = Tensor::Scalar(1.0f), two = Tensor::Scalar(2.0f);
  const auto step = cache.Get({{"x", one}}, {"y", "z"}, {"t"});
  EXPECT_THAT(step->names().feeds, ElementsAre("x"));
  EXPECT_THAT(step->names().fetches, ElementsAre("y", "z"));
  EXPECT_THAT(step->names().targets, ElementsAre("t"));
  EXPECT_FALSE(step->partial());
  EXPECT_EQ(cache.Get({{"x", two}}, {"y", "z"}, {"t"}), step) << "values do not count";

  EXPECT_NE(cache.Get({{"x", one}}, {"z", "y"}, {"t"}), step) << "the order does";
  EXPECT_NE(cache.Get({{"x", one}}, {"y", "z", "t"}, {}), step);
  EXPECT_NE(cache.Get({{"x", one}}, {"y"}, {"z", "t"}), step);
  EXPECT_NE(cache.Get({}, {"y", "z"}, {"t"}), step);
  EXPECT_NE(cache.Get({{"x", one}, {"x", one}}, {"y", "z"}, {"t"}), step);
  EXPECT_EQ(cache.Get({{"x", one}}, {"y", "z"}, {"t"}), step);
}

TEST(StepCacheTest, APartialRunIsAStepOfItsOwn) {
  StepCache cache;
  const CallableSpec names = {.feeds = {"x"}, .fetches = {"y"}, .targets = {"t"}};
  const auto partial = cache.GetPartial(names);
  EXPECT_TRUE(partial->partial());
  EXPECT_NE(cache.Get({{"x", Tensor::Scalar(1.0f)}}, {"y"}, {"t"}), partial);
  EXPECT_EQ(cache.GetPartial(names), partial);
}

TEST(StepCacheTest, ListsStepsInTheOrderOfTheirNames) {
  StepCache cache;
  for (char fetch = 'z'; fetch >= 'a'; --fetch) cache.Get({}, {std::string(1, fetch)}, {});
  std::string listed;
  for (const auto& step : cache.List()) listed += step->names().fetches[0];
  EXPECT_EQ(listed, "abcdefghijklmnopqrstuvwxyz");
}

TEST(StepCacheTest, DropForgetsOnlyThatStep) {
  StepCache cache;
  const auto failed = cache.Get({}, {"a"}, {}), kept = cache.Get({}, {"b"}, {});
  cache.Drop(*failed);
  const auto again = cache.Get({}, {"a"}, {});
  EXPECT_NE(again, failed);
  EXPECT_EQ(cache.Get({}, {"b"}, {}), kept);
  // The failure of the first step must not remove the second step with the same names.
  cache.Drop(*failed);
  EXPECT_EQ(cache.Get({}, {"a"}, {}), again);
}

// A step that is running stays alive, even if the cache has dropped it.
TEST(StepCacheTest, NewNamesTakeBoundedMemory) {
  StepCache cache;
  const auto kept = cache.Get({}, {"0"}, {});
  std::weak_ptr<PreparedStep> unused = cache.Get({}, {"1"}, {});
  for (size_t i = 2; i < StepCache::kStepsMax; ++i) cache.Get({}, {StrCat(i)}, {});
  EXPECT_EQ(cache.Get({}, {"0"}, {}), kept) << "as many as there may be";
  EXPECT_FALSE(unused.expired());
  cache.Get({}, {"one more"}, {});
  EXPECT_TRUE(unused.expired());
  EXPECT_NE(cache.Get({}, {"0"}, {}), kept);
  EXPECT_THAT(kept->names().fetches, ElementsAre("0"));
}

// The tasks are told of each dropped step, in the same order in every run.
TEST(StepCacheTest, StepsAreDroppedInTheOrderOfTheirNames) {
  const auto client = std::make_shared<FakeWorkerClient>();
  const auto tasks = std::make_shared<SessionTasks>();
  tasks->list.push_back({.client = client});
  std::vector<std::string> expected;
  {
    StepCache cache;
    const auto add = [&](PreparedStep& step, int number) {
      step.session = "s";
      step.tasks = tasks;
      step.parts = {{&tasks->list[0], static_cast<uint64_t>(number)}};
    };
    for (int i = 0; i < 50; ++i) {
      const std::string name = StrCat("fetch", 10 + i);
      add(*cache.GetPartial({.fetches = {name}}), 2 * i + 1);
      add(*cache.Get({}, {name}, {}), 2 * i);
    }
    for (int i = 0; i < 100; ++i) expected.push_back(StrCat("DeregisterGraph s ", i));
    for (size_t i = 100; i < StepCache::kStepsMax; ++i) cache.Get({}, {StrCat("x", i)}, {});
    EXPECT_THAT(client->log, ElementsAre());
    cache.Get({}, {"one more"}, {});
    EXPECT_EQ(client->log, expected);
  }
}

}  // namespace
}  // namespace penstock
