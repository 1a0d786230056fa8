// SPDX-License-Identifier: Apache-2.0
//
// Switch, Merge and the ops of loops. The executor runs them itself, because a kernel cannot decide
// which outputs are alive, and in which iteration.
#include <algorithm>
#include <utility>

#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

class FlowKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    return Internal("an op of control flow is run by the executor, not alone");
  }
};

Status PassShape(ShapeScope& s) {
  for (int i = 0; i < s.num_outputs(); ++i) {
    s.set_output(i, s.input(0));
    if (s.element(0) != nullptr) s.set_output_element(i, *s.element(0));
  }
  return OkStatus();
}

Status SwitchShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  return PassShape(s);
}

Status LoopCondShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  s.set_output(0, PartialShape({}));
  return OkStatus();
}

// Returns the element type and shape that the output's handle carries, or null if they are not
// known. For a resource, returns those of the first input, because all inputs hold the same handle.
// For a variant, returns null unless all inputs have the same element type and shape. In a loop,
// shape inference may not know the loop-carried input's element yet: then the result for a variant
// is null.
const ResourceHandle::Element* CommonElement(const ShapeScope& s) {
  const ResourceHandle::Element* const first = s.element(0);
  if (first == nullptr || s.attr<EdgeType>("T").dtype != DType::kVariant) return first;
  for (int i = 1; i < s.num_inputs(); ++i) {
    const ResourceHandle::Element* const other = s.element(i);
    if (other == nullptr || other->dtype != first->dtype || other->shape != first->shape) {
      return nullptr;
    }
  }
  return first;
}

// Sets the output's shape to what all inputs' shapes have in common, because each input may become
// the output.
Status MergeShape(ShapeScope& s) {
  PartialShape common = s.input(0);
  const ResourceHandle::Element* element = CommonElement(s);
  for (int i = 1; i < s.num_inputs(); ++i) {
    const PartialShape& other = s.input(i);
    if (!common.known_rank() || !other.known_rank() || common.rank() != other.rank()) {
      common = PartialShape();
      break;
    }
    std::vector<int64_t> dims(common.dims().begin(), common.dims().end());
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] != other.dim(static_cast<int>(d))) dims[d] = -1;
    }
    common = PartialShape(dims);
  }
  s.set_output(0, common);
  s.set_output(1, PartialShape({}));
  if (element != nullptr) s.set_output_element(0, *element);
  return OkStatus();
}

OpDef SwitchOp(bool ref) {
  const ArgType data = ref ? Ref("T") : ArgType("T");
  return {.doc =
              "Passes `data` to output_true if `pred` is true, else to output_false. The other "
              "output is dead: nodes that depend on it do not run.",
          .inputs = {{"data", data}, {"pred", "bool"}},
          .outputs = {{"output_false", data}, {"output_true", data}},
          .types = {{"T", kAnyType}},
          .shape = SwitchShape,
          .allows_uninitialized_input = ref,
          .flow = FlowOp::kSwitch,
          .ref_form = ref ? "" : "RefSwitch"};
}

OpDef MergeOp(bool ref) {
  const ArgType data = ref ? Ref("T") : ArgType("T");
  return {.doc = "Returns the first input that is not dead, and its index.",
          .inputs = {{"inputs", Repeat("N", data)}},
          .outputs = {{"output", data}, {"value_index", "int32"}},
          .types = {{"T", kAnyType}},
          .attrs = {{"N", Ints{.min = 1}}},
          .shape = MergeShape,
          .flow = FlowOp::kMerge};
}

OpDef PassOp(const char* doc, FlowOp flow, bool ref) {
  const ArgType data = ref ? Ref("T") : ArgType("T");
  return {.doc = doc,
          .inputs = {{"data", data}},
          .outputs = {{"output", data}},
          .types = {{"T", kAnyType}},
          .shape = PassShape,
          .flow = flow};
}

