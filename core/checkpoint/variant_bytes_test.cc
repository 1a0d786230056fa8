// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/variant_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/crc32c.h"
#include "core/checkpoint/testing/test_variant.h"
#include "core/checkpoint/varint.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {
namespace {

struct Written {
  explicit Written(const std::vector<Variant>& variants) {
    const auto written = WriteVariants(variants, [this](string_view piece) {
      bytes.append(piece.data(), piece.size());
      return OkStatus();
    });
    CHECK_OK(written.status());
    masked_crc = MaskCrc(*written);
  }
  std::string bytes;
  uint32_t masked_crc = 0;
};

TEST(VariantBytes, ComeBack) {
  const Written written({TestVariant::Of("a", {Tensor::Scalar<int64_t>(7)}), Variant(),
                         TestVariant::Of("", {Tensor::Vector<std::string>({"x", ""})})});
  Variant variants[3];
  ASSERT_EQ(ReadVariants(written.bytes, 3, written.masked_crc, variants), OkStatus());
  EXPECT_EQ(variants[0].value->ToString(), "a: int64[] 7");
  EXPECT_EQ(variants[1].value, nullptr);
  EXPECT_NE(variants[2].value->ToString().find("string[2]"), std::string::npos);
  EXPECT_EQ(ReadVariants(written.bytes, 3, written.masked_crc, nullptr), OkStatus());
}

TEST(VariantBytes, HaveTheFormOfTensorFlow) {
  const Written written({Variant()});
  // The length 0, and the checksum of eight bytes 0.
  const uint64_t length = 0;
  const uint32_t crc = MaskCrc(Crc32c({reinterpret_cast<const char*>(&length), sizeof length}));
  std::string expected(1, '\0');
  expected.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  EXPECT_EQ(written.bytes, expected);
}

TEST(VariantBytes, OtherNumbersOfVariantsAreErrors) {
  const Written written({Variant(), Variant()});
  for (const int64_t count : {0, 1, 3}) {
    Variant variants[3];
    EXPECT_EQ(ReadVariants(written.bytes, count, written.masked_crc, variants).code(),
              StatusCode::kDataLoss);
  }
}

// Returns the message of a variant with a tensor of `elements` floats, which are all 1.
std::string RepeatedFloat(int64_t elements) {
  tensorflow::VariantTensorDataProto proto;
  proto.set_type_name(TestVariant::kTypeName);
  tensorflow::TensorProto& tensor = *proto.add_tensors();
  tensor.set_dtype(tensorflow::DT_FLOAT);
  tensor.mutable_tensor_shape()->add_dim()->set_size(elements);
  tensor.add_float_val(1);
  return proto.SerializeAsString();
}

// Reads an entry with `count` variants of this message and with right checksums.
StatusOr<std::vector<Variant>> ReadCopies(const std::string& message, int count) {
  const uint64_t length = message.size();
  uint32_t crc = 0;
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    crc = ExtendCrc32c(crc, {reinterpret_cast<const char*>(&length), sizeof length});
    crc = ExtendCrc32c(crc, message);
    const uint32_t masked = MaskCrc(crc);
    const std::string checksum(reinterpret_cast<const char*>(&masked), sizeof masked);
    crc = ExtendCrc32c(crc, checksum);
    AppendVarint(length, &bytes);
    bytes += message + checksum;
  }
  std::vector<Variant> variants(count);
  RETURN_IF_ERROR(ReadVariants(bytes, count, MaskCrc(crc), variants.data()));
  return variants;
}

// A small file must not make the reader allocate much memory, even if its checksums are right.
TEST(VariantBytes, ASmallMessageOfALargeTensorIsRefused) {
  EXPECT_EQ(ReadCopies(RepeatedFloat(int64_t{1} << 30), 1).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(VariantBytes, TheVariantsOfAnEntryShareALimit) {
  const std::string message = RepeatedFloat(100'000);  // less than 1 MiB in memory
  EXPECT_EQ(ReadCopies(message, 2).status(), OkStatus());
  EXPECT_EQ(ReadCopies(message, 1000).status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace penstock
