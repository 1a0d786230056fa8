// SPDX-License-Identifier: Apache-2.0
//
// Tests one replica on a simulated clock while it claims the next epoch. The test itself acts as
// the primary and the witness.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/base/sim/sim_env.h"
#include "core/base/sim/sim_scheduler.h"
#include "core/base/testing/durations.h"
#include "core/op/variable.h"
#include "distributed/replica/replica.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr char kTask[] = "/job:ps/replica:0/task:0";
constexpr uint64_t kEpoch = 7;

// A client whose calls end at once, with the answers that the test has set.
class ScriptedClient final : public ReplicaClient {
 public:
  void Greet(const wire::GreetRequest&, int64_t, Answer<wire::GreetResponse> answer) override {
    if (gone) return std::move(answer)(Unavailable("the primary is gone"));
    wire::GreetResponse primary;
    primary.set_task(kTask);
    primary.set_incarnation(3);
    primary.set_role(wire::REPLICA_PRIMARY);
    primary.set_epoch(kEpoch);
    primary.set_feed(feed);
    std::move(answer)(std::move(primary));
  }
  void Follow(const wire::FollowRequest& request, int64_t,
              Answer<wire::FollowResponse> answer) override {
    feed = request.feed();
    takes_pieces = request.takes_pieces();
    std::move(answer)(wire::FollowResponse());
  }
  void Push(const wire::PushRequest&, int64_t, Answer<wire::PushResponse> answer) override {
    std::move(answer)(pushed);
  }
  void Claim(const wire::ClaimRequest& request, int64_t,
             Answer<wire::ClaimResponse> answer) override {
    ++claims;
    if (claiming) claiming();
    if (!witness.ok()) return std::move(answer)(witness);
    wire::ClaimResponse given;
    given.set_epoch(request.epoch());
    std::move(answer)(std::move(given));
  }

  bool gone = false;
  uint64_t feed = 0;
  bool takes_pieces = false;
  int claims = 0;
  std::function<void()> claiming;  // called during a claim
  Status witness, pushed = Unavailable("the test has no follower");
};

class TakeOverTest : public testing::Test {
 protected:
  void Follow(const std::function<void()>& body) {
    const Status ran = scheduler_.Run([&] {
      log_ = std::make_unique<ReplicaLog>(env_, scheduler_);
      store_ = std::make_unique<ResourceStore>();
      CHECK_OK(store_->AttachLog(log_.get()));
      replica_ = std::make_unique<Replica>(
          Replica::Options{.task = kTask,
                           .incarnation = 5,
                           .index = 1,
                           .other = "the test",
                           .store = store_.get(),
                           .log = log_.get(),
                           .env = &env_,
                           .scheduler = &scheduler_,
                           .peer = client_,
                           .witness = client_,
                           .serve = [this] { serves_ = true; },
                           .fenced = [](const Status&) { FAIL() << "it was never the primary"; }});
      replica_->Start();
      while (client_->feed == 0) Pass(1);
      ASSERT_EQ(PushValue(1), OkStatus());
      ASSERT_TRUE(replica_->state().whole);
      body();
      replica_ = nullptr;
      store_ = nullptr;
    });
    EXPECT_EQ(ran, OkStatus());
  }
  void Pass(int64_t ms) { scheduler_.SleepUntil(scheduler_.now_ns() + ms * kMilli); }

  wire::PushRequest NextPush() {
    wire::PushRequest push;
    push.set_feed(client_->feed);
    push.set_epoch(kEpoch);
    push.set_number(number_ + 1);
    push.set_committed(number_ + 1);
    push.set_whole(true);
    return push;
  }
  // Creates the variable, or assigns it.
  Status PushValue(float value) {
    wire::PushRequest push = NextPush();
    KeptChange change{.position = number_ + 1};
    KeptChange::Part part{.container = "c", .name = "v", .type = "Variable", .id = 9};
    part.version = static_cast<int64_t>(number_) + 1;
    part.action = number_ == 0 ? kCreateAction : "assign";
    if (number_ == 0) part.values = {Value(DType::kFloat), Value(PartialShape({1}))};
    part.values.push_back(Tensor::Vector<float>({value}));
    change.parts.push_back(std::move(part));
    CHECK_OK(RecordToProto(change, push.add_record()));
    const Status taken = replica_->Push(push).status();
    if (taken.ok()) ++number_;
    return taken;
  }
  // Returns the request of a new follower.
  static wire::FollowRequest RequestToFollow() {
    wire::FollowRequest request;
    request.set_task(kTask);
    request.set_feed(11);
    request.set_takes_pieces(true);
    return request;
  }
  float ValueHere() {
    const auto found = store_->Lookup("c", "v");
    CHECK_OK(found.status());
    return dynamic_cast<Variable&>(**found).Read()->flat<float>()[0];
  }

