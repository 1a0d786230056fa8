// SPDX-License-Identifier: Apache-2.0
//
// CropAndResize and its gradients: cut boxes out of images and resize all of them to the same size.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/image/pixels.h"

namespace penstock {
namespace {

// One dimension of one crop. Maps a position in the crop to a position in the image, which may lie
// between two elements.
struct Axis {
  int64_t in = 0, crop = 0;
  float begin = 0, end = 0;  // the ends of the box; 0 and 1 mean the first and the last element

  float last() const { return static_cast<float>(in - 1); }
  // Returns the step in the image per step in the crop, for a box that covers the image.
  float ratio() const { return crop > 1 ? last() / static_cast<float>(crop - 1) : 0; }
  float Position(int64_t i) const {
    return crop > 1 ? begin * last() + static_cast<float>(i) * ((end - begin) * ratio())
                    : 0.5f * (begin + end) * last();
  }
  struct Neighbours {
    int64_t low, high;
    float fraction;  // position between low and high, from 0 to 1
  };
  // Sets *n to the elements around position i of the crop. Returns false if that position is
  // outside of the image.
  bool At(int64_t i, bool nearest, Neighbours* n) const {
    const float position = Position(i);
    if (!(position >= 0 && position <= last())) return false;
    n->low = static_cast<int64_t>(nearest ? std::round(position) : std::floor(position));
    n->high = nearest ? n->low : static_cast<int64_t>(std::ceil(position));
    n->fraction = position - static_cast<float>(n->low);
    return true;
  }
};

class CropKernel : public Kernel {
 protected:
  Status Init(const KernelInit& node) override {
    std::string method;
    RETURN_IF_ERROR(node.Attr("method", &method));
    nearest_ = method == "nearest";
    return OkStatus();
  }

  // Checks boxes [n, 4] and box_ind [n], the index of each box's image among `batch` images.
  // InvalidArgument if a shape is wrong, OutOfRange if an index is.
  static Status CheckBoxes(const Tensor& boxes, const Tensor& box_ind, int64_t batch) {
    if (boxes.rank() != 2 || boxes.dim(1) != 4) {
      return InvalidArgument("boxes must have shape [num_boxes, 4], have ",
                             boxes.shape().ToString());
    }
    if (box_ind.rank() != 1 || box_ind.dim(0) != boxes.dim(0)) {
      return InvalidArgument("box_ind must have shape [", boxes.dim(0), "], has ",
                             box_ind.shape().ToString());
    }
    for (int32_t b : box_ind.flat<int32_t>()) {
      if (b < 0 || b >= batch) {
        return OutOfRange("box_index has values outside [0, batch_size): ", b, " of ", batch);
      }
    }
    return OkStatus();
  }

  static Axis Rows(const Tensor& boxes, int64_t box, int64_t in, int64_t crop) {
    const float* b = boxes.data<float>() + 4 * box;
    return {in, crop, b[0], b[2]};
  }
  static Axis Columns(const Tensor& boxes, int64_t box, int64_t in, int64_t crop) {
    const float* b = boxes.data<float>() + 4 * box;
    return {in, crop, b[1], b[3]};
  }

