// SPDX-License-Identifier: Apache-2.0
//
// Tests staging areas and mutexes.
#include <gtest/gtest.h>

#include <future>

#include "absl/strings/match.h"
#include "core/op/testing/op_runner.h"

namespace penstock {
namespace {

class StagingTest : public testing::Test {
 protected:
  OpRunner Op(const char* op, std::vector<DType> dtypes = {DType::kFloat, DType::kString}) {
    OpRunner run(op, resources_);
    run.Attr("capacity", capacity_)
        .Attr("memory_limit", memory_limit_)
        .Attr("shared_name", "area")
        .Attr("dtypes", std::move(dtypes));
    return run;
  }
  Status Stage(float x, const std::string& name) {
    return Op("Stage").InList({Tensor::Scalar(x), Tensor::Scalar(name)}).Run().status();
  }
  static std::string Text(const StatusOr<std::vector<Tensor>>& tensors) {
    if (!tensors.ok()) return std::string(tensors.status().message());
    return StrCat((*tensors)[0].scalar<float>(), " ", (*tensors)[1].scalar<std::string>());
  }
  std::string Unstage() { return Text(Op("Unstage").Run()); }
  std::string Peek(int32_t index) { return Text(Op("StagePeek").In(Tensor::Scalar(index)).Run()); }
  int Size() { return Op("StageSize").Run1()->scalar<int32_t>(); }

  const std::shared_ptr<ResourceStore> resources_ = std::make_shared<ResourceStore>();
  int64_t capacity_ = 0, memory_limit_ = 0;
};

TEST_F(StagingTest, FirstInFirstOut) {
  ASSERT_TRUE(Stage(1, "a").ok());
  ASSERT_TRUE(Stage(2, "b").ok());
  EXPECT_EQ(Size(), 2);
  EXPECT_EQ(Peek(1), "2 b");
  EXPECT_EQ(Unstage(), "1 a");
  EXPECT_EQ(Peek(0), "2 b");
  EXPECT_TRUE(Op("StageClear").Run().ok());
  EXPECT_EQ(Size(), 0);
}

TEST_F(StagingTest, FullAreasMakeWait) {
  capacity_ = 1;
  ASSERT_TRUE(Stage(1, "a").ok());
  auto second = std::async([this] { return Stage(2, "b"); });
  EXPECT_EQ(Unstage(), "1 a");
  EXPECT_TRUE(second.get().ok());
  auto third = std::async([this] { return Stage(3, "c"); });
  EXPECT_TRUE(Op("StageClear").Run().ok());
  EXPECT_TRUE(third.get().ok());
  EXPECT_EQ(Unstage(), "3 c");
}

TEST_F(StagingTest, EmptyAreasMakeWait) {
  auto taken = std::async([this] { return Unstage(); });
  auto seen = std::async([this] { return Peek(2); });
  ASSERT_TRUE(Stage(1, "a").ok());
  EXPECT_EQ(taken.get(), "1 a");
  for (const char* name : {"b", "c", "d"}) ASSERT_TRUE(Stage(2, name).ok());
  EXPECT_EQ(seen.get(), "2 d");
}

TEST_F(StagingTest, MemoryIsLimited) {
  memory_limit_ = 100;  // a string is 32 bytes, a float 4
  ASSERT_TRUE(Stage(1, "a").ok());
  ASSERT_TRUE(Stage(2, "b").ok());
  auto third = std::async([this] { return Stage(3, "c"); });
  EXPECT_EQ(Unstage(), "1 a");
  EXPECT_TRUE(third.get().ok());
  const Tensor large(DType::kFloat, {100});
  const Status status = Op("Stage", {DType::kFloat}).InList({large}).Run().status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(status.message(), "combined size of '400' bytes")) << status;
}

TEST_F(StagingTest, MistakesAreNamed) {
  ASSERT_TRUE(Stage(1, "a").ok());
  const auto other = Op("Unstage", {DType::kFloat}).Run();
  EXPECT_TRUE(absl::StrContains(other.status().message(), "types are not dtypes"))
      << other.status();
  EXPECT_EQ(Size(), 1);  // the element is still there
  EXPECT_EQ(Peek(-1), "index must be >= 0, is -1");
  capacity_ = 3;
  EXPECT_TRUE(absl::StrContains(Stage(1, "a").message(), "exists already, with capacity 0"));
}

TEST(MutexTest, OneLockAtATime) {
  OpRunner make("MutexV2");
  const Tensor mutex = *make.Run1();
  const auto lock = [&] { return *OpRunner("MutexLock", make.resources()).In(mutex).Run1(); };
  int64_t count = 0;  // guarded by the mutex
  const auto add = [&] {
    for (int i = 0; i < 500; ++i) {
      const Tensor held = lock();
      ++count;
    }
  };
  auto other = std::async(std::launch::async, add);
  add();
  other.get();
  EXPECT_EQ(count, 1000);
}

TEST(MutexTest, ConsumingALockUnlocks) {
  OpRunner make("MutexV2");
  const Tensor mutex = *make.Run1();
  Tensor held = *OpRunner("MutexLock", make.resources()).In(mutex).Run1();
  EXPECT_TRUE(OpRunner("ConsumeMutexLock").In(std::move(held)).Run().ok());
  EXPECT_TRUE(OpRunner("MutexLock", make.resources()).In(mutex).Run1().ok());
  const Status status = OpRunner("ConsumeMutexLock").In(Tensor(DType::kVariant, {})).Run().status();
  EXPECT_TRUE(absl::StrContains(status.message(), "MutexLock")) << status;
  EXPECT_FALSE(OpRunner("ConsumeMutexLock").In(Tensor(DType::kVariant, {2})).Run().ok());
}

}  // namespace
}  // namespace penstock
