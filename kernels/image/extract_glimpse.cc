// SPDX-License-Identifier: Apache-2.0
//
// ExtractGlimpse, in two versions: cuts a window around a point out of each image; pixels outside
// of the image are noise.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/image/pixels.h"
#include "kernels/random/distributions.h"

namespace penstock {
namespace {

class ExtractGlimpse final : public Kernel {
  Status Init(const KernelInit& node) override {
    v2_ = node.op.name == "ExtractGlimpseV2";
    RETURN_IF_ERROR(node.Attr("centered", &centered_));
    RETURN_IF_ERROR(node.Attr("normalized", &normalized_));
    RETURN_IF_ERROR(node.Attr("noise", &noise_));
    bool uniform;
    RETURN_IF_ERROR(node.Attr("uniform_noise", &uniform));
    if (!uniform && noise_ == "uniform") noise_ = "gaussian";
    if (noise_ == "uniform" || noise_ == "gaussian" || noise_ == "zero") return OkStatus();
    return InvalidArgument("noise should be 'uniform', 'gaussian', or 'zero', is '", noise_, "'");
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const ImageBatch in, ImageBatch::Of("input", ctx.input(0).shape()));
    ASSIGN_OR_RETURN(const std::vector<int64_t> size, SizeInput("size", ctx.input(1)));
    const Tensor& offsets = ctx.input(2);
    if (offsets.rank() != 2 || offsets.dim(0) != in.batch || offsets.dim(1) != 2) {
      return InvalidArgument("offsets must have shape [", in.batch, ", 2], have ",
                             offsets.shape().ToString());
    }
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{in.batch, size[0], size[1], in.channels}));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    const float* x = ctx.input(0).data<float>();
    float* y = out->mutable_data<float>();
    FillWithNoise(*ctx.step().env, ctx.input(0), y, shape.num_elements());
    for (int64_t b = 0; b < in.batch; ++b) {
      const float* offset = offsets.data<float>() + 2 * b;
      const int64_t top = First(offset[0], in.height, size[0]);
      const int64_t left = First(offset[1], in.width, size[1]);
      const int64_t begin = std::max<int64_t>(left, 0);
      const int64_t end = std::min(left + size[1], in.width);
      if (begin >= end) continue;
      for (int64_t r = 0; r < size[0]; ++r) {
        if (top + r < 0 || top + r >= in.height) continue;
        std::copy_n(x + b * in.image() + (top + r) * in.row() + begin * in.channels,
                    (end - begin) * in.channels,
                    y + ((b * size[0] + r) * size[1] + begin - left) * in.channels);
      }
    }
    return OkStatus();
  }

  // Returns the first pixel under a window of `size` pixels. In version 1 the offset is the
  // window's centre; in version 2 it is the window's beginning, except if it is centered and
  // normalized.
  int64_t First(float offset, int64_t in, int64_t size) const {
    const auto extent = static_cast<float>(in), window = static_cast<float>(size);
    if (normalized_) offset *= extent;
    if (!v2_) {
      if (centered_) offset = offset / 2 + extent / 2;
      offset -= window / 2;
    } else if (centered_) {
      offset = normalized_ ? offset / 2 + extent / 2 - window / 2 : offset + extent / 2;
    }
    constexpr float kFar = 1e9f;  // outside of any image; also replaces NaN
    return static_cast<int64_t>(offset > -kFar && offset < kFar ? offset : kFar);
  }

  // Fills pixels with noise: zeros, uniform between the least and the greatest input value, or
  // normal with the mean and the deviation of the input values.
  void FillWithNoise(Env& env, const Tensor& input, float* to, int64_t n) const {
    std::fill_n(to, n, 0.f);
    const int64_t count = input.num_elements();
    if (noise_ == "zero" || count == 0) return;
    const float* x = input.data<float>();
    PhiloxNumbers random(Philox::FromSeeds(env.RandomU64(), env.RandomU64()));
    if (noise_ == "uniform") {
      const auto [min, max] = std::minmax_element(x, x + count);
      for (int64_t i = 0; i < n; ++i) to[i] = *min + UnitFloat(random()) * (*max - *min);
      return;
    }
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < count; ++i) mean += x[i] / static_cast<double>(count);
    for (int64_t i = 0; i < count; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(count));
    for (int64_t i = 0; i < n; i += 2) {
      const uint32_t first = random();
      const auto pair = BoxMuller(first, random());
      for (int64_t k = i; k < std::min(i + 2, n); ++k) {
        to[k] = static_cast<float>(mean + deviation * pair[k - i]);
      }
    }
  }

  std::string noise_;
  bool centered_ = true, normalized_ = true, v2_ = false;
};

OpDef GlimpseDef() {
  return {.doc =
              "Extracts a window of `size` from each image, at `offsets`: in fractions of the "
              "image size if `normalized`, relative to the center of the image if `centered`. "
              "Pixels outside the image are noise.",
          .inputs = {{"input", "float"}, {"size", "int32"}, {"offsets", "float"}},
          .outputs = {{"glimpse", "float"}},
          .attrs = {{"centered", true},
                    {"normalized", true},
                    {"uniform_noise", true},
                    {"noise", "uniform"}},
          .shape =
              [](ShapeScope& s) {
                RETURN_IF_ERROR(s.WithRank(2, 2).status());
                return SizedShape(s, 1);
              },
          .gradient = NoGradient,
          .examples = {{.inputs = {{{{1, 5, 6, 2}}}, {{{2}, {3, 2}}}, {{{1, 2}, {0.4, -0.9}}}}}}};
}

}  // namespace

OP(ExtractGlimpse) { return GlimpseDef(); }
KERNEL_ANY_TYPE(ExtractGlimpse, ExtractGlimpse);
OP(ExtractGlimpseV2) { return GlimpseDef(); }
KERNEL_ANY_TYPE(ExtractGlimpseV2, ExtractGlimpse);

}  // namespace penstock
