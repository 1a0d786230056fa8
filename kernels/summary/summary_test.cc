// SPDX-License-Identifier: Apache-2.0
//
// Compares serialized summaries with the bytes of TensorFlow 2.21.
#include <gtest/gtest.h>
#include <png.h>

#include <cmath>
#include <limits>

#include "kernels/array/testing/op_check.h"
#include "proto/tensorflow/event.pb.h"

namespace penstock {
namespace {

const float kNan = std::nanf(""), kInfinity = std::numeric_limits<float>::infinity();

std::string Bytes(const char* bytes, size_t count) { return std::string(bytes, count); }
#define BYTES(literal) Bytes(literal, sizeof(literal) - 1)

Tensor Text(const std::string& s) { return Tensor::Scalar<std::string>(s); }
Tensor Texts(const std::vector<std::string>& s) { return Tensor::Vector<std::string>(s); }
Tensor Floats(const Shape& shape, const std::vector<float>& values) {
  Tensor t(DType::kFloat, shape);
  std::copy(values.begin(), values.end(), t.mutable_data<float>());
  return t;
}
std::string Serialized(const OpCall& call) { return call.Run1().scalar<std::string>(); }

TEST(ScalarSummary, AgreesWithTensorFlow) {
  EXPECT_EQ(Serialized({"ScalarSummary", {Texts({"a", "b"}), Floats({2}, {1.5f, kNan})}}),
            BYTES("\n\x08\n\x01"
                  "a\x15\x00\x00\xc0?\n\x08\n\x01"
                  "b\x15\x00\x00\xc0\x7f"));
  OpCall{"ScalarSummary", {Text("a"), Floats({1}, {1})}}.ExpectError(
      "tags and values are not the same shape: [] != [1] (tag 'a')");
}

TEST(HistogramSummary, AgreesWithTensorFlow) {
  EXPECT_EQ(Serialized({"HistogramSummary", {Text("h"), Floats({0}, {})}}),
            BYTES("\n+\n\x01h*&\t\xff\xff\xff\xff\xff\xff\xef\x7f\x11\xff\xff\xff\xff\xff\xff\xef"
                  "\xff"
                  "2\x08\xff\xff\xff\xff\xff\xff\xef\x7f:\x08\x00\x00\x00\x00\x00\x00\x00\x00"));
  tensorflow::Summary summary;
  ASSERT_TRUE(summary.ParseFromString(
      Serialized({"HistogramSummary", {Text("h"), Floats({5}, {0, 1, 1, -2.5f, 1e30f})}})));
  const tensorflow::HistogramProto& histogram = summary.value(0).histo();
  EXPECT_EQ(histogram.min(), -2.5);
  EXPECT_EQ(histogram.max(), 1e30f);
  EXPECT_EQ(histogram.num(), 5);
  const std::vector<double> limits = {-2.6163114945411393,
                                      -2.3784649950373990,
                                      0,
                                      1e-12,
                                      0.91710761262449490,
                                      1.0088183738869444,
                                      9.9570168252223100e+19,
                                      std::numeric_limits<double>::max()};
  ASSERT_EQ(histogram.bucket_limit_size(), 8);
  for (int i = 0; i < 8; ++i) {
    EXPECT_NEAR(histogram.bucket_limit(i), limits[i], std::abs(limits[i]) * 1e-2) << i;
    EXPECT_EQ(histogram.bucket(i), (std::vector<double>{0, 1, 0, 1, 0, 2, 0, 1})[i]);
  }
}

TEST(HistogramSummary, Mistakes) {
  const auto expect = [](float bad, const char* words) {
    OpCall{"HistogramSummary", {Text("h"), Floats({2}, {0, bad})}}.ExpectError(words);
  };
  expect(kNan, "Nan in summary histogram for: ");
  expect(kInfinity, "Infinity in Histogram for: ");
  OpCall{"HistogramSummary", {Texts({"h"}), Floats({}, {1})}}.ExpectError("tags must be a scalar");
}

struct Picture {
  std::string tag;
  int height, width, channels;
  std::vector<int> pixels;
};
std::vector<Picture> Pictures(const Tensor& images, const Attrs& attrs = {}) {
  tensorflow::Summary summary;
  EXPECT_TRUE(summary.ParseFromString(Serialized({"ImageSummary", {Text("im"), images}, attrs})));
  std::vector<Picture> pictures;
  for (const auto& v : summary.value()) {
    Picture p{v.tag(), v.image().height(), v.image().width(), v.image().colorspace()};
    const std::string& file = v.image().encoded_image_string();
    png_image png{};
    png.version = PNG_IMAGE_VERSION;
    EXPECT_TRUE(png_image_begin_read_from_memory(&png, file.data(), file.size()));
    EXPECT_EQ(static_cast<int>(png.height), p.height);
    EXPECT_EQ(static_cast<int>(png.width), p.width);
    EXPECT_EQ(static_cast<int>(PNG_IMAGE_PIXEL_CHANNELS(png.format)), p.channels);
    std::vector<uint8_t> bytes(PNG_IMAGE_SIZE(png));
    EXPECT_TRUE(png_image_finish_read(&png, nullptr, bytes.data(), 0, nullptr));
    p.pixels.assign(bytes.begin(), bytes.end());
    pictures.push_back(p);
  }
  return pictures;
}

TEST(ImageSummary, AgreesWithTensorFlow) {
  const auto bright = Pictures(Floats({1, 1, 4, 1}, {0, 1, kNan, 0.5f}));
  ASSERT_EQ(bright.size(), 1);
  EXPECT_EQ(bright[0].tag, "im/image/0");
  EXPECT_EQ(bright[0].pixels, (std::vector<int>{0, 255, 255, 127}));
  const auto negative = Pictures(Floats({2, 1, 4, 1}, {-2, 1, 0, 0.5f, -2, 1, 0, 0.5f}));
  ASSERT_EQ(negative.size(), 2);
  EXPECT_EQ(negative[1].tag, "im/image/1");
  EXPECT_EQ(negative[1].pixels, (std::vector<int>{1, 191, 128, 159}));
  const auto one = Pictures(Floats({5, 1, 1, 1}, {1, 2, 3, 4, 5}), {{"max_images", 1}});
  ASSERT_EQ(one.size(), 1);
  EXPECT_EQ(one[0].tag, "im/image");

  Tensor halves(DType::kHalf, {1, 1, 2, 3});
  const float values[] = {-2, 3, kInfinity, 1, 2, 3};
  for (int i = 0; i < 6; ++i) halves.mutable_data<half>()[i] = half(values[i]);
  EXPECT_EQ(Pictures(halves)[0].pixels, (std::vector<int>{255, 0, 0, 85, 170, 255}));
  Tensor bytes(DType::kUint8, {1, 2, 1, 4});
  for (int i = 0; i < 8; ++i) bytes.mutable_data<uint8_t>()[i] = i + 1;
  EXPECT_EQ(Pictures(bytes)[0].pixels, (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(ImageSummary, Mistakes) {
  const auto expect = [](const Shape& shape, const char* words, Attrs attrs = {}) {
    OpCall{"ImageSummary", {Text("im"), Tensor(DType::kFloat, shape)}, attrs}.ExpectError(words);
  };
  expect({1, 1, 2, 2}, "Tensor must be 4-D with last dim 1, 3, or 4, not [1,1,2,2]");
  expect({1, 2, 2}, "not [1,2,2]");
  expect({1, 0, 2, 1}, "must have non-zero dims");
  const Tensor grey(DType::kUint8, {1});
  expect({1, 1, 1, 3}, "got depth = 3, bad_color.size = 1", {{"bad_color", grey}});
  OpCall{"ImageSummary", {Texts({"im"}), Tensor(DType::kFloat, {1, 1, 1, 1})}}.ExpectError(
      "Tags must be a scalar");
}

TEST(AudioSummary, AgreesWithTensorFlow) {
  const Tensor sound = Floats({1, 5}, {0, 0.5f, -1, 1, 2});
  const std::string expected = BYTES(
      "\nZ\n\nau/audio/02L\r\x00\x00\xfa"
      "E\x10\x01\x18\x05\"6RIFF.\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f"
      "\x00\x00\x80>\x00\x00\x02\x00\x10\x00"
      "data\n\x00\x00\x00\x00\x00\x00@\x00\x80\xff\x7f\xff\x7f*\taudio/wav");
  EXPECT_EQ(Serialized({"AudioSummaryV2", {Text("au"), sound, Tensor::Scalar<float>(8000)}}),
            expected);
  EXPECT_EQ(Serialized({"AudioSummary", {Text("au"), sound}, {{"sample_rate", 8000.0f}}}),
            expected);
}

TEST(AudioSummary, Mistakes) {
  const auto expect = [](const Shape& shape, float rate, const char* words) {
    OpCall{"AudioSummaryV2",
           {Text("au"), Tensor(DType::kFloat, shape), Tensor::Scalar<float>(rate)}}
        .ExpectError(words);
  };
  expect({3}, 8000, "Tensor must be 3-D or 2-D, got: [3]");
  expect({1, 2, 2}, 0, "sample_rate must be > 0");
  expect({1, 2, 2}, kNan, "sample_rate must be > 0");
  expect({1, 2, 2}, 3e9f, "samples per second");
  expect({1, 2, 0}, 8000, "cannot have 0 channels");
}

TEST(TensorSummary, AgreesWithTensorFlow) {
  EXPECT_EQ(Serialized({"TensorSummaryV2",
                        {Text("t"), Tensor::Of<bool>({1, 1}, {true}),
                         Text(BYTES("\n\x04\n\x02pl\x12\x01q"))}}),
            BYTES("\n\x1f\n\x01tB\x0f\x08\n\x12\x08\x12\x02\x08\x01\x12\x02\x08\x01\"\x01\x01J\t\n"
                  "\x04\n\x02pl\x12\x01q"));
  tensorflow::Summary summary;
  ASSERT_TRUE(summary.ParseFromString(Serialized({"TensorSummary", {Texts({"a", "bc"})}})));
  EXPECT_EQ(summary.value(0).tensor().string_val(1), "bc");
  EXPECT_NE(summary.value(0).node_name(), "");
}

TEST(MergeSummary, JoinsAndFindsDoubleTags) {
  const std::string a = Serialized({"ScalarSummary", {Text("a"), Floats({}, {1})}});
  const std::string b = Serialized({"ScalarSummary", {Text("b"), Floats({}, {1})}});
  const auto merge = [](std::vector<Tensor> parts) {
    return OpCall{"MergeSummary", {OpCall::Arg(std::move(parts))}};
  };
  EXPECT_EQ(Serialized(merge({Texts({a, ""}), Text(b)})), a + b);
  merge({Text(a), Text(a)}).ExpectError("Duplicate tag a found in summary inputs");
  merge({Text("zzzz")}).ExpectError("Could not parse one of the summary inputs");
}

}  // namespace
}  // namespace penstock
