// SPDX-License-Identifier: Apache-2.0
//
// Ops that update, or read, slices of a variable by index tuples: variable[indices[k, 0],
// indices[k, 1], ...] op= updates[k]. Repeated tuples are applied in order.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/tensor/type_lists.h"
#include "kernels/array/gather_rows.h"
#include "kernels/array/nd_index.h"
#include "kernels/state/scatter_rows.h"
#include "kernels/state/variable_kernel.h"

namespace penstock {
namespace {

// Returns the index of the slice for each tuple. An empty tuple stands for the whole variable.
std::vector<int64_t> SlicesOf(NdIndex list) {
  if (list.slices.empty() && list.slice_elements > 0) list.slices.assign(list.tuples, 0);
  return std::move(list.slices);
}

class ScatterNdKernel : public Kernel {
 public:
  explicit ScatterNdKernel(const RowScatter& scatter) : scatter_(scatter) {}

  Status Init(const KernelInit& node) override { return ReadBadIndicesPolicy(node, &bad_); }

  Status Compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(1);
    Tensor updates = ctx.input(2);
    int64_t length = 0;
    std::vector<int64_t> slices;
    const auto changed = [&] { return Slices(length, slices); };
    const auto update = [&](Tensor& variable) -> Status {
      ASSIGN_OR_RETURN(NdIndex list, NdIndex::Of(indices, variable.shape(), bad_));
      if (updates.shape().dims() != absl::Span<const int64_t>(list.result)) {
        return InvalidArgument(
            "updates must be of shape indices.shape[:-1] + variable.shape[indices.shape[-1]:]; ",
            "got updates ", updates.shape().ToString(), ", indices ", indices.shape().ToString(),
            ", variable ", variable.shape().ToString());
      }
      ASSIGN_OR_RETURN(updates, list.RemoveIgnored(updates));
      if (updates.num_elements() == 0) return OkStatus();
      length = list.slice_elements;
      slices = SlicesOf(std::move(list));
      ScatterRows(ctx.threads(), scatter_, absl::Span<const int64_t>(slices), updates, length,
                  variable);
      return OkStatus();
    };
    return UpdateVariableInput(ctx, updates.dtype(), update, changed);
  }

 private:
  const RowScatter scatter_;
  BadIndices bad_ = BadIndices::kError;
};
template <class T>
using ScatterNdAddKernel = ScatterKernelBy<ScatterNdKernel, AddTo, T>;
template <class T>
using ScatterNdSubKernel = ScatterKernelBy<ScatterNdKernel, SubtractFrom, T>;
template <class T>
using ScatterNdMinKernel = ScatterKernelBy<ScatterNdKernel, AssignMin, T>;
template <class T>
using ScatterNdMaxKernel = ScatterKernelBy<ScatterNdKernel, AssignMax, T>;
using ScatterNdUpdateKernel = ReplaceKernelOf<ScatterNdKernel>;

class GatherNdKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto variable, VariableInput(ctx, 0, ctx.output_type(0).dtype));
    return variable->Inspect([&](const Tensor& value) -> Status {
      ASSIGN_OR_RETURN(NdIndex list, NdIndex::Of(ctx.input(1), value.shape()));
      ASSIGN_OR_RETURN(const Shape shape, Shape::Make(list.result));
      Tensor* output = nullptr;
      RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
      if (shape.num_elements() == 0) return OkStatus();
      const GatherPlan plan{
          .rows = list.num_slices, .row_elements = list.slice_elements, .count = list.tuples};
      const std::vector<int64_t> slices = SlicesOf(std::move(list));
      GatherRows(value.dtype(), plan, value.raw_data(), slices.data(), output->mutable_raw_data(),
                 ctx.threads());
      return OkStatus();
    });
  }
};

template <VariableForm kForm>
Status ScatterNdShape(ShapeScope& s) {
  const PartialShape variable = VariableShape(s, 0, kForm);
  ASSIGN_OR_RETURN(const PartialShape expected, NdIndexedShape(s.input(1), variable));
  RETURN_IF_ERROR(Annotate(s.input(2).Merge(expected).status(), "updates"));
  SetVariableOutput(s, kForm, variable);
  return OkStatus();
}

