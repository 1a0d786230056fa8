// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "core/op/attr.h"
#include "distributed/transport/shm/tensor_record_reader.h"
#include "distributed/transport/shm/tensor_record_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

HashedKey Key(const std::string& tensor, uint64_t iteration = 0) {
  return HashedKey({.src_device = "/job:ps/replica:0/task:0/device:CPU:0",
                    .src_incarnation = 7,
                    .dst_device = "/job:worker/replica:0/task:0/device:CPU:0",
                    .tensor = tensor,
                    .frame = iteration == 0 ? uint64_t{0} : 5,
                    .iteration = iteration});
}

Tensor Numbers(int64_t count) {
  Tensor t(DType::kInt32, Shape({count}));
  for (int64_t i = 0; i < count; ++i) t.mutable_flat<int32_t>()[i] = static_cast<int32_t>(i);
  return t;
}

class RecordsTest : public testing::Test, public Landing {
 protected:
  OutgoingTensor Outgoing(Tensor value, int64_t step_id = 1, const std::string& name = "edge") {
    return {step_id, Key(name), std::move(value), /*is_dead=*/false};
  }
  bool Write(Tensor value, int64_t step_id = 1, const std::string& name = "edge") {
    return *writer.Write(Outgoing(std::move(value), step_id, name), Place::kInline, 0);
  }
  // Reads all that there is; steps below 100 are wanted.
  Status Read() {
    while (true) {
      ASSIGN_OR_RETURN(const bool read, reader.Read(Wanted, &received, &refused));
      if (!read) return OkStatus();
    }
  }
  static bool Wanted(int64_t step_id) { return step_id < 100; }
  // Appends any bytes, as a producer that is broken does.
  template <class T>
  void Append(const T& value) {
    writer.ring().Append(&value, sizeof(value));
    writer.ring().Publish();
  }

  const std::shared_ptr<SharedSegment> segment = *SharedSegment::Create();
  std::vector<uint64_t> freed;
  TensorRecordWriter writer{segment->tensors()};
  TensorRecordReader reader{segment->tensors(),
                            std::make_shared<ReceivedMemory>(
                                segment, [this](uint64_t offset) { freed.push_back(offset); }),
                            *this};
  std::vector<ReceivedTensor> received;
  std::vector<RefusedStep> refused;
};

TEST_F(RecordsTest, TensorsInside) {
  EXPECT_TRUE(Write(Tensor::Scalar(1.5f)));
  EXPECT_TRUE(Write(Numbers(1 << 14)));
  EXPECT_TRUE(Write(Tensor::Vector<std::string>({"a", ""})));
  EXPECT_TRUE(*writer.Write(OutgoingTensor(2, Key("loop", 3), Tensor(), true), Place::kInline, 0));
  ASSERT_TRUE(Read().ok());
  ASSERT_EQ(received.size(), 4);
  EXPECT_EQ(AttrValue(received[0].value), AttrValue(Tensor::Scalar(1.5f)));
  EXPECT_EQ(AttrValue(received[1].value), AttrValue(Numbers(1 << 14)));
  EXPECT_EQ(AttrValue(received[2].value), AttrValue(Tensor::Vector<std::string>({"a", ""})));
  EXPECT_EQ(received[2].key, Key("edge"));
  EXPECT_EQ(received[3].key, Key("loop", 3));
  EXPECT_EQ(received[3].step_id, 2);
  EXPECT_TRUE(received[3].is_dead);
  EXPECT_FALSE(received[3].value.valid());
}

TEST_F(RecordsTest, ATensorStaysInTheArenaWhileItIsUsed) {
  const Tensor value = Numbers(1 << 20);
  std::memcpy(segment->arena() + 4096, value.raw_data(), value.bytes());
  EXPECT_TRUE(*writer.Write(Outgoing(value), Place::kArena, 4096));
  ASSERT_TRUE(Read().ok());
  ASSERT_EQ(received.size(), 1);
  EXPECT_EQ(AttrValue(received[0].value), AttrValue(value));
  EXPECT_EQ(received[0].value.raw_data(), segment->arena() + 4096);
  EXPECT_TRUE(freed.empty());
  received.clear();
  EXPECT_THAT(freed, ElementsAre(4096));
}

