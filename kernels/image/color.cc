// SPDX-License-Identifier: Apache-2.0
//
// Ops on colors: RGBToHSV, HSVToRGB, AdjustHue, AdjustSaturation, AdjustContrast, AdjustContrastv2.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/image/pixels.h"

namespace penstock {
namespace {

template <class F>
struct Hsv {
  F h, s, v;
};

template <class F>
Hsv<F> ToHsv(const F* rgb) {
  const F r = rgb[0], g = rgb[1], b = rgb[2];
  const F v = std::max({r, g, b}), range = v - std::min({r, g, b});
  const F norm = F(1) / (F(6) * range);
  F h = r == v   ? norm * (g - b)
        : g == v ? norm * (b - r) + F(2) / F(6)
                 : norm * (r - g) + F(4) / F(6);
  if (!(range > F(0))) h = F(0);
  if (h < F(0)) h += F(1);
  return {h, v > F(0) ? range / v : F(0), v};
}

template <class F>
void ToRgb(const Hsv<F>& x, F* rgb) {
  const F h = x.h * F(6);
  const F weights[] = {std::abs(h - F(3)) - F(1), F(2) - std::abs(h - F(2)),
                       F(2) - std::abs(h - F(4))};
  for (int c = 0; c < 3; ++c) {
    rgb[c] = ((F(1) - x.s) + x.s * std::clamp(weights[c], F(0), F(1))) * x.v;
  }
}

// Calls map(in, out) for each pixel; `in` and `out` are three numbers of type F.
template <class F, class Map>
void MapPixels(KernelContext& ctx, const Tensor& images, Tensor* out, const Map& map) {
  constexpr int64_t kBlock = 256;  // pixels converted at once
  const int64_t pixels = images.num_elements() / 3, blocks = (pixels + kBlock - 1) / kBlock;
  ctx.threads().ParallelFor(blocks, 10.0 * kBlock, [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<F, double>) {
      for (int64_t p = begin * kBlock; p < std::min(pixels, end * kBlock); ++p) {
        map(images.data<double>() + 3 * p, out->mutable_data<double>() + 3 * p);
      }
    } else {
      float in[3 * kBlock], result[3 * kBlock];
      for (int64_t b = begin; b < end; ++b) {
        const int64_t first = b * kBlock, n = std::min(kBlock, pixels - first);
        ToFloats(images, 3 * first, in, 3 * n);
        for (int64_t p = 0; p < n; ++p) map(in + 3 * p, result + 3 * p);
        FromFloats(result, out, 3 * first, 3 * n);
      }
    }
  });
}

Status CheckColors(const Tensor& images, int min_rank) {
  const int rank = images.rank();
  if (rank >= min_rank && images.dim(rank - 1) == 3) return OkStatus();
  return InvalidArgument("input must be at least ", min_rank,
                         "-D with a last dimension of 3, has shape ", images.shape().ToString());
}

template <class T>
using ColorType = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
class RgbToHsv final : public Kernel {
  using F = ColorType<T>;
  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(CheckColors(ctx.input(0), 1));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, ctx.input(0).shape(), &out));
    MapPixels<F>(ctx, ctx.input(0), out, [](const F* rgb, F* hsv) {
      const Hsv<F> x = ToHsv(rgb);
      hsv[0] = x.h;
      hsv[1] = x.s;
      hsv[2] = x.v;
    });
    return OkStatus();
  }
};

template <class T>
class HsvToRgb final : public Kernel {
  using F = ColorType<T>;
  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(CheckColors(ctx.input(0), 1));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, ctx.input(0).shape(), &out));
    MapPixels<F>(ctx, ctx.input(0), out, [](const F* hsv, F* rgb) {
      ToRgb<F>({hsv[0], hsv[1], hsv[2]}, rgb);
    });
    return OkStatus();
  }
};

StatusOr<float> ScalarInput1(const KernelContext& ctx, const char* name) {
  if (ctx.input(1).rank() == 0) return ctx.input(1).scalar<float>();
  return InvalidArgument(name, " must be scalar, has shape ", ctx.input(1).shape().ToString());
}

template <class>
class AdjustHueKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(CheckColors(ctx.input(0), 3));
    ASSIGN_OR_RETURN(const float delta, ScalarInput1(ctx, "delta"));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, ctx.input(0).shape(), &out));
    MapPixels<float>(ctx, ctx.input(0), out, [delta](const float* in, float* to) {
      Hsv<float> x = ToHsv(in);
      x.h += delta;
      x.h -= std::floor(x.h);
      ToRgb(x, to);
    });
    return OkStatus();
  }
};

