// SPDX-License-Identifier: Apache-2.0
//
// Convolution as a matrix product of unrolled windows (Chellapilla, Puri and Simard 2006).
#include <cblas.h>

#include <algorithm>
#include <vector>

#include "kernels/math/add.h"
#include "kernels/nn/conv_geometry.h"

namespace penstock {
namespace {

// The product c[m,n] = op(a) * op(b); if `add`, c[m,n] += op(a) * op(b). All matrices are
// row-major; a is [m,k] or, if transposed, [k,m]; b is [k,n] or, if transposed, [n,k].
struct Product {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false, add = false;
};

CBLAS_TRANSPOSE Side(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }

void Multiply(const Product& p, const float* a, const float* b, float* c) {
  cblas_sgemm(CblasRowMajor, Side(p.transpose_a), Side(p.transpose_b), p.m, p.n, p.k, 1, a,
              p.transpose_a ? p.m : p.k, b, p.transpose_b ? p.k : p.n, p.add ? 1 : 0, c, p.n);
}
void Multiply(const Product& p, const double* a, const double* b, double* c) {
  cblas_dgemm(CblasRowMajor, Side(p.transpose_a), Side(p.transpose_b), p.m, p.n, p.k, 1, a,
              p.transpose_a ? p.m : p.k, b, p.transpose_b ? p.k : p.n, p.add ? 1 : 0, c, p.n);
}
// Integers wrap around.
void Multiply(const Product& p, const int32_t* a, const int32_t* b, int32_t* c) {
  auto* out = reinterpret_cast<uint32_t*>(c);
  if (!p.add) std::fill_n(out, p.m * p.n, 0u);
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t l = 0; l < p.k; ++l) {
      const auto left = static_cast<uint32_t>(p.transpose_a ? a[l * p.m + i] : a[i * p.k + l]);
      for (int64_t j = 0; j < p.n; ++j) {
        const auto right = static_cast<uint32_t>(p.transpose_b ? b[j * p.k + l] : b[l * p.n + j]);
        out[i * p.n + j] += left * right;
      }
    }
  }
}

// Calls fn(pixel of the image or -1 for padding, offset in the patch) for each element of the
// window at output pixel p. Offsets refer to channel 0.
template <class Fn>
void ForEachTap(const ConvGeometry& g, int64_t p, const Fn& fn) {
  const auto first = [](const Window& w, int64_t o) { return o * w.stride - w.pad_before; };
  const int64_t d0 = first(g.d, p / (g.h.out * g.w.out));
  const int64_t h0 = first(g.h, p / g.w.out % g.h.out), w0 = first(g.w, p % g.w.out);
  int64_t offset = 0;
  for (int64_t kd = 0; kd < g.d.size; ++kd) {
    const int64_t id = d0 + kd * g.d.dilation;
    for (int64_t kh = 0; kh < g.h.size; ++kh) {
      const int64_t ih = h0 + kh * g.h.dilation;
      const bool row_inside = id >= 0 && id < g.d.in && ih >= 0 && ih < g.h.in;
      for (int64_t kw = 0; kw < g.w.size; ++kw, offset += g.in_channels) {
        const int64_t iw = w0 + kw * g.w.dilation;
        const bool inside = row_inside && iw >= 0 && iw < g.w.in;
        fn(inside ? (id * g.h.in + ih) * g.w.in + iw : -1, offset);
      }
    }
  }
}

template <class T>
void Unroll(const ConvGeometry& g, const T* image, T* rows) {
  for (int64_t p = 0; p < g.out_pixels(); ++p, rows += g.patch()) {
    ForEachTap(g, p, [&](int64_t pixel, int64_t offset) {
      if (pixel < 0) {
        std::fill_n(rows + offset, g.in_channels, T(0));
      } else {
        std::copy_n(image + pixel * g.in_channels, g.in_channels, rows + offset);
      }
    });
  }
}

template <class T>
void RollUp(const ConvGeometry& g, const T* rows, T* image) {
  for (int64_t p = 0; p < g.out_pixels(); ++p, rows += g.patch()) {
    ForEachTap(g, p, [&](int64_t pixel, int64_t offset) {
      if (pixel < 0) return;
      T* to = image + pixel * g.in_channels;
      for (int64_t c = 0; c < g.in_channels; ++c) to[c] = AddFn()(to[c], rows[offset + c]);
    });
  }
}

