// SPDX-License-Identifier: Apache-2.0
//
// ScatterNd: adds updates, at index tuples, to a tensor of zeros.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/nd_index.h"
#include "kernels/array/strided_add.h"
#include "kernels/array/types.h"

namespace penstock {
namespace {

template <class T>
class ScatterNdKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return ReadBadIndicesPolicy(node, &bad_); }

  Status Compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(0);
    Tensor updates = ctx.input(1);
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(2), "shape"));
    if (shape.num_elements() == 0 && updates.num_elements() > 0) {
      return InvalidArgument("Indices and updates specified for empty output shape");
    }
    ASSIGN_OR_RETURN(NdIndex list, NdIndex::Of(indices, shape, bad_));
    if (updates.shape().dims() != absl::Span<const int64_t>(list.result)) {
      return InvalidArgument("updates must have shape indices.shape[:-1] + shape[depth:], has ",
                             updates.shape().ToString(), " with indices.shape ",
                             indices.shape().ToString(), " and shape ", shape.ToString());
    }
    ASSIGN_OR_RETURN(updates, list.RemoveIgnored(updates));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    Zero(*output, ctx.threads());
    if (updates.num_elements() == 0) return OkStatus();
    const T* from = updates.data<T>();
    // Adds in the order of the tuples, so that sums of floats are the same in each run.
    for (int64_t i = 0; i < list.tuples; ++i) {
      const int64_t slice = list.slices.empty() ? 0 : list.slices[i];
      T* to = output->mutable_data<T>() + slice * list.slice_elements;
      for (int64_t k = 0; k < list.slice_elements; ++k) AddTo(to[k], *from++);
    }
    return OkStatus();
  }

 private:
  BadIndices bad_ = BadIndices::kError;
};

Status ScatterNdShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape shape, ShapeInput(s, 2));
  ASSIGN_OR_RETURN(const PartialShape wanted, NdIndexedShape(s.input(0), shape));
  if (!wanted.Compatible(s.input(1))) {
    return InvalidArgument("updates must have shape ", wanted.ToString(), ", has ",
                           s.input(1).ToString());
  }
  s.set_output(0, shape);
  return OkStatus();
}

std::vector<Gradient> ScatterNdGradient(const GradientScope& g) {
  const std::string policy = g.attr<std::string>("bad_indices_policy");
  return {Gradient(), Call("GatherNd", {g.dy(), g.x(0)}, {{"bad_indices_policy", policy}}),
          Gradient()};
}

OP(ScatterNd) {
  return {
      .doc = "Returns zeros of shape `shape`, with `updates` added at the rows of `indices`.",
      .inputs = {{"indices", "Tindices"}, {"updates", "T"}, {"shape", "Tindices"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", With(kNumber, {DType::kBool, DType::kString})}, {"Tindices", kIndex}},
      .attrs = {{"bad_indices_policy", ""}},
      .shape = ScatterNdShape,
      .gradient = ScatterNdGradient,
      .examples = {{.inputs = {{{{3, 1}, {1, 3, 1}}}, {{{3, 2}}}, {{{2}, {4, 2}}}}}},
  };
}
KERNEL(ScatterNd, ScatterNdKernel, NUMBER_TYPES, bool, std::string);

}  // namespace
}  // namespace penstock
