// SPDX-License-Identifier: Apache-2.0
//
// TensorSummary, TensorSummaryV2: summaries of tensors; MergeSummary: joins summaries.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/summary/arguments.h"

namespace penstock {
namespace {

Status CheckCanBeWritten(const Tensor& tensor) {
  if (IsPlain(tensor.dtype()) || tensor.dtype() == DType::kString) return OkStatus();
  return InvalidArgument("a tensor of type ", Name(tensor.dtype()), " cannot be summarised");
}

class TensorSummaryKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(CheckCanBeWritten(ctx.input(0)));
    SummaryBuilder summary;
    summary.AddNodeTensor(ctx.node_name(), ctx.input(0));
    return OutputSummary(ctx, summary);
  }
};

class TensorSummaryV2Kernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const std::string tag, TagInput(ctx, "tag"));
    RETURN_IF_ERROR(CheckCanBeWritten(ctx.input(1)));
    const Tensor& metadata = ctx.input(2);
    if (metadata.rank() != 0) {
      return InvalidArgument("serialized_summary_metadata must be a scalar, has shape ",
                             metadata.shape().ToString());
    }
    SummaryBuilder summary;
    summary.AddTensor(tag, ctx.input(1), &metadata.scalar<std::string>());
    return OutputSummary(ctx, summary);
  }
};

class MergeSummaryKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    SummaryBuilder summary;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      for (const std::string& part : ctx.input(i).flat<std::string>()) {
        RETURN_IF_ERROR(summary.Add(part));
      }
    }
    RETURN_IF_ERROR(summary.CheckTagsDiffer());
    return OutputSummary(ctx, summary);
  }
};

OP(TensorSummary) {
  return {
      .doc = "Makes a summary of a complete tensor, under the name of the node.",
      .inputs = {{"tensor", "T"}},
      .outputs = {{"summary", "string"}},
      .types = {{"T", kAllTypes}},
      .attrs = {{"description", ""},
                {"labels", StringList{}, std::vector<std::string>{}},
                {"display_name", ""}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}}}},
  };
}

OP(TensorSummaryV2) {
  return {
      .doc =
          "Makes a summary of a complete tensor under a tag, with a serialized "
          "SummaryMetadata.",
      .inputs = {{"tag", "string"}, {"tensor", "T"}, {"serialized_summary_metadata", "string"}},
      .outputs = {{"summary", "string"}},
      .types = {{"T", kAllTypes}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{}}, {{{2, 3}}}, {{}}}}},
  };
}

OP(MergeSummary) {
  return {
      .doc = "Merges several summaries into one. Their tags must differ.",
      .inputs = {{"inputs", Repeat("N", "string")}},
      .outputs = {{"summary", "string"}},
      .attrs = {{"N", Ints{.min = 1}}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{0}}, {{2, 0}}}}}},
  };
}
KERNEL_ANY_TYPE(TensorSummary, TensorSummaryKernel);
KERNEL_ANY_TYPE(TensorSummaryV2, TensorSummaryV2Kernel);
KERNEL_ANY_TYPE(MergeSummary, MergeSummaryKernel);

}  // namespace
}  // namespace penstock
