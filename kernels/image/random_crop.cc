// SPDX-License-Identifier: Apache-2.0
//
// SampleDistortedBoundingBox, in three versions, and RandomCrop: random crops of images, drawn from
// TensorFlow's streams in TensorFlow's order.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/random/distributions.h"
#include "kernels/random/random_stream.h"
#include "kernels/random/stateless_stream.h"

namespace penstock {
namespace {

// A rectangle of pixels.
struct Rectangle {
  int64_t x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  int64_t width() const { return x2 - x1; }
  int64_t height() const { return y2 - y1; }
  float area() const {
    return width() > 0 && height() > 0 ? static_cast<float>(width() * height()) : 0;
  }
  Rectangle Intersect(const Rectangle& o) const {
    return {std::max(x1, o.x1), std::max(y1, o.y1), std::min(x2, o.x2), std::min(y2, o.y2)};
  }
};

// Returns a uniform number in [0, n). REQUIRES: n is in [1, 2^32).
int64_t Below(int64_t n, PhiloxNumbers& random) {
  return UniformBelow(static_cast<uint32_t>(n), random);
}

// Returns a random crop of the given aspect ratio with an area between two bounds, or nullopt if
// none fits.
std::optional<Rectangle> DrawCrop(const Rectangle& image, float min_area, float max_area,
                                  float ratio, PhiloxNumbers& random) {
  const auto width_for = [ratio](int64_t height) {
    return static_cast<int64_t>(std::lrint(static_cast<float>(height) * ratio));
  };
  int64_t height = std::lrint(std::sqrt(min_area / ratio));
  int64_t max_height = std::lrint(std::sqrt(max_area / ratio));
  if (width_for(max_height) > image.width()) {
    // Computes the largest height whose rounded width still fits.
    constexpr float kAlmostHalf = 0.5f - 0.0000001f;
    max_height = static_cast<int64_t>((static_cast<float>(image.width()) + kAlmostHalf) / ratio);
    if (width_for(max_height) > image.width()) --max_height;
  }
  max_height = std::min(max_height, image.height());
  height = std::min(height, max_height);
  if (height < max_height) height += Below(max_height - height + 1, random);
  int64_t width = width_for(height);
  const auto area = [&] { return static_cast<float>(width * height); };
  const auto resize = [&](int64_t change) {
    height += change;
    width = width_for(height);
  };
  // Adds or removes one row, because rounding may have made the area slightly too small or too
  // large.
  if (area() < min_area) resize(+1);
  if (area() > max_area) resize(-1);
  if (area() < min_area || area() > max_area || width > image.width() || height > image.height() ||
      width <= 0 || height <= 0) {
    return std::nullopt;
  }
  const int64_t y = height < image.height() ? Below(image.height() - height, random) : 0;
  const int64_t x = width < image.width() ? Below(image.width() - width, random) : 0;
  return Rectangle{x, y, x + width, y + height};
}

template <class T>
class SampleBox final : public Kernel {
  Status Init(const KernelInit& node) override {
    stateless_ = node.attrs.count("seed") == 0;
    if (!stateless_) RETURN_IF_ERROR(stream_.Init(node));
    RETURN_IF_ERROR(node.Attr("aspect_ratio_range", &ratios_));
    RETURN_IF_ERROR(node.Attr("area_range", &areas_));
    RETURN_IF_ERROR(node.Attr("max_attempts", &attempts_));
    RETURN_IF_ERROR(node.Attr("use_image_if_no_bounding_boxes", &whole_if_none_));
    if (node.attrs.count("min_object_covered") > 0) {
      RETURN_IF_ERROR(node.Attr("min_object_covered", &min_covered_));
    }
    const auto range = [](const std::vector<float>& r, float max) {
      return r.size() == 2 && r[0] > 0 && r[1] >= r[0] && r[1] <= max;
    };
    if (!range(ratios_, 1e6f)) {
      return InvalidArgument("aspect_ratio_range must be two increasing numbers above 0");
    }
    if (!range(areas_, 1)) {
      return InvalidArgument("area_range must be two increasing numbers in (0, 1]");
    }
    if (attempts_ >= 1 && attempts_ <= 1 << 20) return OkStatus();
    return InvalidArgument("max_attempts must be in [1, 1048576], is ", attempts_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& size = ctx.input(0);
    if (size.rank() != 1 || size.dim(0) != 3) {
      return InvalidArgument("image_size must be [height, width, channels], is ", size.ToString());
    }
    const auto height = static_cast<int64_t>(size.data<T>()[0]);
    const auto width = static_cast<int64_t>(size.data<T>()[1]);
    if (height < 1 || width < 1 || height > 1 << 30 || width > 1 << 30) {
      return InvalidArgument("image height and width must be in [1, 2^30], are ", height, " and ",
                             width);
    }
    float covered = min_covered_;
    if (ctx.num_inputs() > 2) {  // since V2, min_object_covered is an input
      const Tensor& given = ctx.input(2);
      if (given.rank() != 0) {
        return InvalidArgument("min_object_covered must be 0-D, has shape ",
                               given.shape().ToString());
      }
      covered = given.scalar<float>();
    }
    if (!(covered >= 0)) {
      return InvalidArgument("min_object_covered must be non-negative: ", covered);
    }
    const Rectangle image = {0, 0, width, height};
    ASSIGN_OR_RETURN(const std::vector<Rectangle> boxes, Boxes(ctx.input(1), image));
    ASSIGN_OR_RETURN(const Philox stream, Stream(ctx));
    PhiloxNumbers random(stream);
    return Output(ctx, image, Draw(image, boxes, covered, random));
  }

  StatusOr<Philox> Stream(const KernelContext& ctx) {
    if (stateless_) return SeedInput(ctx.input(3));
    return stream_.Reserve(attempts_, *ctx.step().env);
  }

  StatusOr<std::vector<Rectangle>> Boxes(const Tensor& given, const Rectangle& image) const {
    if (given.rank() != 3 || given.dim(2) != 4) {
      return InvalidArgument("bounding_boxes must have shape [batch, num_boxes, 4], have ",
                             given.shape().ToString());
    }
    std::vector<Rectangle> boxes;
    const float* b = given.data<float>();
    for (int64_t i = 0; i < given.num_elements() / 4; ++i, b += 4) {
      for (int k = 0; k < 4; ++k) {
        if (b[k] >= 0 && b[k] <= 1) continue;
        return InvalidArgument("All bounding box coordinates must be in [0.0, 1.0]: ", b[k]);
      }
      const auto w = static_cast<float>(image.x2), h = static_cast<float>(image.y2);
      boxes.push_back({static_cast<int64_t>(b[1] * w), static_cast<int64_t>(b[0] * h),
                       static_cast<int64_t>(b[3] * w), static_cast<int64_t>(b[2] * h)});
    }
    if (!boxes.empty()) return boxes;
    if (whole_if_none_) return std::vector<Rectangle>{image};
    return InvalidArgument(
        "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if "
        "you wish to not provide any bounding boxes.");
  }

  // Returns the first drawn crop that covers enough of one of the boxes, or the whole image if no
  // crop does.
  Rectangle Draw(const Rectangle& image, const std::vector<Rectangle>& boxes, float covered,
                 PhiloxNumbers& random) const {
    const float area = image.area();
    for (int64_t i = 0; i < attempts_; ++i) {
      const float ratio = UnitFloat(random()) * (ratios_[1] - ratios_[0]) + ratios_[0];
      const auto crop = DrawCrop(image, areas_[0] * area, areas_[1] * area, ratio, random);
      if (!crop.has_value()) continue;
      for (const Rectangle& box : boxes) {
        if (box.area() >= 1 && crop->Intersect(box).area() / box.area() >= covered) return *crop;
      }
    }
    return image;
  }

  static Status Output(KernelContext& ctx, const Rectangle& image, const Rectangle& crop) {
    Tensor *begin, *size, *box;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({3}), &begin));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape({3}), &size));
    RETURN_IF_ERROR(ctx.Allocate(2, Shape({1, 1, 4}), &box));
    const int64_t first[] = {crop.y1, crop.x1, 0}, extent[] = {crop.height(), crop.width(), -1};
    for (int k = 0; k < 3; ++k) {
      begin->mutable_data<T>()[k] = static_cast<T>(first[k]);
      size->mutable_data<T>()[k] = static_cast<T>(extent[k]);
    }
    const auto w = static_cast<float>(image.x2), h = static_cast<float>(image.y2);
    float* b = box->mutable_data<float>();
    b[0] = static_cast<float>(crop.y1) / h;
    b[1] = static_cast<float>(crop.x1) / w;
    b[2] = static_cast<float>(crop.y2) / h;
    b[3] = static_cast<float>(crop.x2) / w;
    return OkStatus();
  }

  RandomStream stream_;
  std::vector<float> ratios_, areas_;
  int64_t attempts_ = 100;
  float min_covered_ = 0.1f;
  bool whole_if_none_ = false, stateless_ = false;
};

