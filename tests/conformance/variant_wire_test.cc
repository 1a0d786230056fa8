// SPDX-License-Identifier: Apache-2.0
//
// Tests the encoding of lists, maps and optionals. The bytes below are from TensorFlow's
// SerializeTensor. Penstock must decode them, and decode its own encoding of the same values.
#include <functional>
#include <string>

#include "absl/strings/escaping.h"
#include "core/op/attr.h"
#include "core/op/testing/op_runner.h"
#include "core/tensor/variant.h"
#include "core/wire/tensor_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {
namespace {

using tensorflow::TensorProto;
using tensorflow::VariantTensorDataProto;
using ::testing::HasSubstr;

// EmptyTensorList(element_shape=[2, -1], max_num_elements=5, element_dtype=float)
constexpr char kEmpty[] =
    "08151200222f2e0a1674656e736f72666c6f773a3a54656e736f724c697374121400010512020802120b08ffffffff"
    "ffffffffff01";
// TensorListSetItem(TensorListReserve(-1, 3), 1, [1.5, 2.0])
constexpr char kGaps[] =
    "08151200223f3e0a1674656e736f72666c6f773a3a54656e736f724c697374121002000201ffffffffffffffffff01"
    "18011a1208011204120208022a080000c03f00000040";
// stack([TensorListFromTensor(["a", "bc"], []), a list that holds the list of kGaps])
constexpr char kPair[] =
    "081512041202080222a701396c0a1674656e736f72666c6f773a3a54656e736f724c697374120c0007ffffffffffff"
    "ffffff011a07080712004201611a0808071200420262630a1674656e736f72666c6f773a3a54656e736f724c697374"
    "120c0015ffffffffffffffffff011a44081512007a3e0a1674656e736f72666c6f773a3a54656e736f724c69737412"
    "1002000201ffffffffffffffffff0118011a1208011204120208022a080000c03f00000040";
// OptionalFromValue([1.0, [1, 2]])
constexpr char kSome[] =
    "08151200223a390a1a74656e736f72666c6f773a3a646174613a3a4f7074696f6e616c1201011a0a080112002a0400"
    "00803f1a0c08031204120208023a020102";
// OptionalNone()
constexpr char kNone[] =
    "0815120022201f0a1a74656e736f72666c6f773a3a646174613a3a4f7074696f6e616c120100";
// EmptyTensorMap() with "k": [1.5, 2.0] and 7: 3 inserted
constexpr char kMap[] =
    "081512002247460a1574656e736f72666c6f773a3a54656e736f724d61701a07080312003a01071a07080312003a01"
    "031a070807120042016b1a1208011204120208022a080000c03f00000040";
constexpr char kEmptyMap[] = "081512002218170a1574656e736f72666c6f773a3a54656e736f724d6170";

TensorProto Parse(const char* hex) {
  TensorProto proto;
  EXPECT_TRUE(proto.ParseFromString(absl::HexStringToBytes(hex)));
  return proto;
}

Tensor Read(const TensorProto& proto) {
  const StatusOr<Tensor> tensor = TensorFromProto(proto);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return tensor.ok() ? *tensor : Tensor();
}

Tensor Element(const Tensor& tensor, int i) { return Tensor::Scalar(tensor.flat<Variant>()[i]); }

std::string Get(const Tensor& list, int32_t index, DType dtype) {
  const auto item = OpRunner("TensorListGetItem")
                        .In(list)
                        .In(Tensor::Scalar(index))
                        .In(Tensor::Scalar<int32_t>(-1))
                        .Attr("element_dtype", dtype)
                        .Run1();
  return item.ok() ? item->ToString() : std::string(item.status().message());
}

TEST(VariantWire, ReadsTensorFlowsLists) {
  EXPECT_EQ(Read(Parse(kEmpty)).ToString(), "variant[] <a list of 0 float[2,?]>");
  const Tensor gaps = Read(Parse(kGaps));
  EXPECT_EQ(gaps.ToString(), "variant[] <a list of 3 float?>");
  EXPECT_EQ(Get(gaps, 1, DType::kFloat), "float[2] 1.5 2");
  EXPECT_EQ(Get(gaps, 2, DType::kFloat), "float[2] 0 0");
  const Tensor pair = Read(Parse(kPair));
  EXPECT_EQ(pair.ToString(), "variant[2] <a list of 2 string[]> <a list of 1 variant[]>");
  EXPECT_EQ(Get(Element(pair, 0), 1, DType::kString), "string[] \"bc\"");
  EXPECT_EQ(Get(Element(pair, 1), 0, DType::kVariant), gaps.ToString());
}

TEST(VariantWire, ReadsTensorFlowsOptionals) {
  EXPECT_EQ(Read(Parse(kSome)).ToString(), "variant[] <an optional of 2 tensors>");
  EXPECT_EQ(Read(Parse(kNone)).ToString(), "variant[] <an empty optional>");
}

TEST(VariantWire, ReadsTensorFlowsMaps) {
  EXPECT_EQ(Read(Parse(kEmptyMap)).ToString(), "variant[] <a map of 0 tensors>");
  const Tensor map = Read(Parse(kMap));
  EXPECT_EQ(map.ToString(), "variant[] <a map of 2 tensors>");
  const auto value = OpRunner("TensorMapLookup")
                         .In(map)
                         .In(Tensor::Scalar<std::string>("k"))
                         .Attr("value_dtype", DType::kFloat)
                         .Run1();
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->ToString(), "float[2] 1.5 2");
}

