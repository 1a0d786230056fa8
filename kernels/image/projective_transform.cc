// SPDX-License-Identifier: Apache-2.0
//
// ImageProjectiveTransformV2 and V3: rotate, shear, shift and project images.
#include <algorithm>
#include <cmath>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/image/pixels.h"

namespace penstock {
namespace {

enum class FillMode { kConstant, kReflect, kWrap, kNearest };

// Positions are clamped to this magnitude, so that they can be converted to integers.
constexpr float kFar = 1e9f;

// Maps a position outside of [0, size - 1] to a position inside, by the rule of the fill mode; in
// constant mode the position stays outside. NaN counts as far outside.
float Inside(float position, int64_t size, FillMode mode) {
  const auto last = static_cast<float>(size - 1), length = static_cast<float>(size);
  if (!(std::abs(position) < kFar)) position = position > 0 ? kFar : -kFar;
  float at = position;
  switch (mode) {
    case FillMode::kConstant:
      return position;
    case FillMode::kNearest:
      break;
    case FillMode::kReflect: {  // d c b a | a b c d | d c b a
      const float period = 2 * length;
      if (at < 0) at = std::trunc(-at / period) * period + at;
      if (at < 0) at = at < -length ? at + period : -at - 1;
      if (at > last) at -= period * std::trunc(at / period);
      if (at >= length) at = period - at - 1;
      break;
    }
    case FillMode::kWrap:  // a b c d | a b c d | a b c d
      if (size == 1) return 0;
      if (at < 0) {
        at += length * (std::trunc(-at / last) + 1);
      } else if (at > last) {
        at -= length * std::trunc(at / last);
      }
      break;
  }
  return std::clamp(at, 0.f, last);
}

template <class T>
struct Source {
  const T* image;
  ImageBatch size;
  T fill;

  // Returns channel c of a pixel; `fill` if the pixel is outside of the image.
  T At(float y, float x, int64_t c) const {
    const auto row = static_cast<int64_t>(y), column = static_cast<int64_t>(x);
    const bool inside = row >= 0 && row < size.height && column >= 0 && column < size.width;
    return inside ? image[row * size.row() + column * size.channels + c] : fill;
  }
  T Bilinear(float y, float x, int64_t c) const {
    const float top = std::floor(y), left = std::floor(x);
    const auto in_row = [&](float row) {
      return (left + 1 - x) * static_cast<float>(At(row, left, c)) +
             (x - left) * static_cast<float>(At(row, left + 1, c));
    };
    return static_cast<T>((top + 1 - y) * in_row(top) + (y - top) * in_row(top + 1));
  }
};

template <class T>
class ProjectiveTransformKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    std::string interpolation, mode;
    RETURN_IF_ERROR(node.Attr("interpolation", &interpolation));
    RETURN_IF_ERROR(node.Attr("fill_mode", &mode));
    if (interpolation != "NEAREST" && interpolation != "BILINEAR") {
      return InvalidArgument("Invalid interpolation ", interpolation,
                             ". Supported types: NEAREST, BILINEAR");
    }
    bilinear_ = interpolation == "BILINEAR";
    const char* const names[] = {"CONSTANT", "REFLECT", "WRAP", "NEAREST"};
    const auto* const found = std::find(std::begin(names), std::end(names), mode);
    if (found == std::end(names)) {
      return InvalidArgument("Invalid mode ", mode,
                             ". Supported types: REFLECT, WRAP, CONSTANT, NEAREST");
    }
    mode_ = static_cast<FillMode>(found - std::begin(names));
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& transforms = ctx.input(1);
    ASSIGN_OR_RETURN(const ImageBatch in, ImageBatch::Of("images", ctx.input(0).shape()));
    const bool fits = transforms.rank() == 2 && transforms.dim(1) == 8 &&
                      (transforms.dim(0) == 1 || transforms.dim(0) == in.batch);
    if (!fits) {
      return InvalidArgument("Input transform should be num_images x 8 or 1 x 8: transforms has ",
                             "shape ", transforms.shape().ToString());
    }
    ASSIGN_OR_RETURN(const std::vector<int64_t> size, SizeInput("output_shape", ctx.input(2)));
    float fill = 0;
    if (ctx.num_inputs() > 3) {
      if (ctx.input(3).rank() != 0) {
        return InvalidArgument("fill_value must be a scalar, has shape ",
                               ctx.input(3).shape().ToString());
      }
      fill = ctx.input(3).scalar<float>();
    }
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{in.batch, size[0], size[1], in.channels}));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    const int64_t row = size[1] * in.channels;
    ctx.threads().ParallelFor(in.batch * size[0], 10.0 * row, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / size[0];
        const float* transform =
            transforms.data<float>() + (transforms.dim(0) == 1 ? 0 : image * 8);
        const Source<T> source = {ctx.input(0).data<T>() + image * in.image(), in,
                                  static_cast<T>(fill)};
        Row(source, transform, i % size[0], size[1], output->mutable_data<T>() + i * row);
      }
    });
    return OkStatus();
  }

 private:
  void Row(const Source<T>& source, const float* t, int64_t row, int64_t width, T* to) const {
    const int64_t channels = source.size.channels;
    const auto y = static_cast<float>(row);
    for (int64_t column = 0; column < width; ++column, to += channels) {
      const auto x = static_cast<float>(column);
      const float projection = t[6] * x + t[7] * y + 1;
      if (projection == 0) {  // the position is at infinity
        std::fill_n(to, channels, source.fill);
        continue;
      }
      const float from_x =
          Inside((t[0] * x + t[1] * y + t[2]) / projection, source.size.width, mode_);
      const float from_y =
          Inside((t[3] * x + t[4] * y + t[5]) / projection, source.size.height, mode_);
      for (int64_t c = 0; c < channels; ++c) {
        to[c] = bilinear_ ? source.Bilinear(from_y, from_x, c)
                          : source.At(std::round(from_y), std::round(from_x), c);
      }
    }
  }

  bool bilinear_ = false;
  FillMode mode_ = FillMode::kConstant;
};

