// SPDX-License-Identifier: Apache-2.0
//
// Tests PartialRun. The test itself acts as the step's graph, in which y needs a, and z needs a and
// b.
#include "distributed/master/partial_run.h"

#include "core/compiler/compile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kTask[] = "/job:worker/replica:0/task:0";
constexpr char kDevice[] = "/job:worker/replica:0/task:0/device:CPU:0";

Tensor Value(float value) { return Tensor::Scalar(value); }

class PartialRunTest : public testing::Test {
 protected:
  explicit PartialRunTest(std::vector<std::string> fetches = {"y:0", "z:0"}) {
    auto prepared = std::make_shared<PreparedStep>(
        CallableSpec{.feeds = {"a:0", "b:0"}, .fetches = std::move(fetches)}, /*partial=*/true);
    prepared->feeds = {{"a:0", DType::kFloat, PartialShape()},
                       {"b:0", DType::kFloat, PartialShape({})}};
    prepared->feeds_of_fetches = {{0}, {0, 1}, {0}};
    run_ = std::make_shared<PartialRun>(prepared, kDevice);
    run_->Begun(step_);
  }
  ~PartialRunTest() override { step_->Cancel(Cancelled("end of test")); }

  // Runs one instalment; its status is stored in `ended_`.
  void Run(const Feeds& feeds, const std::vector<std::string>& fetches) {
    ended_.reset();
    run_->Run(feeds, fetches, &out_, Done([this](const Status& status) { ended_ = status; }));
  }
  std::string Error(const Feeds& feeds, const std::vector<std::string>& fetches) {
    Run(feeds, fetches);
    if (!ended_.has_value()) return "not ended";
    EXPECT_EQ(ended_->code(), StatusCode::kInvalidArgument) << *ended_;
    return std::string(ended_->message());
  }
  static HashedKey Key(const std::string& tensor) {
    return HashedKey({.src_device = kDevice, .dst_device = kDevice, .tensor = tensor});
  }
  // Act as the step's graph: TakeFeed receives a feed, Compute sends a fetch.
  std::optional<float> TakeFeed(int index) {
    std::optional<float> fed;
    step_->Recv(Key(PartialFeed(index)), [&](const Status& status, const Tensor& value, bool) {
      if (status.ok()) fed = value.scalar<float>();
    });
    return fed;
  }
  void Compute(int index, float value, bool is_dead = false) {
    const Tensor tensor = is_dead ? Tensor() : Value(value);
    EXPECT_EQ(step_->Send(Key(PartialFetch(index)), tensor, is_dead), OkStatus());
  }

  const std::shared_ptr<Step> step_ = std::make_shared<Step>(1, *TaskName::Parse(kTask), "session");
  std::shared_ptr<PartialRun> run_;
  std::vector<Tensor> out_;
  std::optional<Status> ended_;
};

TEST_F(PartialRunTest, FeedsEnterTheStepAndFetchesLeaveIt) {
  Run({{"a", Value(2)}}, {"y:0"});
  EXPECT_FALSE(ended_.has_value());
  EXPECT_EQ(TakeFeed(0), 2);
  Compute(0, 3);
  EXPECT_EQ(ended_, OkStatus());
  ASSERT_EQ(out_.size(), 1);
  EXPECT_EQ(out_[0].scalar<float>(), 3);
  EXPECT_FALSE(run_->finished());

  Run({{"b:0", Value(5)}}, {"z"});
  EXPECT_EQ(TakeFeed(1), 5);
  Compute(1, 15);
  EXPECT_TRUE(run_->finished());
  EXPECT_FALSE(ended_.has_value()) << "the last instalment ends with the step";
  run_->Ended(OkStatus());
  EXPECT_EQ(ended_, OkStatus());
  EXPECT_EQ(out_[0].scalar<float>(), 15);
}

TEST_F(PartialRunTest, TheStepMayEndFirst) {
  Run({{"a", Value(2)}, {"b", Value(2)}}, {});
  EXPECT_EQ(ended_, OkStatus());
  Compute(0, 3);
  Compute(1, 4);
  run_->Ended(OkStatus());
  Run({}, {"z", "y"});
  EXPECT_EQ(ended_, OkStatus());
  EXPECT_EQ(out_[0].scalar<float>(), 4);
  EXPECT_EQ(out_[1].scalar<float>(), 3);
}

