// SPDX-License-Identifier: Apache-2.0
//
// Tests DecodeWav, EncodeWav, AudioSpectrogram and Mfcc. The expected numbers are TensorFlow's.
#include <cmath>
#include <string>

#include "core/op/testing/op_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

// Returns a sound of two channels, of which the second exceeds [-1, 1].
Tensor Sound() {
  Tensor t(DType::kFloat, {40, 2});
  for (int i = 0; i < 40; ++i) {
    t.mutable_data<float>()[2 * i] = static_cast<float>(std::sin(0.3 * i) * 0.7);
    t.mutable_data<float>()[2 * i + 1] =
        static_cast<float>(std::cos(0.05 * std::pow(i, 1.3)) * 1.2);
  }
  return t;
}
double Digest(const Tensor& t) {
  double sum = 0;
  for (int64_t k = 0; k < t.num_elements(); ++k) sum += t.data<float>()[k] * std::cos(1.0 * k);
  return sum;
}

std::string File() {
  const auto wav = OpRunner("EncodeWav").In(Sound()).In(Tensor::Scalar<int32_t>(8000)).Run1();
  CHECK_OK(wav.status());
  return wav->scalar<std::string>();
}
StatusOr<std::vector<Tensor>> Decode(const std::string& file, int64_t channels = -1,
                                     int64_t samples = -1) {
  return OpRunner("DecodeWav")
      .In(Tensor::Scalar(file))
      .Attr("desired_channels", channels)
      .Attr("desired_samples", samples)
      .Run();
}
void ExpectDecoded(int64_t channels, int64_t samples, const Shape& shape, double digest) {
  const auto sound = Decode(File(), channels, samples);
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_EQ((*sound)[0].shape(), shape);
  EXPECT_NEAR(Digest((*sound)[0]), digest, 1e-5);
  EXPECT_EQ((*sound)[1].scalar<int32_t>(), 8000);
}

TEST(Wav, IsTensorFlows) {
  EXPECT_EQ(File().size(), 204);
  ExpectDecoded(-1, -1, {40, 2}, -0.6009871427059965);
  ExpectDecoded(1, -1, {40, 1}, -0.7984387077728001);
  ExpectDecoded(3, 42, {42, 3}, 0.6086411957962754);
  ExpectDecoded(-1, 3, {3, 2}, -0.5104764169626008);
}

std::string Mistake(const std::string& file) {
  return std::string(Decode(file).status().message());
}

TEST(Wav, OtherChunksAreLeftOut) {
  using namespace std::string_literals;  // NOLINT: strings with zero bytes
  const std::string file = File(), chunk = "JUNK\x03\0\0\0abc"s;
  for (const size_t at : {12, 36}) {  // offsets of the format and of the samples
    const auto sound = Decode(file.substr(0, at) + chunk + file.substr(at));
    ASSERT_TRUE(sound.ok()) << sound.status();
    EXPECT_NEAR(Digest((*sound)[0]), -0.6009871427059965, 1e-5);
  }
}

TEST(Wav, LargeSampleRatesAreExact) {
  const int32_t rate = (1 << 24) + 1;
  const auto wav = OpRunner("EncodeWav").In(Sound()).In(Tensor::Scalar(rate)).Run1();
  ASSERT_TRUE(wav.ok()) << wav.status();
  const auto sound = Decode(wav->scalar<std::string>());
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_EQ((*sound)[1].scalar<int32_t>(), rate);
}

TEST(Wav, BrokenFilesAreRefused) {
  const std::string file = File();
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(Decode(file.substr(0, size)).ok()) << size;
  }
  const auto with = [&](size_t at, char byte) {
    std::string broken = file;
    broken[at] = byte;
    return Mistake(broken);
  };
  EXPECT_THAT(with(0, 'X'), HasSubstr("expected 'RIFF'"));
  EXPECT_THAT(with(16, 17), HasSubstr("expected 16 or 18, got 17"));
  EXPECT_THAT(with(20, 2), HasSubstr("expected 1 (PCM), got 2"));
  EXPECT_THAT(with(22, 0), HasSubstr("0 channels"));
  EXPECT_THAT(with(24, 0), HasSubstr("bytes per second"));
  EXPECT_THAT(with(34, 8), HasSubstr("Can only read 16-bit WAV files, but received 8"));
  EXPECT_THAT(with(36, 'D'), HasSubstr("No data chunk"));
  EXPECT_THAT(with(43, 1), HasSubstr("Data too short"));
  EXPECT_THAT(Decode(file, -2).status().message(), HasSubstr("must be >= -1"));
}

StatusOr<Tensor> Spectrogram(int64_t size, int64_t stride, bool squared) {
  return OpRunner("AudioSpectrogram")
      .In(Sound())
      .Attr("window_size", size)
      .Attr("stride", stride)
      .Attr("magnitude_squared", squared)
      .Run1();
}

TEST(AudioSpectrogram, IsTensorFlows) {
  const auto magnitudes = Spectrogram(10, 7, false), squares = Spectrogram(16, 5, true);
  ASSERT_TRUE(magnitudes.ok() && squares.ok());
  EXPECT_EQ(magnitudes->shape(), Shape({2, 5, 9}));
  EXPECT_NEAR(Digest(*magnitudes), -1.8445594, 1e-5);
  EXPECT_NEAR(Digest(*squares), 15.401129, 1e-4);
  const auto too_short = Spectrogram(41, 1, false);
  ASSERT_TRUE(too_short.ok()) << too_short.status();
  EXPECT_EQ(too_short->shape(), Shape({2, 0, 33}));
  EXPECT_THAT(Spectrogram(1, 1, false).status().message(), HasSubstr("window_size"));
  EXPECT_THAT(Spectrogram(4, 0, false).status().message(), HasSubstr("stride"));
}

StatusOr<Tensor> Mfcc(float upper, int64_t filters, int64_t coefficients, int32_t rate = 8000) {
  return OpRunner("Mfcc")
      .In(*Spectrogram(32, 4, true))
      .In(Tensor::Scalar(rate))
      .Attr("upper_frequency_limit", upper)
      .Attr("filterbank_channel_count", filters)
      .Attr("dct_coefficient_count", coefficients)
      .Run1();
}

TEST(Mfcc, IsTensorFlows) {
  const auto few = Mfcc(3500, 6, 4), many = Mfcc(4000, 20, 13);
  ASSERT_TRUE(few.ok() && many.ok()) << few.status() << many.status();
  EXPECT_EQ(few->shape(), Shape({2, 3, 4}));
  EXPECT_NEAR(Digest(*few), -2.9900832, 1e-4);
  EXPECT_NEAR(Digest(*many), -5.5309643, 1e-4);
  EXPECT_THAT(Mfcc(4000, 20, 13, 4000).status().message(), HasSubstr("beyond half"));
  EXPECT_THAT(Mfcc(4000, 20, 21).status().message(), HasSubstr("dct_coefficient_count"));
  EXPECT_THAT(Mfcc(10, 20, 13).status().message(), HasSubstr("lower_frequency_limit"));
}

}  // namespace
}  // namespace penstock
