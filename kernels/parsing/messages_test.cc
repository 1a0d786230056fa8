// SPDX-License-Identifier: Apache-2.0
//
// Tests DecodeProtoV2 and EncodeProto. The expected values are those of TensorFlow 2.21.
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/env.h"
#include "kernels/array/testing/golden.h"
#include "proto/tensorflow/example.pb.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tests below use its names
using Tensors = std::vector<Tensor>;
using Names = std::vector<std::string>;
using Types = std::vector<DType>;

std::string Descriptors() {
  google::protobuf::FileDescriptorSet files;
  CHECK(google::protobuf::TextFormat::ParseFromString(R"(
    file { name: "t.proto" package: "t"
      message_type { name: "M"
        field { name: "i" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 default_value: "7" }
        field { name: "r" number: 2 label: LABEL_REPEATED type: TYPE_SINT64 }
        field { name: "p" number: 3 label: LABEL_REPEATED type: TYPE_UINT32
                options { packed: true } }
        field { name: "s" number: 4 label: LABEL_REPEATED type: TYPE_STRING }
        field { name: "d" number: 5 label: LABEL_OPTIONAL type: TYPE_DOUBLE default_value: "1.5" }
        field { name: "e" number: 6 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: ".t.E"
                default_value: "B" }
        field { name: "m" number: 7 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".t.M" }
        field { name: "b" number: 8 label: LABEL_REPEATED type: TYPE_BOOL }
        field { name: "f" number: 9 label: LABEL_OPTIONAL type: TYPE_FLOAT }
        field { name: "x" number: 10 label: LABEL_REPEATED type: TYPE_FIXED64 }
        field { name: "g" number: 11 label: LABEL_OPTIONAL type: TYPE_GROUP type_name: ".t.M.G" }
        field { name: "z" number: 12 label: LABEL_OPTIONAL type: TYPE_STRING
                default_value: "none" }
        nested_type { name: "G"
          field { name: "y" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 } } }
      enum_type { name: "E" value { name: "A" number: 0 } value { name: "B" number: 3 } } })",
                                                      &files));
  return files.SerializeAsString();
}

template <size_t kSize>
std::string Raw(const char (&bytes)[kSize]) {
  return std::string(bytes, kSize - 1);
}

const std::string& MessageA() {
  static const auto& message = *new std::string(
      Raw("\x08\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x02\x10\x03\x10\x06\x1a\x03\x04\xac\x02"
          "\"\x02"
          "ab\"\x00)\x00\x00\x00\x00\x00\x00\xd0?0\x00:\x02\x08\t@\x01@\x00M\x00\x00 @Q\x05\x00"
          "\x00\x00\x00\x00\x00\x00"));
  return message;
}
const std::string kMessageB =
    Raw("\x1a\x01\x08\"\x01"
        "c");

OpCall Decode(std::vector<std::string> messages, Names names, Types types, Attrs attrs = {}) {
  attrs.insert({{"message_type", "t.M"},
                {"descriptor_source", "bytes://" + Descriptors()},
                {"field_names", std::move(names)},
                {"output_types", std::move(types)}});
  return {"DecodeProtoV2", {S({static_cast<int64_t>(messages.size())}, messages)}, attrs};
}

TEST(DecodeProto, AllTypes) {
  const Names names = {"s", "i", "r", "p", "d", "e", "m", "b", "f", "x", "z"};
  const Types types = {DType::kString, DType::kInt64,  DType::kInt64,  DType::kUint64,
                       DType::kDouble, DType::kInt32,  DType::kString, DType::kBool,
                       DType::kDouble, DType::kUint64, DType::kString};
  const auto call = [&](bool sanitize) {
    return Decode({MessageA(), kMessageB}, names, types, {{"sanitize", sanitize}});
  };
  for (const bool sanitize : {false, true}) {
    ExpectOutputs(
        call(sanitize),
        {I({2, 11}, {2, 1, 3, 2, 1, 1, 1, 2, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}),
         S({2, 2}, {"ab", "", "c", ""}), L({2, 1}, {-5, 7}), L({2, 3}, {1, -2, 3, 0, 0, 0}),
         U64({2, 2}, {4, 300, 8, 0}), D({2, 1}, {0.25, 1.5}), I({2, 1}, {0, 3}),
         S({2, 1}, {"\x08\t", ""}), B({2, 2}, {true, false, false, false}), D({2, 1}, {2.5, 0}),
         U64({2, 1}, {5, 0}), S({2, 1}, {"none", "none"})});
  }
}

TEST(DecodeProto, WireFormat) {
  // The last value of a field that is not repeated counts; packed and other values may alternate.
  ExpectOutputs(Decode({Raw("\x08\x01\x08\x02\x12\x03\x02\x04\x06\x10\x08")}, {"i", "r"},
                       {DType::kInt32, DType::kInt64}),
                {I({1, 2}, {1, 4}), I({1, 1}, {2}), L({1, 4}, {1, 2, 3, 4})});
  // Values of a wrong wire type are skipped.
  ExpectOutputs(Decode({Raw("\x0d\x01\x00\x00\x00")}, {"i"}, {DType::kInt32}),
                {I({1, 1}, {0}), I({1, 1}, {7})});
  ExpectOutputs(
      Decode({Raw("\x5b\x08\x07\x5c\x08\x03")}, {"g", "i"}, {DType::kString, DType::kInt32}),
      {I({1, 2}, {1, 1}), S({1, 1}, {"\x5b\x08\x07\x5c"}), I({1, 1}, {3})});
  ExpectOutputs(Decode({""}, {}, {}), {I({1, 0}, {})});
  for (const std::string& bad : {Raw("\x08"),
                                 Raw("\x22\x05"
                                     "a"),
                                 Raw("\x12\x01\x80"), Raw("\x5c"), Raw("\x00\x01"),
                                 Raw("\x5b\x08\x07"), Raw("\x22\xff\xff\xff\xff\x0f")}) {
    Decode({bad}, {"i", "s", "r"}, {DType::kInt32, DType::kString, DType::kInt64})
        .ExpectError("malformed message of type t.M");
  }
}

