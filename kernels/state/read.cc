// SPDX-License-Identifier: Apache-2.0
//
// Ops that read variables through resource handles: the full value, the shape, or some rows; and
// DisableCopyOnRead, which only checks that the variable exists.
#include <algorithm>
#include <limits>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/array/gather_rows.h"
#include "kernels/state/row_updates.h"
#include "kernels/state/variable_kernel.h"

namespace penstock {
namespace {

class ReadKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto variable, VariableInput(ctx, 0, ctx.output_type(0).dtype));
    StatusOr<Tensor> value = variable->Read();
    if (!value.ok()) {
      const ResourceHandle& handle = ctx.input(0).scalar<ResourceHandle>();
      return Annotate(value.status(),
                      StrCat("Error while reading resource variable ", handle.name,
                             " from Container: ", handle.container,
                             ". This could mean that the variable was uninitialized"));
    }
    ctx.SetOutput(0, *std::move(value));
    return OkStatus();
  }
};

// Does nothing, because reads never copy: they share the variable's buffer, and an update copies
// the buffer if a reader still uses it.
class DisableCopyOnReadKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override { return VariableInput(ctx, 0).status(); }
};

class VariableShapeKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto variable, VariableInput(ctx, 0));
    Shape shape;
    RETURN_IF_ERROR(variable->Inspect([&](const Tensor& value) {
      shape = value.shape();
      return OkStatus();
    }));
    Tensor* output = nullptr;
    RETURN_IF_ERROR(ctx.Allocate(0, {shape.rank()}, &output));
    for (int d = 0; d < shape.rank(); ++d) RETURN_IF_ERROR(SetDim(shape.dim(d), d, *output));
    return OkStatus();
  }

 private:
  static Status SetDim(int64_t size, int d, Tensor& output) {
    if (output.dtype() == DType::kInt64) {
      output.mutable_flat<int64_t>()[d] = size;
    } else if (size <= std::numeric_limits<int32_t>::max()) {
      output.mutable_flat<int32_t>()[d] = static_cast<int32_t>(size);
    } else {
      return InvalidArgument("dimension ", d, " of the variable is ", size,
                             ", which does not fit in int32: ask for out_type int64");
    }
    return OkStatus();
  }
};

// Copies the rows under the variable's lock. If it read a snapshot instead, an update that runs at
// the same time would have to copy the full variable.
class GatherKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    int64_t batch_dims = 0;
    RETURN_IF_ERROR(node.Attr("batch_dims", &batch_dims));
    if (batch_dims != 0) {
      return Unimplemented("ResourceGather with batch_dims = ", batch_dims,
                           "; only 0 is supported");
    }
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto variable, VariableInput(ctx, 0, ctx.output_type(0).dtype));
    return variable->Inspect([&](const Tensor& value) { return Gather(ctx, value); });
  }

 private:
  static Status Gather(KernelContext& ctx, const Tensor& value) {
    const Tensor& indices = ctx.input(1);
    ASSIGN_OR_RETURN(const Rows rows, Rows::Of(value.shape(), "the variable"));
    RETURN_IF_ERROR(CheckIndices(indices, rows.count, "indices"));
    Dims dims(indices.shape().dims().begin(), indices.shape().dims().end());
    dims.insert(dims.end(), value.shape().dims().begin() + 1, value.shape().dims().end());
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    Tensor* output = nullptr;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    const GatherPlan plan{
        .rows = rows.count, .row_elements = rows.length, .count = indices.num_elements()};
    GatherRows(value.dtype(), plan, value.raw_data(), indices, output->mutable_raw_data(),
               ctx.threads());
    return OkStatus();
  }
};

Status ReadShape(ShapeScope& s) {
  const ResourceHandle::Element* element = s.element(0);
  const DType dtype = s.attr<EdgeType>("dtype").dtype;
  if (element != nullptr && element->dtype != dtype) {
    return InvalidArgument("the variable holds ", Name(element->dtype), ", is read as ",
                           Name(dtype));
  }
  s.set_output(0, VariableShape(s, 0, VariableForm::kResource));
  return OkStatus();
}

