// SPDX-License-Identifier: Apache-2.0
//
// The ops FractionalMaxPoolGrad, FractionalAvgPoolGrad.
#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/math/add.h"
#include "kernels/nn/fractional_regions.h"

namespace penstock {
namespace {

// Returns the regions of the sequence in an input. InvalidArgument unless it has out + 1 ascending
// numbers from 0 to `in`.
StatusOr<std::vector<Region>> RegionsInput(const Tensor& sequence, const char* name, int64_t in,
                                           int64_t out, bool overlapping) {
  if (sequence.rank() != 1 || sequence.num_elements() != out + 1) {
    return InvalidArgument(name, " must have ", out + 1, " elements, has shape ",
                           sequence.shape().ToString());
  }
  const auto numbers = sequence.flat<int64_t>();
  for (int64_t i = 0; i < out; ++i) {
    if (numbers[i] < 0 || numbers[i] >= numbers[i + 1] || numbers[i + 1] > in) {
      return InvalidArgument(name, " must ascend from 0 to ", in, " at most; elements ", i, " and ",
                             i + 1, " are ", numbers[i], " and ", numbers[i + 1]);
    }
  }
  return Regions(numbers, in, overlapping);
}

// Reads the geometry of a gradient kernel. InvalidArgument if the inputs do not fit each other. The
// inputs first, first + 1 and first + 2 are out_backprop and the two sequences.
StatusOr<FractionalGeometry> GradientGeometry(const KernelContext& ctx, const Shape& input,
                                              int first, bool overlapping) {
  const Tensor& dy = ctx.input(first);
  if (input.rank() != 4 || dy.rank() != 4) {
    return InvalidArgument("the input and out_backprop must be 4-dimensional, have shapes ",
                           input.ToString(), " and ", dy.shape().ToString());
  }
  FractionalGeometry g{.batch = input.dim(0),
                       .height = input.dim(1),
                       .width = input.dim(2),
                       .channels = input.dim(3)};
  if (dy.dim(0) != g.batch || dy.dim(3) != g.channels) {
    return InvalidArgument("out_backprop has shape ", dy.shape().ToString(),
                           ", which does not go with an input of shape ", input.ToString());
  }
  ASSIGN_OR_RETURN(g.rows, RegionsInput(ctx.input(first + 1), "row_pooling_sequence", g.height,
                                        dy.dim(1), overlapping));
  ASSIGN_OR_RETURN(g.columns, RegionsInput(ctx.input(first + 2), "col_pooling_sequence", g.width,
                                           dy.dim(2), overlapping));
  return g;
}

// The first of the largest elements of a region gets the region's gradient.
template <class T>
class FractionalMaxPoolGradKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("overlapping", &overlapping_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const FractionalGeometry g,
                     GradientGeometry(ctx, ctx.input(0).shape(), 2, overlapping_));
    if (ctx.input(1).shape() != g.output()) {
      return InvalidArgument("orig_output must have shape ", g.output().ToString(), ", has ",
                             ctx.input(1).shape().ToString());
    }
    Tensor* gradient;
    RETURN_IF_ERROR(ctx.Allocate(0, g.input(), &gradient));
    const T *in = ctx.input(0).data<T>(), *dy = ctx.input(2).data<T>();
    T* dx = gradient->mutable_data<T>();
    const int64_t image = g.height * g.width * g.channels;
    ctx.threads().ParallelFor(g.batch, ImageNanos(g), [&](int64_t begin, int64_t end) {
      std::fill(dx + begin * image, dx + end * image, T(0));
      std::vector<int64_t> largest(g.channels);
      for (int64_t b = begin; b < end; ++b) {
        int64_t left = 0;
        bool first = true;
        const auto start = [&](int64_t, int64_t pixels) {
          left = pixels;
          first = true;
        };
        ForEachRegion(g, b, start, [&](int64_t y, int64_t x) {
          for (int64_t c = 0; c < g.channels; ++c) {
            if (first || in[x + c] > in[largest[c]]) largest[c] = x + c;
          }
          first = false;
          if (--left > 0) return;
          for (int64_t c = 0; c < g.channels; ++c)
            dx[largest[c]] = AddFn()(dx[largest[c]], dy[y + c]);
        });
      }
    });
    return OkStatus();
  }

