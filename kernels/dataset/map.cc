// SPDX-License-Identifier: Apache-2.0
//
// MapDataset: applies a function to each element.
#include "kernels/dataset/map.h"

#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"

namespace penstock {
namespace {

class MapDataset final : public Dataset {
 public:
  MapDataset(ElementSpec spec, DatasetPtr input, CapturedFunction function, bool keeps_count)
      : Dataset(std::move(spec), {std::move(input)}),
        function_(std::move(function)),
        keeps_count_(keeps_count) {}
  const char* Name() const override { return "Map"; }
  int64_t Cardinality() const override {
    return keeps_count_ ? input().Cardinality() : kUnknownCardinality;
  }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    ASSIGN_OR_RETURN(ElementCall call, ElementCall::New(ctx, function_));
    return std::make_unique<Iterator>(std::move(input), std::move(call), keeps_count_);
  }

 private:
  class Iterator final : public UnaryIterator {
   public:
    Iterator(IteratorPtr input, ElementCall call, bool keeps_count)
        : UnaryIterator(std::move(input)), call_(std::move(call)), keeps_count_(keeps_count) {}
    bool NeverWaits() const override { return !call_.waits() && input_->NeverWaits(); }
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      Element args;
      RETURN_IF_ERROR(input_->GetNext(ctx, &args, end));
      if (*end) return OkStatus();
      return MapEnded(call_.Run(ctx, std::move(args), element), keeps_count_, end);
    }

   private:
    const ElementCall call_;
    const bool keeps_count_;
  };

  const CapturedFunction function_;
  const bool keeps_count_;
};

class MapKernel final : public MappingKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(CapturedFunction function, mapping().Capture(ctx, 1));
    return std::make_shared<MapDataset>(spec(), std::move(input), std::move(function),
                                        keeps_count());
  }
};

DatasetOp MapOp(bool metadata) {
  return {.doc = "Applies a function to each element of a dataset.",
          .inputs = {{"input_dataset", "variant"}, {"other_arguments", List("Targuments")}},
          .attrs = {{"f", Functions{}},
                    TypesAttr("Targuments", 0),
                    TypesAttr("output_types", 1),
                    {"output_shapes", ShapeList{}},
                    {"use_inter_op_parallelism", true},
                    {"preserve_cardinality", false},
                    {"force_synchronous", false}},
          .spec = false,
          .metadata = metadata};
}

OP(MapDataset) { return MapOp(true); }
OP(ExperimentalMapDataset) { return MapOp(false); }
KERNEL_ANY_TYPE(MapDataset, MapKernel);
KERNEL_ANY_TYPE(ExperimentalMapDataset, MapKernel);

}  // namespace
}  // namespace penstock
