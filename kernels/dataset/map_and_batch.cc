// SPDX-License-Identifier: Apache-2.0
//
// MapAndBatchDataset: a ParallelMap followed by a Batch.
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/compose.h"
#include "kernels/dataset/map.h"
#include "kernels/dataset/parallelism.h"

namespace penstock {
namespace {

class MapAndBatchKernel final : public MappingKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(CapturedFunction function, mapping().Capture(ctx, 1));
    const int after = 1 + mapping().num_captured();
    ASSIGN_OR_RETURN(const int64_t size, ScalarInput<int64_t>(ctx, after, "batch_size"));
    ASSIGN_OR_RETURN(const int64_t parallel, ParallelCallsInput(ctx, after + 1));
    ASSIGN_OR_RETURN(const bool drop, ScalarInput<bool>(ctx, after + 2, "drop_remainder"));
    if (size <= 0) return InvalidArgument("batch_size must be greater than zero.");
    ElementSpec row{.types = spec().types};
    for (const PartialShape& shape : spec().shapes) {
      row.shapes.push_back(shape.rank() > 0 ? PartialShape(shape.dims().subspan(1))
                                            : PartialShape());
    }
    return NewBatchDataset(NewParallelMapDataset(std::move(row), std::move(input),
                                                 std::move(function), parallel, keeps_count()),
                           size, drop);
  }
};

DatasetOp MapAndBatchOp(bool metadata) {
  return {.doc =
              "Applies a function to each element of a dataset, and batches `batch_size` "
              "results into one element.",
          .inputs = {{"input_dataset", "variant"},
                     {"other_arguments", List("Targuments")},
                     {"batch_size", "int64"},
                     {"num_parallel_calls", "int64"},
                     {"drop_remainder", "bool"}},
          .attrs = {{"f", Functions{}},
                    TypesAttr("Targuments", 0),
                    TypesAttr("output_types", 1),
                    {"output_shapes", ShapeList{}},
                    {"preserve_cardinality", false}},
          .spec = false,
          .metadata = metadata};
}
OP(MapAndBatchDataset) { return MapAndBatchOp(true); }
OP(ExperimentalMapAndBatchDataset) { return MapAndBatchOp(false); }
KERNEL_ANY_TYPE(MapAndBatchDataset, MapAndBatchKernel);
KERNEL_ANY_TYPE(ExperimentalMapAndBatchDataset, MapAndBatchKernel);

}  // namespace
}  // namespace penstock
