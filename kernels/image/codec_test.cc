// SPDX-License-Identifier: Apache-2.0
//
// Tests decoding and encoding of images, and decoding of data that is not an image, is truncated,
// or has flipped bits: all of it must give pixels or InvalidArgument.
#include <cstdlib>
#include <string>
#include <vector>

#include "core/op/testing/op_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

StatusOr<Tensor> Decode(const char* op, const std::string& data, const Attrs& attrs = {}) {
  OpRunner run(op);
  for (const auto& [name, value] : attrs) run.Attr(name, value);
  return run.In(Tensor::Scalar<std::string>(data)).Run1();
}
std::string Encode(const char* op, const Tensor& image, const Attrs& attrs = {}) {
  OpRunner run(op);
  for (const auto& [name, value] : attrs) run.Attr(name, value);
  const auto data = run.In(image).Run1();
  EXPECT_TRUE(data.ok()) << data.status();
  return data.ok() ? data->data<std::string>()[0] : "";
}
std::string Mistake(const char* op, const std::string& data, const Attrs& attrs = {}) {
  return std::string(Decode(op, data, attrs).status().message());
}

// Returns a smooth image, which the compression of JPEG hardly changes.
Tensor Gradient(int64_t height, int64_t width, int64_t channels) {
  Tensor t(DType::kUint8, Shape({height, width, channels}));
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const int64_t p = i / channels;
    t.mutable_data<uint8_t>()[i] =
        static_cast<uint8_t>(p / width * 5 + p % width * 7 + i % channels * 40);
  }
  return t;
}

// Returns a GIF of two frames of 3 x 2 pixels; the second covers a part of the image and has a
// transparent pixel.
const std::string& Animation() {
  static const char bytes[] =
      "\x47\x49\x46\x38\x39\x61\x03\x00\x02\x00\x81\x00\x00\x00\x00\x00\xff\x00\x00\x00\xff\x00\x0a"
      "\x14\x1e\x2c\x00\x00\x00\x00\x03\x00\x02\x00\x00\x02\x04\x8c\x38\x30\x2a\x00\x21\xf9\x04\x01"
      "\x00\x00\x02\x00\x2c\x01\x00\x00\x00\x02\x00\x02\x00\x00\x02\x03\x9c\x18\x15\x00\x3b";
  static const std::string& data = *new std::string(bytes, sizeof bytes - 1);
  return data;
}
// A frame of one color for Gif(): 0 red, 1 green, 2 blue, 3 grey (9, 9, 9).
struct GifFrame {
  char left, top, width, height, color;
};

// Returns a GIF with a screen of 2 x 2 pixels; frames may be larger. It is not compressed: all
// codes have three bits, with a Clear code (4) before each pixel; 5 is the end.
std::string Gif(const std::vector<GifFrame>& frames) {
  std::string gif("GIF89a\2\0\2\0\x81\0\0\xff\0\0\0\xff\0\0\0\xff\x09\x09\x09", 25);
  for (const GifFrame& frame : frames) {
    const char place[] = {',', frame.left, 0, frame.top, 0, frame.width, 0, frame.height, 0, 0, 2};
    gif.append(place, sizeof place);
    std::vector<int> codes;
    for (int i = 0; i < frame.width * frame.height; ++i) {
      codes.insert(codes.end(), {4, frame.color});
    }
    codes.push_back(5);
    std::string bytes((codes.size() * 3 + 7) / 8, '\0');
    for (size_t bit = 0; bit < codes.size() * 3; ++bit) {
      bytes[bit / 8] |= static_cast<char>((codes[bit / 3] >> bit % 3 & 1) << bit % 8);
    }
    gif += static_cast<char>(bytes.size());
    gif += bytes + '\0';
  }
  return gif + ';';
}

// Returns a BMP of one row of two pixels, blue first, padded to four bytes.
const std::string& Bitmap() {
  static const char bytes[] =
      "BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\1\0\0\0\1\0\x18\0\0\0\0\0\x08\0\0\0"
      "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\2\3\4\5\6\0\0";
  static const std::string& data = *new std::string(bytes, sizeof bytes - 1);
  return data;
}

TEST(PngTest, KeepsEveryPixel) {
  for (int64_t channels : {1, 2, 3, 4}) {
    const Tensor image = Gradient(5, 7, channels);
    const std::string png = Encode("EncodePng", image);
    const auto again = Decode("DecodePng", png);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->shape(), image.shape());
    EXPECT_THAT(again->flat<uint8_t>(), ElementsAreArray(image.flat<uint8_t>()));
  }
  Tensor wide(DType::kUint16, Shape({2, 2, 1}));
  for (int i = 0; i < 4; ++i) wide.mutable_data<uint16_t>()[i] = static_cast<uint16_t>(257 * i + 1);
  const auto again = Decode("DecodePng", Encode("EncodePng", wide), {{"dtype", DType::kUint16}});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(again->flat<uint16_t>(), ElementsAre(1, 258, 515, 772));
}

