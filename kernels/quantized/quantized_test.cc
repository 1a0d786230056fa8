// SPDX-License-Identifier: Apache-2.0
//
// Tests the quantized ops. The results must equal TensorFlow's bit by bit.
#include <limits>
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

using Result = StatusOr<std::vector<Tensor>>;

const Tensor kNumbers =
    Tensor::Vector<float>({-9, -2.5, -1.003f, -0.3f, 0, 0.004f, 0.33f, 1, 1.996f, 2.5, 7, -1.5});

Tensor Float(float x) { return Tensor::Scalar(x); }

// Returns the integers of a quantized tensor.
std::vector<int> Integers(const Tensor& t) {
  std::vector<int> integers;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    integers.push_back(t.dtype() == DType::kQuint8  ? t.data<quint8>()[i].value
                       : t.dtype() == DType::kQint8 ? t.data<qint8>()[i].value
                                                    : t.data<qint32>()[i].value);
  }
  return integers;
}
template <class Q>
Tensor Quantized(const Shape& shape, const std::vector<int>& integers) {
  Tensor t(kDTypeOf<Q>, shape);
  for (size_t i = 0; i < integers.size(); ++i) {
    t.mutable_data<Q>()[i].value = static_cast<decltype(Q::value)>(integers[i]);
  }
  return t;
}

Result Quantize(DType type, const std::string& mode, const std::string& round = "") {
  OpRunner run("QuantizeV2");
  run.In(kNumbers).In(Float(-1.5)).In(Float(2.5)).Attr("T", type).Attr("mode", mode);
  if (!round.empty()) run.Attr("round_mode", round);
  return run.SetKnownInputs(OpRunner::Known::kNothing).Run();
}
void ExpectQuantized(const Result& result, const std::vector<int>& integers, float min, float max) {
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Integers((*result)[0]), ElementsAreArray(integers));
  EXPECT_EQ((*result)[1].scalar<float>(), min);
  EXPECT_EQ((*result)[2].scalar<float>(), max);
}

TEST(QuantizeV2, IsTensorFlows) {
  ExpectQuantized(Quantize(DType::kQuint8, "MIN_COMBINED"),
                  {0, 0, 32, 77, 96, 96, 117, 159, 223, 255, 255, 0}, -1.5, 2.5);
  ExpectQuantized(Quantize(DType::kQuint8, "MIN_FIRST"),
                  {0, 0, 32, 77, 96, 96, 117, 160, 223, 255, 255, 0}, -1.5, 2.5);
  ExpectQuantized(Quantize(DType::kQuint8, "SCALED"), {0, 0, 0, 0, 0, 0, 34, 102, 204, 255, 255, 0},
                  0, 2.5);
  ExpectQuantized(Quantize(DType::kQint8, "MIN_COMBINED"),
                  {-128, -128, -96, -52, -32, -32, -11, 31, 95, 127, 127, -128}, -1.5, 2.5);
  ExpectQuantized(Quantize(DType::kQint8, "MIN_FIRST"),
                  {-128, -128, -96, -51, -32, -32, -11, 32, 95, 127, 127, -128}, -1.5, 2.5);
  for (const char* round : {"HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"}) {
    ExpectQuantized(Quantize(DType::kQint8, "SCALED", round),
                    {-128, -127, -51, -15, 0, 0, 17, 51, 101, 127, 127, -76}, -2.51968503f, 2.5);
  }
}

TEST(QuantizeV2, WhatIsNotFiniteIsAnEndOrZero) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor numbers =
      Tensor::Vector<float>({std::numeric_limits<float>::quiet_NaN(), kInf, -kInf});
  for (const char* mode : {"MIN_COMBINED", "MIN_FIRST", "SCALED"}) {
    const Result result = OpRunner("QuantizeV2")
                              .In(numbers)
                              .In(Float(-1))
                              .In(Float(1.5))
                              .Attr("T", DType::kQint8)
                              .Attr("mode", mode)
                              .Run();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(Integers((*result)[0]), ElementsAre(0, 127, -128)) << mode;
  }
}

