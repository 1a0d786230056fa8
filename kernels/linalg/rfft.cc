// SPDX-License-Identifier: Apache-2.0
//
// RFFT, IRFFT over the last one, two or three dimensions.
#include <algorithm>

#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/linalg/fft.h"

namespace penstock {
namespace {

// Returns fft_length, one length for each of the last `rank` dimensions. InvalidArgument unless
// `lengths` is a vector of `rank` numbers that are not negative.
StatusOr<Dims> FftLength(const Tensor& lengths, int rank) {
  if (lengths.rank() != 1 || lengths.dim(0) != rank) {
    return InvalidArgument("fft_length must have shape [", rank, "], has ",
                           lengths.shape().ToString());
  }
  ASSIGN_OR_RETURN(Dims dims, IntVector(lengths, "fft_length"));
  for (int i = 0; i < rank; ++i) {
    if (dims[i] < 0) {
      return InvalidArgument("fft_length[", i, "] must >= 0, but got: ", dims[i]);
    }
  }
  return dims;
}

int64_t HalfLength(int64_t n) { return n == 0 ? 0 : n / 2 + 1; }

// The shapes of a real transform.
struct RealTransform {
  Dims needed;  // minimum sizes of the input's last dimensions
  Shape work;   // the complex half: [batch..., fft_length[:-1]..., fft_length[-1] / 2 + 1]
  Shape output;

  static StatusOr<RealTransform> Make(const Tensor& input, const Tensor& lengths, int rank,
                                      FftDirection direction) {
    RETURN_IF_ERROR(CheckFftRank(input, rank));
    ASSIGN_OR_RETURN(const Dims full, FftLength(lengths, rank));
    Dims half = full;
    half[rank - 1] = HalfLength(full[rank - 1]);
    RealTransform t{.needed = direction == FftDirection::kForward ? full : half};
    const auto with_batch = [&](const Dims& last) {
      const auto batch = input.shape().dims().subspan(0, input.rank() - rank);
      Dims dims(batch.begin(), batch.end());
      dims.insert(dims.end(), last.begin(), last.end());
      return Shape::Make(dims);
    };
    ASSIGN_OR_RETURN(t.work, with_batch(half));
    ASSIGN_OR_RETURN(t.output, with_batch(direction == FftDirection::kForward ? half : full));
    if (input.num_elements() == 0) return t;
    for (int i = 0; i < rank; ++i) {
      const int64_t size = input.dim(input.rank() - rank + i);
      if (size < t.needed[i]) {
        return InvalidArgument("Input dimension ", input.rank() - rank + i,
                               " must have length of at least ", t.needed[i], " but got: ", size);
      }
    }
    return t;
  }
};

// Calls fn(offset in `from`, offset in `to`) for each line along the last dimension of a tensor of
// shape `to`. The offsets are the positions of the line in that tensor, and of the same line in a
// tensor of the larger shape `from`.
template <class Fn>
void ForEachPair(const Shape& from, const Shape& to, Fn fn) {
  const int rank = to.rank();
  const int64_t length = to.dim(rank - 1);
  for (int64_t line = 0; line < to.num_elements() / length; ++line) {
    int64_t rest = line, offset = 0, stride = from.dim(rank - 1);
    for (int d = rank - 2; d >= 0; --d) {
      offset += rest % to.dim(d) * stride;
      rest /= to.dim(d);
      stride *= from.dim(d);
    }
    fn(offset, line * length);
  }
}

template <int kRank, class C>
class RfftKernel final : public Kernel {
 public:
  using F = typename C::value_type;
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const RealTransform t,
                     RealTransform::Make(input, ctx.input(1), kRank, FftDirection::kForward));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, t.output, &output));
    C* y = output->mutable_data<C>();
    if (t.output.num_elements() == 0) return OkStatus();
    if (input.num_elements() == 0) {
      std::fill_n(y, t.output.num_elements(), C(0));
      return OkStatus();
    }
    // Transforms along the last dimension, and keeps only the first half of each line; then
    // transforms along the other dimensions.
    const int64_t n = t.needed[kRank - 1], half = HalfLength(n);
    std::vector<std::pair<int64_t, int64_t>> lines;
    ForEachPair(input.shape(), t.output,
                [&](int64_t from, int64_t to) { lines.emplace_back(from, to); });
    ForEachLine<F>(ctx.threads(), {.outer = static_cast<int64_t>(lines.size()), .length = n},
                   [&](Eigen::FFT<F>& fft, int64_t i, int64_t) {
                     std::vector<C> in(n), out(n);
                     if (input.dtype() == DType::kFloat) {
                       std::copy_n(input.data<float>() + lines[i].first, n, in.begin());
                     } else {
                       std::copy_n(input.data<double>() + lines[i].first, n, in.begin());
                     }
                     TransformLine(fft, FftDirection::kForward, in, &out);
                     std::copy_n(out.begin(), half, y + lines[i].second);
                   });
    for (int axis = t.output.rank() - kRank; axis < t.output.rank() - 1; ++axis) {
      Transform(ctx.threads(), FftDirection::kForward, t.output.dims(), axis, y);
    }
    return OkStatus();
  }
};

