// SPDX-License-Identifier: Apache-2.0
//
// Compares Conv2D and its gradients with the definition, written as seven loops.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/op/testing/op_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

struct Case {
  int64_t batch, height, width, in, fh, fw, out, stride_h, stride_w, dilation;
  const char* padding;
  std::vector<int64_t> explicit_paddings = {};
  int64_t groups = 1;
};

const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>{
      {2, 5, 6, 3, 3, 3, 4, 1, 1, 1, "SAME"},
      {2, 5, 6, 3, 3, 2, 4, 2, 1, 1, "SAME"},
      {1, 7, 7, 1, 5, 5, 2, 1, 1, 1, "VALID"},
      {3, 8, 8, 16, 3, 3, 16, 2, 2, 1, "SAME"},
      {2, 9, 9, 8, 3, 3, 8, 1, 1, 2, "VALID"},
      {5, 4, 4, 8, 1, 1, 24, 1, 1, 1, "SAME"},
      {2, 6, 5, 9, 3, 3, 7, 2, 3, 1, "VALID"},
      {1, 3, 3, 2, 4, 4, 3, 1, 1, 1, "SAME"},
      {2, 4, 4, 3, 2, 2, 5, 1, 1, 1, "EXPLICIT", {0, 0, 1, 2, 0, 3, 0, 0}},
      {2, 5, 6, 6, 3, 3, 9, 1, 2, 1, "SAME", {}, 3},
      {1, 4, 4, 4, 2, 2, 8, 1, 1, 1, "VALID", {}, 4},
  };
  return cases;
}

Tensor Random(const Shape& shape, int seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> value(-8, 8);  // exact in every type
  Tensor t(DType::kDouble, shape);
  for (double& x : t.mutable_flat<double>()) x = value(random);
  return t;
}

template <class T>
Tensor As(const Tensor& t) {
  Tensor out(kDTypeOf<T>, t.shape());
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    out.mutable_data<T>()[i] = T(static_cast<float>(t.data<double>()[i]));
  }
  return out;
}

int64_t PadBefore(const Case& c, int dim, int64_t in, int64_t size, int64_t stride, int64_t* out) {
  const int64_t reach = (size - 1) * c.dilation + 1;
  const std::string padding = c.padding;
  if (padding == "SAME") {
    *out = (in + stride - 1) / stride;
    return std::max<int64_t>((*out - 1) * stride + reach - in, 0) / 2;
  }
  const bool given = padding == "EXPLICIT";
  const int64_t before = given ? c.explicit_paddings[2 * dim] : 0;
  const int64_t after = given ? c.explicit_paddings[2 * dim + 1] : 0;
  *out = (in + before + after - reach) / stride + 1;
  return before;
}

// Calls fn(image index, filter index, output index) for each product of the definition.
template <class Fn>
Shape ForEachProduct(const Case& c, const Fn& fn) {
  int64_t oh_count, ow_count;
  const int64_t top = PadBefore(c, 1, c.height, c.fh, c.stride_h, &oh_count);
  const int64_t left = PadBefore(c, 2, c.width, c.fw, c.stride_w, &ow_count);
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t oh = 0; oh < oh_count; ++oh) {
      for (int64_t ow = 0; ow < ow_count; ++ow) {
        for (int64_t kh = 0; kh < c.fh; ++kh) {
          for (int64_t kw = 0; kw < c.fw; ++kw) {
            const int64_t ih = oh * c.stride_h + kh * c.dilation - top;
            const int64_t iw = ow * c.stride_w + kw * c.dilation - left;
            if (ih < 0 || ih >= c.height || iw < 0 || iw >= c.width) continue;
            const int64_t each = c.in / c.groups;
            for (int64_t i = 0; i < each; ++i) {
              for (int64_t o = 0; o < c.out; ++o) {
                const int64_t first = o / (c.out / c.groups) *
                                      each;  // first input channel of the group of output channel o
                fn(((b * c.height + ih) * c.width + iw) * c.in + first + i,
                   ((kh * c.fw + kw) * each + i) * c.out + o,
                   ((b * oh_count + oh) * ow_count + ow) * c.out + o);
              }
            }
          }
        }
      }
    }
  }
  return Shape({c.batch, oh_count, ow_count, c.out});
}

OpRunner& WithAttrs(OpRunner& run, const Case& c) {
  run.Attr("strides", std::vector<int64_t>{1, c.stride_h, c.stride_w, 1})
      .Attr("dilations", std::vector<int64_t>{1, c.dilation, c.dilation, 1})
      .Attr("padding", c.padding);
  if (!c.explicit_paddings.empty()) run.Attr("explicit_paddings", c.explicit_paddings);
  return run;
}

Tensor Sizes(const Shape& shape) {
  return Tensor::Vector<int32_t>(std::vector<int32_t>(shape.dims().begin(), shape.dims().end()));
}

template <class T>
void ExpectEqual(const StatusOr<Tensor>& found, const Tensor& expected, double tolerance) {
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->shape().ToString(), expected.shape().ToString());
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double want = expected.data<double>()[i];
    ASSERT_NEAR(static_cast<double>(found->data<T>()[i]), want, tolerance * (1 + std::abs(want)))
        << "element " << i;
  }
}

