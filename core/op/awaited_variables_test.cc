// SPDX-License-Identifier: Apache-2.0
#include "core/op/awaited_variables.h"

#include "core/base/forwarding_env.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

class Clock final : public ForwardingEnv {
 public:
  Clock() : ForwardingEnv(Env::Real()) {}
  int64_t NowNanos() override { return now_ns; }
  int64_t now_ns = kSecond;
};

TEST(AwaitedVariablesTest, CountsQuestionsUntilAPause) {
  Clock clock;
  NoteAwaitedVariable("cpu", "localhost", "w", clock);
  NoteAwaitedVariable("cpu", "localhost", "b", clock);
  clock.now_ns = 31 * kSecond;
  NoteAwaitedVariable("cpu", "localhost", "w", clock);
  std::vector<AwaitedVariable> list = AwaitedVariables();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "b");
  EXPECT_EQ(list[1].name, "w");
  EXPECT_EQ(list[1].first_ns, kSecond);
  EXPECT_EQ(list[1].last_ns, 31 * kSecond);
  EXPECT_EQ(list[1].times, 2);
  clock.now_ns = 200 * kSecond;
  NoteAwaitedVariable("cpu", "localhost", "w", clock);
  list = AwaitedVariables();
  EXPECT_EQ(list[1].first_ns, 200 * kSecond);
  EXPECT_EQ(list[1].times, 1);
}

TEST(AwaitedVariablesTest, ForgetsTheOldestOfTooMany) {
  Clock clock;
  for (int i = 0; i < 2'000; ++i) {
    clock.now_ns += kSecond;
    NoteAwaitedVariable("many", "localhost", std::to_string(i), clock);
  }
  const std::vector<AwaitedVariable> list = AwaitedVariables();
  ASSERT_EQ(list.size(), 1'000u);
  for (const AwaitedVariable& variable : list) EXPECT_GE(std::stoi(variable.name), 1'000);
}

}  // namespace
}  // namespace penstock
