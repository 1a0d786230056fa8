// SPDX-License-Identifier: Apache-2.0
//
// ParallelConcat: joins tensors of one row each into a tensor of a shape that is known beforehand.
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/elements.h"

namespace penstock {
namespace {

class ParallelConcatKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    PartialShape shape;
    RETURN_IF_ERROR(node.Attr("shape", &shape));
    if (!shape.fully_known()) {
      return InvalidArgument("attribute shape must be fully defined, is ", shape.ToString());
    }
    shape_ = shape.ToShape();
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    if (shape_.rank() == 0 || shape_.dim(0) != ctx.num_inputs()) {
      return InvalidArgument("attribute shape must have ", ctx.num_inputs(),
                             " rows, one for each of values, is ", shape_.ToString());
    }
    Shape row = shape_;
    row.set_dim(0, 1);
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      if (ctx.input(i).shape() == row) continue;
      return InvalidArgument("values[", i, "] must have shape ", row.ToString(), ", has ",
                             ctx.input(i).shape().ToString());
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape_, &output));
    const int64_t count = row.num_elements();
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      CopyElements(output->dtype(), ctx.input(i).raw_data(),
                   ElementAt(output->mutable_raw_data(), output->dtype(), i * count), count);
    }
    return OkStatus();
  }

 private:
  Shape shape_;
};

Status ParallelConcatShape(ShapeScope& s) {
  const auto& shape = s.attr<PartialShape>("shape");
  if (!shape.fully_known()) {
    return InvalidArgument("attribute shape must be fully defined, is ", shape.ToString());
  }
  if (shape.rank() == 0 || shape.dim(0) != s.num_inputs()) {
    return InvalidArgument("attribute shape must have ", s.num_inputs(),
                           " rows, one for each of values, is ", shape.ToString());
  }
  PartialShape row = shape;
  row.set_dim(0, 1);
  for (int i = 0; i < s.num_inputs(); ++i) RETURN_IF_ERROR(s.input(i).Merge(row).status());
  s.set_output(0, shape);
  return OkStatus();
}

OP(ParallelConcat) {
  return {
      .doc =
          "Joins N tensors along their first dimension, which must be 1. `shape` is the shape of "
          "the result. It has no gradient.",
      .inputs = {{"values", Repeat("N", "T")}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}},
      .attrs = {{"N", Ints{.min = 1}}, {"shape", Shapes{}}},
      .shape = ParallelConcatShape,
      .examples = {{.inputs = {{{{1, 3}}, {{1, 3}}}},
                    .attrs = {{"shape", PartialShape({2, 3})}},
                    .check_gradient = false}},
  };
}
KERNEL_ANY_TYPE(ParallelConcat, ParallelConcatKernel);

}  // namespace
}  // namespace penstock