template <class>
class AdjustSaturationKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(CheckColors(ctx.input(0), 3));
    ASSIGN_OR_RETURN(const float scale, ScalarInput1(ctx, "scale"));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, ctx.input(0).shape(), &out));
    MapPixels<float>(ctx, ctx.input(0), out, [scale](const float* in, float* to) {
      Hsv<float> x = ToHsv(in);
      x.s = std::clamp(x.s * scale, 0.f, 1.f);
      ToRgb(x, to);
    });
    return OkStatus();
  }
};

// Writes to output 0 the images of input 0, with the distance of each pixel from the mean of its
// channel in its image multiplied by contrast_factor. `limit` is applied to each result.
// InvalidArgument if an input has a wrong rank.
template <class Limit>
Status StretchContrast(KernelContext& ctx, const Limit& limit) {
  const Tensor& images = ctx.input(0);
  const int rank = images.rank();
  if (rank < 3) {
    return InvalidArgument("input must be at least 3-D, has shape ", images.shape().ToString());
  }
  ASSIGN_OR_RETURN(const float factor, ScalarInput1(ctx, "contrast_factor"));
  Tensor* out;
  RETURN_IF_ERROR(ctx.Allocate(0, images.shape(), &out));
  if (images.num_elements() == 0) return OkStatus();
  const int64_t channels = images.dim(rank - 1);
  const int64_t pixels = images.dim(rank - 3) * images.dim(rank - 2), image = pixels * channels;
  const auto stretch = [&](int64_t begin, int64_t end) {
    std::vector<float> values(image);
    for (int64_t b = begin; b < end; ++b) {
      ToFloats(images, b * image, values.data(), image);
      std::vector<double> means(channels);
      for (int64_t i = 0; i < image; ++i) means[i % channels] += values[i];
      for (double& mean : means) mean /= static_cast<double>(pixels);
      for (int64_t i = 0; i < image; ++i) {
        const auto mean = static_cast<float>(means[i % channels]);
        values[i] = limit((values[i] - mean) * factor + mean);
      }
      FromFloats(values.data(), out, b * image, image);
    }
  };
  ctx.threads().ParallelFor(images.num_elements() / image, 2.0 * image, stretch);
  return OkStatus();
}

template <class>
class AdjustContrastKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    return StretchContrast(ctx, [](float x) { return x; });
  }
};

// The first version of AdjustContrast: takes images of any type, and returns floats within limits.
class ClampedContrastKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    for (int i : {2, 3}) {
      if (ctx.input(i).rank() != 0) {
        return InvalidArgument(i == 2 ? "min_value" : "max_value", " must be scalar, has shape ",
                               ctx.input(i).shape().ToString());
      }
    }
    const float low = ctx.input(2).scalar<float>(), high = ctx.input(3).scalar<float>();
    return StretchContrast(ctx, [=](float x) { return std::max(std::min(x, high), low); });
  }
};

Status ClampedContrastShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape images, s.WithRankAtLeast(0, 3));
  for (int i = 1; i < 4; ++i) RETURN_IF_ERROR(s.WithRank(i, 0).status());
  s.set_output(0, images);
  return OkStatus();
}

const DTypes kHalfOrFloat = {DType::kHalf, DType::kFloat};
const ExampleTensor kColors = {{2, 2, 3}};

OpDef AdjustDef(const char* doc, const char* amount) {
  return {.doc = doc,
          .inputs = {{"images", "T"}, {amount, "float"}},
          .outputs = {{"output", "T"}},
          .types = {{"T", kHalfOrFloat, DType::kFloat}},
          .shape =
              [](ShapeScope& s) {
                ASSIGN_OR_RETURN(const PartialShape images, s.WithRankAtLeast(0, 3));
                s.set_output(0, images);
                return s.WithRank(1, 0).status();
              },
          .examples = {{.inputs = {{kColors}, {{{}, {0.3}}}}}}};
}

