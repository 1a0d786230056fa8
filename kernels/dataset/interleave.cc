// SPDX-License-Identifier: Apache-2.0
//
// FlatMapDataset, InterleaveDataset: a function makes a dataset of each element; the output has the
// elements of these datasets one dataset after the other (FlatMap), or of several datasets in turns
// (Interleave).
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/nested.h"
#include "kernels/dataset/parallelism.h"

namespace penstock {
namespace {

class InterleaveDataset final : public Dataset {
 public:
  InterleaveDataset(ElementSpec spec, DatasetPtr input, CapturedFunction function,
                    int64_t cycle_length, int64_t block_length)
      : Dataset(std::move(spec), {std::move(input)}),
        function_(std::move(function)),
        cycle_length_(cycle_length),
        block_length_(block_length) {}
  const char* Name() const override { return "Interleave"; }
  int64_t Cardinality() const override { return kUnknownCardinality; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    ASSIGN_OR_RETURN(ElementCall call, ElementCall::New(ctx, function_));
    return std::make_unique<Iterator>(Self(this), std::move(input), std::move(call));
  }

 private:
  class Iterator final : public UnaryIterator {
   public:
    Iterator(std::shared_ptr<const InterleaveDataset> dataset, IteratorPtr input, ElementCall call)
        : UnaryIterator(std::move(input)),
          dataset_(std::move(dataset)),
          call_(std::move(call)),
          cycle_(dataset_->cycle_length_) {}
    // Returns false because nested datasets may wait.
    bool NeverWaits() const override { return false; }

    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      while (!input_ended_ || open_ > 0) {
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        NestedIterator& current = cycle_[current_];
        if (current.open()) {
          RETURN_IF_ERROR(current.GetNext(ctx, element, end));
          if (!*end) {
            if (++returned_in_turn_ == dataset_->block_length_) Advance();
            return OkStatus();
          }
          current.Close();
          --open_;
          Advance();
        } else if (input_ended_) {
          Advance();
        } else {
          RETURN_IF_ERROR(OpenNext(ctx, &current));
        }
      }
      *end = true;
      return OkStatus();
    }

    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      writer->Label("Interleave");
      writer->Int(input_ended_);
      writer->Int(static_cast<int64_t>(current_));
      writer->Int(returned_in_turn_);
      RETURN_IF_ERROR(UnaryIterator::Save(ctx, writer));
      for (NestedIterator& nested : cycle_) RETURN_IF_ERROR(nested.Save(ctx, writer));
      return OkStatus();
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("Interleave"));
      ASSIGN_OR_RETURN(input_ended_, reader->Int(0, 1));
      ASSIGN_OR_RETURN(current_, reader->Int(0, static_cast<int64_t>(cycle_.size()) - 1));
      ASSIGN_OR_RETURN(returned_in_turn_, reader->Int(0, dataset_->block_length_ - 1));
      RETURN_IF_ERROR(UnaryIterator::Restore(ctx, reader));
      for (NestedIterator& nested : cycle_) {
        RETURN_IF_ERROR(nested.Restore(ctx, call_, dataset_->input().spec(), reader));
        open_ += nested.open();
      }
      return OkStatus();
    }

   private:
    void Advance() {
      current_ = (current_ + 1) % cycle_.size();
      returned_in_turn_ = 0;
    }

    Status OpenNext(const IteratorContext& ctx, NestedIterator* nested) {
      Element args;
      bool end = false;
      RETURN_IF_ERROR(input_->GetNext(ctx, &args, &end));
      input_ended_ = end;
      if (end) return OkStatus();
      RETURN_IF_ERROR(nested->Open(ctx, call_, std::move(args)));
      ++open_;
      return OkStatus();
    }

    const std::shared_ptr<const InterleaveDataset> dataset_;
    const ElementCall call_;
    std::vector<NestedIterator> cycle_;
    int64_t open_ = 0;
    bool input_ended_ = false;
    size_t current_ = 0;            // the dataset whose turn it is
    int64_t returned_in_turn_ = 0;  // elements returned in this turn
  };

  const CapturedFunction function_;
  const int64_t cycle_length_, block_length_;
};

class NestingKernel : public DatasetKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(function_.Init(node, "f", "Targuments"));
    return DatasetKernel::Init(node);
  }

 protected:
  FunctionAttr function_;
};

class FlatMapKernel final : public NestingKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(CapturedFunction function, function_.Capture(ctx, 1));
    return std::make_shared<InterleaveDataset>(spec(), std::move(input), std::move(function), 1, 1);
  }
};

class InterleaveKernel final : public NestingKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(CapturedFunction function, function_.Capture(ctx, 1));
    const int after = 1 + function_.num_captured();
    ASSIGN_OR_RETURN(const int64_t cycle, CycleLength(ctx, after));
    ASSIGN_OR_RETURN(const int64_t block, ScalarInput<int64_t>(ctx, after + 1, "block_length"));
    if (block <= 0) return InvalidArgument("block_length must be greater than zero.");
    return std::make_shared<InterleaveDataset>(spec(), std::move(input), std::move(function), cycle,
                                               block);
  }
};

OP(FlatMapDataset) {
  return DatasetOp{
      .doc = "Maps each element to a dataset by a function, and concatenates the datasets.",
      .inputs = {{"input_dataset", "variant"}, {"other_arguments", List("Targuments")}},
      .attrs = {{"f", Functions{}}, TypesAttr("Targuments", 0)}};
}

OP(InterleaveDataset) {
  return DatasetOp{
      .doc =
          "Maps each element to a dataset by a function, and interleaves `cycle_length` of "
          "the datasets, taking `block_length` elements of each in turn.",
      .inputs = {{"input_dataset", "variant"},
                 {"other_arguments", List("Targuments")},
                 {"cycle_length", "int64"},
                 {"block_length", "int64"}},
      .attrs = {{"f", Functions{}}, TypesAttr("Targuments", 0)}};
}

KERNEL_ANY_TYPE(FlatMapDataset, FlatMapKernel);
KERNEL_ANY_TYPE(InterleaveDataset, InterleaveKernel);

}  // namespace
}  // namespace penstock
