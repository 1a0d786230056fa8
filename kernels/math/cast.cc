// SPDX-License-Identifier: Apache-2.0
//
// Cast: converts between all numeric types and bool.
#include "kernels/math/cast.h"

#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

#define CASTABLE_TYPES float, double, INTEGER_TYPES, bool, COMPLEX_TYPES

template <class To>
struct CastFn {
  template <class From>
  DEVICE_FN To operator()(From x) const {
    return CastTo<To>(x);
  }
};

#if defined(PENSTOCK_CUDA_DEVICE)

template <class From, class To>
Status Loop(KernelContext& ctx, const void* x, void* y, int64_t n) {
  using L = LoopType<From>;
  using Result = LoopType<To>;
  UnaryOnDevice<CastFn<Result>, L><<<GridFor(n), kThreadsPerBlock, 0, CudaStream(ctx.stream())>>>(
      static_cast<const DeviceElement<From>*>(x), static_cast<DeviceElement<To>*>(y), n);
  return LaunchStatus();
}
using CastLoop = Status (*)(KernelContext&, const void*, void*, int64_t);
#define ALL_TYPES CASTABLE_TYPES, half, bfloat16

#else

template <class From, class To>
void Loop(const void* x, void* y, int64_t n) {
  RunUnary<CastFn<To>, From>(x, y, n);
}
using CastLoop = void (*)(const void*, void*, int64_t);
// The types between which a conversion is compiled. On the CPU, 16-bit floats are first converted
// to float, so this list omits them.
#define ALL_TYPES CASTABLE_TYPES

#endif

template <class From, class... Tos>
CastLoop FindTo(DType to) {
  CastLoop loop = nullptr;
  ((to == kDTypeOf<Tos> ? void(loop = Loop<From, Tos>) : void()), ...);
  return loop;
}

template <class... Froms>
CastLoop Find(DType from, DType to) {
  CastLoop loop = nullptr;
  ((from == kDTypeOf<Froms> ? void(loop = FindTo<Froms, ALL_TYPES>(to)) : void()), ...);
  return loop;
}

// Returns the integer type in which numbers of a quantized type are stored; returns other types
// unchanged.
DType StorageType(DType dtype) {
  switch (dtype) {
    case DType::kQint8:
      return DType::kInt8;
    case DType::kQuint8:
      return DType::kUint8;
    case DType::kQint16:
      return DType::kInt16;
    case DType::kQuint16:
      return DType::kUint16;
    case DType::kQint32:
      return DType::kInt32;
    default:
      return dtype;
  }
}

// Returns how many bits shorter the fraction of type `to` is than that of type `from`.
int LostBits(DType from, DType to) {
  const auto bits = [](DType dtype) {
    switch (dtype) {
      case DType::kBfloat16:
        return 7;
      case DType::kHalf:
        return 10;
      case DType::kFloat:
      case DType::kComplex64:
        return 23;
      case DType::kDouble:
      case DType::kComplex128:
        return 52;
      default:
        return 0;
    }
  };
  return bits(from) == 0 || bits(to) == 0 ? 0 : std::max(0, bits(from) - bits(to));
}

// Clears the `lost` lowest bits of the fraction; infinities and NaN are unchanged.
template <class Bits, int kFractionBits>
DEVICE_FN Bits Truncated(Bits x, int lost) {
  const Bits fraction = (Bits{1} << kFractionBits) - 1;
  const Bits exponent = (~Bits{0} >> 1) & ~fraction;
  return (x & exponent) == exponent ? x : x & (~Bits{0} << lost);
}

#if defined(PENSTOCK_CUDA_DEVICE)
template <class Bits, int kFractionBits>
__global__ void TruncateOnDevice(const Bits* x, Bits* y, int64_t n, int lost) {
  FOR_EACH_ON_DEVICE(i, n) y[i] = Truncated<Bits, kFractionBits>(x[i], lost);
}
#endif

template <class Bits, int kFractionBits>
Status TruncateAll(KernelContext& ctx, const Tensor& x, int lost, Tensor* y) {
  const Bits* from = static_cast<const Bits*>(x.raw_data());
  Bits* to = static_cast<Bits*>(y->mutable_raw_data());
  const int64_t n = static_cast<int64_t>(x.bytes() / sizeof(Bits));
#if defined(PENSTOCK_CUDA_DEVICE)
  TruncateOnDevice<Bits, kFractionBits>
      <<<GridFor(n), kThreadsPerBlock, 0, CudaStream(ctx.stream())>>>(from, to, n, lost);
  return LaunchStatus();
#else
  for (int64_t i = 0; i < n; ++i) to[i] = Truncated<Bits, kFractionBits>(from[i], lost);
  return OkStatus();
#endif
}

class CastKernel final : public Kernel, public BlockKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("SrcT", &from_));
    RETURN_IF_ERROR(node.Attr("DstT", &to_));
    bool truncate = false;
    RETURN_IF_ERROR(node.Attr("Truncate", &truncate));
    from_ = StorageType(from_);
    to_ = StorageType(to_);
    lost_bits_ = truncate ? LostBits(from_, to_) : 0;
