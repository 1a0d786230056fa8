// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/registered_memory.h"

#include <set>

#include "core/tensor/memory_account.h"
#include "core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// A device that records the memory registered with it.
struct FakeDevice {
  RegisteredMemory::Register Registrar() {
    return [this](void* memory, size_t bytes) -> StatusOr<RegisteredMemory::Registration> {
      if (full) return ResourceExhausted("ulimit -l");
      const uint32_t key = ++registered;
      live.insert(key);
      return RegisteredMemory::Registration{
          {key, key + 1000},
          std::shared_ptr<void>(memory, [this, key](void*) { live.erase(key); })};
    };
  }
  bool full = false;
  uint32_t registered = 0;
  std::set<uint32_t> live;
};

TEST(RegisteredMemoryTest, RegionsAreRegisteredOnce) {
  FakeDevice device;
  const auto memory = std::make_shared<RegisteredMemory>(device.Registrar());
  ASSERT_TRUE(memory->RegisterFirstRegion().ok());
  for (int i = 0; i < 100; ++i) {
    void* const block = memory->Allocate(1 << 20);
    ASSERT_NE(block, nullptr);
    const auto keys = memory->Find(block, 1 << 20);
    ASSERT_TRUE(keys.has_value());
    EXPECT_EQ(keys->local, 1);
    EXPECT_EQ(keys->remote, 1001);
    memory->Deallocate(block, 1 << 20);
  }
  EXPECT_EQ(device.registered, 1);
}

TEST(RegisteredMemoryTest, ALargeBlockHasARegionOfItsOwn) {
  FakeDevice device;
  const auto memory = std::make_shared<RegisteredMemory>(device.Registrar());
  const size_t bytes = RegisteredMemory::kRegionBytes * 2;
  void* const block = memory->Allocate(bytes);
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(memory->Find(block, bytes).has_value());
  memory->Deallocate(block, bytes);
}

TEST(RegisteredMemoryTest, OtherMemoryHasNoKeys) {
  FakeDevice device;
  const auto memory = std::make_shared<RegisteredMemory>(device.Registrar());
  ASSERT_TRUE(memory->RegisterFirstRegion().ok());
  char other[16];
  EXPECT_FALSE(memory->Find(other, sizeof(other)).has_value());
  void* const block = memory->Allocate(100);
  EXPECT_FALSE(memory->Find(block, RegisteredMemory::kRegionBytes + 1).has_value());
  memory->Deallocate(block, 100);
}

TEST(RegisteredMemoryTest, ATensorOutlivesItsOwner) {
  FakeDevice device;
  auto memory = std::make_shared<RegisteredMemory>(device.Registrar());
  {
    Tensor value = *Tensor::Make(*memory, DType::kFloat, Shape({1 << 20}));
    memory.reset();
    value.mutable_flat<float>()[0] = 1;
    EXPECT_EQ(device.live.size(), 1);
  }
  EXPECT_TRUE(device.live.empty());
}

TEST(RegisteredMemoryTest, ALimitIsNamed) {
  FakeDevice device;
  device.full = true;
  const auto memory = std::make_shared<RegisteredMemory>(device.Registrar());
  EXPECT_EQ(memory->RegisterFirstRegion(), ResourceExhausted("ulimit -l"));
  EXPECT_THAT(
      std::string(Tensor::Make(*memory, DType::kFloat, Shape({1 << 20})).status().message()),
      HasSubstr("ulimit -l"));
}

TEST(RegisteredMemoryTest, CountsForTheTask) {
  FakeDevice device;
  const auto memory = std::make_shared<RegisteredMemory>(device.Registrar());
  const int64_t before = MemoryAccount::Task().in_use();
  void* const block = memory->Allocate(5 << 20);
  EXPECT_EQ(MemoryAccount::Task().in_use() - before, 5 << 20);
  EXPECT_EQ(memory->stats().bytes_in_use, 5 << 20);
  memory->Deallocate(block, 5 << 20);
  EXPECT_EQ(MemoryAccount::Task().in_use(), before);
}

}  // namespace
}  // namespace penstock
