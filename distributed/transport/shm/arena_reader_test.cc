// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/shm/arena_reader.h"

#include <cstring>

#include "core/op/attr.h"
#include "distributed/transport/records/tensor_record_writer.h"
#include "distributed/transport/testing/test_key.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ArenaReaderTest : public testing::Test, public Landing {
 protected:
  static Tensor Numbers() {
    Tensor t(DType::kInt32, Shape({1 << 20}));
    for (int32_t i = 0; i < 1 << 20; ++i) t.mutable_flat<int32_t>()[i] = i;
    return t;
  }
  // Writes the record of a tensor whose bytes are at `offset` of the arena.
  void Write(const Tensor& value, int64_t step_id, uint64_t offset) {
    const HashedKey key = TestKey("edge");
    const OutgoingTensor outgoing(step_id, key, value, /*is_dead=*/false);
    ASSERT_TRUE(*writer.Write(outgoing, Place::kElsewhere, {.address = offset}));
  }
  StatusOr<bool> Read() {
    return reader.Read([](int64_t step_id) { return step_id < 100; }, &received);
  }

  const std::shared_ptr<SharedSegment> segment = *SharedSegment::Create();
  std::vector<uint64_t> freed;
  TensorRecordWriter writer{segment->tensors()};
  ArenaReader reader{segment->tensors(),
                     std::make_shared<ReceivedMemory>(
                         segment, [this](uint64_t offset) { freed.push_back(offset); }),
                     *this};
  TensorRecordReader::Received received;
};

TEST_F(ArenaReaderTest, ATensorStaysInTheArenaWhileItIsUsed) {
  const Tensor value = Numbers();
  std::memcpy(segment->arena() + 4096, value.raw_data(), value.bytes());
  Write(value, 1, 4096);
  ASSERT_TRUE(*Read());
  ASSERT_EQ(received.tensors.size(), 1);
  EXPECT_EQ(AttrValue(received.tensors[0].value), AttrValue(value));
  EXPECT_EQ(received.tensors[0].value.raw_data(), segment->arena() + 4096);
  EXPECT_TRUE(freed.empty());
  received.tensors.clear();
  EXPECT_THAT(freed, ElementsAre(4096));
}

TEST_F(ArenaReaderTest, UnwantedTensorsAreSkipped) {
  Write(Numbers(), 100, 64);
  ASSERT_TRUE(*Read());
  EXPECT_TRUE(received.tensors.empty());
  EXPECT_THAT(freed, ElementsAre(64));
}

TEST_F(ArenaReaderTest, ABrokenHeaderFailsItsStepOnly) {
  Write(Numbers(), 1, 0);
  const int32_t unknown = 12345;  // a dtype that no tensor has
  std::memcpy(segment->tensors().data + sizeof(RecordHead) + offsetof(TensorFields, dtype),
              &unknown, sizeof(unknown));
  ASSERT_TRUE(*Read());
  ASSERT_EQ(received.refused.size(), 1);
  EXPECT_EQ(received.refused[0].step_id, 1);
  EXPECT_THAT(std::string(received.refused[0].why.message()), HasSubstr("receiving 'edge'"));
  EXPECT_THAT(freed, ElementsAre(0));
}

TEST_F(ArenaReaderTest, BlocksOutsideOfTheArenaEndTheConnection) {
  const uint64_t arena = SharedSegment::kArenaBytes;
  for (const uint64_t offset :
       {arena, arena - 4096, arena + 64, ~uint64_t{63}, uint64_t{1}, uint64_t{1} << 63}) {
    Write(Numbers(), 1, offset);
    EXPECT_EQ(Read().status().code(), StatusCode::kDataLoss) << offset;
  }
}

}  // namespace
}  // namespace penstock
