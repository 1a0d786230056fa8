// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <utility>

#include "core/compiler/testing/test_program.h"
#include "core/op/flops.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

class ConstKernel final : public Kernel {
  Status Init(const KernelInit& node) override { return node.Attr("value", &value_); }
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, value_);
    return OkStatus();
  }
  Tensor value_;
};

class SumKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).shape() != ctx.input(1).shape()) return InvalidArgument("shapes differ");
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, ctx.input(0).shape(), &out));
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      out->mutable_data<float>()[i] = ctx.input(0).data<float>()[i] + ctx.input(1).data<float>()[i];
    }
    return OkStatus();
  }
};

bool huge_ran = false;
class HugeKernel final : public Kernel {
  Status Compute(KernelContext&) override {
    huge_ran = true;
    throw std::bad_alloc();
  }
};

class NeverRun final : public Kernel {
  Status Compute(KernelContext&) override { return Internal("must not run at compile time"); }
};

Status HugeShape(ShapeScope& s) {
  s.set_output(0, Shape({1 << 20, 1 << 10}));
  return OkStatus();
}

OpDef Unary(const char* name, const ArgType& type = "float") {
  return {.name = name, .inputs = {{"x", type}}, .outputs = {{"y", type}}};
}

OpDef Identity(const char* name, std::vector<AttrDef> attrs = {}) {
  OpDef op = Unary(name);
  op.attrs = std::move(attrs);
  op.passes_through = true;
  op.ref_form = "RefIdentity";
  return op;
}

OpDef Switch(bool ref) {
  const ArgType type = ref ? Ref("float") : ArgType("float");
  return {.name = ref ? "RefSwitch" : "Switch",
          .inputs = {{"x", type}, {"pred", "float"}},
          .outputs = {{"no", type}, {"yes", type}},
          .shape = ref ? nullptr : ShapeFn(SameShape),
          .flow = FlowOp::kSwitch,
          .ref_form = ref ? "" : "RefSwitch"};
}

OpDef Flow(FlowOp flow, const char* name, const ArgType& type = "float") {
  OpDef op = Unary(name, type);
  op.flow = flow;
  return op;
}

OpDef Enter(bool ref) {
  OpDef op = Flow(FlowOp::kEnter, ref ? "RefEnter" : "Enter", ref ? Ref("float") : "float");
  op.attrs = {{"frame_name", Strings{}}, {"is_constant", false}};
  if (!ref) op.ref_form = "RefEnter";
  return op;
}

OpDef Transfer(bool send) {
  OpDef op = {.name = send ? "_Send" : "_Recv",
              .attrs = {{"tensor_name", Strings{}},
                        {"send_device", Strings{}},
                        {"send_device_incarnation", Ints{}},
                        {"recv_device", Strings{}},
                        {"client_terminated", false}},
              .stateful = true,
              .end = send ? EndOp::kSend : EndOp::kRecv};
  if (send) {
    op.inputs = {{"x", "T"}};
    op.types = {{"T", kAllTypes}};
  } else {
    op.outputs = {{"y", "tensor_type"}};
    op.types = {{"tensor_type", kAllTypes}};
  }
  return op;
}

std::vector<OpDef> Values() {
  OpDef use = Unary("Use");
  use.stateful = true;
  OpDef huge = Unary("Huge");
  huge.shape = HugeShape;
  return {
      {.name = "Const",
       .outputs = {{"output", "dtype"}},
       .types = {{"dtype", kAllTypes}},
       .attrs = {{"value", Tensors{}}},
       .shape =
           [](ShapeScope& s) {
             s.set_output(0, s.attr<Tensor>("value").shape());
             return OkStatus();
           },
       .is_constant = true},
      {.name = "Input", .outputs = {{"y", "float"}}, .shape = UnknownShape},
      {.name = "Ask", .outputs = {{"y", "float"}}, .shape = UnknownShape, .is_placeholder = true},
      {.name = "Noise", .outputs = {{"y", "float"}}, .stateful = true},
      {.name = "Sum2",
       .inputs = {{"a", "float"}, {"b", "float"}},
       .outputs = {{"y", "float"}},
       .shape = SameShape,
       .commutative = true},
      {.name = "Product",
       .inputs = {{"a", "float"}, {"b", "float"}},
       .outputs = {{"y", "float"}},
       .flops = MatMulFlops},
      Unary("Heavy"),
      Unary("OnGpu"),
      std::move(use),
      std::move(huge),
      {.name = "Shape",
       .inputs = {{"x", "float"}},
       .outputs = {{"y", "int32"}},
       .shape_op = ShapeOp::kShape},
      {.name = "Group"},
      {.name = "Pair",
       .inputs = {{"a", "float"}, {"b", "float"}},
       .outputs = {{"c", "float"}, {"d", "float"}}},
      {.name = "Move",
       .inputs = {{"x", "T"}},
       .outputs = {{"y", "T"}},
       .types = {{"T", kAllTypes}}},
      {.name = "Cast",
       .inputs = {{"x", "SrcT"}},
       .outputs = {{"y", "DstT"}},
       .types = {{"SrcT", kAllTypes}, {"DstT", kAllTypes}}},
      {.name = "AddN",
       .inputs = {{"inputs", Repeat("N", "float")}},
       .outputs = {{"sum", "float"}},
       .attrs = {{"N", Ints{.min = 1}}},
       .aggregate = true,
       .reuses = Reuse::kFirst},
      {.name = "Stage", .inputs = {{"x", "float"}}, .stateful = true, .may_wait = true},
      {.name = "Unstage", .outputs = {{"y", "float"}}, .stateful = true, .may_wait = true},
      {.name = "_SwapOut",
       .inputs = {{"tensor", "T"}},
       .outputs = {{"handle", "variant"}},
       .types = {{"T", kAllTypes}},
       .stateful = true},
      {.name = "_SwapIn",
       .inputs = {{"handle", "variant"}},
       .outputs = {{"tensor", "T"}},
       .types = {{"T", kAllTypes}},
       .stateful = true},
      Identity("Identity"),
      Identity("PreventGradient", {{"message", ""}}),
  };
}

