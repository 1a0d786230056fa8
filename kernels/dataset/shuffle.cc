// SPDX-License-Identifier: Apache-2.0
//
// ShuffleDataset and its versions, ShuffleAndRepeatDataset and its V2: elements in random order.
// The order for given seeds is TensorFlow's.
#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/seeds.h"

namespace penstock {
namespace {

class ShuffleDataset final : public Dataset {
 public:
  // `count`: how often the input is read; -1: without end.
  ShuffleDataset(DatasetPtr input, int64_t buffer_size, int64_t count,
                 std::shared_ptr<SeedGenerator> seeds)
      : Dataset(input->spec(), {input}),
        buffer_size_(buffer_size),
        count_(count),
        seeds_(std::move(seeds)) {}
  const char* Name() const override { return "Shuffle"; }
  int64_t Cardinality() const override {
    const int64_t once = input().Cardinality();
    if (count_ == 1 || once == 0) return once;
    if (count_ == 0) return 0;
    if (count_ < 0) return once == kUnknownCardinality ? once : kInfiniteCardinality;
    return once < 0 ? once : once > INT64_MAX / count_ ? kUnknownCardinality : once * count_;
  }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    return std::make_unique<Iterator>(Self(this), ctx.origin, std::move(input));
  }

 private:
  // The buffer is not filled further while it has elements of more rounds (passes over the input)
  // than this.
  static constexpr size_t kRoundsMax = 3;

  class Iterator final : public DatasetIterator {
   public:
    Iterator(std::shared_ptr<const ShuffleDataset> dataset, const UpdateOrigin& origin,
             IteratorPtr input)
        : dataset_(std::move(dataset)),
          seeds_(dataset_->seeds_->Next(origin)),
          numbers_(seeds_.Stream()),
          input_(std::move(input)) {}

    bool NeverWaits() const override { return input_->NeverWaits(); }

    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      RETURN_IF_ERROR(Fill(ctx));
      *end = buffer_.empty();
      if (*end) return OkStatus();
      while (buffered_per_round_.front() == 0) EndRound(ctx.origin);
      const int64_t chosen = int64_t{numbers_()} % buffered_per_round_.front();
      ++drawn_;
      *element = std::move(buffer_[chosen]);
      std::swap(buffer_[chosen], buffer_.front());
      buffer_.pop_front();
      --buffered_per_round_.front();
      return OkStatus();
    }

    Status Save(const IteratorContext& ctx, StateWriter* writer) override;
    Status Restore(const IteratorContext& ctx, StateReader* reader) override;

   private:
    Status Fill(const IteratorContext& ctx) {
      const int64_t count = dataset_->count_;
      while (static_cast<int64_t>(buffer_.size()) < dataset_->buffer_size_) {
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        while (buffered_per_round_.size() > 1 && buffered_per_round_.front() == 0) {
          EndRound(ctx.origin);
        }
        if (buffered_per_round_.size() > kRoundsMax && !buffer_.empty()) return OkStatus();
        if (!open_) {
          if (count >= 0 && round_ >= count) return OkStatus();
          // Ends the iteration if an empty input is repeated without end; otherwise this loop would
          // never return.
          if (count < 0 && round_ > 0 && empty_) return OkStatus();
          RETURN_IF_ERROR(BeginRound(ctx));
        }
        Element next;
        bool end = false;
        RETURN_IF_ERROR(input_->GetNext(ctx, &next, &end));
        open_ = !end;
        if (end) continue;
        buffer_.push_back(std::move(next));
        ++buffered_per_round_.back();
        empty_ = false;
      }
      return OkStatus();
    }

    // Called when all elements of the oldest round have been returned. Starts a new sequence of
    // random numbers for the next round.
    void EndRound(const UpdateOrigin& origin) {
      buffered_per_round_.pop_front();
      seeds_ = dataset_->seeds_->Next(origin);
      numbers_ = PhiloxNumbers(seeds_.Stream());
      drawn_ = 0;
    }

