// SPDX-License-Identifier: Apache-2.0
//
// Mfcc: mel-frequency cepstral coefficients of a spectrogram, as HTK and TensorFlow compute them.
// S. Davis, P. Mermelstein: Comparison of Parametric Representations for Monosyllabic Word
// Recognition in Continuously Spoken Sentences. IEEE Trans. ASSP 1980.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"

namespace penstock {
namespace {

double Mel(double hertz) { return 1127.0 * std::log1p(hertz / 700.0); }

struct MfccOptions {
  float upper = 0, lower = 0;  // in Hz
  int64_t filters = 0, coefficients = 0;

  Status Check() const {
    constexpr int64_t kFiltersMax = 4096;
    if (filters < 1 || filters > kFiltersMax) {
      return InvalidArgument("filterbank_channel_count must be between 1 and 4096, is ", filters);
    }
    if (coefficients < 1 || coefficients > filters) {
      return InvalidArgument("dct_coefficient_count must be between 1 and ", filters,
                             ", filterbank_channel_count, is ", coefficients);
    }
    if (lower >= 0 && upper > lower && std::isfinite(upper)) return OkStatus();
    return InvalidArgument("expected 0 <= lower_frequency_limit < upper_frequency_limit, are ",
                           lower, " and ", upper);
  }
};

// Triangular filters, evenly spaced on the mel scale. Each filter is zero beyond the middles of its
// two neighbours.
class MelFilters {
 public:
  // Makes the filters for `bins` frequencies from 0 Hz to half the sample rate (in Hz).
  MelFilters(const MfccOptions& options, int64_t bins, double sample_rate)
      : filters_(options.filters) {
    const double lowest = Mel(options.lower);
    const double spacing = (Mel(options.upper) - lowest) / static_cast<double>(filters_ + 1);
    const double hertz_per_bin = 0.5 * sample_rate / static_cast<double>(bins - 1);
    const double first = 1.5 + options.lower / hertz_per_bin;  // leaves out the bin of frequency 0
    const double last = options.upper / hertz_per_bin;
    begin_ = static_cast<int64_t>(std::min(first, static_cast<double>(bins)));
    end_ = static_cast<int64_t>(std::min(last, static_cast<double>(bins))) + 1;
    fits_ = end_ <= bins;
    for (int64_t bin = begin_; bin < end_; ++bin) {
      // Filter i has its middle at lowest + spacing * (i + 1).
      const double place = (Mel(static_cast<double>(bin) * hertz_per_bin) - lowest) / spacing;
      const double below = std::clamp(std::ceil(place) - 1, 0.0, static_cast<double>(filters_));
      bins_.push_back({static_cast<int64_t>(below) - 1, below + 1 - place});
    }
  }

  // Returns whether the bins reach up to the upper frequency limit.
  bool fits() const { return fits_; }
  // Adds up, for each filter, the weighted magnitudes. `power` holds their squares.
  void Apply(const float* power, std::vector<double>* sums) const {
    std::fill(sums->begin(), sums->end(), 0.0);
    for (int64_t bin = begin_; bin < end_; ++bin) {
      const auto [filter, weight] = bins_[bin - begin_];
      const double magnitude = std::sqrt(static_cast<double>(power[bin]));
      if (filter >= 0) (*sums)[filter] += magnitude * weight;
      if (filter + 1 < filters_) (*sums)[filter + 1] += magnitude - magnitude * weight;
    }
  }

