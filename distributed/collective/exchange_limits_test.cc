// SPDX-License-Identifier: Apache-2.0
//
// Tests one task; the test itself acts as the peer. The memory that the task keeps for late tasks,
// and for groups that never form, is limited, and each limit leads to an error that names it.
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/forwarding_env.h"
#include "core/runtime/deadline_timer.h"
#include "distributed/collective/exchange.h"
#include "distributed/collective/reserved_steps.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::collective {
namespace {

using testing::HasSubstr;

constexpr GroupKey kGroup{.key = 7, .size = 2};
const TaskName kSelf{.job = "worker", .task = 0}, kPeer{.job = "worker", .task = 1};
const TaskId kSelfId{.name = kSelf.ToString(), .address = "host:1", .incarnation = 1};
const TaskId kPeerId{.name = kPeer.ToString(), .address = "host:2", .incarnation = 2};

std::string DeviceOf(const TaskName& task) { return task.ToString() + "/device:CPU:0"; }

// The real clock, plus a time that the test adds.
class LaterEnv final : public ForwardingEnv {
 public:
  LaterEnv() : ForwardingEnv(Env::Real()) {}
  int64_t NowNanos() override { return Env::Real().NowNanos() + added_ns; }
  int64_t added_ns = 0;
};

// A transport that remembers the last step id to which the task has subscribed.
class PlayedTransport final : public Transport {
 public:
  string_view protocol() const override { return "played"; }
  TransportCapabilities capabilities() const override { return {}; }
  Status Serve(const TaskId&, TaskSteps&) override { return OkStatus(); }
  void Subscribe(const TaskId&, int64_t step_id) override { step = step_id; }
  void Unsubscribe(const TaskId&, int64_t) override {}
  void Stop() override {}
  int64_t step = 0;
};

// The sink that leads to the peer. Keeps the messages that the task sends.
class PlayedSink final : public TensorSink {
 public:
  void Refuse(int64_t, const Status& why) override { refused = why; }
  void Drop(int64_t) override {}
  std::vector<Message> said;
  Status refused;

 private:
  void SendEncoded(OutgoingTensor tensor, HandedOver handed_over) override {
    if (tensor.key().key().tensor == kMessageKey) {
      auto bytes = IncomingTensor::Begin(tensor.step_id(), tensor.key(), tensor.header(), landing_);
      CHECK_OK(bytes.status());
      std::memcpy(bytes->Next(tensor.bytes()), tensor.data(), tensor.bytes());
      said.push_back(*ParseMessage(*(*std::move(bytes)).Finish()));
    }
    std::move(handed_over)();
  }
  class Cpu final : public Landing {
  } landing_;
};

class ExchangeLimitsTest : public testing::Test {
 protected:
  using Result = std::future<StatusOr<Tensor>>;

  ExchangeLimitsTest() { exchange_.set_transport(&transport_); }
  Result Collect(CollectiveCall call) {
    call.device = DeviceOf(kSelf);
    call.dtype = call.input.dtype();
    call.shape = call.input.shape();
    auto promise = std::make_shared<std::promise<StatusOr<Tensor>>>();
    exchange_.Collect("s", 1, std::move(call),
                      [promise](StatusOr<Tensor> r) { promise->set_value(std::move(r)); });
    return promise->get_future();
  }
  static Status Get(Result& result) {
    const bool ended = result.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    return ended ? result.get().status() : DeadlineExceeded("the test's");
  }
  static CollectiveCall Call(int64_t elements, const GroupKey& group = kGroup) {
    return {.group_key = group.key,
            .group_size = group.size,
            .instance_key = 1,
            .input = Tensor(DType::kInt64, Shape({elements}))};
  }
  // Connects the peer to the task, so that it receives the task's messages.
  void PeerConnects() { exchange_.steps().Subscribe(kPeer.ToString(), -5, sink_); }
  void PeerSays(const Message& message) {
    exchange_.steps().Deliver(transport_.step, KeyBetween(kPeer, kSelf, kMessageKey).In(1, ++said_),
                              ToTensor(message), /*is_dead=*/false);
  }
  void PeerJoins(const GroupKey& group, uint64_t nonce) {
    PeerSays(Join{.group = group, .device = DeviceOf(kPeer), .session = "s", .nonce = nonce});
  }
  void PeerSends(uint32_t group, uint64_t execution, int64_t elements) {
    const Address address{.group = group, .execution = execution};
    exchange_.steps().Deliver(
        transport_.step,
        KeyBetween(kPeer, kSelf, kDataKey).In(address.frame(), address.iteration()),
        Tensor(DType::kInt64, Shape({elements})), /*is_dead=*/false);
  }
  // Returns the id of the group that the task's last Join and the peer's Join form.
  uint32_t IdWith(uint64_t peers_nonce) const {
    std::vector<Rank> ranks = {{.device = *DeviceName::Parse(DeviceOf(kSelf)),
                                .task = kSelf,
                                .session = "s",
                                .nonce = std::get<Join>(sink_->said.back()).nonce},
                               {.device = *DeviceName::Parse(DeviceOf(kPeer)),
                                .task = kPeer,
                                .session = "s",
                                .nonce = peers_nonce}};
    FormedGroup::SortRanks(&ranks);
    return FormedGroup::IdOf(ranks);
  }