    Status BeginRound(const IteratorContext& ctx) {
      if (round_ > 0) {
        ASSIGN_OR_RETURN(IteratorPtr next, dataset_->input().NewIterator(ctx));
        input_ = std::move(next);
      }
      buffered_per_round_.push_back(0);
      ++round_;
      open_ = empty_ = true;
      return OkStatus();
    }

    const std::shared_ptr<const ShuffleDataset> dataset_;
    Seeds seeds_;
    PhiloxNumbers numbers_;
    int64_t drawn_ = 0;  // numbers taken from numbers_
    IteratorPtr input_;
    int64_t round_ = 0;   // rounds begun
    bool open_ = false;   // a round is being read from the input
    bool empty_ = false;  // no element of the current round has been read yet
    std::deque<Element> buffer_;
    std::deque<int64_t> buffered_per_round_;  // elements in the buffer per round, the oldest first
  };

  const int64_t buffer_size_, count_;
  const std::shared_ptr<SeedGenerator> seeds_;
};

Status ShuffleDataset::Iterator::Save(const IteratorContext& ctx, StateWriter* writer) {
  writer->Label("Shuffle");
  dataset_->seeds_->Save(writer);
  writer->Int(seeds_.seed);
  writer->Int(seeds_.seed2);
  writer->Int(drawn_);
  writer->Int(round_);
  writer->Int(open_);
  writer->Int(empty_);
  writer->Int(static_cast<int64_t>(buffered_per_round_.size()));
  for (const int64_t left : buffered_per_round_) writer->Int(left);
  for (const Element& element : buffer_) writer->Values(element);
  return open_ ? input_->Save(ctx, writer) : OkStatus();
}

Status ShuffleDataset::Iterator::Restore(const IteratorContext& ctx, StateReader* reader) {
  RETURN_IF_ERROR(reader->Label("Shuffle"));
  // The rounds after this one must get the seeds that they would have got.
  RETURN_IF_ERROR(dataset_->seeds_->Restore(reader, ctx.origin));
  ASSIGN_OR_RETURN(seeds_.seed, reader->AnyInt());
  ASSIGN_OR_RETURN(seeds_.seed2, reader->AnyInt());
  ASSIGN_OR_RETURN(drawn_, reader->Int());
  numbers_ = PhiloxNumbers(seeds_.Stream(), static_cast<uint64_t>(drawn_));
  ASSIGN_OR_RETURN(round_, reader->Int());
  ASSIGN_OR_RETURN(open_, reader->Int(0, 1));
  ASSIGN_OR_RETURN(empty_, reader->Int(0, 1));
  ASSIGN_OR_RETURN(const int64_t rounds, reader->Int(open_ ? 1 : 0, kRoundsMax + 2));
  int64_t held = 0;
  for (int64_t i = 0; i < rounds; ++i) {
    ASSIGN_OR_RETURN(const int64_t left, reader->Int(0, dataset_->buffer_size_ - held));
    buffered_per_round_.push_back(left);
    held += left;
  }
  for (int64_t i = 0; i < held; ++i) {
    ASSIGN_OR_RETURN(Element element, reader->ElementOf(dataset_->spec()));
    buffer_.push_back(std::move(element));
  }
  return open_ ? input_->Restore(ctx, reader) : OkStatus();
}

class ShuffleKernel : public DatasetKernel {
 public:
  Status Init(const KernelInit& node) override {
    if (node.attrs.contains("reshuffle_each_iteration")) {
      RETURN_IF_ERROR(node.Attr("reshuffle_each_iteration", &reshuffles_));
    }
    return DatasetKernel::Init(node);
  }

