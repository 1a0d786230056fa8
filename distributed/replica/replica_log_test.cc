// SPDX-License-Identifier: Apache-2.0
//
// Tests a primary's log together with a follower's state, without a network between them.
#include "distributed/replica/replica_log.h"

#include <map>
#include <optional>
#include <string>

#include "core/base/join.h"
#include "core/op/state_replay.h"
#include "core/op/variable.h"
#include "distributed/replica/shadow_state.h"
#include "distributed/replica/witness.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kLogBytesMax = 1 << 30;

class Reader final : public Resource {
 public:
  const char* TypeName() const override { return "Reader"; }
  std::string DebugString() const override { return "Reader"; }
  const char* OpaqueReason() const override { return "it reads files"; }
};

class Counter final : public Resource {
 public:
  const char* TypeName() const override { return "TestCounter"; }
  std::string DebugString() const override { return "TestCounter"; }
  const char* OpaqueReason() const override { return nullptr; }
  void Count() {
    Changed({}, "count", [] { return std::vector<Tensor>(); });
  }
};

class ReplicaLogTest : public testing::Test {
 protected:
  ReplicaLogTest() {
    CHECK_OK(store_.AttachLog(&log_));
    CHECK_OK(shadow_store_.AttachLog(&shadow_log_));
  }

  std::shared_ptr<Variable> Make(const std::string& name, float value, int64_t step = 1) {
    const auto made = store_.LookupOrCreate("", name, "Variable",
                                            [&]() -> StatusOr<std::shared_ptr<Resource>> {
                                              return std::make_shared<Variable>(name, DType::kFloat,
                                                                                PartialShape({1}));
                                            },
                                            {.step_id = step});
    CHECK_OK(made.status());
    auto variable = std::dynamic_pointer_cast<Variable>(*made);
    CHECK_OK(variable->Assign(Tensor::Vector<float>({value}), true, {.step_id = step}));
    return variable;
  }
  void Assign(Variable& variable, float value, int64_t step) {
    CHECK_OK(variable.Assign(Tensor::Vector<float>({value}), true, {.step_id = step}));
  }
  void Begin(int64_t step) { log_.StepBegins(step); }
  void End(int64_t step) {
    ends_[step] = std::nullopt;
    log_.StepEnds(step, OkStatus(), Done([this, step](Status status) { ends_[step] = status; }));
  }
  bool Ended(int64_t step) { return ends_.at(step).has_value(); }

  Status BeginFeed() {
    std::vector<KeptChange> copy;
    RETURN_IF_ERROR(log_.BeginFeed(store_, &copy));
    shadow_.Clear();
    pushes_ = 0;
    return Push({.changes = std::move(copy)});
  }
  Status Push(ReplicaLog::Batch batch) {
    wire::PushRequest push;
    push.set_number(++pushes_);
    push.set_committed(batch.committed);
    push.set_whole(batch.whole);
    for (const KeptChange& change : batch.changes) {
      RETURN_IF_ERROR(RecordToProto(change, push.add_record()));
    }
    return shadow_.Take(push);
  }
  // Sends all pending records; returns how many there were.
  int Feed(bool acknowledge = true) {
    ReplicaLog::Batch batch;
    if (!log_.TakeBatch(0, kLogBytesMax, &batch)) return 0;
    const uint64_t committed = batch.committed;
    const int count = static_cast<int>(batch.changes.size());
    CHECK_OK(Push(std::move(batch)));
    if (acknowledge) log_.Acknowledge(committed);
    return count;
  }
  // Returns the variable's value, such as "3", or an error text.
  std::string Shadow(const std::string& name) {
    const auto found = shadow_store_.Lookup("", name);
    if (!found.ok()) return "none";
    const auto value = dynamic_cast<Variable&>(**found).Read();
    return value.ok() ? StrCat(value->flat<float>()[0]) : std::string(value.status().message());
  }

  Env& env_ = Env::Real();
  ReplicaLog log_{env_, Scheduler::Real()}, shadow_log_{env_, Scheduler::Real()};
  ResourceStore store_, shadow_store_;
  ShadowState shadow_{shadow_store_, env_, kLogBytesMax};
  uint64_t pushes_ = 0;
  std::map<int64_t, std::optional<Status>> ends_;
};