std::vector<OpDef> ControlFlow() {
  return {
      Switch(false),
      Switch(true),
      {.name = "Merge",
       .inputs = {{"a", "float"}, {"b", "float"}},
       .outputs = {{"y", "float"}},
       .flow = FlowOp::kMerge},
      {.name = "RefMerge",
       .inputs = {{"x", Repeat("N", Ref("float"))}},
       .outputs = {{"y", Ref("float")}, {"value_index", "int32"}},
       .attrs = {{"N", Ints{}}},
       .flow = FlowOp::kMerge},
      Enter(false),
      Enter(true),
      Flow(FlowOp::kExit, "Exit"),
      Flow(FlowOp::kNextIteration, "NextIteration"),
      Flow(FlowOp::kNextIteration, "RefNextIteration", Ref("float")),
      Flow(FlowOp::kLoopCond, "LoopCond"),
  };
}

std::vector<OpDef> State() {
  OpDef identity = Unary("RefIdentity", Ref("float"));
  identity.passes_through = identity.only_reads = true;
  return {
      {.name = "Var", .outputs = {{"ref", Ref("float")}}, .stateful = true},
      {.name = "Update",
       .inputs = {{"ref", Ref("float")}, {"by", "float"}},
       .outputs = {{"out", Ref("float")}},
       .allows_uninitialized_input = true},
      {.name = "Train",
       .inputs = {{"ref", Ref("float")},
                  {"rate", "float"},
                  {.name = "grad", .type = "float", .is_gradient = true}},
       .outputs = {{"out", Ref("float")}}},
      Unary("Bump", Ref("float")),
      std::move(identity),
      {.name = "_Feed",
       .outputs = {{"y", "T"}},
       .types = {{"T", kAllTypes}},
       .attrs = {{"index", Ints{}}},
       .stateful = true,
       .end = EndOp::kFeed},
      {.name = "_Fetch",
       .inputs = {{"x", "T"}},
       .types = {{"T", kAllTypes}},
       .attrs = {{"index", Ints{}}},
       .stateful = true,
       .end = EndOp::kFetch},
      Transfer(true),
      Transfer(false),
  };
}

}  // namespace

const Registry& CompilerTestOps() {
  static const Registry& registry = *[] {
    std::vector<OpDef> ops = Values();
    for (const std::vector<OpDef>& more : {ControlFlow(), State()}) {
      ops.insert(ops.end(), more.begin(), more.end());
    }
    std::vector<KernelDef> kernels = {{.op = "Heavy", .device = "GPU", .make = Make<NeverRun>}};
    kernels.push_back({.op = "OnGpu", .device = "GPU", .make = Make<NeverRun>});
    for (const OpDef& op : ops) {
      if (op.name == "OnGpu") continue;
      const bool sums = op.name == "Sum2" || op.name == "Merge";
      kernels.push_back({.op = op.name,
                         .make = op.is_constant      ? Make<ConstKernel>
                                 : sums              ? Make<SumKernel>
                                 : op.name == "Huge" ? Make<HugeKernel>
                                                     : Make<NeverRun>});
    }
    return new Registry(std::move(ops), std::move(kernels));
  }();
  return registry;
}

bool HugeRan() { return huge_ran; }

}  // namespace penstock
