// SPDX-License-Identifier: Apache-2.0
//
// TensorScatterUpdate, -Add, -Sub, -Min, -Max, and ScatterNdNonAliasingAdd: update slices of a
// tensor by index tuples, like kernels/state/scatter_nd.cc for variables.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/tensor/type_lists.h"
#include "kernels/array/nd_index.h"
#include "kernels/state/scatter_rows.h"

namespace penstock {
namespace {

class TensorScatterKernel : public Kernel {
 public:
  explicit TensorScatterKernel(const RowScatter& scatter) : scatter_(scatter) {}

  Status Init(const KernelInit& node) override { return ReadBadIndicesPolicy(node, &bad_); }

  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const Shape shape = input.shape();
    Tensor updates = ctx.input(2);
    ASSIGN_OR_RETURN(NdIndex list, NdIndex::Of(ctx.input(1), shape, bad_));
    if (updates.shape().dims() != absl::Span<const int64_t>(list.result)) {
      return InvalidArgument("updates must have shape indices.shape[:-1] + ",
                             "tensor.shape[indices.shape[-1]:], has ", updates.shape().ToString(),
                             " with indices.shape ", ctx.input(1).shape().ToString(),
                             " and tensor.shape ", shape.ToString());
    }
    ASSIGN_OR_RETURN(updates, list.RemoveIgnored(updates));
    Tensor* output;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, shape, &output));
    if (output->raw_data() != input.raw_data()) {
      CopyElements(input.dtype(), input.raw_data(), output->mutable_raw_data(),
                   input.num_elements());
    }
    if (updates.num_elements() == 0) return OkStatus();
    // Empty tuples stand for the whole tensor.
    if (list.slices.empty()) list.slices.assign(list.tuples, 0);
    const absl::Span<const int64_t> slices = list.slices;
    ScatterRows(ctx.threads(), scatter_, slices, updates, list.slice_elements, *output);
    return OkStatus();
  }

 private:
  const RowScatter scatter_;
  BadIndices bad_ = BadIndices::kError;
};

struct LogicalOrInto {
  static void Apply(bool& a, const bool& b) { a = a || b; }
};
template <class T>
using AddOf = std::conditional_t<std::is_same_v<T, bool>, LogicalOrInto, AddTo>;

template <class T>
using TensorScatterAddKernel = ScatterKernelBy<TensorScatterKernel, AddOf<T>, T>;
template <class T>
using TensorScatterSubKernel = ScatterKernelBy<TensorScatterKernel, SubtractFrom, T>;
template <class T>
using TensorScatterMinKernel = ScatterKernelBy<TensorScatterKernel, AssignMin, T>;
template <class T>
using TensorScatterMaxKernel = ScatterKernelBy<TensorScatterKernel, AssignMax, T>;
using TensorScatterUpdateKernel = ReplaceKernelOf<TensorScatterKernel>;

Status TensorScatterShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape expected, NdIndexedShape(s.input(1), s.input(0)));
  RETURN_IF_ERROR(Annotate(s.input(2).Merge(expected).status(), "updates"));
  s.set_output(0, s.input(0));
  return OkStatus();
}

// The tuples, and the policy for tuples that are out of range, for nodes of other ops on the same
// slices.
class Places {
 public:
  explicit Places(const GradientScope& g)
      : indices_(g.x(1)),
        policy_{{"bad_indices_policy", g.attr<std::string>("bad_indices_policy")}} {
    const DType type = indices_.dtype();
    if (type == DType::kInt16 || type == DType::kUint16) indices_ = Cast(indices_, DType::kInt32);
  }
  Output Gather(Output x) const { return Call("GatherNd", {x, indices_}, policy_); }
  Output Scatter(Output updates, Output like) const {
    return Call("ScatterNd", {indices_, updates, ShapeOf(like, indices_.dtype())}, policy_);
  }
  Output Replace(Output x, Output updates) const {
    return Call("TensorScatterUpdate", {x, indices_, updates}, policy_);
  }

 private:
  Output indices_;
  Attrs policy_;
};

