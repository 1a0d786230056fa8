// SPDX-License-Identifier: Apache-2.0
//
// TensorDataset, TensorSliceDataset: datasets of tensors in memory.
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/counting_iterator.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/rows.h"

namespace penstock {
namespace {

// A dataset of one element, `components`, or of one element for each slice of `components` along
// dimension 0.
class TensorsDataset final : public Dataset {
 public:
  TensorsDataset(ElementSpec spec, Element components, bool slices)
      : Dataset(std::move(spec), {}), components_(std::move(components)), slices_(slices) {}

  const char* Name() const override { return slices_ ? "TensorSlice" : "Tensor"; }
  int64_t Cardinality() const override { return slices_ ? components_[0].dim(0) : 1; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext&) const override {
    return std::make_unique<Iterator>(Self(this));
  }

 private:
  class Iterator final : public CountingIterator<TensorsDataset> {
   public:
    using CountingIterator::CountingIterator;
    Status GetNext(const IteratorContext&, Element* element, bool* end) override {
      *end = next_ >= dataset_->Cardinality();
      if (*end) return OkStatus();
      *element = dataset_->components_;
      if (dataset_->slices_) {
        for (Tensor& component : *element) {
          ASSIGN_OR_RETURN(component, CopyRow(component, next_));
        }
      }
      ++next_;
      return OkStatus();
    }
  };

  const Element components_;
  const bool slices_;
};

template <bool kSlices>
class TensorsKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    Element components;
    ElementSpec made;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const Tensor& component = ctx.input(i);
      Shape shape = component.shape();
      if (kSlices && shape.rank() == 0) {
        return InvalidArgument("All components must be at least 1-dimensional");
      }
      if (kSlices && shape.dim(0) != ctx.input(0).dim(0)) {
        return InvalidArgument("All components must have the same size in the 0th dimension");
      }
      if (kSlices) shape.RemoveDim(0);
      made.types.push_back(component.dtype());
      made.shapes.push_back(shape);
      components.push_back(component);
    }
    if (components.empty()) return InvalidArgument("there must be at least one component");
    RETURN_IF_ERROR(CheckTypes(spec(), made));
    RETURN_IF_ERROR(CheckShapes(spec(), made));
    return std::make_shared<TensorsDataset>(spec(), std::move(components), kSlices);
  }
};

std::vector<AttrDef> Attributes(bool slices) {
  std::vector<AttrDef> attrs = {TypesAttr("Toutput_types", 1), {"output_shapes", ShapeList{}}};
  if (slices) attrs.push_back({"is_files", false});
  attrs.push_back({"metadata", ""});
  if (slices) attrs.push_back({"replicate_on_split", false});
  return attrs;
}

OP(TensorDataset) {
  return DatasetOp{.doc = "A dataset of one element: the given tensors.",
                   .inputs = {{"components", List("Toutput_types")}},
                   .attrs = Attributes(false),
                   .spec = false,
                   .metadata = false,
                   .stateful = true};
}

OP(TensorSliceDataset) {
  return DatasetOp{.doc = "A dataset whose elements are the rows of the given tensors.",
                   .inputs = {{"components", List("Toutput_types")}},
                   .attrs = Attributes(true),
                   .spec = false,
                   .metadata = false,
                   .stateful = true};
}

KERNEL_ANY_TYPE(TensorDataset, TensorsKernel<false>);
KERNEL_ANY_TYPE(TensorSliceDataset, TensorsKernel<true>);

}  // namespace
}  // namespace penstock