  // Calls inside(y, x, rows, columns) for the positions of a crop that lie in the image, and
  // outside(y, x) for the others.
  template <class Inside, class Outside>
  void ForEachPosition(const Axis& rows, const Axis& columns, const Inside& inside,
                       const Outside& outside) const {
    Axis::Neighbours r, c;
    for (int64_t y = 0; y < rows.crop; ++y) {
      const bool row_inside = rows.At(y, nearest_, &r);
      for (int64_t x = 0; x < columns.crop; ++x) {
        if (row_inside && columns.At(x, nearest_, &c)) {
          inside(y, x, r, c);
        } else {
          outside(y, x);
        }
      }
    }
  }
  bool nearest_ = false;
};

// The four pixels around a position in an image.
struct Corners {
  const float *top_left, *top_right, *bottom_left, *bottom_right;
  Corners(const float* image, const ImageBatch& b, const Axis::Neighbours& r,
          const Axis::Neighbours& c)
      : top_left(image + r.low * b.row() + c.low * b.channels),
        top_right(image + r.low * b.row() + c.high * b.channels),
        bottom_left(image + r.high * b.row() + c.low * b.channels),
        bottom_right(image + r.high * b.row() + c.high * b.channels) {}
};

// Converts all images to floats. If there are only a few boxes, it converts pixels that are not
// needed, but that case is rare.
std::vector<float> Floats(const Tensor& t) {
  std::vector<float> values(t.num_elements());
  ToFloats(t, 0, values.data(), t.num_elements());
  return values;
}

// Inputs: image, boxes, box_ind, crop_size.
class CropAndResize final : public CropKernel {
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("extrapolation_value", &extrapolation_));
    return CropKernel::Init(node);
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& boxes = ctx.input(1);
    ASSIGN_OR_RETURN(const ImageBatch in, ImageBatch::Of("image", ctx.input(0).shape()));
    RETURN_IF_ERROR(CheckBoxes(boxes, ctx.input(2), in.batch));
    ASSIGN_OR_RETURN(const std::vector<int64_t> size, SizeInput("crop_size", ctx.input(3)));
    ASSIGN_OR_RETURN(const Shape shape,
                     Shape::Make(Dims{boxes.dim(0), size[0], size[1], in.channels}));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    const std::vector<float> images = Floats(ctx.input(0));
    const int64_t crop = size[0] * size[1] * in.channels;
    ctx.threads().ParallelFor(boxes.dim(0), 3.0 * crop, [&](int64_t begin, int64_t end) {
      for (int64_t box = begin; box < end; ++box) {
        const float* image = images.data() + ctx.input(2).data<int32_t>()[box] * in.image();
        float* to = out->mutable_data<float>() + box * crop;
        const auto pixel = [&](int64_t y, int64_t x) {
          return to + (y * size[1] + x) * in.channels;
        };
        ForEachPosition(
            Rows(boxes, box, in.height, size[0]), Columns(boxes, box, in.width, size[1]),
            [&](int64_t y, int64_t x, const auto& r, const auto& c) {
              const Corners p(image, in, r, c);
              for (int64_t i = 0; i < in.channels; ++i) {
                const float top = p.top_left[i] + (p.top_right[i] - p.top_left[i]) * c.fraction;
                const float bottom =
                    p.bottom_left[i] + (p.bottom_right[i] - p.bottom_left[i]) * c.fraction;
                pixel(y, x)[i] = nearest_ ? p.top_left[i] : top + (bottom - top) * r.fraction;
              }
            },
            [&](int64_t y, int64_t x) { std::fill_n(pixel(y, x), in.channels, extrapolation_); });
      }
    });
    return OkStatus();
  }
  float extrapolation_ = 0;
};

// Inputs: grads, boxes, box_ind, image_size.
class CropGradImage final : public CropKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor &boxes = ctx.input(1), &size = ctx.input(3);
    ASSIGN_OR_RETURN(const ImageBatch crops, ImageBatch::Of("grads", ctx.input(0).shape()));
    if (size.rank() != 1 || size.dim(0) != 4) {
      return InvalidArgument("image_size must be 4 numbers, is ", size.ToString());
    }
    const auto sizes = size.flat<int32_t>();
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims(sizes.begin(), sizes.end())));
    ASSIGN_OR_RETURN(const ImageBatch to, ImageBatch::Of("image_size", shape));
    RETURN_IF_ERROR(CheckBoxes(boxes, ctx.input(2), to.batch));
    if (crops.batch != boxes.dim(0) || crops.channels != to.channels) {
      return InvalidArgument("grads ", ctx.input(0).shape().ToString(), " do not fit ",
                             boxes.dim(0), " boxes of images ", shape.ToString());
    }
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    std::vector<float> sums(shape.num_elements());
    // Boxes may overlap, so this loop adds their gradients one after the other, on one thread.
    for (int64_t box = 0; box < crops.batch; ++box) {
      float* image = sums.data() + ctx.input(2).data<int32_t>()[box] * to.image();
      const float* grads = ctx.input(0).data<float>() + box * crops.image();
      ForEachPosition(
          Rows(boxes, box, to.height, crops.height), Columns(boxes, box, to.width, crops.width),
          [&](int64_t y, int64_t x, const auto& r, const auto& c) {
            const float* g = grads + y * crops.row() + x * crops.channels;
            const auto add = [&](int64_t row, int64_t column, float weight) {
              float* pixel = image + row * to.row() + column * to.channels;
              for (int64_t i = 0; i < to.channels; ++i) pixel[i] += g[i] * weight;
            };
            if (nearest_) return add(r.low, c.low, 1);
            add(r.low, c.low, (1 - r.fraction) * (1 - c.fraction));
            add(r.low, c.high, (1 - r.fraction) * c.fraction);
            add(r.high, c.low, r.fraction * (1 - c.fraction));
            add(r.high, c.high, r.fraction * c.fraction);
          },
          [](int64_t, int64_t) {});
    }
    FromFloats(sums.data(), out, 0, shape.num_elements());
    return OkStatus();
  }
};

