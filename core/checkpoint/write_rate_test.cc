// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/write_rate.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

// A clock that advances only when a thread sleeps.
class Clock : public ForwardingEnv {
 public:
  Clock() : ForwardingEnv(Env::Real()) {}
  int64_t NowNanos() override { return now_; }
  void SleepForNanos(int64_t nanos) override { now_ += nanos; }

 private:
  int64_t now_ = 1;
};

TEST(SteadyEnv, WritesSoManyBytesASecond) {
  Clock clock;
  SteadyEnv env(clock, 1'000'000, [] { return OkStatus(); });
  const std::string path = StrCat(testing::TempDir(), "/steady_", clock.RandomU64());
  auto file = env.NewWritableFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  for (int i = 0; i < 11; ++i) ASSERT_TRUE((*file)->Append(std::string(200'000, 'x')).ok());
  ASSERT_TRUE((*file)->Close().ok());
  EXPECT_NEAR(clock.NowNanos() * 1e-9, 2.15, 0.001) << "the last piece is not waited for";
  EXPECT_EQ(clock.ReadFile(path)->size(), 2'200'000u);
}

TEST(SteadyEnv, ALargeWriteLeavesInPieces) {
  Clock clock;
  int asked = 0;
  SteadyEnv env(clock, 1'000'000, [&] {
    ++asked;
    return OkStatus();
  });
  const std::string path = StrCat(testing::TempDir(), "/steady_", clock.RandomU64());
  std::string data;
  for (int i = 0; i < 1'000'001; ++i) data.push_back(static_cast<char>('a' + i % 23));
  auto file = env.NewWritableFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append(data).ok());
  ASSERT_TRUE((*file)->Close().ok());
  EXPECT_NEAR(clock.NowNanos() * 1e-9, 1.0, 0.001);
  EXPECT_GE(asked, 20) << "before each piece but the first";
  EXPECT_EQ(*clock.ReadFile(path), data);
}

TEST(SteadyEnv, AWriteThatWaitsCanBeEnded) {
  Clock clock;
  Status end;
  SteadyEnv env(clock, 1, [&] { return end; });
  auto file = env.NewWritableFile(StrCat(testing::TempDir(), "/steady_", clock.RandomU64()));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("many bytes").ok());
  end = Cancelled("the step has ended");
  EXPECT_EQ((*file)->Append("more"), end);
  EXPECT_LT(clock.NowNanos(), 1'000'000'000);
  EXPECT_TRUE((*file)->Close().ok());
}

}  // namespace
}  // namespace penstock