TEST_F(ReplicaLogTest, WithoutAFollowerNothingWaits) {
  Begin(1);
  Make("v", 1);
  End(1);
  EXPECT_TRUE(Ended(1));
  EXPECT_EQ(log_.counts().records, 2);
  EXPECT_EQ(log_.counts().fed_bytes, 0);
}

TEST_F(ReplicaLogTest, AStepEndsWhenTheFollowerHasIt) {
  const auto v = Make("v", 1);
  ASSERT_EQ(BeginFeed(), OkStatus());
  Feed();
  EXPECT_TRUE(shadow_.whole());
  EXPECT_EQ(Shadow("v"), "1");

  Begin(2);
  Assign(*v, 2, 2);
  End(2);
  EXPECT_FALSE(Ended(2));
  EXPECT_EQ(Feed(/*acknowledge=*/false), 1);
  EXPECT_FALSE(Ended(2));
  log_.Acknowledge(shadow_.committed());
  EXPECT_TRUE(Ended(2));
  EXPECT_EQ(Shadow("v"), "2");
}

TEST_F(ReplicaLogTest, AStepThatOnlyReadsWaitsForWhatItMayHaveSeen) {
  const auto v = Make("v", 1);
  ASSERT_EQ(BeginFeed(), OkStatus());
  Feed();
  Begin(2), Begin(3), Begin(4);
  End(4);
  EXPECT_TRUE(Ended(4)) << "nothing has changed";
  Assign(*v, 2, 2);
  End(2);
  End(3);
  EXPECT_FALSE(Ended(3));
  Feed();
  EXPECT_TRUE(Ended(3));
}

TEST_F(ReplicaLogTest, TheFollowerKeepsAllOfAStepOrNothing) {
  const auto v = Make("v", 1), w = Make("w", 1);
  ASSERT_EQ(BeginFeed(), OkStatus());
  Feed();
  Begin(2);
  Assign(*v, 2, 2);
  Begin(3);
  Assign(*w, 3, 3);
  End(3);
  // The follower has got the records but does not apply them: step 2 made an earlier change, and
  // still runs.
  EXPECT_EQ(Feed(), 2);
  EXPECT_FALSE(Ended(3));
  EXPECT_EQ(Shadow("v"), "1");
  EXPECT_EQ(Shadow("w"), "1");
  Assign(*w, 4, 2);
  End(2);
  EXPECT_EQ(Feed(), 1);
  EXPECT_TRUE(Ended(2));
  EXPECT_TRUE(Ended(3));
  EXPECT_EQ(Shadow("v"), "2");
  EXPECT_EQ(Shadow("w"), "4");

  Begin(4);
  Assign(*v, 5, 4);
  EXPECT_EQ(Feed(), 1);
  shadow_.TakeOver();
  EXPECT_EQ(Shadow("v"), "2");
}

TEST_F(ReplicaLogTest, AStepThatNeedsSeveralPushesIsKeptWithTheLast) {
  const auto v = Make("v", 1), w = Make("w", 1);
  ASSERT_EQ(BeginFeed(), OkStatus());
  Feed();
  Begin(2);
  Assign(*v, 2, 2);
  Assign(*w, 2, 2);
  End(2);
  ReplicaLog::Batch first;
  ASSERT_TRUE(log_.TakeBatch(0, /*bytes_max=*/1, &first));
  EXPECT_EQ(first.changes.size(), 1u);
  ASSERT_EQ(Push(std::move(first)), OkStatus());
  EXPECT_EQ(Shadow("v"), "1") << "the primary may die here";
  Feed();
  EXPECT_EQ(Shadow("v"), "2");
  EXPECT_EQ(Shadow("w"), "2");
  EXPECT_TRUE(Ended(2));
}

TEST_F(ReplicaLogTest, AStepThatDoesNotEndHoldsOthersUpForAMomentOnly) {
  const auto v = Make("v", 1);
  ASSERT_EQ(BeginFeed(), OkStatus());
  Feed();
  Begin(2), Begin(3);
  Assign(*v, 2, 2);
  Assign(*v, 3, 3);
  End(3);
  Feed();
  EXPECT_FALSE(Ended(3));
  env_.SleepForNanos(ReplicaLog::kCutNanosMax + 1'000'000);
  Feed();
  EXPECT_TRUE(Ended(3));
  EXPECT_EQ(log_.counts().forced_cuts, 1);
  EXPECT_EQ(Shadow("v"), "3");
}