// Inputs: grads, image, boxes, box_ind.
class CropGradBoxes final : public CropKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& boxes = ctx.input(2);
    ASSIGN_OR_RETURN(const ImageBatch crops, ImageBatch::Of("grads", ctx.input(0).shape()));
    ASSIGN_OR_RETURN(const ImageBatch in, ImageBatch::Of("image", ctx.input(1).shape()));
    RETURN_IF_ERROR(CheckBoxes(boxes, ctx.input(3), in.batch));
    if (crops.batch != boxes.dim(0) || crops.channels != in.channels) {
      return InvalidArgument("grads ", ctx.input(0).shape().ToString(), " do not fit ",
                             boxes.dim(0), " boxes of images ", ctx.input(1).shape().ToString());
    }
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, boxes.shape(), &out));
    const std::vector<float> images = Floats(ctx.input(1));
    ctx.threads().ParallelFor(crops.batch, 5.0 * crops.image(), [&](int64_t begin, int64_t end) {
      for (int64_t box = begin; box < end; ++box) {
        const float* image = images.data() + ctx.input(3).data<int32_t>()[box] * in.image();
        const float* grads = ctx.input(0).data<float>() + box * crops.image();
        const Axis rows = Rows(boxes, box, in.height, crops.height);
        const Axis columns = Columns(boxes, box, in.width, crops.width);
        float* d = out->mutable_data<float>() + 4 * box;
        std::fill_n(d, 4, 0.f);
        ForEachPosition(
            rows, columns,
            [&](int64_t y, int64_t x, const auto& r, const auto& c) {
              const Corners p(image, in, r, c);
              const float* g = grads + y * crops.row() + x * crops.channels;
              float dy = 0, dx = 0;  // derivatives of the sum with respect to the position
              for (int64_t i = 0; i < in.channels; ++i) {
                dy += g[i] * ((1 - c.fraction) * (p.bottom_left[i] - p.top_left[i]) +
                              c.fraction * (p.bottom_right[i] - p.top_right[i]));
                dx += g[i] * ((1 - r.fraction) * (p.top_right[i] - p.top_left[i]) +
                              r.fraction * (p.bottom_right[i] - p.bottom_left[i]));
              }
              Add(rows, y, dy, &d[0], &d[2]);
              Add(columns, x, dx, &d[1], &d[3]);
            },
            [](int64_t, int64_t) {});
      }
    });
    return OkStatus();
  }

  // Adds the derivatives with respect to the two ends of the box. `slope` is the derivative with
  // respect to the position.
  static void Add(const Axis& axis, int64_t i, float slope, float* begin, float* end) {
    const float to_end = axis.crop > 1 ? static_cast<float>(i) * axis.ratio() : 0.5f * axis.last();
    *begin += slope * (axis.last() - to_end);
    *end += slope * to_end;
  }
};
template <class>
using CropGradImageOf = CropGradImage;

Status CropShape(ShapeScope& s) {
  RETURN_IF_ERROR(SizedShape(s, 3));
  ASSIGN_OR_RETURN(const PartialShape boxes, s.WithRank(1, 2));
  PartialShape out = s.output(0);
  out.set_dim(0, boxes.known_rank() ? boxes.dim(0) : PartialShape::kUnknown);
  s.set_output(0, out);
  return OkStatus();
}