TEST_F(RecordsTest, NobodyWantsIt) {
  EXPECT_TRUE(Write(Tensor::Scalar(1.0f), 100));
  EXPECT_TRUE(*writer.Write(Outgoing(Numbers(1 << 20), 100), Place::kArena, 64));
  EXPECT_TRUE(*writer.WriteRefusal(100, Internal("late")));
  EXPECT_TRUE(*writer.WriteRefusal(1, OutOfRange("the end")));
  EXPECT_TRUE(Write(Tensor::Scalar(2.0f)));
  ASSERT_TRUE(Read().ok());
  EXPECT_EQ(received.size(), 1);
  ASSERT_EQ(refused.size(), 1);
  EXPECT_EQ(refused[0].why, OutOfRange("the end"));
  EXPECT_THAT(freed, ElementsAre(64));
}

TEST_F(RecordsTest, PiecesBetweenSmallTensors) {
  const Tensor value = Numbers(1 << 20);  // four times the ring
  const OutgoingTensor outgoing = Outgoing(value);
  EXPECT_TRUE(*writer.Write(outgoing, Place::kPieces, 0));
  size_t sent = 0;
  int rounds = 0;
  for (; sent < value.bytes(); ++rounds) {
    EXPECT_TRUE(Write(Tensor::Scalar(rounds), 1, "small"));
    ASSERT_TRUE(writer.WritePieces(outgoing, &sent).ok());
    ASSERT_TRUE(Read().ok());
  }
  EXPECT_GE(rounds, 4);
  bool found = false;
  for (const auto& r : received) {
    if (r.value.bytes() == value.bytes()) {
      found = true;
      EXPECT_EQ(AttrValue(r.value), AttrValue(value));
    }
  }
  EXPECT_TRUE(found);
}

TEST_F(RecordsTest, PiecesThatEndEarlyAreDropped) {
  const OutgoingTensor first = Outgoing(Numbers(1 << 20), 1, "first");
  const OutgoingTensor second = Outgoing(Numbers(1 << 17), 1, "second");
  size_t sent = 0;
  EXPECT_TRUE(*writer.Write(first, Place::kPieces, 0));
  ASSERT_TRUE(writer.WritePieces(first, &sent).ok());
  ASSERT_TRUE(Read().ok());
  EXPECT_TRUE(*writer.Write(second, Place::kPieces, 0));
  sent = 0;
  ASSERT_TRUE(writer.WritePieces(second, &sent).ok());
  ASSERT_TRUE(Read().ok());
  ASSERT_EQ(received.size(), 1);
  EXPECT_EQ(AttrValue(received[0].value), AttrValue(Numbers(1 << 17)));
}

TEST_F(RecordsTest, AKeyThatIsTooLongIsAnErrorOfItsTensor) {
  EXPECT_TRUE(TensorRecordWriter::CheckHeader(Outgoing(Tensor::Scalar(1.0f))).ok());
  const OutgoingTensor tensor = Outgoing(Tensor::Scalar(1.0f), 1, std::string(1 << 20, 'x'));
  EXPECT_EQ(TensorRecordWriter::CheckHeader(tensor).code(), StatusCode::kResourceExhausted);
}

