// SPDX-License-Identifier: Apache-2.0
//
// DirectedInterleaveDataset: takes each element from one of several datasets; a dataset of numbers
// says from which.
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"

namespace penstock {
namespace {

// Input 0 is the selector.
class DirectedInterleaveDataset final : public Dataset {
 public:
  DirectedInterleaveDataset(ElementSpec spec, std::vector<DatasetPtr> inputs, bool stops)
      : Dataset(std::move(spec), std::move(inputs)), stops_(stops) {}
  const char* Name() const override { return "DirectedInterleave"; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    std::vector<IteratorPtr> inputs;
    for (int i = 0; i < num_inputs(); ++i) {
      ASSIGN_OR_RETURN(IteratorPtr iterator, input(i).NewIterator(ctx));
      inputs.push_back(std::move(iterator));
    }
    return std::make_unique<Iterator>(std::move(inputs), stops_);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(std::vector<IteratorPtr> inputs, bool stops)
        : inputs_(std::move(inputs)),
          stops_(stops),
          ended_(inputs_.size(), false),
          open_(static_cast<int64_t>(inputs_.size()) - 1) {}
    bool NeverWaits() const override {
      for (const IteratorPtr& input : inputs_) {
        if (!input->NeverWaits()) return false;
      }
      return true;
    }

    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      while (open_ > 0) {
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        Element selected;
        RETURN_IF_ERROR(inputs_[0]->GetNext(ctx, &selected, end));
        if (*end) return OkStatus();
        ASSIGN_OR_RETURN(const size_t chosen, Chosen(selected));
        if (ended_[chosen]) continue;
        RETURN_IF_ERROR(inputs_[chosen]->GetNext(ctx, element, end));
        if (!*end) return OkStatus();
        ended_[chosen] = true;
        open_ = stops_ ? 0 : open_ - 1;
      }
      *end = true;
      return OkStatus();
    }

    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      writer->Label("DirectedInterleave");
      writer->Int(open_);
      for (size_t i = 0; i < inputs_.size(); ++i) {
        writer->Int(ended_[i]);
        RETURN_IF_ERROR(inputs_[i]->Save(ctx, writer));
      }
      return OkStatus();
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("DirectedInterleave"));
      ASSIGN_OR_RETURN(open_, reader->Int());
      int64_t open = 0;  // data inputs that have not ended
      for (size_t i = 0; i < inputs_.size(); ++i) {
        ASSIGN_OR_RETURN(const int64_t ended, reader->Int(0, 1));
        ended_[i] = ended == 1;
        if (i > 0 && ended == 0) ++open;
        RETURN_IF_ERROR(inputs_[i]->Restore(ctx, reader));
      }
      // A larger number would keep GetNext reading an infinite selector for ever.
      if (open_ == open || (stops_ && open_ == 0)) return OkStatus();
      return InvalidArgument("the state of an iterator counts ", open_, " inputs that have not ",
                             "ended; there are ", open);
    }

   private:
    StatusOr<size_t> Chosen(const Element& selected) const {
      if (selected.size() != 1 || selected[0].dtype() != DType::kInt64 ||
          selected[0].num_elements() != 1) {
        return InvalidArgument("Selector input must be a scalar int64.");
      }
      const int64_t chosen = selected[0].scalar<int64_t>();
      if (chosen < 0 || chosen >= static_cast<int64_t>(inputs_.size()) - 1) {
        return InvalidArgument("Selector index out of range: ", chosen, " >= ", inputs_.size() - 1);
      }
      return static_cast<size_t>(chosen) + 1;
    }

    const std::vector<IteratorPtr> inputs_;
    const bool stops_;
    std::vector<bool> ended_;
    int64_t open_;  // number of data inputs that may have more elements
  };

  const bool stops_;
};

class DirectedInterleaveKernel final : public DatasetKernel {
 public:
  Status Init(const KernelInit& node) override {
    if (node.attrs.contains("stop_on_empty_dataset")) {
      RETURN_IF_ERROR(node.Attr("stop_on_empty_dataset", &stops_));
    }
    return DatasetKernel::Init(node);
  }

 private:
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    std::vector<DatasetPtr> inputs;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx, i));
      if (i > 0) RETURN_IF_ERROR(CheckTypes(spec(), input->spec()));
      inputs.push_back(std::move(input));
    }
    if (inputs.size() < 2) return InvalidArgument("there must be at least one dataset to choose");
    return std::make_shared<DirectedInterleaveDataset>(spec(), std::move(inputs), stops_);
  }

  bool stops_ = false;
};

DatasetOp DirectedOp(bool experimental) {
  DatasetOp op{.doc =
                   "Interleaves several datasets: a dataset of numbers selects the dataset from "
                   "which each element is taken.",
               .inputs = {{"selector_input_dataset", "variant"},
                          {"data_input_datasets", Repeat("N", "variant")}},
               .attrs = {TypesAttr("output_types", 1),
                         {"output_shapes", ShapeList{}},
                         {"N", Ints{.min = 1}}},
               .spec = false,
               .metadata = false};
  if (!experimental) op.attrs.push_back({"stop_on_empty_dataset", false});
  return op;
}
OP(DirectedInterleaveDataset) { return DirectedOp(false); }
OP(ExperimentalDirectedInterleaveDataset) { return DirectedOp(true); }
KERNEL_ANY_TYPE(DirectedInterleaveDataset, DirectedInterleaveKernel);
KERNEL_ANY_TYPE(ExperimentalDirectedInterleaveDataset, DirectedInterleaveKernel);

}  // namespace
}  // namespace penstock