Status GradImageShape(ShapeScope& s) {
  PartialShape out = PartialShape::UnknownOfRank(4);
  std::vector<int64_t> sizes;
  if (s.ConstantInts(3, &sizes) && sizes.size() == 4) {
    ASSIGN_OR_RETURN(out, PartialShape::Make(sizes));
  }
  s.set_output(0, out);
  return OkStatus();
}

Status GradBoxesShape(ShapeScope& s) {
  s.set_output(0, s.input(2));
  return OkStatus();
}

std::vector<Gradient> CropGradient(const GradientScope& g) {
  const Attrs method = {{"method", g.attrs().at("method")}};
  Gradient image;
  if (IsFloating(g.dtype())) {
    Attrs attrs = method;
    attrs["T"] = g.dtype();
    image = Call("CropAndResizeGradImage", {g.dy(), g.x(1), g.x(2), ShapeOf(g.x(0))}, attrs);
  }
  return {image, Call("CropAndResizeGradBoxes", {g.dy(), g.x(0), g.x(1), g.x(2)}), Gradient(),
          Gradient()};
}

const DTypes kPixelTypes = {DType::kUint8, DType::kUint16, DType::kInt8,
                            DType::kInt16, DType::kInt32,  DType::kInt64,
                            DType::kHalf,  DType::kFloat,  DType::kDouble};
const OneOf kMethods{{"bilinear", "nearest"}};
const ExampleTensor kImage = {{2, 3, 4, 2}}, kCrops = {{2, 2, 3, 2}};
const ExampleTensor kBoxes = {{2, 4}, {0.1, 0.2, 0.7, 0.9, -0.2, 0.5, 0.8, 0.1}};
const ExampleTensor kIndices = {{2}, {1, 0}};

}  // namespace

OP(CropAndResize) {
  return {
      .doc =
          "Crops boxes [y1, x1, y2, x2], in fractions of the image size, and resizes them to "
          "crop_size. Box i is cropped from image box_ind[i]. Pixels outside an image have the "
          "value extrapolation_value.",
      .inputs = {{"image", "T"}, {"boxes", "float"}, {"box_ind", "int32"}, {"crop_size", "int32"}},
      .outputs = {{"crops", "float"}},
      .types = {{"T", kPixelTypes}},
      .attrs = {{"method", kMethods, "bilinear"}, {"extrapolation_value", 0.0f}},
      .shape = CropShape,
      .gradient = CropGradient,
      .examples = {{.inputs = {{kImage}, {kBoxes}, {kIndices}, {{{2}, {2, 3}}}},
                    .check_gradient = false}},  // the results are floats
  };
}
KERNEL_ANY_TYPE(CropAndResize, CropAndResize);

OP(CropAndResizeGradImage) {
  return {
      .doc = "The gradient of CropAndResize for its images, whose shape is image_size.",
      .inputs = {{"grads", "float"},
                 {"boxes", "float"},
                 {"box_ind", "int32"},
                 {"image_size", "int32"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", {DType::kFloat, DType::kHalf, DType::kDouble}}},
      .attrs = {{"method", kMethods, "bilinear"}},
      .shape = GradImageShape,
      .examples = {{.inputs = {{kCrops}, {kBoxes}, {kIndices}, {{{4}, {2, 3, 4, 2}}}}}},
  };
}
KERNEL(CropAndResizeGradImage, CropGradImageOf, float, half, double);

OP(CropAndResizeGradBoxes) {
  return {
      .doc = "The gradient of CropAndResize for its boxes.",
      .inputs = {{"grads", "float"}, {"image", "T"}, {"boxes", "float"}, {"box_ind", "int32"}},
      .outputs = {{"output", "float"}},
      .types = {{"T", kPixelTypes}},
      .attrs = {{"method", OneOf{{"bilinear"}}, "bilinear"}},
      .shape = GradBoxesShape,
      .examples = {{.inputs = {{kCrops}, {kImage}, {kBoxes}, {kIndices}}}},
  };
}
KERNEL_ANY_TYPE(CropAndResizeGradBoxes, CropGradBoxes);

}  // namespace penstock
