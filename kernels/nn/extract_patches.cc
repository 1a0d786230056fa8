// SPDX-License-Identifier: Apache-2.0
//
// ExtractImagePatches: lays out each window of an image as the channels of one pixel.
#include <cstdint>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/elements.h"
#include "kernels/nn/window.h"

namespace penstock {
namespace {

struct PatchWindow {
  WindowAttrs window;
  std::vector<int64_t> sizes;

  static StatusOr<PatchWindow> From(const Attrs& attrs) {
    const Attrs renamed = {{"strides", attrs.at("strides")},
                           {"dilations", attrs.at("rates")},
                           {"padding", attrs.at("padding")}};
    PatchWindow result;
    ASSIGN_OR_RETURN(result.window, WindowAttrs::From(renamed));
    if (const auto* sizes = attrs.at("ksizes").get<std::vector<int64_t>>()) result.sizes = *sizes;
    RETURN_IF_ERROR(CheckSpatial("ksizes", result.sizes));
    return result;
  }
};

class ExtractPatches final : public Kernel {
  Status Init(const KernelInit& node) override {
    ASSIGN_OR_RETURN(patch_, PatchWindow::From(node.attrs));
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    if (images.rank() != 4) {
      return InvalidArgument("images must be 4-dimensional, have shape ",
                             images.shape().ToString());
    }
    ASSIGN_OR_RETURN(const Window h, patch_.window.MakeWindow(1, images.dim(1), patch_.sizes[1]));
    ASSIGN_OR_RETURN(const Window w, patch_.window.MakeWindow(2, images.dim(2), patch_.sizes[2]));
    const int64_t channels = images.dim(3), batch = images.dim(0);
    const int64_t patch_dims[] = {h.size, w.size, channels};
    ASSIGN_OR_RETURN(const int64_t patch, CheckedProduct(patch_dims));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{batch, h.out, w.out, patch}));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    if (shape.num_elements() == 0) return OkStatus();
    const DType dtype = images.dtype();
    ctx.threads().ParallelFor(batch * h.out, 0.3 * static_cast<double>(w.out * patch),
                              [&](int64_t begin, int64_t end) {
                                for (int64_t r = begin; r < end; ++r) {
                                  for (int64_t ow = 0; ow < w.out; ++ow) {
                                    const int64_t to = (r * w.out + ow) * patch;
                                    CopyPatch(images, h, w, r / h.out, r % h.out, ow,
                                              ElementAt(out->mutable_raw_data(), dtype, to));
                                  }
                                }
                              });
    return OkStatus();
  }

  static void CopyPatch(const Tensor& images, const Window& h, const Window& w, int64_t b,
                        int64_t oh, int64_t ow, void* to) {
    const DType dtype = images.dtype();
    const int64_t channels = images.dim(3);
    for (int64_t kh = 0; kh < h.size; ++kh) {
      const int64_t ih = oh * h.stride - h.pad_before + kh * h.dilation;
      for (int64_t kw = 0; kw < w.size; ++kw, to = ElementAt(to, dtype, channels)) {
        const int64_t iw = ow * w.stride - w.pad_before + kw * w.dilation;
        if (ih < 0 || ih >= h.in || iw < 0 || iw >= w.in) {
          ZeroElements(dtype, to, channels);
        } else {
          const int64_t from = ((b * h.in + ih) * w.in + iw) * channels;
          CopyElements(dtype, ElementAt(images.raw_data(), dtype, from), to, channels);
        }
      }
    }
  }

  PatchWindow patch_;
};

Status PatchesShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape images, s.WithRank(0, 4));
  ASSIGN_OR_RETURN(const PatchWindow patch, PatchWindow::From(s.attrs()));
  PartialShape out = PartialShape::UnknownOfRank(4);
  if (!images.known_rank()) images = out;
  out.set_dim(0, images.dim(0));
  for (int dim : {1, 2}) {
    ASSIGN_OR_RETURN(const int64_t size,
                     WindowOutput(patch.window, dim, images.dim(dim), patch.sizes[dim]));
    out.set_dim(dim, size);
  }
  if (images.dim(3) >= 0) {
    const int64_t elements[] = {patch.sizes[1], patch.sizes[2], images.dim(3)};
    ASSIGN_OR_RETURN(const int64_t channels, CheckedProduct(elements));
    out.set_dim(3, channels);
  }
  s.set_output(0, out);
  return OkStatus();
}