 private:
  bool overlapping_ = false;
};

template <class T>
class FractionalAvgPoolGradKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("overlapping", &overlapping_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape input, ShapeVector(ctx.input(0), "orig_input_tensor_shape"));
    ASSIGN_OR_RETURN(const FractionalGeometry g, GradientGeometry(ctx, input, 1, overlapping_));
    Tensor* gradient;
    RETURN_IF_ERROR(ctx.Allocate(0, input, &gradient));
    const T* dy = ctx.input(1).data<T>();
    T* dx = gradient->mutable_data<T>();
    const int64_t image = g.height * g.width * g.channels;
    ctx.threads().ParallelFor(g.batch, ImageNanos(g), [&](int64_t begin, int64_t end) {
      std::vector<double> sums(image);  // gradients of integers have fractions, too
      for (int64_t b = begin; b < end; ++b) {
        std::fill(sums.begin(), sums.end(), 0);
        double share = 0;
        const auto start = [&](int64_t, int64_t pixels) { share = 1.0 / pixels; };
        ForEachRegion(g, b, start, [&](int64_t y, int64_t x) {
          double* const sum = sums.data() + x - b * image;
          for (int64_t c = 0; c < g.channels; ++c) sum[c] += static_cast<double>(dy[y + c]) * share;
        });
        for (int64_t i = 0; i < image; ++i) dx[b * image + i] = FromDouble(sums[i]);
      }
    });
    return OkStatus();
  }

 private:
  // A value that is outside of the range of an integer type becomes the limit of the type.
  static T FromDouble(double x) {
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      if (x >= static_cast<double>(Limits::max())) return Limits::max();
      if (!(x > static_cast<double>(Limits::min()))) return Limits::min();
    }
    return static_cast<T>(x);
  }

  bool overlapping_ = false;
};

Status AvgGradShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 0));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

// Examples with two regions in each dimension.
const ExampleTensor kImage = {{1, 4, 4, 1}, {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3}};
const ExampleTensor kMaxima = {{1, 2, 2, 1}, {3, 4, 9, 9}}, kPooled = {{1, 2, 2, 1}};
const ExampleTensor kSequence = {{3}, {0, 1, 4}};

}  // namespace

OP(FractionalMaxPoolGrad) {
  return {
      .doc = "The gradient of FractionalMaxPool.",
      .inputs = {{"orig_input", "T"},
                 {"orig_output", "T"},
                 {"out_backprop", "T"},
                 {"row_pooling_sequence", "int64"},
                 {"col_pooling_sequence", "int64"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64}}},
      .attrs = {{"overlapping", false}},
      .shape = SameShape,
      .examples = {{.inputs = {{kImage}, {kMaxima}, {kPooled}, {kSequence}, {kSequence}}}},
  };
}
KERNEL(FractionalMaxPoolGrad, FractionalMaxPoolGradKernel, float, double, int32_t, int64_t);

OP(FractionalAvgPoolGrad) {
  return {
      .doc = "The gradient of FractionalAvgPool.",
      .inputs = {{"orig_input_tensor_shape", "int64"},
                 {"out_backprop", "T"},
                 {"row_pooling_sequence", "int64"},
                 {"col_pooling_sequence", "int64"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64}}},
      .attrs = {{"overlapping", false}},
      .shape = AvgGradShape,
      .examples = {{.inputs = {{{{4}, {1, 4, 4, 1}}}, {kPooled}, {kSequence}, {kSequence}}}},
  };
}
KERNEL(FractionalAvgPoolGrad, FractionalAvgPoolGradKernel, float, double, int32_t, int64_t);

}  // namespace penstock
