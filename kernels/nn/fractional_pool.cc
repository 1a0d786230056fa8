// SPDX-License-Identifier: Apache-2.0
//
// The ops FractionalMaxPool, FractionalAvgPool.
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <type_traits>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/nn/fractional_regions.h"
#include "kernels/random/random_stream.h"

namespace penstock {
namespace {

// The maximum size of a dimension. It limits the sequences, which take memory even if there are no
// channels.
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

// The base of both forward kernels: draws the sequences, which are outputs 1 and 2.
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
  // Returns the stream of random numbers. If the node must use the same regions in all steps, each
  // step uses the stream from its start.
  Philox Start(KernelContext& ctx) {
    if (fixed_) return start_;
    constexpr uint64_t kBlocks = uint64_t{1} << 33;  // more blocks than two sequences need
    if (!keep_) return stream_.Reserve(kBlocks, *ctx.step().env);
    std::call_once(kept_, [&] { start_ = stream_.Reserve(kBlocks, *ctx.step().env); });
    return start_;
  }

  StatusOr<std::vector<Region>> DrawSequence(KernelContext& ctx, int output, int64_t in,
                                             int64_t out, Philox* stream) const {
    std::vector<int64_t> sequence;
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
    // Integers are summed in 64 bits; larger sums wrap around.
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

}  // namespace

OP(FractionalMaxPool) {
  return FractionalPoolOp(
      "Returns the largest element of each region; the regions are drawn at random.",
      [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("FractionalMaxPoolGrad", {g.x(), g.y(0), g.dy(0), g.y(1), g.y(2)},
                     Overlapping(g))};
      });
}
KERNEL(FractionalMaxPool, FractionalMaxPoolKernel, float, double, int32_t, int64_t);

OP(FractionalAvgPool) {
  return FractionalPoolOp(
      "Returns the mean of each region; the regions are drawn at random.",
      [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("FractionalAvgPoolGrad",
                     {ShapeOf(g.x(), DType::kInt64), g.dy(0), g.y(1), g.y(2)}, Overlapping(g))};
      });
}
KERNEL(FractionalAvgPool, FractionalAvgPoolKernel, float, double, int32_t, int64_t);

}  // namespace penstock
