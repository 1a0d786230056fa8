// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include "core/op/attr.h"
#include "distributed/transport/verbs/message_reader.h"
#include "distributed/transport/verbs/message_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;

class CpuLanding final : public Landing {};

class MessageTest : public testing::Test {
 protected:
  static HashedKey Key(const std::string& tensor, uint64_t iteration = 0) {
    return HashedKey({.src_device = "/job:ps/replica:0/task:0/device:CPU:0",
                      .src_incarnation = 7,
                      .dst_device = "/job:worker/replica:0/task:0/device:CPU:0",
                      .tensor = tensor,
                      .frame = iteration == 0 ? uint64_t{0} : 5,
                      .iteration = iteration});
  }
  // Puts bytes into the ring as a producer would that does not keep to the layout.
  void Put(uint32_t kind, uint32_t bytes, const void* body, size_t count) {
    RingWriter ring(memory);
    const VerbsMessageHead head = {kind, bytes};
    ring.Append(&head, sizeof(head));
    ring.Append(body, count);
    ring.Publish();
  }
  Status ReadError() { return reader.Read(all, &messages).status(); }

  std::vector<char> data = std::vector<char>(kVerbsTensorRingBytes);
  RingPositions positions;
  const RingMemory memory{&positions, data.data(), data.size()};
  CpuLanding landing;
  VerbsMessageWriter writer{memory};
  VerbsMessageReader reader{memory, landing};
  VerbsMessageReader::Messages messages;
  static bool All(int64_t) { return true; }
  absl::FunctionRef<bool(int64_t)> all{All};
};

TEST_F(MessageTest, SmallTensorsAndDeadValues) {
  const Tensor value = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  ASSERT_TRUE(*writer.WriteTensor(OutgoingTensor(7, Key("a"), value, false)));
  ASSERT_TRUE(*writer.WriteTensor(OutgoingTensor(7, Key("a", 3), Tensor(), true)));
  ASSERT_TRUE(*reader.Read(all, &messages));
  ASSERT_TRUE(*reader.Read(all, &messages));
  EXPECT_FALSE(*reader.Read(all, &messages));
  ASSERT_EQ(messages.tensors.size(), 2);
  EXPECT_EQ(messages.tensors[0].step_id, 7);
  EXPECT_EQ(messages.tensors[0].key, Key("a"));
  EXPECT_EQ(AttrValue(messages.tensors[0].value), AttrValue(value));
  EXPECT_EQ(messages.tensors[1].key, Key("a", 3));
  EXPECT_TRUE(messages.tensors[1].is_dead);
}

TEST_F(MessageTest, AKeyIsSpelledOutOnceAndShapesMayChange) {
  ASSERT_TRUE(*writer.WriteTensor(OutgoingTensor(1, Key("edge"), Tensor::Scalar(1.0f), false)));
  const uint64_t first = positions.published;
  ASSERT_TRUE(*writer.WriteTensor(
      OutgoingTensor(2, Key("edge"), Tensor::Of<double>({1, 2}, {1, 2}), false)));
  EXPECT_LT(positions.published - first, first);
  while (*reader.Read(all, &messages)) {
  }
  EXPECT_EQ(messages.tensors[1].value.shape(), Shape({1, 2}));
  EXPECT_EQ(messages.tensors[1].key, Key("edge"));
}

TEST_F(MessageTest, AnOfferSaysWhereTheBytesAre) {
  const Tensor value(DType::kFloat, Shape({100'000}));
  ASSERT_TRUE(*writer.WriteOffer(OutgoingTensor(9, Key("large"), value, false),
                                 {.offer = 5, .address = 0x7f0000001000, .address_key = 0xabcd}));
  ASSERT_TRUE(*reader.Read([](int64_t) { return false; }, &messages));
  ASSERT_EQ(messages.offers.size(), 1);  // though nobody wants it: the producer waits
  EXPECT_EQ(messages.offers[0].fields.offer, 5);
  EXPECT_EQ(messages.offers[0].fields.address, 0x7f0000001000);
  EXPECT_EQ(messages.offers[0].fields.address_key, 0xabcd);
  EXPECT_EQ(messages.offers[0].header().bytes, 400'000);
}

TEST_F(MessageTest, Refusals) {
  ASSERT_TRUE(*writer.WriteRefusal(3, OutOfRange("the end of the data")));
  ASSERT_TRUE(*reader.Read(all, &messages));
  ASSERT_EQ(messages.refused.size(), 1);
  EXPECT_EQ(messages.refused[0].step_id, 3);
  EXPECT_EQ(messages.refused[0].why, OutOfRange("the end of the data"));
}

TEST_F(MessageTest, AFullRingTakesNothingMore) {
  const OutgoingTensor tensor(1, Key("t"), Tensor(DType::kUint8, Shape({60'000})), false);
  int written = 0;
  while (*writer.WriteTensor(tensor)) ++written;
  EXPECT_EQ(written, static_cast<int>(kVerbsTensorRingBytes / 60'200));
  ASSERT_TRUE(*reader.Read(all, &messages));
  EXPECT_TRUE(*writer.WriteTensor(tensor));
}

TEST_F(MessageTest, AKeyThatIsTooLongIsRefused) {
  const OutgoingTensor tensor(1, Key(std::string(70'000, 'x')), Tensor::Scalar(1.0f), false);
  EXPECT_EQ(VerbsMessageWriter::CheckHeader(tensor).code(), StatusCode::kResourceExhausted);
}

// Messages of a producer that does not keep to the layout.

TEST_F(MessageTest, UnknownKind) {
  Put(77, 0, nullptr, 0);
  EXPECT_THAT(std::string(ReadError().message()), HasSubstr("kind 77"));
}

TEST_F(MessageTest, LongerThanWhatWasWritten) {
  Put(VerbsMessageHead::kTensor, 1000, "abc", 3);
  EXPECT_EQ(ReadError().code(), StatusCode::kDataLoss);
}

TEST_F(MessageTest, LengthsThatDoNotFit) {
  VerbsTensorFields fields = {};
  fields.rank = 3;
  Put(VerbsMessageHead::kTensor, sizeof(fields), &fields, sizeof(fields));
  EXPECT_THAT(std::string(ReadError().message()), HasSubstr("do not fit together"));
}

TEST_F(MessageTest, ASmallTensorIsNotOffered) {
  const Tensor value(DType::kFloat, Shape({4}));
  ASSERT_TRUE(*writer.WriteOffer(OutgoingTensor(9, Key("small"), value, false), {}));
  EXPECT_THAT(std::string(ReadError().message()), HasSubstr("is not in its message"));
}

TEST_F(MessageTest, AHeaderThatContradictsItselfFailsTheStepOnly) {
  VerbsTensorFields fields = {};
  const std::string text = KeyNumbers::TextOf(Key("edge"));
  fields.step_id = 4;
  fields.key = 1;
  fields.key_bytes = static_cast<uint32_t>(text.size());
  fields.dtype = 1;
  fields.bytes = 8;  // of a scalar of float32
  std::string body(reinterpret_cast<const char*>(&fields), sizeof(fields));
  body += text + std::string(8, '\0');
  Put(VerbsMessageHead::kTensor, static_cast<uint32_t>(body.size()), body.data(), body.size());
  ASSERT_TRUE(*reader.Read(all, &messages));
  ASSERT_EQ(messages.refused.size(), 1);
  EXPECT_EQ(messages.refused[0].why.code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace penstock
