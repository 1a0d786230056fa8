// SPDX-License-Identifier: Apache-2.0
//
// DrawBoundingBoxes, which has fixed colors, and DrawBoundingBoxesV2, which has an input for the
// colors.
#include <algorithm>
#include <array>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/image/pixels.h"

namespace penstock {
namespace {

using Color = std::array<float, 4>;
constexpr Color kColors[] = {
    {1, 1, 0, 1},       {0, 0, 1, 1},    {1, 0, 0, 1},    {0, 1, 0, 1}, {0.5f, 0, 0.5f, 1},
    {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1}, {0, 1, 1, 1}, {1, 0, 1, 1}};

// The extent of a box along one dimension: its first and its last pixel, which may lie outside of
// the image, and the size of the image.
struct Side {
  int64_t first, last, size;
  Side(float from, float to, int64_t size)
      : first(Pixel(from, size)), last(Pixel(to, size)), size(size) {}
  bool visible() const { return first <= last && first < size && last >= 0; }
  int64_t begin() const { return std::max<int64_t>(first, 0); }
  int64_t end() const { return std::min(last, size - 1) + 1; }

 private:
  static int64_t Pixel(float at, int64_t size) {
    constexpr float kFar = 1e9f;  // far outside of any image
    const float pixel = at * static_cast<float>(size - 1);
    return static_cast<int64_t>(pixel > -kFar && pixel < kFar ? pixel : pixel > 0 ? kFar : -kFar);
  }
};

template <class T>
class DrawBoxes final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor &images = ctx.input(0), &boxes = ctx.input(1);
    ASSIGN_OR_RETURN(const ImageBatch b, ImageBatch::Of("images", images.shape()));
    if (b.channels != 1 && b.channels != 3 && b.channels != 4) {
      return InvalidArgument("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), is ",
                             b.channels);
    }
    if (boxes.rank() != 3 || boxes.dim(0) != b.batch || boxes.dim(2) != 4) {
      return InvalidArgument("boxes must have shape [", b.batch, ", num_boxes, 4], have ",
                             boxes.shape().ToString());
    }
    ASSIGN_OR_RETURN(const std::vector<Color> colors, Colors(ctx, b.channels));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, images.shape(), &out));
    T* y = out->template mutable_data<T>();
    std::copy_n(images.data<T>(), images.num_elements(), y);
    const float* box = boxes.data<float>();
    for (int64_t i = 0; i < b.batch * boxes.dim(1); ++i, box += 4) {
      const Side rows(box[0], box[2], b.height), columns(box[1], box[3], b.width);
      if (!rows.visible() || !columns.visible()) continue;
      const Color& color = colors[i % boxes.dim(1) % colors.size()];
      T* image = y + i / boxes.dim(1) * b.image();
      const auto paint = [&](int64_t r, int64_t c) {
        for (int64_t k = 0; k < b.channels; ++k) {
          image[r * b.row() + c * b.channels + k] = T(color[k]);
        }
      };
      for (int64_t r : {rows.first, rows.last}) {
        if (r < 0 || r >= b.height) continue;
        for (int64_t c = columns.begin(); c < columns.end(); ++c) paint(r, c);
      }
      for (int64_t c : {columns.first, columns.last}) {
        if (c < 0 || c >= b.width) continue;
        for (int64_t r = rows.begin(); r < rows.end(); ++r) paint(r, c);
      }
    }
    return OkStatus();
  }

  static StatusOr<std::vector<Color>> Colors(const KernelContext& ctx, int64_t channels) {
    if (ctx.num_inputs() > 2) {
      ASSIGN_OR_RETURN(std::vector<Color> colors, GivenColors(ctx.input(2), channels));
      if (!colors.empty()) return colors;
    }
    if (channels == 1) return std::vector<Color>{{1}};
    return std::vector<Color>(std::begin(kColors), std::end(kColors));
  }

  static StatusOr<std::vector<Color>> GivenColors(const Tensor& given, int64_t channels) {
    if (given.rank() != 2 || given.dim(1) < channels) {
      return InvalidArgument("colors must have shape [num_colors, ", channels, "], have ",
                             given.shape().ToString());
    }
    std::vector<Color> colors(given.dim(0));
    for (int64_t i = 0; i < given.dim(0); ++i) {
      std::copy_n(given.data<float>() + i * given.dim(1), channels, colors[i].begin());
    }
    return colors;
  }
};

OpDef DrawDef(bool v2) {
  OpDef def{.doc =
                "Draws the outlines of boxes [y1, x1, y2, x2], in fractions of the image size, "
                "into copies of images.",
            .inputs = {{"images", "T"}, {"boxes", "float"}},
            .outputs = {{"output", "T"}},
            .types = {{"T", {DType::kFloat, DType::kHalf}, DType::kFloat}},
            .shape =
                [](ShapeScope& s) {
                  ASSIGN_OR_RETURN(const PartialShape images, s.WithRank(0, 4));
                  s.set_output(0, images);
                  return s.WithRank(1, 3).status();
                },
            .examples = {{.inputs = {{{{1, 4, 5, 3}}}, {{{1, 1, 4}, {0.1, 0.2, 0.9, 0.8}}}}}}};
  if (v2) {
    def.inputs.push_back({"colors", "float"});
    def.examples[0].inputs.push_back({{{2, 3}}});
  }
  return def;
}

}  // namespace

OP(DrawBoundingBoxes) { return DrawDef(false); }
KERNEL(DrawBoundingBoxes, DrawBoxes, float, half);
OP(DrawBoundingBoxesV2) { return DrawDef(true); }
KERNEL(DrawBoundingBoxesV2, DrawBoxes, float, half);

}  // namespace penstock