// Extracts patches from an image in which the value of each pixel is its own index, from 1; 0 is
// padding. So each element of a patch is the index of the pixel to which the gradient of the
// element is added.
std::vector<Gradient> PatchesGradient(const GradientScope& g) {
  Attrs attrs;
  for (const char* name : {"ksizes", "strides", "rates", "padding"}) {
    attrs[name] = g.attrs().at(name);
  }
  const auto& sizes = g.attr<std::vector<int64_t>>("ksizes");
  const auto ints = [&](const std::vector<int32_t>& v) { return g.Const(Tensor::Vector(v)); };
  const auto part = [&](Output shape, int32_t begin, int32_t length) {
    return Call("Slice", {shape, ints({begin}), ints({length})});
  };
  const Output one = g.Const<int32_t>(1), zero = g.Const<int32_t>(0);
  const Output shape = ShapeOf(g.x()), dy_shape = ShapeOf(g.dy());
  const Output batch = part(shape, 0, 1), size = part(shape, 1, 2), channels = part(shape, 3, 1);
  const Output pixels = Call("Prod", {size, zero});
  const auto join = [&](const Outputs& parts) { return ConcatV2(parts, zero); };

  const Output numbers = Reshape(Range(one, pixels + 1.0, one), join({ints({1}), size, ints({1})}));
  const Output from = Reshape(Call("ExtractImagePatches", {numbers}, attrs), ints({-1}));
  // [batch, positions and taps, channels], transposed so that the summed dimensions come first.
  const Output taps = ints({static_cast<int32_t>(sizes[1] * sizes[2])});
  const Output places = part(dy_shape, 1, 2);
  const Output rows = Call("Prod", {join({places, taps}), zero});
  const Output by_tap = Reshape(g.dy(), join({batch, ExpandDims(rows, zero), channels}));
  const Output summed =
      Call("UnsortedSegmentSum", {Transpose(by_tap, ints({1, 0, 2})), from, pixels + 1.0});
  const Output inside = Call("Slice", {summed, ints({1, 0, 0}), ints({-1, -1, -1})});
  return {Reshape(Transpose(inside, ints({1, 0, 2})), shape)};
}

const DTypes kPatchTypes = {DType::kBfloat16,  DType::kHalf,       DType::kFloat,  DType::kDouble,
                            DType::kInt8,      DType::kInt16,      DType::kInt32,  DType::kInt64,
                            DType::kUint8,     DType::kUint16,     DType::kUint32, DType::kUint64,
                            DType::kComplex64, DType::kComplex128, DType::kBool};

}  // namespace

OP(ExtractImagePatches) {
  return {
      .doc =
          "Extracts windows of size ksizes that slide over images with `strides`; the "
          "pixels of a window are `rates` apart. Each window becomes the channels of one "
          "output pixel.",
      .inputs = {{"images", "T"}},
      .outputs = {{"patches", "T"}},
      .types = {{"T", kPatchTypes}},
      .attrs = {{"ksizes", IntList{4}},
                {"strides", IntList{4}},
                {"rates", IntList{4}},
                {"padding", OneOf{{"SAME", "VALID"}}}},
      .shape = PatchesShape,
      .gradient = PatchesGradient,
      .examples = {{.inputs = {{{{2, 4, 3, 2}}}},
                    .attrs = {{"ksizes", std::vector<int64_t>{1, 2, 2, 1}},
                              {"strides", std::vector<int64_t>{1, 1, 2, 1}},
                              {"rates", std::vector<int64_t>{1, 2, 1, 1}},
                              {"padding", "SAME"}}}},
  };
}
KERNEL_ANY_TYPE(ExtractImagePatches, ExtractPatches);

}  // namespace penstock
