// SPDX-License-Identifier: Apache-2.0
//
// ResizeNearestNeighbor and its gradient.
#include <algorithm>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/array/elements.h"
#include "kernels/image/pixels.h"
#include "kernels/image/resize_kernel.h"
#include "kernels/math/add.h"

namespace penstock {
namespace {

class NearestBase : public ResizeKernel {
 protected:
  std::vector<int64_t> Nearest(int64_t in, int64_t out) const {
    const ResizeGrid grid = Grid(in, out);
    std::vector<int64_t> nearest(out);
    for (int64_t o = 0; o < out; ++o) nearest[o] = grid.Nearest(o);
    return nearest;
  }
  static StatusOr<Shape> Resized(const ImageBatch& images, const std::vector<int64_t>& size) {
    return Shape::Make(Dims{images.batch, size[0], size[1], images.channels});
  }
};

class ResizeNearest final : public NearestBase {
  Status Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    ASSIGN_OR_RETURN(const ImageBatch in, ImageBatch::Of("images", images.shape()));
    ASSIGN_OR_RETURN(const std::vector<int64_t> size, SizeInput("size", ctx.input(1)));
    ASSIGN_OR_RETURN(const Shape shape, Resized(in, size));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    if (shape.num_elements() == 0) return OkStatus();  // height or width may be huge
    const std::vector<int64_t> rows = Nearest(in.height, size[0]),
                               columns = Nearest(in.width, size[1]);
    const DType dtype = images.dtype();
    ctx.threads().ParallelFor(
        in.batch * size[0], 3.0 * static_cast<double>(size[1]), [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const int64_t from = r / size[0] * in.image() + rows[r % size[0]] * in.row();
            for (int64_t o = 0; o < size[1]; ++o) {
              CopyElements(
                  dtype, ElementAt(images.raw_data(), dtype, from + columns[o] * in.channels),
                  ElementAt(out->mutable_raw_data(), dtype, (r * size[1] + o) * in.channels),
                  in.channels);
            }
          }
        });
    return OkStatus();
  }
};

// Inputs: grads, and the size of the images.
template <class T>
class ResizeNearestGrad final : public NearestBase {
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const ImageBatch from, ImageBatch::Of("grads", ctx.input(0).shape()));
    ASSIGN_OR_RETURN(const std::vector<int64_t> size, SizeInput("size", ctx.input(1)));
    ASSIGN_OR_RETURN(const Shape shape, Resized(from, size));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    if (ctx.input(0).num_elements() == 0 || shape.num_elements() == 0) {
      ZeroElements(out->dtype(), out->mutable_raw_data(), shape.num_elements());
      return OkStatus();
    }
    const std::vector<int64_t> rows = Nearest(size[0], from.height),
                               columns = Nearest(size[1], from.width);
    const T* dy = ctx.input(0).template data<T>();
    T* dx = out->template mutable_data<T>();
    const int64_t image = size[0] * size[1] * from.channels;
    ctx.threads().ParallelFor(
        from.batch, static_cast<double>(from.image()), [&](int64_t begin, int64_t end) {
          std::fill(dx + begin * image, dx + end * image, T(0));
          for (int64_t b = begin; b < end; ++b) {
            for (int64_t p = 0; p < from.height * from.width; ++p) {
              const T* grad = dy + b * from.image() + p * from.channels;
              const int64_t pixel = rows[p / from.width] * size[1] + columns[p % from.width];
              T* to = dx + b * image + pixel * from.channels;
              for (int64_t c = 0; c < from.channels; ++c) to[c] = AddFn()(to[c], grad[c]);
            }
          }
        });
    return OkStatus();
  }
};

const DTypes kTypes = {DType::kInt8,   DType::kUint8,   DType::kInt16, DType::kUint16,
                       DType::kInt32,  DType::kInt64,   DType::kHalf,  DType::kFloat,
                       DType::kDouble, DType::kBfloat16};
const DTypes kGradTypes = {DType::kUint8, DType::kInt8,   DType::kInt32,   DType::kHalf,
                           DType::kFloat, DType::kDouble, DType::kBfloat16};

}  // namespace

OP(ResizeNearestNeighbor) {
  return {
      .doc = "Resizes images. Each output pixel is the nearest input pixel.",
      .inputs = {{"images", "T"}, {"size", "int32"}},
      .outputs = {{"resized_images", "T"}},
      .types = {{"T", kTypes}},
      .attrs = GridAttrs(),
      .shape = [](ShapeScope& s) { return SizedShape(s, 1); },
      .gradient =
          [](const GradientScope& g) { return ResizedBySize(g, "ResizeNearestNeighborGrad"); },
      .examples = {{.inputs = {{{{1, 3, 4, 2}}}, {{{2}, {5, 2}}}}}},
  };
}
KERNEL_ANY_TYPE(ResizeNearestNeighbor, ResizeNearest);

OP(ResizeNearestNeighborGrad) {
  return {
      .doc = "The gradient of ResizeNearestNeighbor for images of `size`.",
      .inputs = {{"grads", "T"}, {"size", "int32"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kGradTypes}},
      .attrs = GridAttrs(),
      .shape = [](ShapeScope& s) { return SizedShape(s, 1); },
      .gradient = [](const GradientScope& g) { return ResizedBySize(g, "ResizeNearestNeighbor"); },
      .examples = {{.inputs = {{{{1, 5, 2, 2}}}, {{{2}, {3, 4}}}}}},
  };
}
KERNEL(ResizeNearestNeighborGrad, ResizeNearestGrad, uint8_t, int8_t, int32_t, half, float, double,
       bfloat16);

}  // namespace penstock