template <int kRank, class C>
class IrfftKernel final : public Kernel {
 public:
  using F = typename C::value_type;
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const RealTransform t,
                     RealTransform::Make(input, ctx.input(1), kRank, FftDirection::kInverse));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, t.output, &output));
    if (t.output.num_elements() == 0) return OkStatus();
    if (input.num_elements() == 0) {
      ZeroElements(output->dtype(), output->mutable_raw_data(), t.output.num_elements());
      return OkStatus();
    }
    const int64_t half = t.work.dim(t.work.rank() - 1), n = t.output.dim(t.output.rank() - 1);
    ASSIGN_OR_RETURN(Tensor work, ctx.Temporary(input.dtype(), t.work));
    C* w = work.mutable_data<C>();
    ForEachPair(input.shape(), t.work, [&](int64_t from, int64_t to) {
      std::copy_n(input.data<C>() + from, half, w + to);
    });
    for (int axis = t.work.rank() - kRank; axis < t.work.rank() - 1; ++axis) {
      Transform(ctx.threads(), FftDirection::kInverse, t.work.dims(), axis, w);
    }
    // The second half is the conjugate of the first half in reverse order.
    ForEachLine<F>(ctx.threads(), {.outer = t.work.num_elements() / half, .length = n},
                   [&](Eigen::FFT<F>& fft, int64_t line, int64_t) {
                     std::vector<C> in(n), out(n);
                     std::copy_n(w + line * half, half, in.begin());
                     for (int64_t k = half; k < n; ++k) in[k] = std::conj(in[n - k]);
                     TransformLine(fft, FftDirection::kInverse, in, &out);
                     if (output->dtype() == DType::kFloat) {
                       CopyReal(out, output->mutable_data<float>() + line * n);
                     } else {
                       CopyReal(out, output->mutable_data<double>() + line * n);
                     }
                   });
    return OkStatus();
  }

 private:
  template <class R>
  static void CopyReal(const std::vector<C>& from, R* to) {
    for (size_t k = 0; k < from.size(); ++k) to[k] = static_cast<R>(from[k].real());
  }
};

template <int kRank, FftDirection kDirection>
Status RealFftShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, s.WithRankAtLeast(0, kRank));
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  if (!shape.known_rank()) return OkStatus();
  std::vector<int64_t> lengths;
  const bool known = s.ConstantInts(1, &lengths);
  if (known && lengths.size() != kRank) {
    return InvalidArgument("fft_length must have shape [", kRank, "], has [", lengths.size(), "]");
  }
  for (int i = 0; i < kRank; ++i) {
    int64_t size = known ? lengths[i] : PartialShape::kUnknown;
    if (known && size < 0) {
      return InvalidArgument("fft_length[", i, "] must >= 0, but got: ", size);
    }
    if (size > 0 && i == kRank - 1 && kDirection == FftDirection::kForward) size = HalfLength(size);
    shape.set_dim(shape.rank() - kRank + i, size);
  }
  s.set_output(0, std::move(shape));
  return OkStatus();
}

// Returns the last `rank` of the lengths 2, 3, 5, for examples.
ExampleTensor ExampleLengths(int rank) {
  std::vector<double> lengths = {2, 3, 5};
  lengths.erase(lengths.begin(), lengths.end() - rank);
  return {{rank}, lengths};
}

// Appends zeros to x, up to `sizes` in its last dimensions.
Output PadTo(Output x, Output sizes, int rank) {
  const Output missing = sizes - LastSizes(x, rank);
  const Output others = Fill(Reshape(RankOf(x) - static_cast<double>(rank),
                                     Constant(*x.sink, Tensor::Vector<int32_t>({1}))),
                             Constant(*x.sink, Tensor::Scalar<int32_t>(0)));
  const Output behind = ConcatV2({others, missing}, Constant(*x.sink, Tensor::Scalar<int32_t>(0)));
  return Call("Pad", {x, Pack({ZerosLike(behind), behind}, 1)});
}