TEST(VariantWire, WritesWhatItReads) {
  for (const char* hex : {kEmpty, kGaps, kPair, kSome, kNone, kMap, kEmptyMap}) {
    const Tensor tensor = Read(Parse(hex));
    TensorProto written;
    ASSERT_TRUE(TensorToProto(tensor, &written).ok());
    EXPECT_EQ(AttrValue(Read(written)), AttrValue(tensor)) << tensor.ToString();
  }
  EXPECT_FALSE(AttrValue(Read(Parse(kSome))) == AttrValue(Read(Parse(kNone))));
  EXPECT_FALSE(AttrValue(Read(Parse(kGaps))) == AttrValue(Read(Parse(kEmpty))));
}

// Compares the bytes of values without tensors; a tensor has two valid encodings.
TEST(VariantWire, MetadataIsTensorFlows) {
  for (const char* hex : {kEmpty, kNone, kEmptyMap}) {
    const TensorProto theirs = Parse(hex);
    TensorProto ours;
    ASSERT_TRUE(TensorToProto(Read(theirs), &ours).ok());
    // TensorFlow's content is a list of byte strings with one element, shorter than 128 bytes, so
    // its length takes one byte.
    EXPECT_EQ(ours.variant_val(0).SerializeAsString(), theirs.tensor_content().substr(1));
  }
}

TEST(VariantWire, RefusesWhatIsNoList) {
  const auto error = [](const std::function<void(VariantTensorDataProto*)>& change) {
    TensorProto proto;
    EXPECT_TRUE(TensorToProto(Read(Parse(kGaps)), &proto).ok());
    change(proto.mutable_variant_val(0));
    return std::string(TensorFromProto(proto).status().message());
  };
  const auto metadata = [&](const std::string& bytes) {
    return error([&](VariantTensorDataProto* list) { list->set_metadata(bytes); });
  };
  const std::string unlimited("\377\377\377\377\377\377\377\377\377\1");
  EXPECT_THAT(metadata(""), HasSubstr("malformed"));
  EXPECT_THAT(metadata("\2\1\1"), HasSubstr("in order, and in the list"));
  EXPECT_THAT(metadata("\1\5"), HasSubstr("in order, and in the list"));
  EXPECT_THAT(metadata("\377\377\377\377\377\377\377\377\377\1"), HasSubstr("malformed"));
  EXPECT_THAT(metadata(std::string("\0", 1)), HasSubstr("no type"));
  EXPECT_THAT(metadata(std::string("\0\1", 2)), HasSubstr("no maximal length"));
  EXPECT_THAT(metadata(std::string("\0\143", 2) + unlimited), HasSubstr("99"));
  EXPECT_THAT(metadata(std::string("\0\3", 2) + unlimited), HasSubstr("list elements int32"));
  EXPECT_THAT(metadata(std::string("\0\1", 2) + unlimited + "\22"), HasSubstr("no shape"));
  EXPECT_THAT(metadata(std::string("\0\1", 2) + unlimited + "\22\2\10\7"),
              HasSubstr("list shape: [7]"));
  EXPECT_THAT(error([](VariantTensorDataProto* list) { list->set_type_name("Tree"); }),
              HasSubstr("no variant type is named 'Tree'"));
  EXPECT_THAT(error([](VariantTensorDataProto* list) { list->clear_type_name(); }),
              HasSubstr("without a type name"));
  EXPECT_THAT(error([](VariantTensorDataProto* list) {
                list->mutable_tensors(0)->set_tensor_content("x");
              }),
              HasSubstr("tensor 0 of a variant 'tensorflow::TensorList': tensor_content"));
  TensorProto optional = Parse(kNone);
  optional.clear_tensor_content();
  optional.add_variant_val()->set_type_name("tensorflow::data::Optional");
  EXPECT_THAT(std::string(TensorFromProto(optional).status().message()), HasSubstr("malformed"));
}

