// SPDX-License-Identifier: Apache-2.0
//
// Tests Const, _FilledConst, FakeParam, Placeholder, PlaceholderV2, PlaceholderWithDefault.
#include <gtest/gtest.h>

#include <complex>

#include "core/op/testing/op_runner.h"
#include "core/tensor/variant.h"

namespace penstock {
namespace {

std::string ErrorOf(OpRunner& run) { return std::string(run.Run().status().message()); }

TEST(Const, IsItsAttribute) {
  const Tensor value = Tensor::Of<float>({2}, {1, 2});
  const auto y = OpRunner("Const").Attr("value", value).Attr("dtype", DType::kFloat).Run1();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_TRUE(y->SharesBufferWith(value));
  EXPECT_EQ(y->shape(), Shape({2}));
}

TEST(Const, RefusesTheWrongType) {
  OpRunner run("Const");
  run.Attr("value", Tensor::Scalar<float>(1)).Attr("dtype", DType::kInt32);
  EXPECT_NE(ErrorOf(run).find("attribute dtype is int32, attribute value is float"),
            std::string::npos);
}

template <class T>
void ExpectFilled(T value) {
  const StatusOr<Tensor> y = OpRunner("_FilledConst")
                                 .Attr("value", Tensor::Scalar<T>(value))
                                 .Attr("shape", PartialShape({3, 2}))
                                 .Attr("dtype", kDTypeOf<T>)
                                 .Run1();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->shape(), Shape({3, 2}));
  for (const T element : y->flat<T>()) EXPECT_EQ(element, value);
}

TEST(FilledConst, HasItsValueEverywhere) {
  ExpectFilled<int8_t>(-7);
  ExpectFilled<half>(half(1.5f));
  ExpectFilled<float>(2.5f);
  ExpectFilled<int64_t>(int64_t{1} << 40);
  ExpectFilled<std::complex<double>>({1, -2});
}

// As in TensorFlow, an unknown size becomes 0, and an unknown shape that of a scalar.
TEST(FakeParam, HasZeros) {
  const auto text = [](DType dtype, const PartialShape& shape) {
    const auto y = OpRunner("FakeParam").Attr("dtype", dtype).Attr("shape", shape).Run1();
    return y.ok() ? y->ToString() : std::string(y.status().message());
  };
  EXPECT_EQ(text(DType::kFloat, PartialShape({2, 1})), "float[2,1] 0 0");
  EXPECT_EQ(text(DType::kInt32, PartialShape({-1, 3})), "int32[0,3]");
  EXPECT_EQ(text(DType::kInt64, PartialShape()), "int64[] 0");
  const auto none = OpRunner("FakeParam")
                        .Attr("dtype", DType::kVariant)
                        .Attr("shape", PartialShape::Scalar())
                        .Run1();
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->scalar<Variant>().value, nullptr);
}

TEST(Placeholder, MustBeFed) {
  OpRunner with_shape("Placeholder");
  with_shape.NodeName("x").Attr("dtype", DType::kFloat).Attr("shape", PartialShape({2, -1}));
  EXPECT_EQ(ErrorOf(with_shape),
            "You must feed a value for placeholder tensor 'x' with dtype float and shape [2,?]");
  OpRunner without("Placeholder");
  without.NodeName("x").Attr("dtype", DType::kInt64);
  EXPECT_EQ(ErrorOf(without), "You must feed a value for placeholder tensor 'x' with dtype int64");
  OpRunner second("PlaceholderV2");
  second.NodeName("x").Attr("dtype", DType::kString).Attr("shape", Shape({3}));
  EXPECT_EQ(ErrorOf(second),
            "You must feed a value for placeholder tensor 'x' with dtype string and shape [3]");
}

TEST(PlaceholderWithDefault, PassesItsInputOn) {
  const Tensor x = Tensor::Of<float>({2}, {1, 2});
  const auto y = OpRunner("PlaceholderWithDefault").In(x).Attr("shape", PartialShape({-1})).Run1();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_TRUE(y->SharesBufferWith(x));
  OpRunner wrong("PlaceholderWithDefault");
  wrong.In(x).Attr("shape", PartialShape({3}));
  EXPECT_EQ(ErrorOf(wrong), "the default has shape [2], the attribute says [3]");
}

}  // namespace
}  // namespace penstock
