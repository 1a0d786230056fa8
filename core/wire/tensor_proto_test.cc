// SPDX-License-Identifier: Apache-2.0
//
// Tests the conversion of TensorProto and AttrValue: every encoding that senders use, and hostile
// messages.
#include "core/wire/tensor_proto.h"

#include <cstring>
#include <string>
#include <vector>

#include "core/tensor/resource_handle.h"
#include "core/wire/attr_proto.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

template <class Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

std::string Read(const std::string& text, int64_t bytes_max = 1 << 20) {
  const StatusOr<Tensor> tensor =
      TensorFromProto(FromText<tensorflow::TensorProto>(text), bytes_max);
  return tensor.ok() ? tensor->ToString() : std::string(tensor.status().message());
}

std::string Dims(const std::vector<int>& sizes) {
  std::string text = "tensor_shape {";
  for (int size : sizes) StrAppend(&text, " dim { size: ", size, " }");
  return text + " } ";
}

TEST(TensorFromProto, EveryTypedField) {
  const struct {
    DType dtype;
    const char* field;
  } kCases[] = {
      {DType::kFloat, "float_val: 1 float_val: 2"},
      {DType::kDouble, "double_val: 1 double_val: 2"},
      {DType::kInt32, "int_val: 1 int_val: 2"},
      {DType::kInt16, "int_val: 1 int_val: 2"},
      {DType::kInt8, "int_val: 1 int_val: 2"},
      {DType::kUint16, "int_val: 1 int_val: 2"},
      {DType::kUint8, "int_val: 1 int_val: 2"},
      {DType::kInt64, "int64_val: 1 int64_val: 2"},
      {DType::kUint32, "uint32_val: 1 uint32_val: 2"},
      {DType::kUint64, "uint64_val: 1 uint64_val: 2"},
      {DType::kHalf, "half_val: 0x3c00 half_val: 0x4000"},
      {DType::kBfloat16, "half_val: 0x3f80 half_val: 0x4000"},
      {DType::kComplex64, "scomplex_val: 1 scomplex_val: 0 scomplex_val: 2 scomplex_val: 0"},
      {DType::kComplex128, "dcomplex_val: 1 dcomplex_val: 0 dcomplex_val: 2 dcomplex_val: 0"},
      {DType::kQint8, "int_val: 1 int_val: 2"},
      {DType::kQuint8, "int_val: 1 int_val: 2"},
      {DType::kQint16, "int_val: 1 int_val: 2"},
      {DType::kQuint16, "int_val: 1 int_val: 2"},
      {DType::kQint32, "int_val: 1 int_val: 2"},
  };
  for (const auto& c : kCases) {
    const std::string dtype = StrCat("dtype: ", Number(c.dtype), " ");
    // The last value repeats; raw bytes give the same tensor.
    const auto proto =
        FromText<tensorflow::TensorProto>(dtype + Dims({2, 2}) + std::string(c.field));
    const StatusOr<Tensor> tensor = TensorFromProto(proto);
    ASSERT_TRUE(tensor.ok()) << Name(c.dtype) << ": " << tensor.status();
    EXPECT_EQ(tensor->dtype(), c.dtype);
    EXPECT_EQ(tensor->shape(), Shape({2, 2}));
    const size_t size = SizeOf(c.dtype);
    const char* bytes = static_cast<const char*>(tensor->raw_data());
    EXPECT_NE(memcmp(bytes, bytes + size, size), 0) << Name(c.dtype);
    EXPECT_EQ(memcmp(bytes + size, bytes + 2 * size, 2 * size), 0) << Name(c.dtype);

    tensorflow::TensorProto raw;
    ASSERT_TRUE(TensorToProto(*tensor, &raw).ok());
    EXPECT_EQ(raw.tensor_content().size(), 4 * size);
    const StatusOr<Tensor> again = TensorFromProto(raw);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(memcmp(again->raw_data(), bytes, 4 * size), 0);

    // Without values, elements are zero. Surplus values are ignored.
    const StatusOr<Tensor> zeros =
        TensorFromProto(FromText<tensorflow::TensorProto>(dtype + Dims({3})));
    ASSERT_TRUE(zeros.ok());
    EXPECT_EQ(memcmp(zeros->raw_data(), std::string(3 * size, '\0').data(), 3 * size), 0);
    const StatusOr<Tensor> one =
        TensorFromProto(FromText<tensorflow::TensorProto>(dtype + std::string(c.field)));
    ASSERT_TRUE(one.ok());
    EXPECT_EQ(memcmp(one->raw_data(), bytes, size), 0);
  }
}

