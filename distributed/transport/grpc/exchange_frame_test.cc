// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/grpc/exchange_frame.h"

#include <google/protobuf/stubs/logging.h>

#include <random>

#include "core/op/attr.h"
#include "core/tensor/testing/test_variant.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

HashedKey Key(const std::string& tensor, uint64_t iteration = 0) {
  return HashedKey({.src_device = "/job:ps/replica:0/task:0/device:CPU:0",
                    .src_incarnation = 0x1234567890abcdef,
                    .dst_device = "/job:worker/replica:0/task:1/device:CPU:0",
                    .tensor = tensor,
                    .frame = iteration == 0 ? uint64_t{0} : 5,
                    .iteration = iteration});
}

std::string Bytes(const grpc::ByteBuffer& frame) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(frame.Dump(&slices).ok());
  std::string bytes;
  for (const auto& s : slices) bytes.append(reinterpret_cast<const char*>(s.begin()), s.size());
  return bytes;
}

grpc::ByteBuffer FrameOf(const std::string& bytes) {
  // Two slices, so that fields cross their border.
  const size_t half = bytes.size() / 2;
  const grpc::Slice slices[] = {grpc::Slice(bytes.substr(0, half)),
                                grpc::Slice(bytes.substr(half))};
  return grpc::ByteBuffer(slices, 2);
}

class CpuLanding final : public Landing {};

class ExchangeFrameTest : public testing::Test {
 protected:
  // Sends a tensor in as many frames as it takes.
  void Send(OutgoingTensor tensor) {
    bool all = false;
    for (size_t sent = 0; !all; ++frames) {
      all = writer.Add(tensor, &sent);
      ASSERT_TRUE(Receive(FrameOf(Bytes(writer.Take()))).ok());
    }
  }
  Status Receive(const grpc::ByteBuffer& frame) {
    return reader.Read(
        frame, [this](int64_t step) { return step != unwanted; }, &received, &refused);
  }
  // Adds a tensor that fits into the frame.
  void Add(const OutgoingTensor& tensor) {
    size_t sent = 0;
    ASSERT_TRUE(writer.Add(tensor, &sent));
  }
  CpuLanding landing;
  FrameWriter writer;
  FrameReader reader{landing};
  std::vector<ReceivedTensor> received;
  std::vector<RefusedStep> refused;
  int64_t unwanted = -1;
  int frames = 0;
};

TEST_F(ExchangeFrameTest, TensorsOfAllKinds) {
  Tensor large(DType::kInt32, Shape({3, 1 << 18}));  // 3 MiB
  for (int i = 0; i < large.num_elements(); ++i) large.mutable_flat<int32_t>()[i] = i;
  const Tensor values[] = {Tensor::Scalar(1.5f),
                           Tensor::Of<int64_t>({2, 2}, {1, 2, 3, -4}),
                           Tensor(DType::kDouble, Shape({0, 7})),
                           Tensor::Vector<std::string>({"", "abc", std::string(3'000'000, 'x')}),
                           Tensor::Vector<bool>({true, false, true}),
                           large,
                           large.Slice(1, 2),
                           TestWords::Of({"a", std::string(3'000'000, 'y')})};
  for (const Tensor& value : values) Send(OutgoingTensor(7, Key("t"), value, false));
  ASSERT_EQ(received.size(), 8);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(received[i].step_id, 7);
    EXPECT_EQ(received[i].key, Key("t"));
    EXPECT_EQ(AttrValue(received[i].value), AttrValue(values[i])) << i;
  }
  EXPECT_EQ(frames, 5 + 3 + 3 + 3);
}

TEST_F(ExchangeFrameTest, SaysWhichVariantsCannotBeSent) {
  EXPECT_TRUE(OutgoingTensor(7, Key("t"), TestWords::Of({"a"}), false).status().ok());
  EXPECT_EQ(OutgoingTensor(7, Key("t"), TestWords::Of({"a", "secret"}), false).status(),
            Unimplemented("a secret does not travel"));
}

TEST_F(ExchangeFrameTest, ManySmallTensorsInOneFrame) {
  for (int i = 0; i < 1000; ++i) {
    Add(OutgoingTensor(i % 3, Key(StrCat("t", i)), Tensor::Scalar(i), i % 7 == 0));
  }
  writer.Refuse(9, Aborted("restarted"));
  ASSERT_TRUE(Receive(writer.Take()).ok());
  ASSERT_EQ(received.size(), 1000);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(received[i].value.scalar<int>(), i);
    EXPECT_EQ(received[i].is_dead, i % 7 == 0);
    EXPECT_EQ(received[i].key, Key(StrCat("t", i)));
  }
  ASSERT_EQ(refused.size(), 1);
  EXPECT_EQ(refused[0].why, Aborted("restarted"));
}

