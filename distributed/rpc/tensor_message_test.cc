// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/tensor_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <random>

#include "core/op/attr.h"
#include "core/tensor/testing/test_variant.h"
#include "core/wire/tensor_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/master.pb.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr TensorField kFeed = {2, true, "feed"};

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const auto& s : slices) bytes.append(reinterpret_cast<const char*>(s.begin()), s.size());
  return bytes;
}

// Splits the bytes into slices of 1000 bytes, so that fields cross their borders.
grpc::ByteBuffer BufferOf(const std::string& bytes) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += 1000) slices.emplace_back(bytes.substr(at, 1000));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::vector<Tensor> Values() {
  Tensor large(DType::kDouble, Shape({3, 1000}));
  for (int i = 0; i < 3000; ++i) large.mutable_flat<double>()[i] = i;
  return {Tensor::Scalar(1.5f),
          large,
          large.Slice(1, 3),
          Tensor(DType::kInt32, Shape({0, 5})),
          Tensor::Vector<std::string>({"a", std::string(10'000, 'b')}),
          TestWords::Of({"c", std::string(10'000, 'd')})};
}

TEST(TensorMessageTest, WritesWhatProtobufReads) {
  tensorflow::RunStepRequest rest;
  rest.set_session_handle("h");
  rest.add_fetch("y:0");
  TensorMessageWriter writer;
  writer.Add(rest);
  for (const Tensor& value : Values()) writer.AddNamedTensor(2, "x:0", value);
  const auto buffer = writer.Take();
  ASSERT_TRUE(buffer.ok());
  tensorflow::RunStepRequest request;
  ASSERT_TRUE(request.ParseFromString(Bytes(*buffer)));
  EXPECT_EQ(request.session_handle(), "h");
  EXPECT_EQ(request.fetch(0), "y:0");
  ASSERT_EQ(request.feed_size(), 6);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(request.feed(i).name(), "x:0");
    const auto value = TensorFromProto(request.feed(i).tensor());
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(AttrValue(*value), AttrValue(Values()[i]));
  }
}

TEST(TensorMessageTest, SaysWhichVariantsCannotBeWritten) {
  TensorMessageWriter writer;
  writer.AddNamedTensor(2, "x:0", TestWords::Of({"secret"}));
  writer.AddNamedTensor(2, "y:0", Tensor::Scalar(1.5f));
  EXPECT_EQ(writer.Take().status(), Unimplemented("a secret does not travel"));
}

// The tensors share one buffer, which is not copied.
TEST(TensorMessageTest, NamesTheLargestTensorOfAMessageAboveTwoGib) {
  const Tensor large(DType::kUint8, Shape({int64_t{3} << 20}));
  const Tensor larger(DType::kUint8, Shape({int64_t{4} << 20}));
  const auto error_of = [&](bool named) {
    TensorMessageWriter writer;
    for (int i = 0; i < 700; ++i) {
      const Tensor& value = i == 7 ? larger : large;
      named ? writer.AddNamedTensor(2, StrCat("x", i), value) : writer.AddTensor(3, "", value);
    }
    return writer.Take().status();
  };
  EXPECT_EQ(error_of(true),
            ResourceExhausted("the tensors are larger than 2 GiB together; the largest one, 'x7', "
                              "takes 4194304 bytes"));
  EXPECT_THAT(std::string(error_of(false).message()),
              HasSubstr("the largest one, number 7, takes"));
}

TEST(TensorMessageTest, ReadsWhatProtobufWrites) {
  tensorflow::RunStepRequest request;
  request.set_session_handle("h");
  for (const Tensor& value : Values()) {
    tensorflow::NamedTensorProto* const feed = request.add_feed();
    feed->set_name(StrCat("x:", request.feed_size()));
    ASSERT_TRUE(TensorToProto(value, feed->mutable_tensor()).ok());
  }
  // Typed values, the last of which is repeated to fill the tensor.
  tensorflow::TensorProto* const typed = request.add_feed()->mutable_tensor();
  typed->set_dtype(tensorflow::DT_INT64);
  typed->mutable_tensor_shape()->add_dim()->set_size(3);
  typed->add_int64_val(4);
  typed->add_int64_val(5);
  request.add_target("t");
  grpc::ByteBuffer buffer = BufferOf(request.SerializeAsString());
  tensorflow::RunStepRequest rest;
  std::vector<std::pair<std::string, Tensor>> feeds;
  const Status status = ReadTensorMessage(&buffer, kFeed, &rest, &feeds);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(rest.session_handle(), "h");
  EXPECT_EQ(rest.target(0), "t");
  EXPECT_EQ(rest.feed_size(), 0);
  ASSERT_EQ(feeds.size(), 7);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(feeds[i].first, StrCat("x:", i + 1));
    EXPECT_EQ(AttrValue(feeds[i].second), AttrValue(Values()[i])) << i;
  }
  EXPECT_EQ(AttrValue(feeds[6].second), AttrValue(Tensor::Vector<int64_t>({4, 5, 5})));
}

TEST(TensorMessageTest, PlainTensorsWithoutNames) {
  TensorMessageWriter writer;
  for (const Tensor& value : Values()) writer.AddTensor(3, "", value);
  auto buffer = writer.Take();
  ASSERT_TRUE(buffer.ok());
  tensorflow::RunCallableRequest rest;
  std::vector<std::pair<std::string, Tensor>> feeds;
  ASSERT_TRUE(ReadTensorMessage(&*buffer, {3, false, "feed"}, &rest, &feeds).ok());
  ASSERT_EQ(feeds.size(), 6);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(AttrValue(feeds[i].second), AttrValue(Values()[i]));
}

TEST(TensorMessageTest, BadTensorsAreNamed) {
  tensorflow::RunStepRequest request;
  tensorflow::NamedTensorProto* const feed = request.add_feed();
  feed->set_name("x:0");
  feed->mutable_tensor()->set_dtype(tensorflow::DT_FLOAT);
  feed->mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 62);
  feed->mutable_tensor()->set_tensor_content("1234");
  grpc::ByteBuffer buffer = BufferOf(request.SerializeAsString());
  tensorflow::RunStepRequest rest;
  std::vector<std::pair<std::string, Tensor>> feeds;
  const Status status = ReadTensorMessage(&buffer, kFeed, &rest, &feeds);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("feed 'x:0': tensor_content of 4 bytes"));
}

// Returns the bytes of a RunStepRequest with one feed, whose tensor has the bytes `tensor`.
std::string RequestWith(const std::string& tensor) {
  tensorflow::NamedTensorProto named;
  named.set_name("x:0");
  std::string feed = named.SerializeAsString();
  const auto append = [](std::string* to, int tag, const std::string& bytes) {
    google::protobuf::io::StringOutputStream stream(to);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.WriteTag(tag);
    out.WriteVarint32(static_cast<uint32_t>(bytes.size()));
    out.WriteString(bytes);
  };
  append(&feed, 2 << 3 | 2, tensor);
  std::string request;
  append(&request, 2 << 3 | 2, feed);
  return request;
}

StatusOr<Tensor> ReadOne(const std::string& tensor) {
  grpc::ByteBuffer buffer = BufferOf(RequestWith(tensor));
  tensorflow::RunStepRequest rest;
  std::vector<std::pair<std::string, Tensor>> feeds;
  RETURN_IF_ERROR(ReadTensorMessage(&buffer, kFeed, &rest, &feeds));
  return feeds.at(0).second;
}

TEST(TensorMessageTest, FieldsInUnusualOrder) {
  tensorflow::TensorProto head, content, empty, values;
  head.set_dtype(tensorflow::DT_INT32);
  head.mutable_tensor_shape()->add_dim()->set_size(1);
  content.set_tensor_content(std::string("\7\0\0\0", 4));
  values.add_int_val(5);
  const std::string h = head.SerializeAsString(), c = content.SerializeAsString();
  const std::string no_content("\x22\0", 2), v = values.SerializeAsString();
  const AttrValue seven(Tensor::Vector<int32_t>({7})), five(Tensor::Vector<int32_t>({5}));
  ASSERT_TRUE(ReadOne(h + c).ok());
  EXPECT_EQ(AttrValue(*ReadOne(h + c)), seven);
  EXPECT_EQ(AttrValue(*ReadOne(c + h)), seven);
  EXPECT_EQ(AttrValue(*ReadOne(h + no_content + v)), five);
  // A tensor with two contents: protobuf would use the last one, but no writer sends two.
  EXPECT_FALSE(ReadOne(h + c + c).ok());
  EXPECT_FALSE(ReadOne(h + c + h).ok());
}

TEST(TensorMessageTest, ShapesThatNoTensorHas) {
  tensorflow::TensorProto proto;
  proto.set_dtype(tensorflow::DT_INT32);
  for (int i = 0; i < 2; ++i) {
    proto.mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 40);
  }
  proto.set_tensor_content("1234");
  EXPECT_EQ(ReadOne(proto.SerializeAsString()).status().code(), StatusCode::kInvalidArgument);
}

// If parsing took quadratic time, this test would take minutes.
TEST(TensorMessageTest, ManyContentsTakeLinearTime) {
  tensorflow::TensorProto strings;
  strings.set_dtype(tensorflow::DT_STRING);
  std::string bytes = strings.SerializeAsString();
  for (int i = 0; i < 1'000'000; ++i) bytes.append("\x22\1a", 3);
  EXPECT_FALSE(ReadOne(bytes).ok());
}

// The reader allocates no memory for a length that exceeds the message.
TEST(TensorMessageTest, LengthsBeyondTheMessageAllocateNothing) {
  for (const std::string tag : {"\x12", "\x12\xff\xff\xff\xff\x07\x12"}) {
    grpc::ByteBuffer buffer = BufferOf(tag + "\xff\xff\xff\xff\x07");
    tensorflow::RunStepRequest rest;
    std::vector<std::pair<std::string, Tensor>> feeds;
    EXPECT_FALSE(ReadTensorMessage(&buffer, kFeed, &rest, &feeds).ok());
  }
}

// For any bytes, the reader returns an error or the message that protobuf reads from them.
TEST(TensorMessageTest, AnyBytesAreSafe) {
  google::protobuf::LogSilencer quiet;
  tensorflow::RunStepRequest request;
  request.set_session_handle("h");
  for (const Tensor& value : {Tensor::Vector<float>({1, 2, 3}), Tensor::Scalar<std::string>("s")}) {
    request.add_feed()->set_name("x:0");
    CHECK_OK(TensorToProto(value, request.mutable_feed(request.feed_size() - 1)->mutable_tensor()));
  }
  const std::string good = request.SerializeAsString();
  std::mt19937 random(1);
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    for (int n = random() % 3; n >= 0; --n) bytes[random() % bytes.size()] = random();
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    grpc::ByteBuffer buffer = BufferOf(bytes);
    tensorflow::RunStepRequest rest;
    std::vector<std::pair<std::string, Tensor>> feeds;
    if (!ReadTensorMessage(&buffer, kFeed, &rest, &feeds).ok()) continue;
    ++read;
    // Protobuf accepts fewer characters in names.
    if (!request.ParseFromString(bytes)) continue;
    ASSERT_EQ(request.feed_size(), feeds.size());
    for (size_t f = 0; f < feeds.size(); ++f) {
      const auto value = TensorFromProto(request.feed(f).tensor());
      ASSERT_TRUE(value.ok()) << value.status() << request.DebugString()
                              << feeds[f].second.ToString();
      ASSERT_EQ(AttrValue(*value).ToString(), AttrValue(feeds[f].second).ToString());
    }
  }
  EXPECT_GT(read, 500);
}

}  // namespace
}  // namespace penstock
