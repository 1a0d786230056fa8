// SPDX-License-Identifier: Apache-2.0
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "core/tensor/variant.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/accumulate.h"
#include "kernels/math/add.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

Status CheckShapes(const KernelContext& ctx) {
  const Shape& shape = ctx.input(0).shape();
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    if (ctx.input(i).shape() == shape) continue;
    return InvalidArgument(
        "Inputs to operation ", ctx.node_name(),
        " of type AddN must have the same size and shape.  Input 0: ", shape.ToString(),
        " != input ", i, ": ", ctx.input(i).shape().ToString());
  }
  return OkStatus();
}

#if !defined(PENSTOCK_CUDA_DEVICE)
class AddVariantsKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(CheckShapes(ctx));
    Tensor sum = ctx.TakeInput(0);
    for (int i = 1; i < ctx.num_inputs(); ++i) RETURN_IF_ERROR(AddInPlace(ctx, &sum, ctx.input(i)));
    ctx.SetOutput(0, std::move(sum));
    return OkStatus();
  }
};
#endif

// Adds block by block, so that partial sums stay in the first-level cache.
class AddNKernel : public Kernel {
 public:
  explicit AddNKernel(const BinaryLoop& add) : add_(add), size_(SizeOf(add.in)) {}

  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(CheckShapes(ctx));
    const Shape shape = ctx.input(0).shape();
    if (ctx.num_inputs() == 1) {
      ctx.SetOutput(0, ctx.input(0));
      return OkStatus();
    }
    Tensor* sum;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, shape, &sum));
    if (shape.num_elements() == 0) return OkStatus();
    if (add_.launch != nullptr) return Launch(ctx, sum);
    ForEachBlock(ctx.threads(), shape.num_elements(), add_.nanos * (ctx.num_inputs() - 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; i += kFloat16Block) {
                     AddBlock(ctx, i, std::min(kFloat16Block, end - i), sum);
                   }
                 });
    return OkStatus();
  }

 private:
  const char* InputAt(KernelContext& ctx, int i, int64_t first) const {
    return static_cast<const char*>(ctx.input(i).raw_data()) + first * size_;
  }

  void AddBlock(KernelContext& ctx, int64_t first, int64_t n, Tensor* sum) const {
    char* to = static_cast<char*>(sum->mutable_raw_data()) + first * size_;
    if (!IsFloat16(add_.in)) {
      add_.run({InputAt(ctx, 0, first), InputAt(ctx, 1, first), to, 1, n});
      for (int i = 2; i < ctx.num_inputs(); ++i) {
        add_.run({to, InputAt(ctx, i, first), to, 1, n});
      }
      return;
    }
    // The sum is rounded once, at the end.
    float total[kFloat16Block], term[kFloat16Block];
    Float16ToFloat(add_.in, InputAt(ctx, 0, first), total, n);
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      Float16ToFloat(add_.in, InputAt(ctx, i, first), term, n);
      add_.run({total, term, total, 1, n});
    }
    FloatToFloat16(add_.in, total, to, n);
  }

  Status Launch(KernelContext& ctx, Tensor* sum) const {
    const Shape flat{sum->num_elements()};
    ASSIGN_OR_RETURN(const BroadcastPlan plan, BroadcastPlan::Make({&flat, &flat}));
    const void* left = ctx.input(0).raw_data();
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      RETURN_IF_ERROR(
          add_.launch(ctx.stream(), plan, left, ctx.input(i).raw_data(), sum->mutable_raw_data()));
      left = sum->raw_data();
    }
    return OkStatus();
  }

  const BinaryLoop& add_;
  const size_t size_;
};

template <class T>
struct AddNOf final : AddNKernel {
  static constexpr BinaryLoop kAdd = BinaryLoopOf<AddFn, T>();
  AddNOf() : AddNKernel(kAdd) {}
};

OpDef SumOf(const char* doc, const DTypes& types) {
  return {
      .doc = doc,
      .inputs = {{"inputs", Repeat("N", "T")}},
      .outputs = {{"sum", "T"}},
      .types = {{"T", types}},
      .attrs = {{"N", Ints{.min = 1}}},
      .shape = [](ShapeScope& s) -> Status {
        PartialShape shape = s.input(0);
        for (int i = 1; i < s.num_inputs(); ++i) {
          ASSIGN_OR_RETURN(shape, shape.Merge(s.input(i)));
        }
        s.set_output(0, std::move(shape));
        return OkStatus();
      },
      .gradient = [](const GradientScope& g) -> Gradients {
        return Gradients(g.num_inputs(), g.raw_dy());
      },
      .commutative = true,
      .aggregate = true,
      .reuses = Reuse::kFirst,
  };
}

// Returns the definition of AccumulateNV2. Its attribute `shape` is not used: it only repeats the
// shape of the inputs.
OpDef AccumulateNOp() {
  OpDef op = SumOf("Adds tensors of equal shapes.", TypesOf<NUMBER_TYPES>());
  op.attrs.push_back({"shape", Shapes{}});
  op.examples = {{.inputs = {{{{2, 3}}, {{2, 3}}}}, .attrs = {{"shape", PartialShape({2, 3})}}}};
  return op;
}

}  // namespace

OP(AddN) { return SumOf("Adds tensors of equal shapes.", TypesOf<NUMBER_TYPES, Variant>()); }
OP(AccumulateNV2) { return AccumulateNOp(); }
KERNEL(AddN, AddNOf, NUMBER_TYPES);
KERNEL(AccumulateNV2, AddNOf, NUMBER_TYPES);
#if !defined(PENSTOCK_CUDA_DEVICE)
KERNEL_DEF({.op = "AddN", .types = {{"T", DType::kVariant}}, .make = Make<AddVariantsKernel>});
#endif

}  // namespace penstock
