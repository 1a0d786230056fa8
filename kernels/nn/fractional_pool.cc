// SPDX-License-Identifier: Apache-2.0
//
// FractionalMaxPool, FractionalAvgPool and their gradients: pooling by a ratio that need not be
// whole. The regions of each dimension are drawn at random: B. Graham: Fractional Max-Pooling.
// arXiv 1412.6071.
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <type_traits>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/math/add.h"
#include "kernels/random/distributions.h"
#include "kernels/random/random_stream.h"

namespace penstock {
namespace {

// Region i of a dimension begins at element i of a sequence and ends before element i + 1, or with
// it where regions overlap.
using Sequence = std::vector<int64_t>;

// Steps of alpha = in / out, from a random offset, rounded up.
Sequence PseudoRandomSequence(int64_t in, int64_t out, Philox stream) {
  const double alpha = static_cast<double>(in) / static_cast<double>(out);
  const int64_t whole = in / out;
  // Beyond these the first or the last region would be too large or empty.
  const double offset_max = std::min((whole + 2) / alpha - 1, (in + 1 - whole) / alpha - (out - 1));
  const double offset = Uniform<double>()(stream)[0] * offset_max;
  Sequence sequence = {0};
  for (int64_t i = 1; i < out; ++i) {
    sequence.push_back(static_cast<int64_t>(std::ceil(alpha * (i + offset))) - 1);
  }
  sequence.push_back(in);
  return sequence;
}

// Regions of two sizes, in random order.
Sequence ShuffledSequence(int64_t in, int64_t out, Philox stream) {
  std::vector<int64_t> sizes(out, in / out);
  for (int64_t i = 0; i < in % out; ++i) ++sizes[i];
  PhiloxNumbers numbers(stream);
  for (int64_t i = 0; i + 1 < out; ++i) {
    std::swap(sizes[i], sizes[i + numbers() % static_cast<uint32_t>(out - i)]);
  }
  Sequence sequence = {0};
  for (const int64_t size : sizes) sequence.push_back(sequence.back() + size);
  return sequence;
}

// Elements [begin, end) of the input.
struct Region {
  int64_t begin, end;
};

struct FractionalGeometry {
  int64_t batch, height, width, channels;  // of the input
  std::vector<Region> rows, columns;       // of the output's