template <class T>
class RandomCrop final : public Kernel {
  Status Init(const KernelInit& node) override { return stream_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    const Tensor &image = ctx.input(0), &size = ctx.input(1);
    if (image.rank() != 3 || size.rank() != 1 || size.dim(0) != 2) {
      return InvalidArgument("image must be 3-dimensional and size two numbers, are ",
                             image.shape().ToString(), " and ", size.ToString());
    }
    const int64_t height = size.data<int64_t>()[0], width = size.data<int64_t>()[1];
    if (height < 0 || width < 0 || height > image.dim(0) || width > image.dim(1)) {
      return InvalidArgument("size ", height, " x ", width, " does not fit into an image ",
                             image.shape().ToString());
    }
    PhiloxNumbers random(stream_.Reserve(1, *ctx.step().env));
    const int64_t rows_left = image.dim(0) - height, columns_left = image.dim(1) - width;
    const int64_t x = columns_left > 0 ? random() % (columns_left + 1) : 0;
    const int64_t y = rows_left > 0 ? random() % (rows_left + 1) : 0;
    const int64_t channels = image.dim(2);
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({height, width, channels}), &out));
    for (int64_t r = 0; r < height; ++r) {
      std::copy_n(image.data<T>() + ((y + r) * image.dim(1) + x) * channels, width * channels,
                  out->mutable_data<T>() + r * width * channels);
    }
    return OkStatus();
  }
  RandomStream stream_;
};