TEST_F(ReplicaLogTest, ACopyIsTakenWhileTheStateChanges) {
  const auto v = Make("v", 1), gone = Make("gone", 1);
  std::vector<KeptChange> copy;
  ASSERT_EQ(log_.BeginFeed(store_, &copy), OkStatus());
  Assign(*v, 2, 5);
  ASSERT_EQ(store_.Remove("", "gone"), OkStatus());
  Assign(*gone, 9, 5);  // a step that still holds its handle updates it
  const auto again = Make("gone", 3), fresh = Make("fresh", 4);
  shadow_.Clear();
  ASSERT_EQ(Push({.changes = std::move(copy)}), OkStatus());
  EXPECT_FALSE(shadow_.whole());
  Feed();
  EXPECT_TRUE(shadow_.whole());
  EXPECT_EQ(Shadow("v"), "2");
  EXPECT_EQ(Shadow("gone"), "3");
  EXPECT_EQ(Shadow("fresh"), "4");
  Assign(*v, 7, 0);
  EXPECT_EQ(Feed(), 1);
  EXPECT_EQ(Shadow("v"), "7");
}

TEST_F(ReplicaLogTest, AFollowerIsWholeOnlyWithTheStepsThatDidNotWaitForIt) {
  const auto v = Make("v", 1), other = Make("other", 1);
  ASSERT_EQ(BeginFeed(), OkStatus());
  Begin(2);
  Assign(*other, 5, 2);  // step 2 keeps running, so there is no cut after this change
  Begin(3);
  Assign(*v, 3, 3);
  End(3);
  EXPECT_TRUE(Ended(3));  // the follower is not whole, so nothing waits for it
  Feed();
  EXPECT_FALSE(shadow_.whole()) << "it would take over without step 3";
  End(2);
  Feed();
  EXPECT_TRUE(shadow_.whole());
  EXPECT_EQ(Shadow("v"), "3");
}

TEST_F(ReplicaLogTest, WithoutTheFollowerStepsGoOn) {
  const auto v = Make("v", 1);
  ASSERT_EQ(BeginFeed(), OkStatus());
  Feed();
  Begin(2);
  Assign(*v, 2, 2);
  End(2);
  EXPECT_TRUE(log_.follower_is_whole());
  log_.EndFeed();
  EXPECT_TRUE(Ended(2));
  EXPECT_EQ(*ends_[2], OkStatus());
  EXPECT_FALSE(log_.follower_is_whole());
}

TEST_F(ReplicaLogTest, NothingIsAcknowledgedByAFencedPrimary) {
  const auto v = Make("v", 1);
  ASSERT_EQ(BeginFeed(), OkStatus());
  Feed();
  Begin(2), Begin(3);
  Assign(*v, 2, 2);
  End(2);
  log_.Refuse(Aborted("taken over"));
  EXPECT_EQ(*ends_[2], Aborted("taken over"));
  End(3);
  EXPECT_EQ(*ends_[3], Aborted("taken over"));
}

TEST_F(ReplicaLogTest, ResourcesThatCannotBeReplicatedAreRefusedByName) {
  const auto make = [] { return std::make_shared<Reader>(); };
  log_.RemoveRefusedFrom(&store_);
  // The second step would find the resource of the first one, if that were still there.
  for (const int64_t step : {2, 3}) {
    Begin(step);
    const UpdateOrigin origin{.step_id = step, .node = "input/reader"};
    CHECK_OK(store_.LookupOrCreate("", "files", "Reader", make, origin).status());
    End(step);
    EXPECT_EQ(*ends_[step],
              FailedPrecondition(
                  "node 'input/reader' uses Reader 'files' on a parameter server with replicas: it "
                  "reads files, so a follower could not take it over; place the node on a worker "
                  "(device \"/job:worker/task:0\")"));
    EXPECT_EQ(store_.Lookup("", "files").status().code(), StatusCode::kNotFound);
  }
  Begin(4);
  CHECK_OK(store_.LookupOrCreate("session/1", "files", "Reader", make, {.step_id = 4}).status());
  End(4);
  EXPECT_EQ(*ends_[4], OkStatus()) << "it ends with its session";
  CHECK_OK(store_.Lookup("session/1", "files").status());
}