// Returns the gradient of the conversion to HSV. The formula depends on which of the three colors
// is the largest and which is the smallest; if colors are equal, the first of them is taken.
std::vector<Gradient> HsvGradient(const GradientScope& g) {
  const DType type = g.dtype();
  const Output axis = g.Const<int32_t>(-1);
  const auto split = [&](Output x) { return CallN("Split", {axis, x}, {{"num_split", 3}}); };
  const auto number = [&](Output condition) { return Cast(condition, type); };
  const Outputs rgb = split(g.x()), hsv = split(g.y()), d = split(g.dy());
  const Output max = hsv[2], min = Call("Min", {g.x(), axis}, {{"keep_dims", true}});
  const Output range = max - min;
  const Output colored = number(Greater(range, ZerosLike(range)));
  const Output safe_range = range + (1.0 - colored);  // avoids division by zero if all are equal
  const Output positive = number(Greater(max, ZerosLike(max)));
  const Output safe_max = max + (1.0 - positive);
  // Masks: one for the color that is the extremum, zero for the other colors.
  const auto first_of = [&](Output extremum) {
    Outputs is(3);
    is[0] = number(Equal(rgb[0], extremum));
    is[1] = number(Equal(rgb[1], extremum)) * (1.0 - is[0]);
    is[2] = (1.0 - is[0]) * (1.0 - is[1]);
    return is;
  };
  const Outputs largest = first_of(max), smallest = first_of(min);
  Outputs dx(3);
  for (int c = 0; c < 3; ++c) {
    const int next = (c + 1) % 3, last = (c + 2) % 3;
    // Saturation is 1 - min / max; value is max.
    const Output saturation = (largest[c] * min / safe_max - smallest[c]) / safe_max * positive;
    // Hue is (difference of the two other channels) / (6 * range) plus a constant.
    const Output sign = largest[last] - largest[next];
    const Output difference = largest[0] * (rgb[1] - rgb[2]) + largest[1] * (rgb[2] - rgb[0]) +
                              largest[2] * (rgb[0] - rgb[1]);
    const Output hue = (sign - difference / safe_range * (largest[c] - smallest[c])) /
                       (safe_range * 6.0) * colored;
    dx[c] = d[0] * hue + d[1] * saturation + d[2] * largest[c];
  }
  return {ConcatV2(dx, axis)};
}

}  // namespace

OP(RGBToHSV) {
  return {
      .doc =
          "Converts RGB colors in the last dimension to hue, saturation and value, all in "
          "[0, 1].",
      .inputs = {{"images", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating, DType::kFloat}},
      .shape = SameShape,
      .gradient = HsvGradient,
      .examples = {{.inputs = {{kColors}}}},
  };
}
KERNEL(RGBToHSV, RgbToHsv, half, bfloat16, float, double);

OP(HSVToRGB) {
  return {
      .doc = "Converts hue, saturation and value in the last dimension to RGB colors.",
      .inputs = {{"images", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating, DType::kFloat}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{kColors}}}},
  };
}
KERNEL(HSVToRGB, HsvToRgb, half, bfloat16, float, double);

OP(AdjustHue) {
  return AdjustDef("Rotates the hue of images by delta; 1 is a full circle.", "delta");
}
KERNEL(AdjustHue, AdjustHueKernel, half, float);
OP(AdjustSaturation) { return AdjustDef("Multiplies the saturation of images by scale.", "scale"); }
KERNEL(AdjustSaturation, AdjustSaturationKernel, half, float);
OP(AdjustContrastv2) {
  return AdjustDef(
      "Multiplies the distance of each pixel from the mean of its channel "
      "in its image by contrast_factor.",
      "contrast_factor");
}
KERNEL(AdjustContrastv2, AdjustContrastKernel, half, float);

OP(AdjustContrast) {
  return {
      .doc =
          "The same as AdjustContrastv2, for images of any type; the result is limited to "
          "[min_value, max_value].",
      .inputs = {{"images", "T"},
                 {"contrast_factor", "float"},
                 {"min_value", "float"},
                 {"max_value", "float"}},
      .outputs = {{"output", "float"}},
      .types = {{"T",
                 {DType::kUint8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                  DType::kFloat, DType::kDouble}}},
      .shape = ClampedContrastShape,
      .examples = {{.inputs = {{kColors}, {{{}, {0.3}}}, {{{}, {0.2}}}, {{{}, {0.8}}}}}},
  };
}
KERNEL_ANY_TYPE(AdjustContrast, ClampedContrastKernel);

}  // namespace penstock
