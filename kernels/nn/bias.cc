// SPDX-License-Identifier: Apache-2.0
//
// BiasAdd, BiasAddV1 and BiasAddGrad: add one number per channel to a tensor, or sum a tensor per
// channel. Channels are the last (NHWC) or the second (NCHW) dimension.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/op/block_kernel.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/math/add.h"
#include "kernels/nn/per_channel.h"

namespace penstock {
namespace {

#define NUMBER_TYPES                                                                             \
  float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, \
      uint64_t, std::complex<float>, std::complex<double>

template <class T>
class BiasAddKernel final : public Kernel, public BlockKernel {
 public:
  bool RunsInBlocks() const override { return format_ == "NHWC"; }
  bool AcceptsShapes(const Shape& output, absl::Span<const Shape* const> inputs) const override {
    const Shape &value = *inputs[0], &bias = *inputs[1];
    return value == output && value.rank() >= 2 && bias.rank() == 1 &&
           bias.dim(0) == value.dim(value.rank() - 1);
  }
  double BlockNanos() const override { return 0.1; }
  void RunBlock(const BlockInput* inputs, void* output, int64_t n) const override {
    const T* x = static_cast<const T*>(inputs[0].data);
    const T* b = static_cast<const T*>(inputs[1].data);
    T* y = static_cast<T*>(output);
    if (inputs[1].repeats) {
      const T bias = *b;
      for (int64_t i = 0; i < n; ++i) y[i] = AddFn()(x[i], bias);
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = AddFn()(x[i], b[i]);
    }
  }

 private:
  Status Init(const KernelInit& node) override {
    if (node.attrs.count("data_format") == 0) return OkStatus();  // V1
    return node.Attr("data_format", &format_);
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(0);
    const Tensor& bias = ctx.input(1);
    ASSIGN_OR_RETURN(const ChannelSplit c, SplitAtChannels(value.shape(), format_));
    if (bias.rank() != 1 || bias.dim(0) != c.channels) {
      return InvalidArgument("Must provide as many biases as ",
                             format_ == "NCHW" ? "the channel" : "the last",
                             " dimension of the input tensor: ", bias.shape().ToString(), " vs. ",
                             value.shape().ToString());
    }
    Tensor* out;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, value.shape(), &out));
    const T* x = value.template data<T>();
    const T* b = bias.template data<T>();
    T* y = out->template mutable_data<T>();
    const int64_t row = c.row();
    ctx.threads().ParallelFor(c.outer, 0.3 * row, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) AddRow(x + r * row, b, y + r * row, c);
    });
    return OkStatus();
  }
  static void AddRow(const T* x, const T* b, T* y, const ChannelSplit& c) {
    if (c.inner == 1) {
      for (int64_t i = 0; i < c.channels; ++i) y[i] = AddFn()(x[i], b[i]);
      return;
    }
    for (int64_t i = 0; i < c.channels; ++i, x += c.inner, y += c.inner) {
      for (int64_t j = 0; j < c.inner; ++j) y[j] = AddFn()(x[j], b[i]);
    }
  }
  std::string format_ = "NHWC";
};

// Returns zero in the type in which T is summed: float for 16-bit floats, an unsigned type for
// integers, which thus wrap around.
template <class T>
auto SumOf() {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return float(0);
  } else if constexpr (std::is_integral_v<T>) {
    return Wrapping<T>(0);
  } else {
    return T(0);
  }
}
template <class T>
using Sum = decltype(SumOf<T>());

template <class T>
class BiasAddGradKernel final : public Kernel {
  Status Init(const KernelInit& node) override { return node.Attr("data_format", &format_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const ChannelSplit c, SplitAtChannels(ctx.input(0).shape(), format_));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({c.channels}), &out));
    const T* dy = ctx.input(0).template data<T>();
    T* db = out->template mutable_data<T>();
    // The channels are split over threads, so that the order of summation does not depend on the
    // number of threads. Each thread gets at least a cache line of channels.
    const int64_t blocks = (c.channels + kBlock - 1) / kBlock;
    const double block_ns = 0.3 * static_cast<double>(c.outer * c.inner * kBlock);
    ctx.threads().ParallelFor(blocks, block_ns, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        SumBlock(dy, db, c, b * kBlock, std::min(c.channels, (b + 1) * kBlock));
      }
    });
    return OkStatus();
  }
  static constexpr int64_t kBlock = 64;
  // Rows are first added up in groups of this size, so that the rounding error grows with the
  // number of groups instead of the number of rows.
  static constexpr int64_t kGroup = 256;

  static void SumBlock(const T* dy, T* db, const ChannelSplit& c, int64_t first, int64_t last) {
    Sum<T> total[kBlock] = {};
    for (int64_t r = 0; r < c.outer; r += kGroup) {
      Sum<T> group[kBlock] = {};
      for (int64_t k = r; k < std::min(c.outer, r + kGroup); ++k) {
        AddChannels(dy + k * c.row(), group, c.inner, first, last);
      }
      for (int64_t i = 0; i < last - first; ++i) total[i] += group[i];
    }
    for (int64_t i = first; i < last; ++i) db[i] = T(total[i - first]);
  }
  static void AddChannels(const T* row, Sum<T>* sums, int64_t inner, int64_t first, int64_t last) {
    if (inner == 1) {
      for (int64_t i = first; i < last; ++i) sums[i - first] += Sum<T>(row[i]);
      return;
    }
    for (int64_t i = first; i < last; ++i) {
      Sum<T> sum(0);
      for (int64_t j = 0; j < inner; ++j) sum += Sum<T>(row[i * inner + j]);
      sums[i - first] += sum;
    }
  }
  std::string format_;
};