TEST(QuantizeV2, SlicesHaveRanges) {
  const Result result = OpRunner("QuantizeV2")
                            .In(kNumbers.Reshaped({2, 3, 2}))
                            .In(Tensor::Vector<float>({-1, -2, 0}))
                            .In(Tensor::Vector<float>({1, 2, 3}))
                            .Attr("T", DType::kQint8)
                            .Attr("mode", "SCALED")
                            .Attr("axis", int64_t{1})
                            .Attr("narrow_range", true)
                            .Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Integers((*result)[0]),
              ElementsAre(-127, -127, -64, -19, 0, 0, 42, 127, 127, 127, 127, -64));
  EXPECT_THAT((*result)[1].flat<float>(), ElementsAre(-1, -2, -3));
  EXPECT_THAT((*result)[2].flat<float>(), ElementsAre(1, 2, 3));
}

void ExpectDequantized(DType type, const std::string& mode, const std::vector<float>& numbers) {
  const Result quantized = Quantize(type, mode);
  ASSERT_TRUE(quantized.ok()) << quantized.status();
  const auto result = OpRunner("Dequantize")
                          .In((*quantized)[0])
                          .In(Float(-1.5))
                          .In(Float(2.5))
                          .Attr("mode", mode)
                          .Run1();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->flat<float>(), ElementsAreArray(numbers));
}

TEST(Dequantize, IsTensorFlows) {
  ExpectDequantized(DType::kQuint8, "MIN_COMBINED",
                    {-1.5, -1.5, -0.998039186f, -0.292156816f, 0.0058825016f, 0.0058825016f,
                     0.335294247f, 0.994117737f, 1.99803948f, 2.5, 2.5, -1.5});
  ExpectDequantized(DType::kQuint8, "MIN_FIRST",
                    {-1.5058825f, -1.5058825f, -1.00392175f, -0.298039317f, 0, 0, 0.329411745f,
                     1.00392151f, 1.99215698f, 2.4941175f, 2.4941175f, -1.5058825f});
  ExpectDequantized(DType::kQint8, "MIN_COMBINED",
                    {-1.5, -1.5, -0.998039186f, -0.307843089f, 0.0058825016f, 0.0058825016f,
                     0.335294247f, 0.994117737f, 1.99803948f, 2.5, 2.5, -1.5});
  ExpectDequantized(
      DType::kQint8, "MIN_FIRST",
      {-1.5058825f, -1.5058825f, -1.00392175f, -0.298039317f, -5.96046448e-08f, -5.96046448e-08f,
       0.329411745f, 1.00392151f, 1.99215686f, 2.49411774f, 2.49411774f, -1.5058825f});
  ExpectDequantized(DType::kQint8, "SCALED",
                    {-2.51968503f, -2.5, -1.00393701f, -0.295275599f, 0, 0, 0.334645659f,
                     1.00393701f, 1.98818898f, 2.5, 2.5, -1.49606299f});
}

const Tensor kSums =
    Quantized<qint32>({8}, {-2000000000, -70000000, -3, 0, 5, 4000, 90000000, 2000000000});

Result Requantize(DType type, float min, float max) {
  return OpRunner("Requantize")
      .In(kSums)
      .In(Float(-20))
      .In(Float(20))
      .In(Float(min))
      .In(Float(max))
      .Attr("out_type", type)
      .Run();
}

TEST(Requantize, IsTensorFlows) {
  ExpectQuantized(Requantize(DType::kQuint8, -1, 3), {0, 22, 64, 64, 64, 64, 117, 255}, -1, 3);
  ExpectQuantized(Requantize(DType::kQint8, -1, 3), {-128, -106, -64, -64, -64, -64, -11, 127}, -1,
                  3);
  const Result shrunk = OpRunner("QuantizeDownAndShrinkRange")
                            .In(kSums)
                            .In(Float(-20))
                            .In(Float(20))
                            .Attr("out_type", DType::kQuint8)
                            .Run();
  ExpectQuantized(shrunk, {0, 123, 127, 128, 128, 128, 133, 255}, -18.6264515f, 18.6264515f);
  const Result range = OpRunner("RequantizationRange").In(kSums).In(Float(-20)).In(Float(20)).Run();
  ASSERT_TRUE(range.ok()) << range.status();
  const Result odd = OpRunner("RequantizationRange")
                         .In(Quantized<qint32>({2}, {-1999999999, 1234567891}))
                         .In(Float(-2.5f))
                         .In(Float(2.75f))
                         .Run();
  ASSERT_TRUE(odd.ok()) << odd.status();
  EXPECT_EQ((*odd)[0].scalar<float>(), -2.3197217f);
  EXPECT_EQ((*odd)[1].scalar<float>(), 1.6340876f);
  EXPECT_FLOAT_EQ((*range)[0].scalar<float>(), -18.6264515f);
  EXPECT_FLOAT_EQ((*range)[1].scalar<float>(), 18.6264515f);
}

