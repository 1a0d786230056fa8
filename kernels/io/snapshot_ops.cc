// SPDX-License-Identifier: Apache-2.0
//
// SnapshotCopyAhead, SnapshotCut with SnapshotKeep, SnapshotTake: the three steps of a save that
// does not stop updates (client/saver.h). Nodes with the same shared_name share a Snapshot; the
// input `save` names the save. On a server a Snapshot belongs to one session, and ends with it.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/private_attrs.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/io/file_kernel.h"
#include "kernels/io/snapshot.h"

namespace penstock {
namespace {

// Runs on the file threads, because copying ahead takes as long as reading a file.
class SnapshotKernel : public FileKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("shared_name", &name_));
    if (!node.attrs.contains(kPrivateContainerAttr)) return OkStatus();
    return node.Attr(kPrivateContainerAttr, &container_);
  }

 protected:
  StatusOr<std::shared_ptr<Snapshot>> Find(KernelContext& ctx) const {
    const auto make = [] { return std::make_shared<Snapshot>(); };
    ASSIGN_OR_RETURN(
        std::shared_ptr<Resource> found,
        ctx.resources().LookupOrCreate(container_, name_, "Snapshot", make, ctx.origin()));
    return std::static_pointer_cast<Snapshot>(std::move(found));
  }

 private:
  std::string container_, name_;
};

// Returns the variables of the inputs [1, 1 + count). InvalidArgument if an input is not a handle;
// the error of ResolveHandleAs if a handle does not refer to a variable.
StatusOr<Snapshot::Variables> VariablesOf(const KernelContext& ctx, int count) {
  Snapshot::Variables variables;
  for (int i = 1; i <= count; ++i) {
    const Tensor& input = ctx.input(i);
    if (input.num_elements() != 1) return InvalidArgument("input ", i, " must be one handle");
    ASSIGN_OR_RETURN(auto variable,
                     ResolveHandleAs<Variable>(input.scalar<ResourceHandle>(), ctx.resources()));
    variables.push_back(std::move(variable));
  }
  return variables;
}

// Sets the outputs. InvalidArgument if the values do not have the types that the node declares.
Status SetOutputs(KernelContext& ctx, std::vector<Tensor> values) {
  if (static_cast<int>(values.size()) != ctx.num_outputs()) {
    return InvalidArgument("the snapshot has ", values.size(), " values, not ", ctx.num_outputs());
  }
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    if (values[i].dtype() != ctx.output_type(i).dtype) {
      return InvalidArgument("value ", i, " of the snapshot is ", Name(values[i].dtype()), ", not ",
                             Name(ctx.output_type(i).dtype));
    }
    ctx.SetOutput(i, std::move(values[i]));
  }
  return OkStatus();
}

class CopyAheadKernel final : public SnapshotKernel {
 protected:
  Status Run(KernelContext& ctx) const override {
    ASSIGN_OR_RETURN(const std::string save, StringInput(ctx, 0, "save"));
    ASSIGN_OR_RETURN(const auto variables, VariablesOf(ctx, ctx.num_inputs() - 1));
    ASSIGN_OR_RETURN(const auto snapshot, Find(ctx));
    return snapshot->CopyAhead(
        save, variables, [&] { return CheckNotCancelled(ctx); }, ctx.origin());
  }
};

class CutKernel final : public SnapshotKernel {
 protected:
  Status Run(KernelContext& ctx) const override {
    ASSIGN_OR_RETURN(const std::string save, StringInput(ctx, 0, "save"));
    ASSIGN_OR_RETURN(const auto variables, VariablesOf(ctx, ctx.num_inputs() - 1));
    ASSIGN_OR_RETURN(const auto snapshot, Find(ctx));
    ASSIGN_OR_RETURN(std::vector<Tensor> values, snapshot->Cut(save, variables, ctx.origin()));
    return SetOutputs(ctx, std::move(values));
  }
};

class KeepKernel final : public SnapshotKernel {
 protected:
  Status Run(KernelContext& ctx) const override {
    ASSIGN_OR_RETURN(const std::string save, StringInput(ctx, 0, "save"));
    ASSIGN_OR_RETURN(const auto snapshot, Find(ctx));
    std::vector<Tensor> values;
    for (int i = 1; i < ctx.num_inputs(); ++i) values.push_back(ctx.TakeInput(i));
    snapshot->Keep(save, std::move(values), ctx.origin());
    return OkStatus();
  }
};

class TakeKernel final : public SnapshotKernel {
 protected:
  Status Run(KernelContext& ctx) const override {
    ASSIGN_OR_RETURN(const std::string save, StringInput(ctx, 0, "save"));
    ASSIGN_OR_RETURN(const auto snapshot, Find(ctx));
    ASSIGN_OR_RETURN(std::vector<Tensor> values, snapshot->Take(save, ctx.origin()));
    return SetOutputs(ctx, std::move(values));
  }
};

OpDef SnapshotOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"save", "string"}},
      .attrs = {{"shared_name", Strings{}}},
      .shape = NoOutputs,
      .gradient = NoGradient,
      .stateful = true,
      .in_session = true,
      .untestable_alone = "one of three steps of a save: kernels/io has their tests",
  };
}

OP(SnapshotCopyAhead) {
  OpDef op = SnapshotOp("Copies variables for a snapshot while updates go on.");
  op.inputs.push_back({"variables", Repeat("N", "resource")});
  op.attrs.push_back({"N", Ints{.min = 1}});
  return op;
}
OP(SnapshotCut) {
  OpDef op = SnapshotOp("Returns the current values of variables, for a snapshot.");
  op.inputs.push_back({"variables", Repeat("N", "resource")});
  op.outputs = {{"values", List("dtypes")}};
  op.attrs.push_back({"N", Ints{.min = 1}});
  op.attrs.push_back({"dtypes", TypeList{.min_length = 1}});
  op.shape = UnknownShape;
  return op;
}
OP(SnapshotKeep) {
  OpDef op = SnapshotOp("Stores the values of a snapshot until they are taken.");
  op.inputs.push_back({"values", List("dtypes")});
  op.attrs.push_back({"dtypes", TypeList{.min_length = 1}});
  return op;
}
OP(SnapshotTake) {
  OpDef op = SnapshotOp("Returns the values of a snapshot, and releases them.");
  op.outputs = {{"values", List("dtypes")}};
  op.attrs.push_back({"dtypes", TypeList{.min_length = 1}});
  op.shape = UnknownShape;
  return op;
}
KERNEL_ANY_TYPE(SnapshotCopyAhead, CopyAheadKernel);
KERNEL_ANY_TYPE(SnapshotCut, CutKernel);
KERNEL_ANY_TYPE(SnapshotKeep, KeepKernel);
KERNEL_ANY_TYPE(SnapshotTake, TakeKernel);
// The ops also serve variables on a GPU: their values are shared, and the step copies them to the
// host.
KERNEL_DEF({.op = "SnapshotCopyAhead",
            .device = "GPU",
            .host_args = {"save", "variables"},
            .make = Make<CopyAheadKernel>});
KERNEL_DEF({.op = "SnapshotCut",
            .device = "GPU",
            .host_args = {"save", "variables"},
            .make = Make<CutKernel>});

}  // namespace
}  // namespace penstock