TEST(DecodeProto, Text) {
  ExpectOutputs(Decode({"i: 4 z: \"q\""}, {"z", "i"}, {DType::kString, DType::kInt32},
                       {{"message_format", "text"}}),
                {I({1, 2}, {1, 1}), S({1, 1}, {"q"}), I({1, 1}, {4})});
  Decode({"i: "}, {"i"}, {DType::kInt32}, {{"message_format", "text"}})
      .ExpectError("Unable to parse text protobuf");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "m { ";
  Decode({deep}, {"i"}, {DType::kInt32}, {{"message_format", "text"}}).ExpectError("parse text");
  Decode({""}, {"i"}, {DType::kInt32}, {{"message_format", "json"}}).ExpectError("message_format");
}

TEST(DecodeProto, DescriptorSources) {
  tensorflow::Example example;
  (*example.mutable_features()->mutable_feature())["k"].mutable_int64_list()->add_value(3);
  ExpectOutputs(Decode({example.SerializeAsString()}, {"features"}, {DType::kString},
                       {{"descriptor_source", "local://"}, {"message_type", "tensorflow.Example"}}),
                {I({1, 1}, {1}), S({1, 1}, {example.features().SerializeAsString()})});
  const std::string path = testing::TempDir() + "/messages_test.descriptors";
  ASSERT_TRUE(Env::Real().WriteFileAtomically(path, Descriptors()).ok());
  ExpectOutputs(Decode({""}, {"i"}, {DType::kInt32}, {{"descriptor_source", path}}),
                {I({1, 1}, {0}), I({1, 1}, {7})});
  const auto expect_error = [](const Attrs& attrs, const char* error) {
    Decode({""}, {"i"}, {DType::kInt32}, attrs).ExpectError(error);
  };
  expect_error({{"descriptor_source", "/nonexistent"}}, "/nonexistent");
  expect_error({{"descriptor_source", "bytes://\n"}}, "FileDescriptorSet");
  expect_error({{"message_type", "t.N"}}, "No descriptor found for message type t.N");
}

TEST(DecodeProto, Mistakes) {
  Decode({""}, {"i"}, {DType::kFloat}).ExpectError("int32 fields have int32, not float");
  Decode({""}, {"nope"}, {DType::kInt32}).ExpectError("Unknown field: nope in message type t.M");
  Decode({}, {"i"}, {DType::kInt32}).ExpectError("at least one message");
  Decode({""}, {"i"}, {}).ExpectError("1 field_names, but 0 types");
  Decode({""}, {"i", "i"}, {DType::kInt32, DType::kInt64}).ExpectError("twice");
}

OpCall Encode(const Tensor& sizes, const Tensors& values, Names names) {
  return {"EncodeProto",
          {sizes, values},
          {{"message_type", "t.M"},
           {"descriptor_source", "bytes://" + Descriptors()},
           {"field_names", std::move(names)}}};
}

TEST(EncodeProto, AllTypes) {
  std::string expected = MessageA();
  expected.erase(expected.find("\x10\x06"), 2);  // the third value of r
  expected.replace(expected.find(Raw("0\x00")), 2, "0\x03");
  ExpectOutputs(
      Encode(I({1, 10}, {1, 2, 2, 2, 1, 1, 1, 1, 2, 1}),
             {I({1, 1}, {-5}), L({1, 2}, {1, -2}), U32({1, 2}, {4, 300}), S({1, 2}, {"ab", ""}),
              D({1, 1}, {.25}), I({1, 1}, {3}), S({1, 1}, {"\x08\t"}), F({1, 1}, {2.5}),
              B({1, 2}, {true, false}), U64({1, 1}, {5})},
             {"i", "r", "p", "s", "d", "e", "m", "f", "b", "x"}),
      {S({1}, {expected})});
  ExpectOutputs(
      Encode(I({2, 2}, {0, 1, 1, 0}), {L({2, 1}, {-5, 6}), D({2, 1}, {.5, .25})}, {"i", "f"}),
      {S({2}, {Raw("M\x00\x00\x00?"), "\x08\x06"})});
  ExpectOutputs(Encode(I({1, 2}, {1, 1}), {S({1, 1}, {"q"}), S({1, 1}, {"\x08\x01"})}, {"z", "g"}),
                {S({1}, {"[\x08\x01\\b\x01q"})});
}

TEST(EncodeProto, Mistakes) {
  const Tensor one = I({1, 1}, {1});
  Encode(I({1, 1}, {2}), {one}, {"i"}).ExpectError("at most the number of values, 1: is 2");
  Encode(I({1, 1}, {-1}), {one}, {"i"}).ExpectError("sizes must be >= 0");
  Encode(I({1, 2}, {1, 1}), {one}, {"i"}).ExpectError("sizes should be batch_size");
  Encode(I({1}, {1}), {I({1}, {1})}, {"i"}).ExpectError("");
  Encode(one, {F({1, 1}, {1})}, {"i"}).ExpectError("int32 fields have int32, not float");
  Encode(I({1, 2}, {1, 1}), {one, I({2, 1}, {1, 2})}, {"i", "e"}).ExpectError("must match");
}

}  // namespace
}  // namespace penstock