TEST(PngTest, ConvertsToTheChannelsAskedFor) {
  const std::string png =
      Encode("EncodePng", Tensor::Of<uint8_t>({1, 2, 3}, {255, 0, 0, 10, 20, 30}));
  EXPECT_THAT(Decode("DecodePng", png, {{"channels", 4}})->flat<uint8_t>(),
              ElementsAre(255, 0, 0, 255, 10, 20, 30, 255));
  const std::string grey = Encode("EncodePng", Tensor::Of<uint8_t>({1, 1, 1}, {7}));
  EXPECT_THAT(Decode("DecodePng", grey, {{"channels", 3}})->flat<uint8_t>(), ElementsAre(7, 7, 7));
  const auto real = Decode("DecodeImage", grey, {{"dtype", DType::kFloat}});
  ASSERT_TRUE(real.ok()) << real.status();
  EXPECT_NEAR(real->flat<float>()[0], 7 / 255., 1e-6);
}

TEST(PngTest, EncodesBatches) {
  const auto data =
      OpRunner("EncodePng").In(Tensor(Gradient(4, 2, 3).Reshaped(Shape({2, 2, 2, 3})))).Run1();
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->shape(), Shape({2}));
}

TEST(JpegTest, ComesBackNearly) {
  for (int64_t channels : {1, 3}) {
    const Tensor image = Gradient(16, 24, channels);
    for (bool progressive : {false, true}) {
      const std::string jpeg = Encode("EncodeJpeg", image,
                                      {{"quality", 100},
                                       {"progressive", progressive},
                                       {"chroma_downsampling", false},
                                       {"xmp_metadata", "<x/>"}});
      const auto again = Decode("DecodeJpeg", jpeg, {{"dct_method", "INTEGER_ACCURATE"}});
      ASSERT_TRUE(again.ok()) << again.status();
      ASSERT_EQ(again->shape(), image.shape());
      for (int64_t i = 0; i < image.num_elements(); ++i) {
        ASSERT_LE(std::abs(again->data<uint8_t>()[i] - image.data<uint8_t>()[i]), 4) << i;
      }
      const auto half = Decode("DecodeJpeg", jpeg, {{"ratio", 2}});
      ASSERT_TRUE(half.ok()) << half.status();
      EXPECT_EQ(half->shape(), Shape({8, 12, channels}));
      const auto size = Decode("ExtractJpegShape", jpeg);
      ASSERT_TRUE(size.ok()) << size.status();
      EXPECT_THAT(size->flat<int32_t>(), ElementsAre(16, 24, channels));
    }
  }
}

TEST(JpegTest, WhatIsCutShortIsRecoveredWhenAskedFor) {
  const std::string jpeg = Encode("EncodeJpeg", Gradient(64, 64, 3));
  const std::string most = jpeg.substr(0, jpeg.size() - 40);
  EXPECT_THAT(Mistake("DecodeJpeg", most), HasSubstr("rows"));
  const auto image =
      Decode("DecodeJpeg", most, {{"try_recover_truncated", true}, {"acceptable_fraction", 0.3f}});
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->shape(), Shape({64, 64, 3}));
}

TEST(JpegTest, CropsAWindow) {
  const Tensor image = Gradient(8, 8, 3);
  const std::string jpeg = Encode("EncodeJpeg", image);
  const Tensor whole = *Decode("DecodeJpeg", jpeg);
  const auto crop = OpRunner("DecodeAndCropJpeg")
                        .In(Tensor::Scalar<std::string>(jpeg))
                        .In(Tensor::Vector<int32_t>({2, 3, 4, 5}))
                        .Run1();
  ASSERT_TRUE(crop.ok()) << crop.status();
  ASSERT_EQ(crop->shape(), Shape({4, 5, 3}));
  EXPECT_EQ(crop->data<uint8_t>()[0], whole.data<uint8_t>()[(2 * 8 + 3) * 3]);
  const auto outside = OpRunner("DecodeAndCropJpeg")
                           .In(Tensor::Scalar<std::string>(jpeg))
                           .In(Tensor::Vector<int32_t>({2, 3, 7, 5}))
                           .Run1();
  EXPECT_THAT(std::string(outside.status().message()), HasSubstr("crop window"));
}

