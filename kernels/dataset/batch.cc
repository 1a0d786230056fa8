// SPDX-License-Identifier: Apache-2.0
//
// BatchDataset, BatchDatasetV2, ParallelBatchDataset: stack several elements into one, with a new
// leading dimension.
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/batching.h"
#include "kernels/dataset/compose.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/rows.h"

namespace penstock {
namespace {

class BatchDataset final : public Dataset {
 public:
  BatchDataset(DatasetPtr input, int64_t size, bool drop_remainder)
      : Dataset(BatchSpec(input->spec(), drop_remainder ? size : PartialShape::kUnknown), {input}),
        size_{size, drop_remainder} {}
  const char* Name() const override { return "Batch"; }
  int64_t Cardinality() const override { return size_.BatchesOf(input().Cardinality()); }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    return NewIteratorOf<Iterator>(this, ctx);
  }

 private:
  class Iterator final : public IteratorOf<BatchDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      std::vector<Element> elements;
      const auto any = [](const Element&) { return OkStatus(); };
      RETURN_IF_ERROR(dataset().size_.Read(ctx, *input_, any, &elements, end));
      if (*end) return OkStatus();
      ASSIGN_OR_RETURN(*element, StackElements(elements));
      return OkStatus();
    }
  };

  const BatchSize size_;
};

// kDropRemainder: the index of the input that says whether to drop the remainder; 0 if the op has
// no such input.
template <int kDropRemainder>
class BatchKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(const int64_t size, ScalarInput<int64_t>(ctx, 1, "batch_size"));
    if (size <= 0) return InvalidArgument("Batch size must be greater than zero.");
    bool drop_remainder = false;
    if (kDropRemainder > 0) {
      ASSIGN_OR_RETURN(drop_remainder, ScalarInput<bool>(ctx, kDropRemainder, "drop_remainder"));
    }
    return NewBatchDataset(std::move(input), size, drop_remainder);
  }
};

constexpr char kBatchDoc[] = "Batches `batch_size` elements of a dataset into one element.";

OP(BatchDataset) {
  return DatasetOp{.doc = kBatchDoc,
                   .inputs = {{"input_dataset", "variant"}, {"batch_size", "int64"}}};
}

OP(BatchDatasetV2) {
  return DatasetOp{
      .doc = kBatchDoc,
      .inputs = {{"input_dataset", "variant"}, {"batch_size", "int64"}, {"drop_remainder", "bool"}},
      .attrs = {{"parallel_copy", false}}};
}

// Batches are made one at a time, in order; only the input datasets work in parallel.
OP(ParallelBatchDataset) {
  return DatasetOp{.doc = kBatchDoc,
                   .inputs = {{"input_dataset", "variant"},
                              {"batch_size", "int64"},
                              {"num_parallel_calls", "int64"},
                              {"drop_remainder", "bool"}},
                   .attrs = {{"parallel_copy", false},
                             TypesAttr("output_types", 1),
                             {"output_shapes", ShapeList{}},
                             {"deterministic", "default"}},
                   .spec = false};
}

KERNEL_ANY_TYPE(BatchDataset, BatchKernel<0>);
KERNEL_ANY_TYPE(BatchDatasetV2, BatchKernel<2>);
KERNEL_ANY_TYPE(ParallelBatchDataset, BatchKernel<3>);

}  // namespace

DatasetPtr NewBatchDataset(DatasetPtr input, int64_t size, bool drop_remainder) {
  return std::make_shared<BatchDataset>(std::move(input), size, drop_remainder);
}

}  // namespace penstock
