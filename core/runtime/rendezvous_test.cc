// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "core/runtime/waiting_keys.h"

namespace penstock {
namespace {

constexpr char kA[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kB[] = "/job:worker/replica:0/task:1/device:GPU:3";

RendezvousKey Key(const std::string& tensor) {
  return {.src_device = kA, .src_incarnation = 0xabc, .dst_device = kB, .tensor = tensor};
}
HashedKey Hashed(const std::string& tensor) { return HashedKey(Key(tensor)); }

// The result that a receiver got.
struct Got {
  std::optional<Status> status;
  Tensor value;
  bool is_dead = false;
};
Rendezvous::Received Into(Got* got) {
  return [got](Status status, Tensor value, bool is_dead) {
    ASSERT_FALSE(got->status.has_value()) << "called twice";
    *got = {std::move(status), std::move(value), is_dead};
  };
}

TEST(RendezvousKeyTest, TravelsAsText) {
  RendezvousKey key = Key("edge_1_a;b:0");
  key.frame = 17;
  key.iteration = 3;
  EXPECT_EQ(key.ToString(), StrCat(kA, ";0000000000000abc;", kB, ";edge_1_a;b:0;17:3"));
  const auto parsed = RendezvousKey::Parse(key.ToString());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, key);
  EXPECT_EQ(parsed->Hash(), key.Hash());
}

TEST(RendezvousKeyTest, AHashedKeyKnowsWhoReceives) {
  const HashedKey key = Hashed("x");
  EXPECT_EQ(key.consumer(), (TaskName{"worker", 0, 1}));
  EXPECT_EQ(&key.In(3, 4).consumer(), &key.consumer());
  EXPECT_FALSE(HashedKey({.dst_device = "/job:ps/task:1", .tensor = "x"}).consumer().has_value());
}

TEST(WaitingKeysTest, AreThoseOfReceiversInOrder) {
  const auto rendezvous = NewLocalRendezvous();
  const auto ignore = [](Status, Tensor, bool) {};
  for (const char* tensor : {"b", "c", "a"}) rendezvous->Recv(Hashed(tensor), ignore);
  for (const char* tensor : {"c", "sent"}) {
    ASSERT_TRUE(rendezvous->Send(Hashed(tensor), Tensor::Scalar(1.0f), false).ok());
  }
  EXPECT_EQ(WaitingKeys(*rendezvous), (std::vector<RendezvousKey>{Key("a"), Key("b")}));
}

TEST(RendezvousKeyTest, HashDependsOnEveryField) {
  std::vector<RendezvousKey> keys(7, Key("x"));
  keys[1].src_device = kB;
  keys[2].src_incarnation = 1;
  keys[3].dst_device = kA;
  keys[4].tensor = "y";
  keys[5].frame = 1;
  keys[6].iteration = 1;
  std::map<uint64_t, int> seen;
  for (const RendezvousKey& key : keys) ++seen[key.Hash()];
  EXPECT_EQ(seen.size(), keys.size());
}

TEST(RendezvousKeyTest, ParseRefusesWhatIsNoKey) {
  const std::string inc = "0000000000000001";
  const struct {
    std::string text, error;
  } kCases[] = {
      {"", "expected src;incarnation"},
      {StrCat(kA, ";", inc, ";", kB), "expected src;incarnation"},
      {StrCat(kA, ";", inc, ";", kB, ";x"), "no ';' after"},
      {StrCat("/device:CPU:0;", inc, ";", kB, ";x;0:0"), "source is not a full"},
      {StrCat("nonsense;", inc, ";", kB, ";x;0:0"), "source is not a full"},
      {StrCat(kA, ";1;", kB, ";x;0:0"), "incarnation is not 16"},
      {StrCat(kA, ";000000000000000G;", kB, ";x;0:0"), "incarnation is not 16"},
      {StrCat(kA, ";", inc, ";/job:x;x;0:0"), "destination is not a full"},
      {StrCat(kA, ";", inc, ";", kB, ";;0:0"), "has no name"},
      {StrCat(kA, ";", inc, ";", kB, ";x;0"), "not two numbers"},
      {StrCat(kA, ";", inc, ";", kB, ";x;-1:0"), "not two numbers"},
      {StrCat(kA, ";", inc, ";", kB, ";x;0:99999999999999999999"), "not two numbers"},
  };
  for (const auto& c : kCases) {
    const auto key = RendezvousKey::Parse(c.text);
    EXPECT_EQ(key.status().code(), StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(std::string(key.status().message()), testing::HasSubstr(c.error)) << c.text;
  }
}

TEST(LocalRendezvousTest, EitherEndMayComeFirst) {
  const auto rendezvous = NewLocalRendezvous();
  Got a, b;
  EXPECT_TRUE(rendezvous->Send(Hashed("a"), Tensor::Scalar(1.0f), false).ok());
  rendezvous->Recv(Hashed("a"), Into(&a));
  ASSERT_TRUE(a.status.has_value());
  EXPECT_TRUE(a.status->ok());
  EXPECT_EQ(a.value.scalar<float>(), 1.0f);

  rendezvous->Recv(Hashed("b"), Into(&b));
  EXPECT_FALSE(b.status.has_value());
  EXPECT_TRUE(rendezvous->Send(Hashed("b"), Tensor(), true).ok());
  ASSERT_TRUE(b.status.has_value());
  EXPECT_TRUE(b.is_dead);
  EXPECT_FALSE(b.value.valid());
}

TEST(LocalRendezvousTest, KeysDoNotMix) {
  const auto rendezvous = NewLocalRendezvous();
  RendezvousKey other = Key("a");
  other.iteration = 1;
  Got got, none;
  rendezvous->Recv(HashedKey(other), Into(&none));
  EXPECT_TRUE(rendezvous->Send(Hashed("a"), Tensor::Scalar(1.0f), false).ok());
  EXPECT_FALSE(none.status.has_value());
  rendezvous->Recv(Hashed("a"), Into(&got));
  EXPECT_TRUE(got.status.has_value());
  rendezvous->Abort(Cancelled("end"));
}

TEST(LocalRendezvousTest, AKeyServesOnce) {
  const auto rendezvous = NewLocalRendezvous();
  const Tensor value = Tensor::Scalar(1.0f);
  EXPECT_TRUE(rendezvous->Send(Hashed("a"), value, false).ok());
  EXPECT_EQ(rendezvous->Send(Hashed("a"), value, false).code(), StatusCode::kInternal);
  Got got, again, first, second;
  rendezvous->Recv(Hashed("a"), Into(&got));
  EXPECT_TRUE(got.status->ok());
  // A second Send is an error even after the two ends have met.
  const Status sent = rendezvous->Send(Hashed("a"), value, false);
  EXPECT_EQ(sent.code(), StatusCode::kInternal);
  EXPECT_THAT(std::string(sent.message()), testing::HasSubstr("was sent twice"));
  EXPECT_THAT(std::string(sent.message()), testing::HasSubstr(Key("a").ToString()));
  rendezvous->Recv(Hashed("a"), Into(&again));
  EXPECT_EQ(again.status->code(), StatusCode::kInternal);

  rendezvous->Recv(Hashed("b"), Into(&first));
  rendezvous->Recv(Hashed("b"), Into(&second));
  EXPECT_EQ(second.status->code(), StatusCode::kInternal);
  EXPECT_FALSE(first.status.has_value()) << "the first receiver still waits";
  EXPECT_TRUE(rendezvous->Send(Hashed("b"), value, false).ok());
  EXPECT_TRUE(first.status->ok());
}

TEST(LocalRendezvousTest, AbortEndsWhatWaitsAndWhatComes) {
  const auto rendezvous = NewLocalRendezvous();
  Got waiting, later;
  rendezvous->Recv(Hashed("a"), Into(&waiting));
  Tensor value = Tensor::Scalar(1.0f);
  EXPECT_TRUE(rendezvous->Send(Hashed("b"), value, false).ok());
  EXPECT_FALSE(value.unique());
  rendezvous->Abort(Unavailable("first"));
  rendezvous->Abort(Internal("second"));
  EXPECT_EQ(*waiting.status, Unavailable("first"));
  EXPECT_TRUE(value.unique()) << "what was sent is dropped";
  EXPECT_EQ(rendezvous->Send(Hashed("c"), value, false), Unavailable("first"));
  rendezvous->Recv(Hashed("b"), Into(&later));
  EXPECT_EQ(*later.status, Unavailable("first"));
}

TEST(LocalRendezvousTest, DestructionAborts) {
  Got got;
  NewLocalRendezvous()->Recv(Hashed("a"), Into(&got));
  ASSERT_TRUE(got.status.has_value());
  EXPECT_EQ(got.status->code(), StatusCode::kCancelled);
}

TEST(LocalRendezvousTest, ContinuationsMayCallBack) {
  const auto rendezvous = NewLocalRendezvous();
  Got b;
  rendezvous->Recv(Hashed("a"), [&](Status status, Tensor value, bool) {
    EXPECT_TRUE(status.ok());
    EXPECT_TRUE(rendezvous->Send(Hashed("b"), std::move(value), false).ok());
  });
  rendezvous->Recv(Hashed("b"), Into(&b));
  EXPECT_TRUE(rendezvous->Send(Hashed("a"), Tensor::Scalar(2.0f), false).ok());
  ASSERT_TRUE(b.status.has_value());
  EXPECT_EQ(b.value.scalar<float>(), 2.0f);
}

// Senders, receivers and sometimes an abort run at once: every receiver is called exactly once,
// with the right value or with the abort.
TEST(LocalRendezvousTest, Races) {
  constexpr int kKeys = 100;
  std::vector<HashedKey> keys;
  for (int i = 0; i < kKeys; ++i) keys.push_back(Hashed(StrCat("t", i)));
  for (int round = 0; round < 60; ++round) {
    const bool aborts = round % 3 == 0;
    auto rendezvous = NewLocalRendezvous();
    std::vector<Got> got(kKeys);
    std::atomic<int> told{0};
    const auto shuffled = [round](int who) {
      std::vector<int> order(kKeys);
      for (int i = 0; i < kKeys; ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), std::mt19937(round * 10 + who));
      return order;
    };
    std::vector<std::thread> threads;
    for (int half = 0; half < 2; ++half) {
      threads.emplace_back([&, half] {
        for (const int i : shuffled(half)) {
          if (i % 2 != half) continue;
          const Status sent = rendezvous->Send(keys[i], Tensor::Scalar<int32_t>(i), i % 5 == 0);
          EXPECT_TRUE(sent.ok() || aborts) << sent;
        }
      });
      threads.emplace_back([&, half] {
        for (const int i : shuffled(2 + half)) {
          if (i % 2 != half) continue;
          rendezvous->Recv(keys[i], [&, i](Status status, Tensor value, bool is_dead) {
            Into (&got[i])(std::move(status), std::move(value), is_dead);
            ++told;
          });
        }
      });
    }
    if (aborts) threads.emplace_back([&] { rendezvous->Abort(Unavailable("abort")); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(told, kKeys);
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_TRUE(got[i].status.has_value());
      if (got[i].status->ok()) {
        EXPECT_EQ(got[i].value.scalar<int32_t>(), i);
        EXPECT_EQ(got[i].is_dead, i % 5 == 0);
      } else {
        EXPECT_EQ(*got[i].status, Unavailable("abort"));
        EXPECT_TRUE(aborts);
      }
    }
  }
}

}  // namespace
}  // namespace penstock