std::vector<Gradient> AddGradient(const GradientScope& g) {
  return {g.dy(), Gradient(), Places(g).Gather(g.dy())};
}

std::vector<Gradient> SubGradient(const GradientScope& g) {
  return {g.dy(), Gradient(), -Places(g).Gather(g.dy())};
}

std::vector<Gradient> UpdateGradient(const GradientScope& g) {
  const Places places(g);
  return {places.Replace(g.dy(), ZerosLike(g.x(2))), Gradient(), places.Gather(g.dy())};
}

// Elements that equal the extremum share its gradient.
std::vector<Gradient> ExtremumGradient(const GradientScope& g) {
  const Places places(g);
  const auto chosen = [](Output x, Output y) { return Cast(Equal(x, y), x.dtype()); };
  const Output kept = chosen(g.x(0), g.y());
  const Output taken = chosen(g.x(2), places.Gather(g.y()));
  const Output share = g.dy() / (kept + places.Scatter(taken, g.x(0)));
  return {share * kept, Gradient(), places.Gather(share) * taken};
}

OpDef TensorScatterOp(const char* doc, const DTypes& types, GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = {{"tensor", "T"}, {"indices", "Tindices"}, {"updates", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", types}, {"Tindices", kIndex}},
      .attrs = {{"bad_indices_policy", ""}},
      .shape = TensorScatterShape,
      .gradient = std::move(gradient),
      .examples = {{.inputs = {{{{3, 2}}}, {{{2, 1}, {2, 0}}}, {{{2, 2}}}}},
                   {.inputs = {{{{3, 2}}}, {{{1, 1, 2}, {1, 1}}}, {{{1, 1}}}}}},
      .reuses = Reuse::kFirst,
  };
}

OpDef TensorScatterUpdateOp() {
  OpDef op = TensorScatterOp(
      "Returns `tensor` with the slices at the rows of `indices` replaced by the "
      "updates.",
      kAllTypes, UpdateGradient);
  op.types[1].allowed = {DType::kInt16, DType::kInt32, DType::kInt64, DType::kUint16};
  return op;
}

OpDef NonAliasingAddOp() {
  DTypes types = kNumber;
  types.push_back(DType::kBool);
  OpDef op = TensorScatterOp(
      "Returns `input` with the updates added to the slices at the rows of `indices`.", types,
      AddGradient);
  op.inputs[0].name = "input";
  return op;
}

}  // namespace

OP(TensorScatterUpdate) { return TensorScatterUpdateOp(); }
KERNEL_ANY_TYPE(TensorScatterUpdate, TensorScatterUpdateKernel);

OP(TensorScatterAdd) {
  return TensorScatterOp(
      "Returns `tensor` with the updates added to the slices at the rows of `indices`.", kNumber,
      AddGradient);
}
KERNEL(TensorScatterAdd, TensorScatterAddKernel, NUMBER_TYPES);

OP(TensorScatterSub) {
  return TensorScatterOp(
      "Returns `tensor` with the updates subtracted from the slices at the rows of "
      "`indices`.",
      kNumber, SubGradient);
}
KERNEL(TensorScatterSub, TensorScatterSubKernel, NUMBER_TYPES);

OP(TensorScatterMin) {
  return TensorScatterOp(
      "Returns `tensor`, with the slices at the rows of `indices` replaced by the "
      "smaller of the slice and the update.",
      kReal, ExtremumGradient);
}
KERNEL(TensorScatterMin, TensorScatterMinKernel, REAL_TYPES);

OP(TensorScatterMax) {
  return TensorScatterOp(
      "Returns `tensor`, with the slices at the rows of `indices` replaced by the "
      "larger of the slice and the update.",
      kReal, ExtremumGradient);
}
KERNEL(TensorScatterMax, TensorScatterMaxKernel, REAL_TYPES);

OP(ScatterNdNonAliasingAdd) { return NonAliasingAddOp(); }
KERNEL(ScatterNdNonAliasingAdd, TensorScatterAddKernel, NUMBER_TYPES, bool);

}  // namespace penstock
