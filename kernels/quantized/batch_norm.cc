// SPDX-License-Identifier: Apache-2.0
//
// QuantizedBatchNormWithGlobalNormalization: normalises quantized images by given means and
// variances, in fixed point.
#include <cmath>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/quantized/quantization.h"

namespace penstock {
namespace {

// The range of the results: 32 bits with 10 or 11 fractional bits.
constexpr QuantizedRange kFixedPoint = {-(1 << 20), 1 << 20};

int32_t FixedPoint(float x) { return Quantize<qint32>(x, kFixedPoint).value; }

// result = t * scale + offset, for one channel.
struct ChannelLine {
  int32_t scale = 0, offset = 0;
};

class QuantizedBatchNormKernel final : public Kernel {
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("variance_epsilon", &epsilon_));
    return node.Attr("scale_after_normalization", &scales_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& t = ctx.input(0);
    if (t.rank() != 4) {
      return InvalidArgument("input must be 4-dimensional, has shape ", t.shape().ToString());
    }
    ASSIGN_OR_RETURN(const QuantizedRange range, RangeInput(ctx, 1, "t"));
    ASSIGN_OR_RETURN(const std::vector<ChannelLine> lines, Lines(ctx, t.dim(3)));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, t.shape(), &output));
    // All levels of the input in fixed point.
    std::vector<int32_t> levels;
    for (int q = 0; q < 256; ++q) {
      levels.push_back(FixedPoint(Dequantize(quint8{static_cast<uint8_t>(q)}, range)));
    }
    const int32_t one = FixedPoint(1);
    const quint8* const x = t.data<quint8>();
    qint32* const y = output->mutable_data<qint32>();
    const int64_t channels = t.dim(3);
    ctx.threads().ParallelFor(t.num_elements(), 3, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const ChannelLine& line = lines[i % channels];
        // Products and sums wrap around, as TensorFlow's do.
        const auto product = static_cast<int32_t>(static_cast<uint32_t>(levels[x[i].value]) *
                                                  static_cast<uint32_t>(line.scale));
        y[i] = {static_cast<int32_t>(static_cast<uint32_t>(product / one) +
                                     static_cast<uint32_t>(line.offset))};
      }
    });
    return SetRangeOutputs(ctx, 1, kFixedPoint);
  }

  // Reads the means (input 3), variances (6), betas (9) and gammas (12) with their ranges.
  StatusOr<std::vector<ChannelLine>> Lines(const KernelContext& ctx, int64_t channels) const {
    std::vector<float> values[4];
    const char* const names[] = {"m", "v", "beta", "gamma"};
    for (int k = 0; k < 4; ++k) {
      const Tensor& tensor = ctx.input(3 + 3 * k);
      if (tensor.rank() != 1 || tensor.dim(0) != channels) {
        return InvalidArgument(names[k], " must be a vector with an element for each of the ",
                               channels, " channels, has shape ", tensor.shape().ToString());
      }
      ASSIGN_OR_RETURN(const QuantizedRange range, RangeInput(ctx, 4 + 3 * k, names[k]));
      for (const quint8 q : tensor.flat<quint8>()) values[k].push_back(Dequantize(q, range));
    }
    std::vector<ChannelLine> lines;
    for (int64_t c = 0; c < channels; ++c) {
      float scale = 1.0f / std::sqrt(values[1][c] + epsilon_);
      if (scales_) scale *= values[3][c];
      lines.push_back({FixedPoint(scale), FixedPoint(-values[0][c] * scale + values[2][c])});
    }
    return lines;
  }

  float epsilon_ = 0;
  bool scales_ = false;
};

Status QuantizedBatchNormShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape t, s.WithRank(0, 4));
  for (int i : {3, 6, 9, 12}) RETURN_IF_ERROR(s.WithRank(i, 1).status());
  s.set_output(0, t.known_rank() ? std::move(t) : PartialShape::UnknownOfRank(4));
  for (int i : {1, 2}) s.set_output(i, PartialShape::Scalar());
  return OkStatus();
}

}  // namespace

OP(QuantizedBatchNormWithGlobalNormalization) {
  OpDef op = {
      .doc =
          "Normalises quantized images [batch, rows, columns, channels] by the mean m and the "
          "variance v of each channel, scales by gamma if scale_after_normalization, and adds "
          "beta.",
      .outputs = {{"result", "out_type"}, {"result_min", "float"}, {"result_max", "float"}},
      .types = {{"Tinput", kQuantized}, {"out_type", kQuantized}},
      .attrs = {{"variance_epsilon", Floats{}}, {"scale_after_normalization", Bools{}}},
      .shape = QuantizedBatchNormShape,
      .gradient = NoGradient,
  };
  Example example = {.attrs = {{"Tinput", DType::kQuint8},
                               {"out_type", DType::kQint32},
                               {"variance_epsilon", 0.001f},
                               {"scale_after_normalization", true}}};
  for (const char* name : {"t", "m", "v", "beta", "gamma"}) {
    const std::string prefix = name;
    op.inputs.push_back({prefix, "Tinput"});
    op.inputs.push_back({prefix + "_min", "float"});
    op.inputs.push_back({prefix + "_max", "float"});
    example.inputs.push_back({{prefix == "t" ? Dims{1, 2, 2, 2} : Dims{2}}});
    example.inputs.push_back({{{}, {0}}});
    example.inputs.push_back({{{}, {2}}});
  }
  op.examples.push_back(example);
  return op;
}
KERNEL_DEF({.op = "QuantizedBatchNormWithGlobalNormalization",
            .types = {{"Tinput", DType::kQuint8}, {"out_type", DType::kQint32}},
            .make = Make<QuantizedBatchNormKernel>});

}  // namespace penstock
