// SPDX-License-Identifier: Apache-2.0
//
// Select and SelectV2: take each element from one of two tensors, as a condition tensor says.
#include "core/op/block_kernel.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/broadcast.h"
#include "kernels/math/forms.h"
#include "kernels/math/storage.h"
#if defined(PENSTOCK_CUDA_DEVICE)
#include "kernels/engine/cuda_launch.cuh"
#endif

namespace penstock {
namespace {

#if defined(PENSTOCK_CUDA_DEVICE)

template <class T>
__global__ void SelectOnDevice(DeviceBroadcast plan, const bool* condition, const T* t, const T* e,
                               T* out, int64_t n) {
  FOR_EACH_ON_DEVICE(i, n) {
    int64_t at[3];
    plan.Locate(i, at);
    out[i] = condition[at[0]] ? t[at[1]] : e[at[2]];
  }
}

template <class T>
Status Run(KernelContext& ctx, const BroadcastPlan& plan, const bool* condition, const T* t,
           const T* e, T* out) {
  ASSIGN_OR_RETURN(const DeviceBroadcast device, DeviceBroadcast::Make(plan));
  const int64_t n = plan.output().num_elements();
  SelectOnDevice<<<GridFor(n), kThreadsPerBlock, 0, CudaStream(ctx.stream())>>>(device, condition,
                                                                                t, e, out, n);
  return LaunchStatus();
}

#else

// Selects n elements. The steps are 0 for operands of which one element serves the whole row, else
// 1.
template <class T>
void SelectRow(const bool* c, bool c_step, const T* t, int64_t t_step, const T* e, int64_t e_step,
               T* to, int64_t n) {
  if (!c_step) {
    const T* from = *c ? t : e;
    const int64_t step = *c ? t_step : e_step;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
  } else if (t_step == 1 && e_step == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = c[i] ? t[i] : e[i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = c[i] ? t[i * t_step] : e[i * e_step];
  }
}

template <class T>
Status Run(KernelContext& ctx, const BroadcastPlan& plan, const bool* condition, const T* t,
           const T* e, T* out) {
  plan.ForEachPanel(ctx.threads(), 0.1 * sizeof(T), [&](const BroadcastPanel& p) {
    const int64_t then_step = !p.repeats[1], else_step = !p.repeats[2];
    for (int64_t r = 0; r < p.rows; ++r) {
      SelectRow(condition + p.offset[0] + r * p.row_step[0], !p.repeats[0],
                t + p.offset[1] + r * p.row_step[1], then_step, e + p.offset[2] + r * p.row_step[2],
                else_step, out + p.out + r * p.n, p.n);
    }
  });
  return OkStatus();
}

#endif

Status SelectInto(KernelContext& ctx, const BroadcastPlan& plan) {
  const Tensor& t = ctx.input(1);
  const Tensor& e = ctx.input(2);
  // The output may reuse an operand's buffer if no other tensor shares it and the operand has the
  // output's shape.
  const auto writable = [&](const Tensor& side) {
    return side.unique() && side.num_elements() == plan.output().num_elements();
  };
  Tensor* out;
  RETURN_IF_ERROR(ctx.ForwardOrAllocate(writable(t) ? 1 : 2, 0, plan.output(), &out));
  if (out->num_elements() == 0) return OkStatus();
  return WithStorageType(t.dtype(), [&](auto element) {
    using T = decltype(element);
    return Run<T>(ctx, plan, ctx.input(0).data<bool>(), static_cast<const T*>(t.raw_data()),
                  static_cast<const T*>(e.raw_data()), static_cast<T*>(out->mutable_raw_data()));
  });
}

// The part of both kernels that runs blocks.
class SelectBlocks : public Kernel, public BlockKernel {
 public:
  Status Init(const KernelInit& node) override {
    dtype_ = node.output_types[0].dtype;
    return OkStatus();
  }
  double BlockNanos() const override { return 0.1; }
#if defined(PENSTOCK_CUDA_DEVICE)
  bool RunsInBlocks() const override { return false; }
  void RunBlock(const BlockInput*, void*, int64_t) const override {}
#else
  bool RunsInBlocks() const override { return IsPlain(dtype_); }
  void RunBlock(const BlockInput* inputs, void* output, int64_t n) const override {
    CHECK_OK(WithStorageType(dtype_, [&](auto element) {
      using T = decltype(element);
      SelectRow(static_cast<const bool*>(inputs[0].data), !inputs[0].repeats,
                static_cast<const T*>(inputs[1].data), inputs[1].repeats ? 0 : 1,
                static_cast<const T*>(inputs[2].data), inputs[2].repeats ? 0 : 1,
                static_cast<T*>(output), n);
      return OkStatus();
    }));
  }
#endif

 private:
  DType dtype_ = DType::kInvalid;
};

// The condition has the shape of the operands, or is a scalar, or has one element for each of their
// rows.
class SelectKernel final : public SelectBlocks {
 public:
  bool AcceptsShapes(const Shape& output, absl::Span<const Shape* const> inputs) const override {
    return *inputs[1] == output && *inputs[2] == output &&
           (inputs[0]->rank() == 0 || *inputs[0] == output);
  }
  Status Compute(KernelContext& ctx) override {
    const Shape& condition = ctx.input(0).shape();
    const Shape& shape = ctx.input(1).shape();
    if (shape != ctx.input(2).shape()) {
      return InvalidArgument("'t' and 'e' must have the same shape, have ", shape.ToString(),
                             " and ", ctx.input(2).shape().ToString());
    }
    Shape aligned = condition;
    if (condition.rank() == 1 && shape.rank() > 1 && condition.dim(0) == shape.dim(0)) {
      for (int d = 1; d < shape.rank(); ++d) aligned.AddDim(1);
    } else if (condition.rank() != 0 && condition != shape) {
      return InvalidArgument("'condition' must have the shape of 't', ", shape.ToString(),
                             ", or be a scalar or a vector with one value for each row; it has ",
                             condition.ToString());
    }
    ASSIGN_OR_RETURN(const BroadcastPlan plan, BroadcastPlan::Make({&aligned, &shape, &shape}));
    return SelectInto(ctx, plan);
  }
};

class SelectV2Kernel final : public SelectBlocks {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(
        const BroadcastPlan plan,
        BroadcastPlan::Make({&ctx.input(0).shape(), &ctx.input(1).shape(), &ctx.input(2).shape()}));
    return SelectInto(ctx, plan);
  }
};

// One kernel serves all types. Devices have none for types that are not plain bytes.
template <class>
using SelectOf = SelectKernel;
template <class>
using SelectV2Of = SelectV2Kernel;

Status SelectShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, s.input(1).Merge(s.input(2)));
  const PartialShape& condition = s.input(0);
  if (condition.known_rank() && shape.known_rank() && condition.rank() == shape.rank()) {
    ASSIGN_OR_RETURN(shape, shape.Merge(condition));
  }
  s.set_output(0, std::move(shape));
  return OkStatus();
}