TEST_F(RecordsTest, ABrokenHeaderFailsItsStepOnly) {
  Tensor value = Numbers(1 << 20);
  EXPECT_TRUE(*writer.Write(Outgoing(value), Place::kArena, 0));
  // The dtype, which no tensor has: the fields begin behind the record's head.
  constexpr size_t kDTypeAt = 8 + 5 * 8 + 2 * 4;
  const int32_t unknown = 12345;
  std::memcpy(segment->tensors().data + kDTypeAt, &unknown, sizeof(unknown));
  EXPECT_TRUE(Write(Tensor::Scalar(1.0f), 2, "other"));
  ASSERT_TRUE(Read().ok());
  ASSERT_EQ(refused.size(), 1);
  EXPECT_EQ(refused[0].step_id, 1);
  EXPECT_THAT(std::string(refused[0].why.message()), HasSubstr("receiving 'edge'"));
  EXPECT_EQ(received.size(), 1);
  EXPECT_THAT(freed, ElementsAre(0));
}

// Numbers of 32 bits that a producer may write into the ring instead of a record.
TEST_F(RecordsTest, WhatIsNoRecordEndsTheConnection) {
  const std::vector<uint32_t> cases[] = {
      {1},        // ends within its head
      {9, 0},     // of no known kind
      {1, 100},   // longer than what is there
      {1, 4, 0},  // shorter than its fields
      {2, 4, 0},  // a piece of nothing
      {2, 0},     // an empty piece
      {3, 4, 0},  // half a refusal
  };
  for (const auto& words : cases) {
    RingPositions positions;
    char data[1024] = {};
    const RingMemory ring{&positions, data, sizeof(data)};
    RingWriter hostile(ring);
    hostile.Append(words.data(), words.size() * 4);
    hostile.Publish();
    TensorRecordReader victim(ring, std::make_shared<ReceivedMemory>(segment, [](uint64_t) {}),
                              *this);
    EXPECT_EQ(victim.Read(Wanted, &received, &refused).status().code(), StatusCode::kDataLoss)
        << testing::PrintToString(words);
  }
  EXPECT_TRUE(received.empty());
}

TEST_F(RecordsTest, FieldsThatDoNotFitTogetherEndTheConnection) {
  struct Case {
    size_t at;  // behind the record's head
    uint32_t value;
    const char* what;
  };
  const Case cases[] = {
      {52, 0xffffffff, "rank"},       {44, 1 << 30, "length of the key"},
      {24, 1 << 30, "bytes inside"},  {64, 9, "place"},
      {64, 1, "small, in the arena"}, {64, 2, "small, in pieces"},
      {40, 77, "number of the key"},
  };
  for (const Case& c : cases) {
    const auto other = *SharedSegment::Create();
    TensorRecordWriter good(other->tensors());
    ASSERT_TRUE(*good.Write(Outgoing(Tensor::Scalar(1.0f)), Place::kInline, 0));
    std::memcpy(other->tensors().data + 8 + c.at, &c.value, 4);
    TensorRecordReader victim(other->tensors(),
                              std::make_shared<ReceivedMemory>(other, [](uint64_t) {}), *this);
    EXPECT_EQ(victim.Read(Wanted, &received, &refused).status().code(), StatusCode::kDataLoss)
        << c.what;
  }
  EXPECT_TRUE(received.empty());
  EXPECT_TRUE(refused.empty());
}

TEST_F(RecordsTest, BlocksOutsideOfTheArenaEndTheConnection) {
  const uint64_t arena = SharedSegment::kArenaBytes;
  for (const uint64_t offset :
       {arena, arena - 4096, arena + 64, ~uint64_t{63}, uint64_t{1}, uint64_t{1} << 63}) {
    const auto other = *SharedSegment::Create();
    TensorRecordWriter good(other->tensors());
    ASSERT_TRUE(*good.Write(Outgoing(Numbers(1 << 20)), Place::kArena, offset));
    TensorRecordReader victim(other->tensors(),
                              std::make_shared<ReceivedMemory>(other, [](uint64_t) {}), *this);
    EXPECT_EQ(victim.Read(Wanted, &received, &refused).status().code(), StatusCode::kDataLoss)
        << offset;
  }
}

}  // namespace
}  // namespace penstock