  Shape input() const { return {batch, height, width, channels}; }
  Shape output() const {
    return {batch, static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns.size()),
            channels};
  }
};

// REQUIRES an ascending sequence within [0, size] whose regions begin below `size`.
std::vector<Region> Regions(absl::Span<const int64_t> sequence, int64_t size, bool overlapping) {
  std::vector<Region> regions;
  for (size_t i = 0; i + 1 < sequence.size(); ++i) {
    regions.push_back({sequence[i], std::min(sequence[i + 1] + (overlapping ? 1 : 0), size)});
  }
  return regions;
}

// For each output pixel of image b calls begin(y, pixels), then visit(y, x) for each of the input's
// pixels in its region, row by row. y and x are offsets of channel 0.
template <class Begin, class Visit>
void ForEachRegion(const FractionalGeometry& g, int64_t b, const Begin& begin, const Visit& visit) {
  int64_t y = b * static_cast<int64_t>(g.rows.size() * g.columns.size()) * g.channels;
  for (const Region& row : g.rows) {
    for (const Region& column : g.columns) {
      begin(y, (row.end - row.begin) * (column.end - column.begin));
      for (int64_t h = row.begin; h < row.end; ++h) {
        for (int64_t w = column.begin; w < column.end; ++w) {
          visit(y, ((b * g.height + h) * g.width + w) * g.channels);
        }
      }
      y += g.channels;
    }
  }
}

// In one dimension. The sequences have an element for each, also where there are no channels.
constexpr int64_t kPixelsMax = 1 << 24;

int64_t PooledSize(int64_t size, float ratio) {
  return static_cast<int64_t>(std::floor(static_cast<float>(size) / ratio));
}

Status CheckRatio(const std::vector<float>& ratio) {
  if (ratio.size() != 4) {
    return InvalidArgument("pooling_ratio must have 4 elements, has ", ratio.size());
  }
  for (const float r : ratio) {
    if (!(r >= 1)) return InvalidArgument("pooling_ratio cannot be smaller than 1, got: ", r);
  }
  if (ratio[0] == 1 && ratio[3] == 1) return OkStatus();
  return Unimplemented(
      "Fractional pooling is not yet supported on the batch nor channel dimension.");
}

// What both forward kernels do before they pool: draws the sequences, which are outputs 1 and 2.
class FractionalPoolKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("pooling_ratio", &ratio_));
    RETURN_IF_ERROR(CheckRatio(ratio_));
    RETURN_IF_ERROR(node.Attr("pseudo_random", &pseudo_random_));
    RETURN_IF_ERROR(node.Attr("overlapping", &overlapping_));
    bool deterministic;
    RETURN_IF_ERROR(node.Attr("deterministic", &deterministic));
    int64_t seed, seed2;
    RETURN_IF_ERROR(node.Attr("seed", &seed));
    RETURN_IF_ERROR(node.Attr("seed2", &seed2));
    if (!deterministic && (seed != 0 || seed2 != 0)) {
      return InvalidArgument("Both seed and seed2 should be 0 if deterministic is false.");
    }
    fixed_ = deterministic && (seed != 0 || seed2 != 0);
    start_ = Philox::FromSeeds(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2));
    keep_ = deterministic;
    return stream_.Init(node);
  }

 protected:
  StatusOr<FractionalGeometry> Draw(KernelContext& ctx) {
    const Tensor& value = ctx.input(0);
    if (value.rank() != 4) {
      return InvalidArgument("value must be 4-dimensional, has shape ", value.shape().ToString());
    }
    Dims out;
    for (int d = 0; d < 4; ++d) {
      out.push_back(PooledSize(value.dim(d), ratio_[d]));
      if (out[d] > 0 || value.dim(d) == 0) continue;
      return InvalidArgument("Pooling ratio is higher than input dimension size for dimension ", d,
                             ". Input dim size: ", value.dim(d), " pooling ratio: ", ratio_[d]);
    }
    for (int d : {1, 2}) {
      if (value.dim(d) == 0 || value.dim(d) > kPixelsMax) {
        return InvalidArgument("value must have 1 to ", kPixelsMax, " rows and columns; its shape ",
                               "is ", value.shape().ToString());
      }
    }
    FractionalGeometry g{.batch = value.dim(0),
                         .height = value.dim(1),
                         .width = value.dim(2),
                         .channels = value.dim(3)};
    Philox stream = Start(ctx);
    ASSIGN_OR_RETURN(g.rows, DrawSequence(ctx, 1, g.height, out[1], &stream));
    ASSIGN_OR_RETURN(g.columns, DrawSequence(ctx, 2, g.width, out[2], &stream));
    return g;
  }

 private:
  // Where a node is to use the same regions in all steps, it starts over each time.
  Philox Start(KernelContext& ctx) {
    if (fixed_) return start_;
    constexpr uint64_t kBlocks = uint64_t{1} << 33;  // more than two sequences take
    if (!keep_) return stream_.Reserve(kBlocks, *ctx.step().env);
    std::call_once(kept_, [&] { start_ = stream_.Reserve(kBlocks, *ctx.step().env); });
    return start_;
  }

  StatusOr<std::vector<Region>> DrawSequence(KernelContext& ctx, int output, int64_t in,
                                             int64_t out, Philox* stream) const {
    Sequence sequence;
    if (in % out == 0) {
      for (int64_t i = 0; i <= out; ++i) sequence.push_back(i * (in / out));
    } else if (pseudo_random_) {
      sequence = PseudoRandomSequence(in, out, *stream);
      stream->Skip(1);
    } else {
      sequence = ShuffledSequence(in, out, *stream);
      stream->Skip((static_cast<uint64_t>(out) + 3) / 4);
    }
    Tensor* written;
    RETURN_IF_ERROR(ctx.Allocate(output, Shape{out + 1}, &written));
    std::copy(sequence.begin(), sequence.end(), written->mutable_data<int64_t>());
    return Regions(sequence, in, overlapping_);
  }

  std::vector<float> ratio_;
  bool pseudo_random_ = false, overlapping_ = false;
  bool fixed_ = false, keep_ = false;
  RandomStream stream_;
  std::once_flag kept_;
  Philox start_;
};

double ImageNanos(const FractionalGeometry& g) {
  return 1.0 * static_cast<double>(g.height * g.width * g.channels) + 100;
}

template <class T>
class FractionalMaxPoolKernel final : public FractionalPoolKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const FractionalGeometry g, Draw(ctx));
    Tensor* pooled;
    RETURN_IF_ERROR(ctx.Allocate(0, g.output(), &pooled));
    const T* in = ctx.input(0).data<T>();
    T* out = pooled->mutable_data<T>();
    ctx.threads().ParallelFor(g.batch, ImageNanos(g), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const auto clear = [&](int64_t y, int64_t) {
          std::fill_n(out + y, g.channels, std::numeric_limits<T>::lowest());
        };
        ForEachRegion(g, b, clear, [&](int64_t y, int64_t x) {
          for (int64_t c = 0; c < g.channels; ++c) out[y + c] = std::max(out[y + c], in[x + c]);
        });
      }
    });
    return OkStatus();
  }
};

