// SPDX-License-Identifier: Apache-2.0
//
// DynamicPartition: distributes the rows of a tensor to num_partitions outputs, in order.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/gather_rows.h"

namespace penstock {
namespace {

Status CheckPrefix(const PartialShape& data, const PartialShape& partitions) {
  if (!data.known_rank() || !partitions.known_rank()) return OkStatus();
  const bool fits = data.rank() >= partitions.rank() &&
                    SubShape(data, 0, partitions.rank()).Compatible(partitions);
  if (fits) return OkStatus();
  return InvalidArgument("data.shape must start with partitions.shape, got data.shape = ",
                         data.ToString(), ", partitions.shape = ", partitions.ToString());
}

class DynamicPartitionKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &data = ctx.input(0), &partitions = ctx.input(1);
    RETURN_IF_ERROR(CheckPrefix(data.shape(), partitions.shape()));
    const int parts = ctx.num_outputs();
    RETURN_IF_ERROR(CheckIndices(partitions, parts, "partitions"));
    const auto part_of = partitions.flat<int32_t>();
    std::vector<std::vector<int64_t>> rows(parts);
    for (size_t i = 0; i < part_of.size(); ++i) rows[part_of[i]].push_back(i);
    GatherPlan plan{.rows = partitions.num_elements()};
    Dims tail;
    for (int i = partitions.rank(); i < data.rank(); ++i) {
      tail.push_back(data.dim(i));
      plan.row_elements *= data.dim(i);
    }
    for (int p = 0; p < parts; ++p) {
      Dims dims = tail;
      dims.insert(dims.begin(), static_cast<int64_t>(rows[p].size()));
      ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
      Tensor* output;
      RETURN_IF_ERROR(ctx.Allocate(p, shape, &output));
      if (shape.num_elements() == 0) continue;
      plan.count = dims[0];
      GatherRows(data.dtype(), plan, data.raw_data(), rows[p].data(), output->mutable_raw_data(),
                 ctx.threads());
    }
    return OkStatus();
  }
};

Status DynamicPartitionShape(ShapeScope& s) {
  const PartialShape &data = s.input(0), &partitions = s.input(1);
  RETURN_IF_ERROR(CheckPrefix(data, partitions));
  if (!data.known_rank() || !partitions.known_rank()) return OkStatus();
  ASSIGN_OR_RETURN(
      const PartialShape output,
      JoinShapes(PartialShape::UnknownOfRank(1), SubShape(data, partitions.rank(), data.rank())));
  for (int i = 0; i < s.num_outputs(); ++i) s.set_output(i, output);
  return OkStatus();
}

// Returns the gradient of the data. Partitions the row numbers like the rows. DynamicStitch with
// these numbers puts the gradients back in order.
std::vector<Gradient> DynamicPartitionGradient(const GradientScope& g) {
  const Output partitions = g.x(1);
  const Output zero = g.Const<int32_t>(0), one = g.Const<int32_t>(1);
  const Output numbers = Reshape(Range(zero, SizeOf(partitions), one), ShapeOf(partitions));
  const Outputs dealt = CallN("DynamicPartition", {numbers, partitions},
                              {{"num_partitions", g.attr<int64_t>("num_partitions")}});
  Outputs dy;
  for (int i = 0; i < g.num_outputs(); ++i) dy.push_back(g.dy(i));
  const Output stitched = Call("DynamicStitch", {Outputs(dealt), dy});
  return {Reshape(stitched, ShapeOf(g.x())), Gradient()};
}

OP(DynamicPartition) {
  return {
      .doc =
          "Splits data: output p has the slices data[i, ...] with partitions[i] == p, in "
          "their order.",
      .inputs = {{"data", "T"}, {"partitions", "int32"}},
      .outputs = {{"outputs", Repeat("num_partitions", "T")}},
      .types = {{"T", kAnyType}},
      .attrs = {{"num_partitions", Ints{.min = 1}}},
      .shape = DynamicPartitionShape,
      .gradient = DynamicPartitionGradient,
      .examples = {{.inputs = {{{{4, 2}}}, {{{4}, {1, 0, 1, 1}}}},
                    .attrs = {{"num_partitions", 3}}}},
  };
}
KERNEL_ANY_TYPE(DynamicPartition, DynamicPartitionKernel);

}  // namespace
}  // namespace penstock