TEST_F(PartialRunTest, AMistakeChangesNothing) {
  EXPECT_EQ(Error({{"c", Value(1)}}, {}), "The feed c was not specified in partial_run_setup.");
  EXPECT_EQ(Error({}, {"x:0"}), "The fetch x:0 was not specified in partial_run_setup.");
  EXPECT_EQ(Error({{"a", Value(1)}, {"a:0", Value(1)}}, {}), "The feed a:0 has already been fed.");
  EXPECT_EQ(Error({{"a", Value(1)}}, {"y", "y"}), "The fetch y has already been fetched.");
  EXPECT_EQ(Error({{"b", Value(1)}}, {"z"}),
            "Fetch z:0 can't be computed from the feeds that have been fed so far: it needs a:0");
  EXPECT_EQ(Error({}, {"z"}),
            "Fetch z:0 can't be computed from the feeds that have been fed so far: it needs a:0, "
            "b:0");
  EXPECT_THAT(Error({{"a", Tensor::Scalar<int64_t>(1)}}, {"y"}), HasSubstr("expected float"));
  EXPECT_THAT(Error({{"b", Tensor::Vector<float>({1})}}, {}), HasSubstr("feed 'b:0'"));
  // The error changed nothing: everything can still be fed and fetched.
  Run({{"a", Value(1)}, {"b", Value(2)}}, {});
  EXPECT_EQ(ended_, OkStatus());
  EXPECT_EQ(TakeFeed(0), 1);
  EXPECT_EQ(TakeFeed(1), 2);
  EXPECT_EQ(Error({{"a", Value(1)}}, {}), "The feed a has already been fed.");
}

TEST_F(PartialRunTest, AFailureIsToldToTheInstalmentThatWaits) {
  Run({{"a", Value(1)}}, {"y"});
  step_->Cancel(OutOfRange("end of input"));
  EXPECT_FALSE(ended_.has_value()) << "the step still runs";
  EXPECT_EQ(run_->cancellation().status(), OutOfRange("end of input"));
  run_->Ended(OutOfRange("From ps 0: end of input"));
  EXPECT_EQ(ended_, OutOfRange("From ps 0: end of input"));
  EXPECT_TRUE(run_->finished());
}

TEST_F(PartialRunTest, TheNextInstalmentGetsTheErrorIfNoneWaits) {
  step_->Cancel(OutOfRange("end of input"));
  run_->Ended(OutOfRange("From ps 0: end of input"));
  Run({{"a", Value(1)}}, {"y"});
  EXPECT_EQ(ended_, OutOfRange("From ps 0: end of input"));
}

TEST_F(PartialRunTest, AFetchOfAnUntakenBranchEndsTheStep) {
  Run({{"a", Value(1)}}, {"y"});
  Compute(0, 0, /*is_dead=*/true);
  const Status no_value =
      InvalidArgument("fetch 'y' has no value: it is on a branch that was not taken");
  EXPECT_EQ(run_->cancellation().status(), no_value);
  run_->Ended(no_value);
  EXPECT_EQ(ended_, no_value);
}

TEST_F(PartialRunTest, AStepWithoutAPartInTheMastersTask) {
  run_ = std::make_shared<PartialRun>(
      std::make_shared<PreparedStep>(CallableSpec{.targets = {"t"}}, true), kDevice);
  run_->Begun(nullptr);
  Run({}, {});
  EXPECT_FALSE(ended_.has_value());
  run_->Ended(OkStatus());
  EXPECT_EQ(ended_, OkStatus());
}

class RepeatedFetchTest : public PartialRunTest {
 protected:
  RepeatedFetchTest() : PartialRunTest({"y:0", "z:0", "y"}) {}
};

TEST_F(RepeatedFetchTest, CountsAsOneFetch) {
  Run({{"a", Value(1)}, {"b", Value(1)}}, {"y", "z"});
  Compute(0, 3);
  Compute(1, 4);
  EXPECT_TRUE(run_->finished());
  run_->Ended(OkStatus());
  EXPECT_EQ(ended_, OkStatus());
}

}  // namespace
}  // namespace penstock
