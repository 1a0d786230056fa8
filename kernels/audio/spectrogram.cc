// SPDX-License-Identifier: Apache-2.0
//
// AudioSpectrogram: the magnitude, or its square, of each frequency in each window.
#include <bit>
#include <cmath>
#include <complex>
#include <numbers>
#include <unsupported/Eigen/FFT>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

struct Windows {
  int64_t size = 0, stride = 0;

  static StatusOr<Windows> From(const Attrs& attrs) {
    Windows windows;
    windows.size = *attrs.find("window_size")->second.get<int64_t>();
    windows.stride = *attrs.find("stride")->second.get<int64_t>();
    constexpr int64_t kWindowMax = int64_t{1} << 30;
    if (windows.size < 2 || windows.size > kWindowMax) {
      return InvalidArgument("window_size must be between 2 and 2^30, is ", windows.size);
    }
    if (windows.stride < 1) return InvalidArgument("stride must be >= 1, is ", windows.stride);
    return windows;
  }
  int64_t fft_length() const {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size)));
  }
  int64_t frequencies() const { return fft_length() / 2 + 1; }
  int64_t Count(int64_t samples) const {
    return samples < size ? 0 : 1 + (samples - size) / stride;
  }
};

class SpectrogramKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    ASSIGN_OR_RETURN(windows_, Windows::From(node.attrs));
    return node.Attr("magnitude_squared", &squared_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    if (input.rank() != 2) {
      return InvalidArgument("input must have rank 2, has shape ", input.shape().ToString());
    }
    const int64_t channels = input.dim(1), count = windows_.Count(input.dim(0));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{channels, count, windows_.frequencies()}));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    if (output->num_elements() == 0) return OkStatus();
    const std::vector<double> taper = Hann(windows_.size);
    const float* samples = input.data<float>();
    float* const to = output->mutable_data<float>();
    const double nanos = 20.0 * static_cast<double>(windows_.fft_length());
    ctx.threads().ParallelFor(channels * count, nanos, [&](int64_t begin, int64_t end) {
      Eigen::FFT<double> fft;
      std::vector<std::complex<double>> window(windows_.fft_length()), spectrum(window.size());
      for (int64_t i = begin; i < end; ++i) {
        const int64_t channel = i / count, first = i % count * windows_.stride;
        for (int64_t k = 0; k < windows_.size; ++k) {
          window[k] = taper[k] * samples[(first + k) * channels + channel];
        }
        fft.fwd(spectrum.data(), window.data(), static_cast<Eigen::Index>(window.size()));
        for (int64_t f = 0; f < windows_.frequencies(); ++f) {
          const double power = std::norm(spectrum[f]);
          to[i * windows_.frequencies() + f] =
              static_cast<float>(squared_ ? power : std::sqrt(power));
        }
      }
    });
    return OkStatus();
  }

 private:
  // Returns the periodic Hann window of `size` samples.
  static std::vector<double> Hann(int64_t size) {
    std::vector<double> window(size);
    for (int64_t i = 0; i < size; ++i) {
      window[i] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) /
                                       static_cast<double>(size));
    }
    return window;
  }

  Windows windows_;
  bool squared_ = false;
};

Status SpectrogramShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape input, s.WithRank(0, 2));
  ASSIGN_OR_RETURN(const Windows windows, Windows::From(s.attrs()));
  Dims dims = {PartialShape::kUnknown, PartialShape::kUnknown, windows.frequencies()};
  if (input.known_rank()) {
    dims[0] = input.dim(1);
    if (input.dim(0) >= 0) dims[1] = windows.Count(input.dim(0));
  }
  s.set_output(0, PartialShape(dims));
  return OkStatus();
}

}  // namespace

OP(AudioSpectrogram) {
  return {
      .doc =
          "Computes the magnitudes (or squared magnitudes) of the frequencies in windows of "
          "window_size samples, which begin `stride` samples apart: [samples, channels] "
          "becomes [channels, windows, frequencies]. A Hann window is applied, and windows "
          "are padded to a power of two.",
      .inputs = {{"input", "float"}},
      .outputs = {{"spectrogram", "float"}},
      .attrs = {{"window_size", Ints{}}, {"stride", Ints{}}, {"magnitude_squared", false}},
      .shape = SpectrogramShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{9, 2}}}},
                    .attrs = {{"window_size", int64_t{4}}, {"stride", int64_t{2}}}}},
  };
}
KERNEL_ANY_TYPE(AudioSpectrogram, SpectrogramKernel);

}  // namespace penstock