Status BoxShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape size, s.WithRank(0, 1));
  RETURN_IF_ERROR(size.Merge(PartialShape({3})).status());
  RETURN_IF_ERROR(s.WithRank(1, 3).status());
  s.set_output(0, PartialShape({3}));
  s.set_output(1, PartialShape({3}));
  s.set_output(2, PartialShape({1, 1, 4}));
  return OkStatus();
}

Status CropShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape image, s.WithRank(0, 3));
  std::vector<int64_t> size;
  const bool known = s.ConstantInts(1, &size) && size.size() == 2 && size[0] >= 0 && size[1] >= 0;
  s.set_output(0, PartialShape({known ? size[0] : -1, known ? size[1] : -1,
                                image.known_rank() ? image.dim(2) : -1}));
  return OkStatus();
}

OpDef BoxDef(bool v2) {
  OpDef def{
      .doc =
          "Draws a random window of an image whose aspect ratio and area are in the given "
          "ranges and that covers at least min_object_covered of one of the boxes; the "
          "complete image if max_attempts attempts find none. Returns begin and size for "
          "Slice, and the window as fractions.",
      .inputs = {{"image_size", "T"}, {"bounding_boxes", "float"}},
      .outputs = {{"begin", "T"}, {"size", "T"}, {"bboxes", "float"}},
      .types = {{"T", {DType::kUint8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64}}},
      .attrs = {{"seed", 0},
                {"seed2", 0},
                {"aspect_ratio_range", std::vector<float>{0.75f, 1.33f}},
                {"area_range", std::vector<float>{0.05f, 1}},
                {"max_attempts", 100},
                {"use_image_if_no_bounding_boxes", false}},
      .shape = BoxShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}, {40, 50, 3}}}, {{{1, 1, 4}, {0.1, 0.2, 0.7, 0.8}}}}}},
      .stateful = true};
  if (v2) {
    def.inputs.push_back({"min_object_covered", "float"});
    def.examples[0].inputs.push_back({{{}, {0.5}}});
  } else {
    def.attrs.push_back({"min_object_covered", 0.1f});
  }
  return def;
}

OpDef StatelessBoxDef() {
  OpDef def = BoxDef(true);
  def.stateful = false;
  std::erase_if(def.attrs, [](const AttrDef& a) { return a.name == "seed" || a.name == "seed2"; });
  def.types.push_back({"Tseed", {DType::kInt32, DType::kInt64}});
  def.inputs.push_back({"seed", "Tseed"});
  def.examples[0].inputs.push_back({{{2}, {3, 5}}});
  return def;
}

}  // namespace

OP(SampleDistortedBoundingBox) { return BoxDef(false); }
KERNEL(SampleDistortedBoundingBox, SampleBox, uint8_t, int8_t, int16_t, int32_t, int64_t);
OP(SampleDistortedBoundingBoxV2) { return BoxDef(true); }
KERNEL(SampleDistortedBoundingBoxV2, SampleBox, uint8_t, int8_t, int16_t, int32_t, int64_t);
OP(StatelessSampleDistortedBoundingBox) { return StatelessBoxDef(); }
KERNEL(StatelessSampleDistortedBoundingBox, SampleBox, uint8_t, int8_t, int16_t, int32_t, int64_t);

OP(RandomCrop) {
  return {
      .doc =
          "Crops a window of the given size, at a random position, from an image [height, "
          "width, channels].",
      .inputs = {{"image", "T"}, {"size", "int64"}},
      .outputs = {{"output", "T"}},
      .types = {{"T",
                 {DType::kUint8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                  DType::kFloat, DType::kDouble}}},
      .attrs = {{"seed", 0}, {"seed2", 0}},
      .shape = CropShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{5, 6, 2}}}, {{{2}, {2, 3}}}}}},
      .stateful = true,
  };
}
KERNEL(RandomCrop, RandomCrop, uint8_t, int8_t, int16_t, int32_t, int64_t, float, double);

}  // namespace penstock
