// SPDX-License-Identifier: Apache-2.0
//
// RepeatDataset: repeats a dataset.
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"

namespace penstock {
namespace {

class RepeatDataset final : public Dataset {
 public:
  RepeatDataset(DatasetPtr input, int64_t count) : Dataset(input->spec(), {input}), count_(count) {}
  const char* Name() const override { return "Repeat"; }
  int64_t Cardinality() const override {
    const int64_t once = input().Cardinality();
    if (count_ == 0 || once == 0) return 0;
    if (count_ < 0) return once == kUnknownCardinality ? once : kInfiniteCardinality;
    if (once < 0) return once;
    return once > INT64_MAX / count_ ? kUnknownCardinality : once * count_;
  }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    return std::make_unique<Iterator>(Self(this), std::move(input));
  }

 private:
  class Iterator final : public UnaryIterator {
   public:
    Iterator(std::shared_ptr<const RepeatDataset> dataset, IteratorPtr input)
        : UnaryIterator(std::move(input)), dataset_(std::move(dataset)) {}
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      const int64_t count = dataset_->count_;
      while (count < 0 || round_ < count) {
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        RETURN_IF_ERROR(input_->GetNext(ctx, element, end));
        if (!*end) {
          empty_ = false;
          return OkStatus();
        }
        // Ends the iteration if an empty dataset is repeated without end; otherwise this loop would
        // never return.
        if (count < 0 && empty_) return OkStatus();
        ++round_;
        empty_ = true;
        ASSIGN_OR_RETURN(IteratorPtr next, dataset_->input().NewIterator(ctx));
        input_ = std::move(next);
      }
      *end = true;
      return OkStatus();
    }
    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      writer->Label("Repeat");
      writer->Int(round_);
      writer->Int(empty_);
      return UnaryIterator::Save(ctx, writer);
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("Repeat"));
      ASSIGN_OR_RETURN(round_, reader->Int());
      ASSIGN_OR_RETURN(empty_, reader->Int(0, 1));
      return UnaryIterator::Restore(ctx, reader);
    }

   private:
    const std::shared_ptr<const RepeatDataset> dataset_;
    int64_t round_ = 0;
    bool empty_ = true;  // true if this round has returned no element yet
  };

  const int64_t count_;
};

class RepeatKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(const int64_t count, ScalarInput<int64_t>(ctx, 1, "count"));
    return std::make_shared<RepeatDataset>(std::move(input), count);
  }
};

OP(RepeatDataset) {
  return DatasetOp{.doc = "Repeats a dataset `count` times (-1: for ever).",
                   .inputs = {{"input_dataset", "variant"}, {"count", "int64"}}};
}
KERNEL_ANY_TYPE(RepeatDataset, RepeatKernel);

}  // namespace
}  // namespace penstock
