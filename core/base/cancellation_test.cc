// SPDX-License-Identifier: Apache-2.0
#include "core/base/cancellation.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(Cancellation, FirstReasonReachesEveryCallbackInOrder) {
  Cancellation cancellation;
  EXPECT_FALSE(cancellation.cancelled());
  EXPECT_TRUE(cancellation.status().ok());
  std::vector<std::string> seen;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) {
    Cancellation::Token token;
    ASSERT_TRUE(cancellation.Register(
        [&seen, name](const Status& why) { seen.push_back(StrCat(name, ":", why.message())); },
        &token));
  }
  cancellation.Cancel(Aborted("first"));
  cancellation.Cancel(Aborted("second"));
  EXPECT_EQ(seen, (std::vector<std::string>{"a:first", "b:first", "c:first", "d:first", "e:first",
                                            "f:first", "g:first"}));
  EXPECT_EQ(cancellation.status(), Aborted("first"));

  Cancellation::Token token;
  EXPECT_FALSE(cancellation.Register([](const Status&) { FAIL(); }, &token));
}

TEST(Cancellation, DeregisteredCallbackIsNotCalled) {
  Cancellation cancellation;
  Cancellation::Token token;
  ASSERT_TRUE(cancellation.Register([](const Status&) { FAIL(); }, &token));
  cancellation.Deregister(token);
  cancellation.Cancel(Aborted("x"));
}

TEST(Cancellation, CallbackMayDeregisterAnother) {
  Cancellation cancellation;
  Cancellation::Token first, second;
  ASSERT_TRUE(
      cancellation.Register([&](const Status&) { cancellation.Deregister(second); }, &first));
  ASSERT_TRUE(cancellation.Register([](const Status&) { FAIL(); }, &second));
  cancellation.Cancel(Aborted("x"));
}

TEST(Cancellation, ResetMakesItNew) {
  Cancellation cancellation;
  cancellation.Cancel(Aborted("x"));
  cancellation.Reset();
  EXPECT_FALSE(cancellation.cancelled());
  int calls = 0;
  Cancellation::Token token;
  ASSERT_TRUE(cancellation.Register([&](const Status&) { ++calls; }, &token));
  cancellation.Cancel(Aborted("y"));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(cancellation.status(), Aborted("y"));
}

TEST(Cancellation, DeregisterWaitsForItsRunningCallback) {
  Cancellation cancellation;
  std::atomic<bool> running{false}, release{false};
  auto captured = std::make_unique<int>(0);
  Cancellation::Token token;
  ASSERT_TRUE(cancellation.Register(
      [&, value = captured.get()](const Status&) {
        running = true;
        while (!release) std::this_thread::yield();
        *value = 1;
      },
      &token));
  std::thread canceller([&] { cancellation.Cancel(Aborted("x")); });
  while (!running) std::this_thread::yield();
  std::thread releaser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    release = true;
  });
  cancellation.Deregister(token);
  EXPECT_EQ(*captured, 1);  // the callback had finished
  captured.reset();         // and its captures may be freed
  canceller.join();
  releaser.join();
}

// Operations start and end while the step is cancelled. Each sees the cancellation exactly once, by
// its callback or by a rejected registration, and never uses freed memory.
TEST(Cancellation, RacesWithRegistration) {
  for (int round = 0; round < 50; ++round) {
    Cancellation cancellation;
    std::vector<std::thread> threads;
    std::atomic<int> ended{0};
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (;;) {
          auto calls = std::make_unique<std::atomic<int>>(0);
          Cancellation::Token token;
          if (!cancellation.Register([&calls = *calls](const Status&) { ++calls; }, &token)) {
            EXPECT_EQ(cancellation.status(), Aborted("x"));
            break;
          }
          cancellation.Deregister(token);
          EXPECT_LE(*calls, 1);
        }
        ++ended;
      });
    }
    std::thread canceller([&] { cancellation.Cancel(Aborted("x")); });
    canceller.join();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ended, 4);
    cancellation.Reset();
  }
}

}  // namespace
}  // namespace penstock