// The expected pixels are those that TensorFlow decodes.
TEST(GifTest, FramesCoverWhatWasThereBefore) {
  const auto image = Decode("DecodeGif", Animation());
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->shape(), Shape({2, 2, 3, 3}));
  EXPECT_THAT(image->flat<uint8_t>(),
              ElementsAre(255, 0, 0, 0, 255, 0, 10, 20, 30, 0, 0, 0, 255, 0, 0, 0, 255, 0,  //
                          255, 0, 0, 10, 20, 30, 10, 20, 30, 0, 0, 0, 255, 0, 0, 0, 255, 0));
  EXPECT_EQ(Decode("DecodeImage", Animation())->shape(), Shape({2, 2, 3, 3}));
  EXPECT_EQ(Decode("DecodeImage", Animation(), {{"expand_animations", false}})->shape(),
            Shape({2, 3, 3}));
  EXPECT_THAT(Mistake("DecodePng", Animation()), HasSubstr("frames"));
  EXPECT_EQ(Decode("DecodeGif", Encode("EncodePng", Gradient(2, 2, 4)))->shape(),
            Shape({1, 2, 2, 3}));
}

// The expected pixels are those that TensorFlow decodes: the canvas has the width of the widest
// frame and the height of the highest.
TEST(GifTest, FramesOfDifferentSize) {
  const std::string wide_then_high =
      Gif({{0, 0, 1, 1, 0}, {0, 0, 3, 1, 1}, {0, 0, 1, 2, 2}, {2, 1, 2, 2, 3}, {9, 9, 1, 1, 0}});
  const auto image = Decode("DecodeGif", wide_then_high);
  ASSERT_TRUE(image.ok()) << image.status();
  ASSERT_EQ(image->shape(), Shape({5, 2, 3, 3}));
  std::string colors;  // first letters of the colors; a dot for black
  for (int64_t i = 0; i < image->num_elements(); i += 3) {
    const uint8_t* rgb = image->data<uint8_t>() + i;
    colors += rgb[0] == 255 ? 'r' : rgb[1] == 255 ? 'g' : rgb[2] == 255 ? 'b' : rgb[0] ? '9' : '.';
  }
  EXPECT_EQ(colors,
            "r....."
            "ggg..."
            "bggb.."
            "bggb.9"
            "bggb.9");
  EXPECT_EQ(Decode("DecodeImage", wide_then_high, {{"expand_animations", false}})->shape(),
            Shape({2, 3, 3}));
}

TEST(BmpTest, BlueComesFirst) {
  const auto image = Decode("DecodeBmp", Bitmap());
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->shape(), Shape({1, 2, 3}));
  EXPECT_THAT(image->flat<uint8_t>(), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(Decode("DecodeBmp", Bitmap(), {{"channels", 4}})->flat<uint8_t>(),
              ElementsAre(3, 2, 1, 255, 6, 5, 4, 255));
  EXPECT_THAT(Mistake("DecodeBmp", Bitmap(), {{"channels", 1}}), HasSubstr("channels"));
  EXPECT_THAT(Mistake("DecodePng", Bitmap()), HasSubstr("decode_bmp"));
}

TEST(HostileTest, NoFormatIsNoImage) {
  EXPECT_THAT(Mistake("DecodeImage", ""), HasSubstr("Unknown image file format"));
  EXPECT_THAT(Mistake("DecodeImage", "hello"), HasSubstr("Unknown image file format"));
  std::string huge = Bitmap();
  huge.replace(18, 8, std::string("\xff\xff\xff\x7f\xff\xff\xff\x7f", 8));
  EXPECT_THAT(Mistake("DecodeBmp", huge), HasSubstr("too large"));
  std::string png = Encode("EncodePng", Gradient(2, 2, 1));
  png.replace(16, 8, std::string("\x7f\xff\xff\xff\x7f\xff\xff\xff", 8));
  EXPECT_FALSE(Decode("DecodePng", png).ok());
}

TEST(HostileTest, CutShortOrDamagedDataIsAnErrorAtMost) {
  const std::string images[] = {Encode("EncodePng", Gradient(9, 9, 3)),
                                Encode("EncodeJpeg", Gradient(9, 9, 3)), Animation(), Bitmap()};
  for (const std::string& image : images) {
    ASSERT_TRUE(Decode("DecodeImage", image).ok());
    for (size_t n = 0; n < image.size(); n += 3) {
      // A truncated image may still decode if only its trailer is missing, so the result is
      // ignored.
      (void)Decode("DecodeImage", image.substr(0, n)).ok();
    }
    for (size_t i = 0; i < image.size() * 8; i += 5) {
      std::string damaged = image;
      damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ 1 << i % 8);
      // Sizes of some gigabytes are legal, but this test does not have the memory for them.
      if (i / 8 >= 4 && i / 8 < 32 && damaged[i / 8] != image[i / 8] && i % 8 > 3) continue;
      const auto result = Decode("DecodeImage", damaged);
      if (!result.ok()) {
        EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
      }
    }
    EXPECT_FALSE(Decode("DecodeImage", image.substr(0, image.size() / 3)).ok());
  }
}

}  // namespace
}  // namespace penstock
