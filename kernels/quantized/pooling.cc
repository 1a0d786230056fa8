// SPDX-License-Identifier: Apache-2.0
//
// QuantizedAvgPool and QuantizedMaxPool: the mean and the largest integer under windows that slide
// over images. The range does not change.
#include <algorithm>
#include <string>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/nn/window.h"
#include "kernels/quantized/quantization.h"

namespace penstock {
namespace {

struct QuantizedPoolWindow {
  WindowAttrs window;
  std::vector<int64_t> sizes;

  static StatusOr<QuantizedPoolWindow> From(const Attrs& attrs) {
    QuantizedPoolWindow result;
    ASSIGN_OR_RETURN(result.window, WindowAttrs::From(attrs));
    if (const auto* sizes = attrs.at("ksize").get<std::vector<int64_t>>()) result.sizes = *sizes;
    RETURN_IF_ERROR(CheckSpatial("ksize", result.sizes));
    return result;
  }
};

// Means round towards zero.
struct MeanOfWindow {
  int64_t sum = 0, count = 0;
  void Add(int64_t x) {
    sum += x;
    ++count;
  }
  int64_t Result() const { return count == 0 ? 0 : sum / count; }
};

struct LargestOfWindow {
  int64_t largest = INT64_MIN;
  void Add(int64_t x) { largest = std::max(largest, x); }
  int64_t Result() const { return largest; }
};

template <class Fold, class Q>
class QuantizedPoolKernel final : public Kernel {
  Status Init(const KernelInit& node) override {
    ASSIGN_OR_RETURN(pool_, QuantizedPoolWindow::From(node.attrs));
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& image = ctx.input(0);
    if (image.rank() != 4) {
      return InvalidArgument("input must be 4-dimensional, has shape ", image.shape().ToString());
    }
    ASSIGN_OR_RETURN(const QuantizedRange range, RangeInput(ctx, 1, "input"));
    ASSIGN_OR_RETURN(const Window h, pool_.window.MakeWindow(1, image.dim(1), pool_.sizes[1]));
    ASSIGN_OR_RETURN(const Window w, pool_.window.MakeWindow(2, image.dim(2), pool_.sizes[2]));
    ASSIGN_OR_RETURN(const Shape shape,
                     Shape::Make(Dims{image.dim(0), h.out, w.out, image.dim(3)}));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    if (shape.num_elements() > 0) Pool(ctx, h, w, output->mutable_data<Q>());
    return SetRangeOutputs(ctx, 1, range);
  }

  static void Pool(KernelContext& ctx, const Window& h, const Window& w, Q* y) {
    const Q* const x = ctx.input(0).data<Q>();
    const int64_t channels = ctx.input(0).dim(3), row = w.out * channels;
    const double taps = static_cast<double>(std::min(h.size, h.in) * std::min(w.size, w.in));
    ctx.threads().ParallelFor(
        ctx.input(0).dim(0) * h.out, static_cast<double>(row) * taps,
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin * row; i < end * row; ++i) {
            const int64_t c = i % channels, ow = i / channels % w.out;
            const int64_t oh = i / row % h.out, b = i / row / h.out;
            Fold fold;
            h.ForEachInside(oh, [&](int64_t ih) {
              w.ForEachInside(ow, [&](int64_t iw) {
                fold.Add(x[((b * h.in + ih) * w.in + iw) * channels + c].value);
              });
            });
            y[i] = {static_cast<IntegerOf<Q>>(fold.Result())};
          }
        });
  }

  QuantizedPoolWindow pool_;
};

Status QuantizedPoolShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape image, s.WithRank(0, 4));
  ASSIGN_OR_RETURN(const QuantizedPoolWindow pool, QuantizedPoolWindow::From(s.attrs()));
  Dims dims(4, PartialShape::kUnknown);
  if (image.known_rank()) {
    dims[0] = image.dim(0);
    dims[3] = image.dim(3);
    for (int i : {1, 2}) {
      ASSIGN_OR_RETURN(dims[i], WindowOutput(pool.window, i, image.dim(i), pool.sizes[i]));
    }
  }
  s.set_output(0, PartialShape(dims));
  for (int i : {1, 2}) s.set_output(i, PartialShape::Scalar());
  return OkStatus();
}

OpDef QuantizedPoolOp(const char* doc) {
  OpDef op = {
      .doc = doc,
      .inputs = {{"input", "T"}, {"min_input", "float"}, {"max_input", "float"}},
      .outputs = {{"output", "T"}, {"min_output", "float"}, {"max_output", "float"}},
      .types = {{"T", kQuantized}},
      .attrs = {{"ksize", IntList{}},
                {"strides", IntList{}},
                {"padding", OneOf{{"SAME", "VALID"}}}},
      .shape = QuantizedPoolShape,
      .gradient = NoGradient,
  };
  const std::vector<int64_t> window = {1, 2, 2, 1};
  for (DType type : {DType::kQuint8, DType::kQint8}) {
    op.examples.push_back(
        {.inputs = {{{{1, 3, 3, 2}}}, {{{}, {-3}}}, {{{}, {9}}}},
         .attrs = {{"T", type}, {"ksize", window}, {"strides", window}, {"padding", "SAME"}}});
  }
  return op;
}

template <class Q>
using QuantizedAvgPoolKernel = QuantizedPoolKernel<MeanOfWindow, Q>;
template <class Q>
using QuantizedMaxPoolKernel = QuantizedPoolKernel<LargestOfWindow, Q>;

}  // namespace

OP(QuantizedAvgPool) {
  return QuantizedPoolOp(
      "The means of quantized images under a window of size ksize that moves by `strides`. The "
      "range does not change.");
}
OP(QuantizedMaxPool) {
  return QuantizedPoolOp(
      "The largest integers of quantized images under a window of size ksize that moves by "
      "`strides`. The range does not change.");
}
KERNEL(QuantizedAvgPool, QuantizedAvgPoolKernel, quint8, qint8);
KERNEL(QuantizedMaxPool, QuantizedMaxPoolKernel, quint8, qint8);

}  // namespace penstock