 private:
  // `filter`: the filter on whose falling side the bin lies; -1 if the bin lies before the middle
  // of the first filter. `weight`: the bin's weight in that filter; its weight in the next filter
  // is 1 - weight.
  struct Bin {
    int64_t filter;
    double weight;
  };
  const int64_t filters_;
  int64_t begin_ = 0, end_ = 0;
  bool fits_ = false;
  std::vector<Bin> bins_;
};

class MfccKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("upper_frequency_limit", &options_.upper));
    RETURN_IF_ERROR(node.Attr("lower_frequency_limit", &options_.lower));
    RETURN_IF_ERROR(node.Attr("filterbank_channel_count", &options_.filters));
    RETURN_IF_ERROR(node.Attr("dct_coefficient_count", &options_.coefficients));
    return options_.Check();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& spectrogram = ctx.input(0);
    if (spectrogram.rank() != 3 || spectrogram.dim(2) < 2) {
      return InvalidArgument("spectrogram must have rank 3 and 2 frequencies or more, has shape ",
                             spectrogram.shape().ToString());
    }
    ASSIGN_OR_RETURN(const int64_t rate, IntScalar(ctx.input(1), "sample_rate"));
    if (rate < 1) return InvalidArgument("sample_rate must be >= 1, is ", rate);
    const int64_t bins = spectrogram.dim(2), count = spectrogram.dim(0) * spectrogram.dim(1);
    const MelFilters filters(options_, bins, static_cast<double>(rate));
    if (!filters.fits()) {
      return InvalidArgument("upper_frequency_limit ", options_.upper,
                             " is beyond half of sample_rate ", rate);
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(
        0, Shape({spectrogram.dim(0), spectrogram.dim(1), options_.coefficients}), &output));
    const std::vector<double> cosines = Cosines();
    const float* from = spectrogram.data<float>();
    float* to = output->mutable_data<float>();
    const double nanos = 2.0 * static_cast<double>(bins + static_cast<int64_t>(cosines.size()));
    ctx.threads().ParallelFor(count, nanos, [&](int64_t begin, int64_t end) {
      std::vector<double> energies(options_.filters);
      for (int64_t i = begin; i < end; ++i) {
        filters.Apply(from + i * bins, &energies);
        for (double& energy : energies) energy = std::log(std::max(energy, kFloor));
        for (int64_t c = 0; c < options_.coefficients; ++c) {
          double sum = 0;
          for (int64_t f = 0; f < options_.filters; ++f) {
            sum += cosines[c * options_.filters + f] * energies[f];
          }
          to[i * options_.coefficients + c] = static_cast<float>(sum);
        }
      }
    });
    return OkStatus();
  }

 private:
  // The least energy: smaller energies are raised to it, so that their logarithm is finite.
  static constexpr double kFloor = 1e-12;

  // Returns the matrix of the discrete cosine transform, [coefficients, filters].
  std::vector<double> Cosines() const {
    const double filters = static_cast<double>(options_.filters);
    std::vector<double> cosines;
    for (int64_t c = 0; c < options_.coefficients; ++c) {
      for (int64_t f = 0; f < options_.filters; ++f) {
        const double angle = std::numbers::pi / filters * static_cast<double>(c) * (f + 0.5);
        cosines.push_back(std::sqrt(2.0 / filters) * std::cos(angle));
      }
    }
    return cosines;
  }

  MfccOptions options_;
};

Status MfccShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape spectrogram, s.WithRank(0, 3));
  Dims dims(3, PartialShape::kUnknown);
  for (int i = 0; spectrogram.known_rank() && i < 2; ++i) dims[i] = spectrogram.dim(i);
  dims[2] = s.attr<int64_t>("dct_coefficient_count");
  if (dims[2] < 1) return InvalidArgument("dct_coefficient_count must be >= 1, is ", dims[2]);
  s.set_output(0, PartialShape(dims));
  return OkStatus();
}

}  // namespace

OP(Mfcc) {
  return {
      .doc =
          "Computes the mel-frequency cepstral coefficients of a spectrogram of squared "
          "magnitudes, [channels, windows, frequencies]: the first dct_coefficient_count "
          "coefficients of the cosine transform of the logarithms of "
          "filterbank_channel_count mel bands.",
      .inputs = {{"spectrogram", "float"}, {"sample_rate", "int32"}},
      .outputs = {{"output", "float"}},
      .attrs = {{"upper_frequency_limit", 4000.0f},
                {"lower_frequency_limit", 20.0f},
                {"filterbank_channel_count", 40},
                {"dct_coefficient_count", 13}},
      .shape = MfccShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{1, 2, 17}}}, {{{}, {8000}}}}}},
  };
}
KERNEL_ANY_TYPE(Mfcc, MfccKernel);

}  // namespace penstock
