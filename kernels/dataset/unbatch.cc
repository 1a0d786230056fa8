// SPDX-License-Identifier: Apache-2.0
//
// UnbatchDataset: makes each row of each element an element.
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/rows.h"

namespace penstock {
namespace {

class UnbatchDataset final : public Dataset {
 public:
  UnbatchDataset(ElementSpec spec, DatasetPtr input)
      : Dataset(std::move(spec), {std::move(input)}) {}
  const char* Name() const override { return "Unbatch"; }
  // Returns the number of rows of all batches. It is known if the spec gives the number of rows of
  // a batch.
  int64_t Cardinality() const override {
    const int64_t batches = input().Cardinality();
    const std::vector<PartialShape>& shapes = input().spec().shapes;
    if (batches <= 0 && batches != kUnknownCardinality) return batches;
    if (batches < 0 || shapes.empty() || shapes[0].rank() < 1) return kUnknownCardinality;
    const int64_t rows = shapes[0].dim(0);
    return rows < 0 || (rows > 0 && batches > INT64_MAX / rows) ? kUnknownCardinality
                                                                : rows * batches;
  }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    return std::make_unique<Iterator>(Self(this), std::move(input));
  }

 private:
  class Iterator final : public UnaryIterator {
   public:
    Iterator(std::shared_ptr<const UnbatchDataset> dataset, IteratorPtr input)
        : UnaryIterator(std::move(input)), dataset_(std::move(dataset)) {}
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      while (batch_.empty() || next_ >= batch_[0].dim(0)) {
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        Element batch;
        RETURN_IF_ERROR(input_->GetNext(ctx, &batch, end));
        if (*end) return OkStatus();
        RETURN_IF_ERROR(CheckRows(batch));
        batch_ = std::move(batch);
        next_ = 0;
      }
      element->clear();
      for (const Tensor& component : batch_) {
        ASSIGN_OR_RETURN(Tensor row, CopyRow(component, next_));
        element->push_back(std::move(row));
      }
      ++next_;
      *end = false;
      return OkStatus();
    }
    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      writer->Label("Unbatch");
      writer->Int(next_);
      writer->Values(batch_);
      return UnaryIterator::Save(ctx, writer);
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("Unbatch"));
      ASSIGN_OR_RETURN(next_, reader->Int());
      ASSIGN_OR_RETURN(batch_, reader->Values());
      if (!batch_.empty()) RETURN_IF_ERROR(CheckBatch(batch_, dataset_->input().spec()));
      return UnaryIterator::Restore(ctx, reader);
    }

   private:
    static Status CheckRows(const Element& batch) {
      for (const Tensor& component : batch) {
        if (component.rank() == 0) {
          return InvalidArgument("Input element must have a non-scalar value in each component.");
        }
        if (component.dim(0) != batch[0].dim(0)) {
          return InvalidArgument("Input element must have the same batch size in each component. ",
                                 "Component 0 had size ", batch[0].dim(0), " but another had size ",
                                 component.dim(0), ".");
        }
      }
      return batch.empty() ? InvalidArgument("an element without components has no rows")
                           : OkStatus();
    }

    const std::shared_ptr<const UnbatchDataset> dataset_;
    Element batch_;
    int64_t next_ = 0;  // the next row
  };
};

class UnbatchKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ElementSpec rows{.types = input->spec().types};
    for (const PartialShape& shape : input->spec().shapes) {
      if (shape.known_rank() && shape.rank() == 0) {
        return InvalidArgument("Input elements to UnbatchDataset must have a known rank >= 1");
      }
      PartialShape row;
      if (shape.known_rank()) row = PartialShape(shape.dims().subspan(1));
      rows.shapes.push_back(row);
    }
    return std::make_shared<UnbatchDataset>(std::move(rows), std::move(input));
  }
};

DatasetOp UnbatchOp(bool metadata) {
  return {.doc = "Splits each element of a dataset into its rows; each row becomes an element.",
          .inputs = {{"input_dataset", "variant"}},
          .metadata = metadata};
}
OP(UnbatchDataset) { return UnbatchOp(true); }
OP(ExperimentalUnbatchDataset) { return UnbatchOp(false); }
KERNEL_ANY_TYPE(UnbatchDataset, UnbatchKernel);
KERNEL_ANY_TYPE(ExperimentalUnbatchDataset, UnbatchKernel);

}  // namespace
}  // namespace penstock