  SimScheduler scheduler_{{.seed = 1}};
  SimEnv env_{scheduler_, Env::Real()};
  const std::shared_ptr<ScriptedClient> client_ = std::make_shared<ScriptedClient>();
  std::unique_ptr<ReplicaLog> log_;
  std::unique_ptr<ResourceStore> store_;
  std::unique_ptr<Replica> replica_;
  uint64_t number_ = 0;
  bool serves_ = false;
};

TEST_F(TakeOverTest, AFollowerBecomesThePrimary) {
  Follow([&] {
    ASSERT_EQ(PushValue(2), OkStatus());
    client_->gone = true;
    Pass(2'000);
    EXPECT_TRUE(serves_);
    EXPECT_EQ(replica_->epoch(), kEpoch + 1);
    EXPECT_EQ(ValueHere(), 2);
  });
}

// The primary was only slow. Accepting its push would be harmless if the push succeeded. But a push
// that fails would leave half of its changes in the state of the next primary.
TEST_F(TakeOverTest, PushesAreRefusedWhileItClaims) {
  Follow([&] {
    Status refused;
    client_->claiming = [&] { refused = PushValue(2); };
    client_->gone = true;
    Pass(2'000);
    EXPECT_TRUE(absl::IsAborted(refused)) << refused;
    EXPECT_TRUE(serves_);
    EXPECT_EQ(ValueHere(), 1);
  });
}

TEST_F(TakeOverTest, AfterABrokenPushItClaimsNothing) {
  Follow([&] {
    wire::PushRequest broken = NextPush();
    broken.add_record();
    EXPECT_FALSE(replica_->Push(broken).ok());
    client_->gone = true;
    Pass(2'000);
    EXPECT_EQ(client_->claims, 0);
    EXPECT_FALSE(serves_);
  });
}

TEST_F(TakeOverTest, ItFollowsOnIfThePrimaryIsThereAgain) {
  Follow([&] {
    client_->witness = Unavailable("the witness is gone, too");
    client_->gone = true;
    while (client_->claims == 0) Pass(1);
    client_->gone = false;
    Pass(2);  // the claim has ended
    EXPECT_EQ(PushValue(2), OkStatus());
    EXPECT_FALSE(serves_);
    client_->witness = OkStatus();
    Pass(2'000);
    EXPECT_FALSE(serves_);
    EXPECT_TRUE(replica_->state().whole);
  });
}

TEST_F(TakeOverTest, AFollowerOfAnOlderVersionIsRefused) {
  Follow([&] {
    EXPECT_TRUE(client_->takes_pieces);
    client_->gone = true;
    Pass(2'000);
    wire::FollowRequest request = RequestToFollow();
    request.clear_takes_pieces();
    const Status refused = replica_->Follow(request).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("with the same version"));
    EXPECT_EQ(replica_->Follow(RequestToFollow()).status(), OkStatus());
  });
}

TEST_F(TakeOverTest, AFollowerThatRefusesTheCopyIsNotFedAgainAtOnce) {
  Follow([&] {
    client_->gone = true;
    Pass(2'000);
    client_->pushed = DataLoss("the test cannot read it");
    ASSERT_EQ(replica_->Follow(RequestToFollow()).status(), OkStatus());
    Pass(1'000);
    const Status refused = replica_->Follow(RequestToFollow()).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("the test cannot read it"));
    client_->pushed = Unavailable("the test has no follower");
    Pass(5'000);
    ASSERT_EQ(replica_->Follow(RequestToFollow()).status(), OkStatus());
    Pass(1'000);
    EXPECT_EQ(replica_->Follow(RequestToFollow()).status(), OkStatus()) << "it was only lost";
  });
}

}  // namespace
}  // namespace penstock
