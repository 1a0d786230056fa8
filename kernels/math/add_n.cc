// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "core/op/block_kernel.h"
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
class AddNKernel : public Kernel, public BlockKernel {
 public:
  explicit AddNKernel(const BinaryLoop& add) : add_(add), size_(SizeOf(add.in)) {}

  Status Init(const KernelInit& node) override {
    num_inputs_ = node.input_types.size();
    return OkStatus();
  }

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
                     Add([&](size_t k) { return At(ctx.input(static_cast<int>(k)).raw_data(), i); },
                         At(sum->mutable_raw_data(), i), std::min(kFloat16Block, end - i));
                   }
                 });
    return OkStatus();
  }

  bool RunsInBlocks() const override { return add_.run != nullptr && num_inputs_ > 1; }
  bool AcceptsShapes(const Shape& output, absl::Span<const Shape* const> inputs) const override {
    return std::all_of(inputs.begin(), inputs.end(), [&](auto* shape) { return *shape == output; });
  }
  double BlockNanos() const override { return kCacheNanos * static_cast<double>(num_inputs_ - 1); }
  void RunBlock(const BlockInput* inputs, void* output, int64_t n) const override {
    // Add writes the sum of the first two inputs before it reads the third one, so it must not
    // write to an input.
    alignas(64) char sum[kFloat16Block * 16];
    for (int64_t i = 0; i < n; i += kFloat16Block) {
      const int64_t m = std::min(kFloat16Block, n - i);
      Add([&](size_t k) { return At(inputs[k].data, i); }, sum, m);
      std::memcpy(At(output, i), sum, m * size_);
    }
  }

 private:
  const char* At(const void* base, int64_t index) const {
    return static_cast<const char*>(base) + index * static_cast<int64_t>(size_);
  }
  char* At(void* base, int64_t index) const {
    return static_cast<char*>(base) + index * static_cast<int64_t>(size_);
  }

  // Adds n elements, at most kFloat16Block, of all inputs. `to` may be the data of input 0.
  template <class InputAt>
  void Add(InputAt input, void* to, int64_t n) const {
    if (!IsFloat16(add_.in)) {
      add_.run({input(0), input(1), to, 1, n});
      for (size_t i = 2; i < num_inputs_; ++i) add_.run({to, input(i), to, 1, n});
      return;
    }
    // The sum is rounded once, at the end.
    float total[kFloat16Block], term[kFloat16Block];
    Float16ToFloat(add_.in, input(0), total, n);
    for (size_t i = 1; i < num_inputs_; ++i) {
      Float16ToFloat(add_.in, input(i), term, n);
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
  size_t num_inputs_ = 0;
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
