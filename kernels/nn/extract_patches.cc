// SPDX-License-Identifier: Apache-2.0
//
// ExtractImagePatches, ExtractVolumePatches: lay out each window of an image or a volume as the
// channels of one pixel.
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/elements.h"
#include "kernels/nn/window.h"

namespace penstock {
namespace {

// The windows of a node. Images have no depth: they are volumes of depth 1.
struct PatchWindow {
  WindowAttrs window;
  std::vector<int64_t> sizes;
  int64_t taps = 1;  // elements of a patch per channel

  static StatusOr<PatchWindow> From(const Attrs& attrs) {
    // Only the op on images has rates.
    const auto rates = attrs.find("rates");
    Attrs renamed = {{"strides", attrs.at("strides")}, {"padding", attrs.at("padding")}};
    if (rates != attrs.end()) renamed["dilations"] = rates->second;
    PatchWindow result;
    ASSIGN_OR_RETURN(result.window,
                     WindowAttrs::From(renamed, true, rates != attrs.end() ? "NHWC" : "NDHWC"));
    if (const auto* sizes = attrs.at("ksizes").get<std::vector<int64_t>>()) result.sizes = *sizes;
    RETURN_IF_ERROR(CheckSpatial("ksizes", result.sizes, result.window.rank));
    ASSIGN_OR_RETURN(result.taps, CheckedProduct(result.sizes));
    return result;
  }
  int rank() const { return window.rank; }
};

class ExtractPatches final : public Kernel {
  Status Init(const KernelInit& node) override {
    ASSIGN_OR_RETURN(patch_, PatchWindow::From(node.attrs));
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    if (images.rank() != patch_.rank()) {
      return InvalidArgument("input must be ", patch_.rank(), "-dimensional, has shape ",
                             images.shape().ToString());
    }
    Windows w = {kNoWindow, kNoWindow, kNoWindow};
    Dims dims = {images.dim(0)};
    for (int d = 1; d + 1 < images.rank(); ++d) {
      Window& window = w[d + 4 - images.rank()];
      ASSIGN_OR_RETURN(window, patch_.window.MakeWindow(d, images.dim(d), patch_.sizes[d]));
      dims.push_back(window.out);
    }
    const int64_t patch_dims[] = {patch_.taps, images.dim(images.rank() - 1)};
    ASSIGN_OR_RETURN(const int64_t patch, CheckedProduct(patch_dims));
    dims.push_back(patch);
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    if (shape.num_elements() == 0) return OkStatus();
    const DType dtype = images.dtype();
    const int64_t columns = w[2].out, lines = shape.num_elements() / (columns * patch);
    ctx.threads().ParallelFor(
        lines, 0.3 * static_cast<double>(columns * patch), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin * columns; i < end * columns; ++i) {
            CopyPatch(images, w, i, ElementAt(out->mutable_raw_data(), dtype, i * patch));
          }
        });
    return OkStatus();
  }

  using Windows = std::array<Window, 3>;  // depth, height, width

  // Copies patch `position` of all patches of a batch.
  static void CopyPatch(const Tensor& images, const Windows& w, int64_t position, void* to) {
    const int64_t x = position % w[2].out, y = position / w[2].out % w[1].out;
    const int64_t z = position / w[2].out / w[1].out % w[0].out;
    const int64_t image = position / w[2].out / w[1].out / w[0].out;
    const DType dtype = images.dtype();
    const int64_t channels = images.dim(images.rank() - 1);
    for (int64_t kz = 0; kz < w[0].size; ++kz) {
      for (int64_t ky = 0; ky < w[1].size; ++ky) {
        for (int64_t kx = 0; kx < w[2].size; ++kx, to = ElementAt(to, dtype, channels)) {
          const int64_t iz = At(w[0], z, kz), iy = At(w[1], y, ky), ix = At(w[2], x, kx);
          if (iz < 0 || iz >= w[0].in || iy < 0 || iy >= w[1].in || ix < 0 || ix >= w[2].in) {
            ZeroElements(dtype, to, channels);
            continue;
          }
          const int64_t from = ((image * w[0].in + iz) * w[1].in + iy) * w[2].in + ix;
          CopyElements(dtype, ElementAt(images.raw_data(), dtype, from * channels), to, channels);
        }
      }
    }
  }

  static int64_t At(const Window& w, int64_t out, int64_t tap) {
    return out * w.stride - w.pad_before + tap * w.dilation;
  }

  PatchWindow patch_;
};