template <class T>
class FractionalAvgPoolKernel final : public FractionalPoolKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    // Integers add up without overflow, but for sums beyond 64 bits, which wrap around.
    using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
    using Whole = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
    ASSIGN_OR_RETURN(const FractionalGeometry g, Draw(ctx));
    Tensor* pooled;
    RETURN_IF_ERROR(ctx.Allocate(0, g.output(), &pooled));
    const T* in = ctx.input(0).data<T>();
    T* out = pooled->mutable_data<T>();
    ctx.threads().ParallelFor(g.batch, ImageNanos(g), [&](int64_t begin, int64_t end) {
      std::vector<Sum> sums(g.channels);
      for (int64_t b = begin; b < end; ++b) {
        int64_t left = 0, count = 0;
        const auto clear = [&](int64_t, int64_t pixels) {
          left = count = pixels;
          std::fill(sums.begin(), sums.end(), Sum(0));
        };
        ForEachRegion(g, b, clear, [&](int64_t y, int64_t x) {
          for (int64_t c = 0; c < g.channels; ++c) sums[c] += static_cast<Sum>(in[x + c]);
          if (--left > 0) return;
          for (int64_t c = 0; c < g.channels; ++c) {
            out[y + c] = static_cast<T>(static_cast<Whole>(sums[c]) / static_cast<Whole>(count));
          }
        });
      }
    });
    return OkStatus();
  }
};

// The regions that a sequence from outside describes.
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

// Of a gradient kernel: out_backprop and the two sequences are inputs first, first + 1, first + 2.
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

// The first of the largest elements of a region gets its gradient.
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
      std::vector<double> sums(image);  // integers get fractions, too
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
  // What does not fit into an integer is its limit, not undefined.
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

Status FractionalPoolShape(ShapeScope& s) {
  const auto& ratio = s.attr<std::vector<float>>("pooling_ratio");
  RETURN_IF_ERROR(CheckRatio(ratio));
  ASSIGN_OR_RETURN(const PartialShape value, s.WithRank(0, 4));
  PartialShape out = PartialShape::UnknownOfRank(4);
  for (int d = 0; value.known_rank() && d < 4; ++d) {
    if (value.dim(d) < 0) continue;
    out.set_dim(d, PooledSize(value.dim(d), ratio[d]));
  }
  for (int i : {1, 2}) s.set_output(i, PartialShape{out.dim(i) < 0 ? -1 : out.dim(i) + 1});
  s.set_output(0, std::move(out));
  return OkStatus();
}

Status AvgGradShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 0));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

OpDef FractionalPoolOp(const char* doc, GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = {{"value", "T"}},
      .outputs = {{"output", "T"},
                  {"row_pooling_sequence", "int64"},
                  {"col_pooling_sequence", "int64"}},
      .types = {{"T", {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64}}},
      .attrs = {{"pooling_ratio", FloatList{}},
                {"pseudo_random", false},
                {"overlapping", false},
                {"deterministic", false},
                {"seed", 0},
                {"seed2", 0}},
      .shape = FractionalPoolShape,
      .gradient = std::move(gradient),
      .examples = {{.inputs = {{{{1, 4, 5, 2}}}},
                    .attrs = {{"pooling_ratio", std::vector<float>{1, 1.4f, 1.7f, 1}},
                              {"deterministic", true},
                              {"seed", 1}}}},
      .stateful = true,
  };
}

Attrs Overlapping(const GradientScope& g) { return {{"overlapping", g.attr<bool>("overlapping")}}; }

// Two regions in each dimension.
const ExampleTensor kImage = {{1, 4, 4, 1}}, kPooled = {{1, 2, 2, 1}}, kSequence = {{3}, {0, 1, 4}};

}  // namespace

OP(FractionalMaxPool,
   (FractionalPoolOp("The largest element of each of regions that are drawn at random.",
                     [](const GradientScope& g) -> std::vector<Gradient> {
                       return {Call("FractionalMaxPoolGrad",
                                    {g.x(), g.y(0), g.dy(0), g.y(1), g.y(2)}, Overlapping(g))};
                     })));
KERNEL(FractionalMaxPool, FractionalMaxPoolKernel, float, double, int32_t, int64_t);

OP(FractionalAvgPool,
   (FractionalPoolOp("The mean of each of regions that are drawn at random.",
                     [](const GradientScope& g) -> std::vector<Gradient> {
                       return {Call("FractionalAvgPoolGrad",
                                    {ShapeOf(g.x(), DType::kInt64), g.dy(0), g.y(1), g.y(2)},
                                    Overlapping(g))};
                     })));
KERNEL(FractionalAvgPool, FractionalAvgPoolKernel, float, double, int32_t, int64_t);

OP(FractionalMaxPoolGrad,
   {
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
       .examples = {{.inputs = {{kImage}, {kPooled}, {kPooled}, {kSequence}, {kSequence}}}},
   });
KERNEL(FractionalMaxPoolGrad, FractionalMaxPoolGradKernel, float, double, int32_t, int64_t);

OP(FractionalAvgPoolGrad,
   {
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
   });
KERNEL(FractionalAvgPoolGrad, FractionalAvgPoolGradKernel, float, double, int32_t, int64_t);

}  // namespace penstock