Result Product(OpRunner run, const Tensor& a, const Tensor& b) {
  return run.In(a).In(b).In(Float(-1)).In(Float(1)).In(Float(-2)).In(Float(3)).Run();
}
const Tensor kFilter = Quantized<quint8>({2, 2, 1, 1}, {0, 91, 182, 17});

TEST(QuantizedMatMul, IsTensorFlows) {
  const Tensor a = Quantized<quint8>({2, 3}, {0, 37, 74, 111, 148, 185});
  const Tensor b = Quantized<quint8>({3, 2}, {0, 91, 182, 17, 108, 199});
  ExpectQuantized(Product(OpRunner("QuantizedMatMul"), a, b), {5452, 3905, 3676, 4016},
                  -330255.125f, 330255.125f);
}

TEST(QuantizedConv2D, IsTensorFlows) {
  const Tensor image = Quantized<quint8>({1, 3, 3, 1}, {0, 37, 74, 111, 148, 185, 222, 3, 40});
  const auto conv = [&](const char* padding) {
    OpRunner run("QuantizedConv2D");
    run.Attr("strides", std::vector<int64_t>{1, 1, 1, 1}).Attr("padding", padding);
    return Product(run, image, kFilter);
  };
  ExpectQuantized(conv("SAME"), {10997, 6631, 10068, 19659, -5187, -12854, -8213, 13718, 8976},
                  -330255.125f, 330255.125f);
  ExpectQuantized(conv("VALID"), {10997, 6631, 19659, -5187}, -330255.125f, 330255.125f);
}

TEST(QuantizedRelu, ClampsAtZeroAndSix) {
  const Tensor features = Quantized<quint8>({7}, {0, 10, 63, 64, 65, 200, 255});
  const auto relu = [&](const char* op) {
    return OpRunner(op).In(features).In(Float(-3)).In(Float(9)).Run();
  };
  ExpectQuantized(relu("QuantizedRelu"), {64, 64, 64, 64, 65, 200, 255}, -3, 9);
  ExpectQuantized(relu("QuantizedRelu6"), {64, 64, 64, 64, 65, 192, 192}, -3, 9);
}

std::string Mistake(OpRunner& run) {
  return std::string(run.SetKnownInputs(OpRunner::Known::kNothing).Run().status().message());
}

TEST(Quantized, MistakesAreNamed) {
  EXPECT_THAT(Quantize(DType::kQuint8, "MIN_FIRST", "HALF_TO_EVEN").status().message(),
              HasSubstr("needs mode SCALED"));
  OpRunner upside_down("QuantizeV2");
  upside_down.In(kNumbers).In(Float(2)).In(Float(1)).Attr("T", DType::kQuint8);
  EXPECT_THAT(Mistake(upside_down), HasSubstr("min_range <= max_range, are 2 and 1"));
  OpRunner no_axis("QuantizeV2");
  no_axis.In(kNumbers).In(Float(0)).In(Float(1)).Attr("T", DType::kQuint8).Attr("axis", int64_t{1});
  EXPECT_THAT(Mistake(no_axis), HasSubstr("axis 1 is out of bounds"));
  OpRunner above_zero("Requantize");
  above_zero.In(kSums).In(Float(-1)).In(Float(1)).In(Float(1)).In(Float(2)).Attr("out_type",
                                                                                 DType::kQuint8);
  EXPECT_THAT(Mistake(above_zero), HasSubstr("requested_output_min must be <= 0"));
  OpRunner no_fit("QuantizedMatMul");
  no_fit.In(kFilter.Reshaped({1, 4})).In(kFilter.Reshaped({1, 4}));
  no_fit.In(Float(0)).In(Float(1)).In(Float(0)).In(Float(1));
  EXPECT_THAT(Mistake(no_fit), HasSubstr("Matrix size incompatible"));
  OpRunner no_range("QuantizedMatMul");
  no_range.In(kFilter.Reshaped({1, 4})).In(kFilter.Reshaped({4, 1}));
  no_range.In(Float(0)).In(Float(1)).In(Float(2)).In(Float(2));
  EXPECT_THAT(Mistake(no_range), HasSubstr("min_b < max_b"));
}

}  // namespace
}  // namespace penstock
