// SPDX-License-Identifier: Apache-2.0
//
// FilterDataset, ParallelFilterDataset: the elements for which a function returns true;
// TakeWhileDataset: the elements before the first for which a function returns false.
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"

namespace penstock {
namespace {

class FilterDataset final : public Dataset {
 public:
  FilterDataset(DatasetPtr input, CapturedFunction predicate, bool ends)
      : Dataset(input->spec(), {input}), predicate_(std::move(predicate)), ends_(ends) {}
  const char* Name() const override { return ends_ ? "TakeWhile" : "Filter"; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    ASSIGN_OR_RETURN(ElementCall call, ElementCall::New(ctx, predicate_));
    return std::make_unique<Iterator>(std::move(input), std::move(call), ends_);
  }

 private:
  class Iterator final : public UnaryIterator {
   public:
    Iterator(IteratorPtr input, ElementCall call, bool ends)
        : UnaryIterator(std::move(input)), call_(std::move(call)), ends_(ends) {}
    bool NeverWaits() const override { return !call_.waits() && input_->NeverWaits(); }
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      while (!ended_) {
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        RETURN_IF_ERROR(input_->GetNext(ctx, element, end));
        if (*end) break;
        ASSIGN_OR_RETURN(const bool wanted, call_.Test(ctx, *element));
        if (wanted) return OkStatus();
        ended_ = ends_;
      }
      *end = true;
      return OkStatus();
    }
    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      writer->Label("Filter");
      writer->Int(ended_);
      return UnaryIterator::Save(ctx, writer);
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("Filter"));
      ASSIGN_OR_RETURN(ended_, reader->Int(0, 1));
      return UnaryIterator::Restore(ctx, reader);
    }

   private:
    const ElementCall call_;
    const bool ends_;
    bool ended_ = false;
  };

  const CapturedFunction predicate_;
  const bool ends_;
};

template <bool kEnds>
class FilterKernel final : public DatasetKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(predicate_.Init(node, "predicate", "Targuments"));
    return DatasetKernel::Init(node);
  }

 private:
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(CapturedFunction predicate, predicate_.Capture(ctx, 1));
    return std::make_shared<FilterDataset>(std::move(input), std::move(predicate), kEnds);
  }

  FunctionAttr predicate_;
};

DatasetOp FilterOp(const char* doc, bool metadata = true) {
  return {.doc = doc,
          .inputs = {{"input_dataset", "variant"}, {"other_arguments", List("Targuments")}},
          .attrs = {{"predicate", Functions{}}, TypesAttr("Targuments", 0)},
          .metadata = metadata};
}

constexpr char kTakeWhileDoc[] =
    "The elements of a dataset before the first one for which a function returns "
    "false.";

OP(FilterDataset) {
  return FilterOp("The elements of a dataset for which a function returns true.");
}
OP(TakeWhileDataset) { return FilterOp(kTakeWhileDoc); }
OP(ExperimentalTakeWhileDataset) { return FilterOp(kTakeWhileDoc, false); }

// The function is called for one element at a time, so the output is in the input's order even if
// the attributes allow another order.
OP(ParallelFilterDataset) {
  DatasetOp op =
      FilterOp("The elements of a dataset for which a function returns true, in their order.");
  op.inputs.push_back({"num_parallel_calls", "int64"});
  op.attrs = {{"predicate", Functions{}}, {"deterministic", "default"}, TypesAttr("Targuments", 0)};
  return op;
}

KERNEL_ANY_TYPE(FilterDataset, FilterKernel<false>);
KERNEL_ANY_TYPE(ParallelFilterDataset, FilterKernel<false>);
KERNEL_ANY_TYPE(TakeWhileDataset, FilterKernel<true>);
KERNEL_ANY_TYPE(ExperimentalTakeWhileDataset, FilterKernel<true>);

}  // namespace
}  // namespace penstock