Status VariableShapeShape(ShapeScope& s) {
  const PartialShape shape = VariableShape(s, 0, VariableForm::kResource);
  s.set_output(0, PartialShape({shape.known_rank() ? shape.rank() : PartialShape::kUnknown}));
  return OkStatus();
}

Status GatherShape(ShapeScope& s) {
  const PartialShape variable = VariableShape(s, 0, VariableForm::kResource);
  if (variable.rank() == 0) return InvalidArgument("cannot gather from a scalar variable");
  const PartialShape& indices = s.input(1);
  if (!variable.known_rank() || !indices.known_rank()) return OkStatus();
  PartialShape output = indices;
  for (int64_t size : variable.dims().subspan(1)) output.AddDim(size);
  s.set_output(0, std::move(output));
  return OkStatus();
}

std::vector<Gradient> ReadGradient(const GradientScope& g) { return {g.raw_dy()}; }

// Returns the shape of a row: a constant if it is known, so that steps need not read the shape on
// the variable's device.
Output RowShape(const GradientScope& g, Output variable_shape) {
  const PartialShape rows = g.y().shape(), indices = g.x(1).shape();
  if (rows.known_rank() && indices.known_rank()) {
    const auto dims = rows.dims().subspan(indices.rank());
    const bool known = std::all_of(dims.begin(), dims.end(), [](int64_t d) {
      return d >= 0 && d <= std::numeric_limits<int32_t>::max();
    });
    if (known) return g.Const(Tensor::Vector<int32_t>({dims.begin(), dims.end()}));
  }
  return Call("Slice", {variable_shape, g.Const(Tensor::Vector<int32_t>({1})),
                        g.Const(Tensor::Vector<int32_t>({-1}))});
}

// Returns the variable's gradient: zeros, with row k of dy added to row indices[k] for each k.
std::vector<Gradient> GatherGradient(const GradientScope& g) {
  if (!g.has_dy()) return {Gradient(), Gradient()};
  const Output handle = g.x(0);
  const Output shape = Call("VariableShape", {handle}, {{"out_type", DType::kInt32}});
  const Output count = ExpandDims(SizeOf(g.x(1)), g.Const<int32_t>(0));
  const Output row = RowShape(g, shape);
  const Output values = Reshape(g.dy(), ConcatV2({count, row}, g.Const<int32_t>(0)));
  return {Gradient(values, Reshape(g.x(1), count), shape), Gradient()};
}

OP(ReadVariableOp) {
  return {
      .doc = "Returns a snapshot of the value of a variable.",
      .inputs = {{"resource", "resource"}},
      .outputs = {{"value", "dtype"}},
      .types = {{"dtype", kAnyType}},
      .shape = ReadShape,
      .gradient = ReadGradient,
      .stateful = true,
      .only_reads = true,
      .reads_variable = true,
  };
}
KERNEL_ANY_TYPE(ReadVariableOp, ReadKernel);

OP(DisableCopyOnRead) {
  return {
      .doc = "Declares that the variable will only be read sparsely from now on.",
      .inputs = {{"resource", "resource"}},
      .shape = NoOutputs,
      .gradient = NoGradient,
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(DisableCopyOnRead, DisableCopyOnReadKernel);

OP(VariableShape) {
  return {
      .doc = "The shape of a variable.",
      .inputs = {{"input", "resource"}},
      .outputs = {{"output", "out_type"}},
      .types = {{"out_type", kIndex, DType::kInt32}},
      .shape = VariableShapeShape,
      .gradient = NoGradient,
      .stateful = true,
      .only_reads = true,
  };
}
KERNEL_ANY_TYPE(VariableShape, VariableShapeKernel);

OP(ResourceGather) {
  return {
      .doc = "Rows of a variable: output[k] = variable[indices[k]].",
      .inputs = {{"resource", "resource"}, {"indices", "Tindices"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", kAnyType}, {"Tindices", kIndex}},
      .attrs = {{"batch_dims", 0}, {"validate_indices", true}},
      .shape = GatherShape,
      .gradient = GatherGradient,
      .examples = {{.inputs = {{{{3, 2}}}, {{{2}, {2, 0}}}}}},
      .stateful = true,
      .only_reads = true,
  };
}
KERNEL_ANY_TYPE(ResourceGather, GatherKernel);

}  // namespace
}  // namespace penstock