TEST_F(ExchangeFrameTest, KeysAreSpelledOutOnce) {
  OutgoingTensor first(1, Key("edge"), Tensor::Scalar(1.0f), false);
  OutgoingTensor again(2, Key("edge"), Tensor::Scalar(2.0f), false);
  OutgoingTensor loop(2, Key("edge", 3), Tensor::Scalar(3.0f), false);
  OutgoingTensor dead(3, Key("edge"), Tensor(), true);
  Add(first);
  const auto frame = writer.Take();
  Add(again);
  Add(loop);
  Add(dead);
  const auto later = writer.Take();
  EXPECT_LT(later.Length(), frame.Length());
  ASSERT_TRUE(Receive(frame).ok());
  ASSERT_TRUE(Receive(later).ok());
  ASSERT_EQ(received.size(), 4);
  EXPECT_EQ(received[1].key, Key("edge"));
  EXPECT_EQ(received[2].key, Key("edge", 3));
  EXPECT_TRUE(received[3].is_dead);
  EXPECT_FALSE(received[3].value.valid());
}

TEST_F(ExchangeFrameTest, UnwantedStepsAreSkipped) {
  Tensor large(DType::kFloat, Shape({3 << 17}));  // one and a half frames
  OutgoingTensor a(1, Key("a"), large, false), b(2, Key("b"), Tensor::Scalar(1.0f), false);
  size_t sent = 0;
  ASSERT_FALSE(writer.Add(a, &sent));
  ASSERT_TRUE(Receive(writer.Take()).ok());
  unwanted = 1;
  ASSERT_TRUE(writer.Add(a, &sent));
  writer.Refuse(1, Aborted("not wanted either"));
  Add(b);
  ASSERT_TRUE(Receive(writer.Take()).ok());
  EXPECT_TRUE(refused.empty());
  ASSERT_EQ(received.size(), 1);
  EXPECT_EQ(received[0].step_id, 2);
}

// Returns a frame with an arbitrary header.
grpc::ByteBuffer FrameSaying(const std::vector<wire::TensorPart>& parts, const std::string& body) {
  wire::TensorBatch frame;
  for (const wire::TensorPart& part : parts) *frame.mutable_header()->add_part() = part;
  frame.set_body(body);
  return FrameOf(frame.SerializeAsString());
}

wire::TensorPart PartSaying(const std::string& tensor, uint64_t total, uint64_t bytes) {
  wire::TensorPart part;
  part.set_step_id(1);
  part.set_key_text(Key(tensor).key().ToString());
  part.set_total_bytes(total);
  part.set_bytes(bytes);
  return part;
}

TEST_F(ExchangeFrameTest, AWrongTensorIsTheEndOfItsStepOnly) {
  wire::TensorPart dead = PartSaying("dead", 100, 8);  // a dead value has no bytes
  dead.set_is_dead(true);
  wire::TensorPart more = PartSaying("dead", 0, 8);
  more.set_offset(8);
  // A tensor that needs more than the available memory.
  wire::TensorPart vast = PartSaying("vast", uint64_t{1} << 60, 4);
  vast.set_dtype(tensorflow::DT_FLOAT);
  vast.add_dim(int64_t{1} << 58);
  wire::TensorPart text = PartSaying("text", 3, 3);
  text.set_is_proto(true);
  wire::TensorPart good = PartSaying("good", 4, 4);
  good.set_step_id(2);
  good.set_dtype(tensorflow::DT_FLOAT);
  good.add_dim(1);
  google::protobuf::LogSilencer quiet;
  const std::string body(8 + 8 + 4 + 3 + 4, '\xff');
  ASSERT_TRUE(Receive(FrameSaying({dead, more, vast, text, good}, body)).ok());
  ASSERT_EQ(received.size(), 1);
  EXPECT_EQ(received[0].key, Key("good"));
  ASSERT_EQ(refused.size(), 3);
  for (const auto& r : refused) EXPECT_EQ(r.step_id, 1);
  EXPECT_EQ(refused[0].why.code(), StatusCode::kDataLoss);
  EXPECT_EQ(refused[1].why.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(refused[2].why.code(), StatusCode::kDataLoss);
}

// Any bytes from another process give an error or tensors, and do no other harm.
TEST_F(ExchangeFrameTest, AnyBytesAreSafe) {
  OutgoingTensor a(1, Key("a"), Tensor::Vector<float>({1, 2, 3}), false);
  OutgoingTensor s(1, Key("s"), Tensor::Vector<std::string>({"x", "yz"}), false);
  Add(a);
  Add(s);
  const std::string good = Bytes(writer.Take());
  google::protobuf::LogSilencer quiet;
  std::mt19937 random(1);
  int errors = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    for (int n = random() % 4; n >= 0; --n) bytes[random() % bytes.size()] = random();
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    FrameReader fresh(landing);
    std::vector<ReceivedTensor> tensors;
    if (!fresh
             .Read(
                 FrameOf(bytes), [](int64_t) { return true; }, &tensors, &refused)
             .ok()) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 10'000);
}

}  // namespace
}  // namespace penstock