// Returns the approximate nanoseconds of one image, at half of a core's peak (40 operations each).
double ImageNanos(const ConvGeometry& g) {
  return g.flops() / static_cast<double>(std::max<int64_t>(g.batch, 1)) / 40;
}

}  // namespace

template <class T>
void UnrolledForward(const ConvGeometry& g, const T* image, const T* filter, T* output,
                     Scheduler& threads) {
  const int64_t pixels = g.out_pixels();
  threads.ParallelFor(g.batch, ImageNanos(g), [&](int64_t begin, int64_t end) {
    std::vector<T> rows(pixels * g.patch());
    for (int64_t b = begin; b < end; ++b) {
      Unroll(g, image + b * g.in_pixels() * g.in_channels, rows.data());
      Multiply({.m = pixels, .n = g.out_channels, .k = g.patch()}, rows.data(), filter,
               output + b * pixels * g.out_channels);
    }
  });
}

template <class T>
void UnrolledImageGradient(const ConvGeometry& g, const T* filter, const T* doutput, T* dimage,
                           Scheduler& threads) {
  const int64_t pixels = g.out_pixels();
  const int64_t image_size = g.in_pixels() * g.in_channels;
  threads.ParallelFor(g.batch, ImageNanos(g), [&](int64_t begin, int64_t end) {
    std::vector<T> rows(pixels * g.patch());
    std::fill(dimage + begin * image_size, dimage + end * image_size, T(0));
    for (int64_t b = begin; b < end; ++b) {
      Multiply({.m = pixels, .n = g.patch(), .k = g.out_channels, .transpose_b = true},
               doutput + b * pixels * g.out_channels, filter, rows.data());
      RollUp(g, rows.data(), dimage + b * image_size);
    }
  });
}

// Computes the gradient of the filter. Each piece of the batch has its own result, and the results
// are added up in order, so the sum does not depend on the order in which threads finish.
template <class T>
void UnrolledFilterGradient(const ConvGeometry& g, const T* image, const T* doutput, T* dfilter,
                            Scheduler& threads) {
  const int64_t pixels = g.out_pixels();
  const int64_t filter_size = g.patch() * g.out_channels;
  const int64_t pieces =
      std::clamp<int64_t>(threads.num_threads(), 1, std::max<int64_t>(g.batch, 1));
  std::vector<T> parts(filter_size * (pieces - 1));
  const double piece_ns = ImageNanos(g) * static_cast<double>(g.batch) / pieces;
  std::fill_n(dfilter, filter_size, T(0));
  threads.ParallelFor(pieces, piece_ns, [&](int64_t begin, int64_t end) {
    std::vector<T> rows(pixels * g.patch());
    for (int64_t p = begin; p < end; ++p) {
      T* const part = p == 0 ? dfilter : parts.data() + (p - 1) * filter_size;
      const int64_t first = g.batch * p / pieces, last = g.batch * (p + 1) / pieces;
      for (int64_t b = first; b < last; ++b) {
        Unroll(g, image + b * g.in_pixels() * g.in_channels, rows.data());
        Multiply({.m = g.patch(),
                  .n = g.out_channels,
                  .k = pixels,
                  .transpose_a = true,
                  .add = b != first},
                 rows.data(), doutput + b * pixels * g.out_channels, part);
      }
    }
  });
  for (const T* part = parts.data(); part != parts.data() + parts.size(); part += filter_size) {
    for (int64_t i = 0; i < filter_size; ++i) dfilter[i] = AddFn()(dfilter[i], part[i]);
  }
}

#define INSTANTIATE(T)                                                                             \
  template void UnrolledForward<T>(const ConvGeometry&, const T*, const T*, T*, Scheduler&);       \
  template void UnrolledImageGradient<T>(const ConvGeometry&, const T*, const T*, T*, Scheduler&); \
  template void UnrolledFilterGradient<T>(const ConvGeometry&, const T*, const T*, T*, Scheduler&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(int32_t)
#undef INSTANTIATE

}  // namespace penstock
