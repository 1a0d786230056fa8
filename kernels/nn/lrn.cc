// SPDX-License-Identifier: Apache-2.0
//
// LRN and LRNGrad: local response normalisation across the channels of each pixel (Krizhevsky,
// Sutskever and Hinton 2012).
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/engine/vector_math.h"
#include "kernels/nn/float_view.h"

namespace penstock {
namespace {

class LrnKernel : public Kernel {
 protected:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("depth_radius", &radius_));
    RETURN_IF_ERROR(node.Attr("bias", &bias_));
    RETURN_IF_ERROR(node.Attr("alpha", &alpha_));
    RETURN_IF_ERROR(node.Attr("beta", &beta_));
    if (radius_ >= 0) return OkStatus();
    return InvalidArgument("attribute 'depth_radius' is ", radius_, ", must not be negative");
  }
  static Status CheckRank(const Tensor& x) {
    if (x.rank() == 4) return OkStatus();
    return InvalidArgument("input must be 4-dimensional, has shape ", x.shape().ToString());
  }

  // Computes sums[c], the sum of values over channels [c - radius, c + radius].
  void WindowSums(const float* values, int64_t n, float* sums) const {
    std::copy_n(values, n, sums);
    for (int64_t d = 1; d <= std::min(radius_, n - 1); ++d) {
      for (int64_t c = 0; c < n - d; ++c) sums[c] += values[c + d];
      for (int64_t c = d; c < n; ++c) sums[c] += values[c - d];
    }
  }
  // Computes norm[c] = bias + alpha * the sum of squares over the channels around c. `squares` is
  // scratch memory.
  void Norms(const float* x, int64_t n, float* squares, float* norm) const {
    for (int64_t c = 0; c < n; ++c) squares[c] = x[c] * x[c];
    WindowSums(squares, n, norm);
    for (int64_t c = 0; c < n; ++c) norm[c] = bias_ + alpha_ * norm[c];
  }
  void Powers(const float* norm, int64_t n, float* powers) const {
    for (int64_t c = 0; c < n; ++c) powers[c] = std::pow(norm[c], -beta_);
  }
  static constexpr double kElementNanos = 5;

  int64_t radius_ = 0;
  float bias_ = 0, alpha_ = 0, beta_ = 0;
};

class Lrn final : public LrnKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    RETURN_IF_ERROR(CheckRank(input));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
    const int64_t n = input.dim(3), rows = n == 0 ? 0 : input.num_elements() / n;
    const FloatInput<float> x(input);
    FloatOutput<float> y(output);
    ctx.threads().ParallelFor(rows, kElementNanos * n, [&](int64_t begin, int64_t end) {
      std::vector<float> squares(n), norm(n), powers(n);
      for (int64_t r = begin; r < end; ++r) {
        const float* in = x + r * n;
        float* out = y + r * n;
        Norms(in, n, squares.data(), norm.data());
        Powers(norm.data(), n, powers.data());
        for (int64_t c = 0; c < n; ++c) out[c] = in[c] * powers[c];
      }
    });
    return OkStatus();
  }
};

// Inputs: input_grads, input_image, output_image.
class LrnGrad final : public LrnKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& image = ctx.input(1);
    RETURN_IF_ERROR(CheckRank(image));
    for (int i : {0, 2}) {
      if (ctx.input(i).shape() != image.shape()) {
        return InvalidArgument(i == 0 ? "input_grads" : "output_image", " must have the shape of ",
                               "input_image, ", image.shape().ToString(), ", has ",
                               ctx.input(i).shape().ToString());
      }
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, image.shape(), &output));
    const int64_t n = image.dim(3), rows = n == 0 ? 0 : image.num_elements() / n;
    const FloatInput<float> grad(ctx.input(0)), x(image), y(ctx.input(2));
    FloatOutput<float> dx(output);
    ctx.threads().ParallelFor(rows, 2 * kElementNanos * n, [&](int64_t begin, int64_t end) {
      std::vector<float> values(n), norm(n), powers(n), sums(n);
      for (int64_t r = begin; r < end; ++r) {
        const int64_t at = r * n;
        Norms(x + at, n, values.data(), norm.data());
        Powers(norm.data(), n, powers.data());
        // A channel's input also affects the outputs of the channels whose windows contain it.
        for (int64_t c = 0; c < n; ++c) values[c] = grad[at + c] * y[at + c] / norm[c];
        WindowSums(values.data(), n, sums.data());
        for (int64_t c = 0; c < n; ++c) {
          dx[at + c] = grad[at + c] * powers[c] - 2 * alpha_ * beta_ * x[at + c] * sums[c];
        }
      }
    });
    return OkStatus();
  }
};

template <class>
using LrnOf = Lrn;
template <class>
using LrnGradOf = LrnGrad;

Status LrnShape(ShapeScope& s) {
  PartialShape shape = PartialShape::UnknownOfRank(4);
  for (int i = 0; i < s.num_inputs(); ++i) {
    ASSIGN_OR_RETURN(shape, shape.Merge(s.input(i)));
  }
  s.set_output(0, shape);
  return OkStatus();
}

std::vector<AttrDef> LrnAttrs() {
  return {{"depth_radius", 5}, {"bias", 1.0f}, {"alpha", 1.0f}, {"beta", 0.5f}};
}
std::vector<TypeAttrDef> LrnTypes() {
  return {{"T", {DType::kHalf, DType::kBfloat16, DType::kFloat}, DType::kFloat}};
}

}  // namespace

OP(LRN) {
  return {
      .doc =
          "output = input / (bias + alpha * sum)^beta, where sum is the sum of the squares of the "
          "channels within depth_radius.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = LrnTypes(),
      .attrs = LrnAttrs(),
      .shape = LrnShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        Attrs attrs;
        for (const AttrDef& attr : LrnAttrs()) attrs[attr.name] = g.attrs().at(attr.name);
        return {Call("LRNGrad", {g.dy(), g.x(), g.y()}, attrs)};
      },
      .examples = {{.inputs = {{{{1, 2, 1, 7}}}}, .attrs = {{"depth_radius", 2}}}},
  };
}
KERNEL(LRN, LrnOf, half, bfloat16, float);

OP(LRNGrad) {
  return {
      .doc = "The gradient of LRN.",
      .inputs = {{"input_grads", "T"}, {"input_image", "T"}, {"output_image", "T"}},
      .outputs = {{"output", "T"}},
      .types = LrnTypes(),
      .attrs = LrnAttrs(),
      .shape = LrnShape,
      .examples = {{.inputs = {{{{1, 2, 1, 7}}}, {{{1, 2, 1, 7}}}, {{{1, 2, 1, 7}}}}}},
  };
}
KERNEL(LRNGrad, LrnGradOf, half, bfloat16, float);

}  // namespace penstock