Status GatherNdShape(ShapeScope& s) {
  const PartialShape variable = VariableShape(s, 0, VariableForm::kResource);
  ASSIGN_OR_RETURN(PartialShape shape, NdIndexedShape(s.input(1), variable));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

// Returns the variable's gradient: zeros, with each slice of dy added to the slice that its tuple
// names.
std::vector<Gradient> GatherNdGradient(const GradientScope& g) {
  if (!g.has_dy()) return {Gradient(), Gradient()};
  const Output indices = g.x(1);
  const Output shape = Call("VariableShape", {g.x(0)}, {{"out_type", indices.dtype()}});
  const PartialShape known = indices.shape();
  if (known.rank() == 2 && known.dim(1) == 1) {  // rows of dimension 0
    const Output rows = Reshape(indices, g.Const(Tensor::Vector<int32_t>({-1})));
    return {Gradient(g.dy(), rows, shape), Gradient()};
  }
  return {Call("ScatterNd", {indices, g.dy(), shape}), Gradient()};
}

// Defines both forms of an op, with ref edges and with resource handles.
#define SCATTER_ND_OPS(Verb, locking, text, allowed)                                \
  OP(ScatterNd##Verb) {                                                             \
    return {                                                                        \
        .doc = text,                                                                \
        .inputs = {{"ref", Ref("T")}, {"indices", "Tindices"}, {"updates", "T"}},   \
        .outputs = {{"output_ref", Ref("T")}},                                      \
        .types = {{"T", allowed}, {"Tindices", kIndex}},                            \
        .attrs = {{"use_locking", locking}, {"bad_indices_policy", ""}},            \
        .shape = ScatterNdShape<VariableForm::kRef>,                                \
        .gradient = NoGradient,                                                     \
        .examples = {{.inputs = {{{{3, 2}}}, {{{2, 1}, {2, 0}}}, {{{2, 2}}}}}},     \
    };                                                                              \
  }                                                                                 \
  OP(ResourceScatterNd##Verb) {                                                     \
    return {                                                                        \
        .doc = text,                                                                \
        .inputs = {{"ref", "resource"}, {"indices", "Tindices"}, {"updates", "T"}}, \
        .types = {{"T", allowed}, {"Tindices", kIndex}},                            \
        .attrs = {{"use_locking", true}, {"bad_indices_policy", ""}},               \
        .shape = ScatterNdShape<VariableForm::kResource>,                           \
        .gradient = NoGradient,                                                     \
        .examples = {{.inputs = {{{{3, 2}}}, {{{2, 1}, {2, 0}}}, {{{2, 2}}}}}},     \
        .stateful = true,                                                           \
    };                                                                              \
  }
#define SCATTER_ND(Verb, text, allowed, ...)                     \
  SCATTER_ND_OPS(Verb, false, text, allowed);                    \
  KERNEL(ScatterNd##Verb, ScatterNd##Verb##Kernel, __VA_ARGS__); \
  KERNEL(ResourceScatterNd##Verb, ScatterNd##Verb##Kernel, __VA_ARGS__)

SCATTER_ND(Add, "slices of a variable += updates", kNumber, NUMBER_TYPES);
SCATTER_ND(Sub, "slices of a variable -= updates", kNumber, NUMBER_TYPES);
SCATTER_ND(Min, "slices of a variable = min(slices, updates)", kReal, REAL_TYPES);
SCATTER_ND(Max, "slices of a variable = max(slices, updates)", kReal, REAL_TYPES);
SCATTER_ND_OPS(Update, true, "slices of a variable = updates", kAllTypes);
KERNEL_ANY_TYPE(ScatterNdUpdate, ScatterNdUpdateKernel);
KERNEL_ANY_TYPE(ResourceScatterNdUpdate, ScatterNdUpdateKernel);

OP(ResourceGatherNd) {
  return {
      .doc = "Returns the slices of a variable at the rows of `indices`.",
      .inputs = {{"resource", "resource"}, {"indices", "Tindices"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", kAllTypes}, {"Tindices", kIndex}},
      .shape = GatherNdShape,
      .gradient = GatherNdGradient,
      .examples = {{.inputs = {{{{3, 2}}}, {{{2, 1}, {2, 0}}}}}},
      .stateful = true,
      .only_reads = true,
  };
}
KERNEL_ANY_TYPE(ResourceGatherNd, GatherNdKernel);

}  // namespace
}  // namespace penstock