Status PatchesShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PatchWindow patch, PatchWindow::From(s.attrs()));
  const int last = patch.rank() - 1;
  ASSIGN_OR_RETURN(PartialShape images, s.WithRank(0, patch.rank()));
  PartialShape out = PartialShape::UnknownOfRank(patch.rank());
  if (!images.known_rank()) images = out;
  out.set_dim(0, images.dim(0));
  for (int dim = 1; dim < last; ++dim) {
    ASSIGN_OR_RETURN(const int64_t size,
                     WindowOutput(patch.window, dim, images.dim(dim), patch.sizes[dim]));
    out.set_dim(dim, size);
  }
  if (images.dim(last) >= 0) {
    const int64_t elements[] = {patch.taps, images.dim(last)};
    ASSIGN_OR_RETURN(const int64_t channels, CheckedProduct(elements));
    out.set_dim(last, channels);
  }
  s.set_output(0, out);
  return OkStatus();
}

// Extracts patches from an image in which the value of each pixel is its own index, from 1; 0 is
// padding. So each element of a patch is the index of the pixel to which the gradient of the
// element is added.
std::vector<Gradient> PatchesGradient(const GradientScope& g, const char* op) {
  Attrs attrs;
  for (const char* name : {"ksizes", "strides", "rates", "padding"}) {
    const auto it = g.attrs().find(name);
    if (it != g.attrs().end()) attrs[name] = it->second;
  }
  const auto& sizes = g.attr<std::vector<int64_t>>("ksizes");
  const auto spatial = static_cast<int32_t>(sizes.size()) - 2;
  const auto ints = [&](const std::vector<int32_t>& v) { return g.Const(Tensor::Vector(v)); };
  const auto part = [&](Output shape, int32_t begin, int32_t length) {
    return Call("Slice", {shape, ints({begin}), ints({length})});
  };
  const Output one = g.Const<int32_t>(1), zero = g.Const<int32_t>(0);
  const Output shape = ShapeOf(g.x()), dy_shape = ShapeOf(g.dy());
  const Output batch = part(shape, 0, 1), size = part(shape, 1, spatial);
  const Output channels = part(shape, spatial + 1, 1);
  const Output pixels = Call("Prod", {size, zero});
  const auto join = [&](const Outputs& parts) { return ConcatV2(parts, zero); };

  const Output numbers = Reshape(Range(one, pixels + 1.0, one), join({ints({1}), size, ints({1})}));
  const Output from = Reshape(Call(op, {numbers}, attrs), ints({-1}));
  // [batch, positions and taps, channels], transposed so that the summed dimensions come first.
  const int64_t taps = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  const Output places = part(dy_shape, 1, spatial);
  const Output rows = Call("Prod", {join({places, ints({static_cast<int32_t>(taps)})}), zero});
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
      .gradient = [](const GradientScope& g) { return PatchesGradient(g, "ExtractImagePatches"); },
      .examples = {{.inputs = {{{{2, 4, 3, 2}}}},
                    .attrs = {{"ksizes", std::vector<int64_t>{1, 2, 2, 1}},
                              {"strides", std::vector<int64_t>{1, 1, 2, 1}},
                              {"rates", std::vector<int64_t>{1, 2, 1, 1}},
                              {"padding", "SAME"}}}},
  };
}
KERNEL_ANY_TYPE(ExtractImagePatches, ExtractPatches);

OP(ExtractVolumePatches) {
  return {
      .doc =
          "Extracts windows of size ksizes that slide over volumes [batch, planes, rows, columns, "
          "channels] with `strides`. Each window becomes the channels of one output pixel.",
      .inputs = {{"input", "T"}},
      .outputs = {{"patches", "T"}},
      .types = {{"T", kReal}},
      .attrs = {{"ksizes", IntList{5}},
                {"strides", IntList{5}},
                {"padding", OneOf{{"SAME", "VALID"}}}},
      .shape = PatchesShape,
      .gradient = [](const GradientScope& g) { return PatchesGradient(g, "ExtractVolumePatches"); },
      .examples = {{.inputs = {{{{2, 3, 4, 3, 2}}}},
                    .attrs = {{"ksizes", std::vector<int64_t>{1, 2, 2, 2, 1}},
                              {"strides", std::vector<int64_t>{1, 1, 1, 2, 1}},
                              {"padding", "SAME"}}}},
  };
}
KERNEL_ANY_TYPE(ExtractVolumePatches, ExtractPatches);

}  // namespace penstock