#if defined(PENSTOCK_CUDA_DEVICE)
    loop_ = Find<ALL_TYPES>(from_, to_);
#else
    const auto as_float = [](DType dtype) { return IsFloat16(dtype) ? DType::kFloat : dtype; };
    loop_ = Find<ALL_TYPES>(as_float(from_), as_float(to_));
#endif
    if (loop_ != nullptr) return OkStatus();
    return Unimplemented("node '", node.name, "': Cast ", Name(from_), " to ", Name(to_),
                         " is not supported");
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    if (from_ == to_) {
      ctx.SetOutput(0, x.Reinterpreted(ctx.output_type(0).dtype, x.shape()));
      return OkStatus();
    }
    Tensor* y;
    RETURN_IF_ERROR(ctx.Allocate(0, x.shape(), &y));
    if (x.num_elements() == 0) return OkStatus();
    if (lost_bits_ == 0) return Run(ctx, x, y);
    ASSIGN_OR_RETURN(Tensor shorter, ctx.Temporary(x.dtype(), x.shape()));
    if (from_ == DType::kFloat || from_ == DType::kComplex64) {
      RETURN_IF_ERROR((TruncateAll<uint32_t, 23>(ctx, x, lost_bits_, &shorter)));
    } else {
      RETURN_IF_ERROR((TruncateAll<uint64_t, 52>(ctx, x, lost_bits_, &shorter)));
    }
    return Run(ctx, shorter, y);
  }

#if defined(PENSTOCK_CUDA_DEVICE)
  bool RunsInBlocks() const override { return false; }
  void RunBlock(const BlockInput*, void*, int64_t) const override {}
#else
  bool RunsInBlocks() const override { return from_ != to_ && lost_bits_ == 0; }
  void RunBlock(const BlockInput* inputs, void* output, int64_t n) const override {
    RunElements(static_cast<const char*>(inputs[0].data), static_cast<char*>(output), n);
  }
#endif
  double BlockNanos() const override { return kCacheNanos; }

 private:
#if defined(PENSTOCK_CUDA_DEVICE)
  Status Run(KernelContext& ctx, const Tensor& x, Tensor* y) const {
    return loop_(ctx, x.raw_data(), y->mutable_raw_data(), x.num_elements());
  }
#else
  Status Run(KernelContext& ctx, const Tensor& x, Tensor* y) const {
    const size_t x_size = SizeOf(from_), y_size = SizeOf(to_);
    const char* from = static_cast<const char*>(x.raw_data());
    char* to = static_cast<char*>(y->mutable_raw_data());
    const double nanos = TrafficNanos(x_size + y_size);
    ForEachBlock(ctx.threads(), x.num_elements(), nanos, [&](int64_t begin, int64_t end) {
      RunElements(from + begin * x_size, to + begin * y_size, end - begin);
    });
    return OkStatus();
  }

  void RunElements(const char* x, char* y, int64_t n) const {
    if (!IsFloat16(from_) && !IsFloat16(to_)) return loop_(x, y, n);
    float in[kFloat16Block], out[kFloat16Block];
    for (int64_t i = 0; i < n; i += kFloat16Block) {
      const int64_t m = std::min(kFloat16Block, n - i);
      const void* from = x + i * SizeOf(from_);
      void* to = y + i * SizeOf(to_);
      if (IsFloat16(from_)) {
        Float16ToFloat(from_, from, in, m);
        from = in;
      }
      loop_(from, IsFloat16(to_) ? out : to, m);
      if (IsFloat16(to_)) FloatToFloat16(to_, out, to, m);
    }
  }
#endif

  DType from_ = DType::kInvalid, to_ = DType::kInvalid;
  int lost_bits_ = 0;
  CastLoop loop_ = nullptr;
};

DTypes CastableTypes() { return TypesOf<PLAIN_TYPES>(); }

}  // namespace

OP(Cast) {
  return {
      .doc =
          "Converts x to another type. With Truncate, a conversion to a float type of fewer "
          "bits cuts the mantissa instead of rounding it.",
      .inputs = {{"x", "SrcT"}},
      .outputs = {{"y", "DstT"}},
      .types = {{"SrcT", CastableTypes()}, {"DstT", CastableTypes()}},
      .attrs = {{"Truncate", AttrValue(false)}},
      .shape = SameShape,
      .gradient = [](const GradientScope& g) -> Gradients {
        const auto flows = [](DType dtype) { return IsFloating(dtype) || IsComplex(dtype); };
        if (!flows(g.x().dtype()) || !flows(g.y().dtype())) return NoGradient(g);
        return {Cast(g.dy(), g.x().dtype())};
      },
  };
}
KERNEL_ANY_TYPE(Cast, CastKernel);

}  // namespace penstock
