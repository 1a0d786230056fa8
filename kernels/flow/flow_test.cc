// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <string>

#include "core/op/testing/op_runner.h"
#include "kernels/flow/summarize.h"

namespace penstock {
namespace {

using testing::HasSubstr;

TEST(SummarizeTest, ShowsValuesAsTensorFlowDoes) {
  const Tensor matrix = Tensor::Of<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor cube = Tensor::Of<int32_t>({2, 1, 2}, {1, 2, 3, 4});
  const struct {
    Tensor tensor;
    int64_t max;
    std::string text;
  } kCases[] = {
      {Tensor::Scalar<int32_t>(-7), 3, "-7"},
      {Tensor::Scalar<int32_t>(7), 0, "..."},
      {Tensor::Vector<int64_t>({1, 2, 3}), 3, "1 2 3"},
      {Tensor::Vector<int64_t>({1, 2, 3}), 2, "1 2..."},
      {Tensor::Vector<int64_t>({1, 2, 3}), -1, "1 2 3"},
      {Tensor::Vector<float>({}), 3, ""},
      {matrix, -1, "[1 2 3][4 5 6]"},
      {matrix, 6, "[1 2 3][4 5 6]"},
      {matrix, 3, "[1 2 3]"},
      {matrix, 4, "[1 2 3][4...]"},
      {matrix, 2, "[1 2...]"},
      {cube, -1, "[[1 2]][[3 4]]"},
      {Tensor::Scalar(0.1f), 3, "0.1"},
      {Tensor::Scalar(1.0f / 3), 3, "0.333333343"},
      {Tensor::Scalar(1.0 / 3), 3, "0.33333333333333331"},
      {Tensor::Scalar(1e20), 3, "1e+20"},
      {Tensor::Scalar(std::numeric_limits<float>::infinity()), 3, "inf"},
      {Tensor::Scalar(half(0.5f)), 3, "0.5"},
      {Tensor::Vector<uint8_t>({65, 200}), 3, "65 200"},
      {Tensor::Vector<int8_t>({-1}), 3, "-1"},
      {Tensor::Scalar(true), 3, "1"},
      {Tensor::Scalar(std::complex<float>(1, -2)), 3, "(1,-2)"},
      {Tensor::Scalar(std::string("a\nb")), 3, "a\\nb"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Summarize(c.tensor, c.max), c.text) << c.tensor.ToString() << " max " << c.max;
  }
}

TEST(AssertTest, PassesOrShowsItsData) {
  const Tensor why = Tensor::Scalar(std::string("x must be positive")),
               x = Tensor::Vector<float>({-1, 2, 3, 4});
  EXPECT_TRUE(OpRunner("Assert").In(Tensor::Scalar(true)).InList({why, x}).Run().ok());
  EXPECT_EQ(OpRunner("Assert").In(Tensor::Scalar(false)).InList({why, x}).Run().status().message(),
            "assertion failed: [x must be positive] [-1 2 3...]");
  EXPECT_THAT(std::string(OpRunner("Assert")
                              .In(Tensor::Scalar(false))
                              .InList({x})
                              .Attr("summarize", 1)
                              .Run()
                              .status()
                              .message()),
              HasSubstr("assertion failed: [-1...]"));
  EXPECT_EQ(OpRunner("Assert").In(Tensor::Vector<bool>({true})).InList({x}).Run().status().code(),
            StatusCode::kInvalidArgument);
}

TEST(PrintTest, PassesItsInputOnAndPrints) {
  const Tensor x = Tensor::Vector<float>({1, 2});
  testing::internal::CaptureStderr();
  const auto y = OpRunner("Print")
                     .In(x)
                     .InList({x, Tensor::Scalar<int32_t>(5)})
                     .Attr("message", "values: ")
                     .Run1();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "values: [1 2][5]\n");
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_TRUE(y->SharesBufferWith(x));

  testing::internal::CaptureStderr();
  EXPECT_TRUE(OpRunner("Print").In(x).InList({x}).Attr("first_n", 0).Run1().ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(PrintV2Test, WritesToTheStreamAskedFor) {
  const Tensor text = Tensor::Scalar(std::string("hello"));
  testing::internal::CaptureStdout();
  EXPECT_TRUE(OpRunner("PrintV2").In(text).Attr("output_stream", "stdout").Run().ok());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "hello\n");
  testing::internal::CaptureStderr();
  EXPECT_TRUE(OpRunner("PrintV2").In(text).Attr("end", "!").Run().ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "hello!");
  EXPECT_EQ(OpRunner("PrintV2").In(text).Attr("output_stream", "file:///x").Run().status().code(),
            StatusCode::kUnimplemented);
  EXPECT_EQ(OpRunner("PrintV2").In(text).Attr("output_stream", "paper").Run().status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(OpRunner("PrintV2").In(Tensor::Vector<std::string>({"a", "b"})).Run().status().code(),
            StatusCode::kInvalidArgument);
}

TEST(NoOpTest, DoesNothing) {
  EXPECT_TRUE(OpRunner("NoOp").Run().ok());
  EXPECT_TRUE(OpRunner("ControlTrigger").Run().ok());
}

TEST(ClientFunctionsTest, SayWhyTheyCannotRun) {
  for (const char* op : {"PyFunc", "PyFuncStateless", "EagerPyFunc"}) {
    const Status status = OpRunner(op)
                              .InList({Tensor::Scalar<float>(1)})
                              .Attr("token", "pyfunc_7")
                              .Attr("Tout", std::vector<DType>{DType::kFloat})
                              .Run()
                              .status();
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(status.message()), HasSubstr("the Python function 'pyfunc_7'"));
  }
  const Status status = OpRunner("SymbolicGradient")
                            .InList({Tensor::Scalar<float>(1)})
                            .Attr("Tout", std::vector<DType>{DType::kFloat})
                            .Attr("f", FunctionName{"cube", std::make_shared<Attrs>()})
                            .Run()
                            .status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("function 'cube'"));
}

TEST(ToBoolTest, ScalarsHoldByValueOtherTensorsBySize) {
  const struct {
    Tensor input;
    bool holds;
  } kCases[] = {
      {Tensor::Scalar<int32_t>(-7), true},
      {Tensor::Scalar<int64_t>(0), false},
      {Tensor::Scalar(0.5f), true},
      {Tensor::Scalar(-0.0), false},
      {Tensor::Scalar(half(0.5f)), true},
      {Tensor::Scalar(std::complex<float>(0, 1)), true},
      {Tensor::Scalar(false), false},
      {Tensor::Scalar(std::string()), false},
      {Tensor::Scalar(std::string("0")), true},
      {Tensor::Vector<float>({}), false},
      {Tensor::Vector<float>({0}), true},
      {Tensor::Vector<bool>({false}), true},
  };
  for (const auto& c : kCases) {
    const auto result = OpRunner("ToBool").In(c.input).Run1();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->scalar<bool>(), c.holds) << c.input.ToString();
  }
}

}  // namespace
}  // namespace penstock