OpDef EnterOp(bool ref) {
  OpDef op = PassOp(
      "Passes its input into the loop `frame_name`: to the first iteration or, if "
      "`is_constant`, to every iteration.",
      FlowOp::kEnter, ref);
  op.attrs = {{"frame_name", Strings{}},
              {"is_constant", false},
              {"parallel_iterations", Ints{.min = 1}, int64_t{10}}};
  if (!ref) op.ref_form = "RefEnter";
  return op;
}

constexpr char kExitDoc[] = "Passes its input out of the loop.";
constexpr char kNextDoc[] = "Passes its input to the next iteration of the loop.";

OP(Switch) { return SwitchOp(false); }
OP(RefSwitch) { return SwitchOp(true); }
OP(_SwitchN) {
  return {
      .doc =
          "Passes `data` to the output `output_index`; to the last output if there is no "
          "such output.",
      .inputs = {{"data", "T"}, {"output_index", "int32"}},
      .outputs = {{"outputs", Repeat("num_outs", "T")}},
      .types = {{"T", kAnyType}},
      .attrs = {{"num_outs", Ints{.min = 1}}},
      .shape = SwitchShape,
      .flow = FlowOp::kSwitch,
  };
}

OP(Merge) { return MergeOp(false); }
OP(RefMerge) { return MergeOp(true); }
OP(Enter) { return EnterOp(false); }
OP(RefEnter) { return EnterOp(true); }
OP(Exit) { return PassOp(kExitDoc, FlowOp::kExit, false); }
OP(RefExit) { return PassOp(kExitDoc, FlowOp::kExit, true); }
OP(NextIteration) { return PassOp(kNextDoc, FlowOp::kNextIteration, false); }
OP(RefNextIteration) { return PassOp(kNextDoc, FlowOp::kNextIteration, true); }
OP(LoopCond) {
  return {
      .doc = "Returns its input, the condition that decides whether a loop continues.",
      .inputs = {{"input", "bool"}},
      .outputs = {{"output", "bool"}},
      .shape = LoopCondShape,
      .flow = FlowOp::kLoopCond,
  };
}

KERNEL_ANY_TYPE(Switch, FlowKernel);
KERNEL_ANY_TYPE(RefSwitch, FlowKernel);
KERNEL_ANY_TYPE(_SwitchN, FlowKernel);
KERNEL_ANY_TYPE(Merge, FlowKernel);
KERNEL_ANY_TYPE(RefMerge, FlowKernel);
KERNEL_ANY_TYPE(Enter, FlowKernel);
KERNEL_ANY_TYPE(RefEnter, FlowKernel);
KERNEL_ANY_TYPE(Exit, FlowKernel);
KERNEL_ANY_TYPE(RefExit, FlowKernel);
KERNEL_ANY_TYPE(NextIteration, FlowKernel);
KERNEL_ANY_TYPE(RefNextIteration, FlowKernel);
KERNEL_ANY_TYPE(LoopCond, FlowKernel);
#define PENSTOCK_FLOW_ON_GPU(Name, ...) \
  KERNEL_DEF({.op = #Name, .device = "GPU", .host_args = {__VA_ARGS__}, .make = Make<FlowKernel>})
PENSTOCK_FLOW_ON_GPU(Switch, "pred");
PENSTOCK_FLOW_ON_GPU(RefSwitch, "pred");
PENSTOCK_FLOW_ON_GPU(_SwitchN, "output_index");
PENSTOCK_FLOW_ON_GPU(Merge, "value_index");
PENSTOCK_FLOW_ON_GPU(RefMerge, "value_index");
PENSTOCK_FLOW_ON_GPU(Enter);
PENSTOCK_FLOW_ON_GPU(RefEnter);
PENSTOCK_FLOW_ON_GPU(Exit);
PENSTOCK_FLOW_ON_GPU(RefExit);
PENSTOCK_FLOW_ON_GPU(NextIteration);
PENSTOCK_FLOW_ON_GPU(RefNextIteration);
PENSTOCK_FLOW_ON_GPU(LoopCond, "input", "output");

}  // namespace
}  // namespace penstock