// Returns the gradient of x. The op returns the first half of the full transform of x. So its
// gradient is the gradient of the full transform, with zeros in place of the gradient of the second
// half.
Gradients RfftGradient(const GradientScope& g, int rank) {
  const Output lengths = g.x(1), n = FftSize(lengths, g.dy().dtype());
  const Output whole = Call(FftName("IFFT", rank), {PadTo(g.dy(), lengths, rank)}) * n;
  const Output real = Call("Real", {whole}, {{"Tout", g.x().dtype()}});
  return {PadTo(real, LastSizes(g.x(), rank), rank), Gradient()};
}

// Returns the gradient of the input. Each number of a line except the first and (for even lengths)
// the last one also stands for its conjugate, so its gradient counts twice.
Gradients IrfftGradient(const GradientScope& g, int rank) {
  const Output lengths = g.x(1), one = g.Const<int32_t>(1), zero = g.Const<int32_t>(0);
  const Output dx = Call(FftName("RFFT", rank), {g.dy(), lengths}, {{"Tcomplex", g.dtype()}});
  const Output last = Gather(lengths, g.Const<int32_t>(rank - 1), zero);
  const Output k = Range(zero, Gather(LastSizes(dx, 1), zero, zero), one);
  const Output alone = Equal(Call("FloorMod", {k * 2.0, last}), ZerosLike(k));
  const Output twice = Cast(Select(alone, OnesLike(k), OnesLike(k) * 2.0), g.dtype());
  const Output scaled = dx * twice / FftSize(lengths, g.dtype());
  return {PadTo(scaled, LastSizes(g.x(), rank), rank), Gradient()};
}

template <int kRank>
OpDef RfftOp() {
  return {
      .doc = StrCat("The discrete Fourier transform of real numbers over the last ", kRank,
                    " dimension(s), which are first cut to fft_length. Returns only the first "
                    "fft_length / 2 + 1 numbers along the last dimension."),
      .inputs = {{"input", "Treal"}, {"fft_length", "int32"}},
      .outputs = {{"output", "Tcomplex"}},
      .types = {{"Treal", kRealMatrixTypes, DType::kFloat},
                {"Tcomplex", kComplexTypes, DType::kComplex64}},
      .shape = RealFftShape<kRank, FftDirection::kForward>,
      .gradient = [](const GradientScope& g) { return RfftGradient(g, kRank); },
      .examples = {{.inputs = {{{{2, 3, 6}}}, {ExampleLengths(kRank)}}}},
  };
}

template <int kRank>
OpDef IrfftOp() {
  return {
      .doc = StrCat("The inverse of RFFT over the last ", kRank, " dimension(s)."),
      .inputs = {{"input", "Tcomplex"}, {"fft_length", "int32"}},
      .outputs = {{"output", "Treal"}},
      .types = {{"Treal", kRealMatrixTypes, DType::kFloat},
                {"Tcomplex", kComplexTypes, DType::kComplex64}},
      .shape = RealFftShape<kRank, FftDirection::kInverse>,
      .gradient = [](const GradientScope& g) { return IrfftGradient(g, kRank); },
      .examples = {{.inputs = {{{{2, 3, 4}}}, {ExampleLengths(kRank)}}}},
  };
}

}  // namespace

#define REAL_FFT(suffix, rank)                                                \
  template <class T>                                                          \
  using RealForward##rank = RfftKernel<rank, T>;                              \
  template <class T>                                                          \
  using RealInverse##rank = IrfftKernel<rank, T>;                             \
  OP(RFFT##suffix) { return RfftOp<rank>(); }                                 \
  OP(IRFFT##suffix) { return IrfftOp<rank>(); }                               \
  KERNEL_BY("Tcomplex", RFFT##suffix, RealForward##rank, std::complex<float>, \
            std::complex<double>);                                            \
  KERNEL_BY("Tcomplex", IRFFT##suffix, RealInverse##rank, std::complex<float>, std::complex<double>)

REAL_FFT(, 1);
REAL_FFT(2D, 2);
REAL_FFT(3D, 3);

}  // namespace penstock