OpDef SelectOp(const char* doc, ShapeFn shape, GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = {{"condition", "bool"}, {"t", "T"}, {"e", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", TypesOf<PLAIN_TYPES, std::string, ResourceHandle, Variant>()}},
      .shape = std::move(shape),
      .gradient = std::move(gradient),
      .reuses = Reuse::kAny,
  };
}

}  // namespace

OP(Select) {
  return SelectOp(
      "Takes elements, or rows, from t where the condition is true, and from e where it "
      "is false.",
      SelectShape, [](const GradientScope& g) -> Gradients {
        const Output zero = ZerosLike(g.dy());
        return {Gradient(), Select(g.x(0), g.dy(), zero), Select(g.x(0), zero, g.dy())};
      });
}
KERNEL(Select, SelectOf, PLAIN_TYPES);

OP(SelectV2) {
  return SelectOp(
      "Takes elements from t where the condition is true, and from e where it is false. "
      "All three inputs broadcast.",
      [](ShapeScope& s) -> Status {
        ASSIGN_OR_RETURN(const PartialShape sides, Broadcast(s.input(1), s.input(2)));
        ASSIGN_OR_RETURN(PartialShape all, Broadcast(s.input(0), sides));
        s.set_output(0, std::move(all));
        return OkStatus();
      },
      [](const GradientScope& g) -> Gradients {
        const Output zero = ZerosLike(g.dy());
        const auto side = [&](Output t, Output e) { return Call("SelectV2", {g.x(0), t, e}); };
        return {Gradient(), SumToShapeOf(side(g.dy(), zero), g.x(1)),
                SumToShapeOf(side(zero, g.dy()), g.x(2))};
      });
}
KERNEL(SelectV2, SelectV2Of, PLAIN_TYPES);

#if !defined(PENSTOCK_CUDA_DEVICE)
KERNEL(Select, SelectOf, std::string, ResourceHandle, Variant);
KERNEL(SelectV2, SelectV2Of, std::string, ResourceHandle, Variant);
#endif

}  // namespace penstock
