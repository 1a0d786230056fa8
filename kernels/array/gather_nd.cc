// SPDX-License-Identifier: Apache-2.0
//
// GatherNd: copies slices of a tensor by index tuples.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/gather_rows.h"
#include "kernels/array/nd_index.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

class GatherNdKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return ReadBadIndicesPolicy(node, &bad_); }

  Status Compute(KernelContext& ctx) override {
    const Tensor &params = ctx.input(0), &indices = ctx.input(1);
    ASSIGN_OR_RETURN(const NdIndex list, NdIndex::Of(indices, params.shape(), bad_));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(list.result));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    if (shape.num_elements() == 0) return OkStatus();
    if (list.slices.empty()) {  // empty tuples: each selects all of params
      StridedCopy copy;
      copy.Add(list.tuples, 0, list.slice_elements);
      copy.Add(list.slice_elements, 1, 1);
      CopyStrided(params.dtype(), copy, params.raw_data(), output->mutable_raw_data(),
                  ctx.threads());
      return OkStatus();
    }
    if (params.num_elements() == 0) {
      return InvalidArgument("Requested more than 0 entries, but params is empty.  Params shape: ",
                             params.shape().ToString());
    }
    const GatherPlan plan{
        .rows = list.num_slices, .row_elements = list.slice_elements, .count = list.tuples};
    GatherRows(params.dtype(), plan, params.raw_data(), list.slices.data(),
               output->mutable_raw_data(), ctx.threads());
    ZeroSlices(list, *output, ctx.threads());
    return OkStatus();
  }

 private:
  static void ZeroSlices(const NdIndex& list, Tensor& output, Scheduler& threads) {
    if (list.ignored.empty()) return;
    Tensor zero(output.dtype(), {});
    Zero(zero, threads);
    const int64_t bytes = list.slice_elements * static_cast<int64_t>(SizeOf(output.dtype()));
    char* const to = static_cast<char*>(output.mutable_raw_data());
    for (const int64_t i : list.ignored) {
      FillElements(output.dtype(), zero.raw_data(), to + i * bytes, list.slice_elements);
    }
  }

  BadIndices bad_ = BadIndices::kError;
};

Status GatherNdShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, NdIndexedShape(s.input(1), s.input(0)));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

std::vector<Gradient> GatherNdGradient(const GradientScope& g) {
  const Output indices = g.x(1);
  const Output shape = ShapeOf(g.x(0), indices.dtype());
  const PartialShape known = indices.shape();
  const bool ignores = g.attr<std::string>("bad_indices_policy") == "IGNORE";
  if (known.rank() == 2 && known.dim(1) == 1 && !ignores) {  // rows of dimension 0
    const Output rows = Reshape(indices, g.Const(Tensor::Vector<int32_t>({-1})));
    return {Gradient(g.dy(), rows, shape), Gradient()};
  }
  return {Call("ScatterNd", {indices, g.dy(), shape},
               {{"bad_indices_policy", g.attr<std::string>("bad_indices_policy")}}),
          Gradient()};
}

OP(GatherNd) {
  return {
      .doc =
          "Gathers slices of params: output[i, ...] = params[indices[i, 0], ..., indices[i, "
          "-1], ...].",
      .inputs = {{"params", "Tparams"}, {"indices", "Tindices"}},
      .outputs = {{"output", "Tparams"}},
      .types = {{"Tparams", kAnyType}, {"Tindices", kIndex}},
      .attrs = {{"bad_indices_policy", ""}},
      .shape = GatherNdShape,
      .gradient = GatherNdGradient,
      .examples = {{.inputs = {{{{3, 4}}}, {{{3, 1}, {2, 0, 2}}}}},
                   {.inputs = {{{{3, 4}}}, {{{2, 2}, {2, 3, 0, 1}}}}}},
  };
}
KERNEL_ANY_TYPE(GatherNd, GatherNdKernel);

}  // namespace
}  // namespace penstock
