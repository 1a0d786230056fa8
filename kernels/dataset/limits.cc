// SPDX-License-Identifier: Apache-2.0
//
// TakeDataset, SkipDataset, ShardDataset: datasets of some of the input's elements.
#include <algorithm>
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"

namespace penstock {
namespace {

// Selects the elements first, first + stride, and so on of the input: `count` of them, or all if
// `count` is negative.
struct Part {
  const char* name;
  int64_t first = 0, stride = 1, count = -1;
  bool must_have_elements = false;  // true: GetNext returns an error if the part is empty
};

int64_t CountOf(const Part& part, int64_t input) {
  if (part.count == 0) return 0;
  int64_t left = input;
  if (input >= 0) {
    left = std::max<int64_t>(0, input - part.first);
    left = left / part.stride + (left % part.stride != 0);
  }
  if (part.count < 0 || left == kUnknownCardinality) return left;
  return left == kInfiniteCardinality ? part.count : std::min(left, part.count);
}

class PartDataset final : public Dataset {
 public:
  PartDataset(DatasetPtr input, const Part& part) : Dataset(input->spec(), {input}), part_(part) {}
  const char* Name() const override { return part_.name; }
  int64_t Cardinality() const override { return CountOf(part_, input().Cardinality()); }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    return std::make_unique<Iterator>(Self(this), std::move(input));
  }

 private:
  class Iterator final : public UnaryIterator {
   public:
    Iterator(std::shared_ptr<const PartDataset> dataset, IteratorPtr input)
        : UnaryIterator(std::move(input)),
          dataset_(std::move(dataset)),
          skip_(dataset_->part_.first) {}
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      const Part& part = dataset_->part_;
      *end = part.count >= 0 && given_ >= part.count;
      if (*end) return OkStatus();
      for (; skip_ > 0; --skip_) {
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        Element skipped;
        RETURN_IF_ERROR(input_->GetNext(ctx, &skipped, end));
        if (*end) return End();
      }
      RETURN_IF_ERROR(input_->GetNext(ctx, element, end));
      if (*end) return End();
      ++given_;
      skip_ = part.stride - 1;
      return OkStatus();
    }
    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      writer->Label(dataset_->Name());
      writer->Int(skip_);
      writer->Int(given_);
      return UnaryIterator::Save(ctx, writer);
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label(dataset_->Name()));
      // A larger number to skip would keep GetNext reading an infinite input for ever.
      const Part& part = dataset_->part_;
      ASSIGN_OR_RETURN(skip_, reader->Int(0, std::max(part.first, part.stride - 1)));
      ASSIGN_OR_RETURN(given_, reader->Int());
      return UnaryIterator::Restore(ctx, reader);
    }

   private:
    Status End() {
      if (!dataset_->part_.must_have_elements || given_ > 0) return OkStatus();
      return InvalidArgument(
          "Could not apply sharding policy: fewer elements in this dataset than num_shards (",
          dataset_->part_.stride, "): shard ", dataset_->part_.first, " is empty");
    }

    const std::shared_ptr<const PartDataset> dataset_;
    int64_t skip_;  // elements of the input to skip before the next one
    int64_t given_ = 0;
  };

  const Part part_;
};

class TakeKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(const int64_t count, ScalarInput<int64_t>(ctx, 1, "count"));
    return std::make_shared<PartDataset>(
        std::move(input), Part{.name = "Take", .count = std::max<int64_t>(count, -1)});
  }
};

class SkipKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(const int64_t count, ScalarInput<int64_t>(ctx, 1, "count"));
    Part part{.name = "Skip", .first = count};
    if (count < 0) part = {.name = "Skip", .count = 0};
    return std::make_shared<PartDataset>(std::move(input), part);
  }
};

class ShardKernel final : public DatasetKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("require_non_empty", &must_have_elements_));
    return DatasetKernel::Init(node);
  }

 private:
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(const int64_t shards, ScalarInput<int64_t>(ctx, 1, "num_shards"));
    ASSIGN_OR_RETURN(const int64_t index, ScalarInput<int64_t>(ctx, 2, "index"));
    if (shards <= 0) {
      return InvalidArgument(
          "Number of shards must be greater than zero (currently num_shards = ", shards, ").");
    }
    if (index < 0 || index >= shards) {
      return InvalidArgument("Index must be between 0 and ", shards - 1,
                             " (currently index = ", index, ").");
    }
    return std::make_shared<PartDataset>(std::move(input),
                                         Part{.name = "Shard",
                                              .first = index,
                                              .stride = shards,
                                              .must_have_elements = must_have_elements_});
  }

  bool must_have_elements_ = false;
};

OP(TakeDataset) {
  return DatasetOp{.doc = "The first `count` elements of a dataset (-1: all).",
                   .inputs = {{"input_dataset", "variant"}, {"count", "int64"}}};
}

OP(SkipDataset) {
  return DatasetOp{.doc = "A dataset without its first `count` elements (-1: an empty dataset).",
                   .inputs = {{"input_dataset", "variant"}, {"count", "int64"}}};
}

OP(ShardDataset) {
  return DatasetOp{
      .doc = "The elements index, index + num_shards, ... of a dataset.",
      .inputs = {{"input_dataset", "variant"}, {"num_shards", "int64"}, {"index", "int64"}},
      .attrs = {{"require_non_empty", false}}};
}

KERNEL_ANY_TYPE(TakeDataset, TakeKernel);
KERNEL_ANY_TYPE(SkipDataset, SkipKernel);
KERNEL_ANY_TYPE(ShardDataset, ShardKernel);

}  // namespace
}  // namespace penstock
