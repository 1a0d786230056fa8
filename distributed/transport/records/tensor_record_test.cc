// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/op/attr.h"
#include "distributed/transport/records/tensor_record_reader.h"
#include "distributed/transport/records/tensor_record_writer.h"
#include "distributed/transport/testing/test_key.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr size_t kRingBytes = size_t{1} << 20;

Tensor Numbers(int64_t count) {
  Tensor t(DType::kInt32, Shape({count}));
  for (int64_t i = 0; i < count; ++i) t.mutable_flat<int32_t>()[i] = static_cast<int32_t>(i);
  return t;
}

// A ring in this process's memory.
struct Ring {
  RingPositions positions;
  std::vector<char> data = std::vector<char>(kRingBytes);
  RingMemory memory() { return {&positions, data.data(), data.size()}; }
};

// A reader that keeps the records of tensors with Place::kElsewhere.
class Reader final : public TensorRecordReader {
 public:
  using TensorRecordReader::TensorRecordReader;
  std::vector<TensorRecord> elsewhere;
  int unwanted = 0;

 private:
  Status ReadElsewhere(TensorRecord record, bool wanted, Received*) override {
    elsewhere.push_back(std::move(record));
    if (!wanted) ++unwanted;
    return OkStatus();
  }
};

class RecordsTest : public testing::Test, public Landing {
 protected:
  OutgoingTensor Outgoing(Tensor value, int64_t step_id = 1, const std::string& name = "edge") {
    return {step_id, TestKey(name), std::move(value), /*is_dead=*/false};
  }
  bool Write(Tensor value, int64_t step_id = 1, const std::string& name = "edge") {
    return *writer.Write(Outgoing(std::move(value), step_id, name), Place::kInline);
  }
  // Reads all records; steps from 100 on are not wanted.
  Status Read() {
    while (true) {
      ASSIGN_OR_RETURN(const bool read, reader.Read(Wanted, &received));
      if (!read) return OkStatus();
    }
  }
  static bool Wanted(int64_t step_id) { return step_id < 100; }

  Ring ring;
  TensorRecordWriter writer{ring.memory()};
  Reader reader{ring.memory(), *this};
  TensorRecordReader::Received received;
  std::vector<ReceivedTensor>& tensors = received.tensors;
  std::vector<RefusedStep>& refused = received.refused;
};

TEST_F(RecordsTest, TensorsInside) {
  EXPECT_TRUE(Write(Tensor::Scalar(1.5f)));
  EXPECT_TRUE(Write(Numbers(1 << 14)));
  EXPECT_TRUE(Write(Tensor::Vector<std::string>({"a", ""})));
  EXPECT_TRUE(*writer.Write(OutgoingTensor(2, TestKey("loop", 3), Tensor(), true), Place::kInline));
  ASSERT_TRUE(Read().ok());
  ASSERT_EQ(tensors.size(), 4);
  EXPECT_EQ(AttrValue(tensors[0].value), AttrValue(Tensor::Scalar(1.5f)));
  EXPECT_EQ(AttrValue(tensors[1].value), AttrValue(Numbers(1 << 14)));
  EXPECT_EQ(AttrValue(tensors[2].value), AttrValue(Tensor::Vector<std::string>({"a", ""})));
  EXPECT_EQ(tensors[2].key, TestKey("edge"));
  EXPECT_EQ(tensors[3].key, TestKey("loop", 3));
  EXPECT_EQ(tensors[3].step_id, 2);
  EXPECT_TRUE(tensors[3].is_dead);
  EXPECT_FALSE(tensors[3].value.valid());
}

TEST_F(RecordsTest, AKeyIsSpelledOutOnceAndShapesMayChange) {
  EXPECT_TRUE(Write(Tensor::Scalar(1.0f)));
  const uint64_t first = ring.positions.published;
  EXPECT_TRUE(Write(Tensor::Of<double>({1, 2}, {1, 2})));
  EXPECT_LT(ring.positions.published - first, first);
  ASSERT_TRUE(Read().ok());
  EXPECT_EQ(tensors[1].value.shape(), Shape({1, 2}));
  EXPECT_EQ(tensors[1].key, TestKey("edge"));
}

TEST_F(RecordsTest, ARecordSaysWhereTheBytesAre) {
  const ElsewhereBytes where = {.address = 0x7f0000001000, .offer = 5, .address_key = 0xabcd};
  // The reader answers for both steps, wanted or not, because the producer waits for an answer.
  for (const int64_t step_id : {1, 100}) {
    EXPECT_TRUE(*writer.Write(Outgoing(Numbers(1 << 20), step_id), Place::kElsewhere, where));
  }
  ASSERT_TRUE(Read().ok());
  ASSERT_EQ(reader.elsewhere.size(), 2);
  EXPECT_EQ(reader.unwanted, 1);
  const TensorRecord& record = reader.elsewhere[0];
  EXPECT_EQ(record.fields.address, where.address);
  EXPECT_EQ(record.fields.offer, where.offer);
  EXPECT_EQ(record.fields.address_key, where.address_key);
  EXPECT_EQ(record.header().bytes, 4 << 20);
  EXPECT_EQ(record.key, TestKey("edge"));
}

TEST_F(RecordsTest, UnwantedTensorsAreSkipped) {
  EXPECT_TRUE(Write(Tensor::Scalar(1.0f), 100));
  EXPECT_TRUE(*writer.WriteRefusal(100, Internal("late")));
  EXPECT_TRUE(*writer.WriteRefusal(1, OutOfRange("the end")));
  EXPECT_TRUE(Write(Tensor::Scalar(2.0f)));
  ASSERT_TRUE(Read().ok());
  EXPECT_EQ(tensors.size(), 1);
  ASSERT_EQ(refused.size(), 1);
  EXPECT_EQ(refused[0].step_id, 1);
  EXPECT_EQ(refused[0].why, OutOfRange("the end"));
}

