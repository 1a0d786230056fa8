// SPDX-License-Identifier: Apache-2.0
#include "core/op/output.h"

#include <functional>

#include "core/op/testing/recording_sink.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(Output, Operators) {
  RecordingSink sink;
  const Output a = sink.Input(DType::kFloat), b = sink.Input(DType::kFloat);
  const Output n = sink.Input(DType::kInt32);
  const std::pair<Output, const char*> cases[] = {
      {a + b, "AddV2(%0, %1)"},      {a - b, "Sub(%0, %1)"},      {a * b, "Mul(%0, %1)"},
      {a / b, "RealDiv(%0, %1)"},    {n / n, "FloorDiv(%2, %2)"}, {-a, "Neg(%0)"},
      {a + 2.5, "AddV2(%0, [2.5])"}, {2 - a, "Sub([2], %0)"},     {n * 3, "Mul(%2, [3])"},
      {1 / n, "FloorDiv([1], %2)"},  {a / 2, "RealDiv(%0, [2])"}, {3 + a, "AddV2([3], %0)"},
      {a - 1, "Sub(%0, [1])"},       {0.5 * a, "Mul([0.5], %0)"},
  };
  for (const auto& [output, text] : cases) EXPECT_EQ(sink.Text(output), text);
  EXPECT_TRUE(sink.status().ok());
}

TEST(Output, ConstantsAreOfTheOtherSidesType) {
  for (DType dtype : kNumber) {
    RecordingSink sink;
    const Output one = ConstantLike(sink.Input(dtype), 1);
    ASSERT_TRUE(one.valid()) << Name(dtype);
    const Tensor& value = *sink.nodes[one.node].attrs.at("value").get<Tensor>();
    EXPECT_EQ(value.dtype(), dtype);
    EXPECT_EQ(value.rank(), 0);
    EXPECT_EQ(sink.nodes[one.node].attrs.at("dtype"), AttrValue(dtype));
  }
}

TEST(Output, ConstantsThatTheTypeCannotHold) {
  const std::pair<DType, double> cases[] = {
      {DType::kInt32, 0.5},       {DType::kInt8, 128},      {DType::kUint8, -1},
      {DType::kInt64, 0x1p63},    {DType::kUint64, 0x1p64}, {DType::kInt32, 1e300},
      {DType::kInt32, -0x1.8p31}, {DType::kString, 1},      {DType::kBool, 1},
  };
  for (const auto& [dtype, value] : cases) {
    RecordingSink sink;
    EXPECT_FALSE(ConstantLike(sink.Input(dtype), value).valid()) << Name(dtype) << value;
    EXPECT_EQ(sink.status(),
              InvalidArgument("there is no constant ", value, " of type ", Name(dtype)));
  }
  RecordingSink sink;
  EXPECT_TRUE(ConstantLike(sink.Input(DType::kInt64), -0x1p63).valid());
  EXPECT_TRUE(ConstantLike(sink.Input(DType::kUint64), 0x1p63).valid());
}

TEST(Output, ErrorsStick) {
  RecordingSink sink;
  const Output a = sink.Input(DType::kFloat);
  sink.Fail(NotFound("first"));
  const Output b = a + a;
  EXPECT_FALSE(b.valid());
  // Outputs computed from an invalid output are invalid, know their graph, and do no harm.
  const Output c = -(b * 2 + a) / b;
  EXPECT_FALSE(c.valid());
  EXPECT_EQ(c.sink, &sink);
  EXPECT_EQ(c.dtype(), DType::kInvalid);
  EXPECT_FALSE(c.shape().known_rank());
  EXPECT_EQ(c.name(), "");
  EXPECT_FALSE(CallN("Unpack", {b})[3].valid());
  EXPECT_EQ(sink.status(), NotFound("first"));
}

TEST(Output, AnInputThatIsNone) {
  RecordingSink sink;
  const Output a = sink.Input(DType::kFloat);
  EXPECT_FALSE(Call("Mul", {a, Output()}).valid());
  EXPECT_EQ(sink.status(), InvalidArgument("an input of a new Mul is no output"));
}

TEST(OutputDeathTest, NoGraphAnywhere) {
  EXPECT_DEATH(Call("Mul", {Output(), Output()}), "Mul: no input knows its graph; use CallIn");
}

TEST(Output, ListsAndSeveralOutputs) {
  RecordingSink sink;
  const Output a = sink.Input(DType::kFloat), b = sink.Input(DType::kFloat);
  EXPECT_EQ(sink.Text(Call("Concat", {a, Outputs{a, b}})), "Concat(%0, %0, %1)");
  const Outputs both = CallN("Switch", {a, b});
  ASSERT_EQ(both.size(), 2);
  EXPECT_EQ(both[1], both[0].Sibling(1));
  EXPECT_EQ(sink.Text(both[1]), "Switch(%0, %1):1");
  EXPECT_EQ(sink.Text(CallIn(sink, "NoOp", {})), "NoOp()");
}

}  // namespace
}  // namespace penstock