// Transforms the gradient back, by the inverse matrices. As in TensorFlow, pixels outside of the
// gradient are filled in the same mode as pixels outside of the images.
std::vector<Gradient> ProjectiveGradient(const GradientScope& g) {
  const auto ints = [&](std::vector<int32_t> values) { return g.Const(Tensor::Vector(values)); };
  const Output flat = g.x(1);
  const Output ones = OnesLike(Call("Slice", {flat, ints({0, 0}), ints({-1, 1})}));
  const Output matrices = Reshape(ConcatV2({flat, ones}, g.Const<int32_t>(1)), ints({-1, 3, 3}));
  const Output inverse = Reshape(Call("MatrixInverse", {matrices}), ints({-1, 9}));
  const Output scale = Call("Slice", {inverse, ints({0, 8}), ints({-1, 1})});
  const Output back = Call("Slice", {inverse / scale, ints({0, 0}), ints({-1, 8})});
  const Output size = Call("Slice", {ShapeOf(g.x()), ints({1}), ints({2})});
  std::vector<Gradient> dx(g.num_inputs());
  const Attrs attrs = {{"interpolation", g.attr<std::string>("interpolation")},
                       {"fill_mode", g.attr<std::string>("fill_mode")}};
  dx[0] = g.num_inputs() == 3
              ? Call("ImageProjectiveTransformV2", {g.dy(), back, size}, attrs)
              : Call("ImageProjectiveTransformV3", {g.dy(), back, size, g.x(3)}, attrs);
  return dx;
}

Status ProjectiveShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape transforms, s.WithRank(1, 2));
  if (transforms.dim(1) >= 0 && transforms.dim(1) != 8) {
    return InvalidArgument("transforms must have 8 columns, has shape ", transforms.ToString());
  }
  if (s.num_inputs() > 3) RETURN_IF_ERROR(s.WithRank(3, 0).status());
  return SizedShape(s, 2);
}

OpDef ProjectiveOp(bool has_fill_value) {
  OpDef op = {
      .doc =
          "Applies a projective transform to each image. Output pixel (x, y) is the input at ((a0 "
          "x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), where k = c0 x + c1 y + 1 and a row of "
          "transforms is [a0, a1, a2, b0, b1, b2, c0, c1]. fill_mode (CONSTANT, REFLECT, WRAP or "
          "NEAREST) determines the values of positions outside of an image.",
      .inputs = {{"images", "dtype"}, {"transforms", "float"}, {"output_shape", "int32"}},
      .outputs = {{"transformed_images", "dtype"}},
      .types = {{"dtype",
                 {DType::kUint8, DType::kInt32, DType::kInt64, DType::kHalf, DType::kBfloat16,
                  DType::kFloat, DType::kDouble}}},
      .attrs = {{"interpolation", Strings{}}, {"fill_mode", "CONSTANT"}},
      .shape = ProjectiveShape,
      .gradient = ProjectiveGradient,
      // The example's gradient is not checked, because it is an approximation unless pixels move by
      // whole numbers.
      .examples =
          {{.inputs = {{{{1, 3, 3, 1}}}, {{{1, 8}, {1, 0, 1, 0, 1, 0, 0, 0}}}, {{{2}, {3, 3}}}},
            .attrs = {{"interpolation", "NEAREST"}},
            .check_gradient = false}},
  };
  if (!has_fill_value) return op;
  op.inputs.push_back({"fill_value", "float"});
  op.examples[0].inputs.push_back({{.values = {0}}});
  return op;
}
OP(ImageProjectiveTransformV2) { return ProjectiveOp(false); }
OP(ImageProjectiveTransformV3) { return ProjectiveOp(true); }
KERNEL_BY("dtype", ImageProjectiveTransformV2, ProjectiveTransformKernel, uint8_t, int32_t, int64_t,
          half, bfloat16, float, double);
KERNEL_BY("dtype", ImageProjectiveTransformV3, ProjectiveTransformKernel, uint8_t, int32_t, int64_t,
          half, bfloat16, float, double);

}  // namespace
}  // namespace penstock