Status BiasAddShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape value, s.WithRankAtLeast(0, 2));
  ASSIGN_OR_RETURN(const PartialShape bias, s.WithRank(1, 1));
  s.set_output(0, value);
  if (!value.known_rank() || !bias.known_rank()) return OkStatus();
  const auto format = s.attrs().find("data_format");
  const bool second = format != s.attrs().end() && format->second == AttrValue("NCHW");
  const int axis = second ? 1 : value.rank() - 1;
  const int64_t channels = value.dim(axis);
  if (channels >= 0 && bias.dim(0) >= 0 && channels != bias.dim(0)) {
    return InvalidArgument("bias has ", bias.dim(0), " elements, value ", value.ToString(), " has ",
                           channels, " channels");
  }
  return OkStatus();
}

Status BiasAddGradShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape dy, s.WithRankAtLeast(0, 2));
  PartialShape out = PartialShape::UnknownOfRank(1);
  if (dy.known_rank()) {
    out.set_dim(0, dy.dim(s.attr<std::string>("data_format") == "NCHW" ? 1 : dy.rank() - 1));
  }
  s.set_output(0, out);
  return OkStatus();
}

std::vector<Gradient> BiasAddGradient(const GradientScope& g) {
  const auto format = g.attrs().find("data_format");
  const AttrValue value = format == g.attrs().end() ? AttrValue("NHWC") : format->second;
  return {g.dy(), Call("BiasAddGrad", {g.dy()}, {{"data_format", value}})};
}

// Returns the gradient of BiasAddGrad. The op sums over all dimensions but the channels', so the
// gradient of its input repeats dy along them.
std::vector<Gradient> BiasAddGradGradient(const GradientScope& g) {
  Output per_channel = g.dy();
  if (g.attr<std::string>("data_format") == "NCHW") {
    // [C] becomes [C, 1, ..., 1], which broadcasts from the second dimension on.
    const Output ones =
        Fill(ExpandDims(RankOf(g.x()) - 2.0, g.Const<int32_t>(0)), g.Const<int32_t>(1));
    const Output shape = ConcatV2({ShapeOf(g.dy()), ones}, g.Const<int32_t>(0));
    per_channel = Reshape(g.dy(), shape);
  }
  return {BroadcastTo(per_channel, ShapeOf(g.x()))};
}

}  // namespace

OP(BiasAdd) {
  return {
      .doc = "Adds `bias[c]` to every element of channel c of `value`.",
      .inputs = {{"value", "T"}, {"bias", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kNumber}},
      .attrs = {{"data_format", OneOf{{"NHWC", "NCHW"}}, "NHWC"}},
      .shape = BiasAddShape,
      .gradient = BiasAddGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{3}}}}},
                   {.inputs = {{{{2, 3, 2, 2}}}, {{{3}}}}, .attrs = {{"data_format", "NCHW"}}}},
      .reuses = Reuse::kFirst,
  };
}
KERNEL(BiasAdd, BiasAddKernel, NUMBER_TYPES);

OP(BiasAddV1) {
  return {
      .doc = "BiasAdd with the channels last.",
      .inputs = {{"value", "T"}, {"bias", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kNumber}},
      .shape = BiasAddShape,
      .gradient = BiasAddGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{3}}}}}},
      .reuses = Reuse::kFirst,
  };
}
KERNEL(BiasAddV1, BiasAddKernel, NUMBER_TYPES);

OP(BiasAddGrad) {
  return {
      .doc = "The gradient of BiasAdd for `bias`: sums `out_backprop` over all but the channels.",
      .inputs = {{"out_backprop", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kNumber}},
      .attrs = {{"data_format", OneOf{{"NHWC", "NCHW"}}, "NHWC"}},
      .shape = BiasAddGradShape,
      .gradient = BiasAddGradGradient,
      .examples = {{.inputs = {{{{2, 3}}}}},
                   {.inputs = {{{{2, 3, 2, 2}}}}, .attrs = {{"data_format", "NCHW"}}}},
  };
}
KERNEL(BiasAddGrad, BiasAddGradKernel, NUMBER_TYPES);

}  // namespace penstock