TEST(TensorFromProto, Table) {
  const struct {
    std::string text;
    std::string want;  // the value, or a substring of the error
  } kCases[] = {
      {"dtype: DT_FLOAT float_val: 1.5", "float[] 1.5"},
      {"dtype: DT_INT32 " + Dims({3}) + "int_val: 7", "int32[3] 7 7 7"},
      {"dtype: DT_INT32 " + Dims({0, 4}), "int32[0,4]"},
      {"dtype: DT_INT8 int_val: -1", "int8[] -1"},
      {"dtype: DT_UINT8 int_val: 255", "uint8[] 255"},
      {"dtype: DT_BOOL " + Dims({3}) + "bool_val: true bool_val: false", "bool[3]"},
      {"dtype: DT_INT32 " + Dims({2}) + "tensor_content: '\\1\\0\\0\\0\\2\\0\\0\\0'",
       "int32[2] 1 2"},
      {"dtype: DT_STRING " + Dims({2}) + "string_val: 'ab'", "string[2] \"ab\" \"ab\""},
      {"dtype: DT_STRING " + Dims({2}) + "tensor_content: '\\1\\2abc'", "string[2] \"a\" \"bc\""},
      {"dtype: DT_STRING " + Dims({2}) + "tensor_content: '\\0\\0'", "string[2] \"\" \"\""},
      {"dtype: DT_STRING " + Dims({1}) + "tensor_content: '\\201\\0x'", "string[1] \"x\""},
      {"dtype: DT_STRING", "string[] \"\""},

      {"", "0"},
      {"dtype: 99", "99"},
      {"dtype: 101", "101"},
      {"dtype: DT_VARIANT", "variant"},
      {"dtype: DT_FLOAT tensor_shape { unknown_rank: true }", "every size must be known"},
      {"dtype: DT_FLOAT " + Dims({-1}), "every size must be known"},
      {"dtype: DT_FLOAT " + Dims({-2}), "-2"},
      {"dtype: DT_FLOAT " + Dims({1000, 1000}), "takes 4000000 bytes, at most 1048576"},
      {"dtype: DT_INT8 " + Dims({1 << 30, 1 << 30, 1 << 30}), "more elements than"},
      {"dtype: DT_DOUBLE " + Dims({1 << 30, 1 << 30, 2}), "takes 9223372036854775807 bytes"},
      {"dtype: DT_INT32 tensor_content: '\\1\\0\\0'", "tensor_content has 3 bytes, 1 elements"},
      {"dtype: DT_INT32 " + Dims({0}) + "tensor_content: '\\1\\0\\0\\0'", "has 4 bytes"},
      {"dtype: DT_STRING " + Dims({3}) + "tensor_content: 'ab'", "too few for 3 elements"},
      {"dtype: DT_STRING " + Dims({1}) + "tensor_content: '\\5ab'", "add up to 5"},
      {"dtype: DT_STRING " + Dims({1}) + "tensor_content: '\\1ab'", "add up to 1"},
      {"dtype: DT_STRING " + Dims({1}) + "tensor_content: '\\377\\377\\377\\377\\377\\1'",
       "ends within the lengths"},
      {"dtype: DT_STRING " + Dims({2}) + "tensor_content: '\\377\\377\\377\\377\\17'",
       "ends within the lengths"},
      {"dtype: DT_STRING " + Dims({1}) + "tensor_content: '\\377\\377\\377\\377\\17'",
       "add up to 4294967295"},
      {"dtype: DT_STRING " + Dims({1000}) + "string_val: '" + std::string(2000, 'x') + "'",
       "at most 1048576"},
      {"dtype: DT_RESOURCE " + Dims({1}) + "tensor_content: '\\1x'", "no resource handle"},
      {"dtype: DT_RESOURCE resource_handle_val { dtypes_and_shapes { dtype: 77 } }", "77"},
  };
  for (const auto& c : kCases) EXPECT_THAT(Read(c.text), HasSubstr(c.want)) << c.text;
}

TEST(TensorFromProto, BoolsAreMadeTrueBools) {
  const StatusOr<Tensor> tensor = TensorFromProto(FromText<tensorflow::TensorProto>(
      "dtype: DT_BOOL " + Dims({3}) + "tensor_content: '\\0\\2\\377'"));
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(std::string(static_cast<const char*>(tensor->raw_data()), 3), std::string("\0\1\1", 3));
}