TEST(VariantWire, TensorsOfVariantsCountAsMemory) {
  const TensorProto gaps = Parse(kGaps);
  EXPECT_TRUE(TensorFromProto(gaps, 16 + 8).ok());
  EXPECT_EQ(TensorFromProto(gaps, 16 + 7).status().code(), StatusCode::kResourceExhausted);
}

// Tests both encodings, since protobuf's own nesting limit applies to only one.
TEST(VariantWire, RefusesDeepNesting) {
  for (const bool content : {false, true}) {
    TensorProto proto = Parse(kGaps);
    proto.clear_tensor_content();
    Status status;
    for (int depth = 0; depth <= kVariantDepthMax && status.ok(); ++depth) {
      VariantTensorDataProto list;
      list.set_type_name("tensorflow::TensorList");
      list.set_metadata(std::string("\0\25\1", 3));
      *list.add_tensors() = proto;
      TensorProto outer;
      outer.set_dtype(tensorflow::DT_VARIANT);
      if (content) {
        std::string bytes = list.SerializeAsString();
        std::string length;
        for (size_t n = bytes.size(); n > 0; n >>= 7) {
          length += static_cast<char>((n & 0x7f) | (n >> 7 > 0 ? 0x80 : 0));
        }
        outer.set_tensor_content(length + bytes);
      } else {
        *outer.add_variant_val() = list;
      }
      proto = outer;
      status = TensorFromProto(proto).status();
      EXPECT_EQ(status.ok(), depth < kVariantDepthMax) << depth << ": " << status;
    }
    EXPECT_THAT(std::string(status.message()), HasSubstr("more than 32 deep"));
  }
}

// A list that contains another list several times, which contains a third list several times, and
// so on, is small in memory but huge when encoded.
TEST(VariantWire, IsNotWrittenBeyondAllBounds) {
  const Tensor unknown = Tensor::Scalar<int32_t>(-1);
  Tensor list(DType::kVariant, {});
  for (int depth = 0; depth < kVariantDepthMax - 1; ++depth) {
    OpRunner empty("EmptyTensorList");
    Tensor outer = *empty.In(unknown).In(unknown).Attr("element_dtype", DType::kVariant).Run1();
    for (int i = 0; i < 4; ++i) outer = *OpRunner("TensorListPushBack").In(outer).In(list).Run1();
    list = outer;
  }
  // 4 to the power of 31 lists. (Messages need much more memory than their encoding, so the limit
  // here is 64 MB.)
  TensorProto proto;
  EXPECT_EQ(TensorToProto(list, &proto, 1 << 26).code(), StatusCode::kResourceExhausted);
}

TEST(VariantWire, WhatRepeatsIsWrittenOnce) {
  TensorProto proto = Parse(kGaps);
  proto.mutable_tensor_shape()->add_dim()->set_size(1000);
  const std::string content = proto.tensor_content();
  proto.clear_tensor_content();
  ASSERT_TRUE(proto.add_variant_val()->ParseFromString(content.substr(1)));
  const Tensor many = Read(proto);
  EXPECT_EQ(Element(many, 0).scalar<Variant>().value, Element(many, 999).scalar<Variant>().value);
  TensorProto written;
  ASSERT_TRUE(TensorToProto(many, &written).ok());
  EXPECT_EQ(written.variant_val_size(), 1);
  EXPECT_EQ(AttrValue(Read(written)), AttrValue(many));
  TensorProto nothing;
  ASSERT_TRUE(TensorToProto(Tensor(DType::kVariant, {3}), &nothing).ok());
  EXPECT_EQ(Read(nothing).ToString(), "variant[3] <nothing> <nothing> <nothing>");
}

}  // namespace
}  // namespace penstock
