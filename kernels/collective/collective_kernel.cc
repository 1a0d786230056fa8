// SPDX-License-Identifier: Apache-2.0
#include "kernels/collective/collective_kernel.h"

#include <utility>

#include "core/op/gradient.h"
#include "core/op/op_def.h"
#include "core/runtime/rendezvous.h"

namespace penstock {
namespace {

constexpr char kUntestableAlone[] = "it waits for the other ranks of its group";
const std::vector<AttrDef> kCommonAttrs = {{"communication_hint", std::string("auto")},
                                           {"timeout_seconds", 0.0f}};

Status IntInput(KernelContext& ctx, int i, const char* name, int64_t* value) {
  const Tensor& input = ctx.input(i);
  if (input.dtype() != DType::kInt32 || input.num_elements() != 1) {
    return InvalidArgument("input '", name, "' must be one int32, is ", Name(input.dtype()),
                           input.shape().ToString());
  }
  *value = input.data<int32_t>()[0];
  return OkStatus();
}

OpDef CommonOpDef(std::string doc, DTypes types) {
  return {.doc = StrCat(doc,
                        " `timeout_seconds` limits the time of each execution: DeadlineExceeded "
                        "names the ranks that are missing. 0: ten minutes until all ranks of the "
                        "group have taken part for the first time, and no limit after that."),
          .outputs = {{"data", "T"}},
          .types = {{"T", std::move(types)}},
          .stateful = true,
          .may_wait = true,
          .untestable_alone = kUntestableAlone};
}

}  // namespace

OpDef CollectiveOp(std::string doc, DTypes types) {
  OpDef op = CommonOpDef(std::move(doc), std::move(types));
  op.attrs = {{"group_size", Ints{}}, {"group_key", Ints{}}, {"instance_key", Ints{}}};
  op.attrs.insert(op.attrs.end(), kCommonAttrs.begin(), kCommonAttrs.end());
  return op;
}

OpDef CollectiveOpV2(std::string doc, DTypes types) {
  OpDef op = CommonOpDef(std::move(doc), std::move(types));
  op.attrs = kCommonAttrs;
  return op;
}

OpDef WithMerge(OpDef op) {
  op.attrs.push_back({"merge_op", OneOf{{"Min", "Max", "Mul", "Add"}}});
  op.attrs.push_back({"final_op", OneOf{{"Id", "Div"}}});
  return op;
}

OpDef WithGroupInputs(OpDef op) {
  op.inputs = {{"input", "T"},
               {"group_size", "int32"},
               {"group_key", "int32"},
               {"instance_key", "int32"},
               {"ordering_token", Repeat("Nordering_token", "resource")}};
  op.attrs.push_back({"is_stateless", false});
  op.attrs.push_back({"Nordering_token", Ints{.min = 0}, int64_t{0}});
  return op;
}

Status UnknownFirstDimension(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, s.WithRankAtLeast(0, 1));
  if (shape.known_rank()) shape.set_dim(0, PartialShape::kUnknown);
  s.set_output(0, std::move(shape));
  return OkStatus();
}

KernelDef OnGpu(std::string op, std::unique_ptr<Kernel> (*make)()) {
  return {.op = std::move(op), .device = "GPU", .host_args = {"input", "data"}, .make = make};
}

KernelDef OnGpuV2(std::string op, std::unique_ptr<Kernel> (*make)()) {
  return {.op = std::move(op),
          .device = "GPU",
          .host_args = {"input", "group_size", "group_key", "instance_key", "data"},
          .make = make};
}

Status CollectiveKernel::Init(const KernelInit& node) {
  std::string hint;
  RETURN_IF_ERROR(node.Attr("communication_hint", &hint));
  if (hint != "auto" && hint != "ring") {
    return Unimplemented("communication_hint '", hint,
                         "': collectives go over the transports that tensors go over; say 'auto'");
  }
  RETURN_IF_ERROR(node.Attr("timeout_seconds", &timeout_seconds_));
  if (!(timeout_seconds_ >= 0)) {
    return InvalidArgument("timeout_seconds=", timeout_seconds_, ": must be at least 0");
  }
  if (keys_input_ >= 0) return OkStatus();
  RETURN_IF_ERROR(node.Attr("group_size", &group_size_));
  RETURN_IF_ERROR(node.Attr("group_key", &group_key_));
  return node.Attr("instance_key", &instance_key_);
}

Status CollectiveKernel::Prepare(KernelContext& ctx, CollectiveCall* call) {
  call->group_size = group_size_;
  call->group_key = group_key_;
  call->instance_key = instance_key_;
  if (keys_input_ >= 0) {
    RETURN_IF_ERROR(IntInput(ctx, keys_input_, "group_size", &call->group_size));
    RETURN_IF_ERROR(IntInput(ctx, keys_input_ + 1, "group_key", &call->group_key));
    RETURN_IF_ERROR(IntInput(ctx, keys_input_ + 2, "instance_key", &call->instance_key));
  }
  constexpr int64_t kRanksMax = 4095;
  if (call->group_size < 1 || call->group_size > kRanksMax) {
    return InvalidArgument("group_size=", call->group_size, ": must be between 1 and ", kRanksMax);
  }
  call->device = ctx.device_name();
  // Outside of loops, frame and iteration are 0. Inside a loop, all ranks that run the loop compute
  // the same frame.
  call->iteration = static_cast<int64_t>(ctx.frame() * 0x9e3779b97f4a7c15u + ctx.iteration());
  call->timeout_seconds = timeout_seconds_;
  call->cancellation = ctx.step().cancellation;
  return Fill(ctx, call);
}

void CollectiveKernel::ComputeAsync(KernelContext& ctx, Done done) {
  auto* const collectives = dynamic_cast<Collectives*>(ctx.step().rendezvous);
  if (collectives == nullptr) {
    return std::move(done)(
        FailedPrecondition("this step has no access to collectives: it runs outside of a task"));
  }
  CollectiveCall call;
  const Status status = Prepare(ctx, &call);
  if (!status.ok()) return std::move(done)(status);
  collectives->Collect(std::move(call),
                       [&ctx, done = std::move(done)](StatusOr<Tensor> result) mutable {
                         if (result.ok()) ctx.SetOutput(0, *std::move(result));
                         std::move(done)(result.status());
                       });
}

void CollectiveKernel::TakeInput(KernelContext& ctx, CollectiveCall* call) {
  call->input = ctx.TakeInput(0);
  call->dtype = call->input.dtype();
  call->shape = call->input.shape();
}

Status ReducingKernel::Init(const KernelInit& node) {
  RETURN_IF_ERROR(CollectiveKernel::Init(node));
  std::string merge, final_op;
  RETURN_IF_ERROR(node.Attr("merge_op", &merge));
  RETURN_IF_ERROR(node.Attr("final_op", &final_op));
  if (merge == "Min") merge_ = MergeOp::kMin;
  if (merge == "Max") merge_ = MergeOp::kMax;
  if (merge == "Mul") merge_ = MergeOp::kMul;
  divide_ = final_op == "Div";
  return OkStatus();
}

void ReducingKernel::FillMerge(CollectiveCall* call) const {
  call->merge = merge_;
  call->divide = divide_;
}

}  // namespace penstock