TEST_F(RecordsTest, AFullRingTakesNothingMore) {
  int written = 0;
  while (Write(Tensor(DType::kUint8, Shape({60'000})))) ++written;
  EXPECT_EQ(written, static_cast<int>(kRingBytes / 60'200));
  ASSERT_TRUE(*reader.Read(Wanted, &received));
  EXPECT_TRUE(Write(Tensor(DType::kUint8, Shape({60'000}))));
}

TEST_F(RecordsTest, PiecesBetweenSmallTensors) {
  const Tensor value = Numbers(1 << 20);  // four times the ring
  const OutgoingTensor outgoing = Outgoing(value);
  EXPECT_TRUE(*writer.Write(outgoing, Place::kPieces));
  size_t sent = 0;
  int rounds = 0;
  for (; sent < value.bytes(); ++rounds) {
    EXPECT_TRUE(Write(Tensor::Scalar(rounds), 1, "small"));
    ASSERT_TRUE(writer.WritePieces(outgoing, &sent).ok());
    ASSERT_TRUE(Read().ok());
  }
  EXPECT_GE(rounds, 4);
  bool found = false;
  for (const auto& r : tensors) {
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
  EXPECT_TRUE(*writer.Write(first, Place::kPieces));
  ASSERT_TRUE(writer.WritePieces(first, &sent).ok());
  ASSERT_TRUE(Read().ok());
  EXPECT_TRUE(*writer.Write(second, Place::kPieces));
  sent = 0;
  ASSERT_TRUE(writer.WritePieces(second, &sent).ok());
  ASSERT_TRUE(Read().ok());
  ASSERT_EQ(tensors.size(), 1);
  EXPECT_EQ(AttrValue(tensors[0].value), AttrValue(Numbers(1 << 17)));
}

TEST_F(RecordsTest, AKeyThatIsTooLongIsAnErrorOfItsTensor) {
  EXPECT_TRUE(TensorRecordWriter::CheckHeader(Outgoing(Tensor::Scalar(1.0f))).ok());
  const OutgoingTensor tensor = Outgoing(Tensor::Scalar(1.0f), 1, std::string(1 << 20, 'x'));
  EXPECT_EQ(TensorRecordWriter::CheckHeader(tensor).code(), StatusCode::kResourceExhausted);
}

TEST_F(RecordsTest, ABrokenHeaderFailsItsStepOnly) {
  EXPECT_TRUE(Write(Tensor::Scalar(1.0f)));
  const int32_t unknown = 12345;  // a dtype that no tensor has
  std::memcpy(ring.data.data() + sizeof(RecordHead) + offsetof(TensorFields, dtype), &unknown,
              sizeof(unknown));
  EXPECT_TRUE(Write(Tensor::Scalar(1.0f), 2, "other"));
  ASSERT_TRUE(Read().ok());
  ASSERT_EQ(refused.size(), 1);
  EXPECT_EQ(refused[0].step_id, 1);
  EXPECT_THAT(std::string(refused[0].why.message()), HasSubstr("receiving 'edge'"));
  EXPECT_EQ(tensors.size(), 1);
}

// 32-bit numbers that a broken producer may write into the ring instead of a record.
TEST_F(RecordsTest, MalformedRecordsEndTheConnection) {
  const std::vector<uint32_t> cases[] = {
      {1},        // the record ends within its header
      {9, 0},     // unknown kind
      {1, 100},   // longer than the bytes in the ring
      {1, 4, 0},  // shorter than its fields
      {2, 4, 0},  // a piece without a tensor
      {2, 0},     // an empty piece
      {3, 4, 0},  // half a refusal
  };
  for (const auto& words : cases) {
    Ring hostile;
    RingWriter by_hand(hostile.memory());
    by_hand.Append(words.data(), words.size() * 4);
    by_hand.Publish();
    Reader victim(hostile.memory(), *this);
    EXPECT_EQ(victim.Read(Wanted, &received).status().code(), StatusCode::kDataLoss)
        << testing::PrintToString(words);
  }
  EXPECT_TRUE(tensors.empty());
}

TEST_F(RecordsTest, FieldsThatDoNotFitTogetherEndTheConnection) {
  struct Case {
    size_t at;
    uint32_t value;
    const char* what;
  };
  const Case cases[] = {
      {offsetof(TensorFields, rank), 0xffffffff, "rank"},
      {offsetof(TensorFields, key_bytes), 1 << 30, "length of the key"},
      {offsetof(TensorFields, total_bytes), 1 << 30, "bytes inside"},
      {offsetof(TensorFields, place), 9, "place"},
      {offsetof(TensorFields, place), 1, "small, elsewhere"},
      {offsetof(TensorFields, place), 2, "small, in pieces"},
      {offsetof(TensorFields, key), 77, "number of the key"},
  };
  for (const Case& c : cases) {
    Ring other;
    TensorRecordWriter good(other.memory());
    ASSERT_TRUE(*good.Write(Outgoing(Tensor::Scalar(1.0f)), Place::kInline));
    std::memcpy(other.data.data() + sizeof(RecordHead) + c.at, &c.value, 4);
    Reader victim(other.memory(), *this);
    EXPECT_EQ(victim.Read(Wanted, &received).status().code(), StatusCode::kDataLoss) << c.what;
    EXPECT_TRUE(victim.elsewhere.empty());
  }
  EXPECT_TRUE(tensors.empty());
  EXPECT_TRUE(refused.empty());
}

}  // namespace
}  // namespace penstock
