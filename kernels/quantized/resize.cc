// SPDX-License-Identifier: Apache-2.0
//
// QuantizedResizeBilinear: resizes images of quantized integers by bilinear interpolation, in fixed
// point; or images of floats, in float. The range does not change.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/image/pixels.h"
#include "kernels/image/taps.h"
#include "kernels/quantized/quantization.h"

namespace penstock {
namespace {

// How an image type is interpolated: weights are numbers in [0, 1) with kBits fractional bits, and
// sums are computed in Sum. As in TensorFlow, 7 bits for 8-bit integers and 30 bits for 32-bit
// ones.
template <class T>
struct FixedPoint {
  using Weight = int64_t;
  static constexpr int kBits = std::is_same_v<T, quint8> ? 7 : 30;

  static Weight ToWeight(float x) {
    return static_cast<Weight>(x * static_cast<float>(int64_t{1} << kBits));
  }
  // Interpolates twice between two numbers, then between the results. Division rounds towards
  // zero.
  static T Lerp(T top_left, T top_right, T bottom_left, T bottom_right, Weight x, Weight y) {
    constexpr int64_t kOne = int64_t{1} << kBits;
    // TensorFlow converts a qint32 to float first, which loses bits.
    const auto wide = [](T q) { return static_cast<int64_t>(static_cast<float>(q.value)); };
    const auto row = [&](T left, T right) {
      return wide(left) * kOne + (wide(right) - wide(left)) * x;
    };
    const int64_t top = row(top_left, top_right), bottom = row(bottom_left, bottom_right);
    const int64_t sum = top + (bottom - top) / kOne * y;
    return {static_cast<IntegerOf<T>>((sum + kOne / 2) / kOne)};
  }
};

template <>
struct FixedPoint<float> {
  using Weight = float;
  static Weight ToWeight(float x) { return x; }
  static float Lerp(float top_left, float top_right, float bottom_left, float bottom_right,
                    Weight x, Weight y) {
    const float top = top_left + (top_right - top_left) * x;
    const float bottom = bottom_left + (bottom_right - bottom_left) * x;
    return top + (bottom - top) * y;
  }
};

// The two input elements of an output element, and the weight of the second one.
template <class T>
struct Neighbours {
  int64_t lower, upper;
  typename FixedPoint<T>::Weight weight;
};

template <class T>
std::vector<Neighbours<T>> NeighboursOf(const ResizeGrid& grid) {
  std::vector<Neighbours<T>> all;
  for (int64_t o = 0; o < grid.out; ++o) {
    const float position = grid.Position(o), floor = std::floor(position);
    const int64_t upper = std::min(static_cast<int64_t>(std::ceil(position)), grid.in - 1);
    const int64_t lower = std::min(std::max<int64_t>(static_cast<int64_t>(floor), 0), upper);
    all.push_back({lower, upper, FixedPoint<T>::ToWeight(position - floor)});
  }
  return all;
}

template <class T>
class QuantizedResizeKernel final : public Kernel {
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("align_corners", &align_corners_));
    return node.Attr("half_pixel_centers", &half_pixel_centers_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    ASSIGN_OR_RETURN(const ImageBatch in, ImageBatch::Of("images", images.shape()));
    ASSIGN_OR_RETURN(const std::vector<int64_t> size, SizeInput("size", ctx.input(1)));
    ASSIGN_OR_RETURN(const QuantizedRange range, RangeInput(ctx, 2, "images"));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make({in.batch, size[0], size[1], in.channels}));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    RETURN_IF_ERROR(SetRangeOutputs(ctx, 1, range));
    if (shape.num_elements() == 0) return OkStatus();
    const T* const x = images.data<T>();
    T* const y = out->mutable_data<T>();
    if (size[0] == in.height && size[1] == in.width) {
      std::copy_n(x, shape.num_elements(), y);
      return OkStatus();
    }
    const auto rows = NeighboursOf<T>(Grid(in.height, size[0]));
    const auto columns = NeighboursOf<T>(Grid(in.width, size[1]));
    const int64_t width = size[1] * in.channels;
    ctx.threads().ParallelFor(
        in.batch * size[0], 3.0 * static_cast<double>(width), [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const Neighbours<T>& row = rows[r % size[0]];
            const T* const image = x + r / size[0] * in.image();
            ResizeRow(image + row.lower * in.row(), image + row.upper * in.row(), row.weight,
                      columns, in.channels, y + r * width);
          }
        });
    return OkStatus();
  }

  ResizeGrid Grid(int64_t in, int64_t out) const {
    return {in, out, align_corners_, half_pixel_centers_};
  }

  static void ResizeRow(const T* top, const T* bottom, typename FixedPoint<T>::Weight weight,
                        const std::vector<Neighbours<T>>& columns, int64_t channels, T* to) {
    for (const Neighbours<T>& column : columns) {
      const int64_t left = column.lower * channels, right = column.upper * channels;
      for (int64_t c = 0; c < channels; ++c) {
        *to++ = FixedPoint<T>::Lerp(top[left + c], top[right + c], bottom[left + c],
                                    bottom[right + c], column.weight, weight);
      }
    }
  }

  bool align_corners_ = false, half_pixel_centers_ = false;
};

Status QuantizedResizeShape(ShapeScope& s) {
  RETURN_IF_ERROR(SizedShape(s, 1));
  for (int i : {1, 2}) s.set_output(i, PartialShape::Scalar());
  return OkStatus();
}

}  // namespace

OP(QuantizedResizeBilinear) {
  OpDef op = {
      .doc = "Resizes quantized images by bilinear interpolation; the range does not change.",
      .inputs = {{"images", "T"}, {"size", "int32"}, {"min", "float"}, {"max", "float"}},
      .outputs = {{"resized_images", "T"}, {"out_min", "float"}, {"out_max", "float"}},
      .types = {{"T", {DType::kQuint8, DType::kQint32, DType::kFloat}}},
      .attrs = {{"align_corners", false}, {"half_pixel_centers", false}},
      .shape = QuantizedResizeShape,
      .gradient = NoGradient,
  };
  for (bool half_pixels : {false, true}) {
    op.examples.push_back({.inputs = {{{{1, 3, 4, 2}}}, {{{2}, {5, 2}}}, {{{}, {-1}}}, {{{}, {2}}}},
                           .attrs = {{"half_pixel_centers", half_pixels}}});
  }
  return op;
}
KERNEL(QuantizedResizeBilinear, QuantizedResizeKernel, quint8, qint32, float);

}  // namespace penstock
