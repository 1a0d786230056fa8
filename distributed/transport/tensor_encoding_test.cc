// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/tensor_encoding.h"

#include <cstring>

#include "core/op/attr.h"
#include "core/tensor/testing/test_variant.h"
#include "distributed/transport/testing/test_key.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

class CpuLanding final : public Landing {};

StatusOr<IncomingTensor> Begin(const TensorHeader& header) {
  CpuLanding landing;
  return IncomingTensor::Begin(1, TestKey("edge"), header, landing);
}

// Returns the tensor that is received when the bytes come in pieces of this size.
Tensor ReceiveInPieces(const OutgoingTensor& sent, size_t piece) {
  auto tensor = Begin(sent.header());
  CHECK_OK(tensor.status());
  while (tensor->missing() > 0) {
    const size_t count = std::min(piece, tensor->missing());
    const char* const from = sent.data() + tensor->filled();
    std::memcpy(tensor->Next(count), from, count);
  }
  auto value = (*std::move(tensor)).Finish();
  CHECK_OK(value.status());
  return *std::move(value);
}

TEST(TensorEncodingTest, ValuesOfAllKindsInPieces) {
  const Tensor values[] = {Tensor::Scalar(1.5f), Tensor::Of<int64_t>({2, 2}, {1, 2, 3, -4}),
                           Tensor(DType::kDouble, Shape({0, 7})),
                           Tensor::Vector<std::string>({"", "abc", "a longer text than fits"}),
                           TestWords::Of({"a", "b"})};
  for (const Tensor& value : values) {
    const OutgoingTensor sent(1, TestKey("edge"), value, false);
    ASSERT_TRUE(sent.status().ok());
    for (const size_t piece : {1, 3, 1000}) {
      EXPECT_EQ(AttrValue(ReceiveInPieces(sent, piece)), AttrValue(value));
    }
  }
}

TEST(TensorEncodingTest, PlainBytesAreTheTensorsOwn) {
  const Tensor value = Tensor::Vector<float>({1, 2, 3, 4});
  const OutgoingTensor sent(1, TestKey("edge"), value.Slice(1, 3), false);
  EXPECT_EQ(sent.data(), static_cast<const char*>(value.raw_data()) + 4);
  EXPECT_TRUE(sent.body().SharesBufferWith(value));
  EXPECT_EQ(sent.bytes(), 8);
  EXPECT_FALSE(sent.header().is_encoded);
}

TEST(TensorEncodingTest, EncodedBytesOutliveTheTensor) {
  Tensor kept;
  {
    const OutgoingTensor sent(1, TestKey("edge"), Tensor::Scalar<std::string>("abc"), false);
    EXPECT_TRUE(sent.header().is_encoded);
    kept = sent.body();
  }
  const string_view bytes(static_cast<const char*>(kept.raw_data()), kept.bytes());
  EXPECT_NE(bytes.find("abc"), string_view::npos);
}

TEST(TensorEncodingTest, DeadValues) {
  const OutgoingTensor without(1, TestKey("edge"), Tensor(), true);
  EXPECT_EQ(without.header().dtype, 0);
  EXPECT_EQ(without.bytes(), 0);
  EXPECT_FALSE(ReceiveInPieces(without, 1).valid());
  EXPECT_TRUE(Begin(without.header())->is_dead());
  EXPECT_EQ(ReceiveInPieces(OutgoingTensor(1, TestKey("edge"), Tensor::Scalar(2.0f), true), 4)
                .scalar<float>(),
            2);
}

TEST(TensorEncodingTest, SaysWhichVariantsCannotTravel) {
  EXPECT_EQ(OutgoingTensor(1, TestKey("edge"), TestWords::Of({"a", "secret"}), false).status(),
            Unimplemented("a secret does not travel"));
}

TEST(TensorEncodingTest, WrongHeadersAreErrors) {
  const int64_t two[] = {2};
  const int64_t negative[] = {-1};
  const int64_t vast[] = {int64_t{1} << 58};
  const std::pair<TensorHeader, StatusCode> cases[] = {
      {{.dtype = 1, .dims = two, .bytes = 7}, StatusCode::kDataLoss},
      {{.dtype = 1, .dims = two, .bytes = 12}, StatusCode::kDataLoss},
      // Strings whose bytes are not marked as encoded.
      {{.dtype = 7, .dims = two, .bytes = 8}, StatusCode::kDataLoss},
      {{.dtype = 999, .dims = two, .bytes = 8}, StatusCode::kInvalidArgument},
      {{.dtype = 1, .dims = negative, .bytes = 8}, StatusCode::kInvalidArgument},
      {{.dtype = 1, .dims = vast, .bytes = uint64_t{1} << 60}, StatusCode::kResourceExhausted},
      {{.is_encoded = true, .bytes = uint64_t{1} << 31}, StatusCode::kResourceExhausted},
      {{.is_dead = true, .bytes = 8}, StatusCode::kDataLoss},
      {{.bytes = 8}, StatusCode::kInvalidArgument},
  };
  for (const auto& [header, code] : cases) {
    EXPECT_EQ(Begin(header).status().code(), code) << header.dtype << " " << header.bytes;
  }
}

TEST(TensorEncodingTest, BytesThatAreNoEncodingAreAnError) {
  auto tensor = Begin({.dtype = 7, .is_encoded = true, .bytes = 3});
  ASSERT_TRUE(tensor.ok());
  std::memcpy(tensor->Next(3), "\xff\xff\xff", 3);
  EXPECT_EQ((*std::move(tensor)).Finish().status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace penstock