 protected:
  // The indices of the op's inputs; -1 if the op has no such input.
  struct Inputs {
    int seed = -1, count = -1, generator = -1;
  };
  StatusOr<DatasetPtr> Make(const KernelContext& ctx, const Inputs& inputs) const {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    ASSIGN_OR_RETURN(int64_t size, ScalarInput<int64_t>(ctx, 1, "buffer_size"));
    if (size == kUnknownCardinality || size == kInfiniteCardinality) size = INT64_MAX;
    if (size <= 0) {
      return InvalidArgument("buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
    }
    int64_t count = 1;
    if (inputs.count >= 0) {
      ASSIGN_OR_RETURN(count, ScalarInput<int64_t>(ctx, inputs.count, "count"));
      if (count == 0 || count < -1) {
        return InvalidArgument("count must be greater than zero or equal to -1.");
      }
    }
    ASSIGN_OR_RETURN(std::shared_ptr<SeedGenerator> seeds, Generator(ctx, inputs));
    return std::make_shared<ShuffleDataset>(std::move(input), size, count, std::move(seeds));
  }

 private:
  // Returns the generator behind the handle. If the handle has none, returns a new generator with
  // the seeds of the inputs, or an error if the op has no seeds.
  StatusOr<std::shared_ptr<SeedGenerator>> Generator(const KernelContext& ctx,
                                                     const Inputs& inputs) const {
    if (inputs.generator >= 0) {
      auto generator = ResourceInput<SeedGenerator>(ctx, inputs.generator);
      if (generator.ok() || inputs.seed < 0) return generator;
    }
    Seeds seeds{};
    ASSIGN_OR_RETURN(seeds.seed, ScalarInput<int64_t>(ctx, inputs.seed, "seed"));
    ASSIGN_OR_RETURN(seeds.seed2, ScalarInput<int64_t>(ctx, inputs.seed + 1, "seed2"));
    return std::make_shared<SeedGenerator>(seeds, reshuffles_, *ctx.step().env);
  }

  bool reshuffles_ = true;
};

template <int kSeed, int kCount, int kGenerator>
class Version final : public ShuffleKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    return Make(ctx, {.seed = kSeed, .count = kCount, .generator = kGenerator});
  }
};
using ShuffleV1 = Version<2, -1, -1>;
using ShuffleV2 = Version<-1, -1, 2>;
using ShuffleV3 = Version<2, -1, 4>;
using RepeatV1 = Version<2, 4, -1>;
using RepeatV2 = Version<2, 4, 5>;

DatasetOp ShuffleOp(std::vector<ArgDef> inputs, std::vector<AttrDef> attrs, bool stateful) {
  DatasetOp op{.doc =
                   "Shuffles a dataset: each element is drawn at random from a buffer of "
                   "`buffer_size` elements.",
               .inputs = {{"input_dataset", "variant"}, {"buffer_size", "int64"}},
               .attrs = std::move(attrs),
               .stateful = stateful};
  op.inputs.insert(op.inputs.end(), inputs.begin(), inputs.end());
  return op;
}

const std::vector<AttrDef> kReshuffle = {{"reshuffle_each_iteration", true}};

OP(ShuffleDataset) { return ShuffleOp({{"seed", "int64"}, {"seed2", "int64"}}, kReshuffle, false); }
OP(ShuffleDatasetV2) { return ShuffleOp({{"seed_generator", "resource"}}, {}, true); }
OP(ShuffleDatasetV3) {
  return ShuffleOp({{"seed", "int64"}, {"seed2", "int64"}, {"seed_generator", "resource"}},
                   kReshuffle, true);
}

OP(ShuffleAndRepeatDataset) {
  DatasetOp op = ShuffleOp({{"seed", "int64"}, {"seed2", "int64"}, {"count", "int64"}},
                           {TypesAttr("output_types", 1),
                            {"output_shapes", ShapeList{}},
                            {"reshuffle_each_iteration", true}},
                           false);
  op.spec = false;
  return op;
}
OP(ShuffleAndRepeatDatasetV2) {
  return ShuffleOp(
      {{"seed", "int64"}, {"seed2", "int64"}, {"count", "int64"}, {"seed_generator", "resource"}},
      kReshuffle, true);
}

KERNEL_ANY_TYPE(ShuffleDataset, ShuffleV1);
KERNEL_ANY_TYPE(ShuffleDatasetV2, ShuffleV2);
KERNEL_ANY_TYPE(ShuffleDatasetV3, ShuffleV3);
KERNEL_ANY_TYPE(ShuffleAndRepeatDataset, RepeatV1);
KERNEL_ANY_TYPE(ShuffleAndRepeatDatasetV2, RepeatV2);

}  // namespace
}  // namespace penstock