  LaterEnv env_;
  PlayedTransport transport_;
  const std::shared_ptr<PlayedSink> sink_ = std::make_shared<PlayedSink>();
  uint64_t said_ = 0;
  Exchange exchange_{{.self = kSelf,
                      .threads = &Scheduler::Real(),
                      .env = &env_,
                      .timer = &DeadlineTimer::Real(),
                      .tasks_of = [](const std::string&) -> StatusOr<std::vector<TaskId>> {
                        return std::vector<TaskId>{kSelfId, kPeerId};
                      },
                      .unclaimed_bytes_max = 1000,
                      .groups_max = 2}};
};

TEST_F(ExchangeLimitsTest, TooMuchHeldForATaskThatHasNotConnectedEndsTheGroup) {
  Result result = Collect(Call(500));
  PeerJoins(kGroup, 1);
  const Status status = Get(result);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  for (const char* words : {"group 7 of 2 ranks", "task:1 has not connected", "of 4000 bytes"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
}

TEST_F(ExchangeLimitsTest, ATaskThatConnectsAfterwardsHearsOfIt) {
  Result result = Collect(Call(500));
  PeerJoins(kGroup, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(Get(result)));
  EXPECT_THAT(sink_->said, testing::IsEmpty());
  PeerConnects();
  ASSERT_EQ(sink_->said.size(), 1u);
  const auto& leave = std::get<Leave>(sink_->said[0]);
  EXPECT_THAT(leave.nonces, testing::Contains(uint64_t{1})) << "the peer's rank, which waits there";
  EXPECT_TRUE(absl::IsResourceExhausted(leave.why)) << leave.why;
  PeerConnects();
  EXPECT_EQ(sink_->said.size(), 1u) << "only once";
}

TEST_F(ExchangeLimitsTest, ARankWhoseGroupHasFailedElsewhereNoLongerWaits) {
  PeerConnects();
  Result result = Collect(Call(1));
  const uint64_t own = std::get<Join>(sink_->said.back()).nonce;
  PeerSays(Leave{.group = kGroup, .nonces = {1, own}, .why = ResourceExhausted("too much")});
  const Status status = Get(result);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("too much"));
}

TEST_F(ExchangeLimitsTest, TooMuchForExecutionsThatHaveNotBegunEndsTheGroup) {
  PeerConnects();
  Result result = Collect(Call(1));
  PeerJoins(kGroup, 1);
  const uint32_t id = IdWith(1);
  for (uint64_t execution = 100; execution < 103; ++execution) PeerSends(id, execution, 50);
  const Status status = Get(result);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  for (const char* words : {"group 7 of 2 ranks", "task:1 sends 400 more", "at most 1000"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
}

TEST_F(ExchangeLimitsTest, TooMuchForAGroupThatHasNotFormedEndsItWhenItForms) {
  PeerConnects();
  Result result = Collect(Call(1));
  const uint32_t id = IdWith(1);
  PeerSends(id, 100, 50);
  EXPECT_GT(exchange_.early_bytes(), 400);
  PeerSends(id, 101, 200);
  EXPECT_EQ(exchange_.early_bytes(), 0);
  PeerJoins(kGroup, 1);
  const Status status = Get(result);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  for (const char* words : {"group 7 of 2 ranks", "task:1 was dropped", "at most 1000"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
}

TEST_F(ExchangeLimitsTest, NothingIsKeptForAGroupThatHasEnded) {
  PeerConnects();
  Result result = Collect(Call(1));
  const uint32_t first = IdWith(1), elsewhere = 4711;
  PeerJoins(kGroup, 1);  // the group formed here, and the peer left it
  PeerSays(Leave{.group = kGroup, .nonces = {1}, .formed = first, .why = Aborted("enough")});
  EXPECT_TRUE(absl::IsAborted(Get(result)));
  exchange_.EndSession("s", Cancelled("closed"));
  PeerSends(first, 100, 10);
  EXPECT_EQ(exchange_.early_bytes(), 0);

  PeerSends(elsewhere, 100, 10);  // the group formed in the peer, and the peer left it
  EXPECT_GT(exchange_.early_bytes(), 0);
  PeerSays(Leave{.group = kGroup, .nonces = {2}, .formed = elsewhere, .why = Aborted("enough")});
  EXPECT_EQ(exchange_.early_bytes(), 0);
  PeerSends(elsewhere, 100, 10);
  EXPECT_EQ(exchange_.early_bytes(), 0);
}

TEST_F(ExchangeLimitsTest, MessagesOfAGroupThatDoesNotFormExpire) {
  PeerConnects();
  Result result = Collect(Call(1));
  PeerSends(IdWith(1), 100, 10);
  EXPECT_GT(exchange_.early_bytes(), 0);
  env_.added_ns = 61'000'000'000;
  PeerJoins({.key = 8, .size = 2}, 3);  // any message makes the task look for expired ones
  EXPECT_EQ(exchange_.early_bytes(), 0);
  PeerJoins(kGroup, 1);  // too late: the group would need the expired message
  const Status status = Get(result);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  for (const char* words : {"group 7 of 2 ranks", "task:1 have waited longer than a minute"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
}

TEST(EarlyMessagesTest, AreForgottenWhenNoRankWaitsAnyMore) {
  constexpr int64_t kSecond = 1'000'000'000;
  EarlyMessages early(1000);
  const EarlyMessages::EarlyMessage message{kPeer, {.group = 1}, Tensor::Scalar<int32_t>(0)};
  early.Keep(message, 0);
  early.Expire(61 * kSecond);
  early.Keep(message, 62 * kSecond);
  EXPECT_EQ(early.bytes(), 0);
  EXPECT_TRUE(absl::IsUnavailable(early.Take(1).dropped));
  early.Keep(message, 0);
  early.Expire(61 * kSecond);
  early.Expire(601 * kSecond);
  EXPECT_EQ(early.Take(1).dropped, OkStatus());
}

TEST_F(ExchangeLimitsTest, TooManyGroupsAreRefused) {
  PeerConnects();
  Result result = Collect(Call(1));  // the first group
  for (int64_t key = 100; key < 120; ++key) {
    PeerSays(Leave{.group = {.key = key, .size = 2}, .nonces = {99}, .why = Aborted("of nothing")});
  }
  PeerJoins({.key = 8, .size = 2}, 1);
  sink_->said.clear();
  PeerJoins({.key = 9, .size = 2}, 2);
  ASSERT_EQ(sink_->said.size(), 1);
  const auto& leave = std::get<Leave>(sink_->said[0]);
  EXPECT_EQ(leave.nonces, std::vector<uint64_t>{2});
  EXPECT_TRUE(absl::IsResourceExhausted(leave.why)) << leave.why;
  EXPECT_THAT(std::string(leave.why.message()), HasSubstr("no room for group 9 of 2 ranks"));
  Result own = Collect(Call(1, {.key = 10, .size = 2}));
  EXPECT_TRUE(absl::IsResourceExhausted(Get(own)));
  exchange_.EndSession("s", Cancelled("closed"));
  EXPECT_FALSE(Get(result).ok());
}

TEST_F(ExchangeLimitsTest, TooManyTasksAreRefused) {
  for (size_t i = 0; i < TaskLinks::kTasksMax; ++i) {
    exchange_.steps().Subscribe(StrCat("/job:worker/replica:0/task:", i), -5, sink_);
  }
  EXPECT_TRUE(sink_->refused.ok()) << sink_->refused;
  exchange_.steps().Subscribe("/job:other/replica:0/task:0", -5, sink_);
  EXPECT_TRUE(absl::IsResourceExhausted(sink_->refused)) << sink_->refused;
  EXPECT_THAT(std::string(sink_->refused.message()), HasSubstr("/job:other/replica:0/task:0"));
}

}  // namespace
}  // namespace penstock::collective
