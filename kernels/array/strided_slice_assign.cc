// SPDX-License-Identifier: Apache-2.0
//
// StridedSliceAssign, ResourceStridedSliceAssign: write to the elements of a variable that a Python
// slice expression selects.
#include <utility>
#include <vector>

#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/op/variable.h"
#include "kernels/array/strided_box.h"

namespace penstock {
namespace {

class StridedSliceAssignKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return masks_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    const Tensor& ref = ctx.input(0);
    if (ref.dtype() != DType::kResource || ref.num_elements() != 1) {
      return InvalidArgument("ref must be one variable, is a ", Name(ref.dtype()), " of shape ",
                             ref.shape().ToString());
    }
    ASSIGN_OR_RETURN(const auto variable,
                     ResolveHandleAs<Variable>(ref.scalar<ResourceHandle>(), ctx.resources()));
    const Tensor& value = ctx.input(4);
    if (variable->dtype() != value.dtype()) {
      return InvalidArgument("variable '", variable->name(), "' is ", Name(variable->dtype()),
                             ", value is ", Name(value.dtype()));
    }
    Variable* const target = variable.get();
    StridedBox box;
    Shape shape;
    const auto update = [&](absl::Span<Tensor* const> tensors) -> Status {
      Tensor& whole = *tensors[0];
      shape = whole.shape();
      ASSIGN_OR_RETURN(
          box, ResolveStridedSlice(masks_, ctx.input(1), ctx.input(2), ctx.input(3), shape));
      RETURN_IF_ERROR(CheckValueOfBox(box, value, "value"));
      StoreInBox(box, value, whole, ctx.threads());
      return OkStatus();
    };
    const auto changed = [&](size_t) { return ChangedRows(box, shape); };
    RETURN_IF_ERROR(Variable::Update({&target, 1}, ctx.origin(), update, changed));
    if (ctx.num_outputs() == 1) ctx.SetOutput(0, ctx.TakeInput(0));
    return OkStatus();
  }

 private:
  // Returns the rows that contain the box.
  static Slices ChangedRows(const StridedBox& box, const Shape& shape) {
    if (shape.rank() == 0) return Slices::All();
    if (shape.num_elements() == 0) return Slices::None();
    const StridedBox::Dim& rows = box.dims[0];
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < rows.count; ++i) numbers.push_back(rows.begin + i * rows.stride);
    return Slices(shape.num_elements() / shape.dim(0), std::move(numbers));
  }

  StridedSliceMasks masks_;
};

OP(StridedSliceAssign) {
  return {
      .doc =
          "Writes `value` to the elements of the variable that StridedSlice would read, and "
          "returns the variable.",
      .inputs = {{"ref", Ref("T")},
                 {"begin", "Index"},
                 {"end", "Index"},
                 {"strides", "Index"},
                 {"value", "T"}},
      .outputs = {{"output_ref", Ref("T")}},
      .types = {{"T", kAllTypes}, {"Index", kIndex}},
      .attrs = StridedSliceMasks::AttrDefs(),
      .shape = SameShape,
      .examples = {{.inputs = {{{{3, 4}}},
                               {{{2}, {1, 3}}},
                               {{{2}, {3, 0}}},
                               {{{2}, {1, -2}}},
                               {{{2, 2}}}}}},
      .stateful = true,
  };
}

OP(ResourceStridedSliceAssign) {
  return {
      .doc = "Writes `value` to the elements of the variable that StridedSlice would read.",
      .inputs = {{"ref", "resource"},
                 {"begin", "Index"},
                 {"end", "Index"},
                 {"strides", "Index"},
                 {"value", "T"}},
      .types = {{"T", kAllTypes}, {"Index", kIndex}},
      .attrs = StridedSliceMasks::AttrDefs(),
      .shape = NoOutputs,
      .examples = {{.inputs = {{{{3, 4}}},
                               {{{2}, {1, 3}}},
                               {{{2}, {3, 0}}},
                               {{{2}, {1, -2}}},
                               {{{2, 2}}}}}},
      .stateful = true,
  };
}

KERNEL_ANY_TYPE(StridedSliceAssign, StridedSliceAssignKernel);
KERNEL_ANY_TYPE(ResourceStridedSliceAssign, StridedSliceAssignKernel);

}  // namespace
}  // namespace penstock
