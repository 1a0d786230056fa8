// SPDX-License-Identifier: Apache-2.0
//
// Ops that give hints about how to run a dataset, or that measure it, without changing its
// elements. Here they return the dataset unchanged. Attributes that would change elements are
// refused.
#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"

namespace penstock {
namespace {

class HintKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override { return DatasetInput(ctx); }
};

DatasetOp HintOp(std::vector<ArgDef> inputs = {}, std::vector<AttrDef> first = {},
                 std::vector<AttrDef> last = {}, bool metadata = false) {
  DatasetOp op{
      .doc = "Returns the dataset unchanged: the runtime ignores hints about how to run it.",
      .inputs = {{"input_dataset", "variant"}},
      .attrs = std::move(first),
      .spec = false,
      .metadata = metadata};
  op.inputs.insert(op.inputs.end(), inputs.begin(), inputs.end());
  op.attrs.push_back(TypesAttr("output_types", 1));
  op.attrs.push_back({"output_shapes", ShapeList{}});
  op.attrs.insert(op.attrs.end(), last.begin(), last.end());
  return op;
}

const AttrDef kConfigs = {"optimization_configs", StringList{}, EmptyList()};

OP(OptionsDataset) { return HintOp({}, {{"serialized_options", Strings{}}}, {}, true); }
OP(OptimizeDataset) { return HintOp({{"optimizations", "string"}}, {}, {kConfigs}); }
OP(OptimizeDatasetV2) {
  return HintOp({{"optimizations_enabled", "string"},
                 {"optimizations_disabled", "string"},
                 {"optimizations_default", "string"}},
                {}, {kConfigs});
}
OP(ModelDataset) { return HintOp({}, {{"algorithm", 0}, {"cpu_budget", 0}, {"ram_budget", 0}}); }
OP(FinalizeDataset) { return HintOp({}, {{"has_captured_ref", false}}); }
OP(NonSerializableDataset) { return HintOp(); }
OP(ExperimentalNonSerializableDataset) { return HintOp(); }
OP(MaxIntraOpParallelismDataset) { return HintOp({{"max_intra_op_parallelism", "int64"}}); }
OP(ExperimentalMaxIntraOpParallelismDataset) {
  return HintOp({{"max_intra_op_parallelism", "int64"}});
}
OP(PrivateThreadPoolDataset) { return HintOp({{"num_threads", "int64"}}); }
OP(ExperimentalPrivateThreadPoolDataset) { return HintOp({{"num_threads", "int64"}}); }
OP(AssertNextDataset) { return HintOp({{"transformations", "string"}}); }
OP(ExperimentalAssertNextDataset) { return HintOp({{"transformations", "string"}}); }
OP(AssertPrevDataset) { return HintOp({{"transformations", "string"}}); }
OP(BytesProducedStatsDataset) { return HintOp({{"tag", "string"}}); }
OP(ExperimentalBytesProducedStatsDataset) { return HintOp({{"tag", "string"}}); }
OP(RewriteDataset) { return HintOp({{"rewrite_name", "string"}}); }
OP(LatencyStatsDataset) { return HintOp({{"tag", "string"}}); }
OP(ExperimentalLatencyStatsDataset) { return HintOp({{"tag", "string"}}); }

KERNEL_ANY_TYPE(OptionsDataset, HintKernel);
KERNEL_ANY_TYPE(OptimizeDataset, HintKernel);
KERNEL_ANY_TYPE(OptimizeDatasetV2, HintKernel);
KERNEL_ANY_TYPE(ModelDataset, HintKernel);
KERNEL_ANY_TYPE(FinalizeDataset, HintKernel);
KERNEL_ANY_TYPE(NonSerializableDataset, HintKernel);
KERNEL_ANY_TYPE(ExperimentalNonSerializableDataset, HintKernel);
KERNEL_ANY_TYPE(MaxIntraOpParallelismDataset, HintKernel);
KERNEL_ANY_TYPE(ExperimentalMaxIntraOpParallelismDataset, HintKernel);
KERNEL_ANY_TYPE(PrivateThreadPoolDataset, HintKernel);
KERNEL_ANY_TYPE(ExperimentalPrivateThreadPoolDataset, HintKernel);
KERNEL_ANY_TYPE(AssertNextDataset, HintKernel);
KERNEL_ANY_TYPE(ExperimentalAssertNextDataset, HintKernel);
KERNEL_ANY_TYPE(AssertPrevDataset, HintKernel);
KERNEL_ANY_TYPE(BytesProducedStatsDataset, HintKernel);
KERNEL_ANY_TYPE(ExperimentalBytesProducedStatsDataset, HintKernel);
KERNEL_ANY_TYPE(RewriteDataset, HintKernel);
KERNEL_ANY_TYPE(LatencyStatsDataset, HintKernel);
KERNEL_ANY_TYPE(ExperimentalLatencyStatsDataset, HintKernel);

}  // namespace
}  // namespace penstock
