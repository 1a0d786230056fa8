// SPDX-License-Identifier: Apache-2.0
//
// Equal and NotEqual, for all types, and ApproximateEqual.
#include <string>

#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct EqualFn {
  static constexpr bool kIfIncompatible = false;
  template <class T>
  DEVICE_FN bool operator()(const T& x, const T& y) const {
    return x == y;
  }
};

struct NotEqualFn {
  static constexpr bool kIfIncompatible = true;
  template <class T>
  DEVICE_FN bool operator()(const T& x, const T& y) const {
    return !(x == y);
  }
};

Status SetScalar(KernelContext& ctx, bool value) {
  Tensor* z;
  RETURN_IF_ERROR(ctx.Allocate(0, Shape(), &z));
#if defined(PENSTOCK_CUDA_DEVICE)
  cudaMemsetAsync(z->mutable_raw_data(), value, 1, CudaStream(ctx.stream()));
  return LaunchStatus();
#else
  *z->mutable_data<bool>() = value;
  return OkStatus();
#endif
}

// If the shapes do not broadcast, the attribute incompatible_shape_error decides whether the op
// fails or the result is "not equal".
template <class Fn>
struct Equality {
  template <class T>
  class Kernel final : public BinaryKernel {
   public:
    Kernel() : BinaryKernel(BinaryElementwise<Fn>::template Kernel<T>::kLoop) {}
    Status Init(const KernelInit& node) override {
      RETURN_IF_ERROR(node.Attr("incompatible_shape_error", &shape_error_));
      return BinaryKernel::Init(node);
    }
    Status Compute(KernelContext& ctx) override {
      if (!shape_error_ &&
          !BroadcastPlan::Make({&ctx.input(0).shape(), &ctx.input(1).shape()}).ok()) {
        return SetScalar(ctx, Fn::kIfIncompatible);
      }
      return BinaryKernel::Compute(ctx);
    }

   private:
    bool shape_error_ = true;
  };
};

struct DistanceFn {
  template <class T>
  DEVICE_FN auto operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      // Subtracts in double, which is exact up to 2^53 and does not overflow.
      return std::abs(static_cast<double>(x) - static_cast<double>(y));
    } else {
      using std::abs;
      return abs(x - y);
    }
  }
};

#if defined(PENSTOCK_CUDA_DEVICE)
template <class T>
__global__ void NearOnDevice(const T* x, const T* y, float tolerance, bool* z, int64_t n) {
  using L = LoopType<T>;
  FOR_EACH_ON_DEVICE(i, n) {
    z[i] = DistanceFn()(static_cast<L>(x[i]), static_cast<L>(y[i])) <= tolerance;
  }
}
#endif

template <class T>
class ApproximateEqualKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("tolerance", &tolerance_); }
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    const Tensor& y = ctx.input(1);
    if (x.shape() != y.shape()) {
      return InvalidArgument("x and y must have the same shape, have ", x.shape().ToString(),
                             " and ", y.shape().ToString());
    }
    Tensor* z;
    RETURN_IF_ERROR(ctx.Allocate(0, x.shape(), &z));
    bool* out = z->mutable_data<bool>();
    const int64_t n = x.num_elements();
#if defined(PENSTOCK_CUDA_DEVICE)
    using E = DeviceElement<T>;
    NearOnDevice<<<GridFor(n), kThreadsPerBlock, 0, CudaStream(ctx.stream())>>>(
        reinterpret_cast<const E*>(x.data<T>()), reinterpret_cast<const E*>(y.data<T>()),
        tolerance_, out, n);
    return LaunchStatus();
#else
    const T* left = x.data<T>();
    const T* right = y.data<T>();
    using L = LoopType<T>;
    ForEachBlock(ctx.threads(), n, TrafficNanos(2 * sizeof(T)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        out[i] = DistanceFn()(static_cast<L>(left[i]), static_cast<L>(right[i])) <= tolerance_;
      }
    });
    return OkStatus();
#endif
  }

 private:
  float tolerance_ = 0;
};

Status EqualityShape(ShapeScope& s) {
  const PartialShape& x = s.input(0);
  const PartialShape& y = s.input(1);
  if (s.attr<bool>("incompatible_shape_error")) return BroadcastShape(s);
  if (!x.fully_known() || !y.fully_known()) return UnknownShape(s);
  const StatusOr<PartialShape> z = Broadcast(x, y);
  s.set_output(0, z.ok() ? *z : PartialShape::Scalar());
  return OkStatus();
}

OpDef EqualityOp(const char* doc) {
  OpDef op = Comparison(doc, TypesOf<PLAIN_TYPES, std::string>());
  op.attrs = {{"incompatible_shape_error", AttrValue(true)}};
  op.shape = EqualityShape;
  op.commutative = true;
  op.reuses = Reuse::kAny;  // has an effect only if T is bool, the output's type
  return op;
}

}  // namespace

OP(Equal) { return EqualityOp("True where x == y."); }
KERNEL(Equal, Equality<EqualFn>::Kernel, PLAIN_TYPES);
OP(NotEqual) { return EqualityOp("True where x != y."); }
KERNEL(NotEqual, Equality<NotEqualFn>::Kernel, PLAIN_TYPES);
#if !defined(PENSTOCK_CUDA_DEVICE)
KERNEL(Equal, Equality<EqualFn>::Kernel, std::string);
KERNEL(NotEqual, Equality<NotEqualFn>::Kernel, std::string);
#endif

OP(ApproximateEqual) {
  return {
      .doc = "True where |x - y| <= tolerance.",
      .inputs = {{"x", "T"}, {"y", "T"}},
      .outputs = {{"z", "bool"}},
      .types = {{"T", kNumber}},
      .attrs = {{"tolerance", AttrValue(1e-5f)}},
      .shape = [](ShapeScope& s) -> Status {
        ASSIGN_OR_RETURN(PartialShape shape, s.input(0).Merge(s.input(1)));
        s.set_output(0, std::move(shape));
        return OkStatus();
      },
      .gradient = NoGradient,
      .commutative = true,
  };
}
KERNEL(ApproximateEqual, ApproximateEqualKernel, NUMBER_TYPES);

}  // namespace penstock