TEST_F(ReplicaLogTest, ANewResourceWithTheNameOfARefusedOneStays) {
  const auto make = [] { return std::make_shared<Reader>(); };
  log_.RemoveRefusedFrom(&store_);
  Begin(2), Begin(3);
  CHECK_OK(store_.LookupOrCreate("", "files", "Reader", make, {.step_id = 2}).status());
  CHECK_OK(store_.Remove("", "files", {.step_id = 2}));
  CHECK_OK(store_.LookupOrCreate("", "files", "Reader", make, {.step_id = 3}).status());
  End(2);
  EXPECT_EQ(ends_[2]->code(), StatusCode::kFailedPrecondition);
  CHECK_OK(store_.Lookup("", "files").status());
  End(3);
  EXPECT_EQ(ends_[3]->code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(store_.Lookup("", "files").status().code(), StatusCode::kNotFound);
}

TEST_F(ReplicaLogTest, WhatCannotBeCopiedIsNamed) {
  const auto counter = std::make_shared<Counter>();
  CHECK_OK(store_.LookupOrCreate("", "c", "TestCounter", [&] { return counter; }).status());
  counter->Count();
  std::vector<KeptChange> copy;
  const Status status = log_.BeginFeed(store_, &copy);
  EXPECT_EQ(status.message(),
            "the TestCounter 'c' in container 'localhost' cannot be copied to a new follower");
  Begin(2);
  End(2);
  EXPECT_TRUE(Ended(2));
}

TEST_F(ReplicaLogTest, PushesThatDoNotFitAreErrors) {
  Make("v", 1);
  ASSERT_EQ(BeginFeed(), OkStatus());
  wire::PushRequest push;
  push.set_number(3);
  EXPECT_TRUE(absl::IsDataLoss(shadow_.Take(push)));
  push.set_number(2);
  push.set_committed(8);
  push.add_record();
  EXPECT_TRUE(absl::IsInvalidArgument(shadow_.Take(push)));
}

TEST_F(ReplicaLogTest, OnePushHasOneBudget) {
  ShadowState small(shadow_store_, env_, /*bytes_max=*/10);
  KeptChange change;
  change.parts.push_back({.name = "v", .type = "V", .values = {Tensor::Vector<float>({1, 2})}});
  wire::PushRequest push;
  push.set_number(1);
  for (change.position = 1; change.position <= 2; ++change.position) {
    CHECK_OK(RecordToProto(change, push.add_record()));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(small.Take(push))) << "8 and 8 bytes";
}

TEST_F(ReplicaLogTest, CountsHowFarTheFollowerIsBehind) {
  EXPECT_FALSE(log_.counts().feeding);
  const auto v = Make("v", 1);
  ASSERT_EQ(BeginFeed(), OkStatus());
  EXPECT_TRUE(log_.counts().feeding);
  EXPECT_FALSE(log_.counts().whole);
  Feed();
  EXPECT_TRUE(log_.counts().whole);
  EXPECT_EQ(log_.counts().behind, 0u);
  Begin(2);
  Assign(*v, 2, 2);
  EXPECT_EQ(log_.counts().behind, 1u);
  EXPECT_EQ(log_.counts().behind_bytes, 4);
  End(2);
  Feed();
  EXPECT_EQ(log_.counts().behind, 0u);
  EXPECT_GT(log_.counts().acknowledged_ns, 0);
}

TEST(WitnessTest, GivesEachEpochToOne) {
  Witness witness;
  const auto claim = [&](uint64_t incarnation, uint64_t epoch) {
    wire::ClaimRequest request;
    request.set_task("/job:ps/replica:0/task:0");
    request.set_incarnation(incarnation);
    request.set_epoch(epoch);
    const auto answer = witness.Claim(request);
    return answer.ok() ? static_cast<int64_t>(answer->epoch())
                       : (absl::IsAborted(answer.status()) ? -1 : -2);
  };
  EXPECT_EQ(claim(7, 0), 1);
  EXPECT_EQ(claim(7, 0), 1) << "the answer was lost";
  EXPECT_EQ(claim(8, 2), 2);
  EXPECT_EQ(claim(8, 2), 2);
  EXPECT_EQ(claim(7, 2), -1);
  EXPECT_EQ(claim(7, 1), -1);
  EXPECT_EQ(claim(9, 0), 3);
  EXPECT_EQ(claim(9, uint64_t{1} << 60), -2);
  EXPECT_EQ(claim(0, 4), -2);
}

}  // namespace
}  // namespace penstock