template <class T>
void TestAll(double tolerance) {
  for (size_t n = 0; n < Cases().size(); ++n) {
    SCOPED_TRACE(testing::Message() << "case " << n << ", " << Name(kDTypeOf<T>));
    const Case& c = Cases()[n];
    const Shape image_shape({c.batch, c.height, c.width, c.in});
    const Shape filter_shape({c.fh, c.fw, c.in / c.groups, c.out});
    const Shape output_shape = ForEachProduct(c, [](int64_t, int64_t, int64_t) {});
    const Tensor image = Random(image_shape, 1);
    const Tensor filter = Random(filter_shape, 2);
    const Tensor dy = Random(output_shape, 3);
    Tensor y(DType::kDouble, output_shape), dx(DType::kDouble, image_shape),
        dw(DType::kDouble, filter_shape);
    for (Tensor* t : {&y, &dx, &dw}) std::fill_n(t->mutable_data<double>(), t->num_elements(), 0);
    ForEachProduct(c, [&](int64_t i, int64_t f, int64_t o) {
      y.mutable_data<double>()[o] += image.data<double>()[i] * filter.data<double>()[f];
      dx.mutable_data<double>()[i] += dy.data<double>()[o] * filter.data<double>()[f];
      dw.mutable_data<double>()[f] += dy.data<double>()[o] * image.data<double>()[i];
    });
    OpRunner forward("Conv2D");
    ExpectEqual<T>(WithAttrs(forward, c).In(As<T>(image)).In(As<T>(filter)).Run1(), y, tolerance);
    OpRunner to_image("Conv2DBackpropInput");
    ExpectEqual<T>(
        WithAttrs(to_image, c).In(Sizes(image_shape)).In(As<T>(filter)).In(As<T>(dy)).Run1(), dx,
        tolerance);
    OpRunner to_filter("Conv2DBackpropFilter");
    ExpectEqual<T>(
        WithAttrs(to_filter, c).In(As<T>(image)).In(Sizes(filter_shape)).In(As<T>(dy)).Run1(), dw,
        tolerance);
  }
}

TEST(Conv2DTest, Float) { TestAll<float>(1e-5); }
TEST(Conv2DTest, Double) { TestAll<double>(1e-12); }
TEST(Conv2DTest, Int32) { TestAll<int32_t>(0); }
TEST(Conv2DTest, Half) { TestAll<half>(1e-3); }
TEST(Conv2DTest, Bfloat16) { TestAll<bfloat16>(8e-3); }

TEST(Conv2DTest, TheFiltersGradientIsTheSameEachTime) {
  const Tensor image = Random(Shape({7, 24, 24, 3}), 1), dy = Random(Shape({7, 24, 24, 8}), 2);
  std::vector<double> first;
  for (int i = 0; i < 100; ++i) {
    const auto dw = OpRunner("Conv2DBackpropFilter")
                        .In(image)
                        .In(Sizes(Shape({3, 3, 3, 8})))
                        .In(dy)
                        .Attr("strides", std::vector<int64_t>{1, 1, 1, 1})
                        .Attr("padding", "SAME")
                        .Run1();
    ASSERT_TRUE(dw.ok()) << dw.status();
    const auto flat = dw->flat<double>();
    if (i == 0) first.assign(flat.begin(), flat.end());
    ASSERT_TRUE(std::equal(flat.begin(), flat.end(), first.begin())) << "run " << i;
  }
}

TEST(Conv2DTest, EmptyBatchGivesEmptyOutput) {
  OpRunner run("Conv2D");
  const auto y = WithAttrs(run, Cases()[0])
                     .In(Tensor(DType::kFloat, Shape({0, 5, 6, 3})))
                     .In(Tensor(DType::kFloat, Shape({3, 3, 3, 4})))
                     .Run1();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->shape(), Shape({0, 5, 6, 4}));
}

TEST(Conv2DTest, MistakesAreNamed) {
  const auto error = [](const Shape& image, const Shape& filter, const char* format,
                        std::vector<int64_t> strides) {
    return std::string(OpRunner("Conv2D")
                           .Attr("strides", strides)
                           .Attr("padding", "VALID")
                           .Attr("data_format", format)
                           .In(Tensor(DType::kFloat, image))
                           .In(Tensor(DType::kFloat, filter))
                           .Run1()
                           .status()
                           .message());
  };
  const std::vector<int64_t> ones = {1, 1, 1, 1};
  using ::testing::HasSubstr;
  EXPECT_THAT(error({1, 5, 5}, {3, 3, 3, 4}, "NHWC", ones), HasSubstr("[1,5,5]"));
  EXPECT_THAT(error({1, 5, 5, 2}, {3, 3, 3, 4}, "NHWC", ones), HasSubstr("filter depth: 2 vs 3"));
  EXPECT_THAT(error({1, 5, 5, 6}, {3, 3, 4, 4}, "NHWC", ones), HasSubstr("filter depth: 6 vs 4"));
  EXPECT_THAT(error({1, 5, 5, 6}, {3, 3, 2, 4}, "NHWC", ones),
              HasSubstr("output channels, which 3 groups cannot share"));
  EXPECT_THAT(error({1, 2, 5, 3}, {3, 3, 3, 4}, "NHWC", ones), HasSubstr("does not fit"));
  EXPECT_THAT(error({1, 5, 5, 3}, {3, 3, 3, 4}, "NCHW", ones), HasSubstr("use NHWC"));
  EXPECT_THAT(error({1, 5, 5, 3}, {3, 3, 3, 4}, "NHWC", {1, 0, 1, 1}), HasSubstr("strides"));
  EXPECT_THAT(error({1, 5, 5, 3}, {3, 3, 3, 4}, "NHWC", {2, 1, 1, 1}), HasSubstr("batch"));
}

}  // namespace
}  // namespace penstock
