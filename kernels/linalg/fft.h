// SPDX-License-Identifier: Apache-2.0
//
// Shared by complex and real Fourier transforms: transforms of lines, one dimension after the
// other, by Eigen's FFT; and helpers for gradients.
#pragma once

#include <cmath>
#include <complex>
#include <string>
#include <unsupported/Eigen/FFT>
#include <vector>

#include "core/op/kernel.h"
#include "kernels/linalg/forms.h"

namespace penstock {

enum class FftDirection { kForward, kInverse };

// The lines of `length` elements, with stride `inner`, in a tensor [outer, length, inner].
struct FftLines {
  int64_t outer = 1, length = 1, inner = 1;
};

inline FftLines LinesAlong(absl::Span<const int64_t> dims, int axis) {
  FftLines lines{.length = dims[axis]};
  for (int d = 0; d < axis; ++d) lines.outer *= dims[d];
  for (size_t d = axis + 1; d < dims.size(); ++d) lines.inner *= dims[d];
  return lines;
}

// Calls fn(fft, outer, inner) for each line. Each range of lines that runs on one thread has an FFT
// plan of its own.
template <class F, class Fn>
void ForEachLine(Scheduler& threads, const FftLines& lines, Fn fn) {
  const double nanos = 10.0 * lines.length * (1 + std::log2(1.0 + lines.length));
  threads.ParallelFor(lines.outer * lines.inner, nanos, [&](int64_t begin, int64_t end) {
    Eigen::FFT<F> fft;
    for (int64_t i = begin; i < end; ++i) fn(fft, i / lines.inner, i % lines.inner);
  });
}

template <class F>
void TransformLine(Eigen::FFT<F>& fft, FftDirection direction,
                   const std::vector<std::complex<F>>& in, std::vector<std::complex<F>>* out) {
  const Eigen::Index n = static_cast<Eigen::Index>(in.size());
  if (n == 1) {
    *out = in;
  } else if (direction == FftDirection::kForward) {
    fft.fwd(out->data(), in.data(), n);
  } else {
    fft.inv(out->data(), in.data(), n);
  }
}

// Transforms all lines along one dimension, in place.
template <class F>
void Transform(Scheduler& threads, FftDirection direction, absl::Span<const int64_t> dims, int axis,
               std::complex<F>* x) {
  const FftLines lines = LinesAlong(dims, axis);
  if (lines.length <= 1) return;
  ForEachLine<F>(threads, lines, [&](Eigen::FFT<F>& fft, int64_t outer, int64_t inner) {
    std::complex<F>* line = x + outer * lines.length * lines.inner + inner;
    std::vector<std::complex<F>> in(lines.length), out(lines.length);
    for (int64_t k = 0; k < lines.length; ++k) in[k] = line[k * lines.inner];
    TransformLine(fft, direction, in, &out);
    for (int64_t k = 0; k < lines.length; ++k) line[k * lines.inner] = out[k];
  });
}

inline Status CheckFftRank(const Tensor& input, int rank) {
  if (input.rank() >= rank) return OkStatus();
  return InvalidArgument("Input must have rank of at least ", rank,
                         " but got: ", input.shape().ToString());
}

inline const DTypes kComplexTypes = {DType::kComplex64, DType::kComplex128};

// Returns "FFT", "FFT2D" or "FFT3D" for prefix "FFT".
inline std::string FftName(const char* prefix, int rank) {
  return rank == 1 ? prefix : StrCat(prefix, rank, "D");
}

// Returns the last `rank` sizes of x.
inline Output LastSizes(Output x, int rank) {
  const Output begin = Reshape(RankOf(x) - static_cast<double>(rank),
                               Constant(*x.sink, Tensor::Vector<int32_t>({1})));
  const Output size = Constant(*x.sink, Tensor::Vector<int32_t>({-1}));
  return Call("Slice", {ShapeOf(x), begin, size});
}

// Returns the number of elements of one transform of sizes `lengths`, as `type`.
inline Output FftSize(Output lengths, DType type) {
  return Cast(Call("Prod", {lengths, Constant(*lengths.sink, Tensor::Scalar<int32_t>(0))}), type);
}

}  // namespace penstock
