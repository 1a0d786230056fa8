// SPDX-License-Identifier: Apache-2.0
//
// Tests the elements of TensorProto that are no plain bytes: hostile lists in tensor_content, and
// variants that hold tensors.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/resource_handle.h"
#include "core/tensor/variant.h"
#include "core/wire/tensor_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {
namespace {

using tensorflow::TensorProto;
using ::testing::HasSubstr;

// A variant that holds one tensor.
class Box final : public VariantValue {
 public:
  explicit Box(Tensor content) : content_(std::move(content)) {}
  const char* TypeName() const override { return "test::Box"; }
  std::string ToString() const override { return "a box"; }
  Status Encode(std::string* metadata, std::vector<Tensor>* tensors) const override {
    *metadata = "lid";
    tensors->push_back(content_);
    return OkStatus();
  }
  const Tensor& content() const { return content_; }

 private:
  const Tensor content_;
};

Tensor Boxed(Tensor content) {
  return Tensor::Scalar(Variant{std::make_shared<Box>(std::move(content))});
}

TensorProto Strings(int size, const std::string& content) {
  TensorProto proto;
  proto.set_dtype(static_cast<tensorflow::DataType>(Number(DType::kString)));
  proto.mutable_tensor_shape()->add_dim()->set_size(size);
  proto.set_tensor_content(content);
  return proto;
}

std::string ErrorOf(const TensorProto& proto) {
  const StatusOr<Tensor> tensor = TensorFromProto(proto);
  return tensor.ok() ? "" : std::string(tensor.status().message());
}

TEST(TensorObjectsTest, ReadsAListOfStrings) {
  // The length before the list takes two bytes.
  const std::string longer(200, 'x');
  const StatusOr<Tensor> tensor =
      TensorFromProto(Strings(3, std::string("\xc8\x01\x00\x02", 4) + longer + "yz"));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->flat<std::string>()[0], longer);
  EXPECT_EQ(tensor->flat<std::string>()[1], "");
  EXPECT_EQ(tensor->flat<std::string>()[2], "yz");
}

TEST(TensorObjectsTest, RefusesListsThatDoNotFit) {
  EXPECT_THAT(ErrorOf(Strings(1'000'000, "\x01")), HasSubstr("too few for 1000000 elements"));
  EXPECT_THAT(ErrorOf(Strings(2, "\x80\x80")), HasSubstr("ends within the lengths"));
  EXPECT_THAT(ErrorOf(Strings(1, "\xff\xff\xff\xff\x7f")), HasSubstr("ends within the lengths"));
  EXPECT_THAT(ErrorOf(Strings(2, "\x01\x01x")), HasSubstr("1 bytes of elements"));
  EXPECT_THAT(ErrorOf(Strings(1, "\x01xy")), HasSubstr("their lengths add up to 1"));
}

TEST(TensorObjectsTest, RefusesHandlesThatAreNone) {
  TensorProto proto = Strings(1, "\x02\xff\xff");
  proto.set_dtype(static_cast<tensorflow::DataType>(Number(DType::kResource)));
  EXPECT_THAT(ErrorOf(proto), HasSubstr("element 0 of tensor_content is no resource handle"));
}

TEST(TensorObjectsTest, WritesHandlesWithTheirElements) {
  const Tensor handle =
      Tensor::Scalar(ResourceHandle{.device = "d",
                                    .container = "c",
                                    .name = "n",
                                    .type = "t",
                                    .elements = {{DType::kInt64, PartialShape({-1, 2})}}});
  TensorProto proto;
  ASSERT_EQ(TensorToProto(handle, &proto), OkStatus());
  const StatusOr<Tensor> read = TensorFromProto(proto);
  ASSERT_TRUE(read.ok()) << read.status();
  const auto& made = read->scalar<ResourceHandle>();
  EXPECT_EQ(made.name, "n");
  ASSERT_EQ(made.elements.size(), 1u);
  EXPECT_EQ(made.elements[0].dtype, DType::kInt64);
  EXPECT_EQ(made.elements[0].shape.ToString(), PartialShape({-1, 2}).ToString());
}

TEST(TensorObjectsTest, WritesTheTensorsOfVariants) {
  TensorProto proto;
  ASSERT_EQ(TensorToProto(Boxed(Tensor::Vector<float>({1, 2})), &proto), OkStatus());
  ASSERT_EQ(proto.variant_val_size(), 1);
  EXPECT_EQ(proto.variant_val(0).type_name(), "test::Box");
  EXPECT_EQ(proto.variant_val(0).metadata(), "lid");
  ASSERT_EQ(proto.variant_val(0).tensors_size(), 1);
  const StatusOr<Tensor> content = TensorFromProto(proto.variant_val(0).tensors(0));
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->flat<float>()[1], 2);
}

// A message contains a tensor once for each variant that holds it, so a small variant can need a
// large message.
TEST(TensorObjectsTest, AMessageHasALimit) {
  const auto box = std::make_shared<Box>(Tensor(DType::kFloat, Shape({1000})));
  Tensor many(DType::kVariant, Shape({4}));
  for (int i = 0; i < 4; ++i) {
    // Equal variants at the end are written only once, so make them differ.
    many.mutable_data<Variant>()[i].value = std::make_shared<Box>(box->content());
  }
  TensorProto proto;
  EXPECT_EQ(TensorToProto(many, &proto, 40'000), OkStatus());
  TensorProto refused;
  EXPECT_EQ(TensorToProto(many, &refused, 15'000).code(), StatusCode::kResourceExhausted);
}

TEST(TensorObjectsTest, EqualVariantsAtTheEndAreWrittenOnce) {
  const auto box = std::make_shared<Box>(Tensor::Scalar(1.f));
  Tensor many(DType::kVariant, Shape({5}));
  for (int i = 0; i < 5; ++i) many.mutable_data<Variant>()[i].value = box;
  TensorProto proto;
  ASSERT_EQ(TensorToProto(many, &proto), OkStatus());
  EXPECT_EQ(proto.variant_val_size(), 1);
}

TEST(TensorObjectsTest, VariantsInVariantsHaveALimit) {
  TensorProto received;
  received.set_dtype(static_cast<tensorflow::DataType>(Number(DType::kVariant)));
  TensorProto* inner = &received;
  for (int i = 0; i < 90; ++i) {
    auto* const variant = inner->add_variant_val();
    variant->set_type_name("test::Box");
    inner = variant->add_tensors();
    inner->set_dtype(static_cast<tensorflow::DataType>(Number(DType::kVariant)));
  }
  EXPECT_THAT(ErrorOf(received), HasSubstr("variants in variants, more than 32 deep"));
}

TEST(TensorObjectsTest, RefusesAVariantWithoutATypeName) {
  TensorProto proto;
  proto.set_dtype(static_cast<tensorflow::DataType>(Number(DType::kVariant)));
  proto.add_variant_val();  // an element that was not set
  EXPECT_EQ(ErrorOf(proto), "");
  proto.mutable_variant_val(0)->set_metadata("lid");
  EXPECT_THAT(ErrorOf(proto), HasSubstr("a variant without a type name"));
}

}  // namespace
}  // namespace penstock