TEST(TensorFromProto, HandlesInBothCodings) {
  Tensor tensor(DType::kResource, {2});
  for (int i = 0; i < 2; ++i) {
    tensor.mutable_flat<ResourceHandle>()[i] = {.device = "/job:ps/task:1",
                                                .container = "c",
                                                .name = StrCat("v", i),
                                                .type = "Variable",
                                                .elements = {{DType::kFloat, {2, -1}}}};
  }
  tensorflow::TensorProto typed;
  ASSERT_TRUE(TensorToProto(tensor, &typed).ok());
  tensorflow::TensorProto coded = typed;
  std::string lengths, bytes;
  for (const auto& handle : typed.resource_handle_val()) {
    lengths += static_cast<char>(handle.ByteSizeLong());
    bytes += handle.SerializeAsString();
  }
  coded.clear_resource_handle_val();
  coded.set_tensor_content(lengths + bytes);
  for (const auto& proto : {typed, coded}) {
    const StatusOr<Tensor> read = TensorFromProto(proto);
    ASSERT_TRUE(read.ok()) << read.status();
    for (int i = 0; i < 2; ++i) {
      const ResourceHandle& handle = read->flat<ResourceHandle>()[i];
      EXPECT_EQ(handle.device, "/job:ps/task:1");
      EXPECT_EQ(handle.container, "c");
      EXPECT_EQ(handle.name, StrCat("v", i));
      EXPECT_EQ(handle.type, "Variable");
      ASSERT_EQ(handle.elements.size(), 1);
      EXPECT_EQ(handle.elements[0].shape, PartialShape({2, -1}));
    }
  }
  typed.mutable_resource_handle_val()->RemoveLast();  // the last handle repeats
  EXPECT_EQ(TensorFromProto(typed)->flat<ResourceHandle>()[1].name, "v0");
}

TEST(TensorFromProto, EmptyTensorsSendNothing) {
  for (DType dtype : {DType::kFloat, DType::kString, DType::kResource}) {
    tensorflow::TensorProto proto;
    ASSERT_TRUE(TensorToProto(Tensor(dtype, {3, 0}), &proto).ok());
    EXPECT_EQ(proto.tensor_content(), "");
    EXPECT_EQ(TensorFromProto(proto)->shape(), Shape({3, 0}));
  }
}

TEST(AttrFromProto, RoundTrips) {
  const char* kCases[] = {
      "i: -3",
      "f: 0.25",
      "b: true",
      "b: false",
      "s: 'text\\000more'",
      "type: DT_INT32",
      "type: DT_FLOAT_REF",
      "shape { dim { size: 2 } dim { size: -1 } }",
      "shape { unknown_rank: true }",
      "shape { }",
      "tensor { dtype: DT_STRING tensor_shape { } string_val: 'x' }",
      "func { name: 'f' attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'g' value { func { "
      "name: 'h' } } } }",
      "list { }",
      "list { i: 1 i: 2 }",
      "list { f: 0.5 }",
      "list { b: true b: false }",
      "list { s: 'a' s: '' }",
      "list { type: DT_INT64 type: DT_INT32_REF }",
      "list { shape { dim { size: 1 } } shape { unknown_rank: true } }",
      "list { tensor { dtype: DT_STRING tensor_shape { } string_val: 'x' } }",
      "list { func { name: 'f' } func { name: 'g' } }",
  };
  for (const char* text : kCases) {
    const auto proto = FromText<tensorflow::AttrValue>(text);
    const StatusOr<AttrValue> attr = AttrFromProto(proto);
    ASSERT_TRUE(attr.ok()) << text << ": " << attr.status();
    tensorflow::AttrValue again;
    AttrToProto(*attr, &again);
    EXPECT_EQ(again.ShortDebugString(), proto.ShortDebugString());
  }
}

TEST(AttrFromProto, ErrorsSayWhatIsWrong) {
  const struct {
    const char* text;
    const char* want;
  } kCases[] = {
      {"", "no value"},
      {"placeholder: 'T'", "placeholder 'T' outside of the body of a function"},
      {"type: 0", "0"},
      {"type: 55", "55"},
      {"type: 155", "155"},
      {"shape { unknown_rank: true dim { size: 1 } }", "unknown rank with 1 dimensions"},
      {"shape { dim { size: -7 } }", "-7"},
      {"tensor { dtype: DT_INT32 tensor_content: 'x' }", "tensor_content has 1 bytes"},
      {"list { i: 1 f: 2 }", "elements of 2 kinds"},
      {"list { type: DT_INT32 type: 55 }", "element 1: "},
      {"list { shape { dim { size: -7 } } }", "element 0: "},
      {"list { tensor { } }", "element 0: "},
      {"list { tensor { dtype: DT_INT64 } tensor { dtype: DT_INT64 } }", "element 1: "},
      {"func { name: 'f' attr { key: 'a' value { } } }", "attribute 'a' of function 'f'"},
  };
  for (const auto& c : kCases) {
    const Status status = AttrFromProto(FromText<tensorflow::AttrValue>(c.text), 15).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.want)) << c.text;
    EXPECT_FALSE(status.ok()) << c.text;
  }
}

}  // namespace
}  // namespace penstock
