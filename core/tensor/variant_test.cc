// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/variant.h"

#include "core/tensor/tensor.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// Holds one tensor.
class Box final : public VariantValue {
 public:
  const char* TypeName() const override { return "test::Box"; }
  std::string ToString() const override { return "a box"; }
  Status Encode(std::string*, std::vector<Tensor>* tensors) const override {
    tensors->push_back(held_);
    return OkStatus();
  }
  Status Put(Tensor tensor) {
    RETURN_IF_ERROR(Admit(tensor));
    held_ = std::move(tensor);
    return OkStatus();
  }

 private:
  Tensor held_;
};

class Celsius final : public VariantValue {
 public:
  explicit Celsius(int degrees) : degrees(degrees) {}
  const char* TypeName() const override { return "test::Celsius"; }
  std::string ToString() const override { return StrCat(degrees, " degrees"); }
  Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const override {
    *metadata = "C";
    tensors->push_back(Tensor::Scalar<int32_t>(degrees));
    return OkStatus();
  }
  static StatusOr<Variant> Decode(const std::string& metadata, const std::vector<Tensor>& tensors) {
    if (metadata != "C" || tensors.size() != 1) return InvalidArgument("no temperature");
    return Variant{std::make_shared<Celsius>(tensors[0].scalar<int32_t>())};
  }

  int degrees;
};

const bool registered = RegisterVariantDecoder("test::Celsius", Celsius::Decode);

TEST(Variant, ValuesAreSharedByCopiesAndDieWithTheLast) {
  std::weak_ptr<VariantValue> value;
  {
    Tensor pair(DType::kVariant, {2});
    pair.mutable_flat<Variant>()[1].value = std::make_shared<Celsius>(20);
    value = pair.flat<Variant>()[1].value;
    EXPECT_EQ(pair.ToString(), "variant[2] <nothing> <20 degrees>");
    const Tensor clone = pair.Clone();
    pair = Tensor();
    EXPECT_EQ(value.use_count(), 1);
    EXPECT_EQ(clone.Slice(1, 2).ToString(), "variant[1] <20 degrees>");
  }
  EXPECT_TRUE(value.expired());
}

TEST(Variant, IsDecodedFromWhatItEncoded) {
  std::string metadata;
  std::vector<Tensor> tensors;
  ASSERT_TRUE(registered);
  ASSERT_TRUE(Celsius(-3).Encode(&metadata, &tensors).ok());
  const StatusOr<Variant> decoded = DecodeVariant("test::Celsius", metadata, tensors);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->value->ToString(), "-3 degrees");
  EXPECT_EQ(DecodeVariant("test::Celsius", "F", tensors).status(),
            InvalidArgument("no temperature"));
  EXPECT_EQ(DecodeVariant("test::Kelvin", "", {}).status(),
            InvalidArgument("no variant type is named 'test::Kelvin'"));
}

TEST(Variant, ValuesInValuesAreOnlySoDeep) {
  Tensor inner = Tensor::Scalar<float>(1);
  for (int depth = 1; depth <= kVariantDepthMax; ++depth) {
    auto box = std::make_shared<Box>();
    ASSERT_TRUE(box->Put(inner).ok());
    EXPECT_EQ(box->depth(), depth);
    inner = Tensor::Scalar(Variant{std::move(box)});
  }
  Box outermost;
  EXPECT_EQ(outermost.Put(inner),
            InvalidArgument("a test::Box would hold variants in variants more than 32 deep"));
  EXPECT_TRUE(outermost.Put(Tensor(DType::kVariant, {2})).ok());
  EXPECT_EQ(outermost.depth(), 1);
}

}  // namespace
}  // namespace penstock
