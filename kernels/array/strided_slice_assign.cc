// SPDX-License-Identifier: Apache-2.0
//
// StridedSliceAssign, ResourceStridedSliceAssign: writing into a variable where a Python slice
// expression selects.
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
    RETURN_IF_ERROR(Variable::Update(
        {&target, 1}, {.step_id = ctx.step().step_id}, [&](absl::Span<Tensor* const> tensors) {
          Tensor& whole = *tensors[0];
          ASSIGN_OR_RETURN(
              const StridedBox box,
              ResolveStridedSlice(masks_, ctx.input(1), ctx.input(2), ctx.input(3), whole.shape()));
          RETURN_IF_ERROR(CheckValueOfBox(box, value, "value"));
          StoreInBox(box, value, whole, ctx.threads());
          return OkStatus();
        }));
    if (ctx.num_outputs() == 1) ctx.SetOutput(0, ctx.TakeInput(0));
    return OkStatus();
  }

 private:
  StridedSliceMasks masks_;
};

OP(StridedSliceAssign,
   {
       .doc =
           "Writes `value` where StridedSlice would read in the variable, and yields the variable.",
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
   });
OP(ResourceStridedSliceAssign,
   {
       .doc = "Writes `value` where StridedSlice would read in the variable.",
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
   });

KERNEL_ANY_TYPE(StridedSliceAssign, StridedSliceAssignKernel);
KERNEL_ANY_TYPE(ResourceStridedSliceAssign, StridedSliceAssignKernel);

}  // namespace
}  // namespace penstock
